#include "planner/algo/optimal/shape_neighbour.h"

#include <string.h>

/* A cell node by node; one stage may be on `width` nodes side by side. */
struct stage {
    uint32_t gpu_count, tp;
};
struct node {
    uint32_t class, stage_count, width;
    struct stage stages[HET_PIPELINE_SHAPE_MAX_STAGES];
};
struct nodes {
    uint32_t count;
    uint32_t gpus; /* 0: whole nodes */
    struct node list[HET_PIPELINE_SHAPE_MAX_STAGES];
};

static bool read_nodes(const struct het_pipeline_shape *cell, struct nodes *ret)
{
    *ret = (struct nodes){ .gpus = cell->gpus };
    const struct het_pipeline_shape_part *before = NULL;
    for (uint32_t s = 0; s < cell->stage_count; s++) {
        const struct het_pipeline_shape_part *part = &cell->stages[s].parts[0];
        if (cell->stages[s].part_count != 1)
            return false;
        if (!before || before->class != part->class ||
            before->first_node != part->first_node)
            ret->count++;
        before = part;
        struct node *node = &ret->list[ret->count - 1];
        node->class = part->class;
        node->width = part->node_count;
        node->stages[node->stage_count++] = (struct stage){ part->gpu_count, part->tp };
    }
    return true;
}

static bool write_cell(const struct nodes *nodes, struct het_pipeline_shape *ret)
{
    *ret = (struct het_pipeline_shape){ .gpus = nodes->gpus };
    if (nodes->gpus)
        ret->gpu_class = nodes->list[0].class;
    for (uint32_t n = 0; n < nodes->count; n++) {
        const struct node *node = &nodes->list[n];
        uint32_t gpu = 0;
        for (uint32_t s = 0; s < node->stage_count; s++) {
            if (ret->stage_count == HET_PIPELINE_SHAPE_MAX_STAGES)
                return false;
            ret->stages[ret->stage_count++] = (struct het_pipeline_shape_stage){
                .parts = { { .class = node->class,
                             .first_node = nodes->gpus ? 0 : ret->nodes[node->class],
                             .node_count = node->width,
                             .first_gpu = gpu,
                             .gpu_count = node->stages[s].gpu_count,
                             .tp = node->stages[s].tp } },
                .part_count = 1,
            };
            gpu += node->stages[s].gpu_count;
        }
        ret->nodes[node->class] += nodes->gpus ? 0 : node->width;
    }
    return ret->stage_count;
}

struct walk {
    struct het_shape_catalog *catalog;
    uint64_t effort; /* of the catalogue, when it ends */
};

static void add(struct walk *walk, const struct nodes *nodes)
{
    struct het_pipeline_shape cell;
    const struct het_node_classes *inventory = walk->catalog->market.inventory;
    if (walk->catalog->spent >= walk->effort || !write_cell(nodes, &cell))
        return;
    for (uint32_t c = 0; c < inventory->class_count; c++)
        if (cell.nodes[c] > inventory->classes[c].node_count)
            return;
    het_shape_catalog_add(walk->catalog, &cell);
}

static void change_stages(struct walk *walk, const struct nodes *now, uint32_t n)
{
    const struct node *node = &now->list[n];
    for (uint32_t s = 0; s < node->stage_count; s++) {
        struct nodes nodes = *now;
        struct node *to = &nodes.list[n];
        struct stage *stage = &to->stages[s];
        if (stage->gpu_count % (2 * stage->tp) == 0) {
            stage->tp *= 2;
            add(walk, &nodes);
            stage->tp /= 2;
        }
        if (stage->tp % 2 == 0) {
            stage->tp /= 2;
            add(walk, &nodes);
            stage->tp *= 2;
        }
        if (stage->gpu_count % 2 == 0 && to->width == 1 &&
            to->stage_count < HET_PIPELINE_SHAPE_MAX_STAGES) {
            stage->gpu_count /= 2;
            if (stage->tp > stage->gpu_count)
                stage->tp = stage->gpu_count;
            memmove(stage + 1, stage, (to->stage_count - s) * sizeof *stage);
            to->stage_count++;
            add(walk, &nodes);
            nodes = *now;
        }
        if (s + 1 == node->stage_count)
            continue;
        stage->gpu_count += stage[1].gpu_count;
        memmove(stage + 1, stage + 2, (to->stage_count - s - 2) * sizeof *stage);
        to->stage_count--;
        if (stage->gpu_count % stage->tp == 0)
            add(walk, &nodes);
        stage->tp = stage->gpu_count;
        add(walk, &nodes);
    }
}

/* A stage more, on one or two nodes of any class, before all others or behind them. */
static void add_stage(struct walk *walk, const struct nodes *now, bool is_last)
{
    const struct het_node_classes *inventory = walk->catalog->market.inventory;
    if (now->count == HET_PIPELINE_SHAPE_MAX_STAGES)
        return;
    for (uint32_t c = 0; c < inventory->class_count; c++)
        for (uint32_t width = 1; width <= 2; width++)
            for (uint32_t tp = 1; tp <= inventory->classes[c].gpu_count; tp *= 2) {
                struct nodes nodes = *now;
                uint32_t at = is_last ? now->count : 0;
                memmove(&nodes.list[at + 1], &nodes.list[at],
                        (now->count - at) * sizeof *nodes.list);
                nodes.count++;
                nodes.list[at] = (struct node){
                    .class = c,
                    .width = width,
                    .stage_count = 1,
                    .stages = { { inventory->classes[c].gpu_count / tp * tp, tp } },
                };
                add(walk, &nodes);
            }
}

static void change_node(struct walk *walk, const struct nodes *now, uint32_t n)
{
    const struct het_node_classes *inventory = walk->catalog->market.inventory;
    struct nodes nodes = *now;
    if (now->count < HET_PIPELINE_SHAPE_MAX_STAGES) {
        memmove(&nodes.list[n + 1], &nodes.list[n],
                (now->count - n) * sizeof *nodes.list);
        nodes.count++;
        add(walk, &nodes);
        nodes = *now;
    }
    if (now->count > 2) {
        memmove(&nodes.list[n], &nodes.list[n + 1],
                (now->count - n - 1) * sizeof *nodes.list);
        nodes.count--;
        add(walk, &nodes);
        nodes = *now;
    }
    for (uint32_t c = 0; c < inventory->class_count; c++) {
        if (c == now->list[n].class ||
            inventory->classes[c].gpu_count !=
                inventory->classes[now->list[n].class].gpu_count)
            continue;
        nodes.list[n].class = c;
        add(walk, &nodes);
        nodes = *now;
    }
    if (now->list[n].stage_count == 1) {
        nodes.list[n].width++;
        add(walk, &nodes);
        nodes = *now;
    }
    if (n + 1 < now->count && now->list[n].class != now->list[n + 1].class) {
        nodes.list[n] = now->list[n + 1];
        nodes.list[n + 1] = now->list[n];
        add(walk, &nodes);
    }
}

bool het_shape_neighbour_add(struct het_shape_catalog *catalog,
                             const struct het_pipeline_shape *cell, uint64_t effort)
{
    struct walk walk = { catalog, catalog->spent + effort };
    struct nodes nodes;
    if (!read_nodes(cell, &nodes))
        return true;
    for (int is_last = 0; is_last <= 1 && !nodes.gpus; is_last++)
        add_stage(&walk, &nodes, is_last);
    for (uint32_t n = 0; n < nodes.count; n++) {
        change_stages(&walk, &nodes, n);
        if (!nodes.gpus)
            change_node(&walk, &nodes, n);
    }
    return catalog->spent < walk.effort;
}
