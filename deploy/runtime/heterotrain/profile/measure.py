"""From the arguments of `measure` to a Result: every tensor-parallel degree that the model and
the machine allow, each up to the largest micro-batch or the end of memory.
"""
import dataclasses
import re
from typing import Iterator, List, Optional

from heterotrain import config as model_config
from heterotrain.profile.degrees import Degree, Failed, Task, measure_degree
from heterotrain.profile.result import MOST_DEGREE, MOST_MICROBATCH, Group, Result

GPU_TYPE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
# stateBytesPerParameter where a ModelProfile says nothing: fp32, 16 bits.
USUAL_STATE_BYTES = {"Adam": (16, 18), "AdamW": (16, 18), "SGD": (8, 10)}


def _degrees(config: model_config.ModelConfig, largest: int) -> Iterator[int]:
    """Powers of two over which the model can be split."""
    tp = 1
    while tp <= min(largest, MOST_DEGREE):
        try:
            config.check_tensor_parallel(tp)
        except model_config.ConfigError as error:
            print(f"{error}: no larger degree is measured", flush=True)
            return
        yield tp
        tp *= 2


def _spec_model(
    task: Task, name: str, config: model_config.ModelConfig, state_bytes: Optional[int]
) -> dict:
    model = {
        "name": name,
        "precision": task.precision,
        "optimizer": task.optimizer,
        "sequenceLength": task.sequence_length,
        "hiddenSize": config.hidden_size,
        "vocabSize": config.vocabulary_size,
        "embeddingWeights": "Shared" if config.tied_embedding else "Separate",
    }
    if state_bytes != USUAL_STATE_BYTES[task.optimizer][task.precision != "FP32"]:
        model["stateBytesPerParameter"] = state_bytes
    return model


def _united_groups(degrees: List[Degree]) -> tuple:
    """The same layers at every degree, each with the bytes of a rank of it."""
    united: List[Group] = list(degrees[0].groups)
    for degree in degrees[1:]:
        united = [
            dataclasses.replace(
                group, rank_bytes={**group.rank_bytes, **other.rank_bytes}
            )
            for group, other in zip(united, degree.groups)
        ]
    return tuple(united)


def _result(
    task: Task,
    name: str,
    gpu_type: str,
    config: model_config.ModelConfig,
    degrees: List[Degree],
) -> Result:
    measured = [degree for degree in degrees if degree.points]
    ran_out = tuple((d.tp, d.out_of_memory) for d in degrees if d.out_of_memory)
    if not measured:
        raise Failed(
            "there is not memory enough for one sample, at any tensor-parallel degree up "
            f"to {degrees[-1].tp}"
        )
    return Result(
        gpu_type,
        measured[0].memory_mib,
        _spec_model(task, name, config, measured[0].state_bytes),
        _united_groups(measured),
        {d.tp: d.optimizer_us for d in measured if d.optimizer_us is not None},
        tuple(point for degree in measured for point in degree.points),
        ran_out,
    )


def _largest_degree(device: str, asked: Optional[int]) -> int:
    """As asked for, but on GPUs at most one a rank, and all if nothing is asked for."""
    if device == "cpu":
        return asked or 1
    import torch  # takes seconds: what is refused is refused before

    gpus = torch.cuda.device_count()
    if not gpus:
        raise Failed("there is no GPU here; --device cpu measures the CPU")
    return min(asked or gpus, gpus)


def with_positions(config: dict, length: int) -> dict:
    """A config that does not say how long samples may be has room for these, unless it has a
    table of positions, whose size must be known. Raises ConfigError."""
    said = config.get("text_config") or config
    if model_config.from_dict(config).learned_positions or said is not config:
        return config
    if said.get("max_position_embeddings") or said.get("n_positions"):
        return config
    return {**config, "max_position_embeddings": length}


def measure(task: Task, name: str, gpu_type: str, largest_tp: Optional[int]) -> Result:
    """Raises Failed, and ConfigError where the model is none that can be built."""
    task = dataclasses.replace(
        task, config=with_positions(task.config, task.sequence_length)
    )
    config = model_config.from_dict(task.config)
    config.check_sequence_length(task.sequence_length)
    if not GPU_TYPE.fullmatch(gpu_type):
        raise Failed(
            f"GPU type {gpu_type!r}: must be letters, digits, '.', '_' and '-', at most 63"
        )
    if not 1 <= task.largest_microbatch <= MOST_MICROBATCH:
        raise Failed(
            f"largest micro-batch {task.largest_microbatch}: must be 1 to {MOST_MICROBATCH}"
        )
    largest_tp = _largest_degree(task.device, largest_tp)
    if config.dropout_fields:
        print(f"not applied: {', '.join(config.dropout_fields)}", flush=True)
    degrees = [measure_degree(task, tp) for tp in _degrees(config, largest_tp)]
    return _result(task, name, gpu_type, config, degrees)
