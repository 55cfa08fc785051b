#include "tests/planner/files.h"

#include "planner/base/arena.h"

#include <check.h>
#include <dirent.h>
#include <string.h>

json_t *test_read_json(const char *path)
{
    json_error_t problem;
    json_t *json = json_load_file(path, 0, &problem);
    ck_assert_msg(json != NULL, "%s: line %d: %s", path, problem.line, problem.text);
    return json;
}

json_t *test_read_directory(const char *path)
{
    json_t *files = json_object();
    DIR *directory = opendir(path);
    ck_assert_msg(directory != NULL, "%s: cannot be opened", path);
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (!suffix || strcmp(suffix, ".json"))
            continue;
        auto_free char *file = xasprintf("%s/%s", path, entry->d_name);
        json_object_set_new(files, entry->d_name, test_read_json(file));
    }
    closedir(directory);
    return files;
}
