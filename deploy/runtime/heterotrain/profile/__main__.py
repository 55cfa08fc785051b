"""Measures a model on the GPUs of this machine, and makes a ModelProfile of what was measured:

    python3 -m heterotrain.profile measure --model config.json --sequence-length 2048
    python3 -m heterotrain.profile merge --name llama-8b LOG... > llama-8b-profile.yaml

docs/training.md, "Profiles", goes through it. `merge` needs no torch.
"""
import argparse
import json
import os
import sys

from heterotrain.profile import document, result
from heterotrain.profile.degrees import Failed, Task
from heterotrain.profile.rounds import Rule


def _add_measure(commands) -> None:
    """What the operator's profiling pods get as environment is the default."""
    measure = commands.add_parser(
        "measure", help="measure a model on the GPUs of this machine"
    )
    environment = os.environ.get

    def add(option, what, **more):
        if more.get("default") is not None:
            what += f" (default {more['default']})".replace("%", "%%")
        measure.add_argument(option, help=what, **more)

    add(
        "--model",
        "config.json of the model; else its text in HETPROFILE_MODEL",
        metavar="FILE",
    )
    add("--name", "spec.model.name; else what the config calls itself", metavar="NAME")
    add(
        "--sequence-length",
        "tokens of a sample",
        type=int,
        metavar="TOKENS",
        default=environment("HETPROFILE_SEQUENCE_LENGTH"),
    )
    add(
        "--precision",
        "of weights and activations",
        choices=("FP32", "BF16", "FP16"),
        default=environment("HETPROFILE_PRECISION", "BF16"),
    )
    add(
        "--optimizer",
        "whose step is timed",
        choices=("Adam", "AdamW", "SGD"),
        default=environment("HETPROFILE_OPTIMIZER", "Adam"),
    )
    add(
        "--gpu-type",
        "what the operator calls the GPU, as in a job's status.allocation",
        metavar="TYPE",
        default=environment("HETPROFILE_GPU_TYPE", environment("HETPLAN_GPU_TYPE")),
    )
    add(
        "--largest-tensor-parallel",
        "else all GPUs of this machine",
        type=int,
        metavar="N",
        default=environment("HETPROFILE_TENSOR_PARALLEL"),
    )
    add(
        "--largest-micro-batch",
        "sizes are powers of two up to this",
        type=int,
        metavar="N",
        default=environment("HETPROFILE_MICRO_BATCH", "64"),
    )
    add(
        "--device",
        "where it is measured",
        choices=("cpu", "cuda"),
        default=environment("HETPROFILE_DEVICE", "cuda"),
    )
    add(
        "--memory-mib",
        "with --device cpu: where micro-batches end, as memory does on a GPU",
        type=int,
        metavar="MIB",
        default=environment("HETPROFILE_MEMORY_MIB"),
    )
    add(
        "--iterations",
        "of a round, which takes the median",
        type=int,
        metavar="N",
        default=10,
    )
    add("--rounds", "that must agree", type=int, metavar="N", default=Rule.rounds)
    add(
        "--most-rounds",
        "without that many agreeing it fails",
        type=int,
        metavar="N",
        default=Rule.most_rounds,
    )
    add(
        "--spread-percent",
        "by which rounds that agree differ",
        type=float,
        metavar="PERCENT",
        default=environment("HETPROFILE_SPREAD_PERCENT", 100 * Rule.share),
    )
    add(
        "--result",
        "gets the compact result, if the file is there",
        metavar="FILE",
        default=environment("HETPROFILE_RESULT", "/dev/termination-log"),
    )
    measure.set_defaults(run=_measure)


def _add_merge(commands) -> None:
    merge = commands.add_parser(
        "merge",
        help="make a ModelProfile of results, or add them to one",
        description="Reads logs or termination messages of profiling Jobs and writes a "
        "ModelProfile with one entry for each GPU type.",
    )
    add = merge.add_argument
    add(
        "results",
        nargs="+",
        metavar="FILE",
        help="a log or termination message; - : standard input",
    )
    add(
        "--into",
        metavar="FILE",
        help="a ModelProfile that gets the results' GPU types (JSON or YAML)",
    )
    add("--name", help="of a new ModelProfile")
    add("--namespace", help="of a new ModelProfile")
    add("--cluster", action="store_true", help="a new ClusterModelProfile")
    add("--json", action="store_true", help="write JSON, not YAML")
    merge.set_defaults(run=_merge)


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python3 -m heterotrain.profile",
        description="Measured profiles of models (ModelProfile).",
    )
    commands = parser.add_subparsers(required=True, metavar="measure|merge")
    _add_measure(commands)
    _add_merge(commands)
    return parser.parse_args(arguments)


# ---- measure ----


def _read_config(options) -> dict:
    text = (
        os.environ.get("HETPROFILE_MODEL") if not options.model else _read(options.model)
    )
    if not text:
        raise Failed("--model or HETPROFILE_MODEL must say what is measured")
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise Failed(f"{options.model or 'HETPROFILE_MODEL'}: {error}") from error
    if not isinstance(config, dict):
        raise Failed("the model's config is not an object")
    return config


def _default_name(config: dict) -> str:
    path = str(config.get("_name_or_path") or config.get("model_type") or "model")
    return path.rstrip("/").split("/")[-1]


def _find(options) -> result.Result:
    from heterotrain.profile import measure  # torch, from here on

    config = _read_config(options)
    if not options.gpu_type:
        raise Failed("--gpu-type must say what the operator calls the GPU")
    if not options.sequence_length:
        raise Failed("--sequence-length must say how many tokens a sample has")
    rule = Rule(options.rounds, options.most_rounds, options.spread_percent / 100)
    task = Task(
        config,
        options.sequence_length,
        options.precision,
        options.optimizer,
        options.device,
        options.largest_micro_batch,
        options.iterations,
        rule,
        options.memory_mib,
    )
    return measure.measure(
        task,
        options.name or _default_name(config),
        options.gpu_type,
        options.largest_tensor_parallel,
    )


def _write_result(path: str, line: str) -> None:
    """Into the file that the kubelet has put there; none is made where there is none."""
    if os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(line)


def _measure(options) -> int:
    """The last line of standard output is the whole result, or why there is none."""
    status = 0
    try:
        found = _find(options)
        whole, compact = result.encode(found), result.encode_compact(found)
    except (Failed, ValueError, OSError) as error:
        whole = compact = result.encode_failure(options.gpu_type or "", str(error))
        status = 1
    _write_result(options.result, compact)
    print(whole, flush=True)
    return status


# ---- merge ----


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def _merged(options) -> dict:
    found = [one for path in options.results for one in result.find_results(_read(path))]
    if options.into:
        profile = document.read(_read(options.into))
    elif options.name:
        kind = "ClusterModelProfile" if options.cluster else "ModelProfile"
        profile = document.make(found.pop(0), options.name, options.namespace, kind)
    else:
        raise ValueError(
            "give --name for a new ModelProfile, or --into for one that is there"
        )
    for one in found:
        profile = document.merge(profile, one)
    return profile


def _merge(options) -> int:
    try:
        profile = _merged(options)
    except (ValueError, OSError) as error:
        print(f"heterotrain.profile: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(
        json.dumps(profile, indent=2) + "\n"
        if options.json
        else document.to_yaml(profile)
    )
    return 0


if __name__ == "__main__":
    options = _parse(sys.argv[1:])
    sys.exit(options.run(options))
