#include "planner/format/document/read_file.h"

#include "planner/base/arena.h"
#include "planner/format/json.h"
#include "planner/format/profile/metis.h"
#include "planner/format/yaml_read.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FOLDER_FILES ((size_t)16384)
#define LLM_INFO         "llm_info.json"

/* ---- one file ---- */

int het_read_file_stream(FILE *stream, const char *name, char **ret_text,
                         size_t *ret_length, struct het_error *err)
{
    auto_free char *text = NULL;
    size_t length = 0, capacity = 0;
    do {
        ARRAY_RESERVE(text, &capacity, length + 65536 + 1);
        length += fread(text + length, 1, capacity - length - 1, stream);
        if (length > HET_MAX_JSON_BYTES)
            return het_fail(err, HET_BAD_INPUT, "%.300s: larger than %zu MiB", name,
                            HET_MAX_JSON_BYTES >> 20);
    } while (!feof(stream) && !ferror(stream));
    if (ferror(stream))
        return het_fail(err, HET_IO, "%.300s: %s", name, strerror(errno));
    text[length] = '\0';
    *ret_text = TAKE(text);
    *ret_length = length;
    return 0;
}

int het_read_file_text(const char *path, char **ret_text, size_t *ret_length,
                       struct het_error *err)
{
    if (!strcmp(path, "-"))
        return het_read_file_stream(stdin, "standard input", ret_text, ret_length, err);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    int result = het_read_file_stream(stream, path, ret_text, ret_length, err);
    fclose(stream);
    return result;
}

static bool has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && !strcmp(name + length - tail, ending);
}

static bool is_yaml(const char *path, const char *text)
{
    return has_ending(path, ".yaml") || has_ending(path, ".yml") ||
           (het_yaml_is_likely(text) && !has_ending(path, ".json"));
}

int het_read_file(const char *path, json_t **ret, struct het_error *err)
{
    const char *name = strcmp(path, "-") ? path : "standard input";
    auto_free char *text = NULL;
    size_t length;
    if (het_read_file_text(path, &text, &length, err) < 0)
        return -1;
    if (is_yaml(path, text))
        return het_yaml_parse_one(text, length, ret, err) < 0
                   ? het_wrap(err, "%.300s", name)
                   : 0;
    auto_free char *cut_name = xasprintf("%.300s", name);
    return het_json_decode(text, length, cut_name, ret, err);
}

/* ---- folders ---- */

/* Names of the files of a folder that `wanted` takes, sorted. */
struct names {
    char **names;
    size_t count, capacity;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_folder(const char *path, bool (*wanted)(const char *name),
                       struct names *names, struct het_error *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!wanted(entry->d_name) || names->count > MAX_FOLDER_FILES)
            continue;
        ARRAY_RESERVE(names->names, &names->capacity, names->count + 1);
        names->names[names->count++] = xstrdup(entry->d_name);
    }
    closedir(folder);
    if (names->count > MAX_FOLDER_FILES)
        return het_fail(err, HET_BAD_INPUT, "%.300s: more than %zu files", path,
                        MAX_FOLDER_FILES);
    if (names->count)
        qsort(names->names, names->count, sizeof *names->names, compare_names);
    return 0;
}

/* Reads the files as members of one object, called by their names up to `cut` bytes
 * before their end. */
static int read_folder(const char *path, const struct names *names, size_t cut,
                       json_t **ret, struct het_error *err)
{
    json_auto_t *files = json_object();
    size_t bytes = 0;
    for (size_t i = 0; i < names->count; i++) {
        auto_free char *file = xasprintf("%s/%s", path, names->names[i]);
        auto_free char *text = NULL, *what = xasprintf("%.300s", file);
        size_t length;
        json_t *json;
        if (het_read_file_text(file, &text, &length, err) < 0 ||
            het_json_decode(text, length, what, &json, err) < 0)
            return -1;
        auto_free char *member =
            xasprintf("%.*s", (int)(strlen(names->names[i]) - cut), names->names[i]);
        if (json_object_set_new(files, member, json) < 0)
            return het_fail(err, HET_BAD_INPUT, "%.300s: the name is not UTF-8", file);
        bytes += length;
        if (bytes > HET_MAX_JSON_BYTES)
            return het_fail(err, HET_BAD_INPUT, "%.300s: larger than %zu MiB together",
                            path, HET_MAX_JSON_BYTES >> 20);
    }
    *ret = TAKE(files);
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return !stat(path, &facts) && S_ISDIR(facts.st_mode);
}

static bool is_json_name(const char *name)
{
    return name[0] != '.' && has_ending(name, ".json") && strcmp(name, LLM_INFO);
}

static int read_metis_folder(const char *path, const struct names *names, json_t **ret,
                             struct het_error *err)
{
    json_t *files;
    if (read_folder(path, names, 0, &files, err) < 0)
        return -1;
    *ret = json_pack("{s:o}", "files", files);
    return 0;
}

static int read_sailor_folder(const char *path, json_t **ret, struct het_error *err)
{
    struct names names = { 0 };
    json_t *times;
    int result = list_folder(path, is_json_name, &names, err);
    if (!result && !names.count)
        result = het_fail(err, HET_BAD_INPUT,
                          "%.300s: no file here is called "
                          "DeviceType.<TYPE>_tp<T>_bs<B>.json or <TYPE>.json",
                          path);
    if (!result)
        result = read_folder(path, &names, strlen(".json"), &times, err);
    names_fini(&names);
    if (!result)
        *ret = json_pack("{s:o}", "layerTimes", times);
    return result;
}

int het_read_file_profile(const char *path, json_t **ret, struct het_error *err)
{
    if (!is_folder(path))
        return het_read_file(path, ret, err);
    struct names names = { 0 };
    int result = list_folder(path, het_profile_metis_is_name, &names, err);
    if (!result)
        result = names.count ? read_metis_folder(path, &names, ret, err)
                             : read_sailor_folder(path, ret, err);
    names_fini(&names);
    return result;
}

char *het_read_file_find_llm_info(const char *folder)
{
    static const char *const above[] = { "", "../", "../../" };
    for (size_t i = 0; i < sizeof above / sizeof *above; i++) {
        auto_free char *path = xasprintf("%s/%s%s", folder, above[i], LLM_INFO);
        if (!access(path, R_OK))
            return TAKE(path);
    }
    return NULL;
}

char *het_read_file_folder_name(const char *folder)
{
    char *path = realpath(folder, NULL), *name = NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash && slash[1])
        name = xstrdup(slash + 1);
    free(path);
    return name;
}

int het_read_file_layer_times(const char *path, json_t **ret, struct het_error *err)
{
    struct names names = { 0 };
    int result = list_folder(path, is_json_name, &names, err);
    if (!result && !names.count)
        result = het_fail(err, HET_BAD_INPUT,
                          "%.300s: no file here is called <TYPE>.json", path);
    if (!result)
        result = read_folder(path, &names, strlen(".json"), ret, err);
    names_fini(&names);
    return result;
}

/* ---- curves ---- */

int het_read_file_network(const char *path, json_t **ret, struct het_error *err)
{
    if (!is_folder(path))
        return het_read_file(path, ret, err);
    struct names names = { 0 };
    json_t *files = NULL;
    int result = list_folder(path, is_json_name, &names, err);
    if (!result && !names.count)
        result =
            het_fail(err, HET_BAD_INPUT, "%.300s: no file here is called *.json", path);
    if (!result)
        result = read_folder(path, &names, 0, &files, err);
    if (!result) {
        *ret = json_array();
        for (size_t i = 0; i < names.count; i++)
            json_array_append(*ret, json_object_get(files, names.names[i]));
    }
    json_decref(files);
    names_fini(&names);
    return result;
}

/* `name` beside the file `path`, unless it is absolute. */
static char *path_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (*name == '/' || !slash)
        return xstrdup(name);
    return xasprintf("%.*s/%s", (int)(slash - path), path, name);
}

int het_read_file_settings(const char *path, json_t **ret, struct het_error *err)
{
    json_auto_t *settings = NULL;
    if (het_read_file(path, &settings, err) < 0)
        return -1;
    const char *name = json_string_value(json_object_get(settings, "network"));
    json_t *network;
    if (name) {
        auto_free char *file = path_beside(path, name);
        if (het_read_file_network(file, &network, err) < 0)
            return het_wrap(err, "%.300s: network", path);
        json_object_set_new(settings, "network", network);
    }
    *ret = TAKE(settings);
    return 0;
}
