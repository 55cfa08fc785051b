#include "controller/base/workqueue.h"

#include "controller/base/digest.h"
#include "planner/modules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* client-go's ItemExponentialFailureRateLimiter, with 300 s instead of 1000 s as the cap.
 */
#define FIRST_BACKOFF_MS 5
#define LAST_BACKOFF_MS  300000
enum { FIRST_BUCKETS = 64, NOT_IN_HEAP = -1 };

struct tenant;

struct item {
    char *key;
    uint64_t hash;
    struct item *next_in_bucket;
    struct tenant *tenant;
    TAILQ_ENTRY(item) ready_link;
    enum { ITEM_IDLE, ITEM_READY, ITEM_DELAYED } state;
    bool is_worked_on;
    unsigned failure_count;
    int64_t due_ms;          /* with ITEM_DELAYED */
    uint64_t order;          /* among items due at the same time */
    double ready_s, taken_s; /* by the clock of the metrics */
    long heap_index;
};

/* A namespace with items. It is in the ring while one of them is ready. */
struct tenant {
    char *ns;
    struct tenant *next;
    size_t item_count;
    bool in_ring;
    TAILQ_HEAD(item_queue, item) ready;
    TAILQ_ENTRY(tenant) ring_link;
};

struct workqueue {
    struct item **buckets; /* by hash of the key; a power of two of them */
    size_t bucket_count, item_count, waiting_count;
    struct tenant *tenants;
    TAILQ_HEAD(tenant_ring, tenant) ring; /* the one whose turn it is comes first */
    struct item **heap;                   /* of delayed items, the earliest first */
    size_t heap_count, heap_capacity;
    uint64_t next_order;
    struct metrics *metrics; /* NULL: nothing is measured */
    const char *name;
    workqueue_load *load; /* NULL: all namespaces are alike */
    void *load_context;
};

struct workqueue *workqueue_new(void)
{
    struct workqueue *queue = xcalloc(1, sizeof *queue);
    queue->bucket_count = FIRST_BUCKETS;
    queue->buckets = xcalloc(queue->bucket_count, sizeof(struct item *));
    TAILQ_INIT(&queue->ring);
    return queue;
}

void workqueue_set_metrics(struct workqueue *queue, struct metrics *metrics,
                           const char *name)
{
    queue->metrics = metrics;
    queue->name = name;
}

void workqueue_set_load(struct workqueue *queue, workqueue_load *load, void *context)
{
    queue->load = load;
    queue->load_context = context;
}

static void item_free(struct item *item)
{
    free(item->key);
    free(item);
}

void workqueue_free(struct workqueue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->bucket_count; i++) {
        for (struct item *item = queue->buckets[i]; item;) {
            struct item *next = item->next_in_bucket;
            item_free(item);
            item = next;
        }
    }
    for (struct tenant *tenant = queue->tenants; tenant;) {
        struct tenant *next = tenant->next;
        free(tenant->ns);
        free(tenant);
        tenant = next;
    }
    free(queue->buckets);
    free(queue->heap);
    free(queue);
}

/* ---- items by key ---- */

static struct item **bucket_of(const struct workqueue *queue, uint64_t hash)
{
    return &queue->buckets[hash & (queue->bucket_count - 1)];
}

static struct item *find_item(const struct workqueue *queue, const char *key)
{
    uint64_t hash = digest_bytes(0, key, strlen(key));
    for (struct item *item = *bucket_of(queue, hash); item; item = item->next_in_bucket)
        if (item->hash == hash && !strcmp(item->key, key))
            return item;
    return NULL;
}

static void link_item(struct workqueue *queue, struct item *item)
{
    struct item **bucket = bucket_of(queue, item->hash);
    item->next_in_bucket = *bucket;
    *bucket = item;
}

static void double_buckets(struct workqueue *queue)
{
    struct item **old = queue->buckets;
    size_t old_count = queue->bucket_count;
    queue->bucket_count *= 2;
    queue->buckets = xcalloc(queue->bucket_count, sizeof(struct item *));
    for (size_t i = 0; i < old_count; i++) {
        for (struct item *item = old[i]; item;) {
            struct item *next = item->next_in_bucket;
            link_item(queue, item);
            item = next;
        }
    }
    free(old);
}

static struct tenant *get_tenant(struct workqueue *queue, const char *ns, size_t length)
{
    struct tenant *tenant = queue->tenants;
    while (tenant && (strncmp(tenant->ns, ns, length) != 0 || tenant->ns[length]))
        tenant = tenant->next;
    if (tenant)
        return tenant;
    tenant = xcalloc(1, sizeof *tenant);
    tenant->ns = xasprintf("%.*s", (int)length, ns);
    TAILQ_INIT(&tenant->ready);
    tenant->next = queue->tenants;
    queue->tenants = tenant;
    return tenant;
}

static void drop_tenant(struct workqueue *queue, struct tenant *tenant)
{
    struct tenant **link = &queue->tenants;
    while (*link != tenant)
        link = &(*link)->next;
    *link = tenant->next;
    if (tenant->in_ring)
        TAILQ_REMOVE(&queue->ring, tenant, ring_link);
    free(tenant->ns);
    free(tenant);
}

static struct item *get_item(struct workqueue *queue, const char *key)
{
    struct item *item = find_item(queue, key);
    if (item)
        return item;
    if (queue->item_count == queue->bucket_count)
        double_buckets(queue);
    item = xcalloc(1, sizeof *item);
    item->key = xstrdup(key);
    item->hash = digest_bytes(0, key, strlen(key));
    item->heap_index = NOT_IN_HEAP;
    item->tenant = get_tenant(queue, key, strcspn(key, "/"));
    item->tenant->item_count++;
    link_item(queue, item);
    queue->item_count++;
    return item;
}

/* Frees an item without anything to remember. */
static void drop_if_idle(struct workqueue *queue, struct item *item)
{
    if (item->state != ITEM_IDLE || item->is_worked_on || item->failure_count)
        return;
    struct item **link = bucket_of(queue, item->hash);
    while (*link != item)
        link = &(*link)->next_in_bucket;
    *link = item->next_in_bucket;
    queue->item_count--;
    if (!--item->tenant->item_count)
        drop_tenant(queue, item->tenant);
    item_free(item);
}

/* ---- delayed items ---- */

static bool is_earlier(const struct item *a, const struct item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void heap_set(struct workqueue *queue, size_t index, struct item *item)
{
    queue->heap[index] = item;
    item->heap_index = (long)index;
}

static void heap_sift_up(struct workqueue *queue, size_t index, struct item *item)
{
    while (index && is_earlier(item, queue->heap[(index - 1) / 2])) {
        heap_set(queue, index, queue->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    heap_set(queue, index, item);
}

static void heap_sift_down(struct workqueue *queue, size_t index, struct item *item)
{
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= queue->heap_count)
            break;
        if (child + 1 < queue->heap_count &&
            is_earlier(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!is_earlier(queue->heap[child], item))
            break;
        heap_set(queue, index, queue->heap[child]);
        index = child;
    }
    heap_set(queue, index, item);
}

static void heap_remove(struct workqueue *queue, struct item *item)
{
    assert(item->heap_index >= 0);
    size_t index = (size_t)item->heap_index;
    struct item *last = queue->heap[--queue->heap_count];
    item->heap_index = NOT_IN_HEAP;
    if (last == item)
        return;
    heap_sift_down(queue, index, last);
    heap_sift_up(queue, (size_t)last->heap_index, last);
}

/* ---- states ---- */

static void make_idle(struct workqueue *queue, struct item *item)
{
    switch (item->state) {
    case ITEM_IDLE:
        return;
    case ITEM_READY:
        TAILQ_REMOVE(&item->tenant->ready, item, ready_link);
        break;
    case ITEM_DELAYED:
        /* A key that is worked on waits for workqueue_done, outside the heap. */
        if (item->heap_index != NOT_IN_HEAP)
            heap_remove(queue, item);
        break;
    }
    item->state = ITEM_IDLE;
    queue->waiting_count--;
}

static void enter_ready_list(struct workqueue *queue, struct item *item)
{
    struct tenant *tenant = item->tenant;
    TAILQ_INSERT_TAIL(&tenant->ready, item, ready_link);
    if (!tenant->in_ring) {
        TAILQ_INSERT_TAIL(&queue->ring, tenant, ring_link);
        tenant->in_ring = true;
    }
}

static void make_ready(struct workqueue *queue, struct item *item)
{
    make_idle(queue, item);
    item->state = ITEM_READY;
    item->ready_s = metrics_now(queue->metrics);
    metrics_add(queue->metrics, METRIC_QUEUE_ADDS, 1, LABELS(queue->name));
    queue->waiting_count++;
    enter_ready_list(queue, item);
}

static void enter_heap(struct workqueue *queue, struct item *item)
{
    ARRAY_RESERVE(queue->heap, &queue->heap_capacity, queue->heap_count + 1);
    heap_sift_up(queue, queue->heap_count++, item);
}

static void make_delayed(struct workqueue *queue, struct item *item, int64_t due_ms)
{
    make_idle(queue, item);
    item->state = ITEM_DELAYED;
    item->due_ms = due_ms;
    item->order = queue->next_order++;
    queue->waiting_count++;
    if (!item->is_worked_on)
        enter_heap(queue, item);
}

void workqueue_add(struct workqueue *queue, const char *key)
{
    workqueue_add_at(queue, key, INT64_MIN);
}

void workqueue_add_at(struct workqueue *queue, const char *key, int64_t at_ms)
{
    struct item *item = get_item(queue, key);
    bool comes_earlier = item->state == ITEM_READY ||
                         (item->state == ITEM_DELAYED && item->due_ms <= at_ms);
    if (comes_earlier)
        return;
    if (at_ms == INT64_MIN && !item->is_worked_on)
        make_ready(queue, item);
    else
        make_delayed(queue, item, at_ms);
}

int64_t workqueue_add_failed(struct workqueue *queue, const char *key, int64_t now_ms)
{
    struct item *item = get_item(queue, key);
    int64_t backoff_ms = LAST_BACKOFF_MS;
    if (item->failure_count < 16 && FIRST_BACKOFF_MS << item->failure_count < backoff_ms)
        backoff_ms = FIRST_BACKOFF_MS << item->failure_count;
    item->failure_count++;
    metrics_add(queue->metrics, METRIC_QUEUE_RETRIES, 1, LABELS(queue->name));
    workqueue_add_at(queue, key, now_ms + backoff_ms);
    return backoff_ms;
}

void workqueue_forget(struct workqueue *queue, const char *key)
{
    struct item *item = find_item(queue, key);
    if (!item)
        return;
    item->failure_count = 0;
    drop_if_idle(queue, item);
}

void workqueue_remove(struct workqueue *queue, const char *key)
{
    struct item *item = find_item(queue, key);
    if (!item)
        return;
    make_idle(queue, item);
    item->failure_count = 0;
    drop_if_idle(queue, item);
}

static void leave_ring(struct workqueue *queue, struct tenant *tenant)
{
    TAILQ_REMOVE(&queue->ring, tenant, ring_link);
    tenant->in_ring = false;
}

/* The namespace whose turn it is, with ready keys; NULL: there is none. */
static struct tenant *next_tenant(struct workqueue *queue, int64_t now_ms)
{
    while (queue->heap_count && queue->heap[0]->due_ms <= now_ms)
        make_ready(queue, queue->heap[0]);
    struct tenant *best = NULL, *following;
    size_t least = SIZE_MAX;
    for (struct tenant *tenant = TAILQ_FIRST(&queue->ring); tenant; tenant = following) {
        following = TAILQ_NEXT(tenant, ring_link);
        if (TAILQ_EMPTY(&tenant->ready)) {
            leave_ring(queue, tenant);
            continue;
        }
        if (!queue->load)
            return tenant;
        size_t load = queue->load(queue->load_context, tenant->ns);
        if (load < least) {
            best = tenant;
            least = load;
        }
    }
    return best;
}

const char *workqueue_peek(struct workqueue *queue, int64_t now_ms)
{
    const struct tenant *tenant = next_tenant(queue, now_ms);
    return tenant ? TAILQ_FIRST(&tenant->ready)->key : NULL;
}

const char *workqueue_take(struct workqueue *queue, int64_t now_ms)
{
    struct tenant *tenant = next_tenant(queue, now_ms);
    if (!tenant)
        return NULL;
    struct item *item = TAILQ_FIRST(&tenant->ready);
    make_idle(queue, item);
    TAILQ_REMOVE(&queue->ring, tenant, ring_link);
    tenant->in_ring = !TAILQ_EMPTY(&tenant->ready);
    if (tenant->in_ring)
        TAILQ_INSERT_TAIL(&queue->ring, tenant, ring_link);
    item->is_worked_on = true;
    item->taken_s = metrics_now(queue->metrics);
    metrics_observe(queue->metrics, METRIC_QUEUE_WAIT_SECONDS,
                    item->taken_s - item->ready_s, LABELS(queue->name));
    return item->key;
}

void workqueue_done(struct workqueue *queue, const char *key)
{
    struct item *item = find_item(queue, key);
    assert(item);
    assert(item->is_worked_on);
    item->is_worked_on = false;
    metrics_observe(queue->metrics, METRIC_QUEUE_WORK_SECONDS,
                    metrics_now(queue->metrics) - item->taken_s, LABELS(queue->name));
    if (item->state == ITEM_IDLE)
        drop_if_idle(queue, item);
    else if (item->due_ms == INT64_MIN)
        make_ready(queue, item);
    else
        enter_heap(queue, item);
}

int64_t workqueue_next_ms(const struct workqueue *queue)
{
    const struct tenant *tenant;
    TAILQ_FOREACH(tenant, &queue->ring, ring_link)
    if (!TAILQ_EMPTY(&tenant->ready))
        return 0;
    return queue->heap_count ? queue->heap[0]->due_ms : INT64_MAX;
}

size_t workqueue_length(const struct workqueue *queue)
{
    return queue->waiting_count;
}

size_t workqueue_size(const struct workqueue *queue)
{
    return queue->item_count;
}
