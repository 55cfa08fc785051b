#include "planner/algo/autohet/pipeline_grouping.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Groups that are strong enough, at most: beyond, the target is given up as unproved. */
#define MAX_PATTERNS 65536u
#define MEMO_SLOTS   (1u << 16)

struct pattern {
    double excess; /* its G over the target */
    uint32_t counts[HET_MAX_TYPES];
};

struct solver {
    const struct het_pipeline_grouping_question *question;
    size_t type_count;
    uint32_t totals[HET_MAX_TYPES]; /* members; */
    uint32_t member_count;
    uint64_t radix[HET_MAX_TYPES]; /* of counts as one number; 0: it would overflow */
    uint64_t nodes, work;
    bool is_spent;

    /* One target. */
    uint32_t group_count, size_limit;
    double microbatches, target;
    double worth[HET_MAX_TYPES]; /* g - z / K */
    bool is_free[HET_MAX_TYPES]; /* never harms a group */
    struct pattern *patterns;
    size_t pattern_count, pattern_capacity;
    double least_worth, least_memory; /* of any pattern */
    uint32_t least_size;
    uint64_t *memo;   /* [MEMO_SLOTS]: what came to nothing, plus 1 */
    uint32_t *chosen; /* [group]: patterns */
};

static double power_of(const struct solver *solver, const uint32_t *counts)
{
    return het_pipeline_grouping_power(solver->question, counts, solver->microbatches);
}

double het_pipeline_grouping_power(const struct het_pipeline_grouping_question *question,
                                   const uint32_t *counts, double microbatches)
{
    double power = 0, members = 0;
    for (size_t t = 0; t < question->type_count; t++) {
        power += counts[t] * question->types[t].power;
        members += counts[t];
    }
    return members > 0 ? power * (microbatches / (microbatches + members - 1)) : 0;
}

static double memory_of(const struct solver *solver, const uint32_t *counts)
{
    double memory = 0;
    for (size_t t = 0; t < solver->type_count; t++)
        memory += counts[t] * solver->question->types[t].memory;
    return memory;
}

static uint32_t size_of(const struct solver *solver, const uint32_t *counts)
{
    uint32_t size = 0;
    for (size_t t = 0; t < solver->type_count; t++)
        size += counts[t];
    return size;
}

static bool spend(struct solver *solver)
{
    uint64_t limit = solver->question->work_limit;
    solver->work++;
    if (limit && solver->work >= limit)
        solver->is_spent = true;
    return !solver->is_spent;
}

/* ---- groups that are strong enough ---- */

static bool is_enough(const struct solver *solver, const uint32_t *counts)
{
    return power_of(solver, counts) >= solver->target &&
           memory_of(solver, counts) >= solver->question->least_memory;
}

/* Whether it would be enough without one of the members that can join any group. */
static bool is_minimal(const struct solver *solver, uint32_t *counts)
{
    for (size_t t = 0; t < solver->type_count; t++) {
        if (!counts[t] || !solver->is_free[t])
            continue;
        counts[t]--;
        bool enough = is_enough(solver, counts);
        counts[t]++;
        if (enough)
            return false;
    }
    return true;
}

static void add_pattern(struct solver *solver, uint32_t *counts)
{
    uint32_t size = size_of(solver, counts);
    if (!spend(solver) || !size || !is_enough(solver, counts) ||
        (solver->question->is_even && size != solver->size_limit) ||
        !is_minimal(solver, counts))
        return;
    if (solver->pattern_count == MAX_PATTERNS) {
        solver->is_spent = true;
        return;
    }
    ARRAY_RESERVE(solver->patterns, &solver->pattern_capacity, solver->pattern_count + 1);
    struct pattern *pattern = &solver->patterns[solver->pattern_count++];
    *pattern = (struct pattern){ 0 };
    memcpy(pattern->counts, counts, solver->type_count * sizeof *counts);
    double worth = 0, memory = memory_of(solver, counts);
    for (size_t t = 0; t < solver->type_count; t++)
        worth += counts[t] * solver->worth[t];
    pattern->excess = power_of(solver, counts) / solver->target;
    solver->least_worth = fmin(solver->least_worth, worth);
    solver->least_memory = fmin(solver->least_memory, memory);
    if (size < solver->least_size)
        solver->least_size = size;
}

static bool are_free(const struct solver *solver, size_t first)
{
    for (size_t t = first; t < solver->type_count; t++)
        if (!solver->is_free[t])
            return false;
    return true;
}

/* All counts of types `t` and after, `room` members at most. A free type need not go on
 * once the group is enough, unless others behind it must be made up for. */
static void list_patterns(struct solver *solver, uint32_t *counts, size_t t,
                          uint32_t room)
{
    if (t == solver->type_count) {
        add_pattern(solver, counts);
        return;
    }
    for (uint32_t n = 0; n <= solver->totals[t] && n <= room && !solver->is_spent; n++) {
        counts[t] = n;
        list_patterns(solver, counts, t + 1, room - n);
        if (!are_free(solver, t))
            continue;
        memset(counts + t + 1, 0, (solver->type_count - t - 1) * sizeof *counts);
        if (is_enough(solver, counts))
            break;
    }
    counts[t] = 0;
}

static int compare_patterns(const void *left, const void *right)
{
    const struct pattern *a = left, *b = right;
    if (a->excess != b->excess)
        return a->excess < b->excess ? -1 : 1;
    for (size_t t = 0; t < HET_MAX_TYPES; t++)
        if (a->counts[t] != b->counts[t])
            return a->counts[t] > b->counts[t] ? -1 : 1;
    return 0;
}

/* ---- groups one after another ---- */

static uint64_t key_of(const struct solver *solver, const uint32_t *left, uint32_t groups)
{
    uint64_t key = groups;
    for (size_t t = 0; t < solver->type_count; t++)
        key += left[t] * solver->radix[t];
    return key + 1;
}

static uint64_t *memo_slot(struct solver *solver, uint64_t key)
{
    return &solver->memo[(key * 0x9e3779b97f4a7c15u) >> 48];
}

/* Whether `left` may be enough for so many groups. */
static bool may_do(const struct solver *solver, const uint32_t *left, uint32_t groups)
{
    double worth = 0, memory = 0, scale = 0;
    for (size_t t = 0; t < solver->type_count; t++) {
        worth += left[t] * solver->worth[t];
        memory += left[t] * solver->question->types[t].memory;
        scale += left[t] * solver->question->types[t].power;
    }
    double slack = HET_PIPELINE_GROUPING_TOLERANCE * scale;
    return worth >= groups * solver->least_worth - slack &&
           memory >=
               groups * solver->least_memory * (1 - HET_PIPELINE_GROUPING_TOLERANCE) &&
           size_of(solver, left) >= (uint64_t)groups * solver->least_size;
}

static bool may_stop(const struct solver *solver, const uint32_t *left)
{
    for (size_t t = 0; t < solver->type_count; t++)
        if (left[t] && !solver->is_free[t])
            return false;
    return true;
}

static bool takes(struct solver *solver, const struct pattern *pattern, uint32_t *left)
{
    for (size_t t = 0; t < solver->type_count; t++)
        if (pattern->counts[t] > left[t])
            return false;
    for (size_t t = 0; t < solver->type_count; t++)
        left[t] -= pattern->counts[t];
    return true;
}

static bool choose(struct solver *solver, uint32_t *left, uint32_t groups);

/* The next group has a member of type `t`, the first that is left; or none has, and those
 * left of it join any group. */
static bool choose_group(struct solver *solver, uint32_t *left, uint32_t groups, size_t t)
{
    for (uint32_t i = 0; i < solver->pattern_count && !solver->is_spent; i++) {
        const struct pattern *pattern = &solver->patterns[i];
        if (!pattern->counts[t] || !spend(solver) || !takes(solver, pattern, left))
            continue;
        solver->chosen[groups - 1] = i;
        if (choose(solver, left, groups - 1))
            return true;
        for (size_t u = 0; u < solver->type_count; u++)
            left[u] += pattern->counts[u];
    }
    if (!solver->is_free[t])
        return false;
    uint32_t kept = left[t];
    left[t] = 0;
    bool found = choose(solver, left, groups);
    left[t] = kept;
    return found;
}

/* True leaves the patterns in `chosen`. */
static bool choose(struct solver *solver, uint32_t *left, uint32_t groups)
{
    solver->nodes++;
    if (!groups)
        return may_stop(solver, left);
    size_t t = 0;
    while (t < solver->type_count && !left[t])
        t++;
    if (t == solver->type_count || !may_do(solver, left, groups))
        return false;
    uint64_t key = key_of(solver, left, groups), *slot = memo_slot(solver, key);
    if (solver->radix[0] && *slot == key)
        return false;
    if (choose_group(solver, left, groups, t))
        return true;
    if (!solver->is_spent)
        *slot = key;
    return false;
}

/* ---- a target ---- */

static void set_target(struct solver *solver, double target)
{
    solver->target = target;
    solver->pattern_count = 0;
    solver->least_worth = solver->least_memory = HUGE_VAL;
    solver->least_size = UINT32_MAX;
    memset(solver->memo, 0, MEMO_SLOTS * sizeof *solver->memo);
    double burden = target / solver->microbatches;
    for (size_t t = 0; t < solver->type_count; t++) {
        const struct het_pipeline_grouping_type *type = &solver->question->types[t];
        solver->worth[t] = type->power - burden;
        solver->is_free[t] = !solver->question->is_even && type->memory >= 0 &&
                             solver->worth[t] >
                                 HET_PIPELINE_GROUPING_TOLERANCE * type->power;
    }
}

/* What is left over joins the weakest groups that have room. */
static void join(const struct solver *solver, uint32_t *members, uint32_t *left)
{
    for (size_t t = 0; t < solver->type_count; t++)
        for (; left[t]; left[t]--) {
            uint32_t *weakest = NULL;
            for (uint32_t j = 0; j < solver->group_count; j++) {
                uint32_t *group = members + j * solver->type_count;
                if (size_of(solver, group) < solver->size_limit &&
                    (!weakest || power_of(solver, group) < power_of(solver, weakest)))
                    weakest = group;
            }
            assert(weakest); /* set_group_count: all groups together have room for all */
            weakest[t]++;
        }
}

/* Groups that all reach `target`, into `members`; their least G into `ret_power`. */
static bool reach(struct solver *solver, double target, uint32_t *members,
                  double *ret_power)
{
    uint32_t counts[HET_MAX_TYPES] = { 0 }, left[HET_MAX_TYPES];
    set_target(solver, target);
    list_patterns(solver, counts, 0, solver->size_limit);
    if (solver->is_spent || !solver->pattern_count)
        return false;
    qsort(solver->patterns, solver->pattern_count, sizeof *solver->patterns,
          compare_patterns);
    memcpy(left, solver->totals, sizeof left);
    if (!choose(solver, left, solver->group_count))
        return false;
    memcpy(left, solver->totals, sizeof left);
    for (uint32_t j = 0; j < solver->group_count; j++) {
        const struct pattern *pattern = &solver->patterns[solver->chosen[j]];
        memcpy(members + j * solver->type_count, pattern->counts,
               solver->type_count * sizeof *members);
        takes(solver, pattern, left);
    }
    join(solver, members, left);
    *ret_power = HUGE_VAL;
    for (uint32_t j = 0; j < solver->group_count; j++)
        *ret_power = fmin(*ret_power, power_of(solver, members + j * solver->type_count));
    return true;
}

/* ---- numbers of groups ---- */

/* z that no D groups exceed: the sum over the groups of what each must have. */
static double power_bound(const struct solver *solver, uint32_t group_count)
{
    double microbatches = solver->question->microbatches[group_count], power = 0;
    for (size_t t = 0; t < solver->type_count; t++)
        power += solver->totals[t] * solver->question->types[t].power;
    return power * microbatches /
           (group_count * (microbatches - 1) + solver->member_count);
}

/* False: so many groups cannot be, whatever their power. */
static bool set_group_count(struct solver *solver, uint32_t group_count)
{
    const struct het_pipeline_grouping_question *question = solver->question;
    uint32_t limit = question->size_limit ? question->size_limit : solver->member_count;
    double memory = memory_of(solver, solver->totals);
    if (question->microbatches[group_count] <= 0 || group_count > solver->member_count ||
        (uint64_t)group_count * limit < solver->member_count ||
        memory <
            group_count * question->least_memory * (1 - HET_PIPELINE_GROUPING_TOLERANCE))
        return false;
    solver->group_count = group_count;
    solver->microbatches = question->microbatches[group_count];
    solver->size_limit = limit;
    if (!question->is_even)
        return true;
    solver->size_limit = solver->member_count / group_count;
    return solver->member_count % group_count == 0;
}

struct candidate {
    uint32_t group_count;
    double bound; /* D z */
};

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->bound != b->bound)
        return a->bound > b->bound ? -1 : 1;
    return a->group_count > b->group_count ? -1 : 1;
}

/* Raises z for the present number of groups from `worth` on; true if it was reached. */
static bool improve(struct solver *solver, double worth, double *bound, uint32_t *members,
                    uint32_t *trial, double *ret_power)
{
    size_t bytes = (size_t)solver->group_count * solver->type_count * sizeof *members;
    double power = 0, target = worth;
    bool found = false;
    while (!solver->is_spent &&
           target <= *bound * (1 + HET_PIPELINE_GROUPING_TOLERANCE)) {
        if (reach(solver, target, trial, &power)) {
            memcpy(members, trial, bytes);
            *ret_power = power;
            found = true;
        } else if (!solver->is_spent)
            *bound = fmin(*bound, target);
        if (!found)
            break;
        double next = *ret_power * (1 + HET_PIPELINE_GROUPING_TOLERANCE);
        double middle = (*ret_power + *bound) / 2;
        target = *bound > *ret_power * 1.002 ? middle : next;
        if (next >= *bound)
            break;
    }
    return found;
}

static void solver_init(struct solver *solver,
                        const struct het_pipeline_grouping_question *question,
                        struct het_arena *arena)
{
    *solver = (struct solver){ .question = question, .type_count = question->type_count };
    uint64_t size = (uint64_t)question->most_groups + 1;
    bool overflows = false;
    for (size_t t = question->type_count; t-- > 0;) {
        solver->totals[t] = question->types[t].count;
        solver->member_count += question->types[t].count;
        solver->radix[t] = size;
        overflows |= size > UINT64_MAX / ((uint64_t)solver->totals[t] + 1) / 2;
        size *= (uint64_t)solver->totals[t] + 1;
    }
    if (overflows)
        memset(solver->radix, 0, sizeof solver->radix);
    solver->memo = HET_ARENA_ARRAY(arena, uint64_t, MEMO_SLOTS);
    solver->chosen = HET_ARENA_ARRAY(arena, uint32_t, (size_t)question->most_groups + 1);
}

/* Numbers of groups by their bounds, the largest first. */
static size_t list_candidates(struct solver *solver, struct candidate *candidates)
{
    size_t count = 0;
    for (uint32_t d = 1; d <= solver->question->most_groups; d++)
        if (set_group_count(solver, d))
            candidates[count++] = (struct candidate){ d, d * power_bound(solver, d) };
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    return count;
}

bool het_pipeline_grouping_find(struct het_arena *arena,
                                const struct het_pipeline_grouping_question *question,
                                struct het_pipeline_grouping *ret)
{
    struct solver solver;
    solver_init(&solver, question, arena);
    size_t cells = (size_t)question->most_groups * question->type_count + 1;
    struct candidate *candidates =
        HET_ARENA_ARRAY(arena, struct candidate, (size_t)question->most_groups + 1);
    uint32_t *best = HET_ARENA_ARRAY(arena, uint32_t, cells);
    uint32_t *members = HET_ARENA_ARRAY(arena, uint32_t, cells);
    uint32_t *trial = HET_ARENA_ARRAY(arena, uint32_t, cells);
    size_t count = list_candidates(&solver, candidates);
    bool is_proved = true;
    *ret = (struct het_pipeline_grouping){ .members = best };
    for (size_t i = 0; i < count; i++) {
        uint32_t d = candidates[i].group_count;
        double power = 0, bound = candidates[i].bound / d;
        double tie = d > ret->group_count ? 1 - HET_PIPELINE_GROUPING_TOLERANCE
                                          : 1 + HET_PIPELINE_GROUPING_TOLERANCE;
        double worth = fmax(ret->objective * tie / d, bound * 1e-12);
        if (worth > bound * (1 + HET_PIPELINE_GROUPING_TOLERANCE))
            continue;
        set_group_count(&solver, d);
        solver.is_spent = question->work_limit && solver.work >= question->work_limit;
        if (improve(&solver, worth, &bound, members, trial, &power)) {
            memcpy(best, members, (size_t)d * question->type_count * sizeof *best);
            ret->objective = d * power;
            ret->group_count = d;
        }
        is_proved &= !solver.is_spent;
        if (solver.is_spent)
            ret->bound = fmax(ret->bound, d * bound);
    }
    ret->bound = fmax(ret->bound, ret->objective);
    ret->is_proved = is_proved;
    ret->nodes = solver.nodes;
    ret->work = solver.work;
    xfree(solver.patterns);
    return ret->group_count > 0;
}
