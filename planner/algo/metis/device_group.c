#include "planner/algo/metis/device_group.h"

#include <stdlib.h>
#include <string.h>

static bool is_power_of_two(uint32_t number)
{
    return number && !(number & (number - 1));
}

/* Marks the multiples of `step` up to `limit`, and `limit` itself. */
static void mark_multiples(bool *is_size, uint32_t step, uint32_t limit)
{
    for (uint32_t size = step; size <= limit; size += step)
        is_size[size] = true;
    is_size[limit] = true;
}

struct het_device_group_sizes het_device_group_sizes_of(struct het_arena *arena,
                                                        const struct het_cluster *cluster,
                                                        bool any_size)
{
    uint32_t total = het_cluster_gpu_count(cluster);
    auto_free bool *is_size = xcalloc((size_t)total + 1, sizeof *is_size);
    for (uint32_t size = 1; size <= total; size++)
        is_size[size] = any_size || is_power_of_two(size);
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        uint32_t type_total = het_cluster_type_gpu_count(cluster, node->type);
        if (node->gpu_count && !is_power_of_two(total))
            mark_multiples(is_size, node->gpu_count, total);
        if (node->gpu_count && !is_power_of_two(type_total))
            mark_multiples(is_size, node->gpu_count, type_total);
    }
    uint32_t *sizes = HET_ARENA_ARRAY(arena, uint32_t, (size_t)total + 1);
    struct het_device_group_sizes found = { .sizes = sizes };
    for (uint32_t size = 1; size <= total; size++)
        if (is_size[size])
            sizes[found.count++] = size;
    return found;
}

/* ---- lists ---- */

/* An entry of a list on its way to be permuted: one group, or several that were fused. */
struct entry {
    uint32_t total;
    uint32_t first, count; /* in lister.fused */
};

struct lister {
    const struct het_device_group_question *question;
    het_device_group_visit visit;
    void *context;
    bool found;
    uint32_t steps_left;
    uint32_t *rising;      /* [group_count]: the list without order */
    uint32_t *fused;       /* [group_count]: the same sizes, those fused side by side */
    uint32_t *spread;      /* [group_count]: scratch, and a permutation written out */
    struct entry *entries; /* [group_count] */
};

/* Rising by total, then by content, so that equal entries are neighbours. */
static int compare_entries(const struct lister *lister, const struct entry *a,
                           const struct entry *b)
{
    if (a->total != b->total)
        return a->total < b->total ? -1 : 1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t left = lister->fused[a->first + i];
        uint32_t right = lister->fused[b->first + i];
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

/* Insertion sort: lists are short and almost sorted. */
static void sort_entries(struct lister *lister, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct entry entry = lister->entries[i];
        uint32_t at = i;
        for (; at && compare_entries(lister, &lister->entries[at - 1], &entry) > 0; at--)
            lister->entries[at] = lister->entries[at - 1];
        lister->entries[at] = entry;
    }
}

/* Joins the two smallest entries: their sizes are put side by side at the end of
 * `fused`'s order, the rest moves up. */
static void fuse_smallest(struct lister *lister, uint32_t count)
{
    uint32_t *spread = lister->spread, at = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct entry *entry = &lister->entries[(i + 2) % count];
        memcpy(spread + at, lister->fused + entry->first, entry->count * sizeof *spread);
        entry->first = at;
        at += entry->count;
    }
    memcpy(lister->fused, spread, at * sizeof *spread);
    lister->entries[1] = (struct entry){
        .total = lister->entries[0].total + lister->entries[1].total,
        .first = lister->entries[0].first,
        .count = lister->entries[0].count + lister->entries[1].count,
    };
    memmove(lister->entries, lister->entries + 1, (count - 1) * sizeof *lister->entries);
}

/* The next permutation in lexicographic order; false after the last. */
static bool permute_next(struct lister *lister, uint32_t count)
{
    struct entry *entries = lister->entries;
    uint32_t pivot = count - 1;
    while (pivot && compare_entries(lister, &entries[pivot - 1], &entries[pivot]) >= 0)
        pivot--;
    if (!pivot)
        return false;
    uint32_t swap = count - 1;
    while (compare_entries(lister, &entries[pivot - 1], &entries[swap]) >= 0)
        swap--;
    struct entry kept = entries[pivot - 1];
    entries[pivot - 1] = entries[swap];
    entries[swap] = kept;
    for (uint32_t low = pivot, high = count - 1; low < high; low++, high--) {
        kept = entries[low];
        entries[low] = entries[high];
        entries[high] = kept;
    }
    return true;
}

static bool visit_permutations(struct lister *lister)
{
    uint32_t count = lister->question->group_count;
    for (uint32_t i = 0; i < count; i++) {
        lister->fused[i] = lister->rising[i];
        lister->entries[i] = (struct entry){ lister->rising[i], i, 1 };
    }
    for (; count > lister->question->permute; count--) {
        fuse_smallest(lister, count);
        sort_entries(lister, count - 1);
    }
    do {
        uint32_t at = 0;
        for (uint32_t i = 0; i < count; i++) {
            const struct entry *entry = &lister->entries[i];
            memcpy(lister->spread + at, lister->fused + entry->first,
                   entry->count * sizeof *lister->spread);
            at += entry->count;
        }
        if (!lister->visit(lister->context, lister->spread,
                           lister->question->group_count))
            return false;
    } while (permute_next(lister, count));
    return true;
}

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static bool has_size(const struct het_device_group_sizes *sizes, uint32_t size)
{
    return bsearch(&size, sizes->sizes, sizes->count, sizeof size, compare_numbers);
}

/* Fills rising[at...] with sizes from `from` (index) on that sum to `rest`. Larger first
 * entries come first: the most even list has the largest smallest group. */
static bool extend_list(struct lister *lister, uint32_t at, size_t from, uint32_t rest)
{
    const struct het_device_group_sizes *sizes = &lister->question->sizes;
    uint32_t left = lister->question->group_count - at;
    if (left == 1) {
        if (!has_size(sizes, rest))
            return true;
        lister->rising[at] = rest;
        lister->found = true;
        return visit_permutations(lister);
    }
    size_t end = from;
    while (end < sizes->count && (uint64_t)sizes->sizes[end] * left <= rest)
        end++;
    for (size_t i = end; i-- > from;) {
        if ((uint64_t)sizes->sizes[sizes->count - 1] * (left - 1) + sizes->sizes[i] <
                rest ||
            !lister->steps_left)
            break;
        lister->steps_left--;
        lister->rising[at] = sizes->sizes[i];
        if (!extend_list(lister, at + 1, i, rest - sizes->sizes[i]))
            return false;
    }
    return true;
}

static bool visit_even_split(struct lister *lister)
{
    uint32_t groups = lister->question->group_count;
    uint32_t larger = lister->question->gpu_count % groups;
    for (uint32_t i = 0; i < groups; i++)
        lister->rising[i] = lister->question->gpu_count / groups +
                            (i >= groups - larger ? 1 : 0);
    return visit_permutations(lister);
}

bool het_device_group_lists(const struct het_device_group_question *question,
                            het_device_group_visit visit, void *context)
{
    uint32_t groups = question->group_count;
    if (!groups || groups > question->gpu_count)
        return true;
    auto_free uint32_t *rising = xcalloc(groups, sizeof *rising);
    auto_free uint32_t *fused = xcalloc(groups, sizeof *fused);
    auto_free uint32_t *spread = xcalloc(groups, sizeof *spread);
    auto_free struct entry *entries = xcalloc(groups, sizeof *entries);
    struct lister lister = { .question = question,
                             .visit = visit,
                             .context = context,
                             .steps_left = HET_DEVICE_GROUP_MAX_STEPS,
                             .rising = rising,
                             .fused = fused,
                             .spread = spread,
                             .entries = entries };

    double smallest = question->variance * question->gpu_count / groups;
    size_t from = 0;
    while (from < question->sizes.count && question->sizes.sizes[from] < smallest)
        from++;
    if (!extend_list(&lister, 0, from, question->gpu_count))
        return false;
    return lister.found || visit_even_split(&lister);
}

/* ---- rows ---- */

/* The next permutation of `order` in lexicographic order; false after the last. */
static bool permute_types(uint32_t *order, size_t count)
{
    size_t pivot = count - 1;
    while (pivot && order[pivot - 1] > order[pivot])
        pivot--;
    if (!pivot)
        return false;
    size_t swap = count - 1;
    while (order[pivot - 1] > order[swap])
        swap--;
    uint32_t kept = order[pivot - 1];
    order[pivot - 1] = order[swap];
    order[swap] = kept;
    for (size_t low = pivot, high = count - 1; low < high; low++, high--) {
        kept = order[low];
        order[low] = order[high];
        order[high] = kept;
    }
    return true;
}

size_t het_device_group_type_orders(struct het_arena *arena,
                                    const struct het_cluster *cluster,
                                    const uint32_t **ret_orders, size_t *ret_type_count)
{
    auto_free uint32_t *order = xcalloc(cluster->type_count, sizeof *order);
    size_t types = 0, found = 0;
    for (uint32_t type = 0; type < cluster->type_count; type++)
        if (het_cluster_type_gpu_count(cluster, type))
            order[types++] = type;
    uint32_t *orders =
        HET_ARENA_ARRAY(arena, uint32_t, HET_DEVICE_GROUP_MAX_ORDERS * types);
    *ret_orders = orders;
    *ret_type_count = types;
    if (!types)
        return 0;
    do {
        memcpy(orders + found * types, order, types * sizeof *order);
        found++;
    } while (found < HET_DEVICE_GROUP_MAX_ORDERS && permute_types(order, types));
    return found;
}

static int compare_slots(const void *left, const void *right)
{
    const struct het_device_group_slot *a = left, *b = right;
    if (a->gpu_count != b->gpu_count)
        return a->gpu_count > b->gpu_count ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

struct het_device_group_row het_device_group_row_of(struct het_arena *arena,
                                                    const struct het_cluster *cluster,
                                                    const uint32_t *types,
                                                    size_t type_count)
{
    struct het_device_group_slot *slots =
        HET_ARENA_ARRAY(arena, struct het_device_group_slot, cluster->node_count);
    struct het_device_group_row row = { .slots = slots };
    for (size_t t = 0; t < type_count; t++) {
        size_t first = row.slot_count;
        for (uint32_t n = 0; n < cluster->node_count; n++) {
            const struct het_node *node = &cluster->nodes[n];
            if (node->type != types[t] || !node->gpu_count)
                continue;
            slots[row.slot_count++] =
                (struct het_device_group_slot){ n, node->type, 0, node->gpu_count };
            row.gpu_count += node->gpu_count;
        }
        qsort(slots + first, row.slot_count - first, sizeof *slots, compare_slots);
    }
    return row;
}

struct het_device_group_row het_device_group_row_mixed(struct het_arena *arena,
                                                       const struct het_cluster *cluster,
                                                       const uint32_t *types,
                                                       size_t type_count)
{
    struct het_device_group_row apart =
        het_device_group_row_of(arena, cluster, types, type_count);
    struct het_device_group_slot *slots =
        HET_ARENA_ARRAY(arena, struct het_device_group_slot, apart.slot_count);
    auto_free size_t *first = xcalloc(type_count + 1, sizeof *first);
    auto_free size_t *used = xcalloc(type_count, sizeof *used);
    for (size_t t = 0, at = 0; t < type_count; t++) {
        while (at < apart.slot_count && apart.slots[at].type == types[t])
            at++;
        first[t + 1] = at;
    }
    for (size_t i = 0; i < apart.slot_count; i++) {
        size_t next = type_count;
        for (size_t t = 0; t < type_count; t++) {
            size_t count = first[t + 1] - first[t];
            if (used[t] < count &&
                (next == type_count ||
                 used[t] * (first[next + 1] - first[next]) < used[next] * count))
                next = t;
        }
        slots[i] = apart.slots[first[next] + used[next]++];
    }
    return (struct het_device_group_row){ slots, apart.slot_count, apart.gpu_count };
}

size_t het_device_group_cut(const struct het_device_group_row *row, uint32_t start,
                            uint32_t count, struct het_device_group_slot *ret_slots)
{
    size_t found = 0;
    uint32_t at = 0;
    for (size_t s = 0; s < row->slot_count && count; s++) {
        struct het_device_group_slot slot = row->slots[s];
        at += slot.gpu_count;
        if (at <= start)
            continue;
        uint32_t available = at - start;
        slot.first_gpu += slot.gpu_count - available;
        slot.gpu_count = available < count ? available : count;
        start += slot.gpu_count;
        count -= slot.gpu_count;
        ret_slots[found++] = slot;
    }
    return found;
}
