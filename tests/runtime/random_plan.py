"""Random small plans of every shape that plan.json allows, from a seed."""

import random


def _split(generator, total, parts):
    """`total` as that many whole numbers of at least 1."""
    cuts = sorted(generator.sample(range(1, total), parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, total])]


def _stages(generator, gpus, layer_count, micro_batch_size, degrees):
    """Stages on exactly `gpus` GPUs, each a list of tensor-parallel degrees."""
    shapes = []
    while gpus:
        stage = []
        limit = generator.randint(1, gpus)
        while limit and len(stage) < micro_batch_size:
            tp = generator.choice([d for d in degrees if d <= limit])
            stage.append(tp)
            limit -= tp
            gpus -= tp
        shapes.append(stage)
    if len(shapes) > layer_count:
        return None
    return shapes


def random_pipeline(generator, gpus, layer_count, degrees):
    """(micro-batch size, micro-batches, stages) on exactly `gpus` GPUs."""
    while True:
        size = generator.randint(1, 4)
        shapes = _stages(generator, gpus, layer_count, size, degrees)
        if shapes:
            break
    layers = _split(generator, layer_count, len(shapes))
    stages, first = [], 0
    for degrees_of_stage, count in zip(shapes, layers):
        sizes = _split(generator, size, len(degrees_of_stage))
        stages.append(
            {
                "firstLayer": first,
                "layerCount": count,
                "recompute": generator.choice(["none", "none", "selective", "full"]),
                "replicas": [
                    {
                        "gpuType": generator.choice(["A", "B"]),
                        "microBatchSize": b,
                        "tp": tp,
                    }
                    for b, tp in zip(sizes, degrees_of_stage)
                ],
            }
        )
        first += count
    return {"microBatches": generator.randint(1, 5), "stages": stages}


def place(pipelines):
    """Puts replicas on nodes, several to a node where that comes so; `tp` becomes `gpus`."""
    used = {}
    for p, pipeline in enumerate(pipelines):
        for stage in pipeline["stages"]:
            for replica in stage["replicas"]:
                node = f"node-{replica['gpuType'].lower()}-{p % 2}"
                start = used.get(node, 0)
                used[node] = start + replica["tp"]
                replica["node"] = node
                replica["gpus"] = list(range(start, start + replica.pop("tp")))


def finish(pipelines, layer_count, optimizer="adam"):
    """The plan of these pipelines."""
    samples = sum(
        p["microBatches"] * sum(r["microBatchSize"] for r in p["stages"][0]["replicas"])
        for p in pipelines
    )
    return {
        "apiVersion": "heterotrain.io/v1alpha1",
        "kind": "Plan",
        "algorithm": "random",
        "globalBatchSize": samples,
        "layerCount": layer_count,
        "schedule": "1F1B",
        "precision": "fp32",
        "optimizer": optimizer,
        "pipelines": pipelines,
        "idle": [],
    }


def random_plan(seed, layer_count, world_size, degrees=(1, 2, 3, 4), optimizer="adam"):
    """A plan on `world_size` GPUs."""
    generator = random.Random(seed)
    count = generator.randint(1, min(3, world_size))
    pipelines = [
        random_pipeline(generator, gpus, layer_count, degrees)
        for gpus in _split(generator, world_size, count)
    ]
    place(pipelines)
    return finish(pipelines, layer_count, optimizer)


def _micro_batches(sizes, samples):
    """How many micro-batches of each size come to that many samples; None: there are no
    such numbers."""
    if len(sizes) == 1:
        return [samples // sizes[0]] if samples > 0 and samples % sizes[0] == 0 else None
    for count in range(1, samples // sizes[0] + 1):
        rest = _micro_batches(sizes[1:], samples - count * sizes[0])
        if rest:
            return [count, *rest]
    return None


def random_plan_of_batch(seed, batch, *arguments):
    """The first random_plan from `seed` on that can have that global batch."""
    while True:
        plan = random_plan(seed, *arguments)
        pipelines = plan["pipelines"]
        sizes = [
            sum(r["microBatchSize"] for r in p["stages"][0]["replicas"])
            for p in pipelines
        ]
        counts = _micro_batches(sizes, batch)
        if counts:
            for pipeline, count in zip(pipelines, counts):
                pipeline["microBatches"] = count
            return {**plan, "globalBatchSize": batch}
        seed += 1
