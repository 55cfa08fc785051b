/* Each allocation of each public function fails in turn: out_of_memory PART=FILE... JOB.
 * Linked with --wrap for the allocators, so that the library's copies of jansson and
 * libyaml are held to it as well. After each failure the status says so, nothing is left
 * allocated, and the same planner answers the same call as before, byte for byte. Prints
 * how many allocations of each function have failed. */
#include <hetplan.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long allocated; /* and not freed */
static long until_failure;
static bool fails, has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

/* Whether this one fails: one, and all behind it that the call still makes. */
static bool is_out(void)
{
    if (!fails)
        return false;
    if (until_failure)
        until_failure--;
    else
        has_failed = true;
    return has_failed;
}

static void *counted(void *memory)
{
    allocated += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return is_out() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_out() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (is_out())
        return NULL;
    void *memory = __real_realloc(old, size);
    allocated += memory && !old;
    return memory;
}

char *__wrap_strdup(const char *text)
{
    return is_out() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *memory)
{
    allocated -= memory != NULL;
    __real_free(memory);
}

static char *plan;

static const char *ask_plan(struct het_planner *planner)
{
    return het_planner_plan(planner, HET_FORM_JSON);
}
static const char *ask_table(struct het_planner *planner)
{
    return het_planner_plan(planner, HET_FORM_TEXT);
}
static const char *ask_cost(struct het_planner *planner)
{
    return het_planner_cost(planner, plan, HET_FORM_TEXT);
}
static const char *ask_check(struct het_planner *planner)
{
    return het_planner_check(planner, plan, HET_FORM_JSON);
}
static const char *ask_explanation(struct het_planner *planner)
{
    return het_planner_explain(planner, plan, 0, HET_FORM_JSON);
}
static const char *ask_migration(struct het_planner *planner)
{
    return het_planner_diff(planner, plan, plan, HET_FORM_TEXT);
}
static const char *ask_timeline(struct het_planner *planner)
{
    return het_planner_simulate(planner, plan, HET_FORM_SVG);
}
static const char *ask_rendering(struct het_planner *planner)
{
    return het_planner_render(planner, plan, "torchrun", "job: opt", HET_FORM_TEXT);
}
static const char *set_part(struct het_planner *planner)
{
    return het_planner_set(planner, "network", NULL) == HET_STATUS_DONE &&
                   het_planner_set(planner, "unused", "[]") == HET_STATUS_DONE
               ? "set"
               : NULL;
}

static const struct {
    const char *name;
    const char *(*ask)(struct het_planner *planner);
} calls[] = {
    { "het_planner_set", set_part },          { "het_planner_plan", ask_plan },
    { "het_planner_plan, table", ask_table }, { "het_planner_cost", ask_cost },
    { "het_planner_check", ask_check },       { "het_planner_explain", ask_explanation },
    { "het_planner_diff", ask_migration },    { "het_planner_simulate", ask_timeline },
    { "het_planner_render", ask_rendering },
};

static void demand(bool holds, const char *name, long at, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s, allocation %ld: %s\n", name, at, what);
    exit(1);
}

static void set_parts(struct het_planner *planner, int argc, char **argv)
{
    static char text[1 << 22];
    for (int i = 1; i < argc; i++) {
        char *path = strchr(argv[i], '='), part[32] = "job";
        if (!path) {
            het_planner_set(planner, part, argv[i]);
            continue;
        }
        snprintf(part, sizeof part, "%.*s", (int)(path - argv[i]), argv[i]);
        FILE *file = fopen(path + 1, "r");
        demand(file != NULL, part, 0, "no such file");
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        het_planner_set(planner, part, text);
    }
}

int main(int argc, char **argv)
{
    fails = true;
    demand(!het_planner_new(), "het_planner_new", 0, "is made of nothing");
    fails = false;
    struct het_planner *planner = het_planner_new();
    set_parts(planner, argc, argv);
    const char *first = ask_plan(planner);
    demand(first != NULL, "het_planner_plan", 0, het_planner_message(planner));
    plan = strdup(first);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *name = calls[i].name, *answer = calls[i].ask(planner);
        demand(answer != NULL, name, 0, het_planner_message(planner));
        char *expected = strdup(answer);
        long at = 0;
        for (;; at++) {
            const long before = allocated;
            until_failure = at;
            has_failed = false;
            fails = true;
            answer = calls[i].ask(planner);
            fails = false;
            if (!has_failed)
                break;
            demand(!answer, name, at, "an answer without memory");
            demand(het_planner_status(planner) == HET_STATUS_OUT_OF_MEMORY &&
                       !strcmp(het_planner_message(planner), "out of memory"),
                   name, at, het_planner_message(planner));
            demand(allocated == before, name, at, "something is left allocated");
        }
        demand(answer && !strcmp(answer, expected), name, at,
               "another answer than before");
        printf("%s: %ld allocations failed\n", name, at);
        free(expected);
    }
    het_planner_free(planner);
    free(plan);
    demand(!allocated, "het_planner_free", 0, "something is left allocated");
    return 0;
}
