/* A program outside the tree: plan PART=FILE... [TEXT of "job"] prints the plan, or why
 * there is none. It is C and C++. */
#include <hetplan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path)
{
    size_t length = 0, capacity = 1 << 20;
    char *text = (char *)malloc(capacity);
    FILE *file = fopen(path, "r");
    if (!file || !text)
        exit(99);
    while ((length += fread(text + length, 1, capacity - length - 1, file)) + 1 ==
           capacity)
        text = (char *)realloc(text, capacity *= 2);
    text[length] = '\0';
    fclose(file);
    return text;
}

static void count(void *context, const struct het_progress *progress)
{
    int *calls = (int *)context;
    *calls += progress->bound_s > 0;
}

int main(int argc, char **argv)
{
    struct het_planner *planner = het_planner_new();
    int calls = 0;
    if (!planner || strcmp(het_version(), HET_VERSION) != 0)
        return 98;
    for (int i = 1; i < argc; i++) {
        char *part = argv[i], *path = strchr(part, '=');
        if (!path) {
            het_planner_set(planner, "job", part);
            continue;
        }
        *path++ = '\0';
        char *text = read_file(path);
        het_planner_set(planner, part, text);
        free(text);
    }
    het_planner_on_progress(planner, count, &calls);
    const char *plan = het_planner_plan(planner, HET_FORM_JSON);
    enum het_status status = het_planner_status(planner);
    if (plan)
        puts(plan);
    else
        fprintf(stderr, "%s (%s)\n", het_planner_message(planner),
                het_planner_path(planner));
    if (plan && (!calls || !het_planner_check(planner, plan, HET_FORM_JSON)))
        return 97;
    het_planner_free(planner);
    return (int)status;
}
