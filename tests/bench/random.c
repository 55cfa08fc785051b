/* `optimal` against every other algorithm on random problems, all with the same effort,
 * all priced by the same simulation: it may not be worse than any.
 *
 *     bench-random [PROBLEMS [EFFORT [FIRST_SEED]]]
 *
 * Looks at PROBLEMS problems of each size of random_problem.h, and prints those on which
 * another algorithm was better, with their seed and by how much; then a table. Exits with
 * 1 if there were any. */
#include "planner/algo/exhaustive.h"
#include "planner/run/run_all.h"
#include "tests/planner/random_problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PROBLEMS 1000u
#define DEFAULT_EFFORT   50000u
#define MAX_ALGORITHMS   32u
#define TIE              1e-9
#define OURS             "optimal"

/* How `optimal` stands against one algorithm. */
struct tally {
    uint32_t planned, better, equal, worse;
    double ratio_sum;   /* of T_optimal / T over those with a plan of both */
    double ratio_worst; /* the largest */
};

static double iteration_s(const struct het_problem *problem, const char *algorithm,
                          uint64_t effort)
{
    struct het_arena *arena = het_arena_new();
    const struct het_search_options options = { .algorithm = algorithm,
                                                .effort = effort };
    const struct het_plan *plan = NULL;
    struct het_error err = { 0 };
    double result = HUGE_VAL;
    if (het_search_run(arena, problem, &options, &plan, NULL, &err) == 0)
        result = plan->predicted.iteration_s;
    het_arena_free(arena);
    return result;
}

static bool is_compared(const struct het_algorithm *algorithm)
{
    return !algorithm->needs_from && algorithm != &het_algo_exhaustive &&
           strcmp(algorithm->name, OURS) != 0;
}

static void compare(const char *size, uint64_t seed, const char *name, double ours_s,
                    double other_s, struct tally *tally)
{
    if (isinf(other_s))
        return;
    double ratio = ours_s / other_s;
    tally->planned++;
    tally->better += ratio < 1 - TIE;
    tally->equal += fabs(ratio - 1) <= TIE;
    if (!isinf(ours_s))
        tally->ratio_sum += ratio;
    tally->ratio_worst = fmax(tally->ratio_worst, ratio);
    if (ratio > 1 + TIE) {
        tally->worse++;
        printf("%s problem, seed %" PRIu64 ": %s %.9g s, " OURS " %.9g s (%+.3f %%)\n",
               size, seed, name, other_s, ours_s, (ratio - 1) * 100);
    }
}

static void look_at(const char *size, uint64_t seed, const struct het_problem *problem,
                    uint64_t effort, struct tally *tallies)
{
    double ours_s = iteration_s(problem, OURS, effort);
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a;
         a++, tallies++)
        if (is_compared(*a))
            compare(size, seed, (*a)->name, ours_s,
                    iteration_s(problem, (*a)->name, effort), tallies);
}

static uint32_t print_table(const struct tally *tallies)
{
    uint32_t worse = 0;
    printf("\n| `" OURS "` against | plans | better | equal | worse | T / its T, mean | "
           "most |\n|---|---|---|---|---|---|---|\n");
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a;
         a++, tallies++) {
        if (!is_compared(*a))
            continue;
        uint32_t count = tallies->planned ? tallies->planned : 1;
        printf("| `%s` | %u | %u | %u | %u | %.4f | %.4f |\n", (*a)->name,
               tallies->planned, tallies->better, tallies->equal, tallies->worse,
               tallies->ratio_sum / count, tallies->ratio_worst);
        worse += tallies->worse;
    }
    return worse;
}

int main(int argc, char **argv)
{
    uint64_t problems = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT_PROBLEMS;
    uint64_t effort = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_EFFORT;
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    struct tally tallies[MAX_ALGORITHMS] = { 0 };
    for (uint64_t seed = first; seed < first + problems; seed++) {
        struct het_arena *arena = het_arena_new();
        look_at("large", seed, random_problem(arena, seed), effort, tallies);
        look_at("small", seed, random_small_problem(arena, seed), effort, tallies);
        het_arena_free(arena);
        fflush(stdout);
    }
    uint32_t worse = print_table(tallies);
    printf("\n%" PRIu64 " problems, effort %" PRIu64 ": " OURS " was worse %u times\n",
           2 * problems, effort, worse);
    return worse > 0;
}
