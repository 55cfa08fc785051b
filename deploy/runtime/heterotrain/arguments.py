"""The command line of a training program, and what is made from it."""

import argparse
import os

import torch

from . import config as model_config
from . import data as samples
from . import plan as plans
from .optimizer import Settings

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_OF_PRECISION = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def parser(description):
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = options.add_argument
    add("--model", required=True, metavar="FILE", help="config.json of the model")
    add(
        "--steps",
        type=int,
        required=True,
        help="steps in all, those of earlier runs among them",
    )
    add(
        "--sequence-length",
        type=int,
        help="tokens of a sample, if the plan does not say; default: all positions",
    )
    add("--data", default="synthetic", help="'synthetic', or a file of tokens")
    add("--seed", type=int, default=0, help="of first weights and order of samples")
    add("--dtype", choices=DTYPES, help="of the weights; default: the plan's precision")
    add("--learning-rate", type=float, default=3e-4)
    add("--warmup-steps", type=int, default=0, help="in which the rate rises to that")
    add("--weight-decay", type=float, default=0.0, help="of matrices, as AdamW has it")
    add("--clip-gradient", type=float, default=0.0, help="largest norm; 0: any")
    add(
        "--checkpoint-dir",
        default=os.environ.get("CHECKPOINT_DIR"),
        metavar="DIR",
        help="storage that all pods see; default: CHECKPOINT_DIR of the environment",
    )
    add(
        "--checkpoint-every",
        type=int,
        default=0,
        metavar="N",
        help="steps; 0: when asked",
    )
    add(
        "--keep-checkpoints",
        type=int,
        default=2,
        metavar="N",
        help="newest ones that stay",
    )
    add("--report", metavar="FILE", help="a line of JSON is added for each step")
    return options


def read_plan():
    """The plan of HETPLAN_FILE."""
    path = os.environ.get("HETPLAN_FILE")
    if not path:
        raise plans.PlanError("HETPLAN_FILE: is not set")
    return plans.load(path)


def read_model(options, plan):
    config = model_config.load(options.model)
    if config.layer_count != plan.layer_count:
        raise plans.PlanError(
            f"layerCount: is {plan.layer_count}, the model has {config.layer_count}: embedding,"
            f" {config.block_count} blocks, head"
        )
    for index, stage, replica in plan.replicas():
        try:
            config.check_tensor_parallel(replica.tp)
        except model_config.ConfigError as error:
            path = f"pipelines[{index.pipeline}].stages[{index.stage}].replicas[{index.replica}]"
            raise plans.PlanError(f"{path}.gpus: {error}") from None
    config.check_sequence_length(sequence_length(options, config, plan))
    return config


def sequence_length(options, config, plan):
    """Tokens of a sample: those that the plan was made for, as its times and memory are
    those of that length. Raises PlanError if another length is asked for."""
    planned, wanted = plan.sequence_length, options.sequence_length
    if planned is None:
        return wanted or config.position_count
    if wanted not in (None, planned):
        raise plans.PlanError(
            f"--sequence-length: is {wanted}, but the plan was made for {planned}; leave it"
            " out, or set spec.training.sequenceLength of the job"
        )
    return planned


def dtype(options, plan):
    return DTYPES[options.dtype or _OF_PRECISION[plan.precision]]


def settings(options, plan):
    return Settings(
        kind=plan.optimizer,
        learning_rate=options.learning_rate,
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        clip_norm=options.clip_gradient,
    )


def open_data(options, config, plan):
    length = sequence_length(options, config, plan)
    return samples.open_data(options.data, config.vocabulary_size, length, options.seed)
