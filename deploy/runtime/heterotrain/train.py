"""Trains a transformer as the operator's plan says: one process a GPU, started by
`torchrun -m heterotrain.train ARGUMENTS` in every pod. docs/training.md has the arguments.

The environment has the plan (HETPLAN_*) and the rank (torchrun's). Exit status 0: all
steps are done; 143: stopped by SIGTERM, after a checkpoint; 2: a wrong input, named; 75: a
rank fell silent, which is named.
"""

import argparse
import json
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from . import arguments, checkpoint, plan as plans
from .config import ConfigError
from .data import DataError
from .emulate import EmulationError, speed_of
from .engine import Engine, Options
from .hook import CheckpointHook, HookError
from .safetensors import FormatError
from .watchdog import Watchdog



class RendezvousError(ValueError):
    """The ranks do not find each other; names address and port."""


WRONG_INPUT = (
    plans.PlanError,
    RendezvousError,
    HookError,
    ConfigError,
    DataError,
    EmulationError,
    checkpoint.CheckpointError,
    FormatError,
    FileNotFoundError,
)
STOPPED = 128 + signal.SIGTERM
# A rank whose peers were told to go waits to be told too; the operator deletes all pods.
WAIT_FOR_SIGNAL_S = 600


class StopSignal:
    """SIGTERM, noticed between steps."""

    def __init__(self):
        self.received = False
        signal.signal(signal.SIGTERM, self._notice)

    def _notice(self, *_):
        self.received = True

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while not self.received and time.monotonic() < end:
            time.sleep(0.05)


class Report:
    """What rank 0 says about each step: on standard output, and in a file."""

    def __init__(self, rank, path, samples):
        self.rank, self.samples = rank, samples
        self.file = open(path, "a", encoding="utf-8") if path and rank == 0 else None

    def log(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def step(self, number, result, seconds):
        self.log(
            f"step={number} loss={result.loss:.6f} seconds={seconds:.4f}"
            f" samplesPerSecond={self.samples / seconds:.2f}"
            + (" overflowed=true" if result.overflowed else "")
        )
        if self.file:
            line = {"step": number, "loss": result.loss, "seconds": seconds}
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()


class Training:
    """The loop of one rank: steps, checkpoints, and when to stop."""

    def __init__(self, options, engine, report, hook, stop):
        self.options, self.engine, self.report = options, engine, report
        self.hook, self.stop = hook, stop
        self.step, self.samples = 0, 0

    def start(self):
        """From the newest checkpoint, else from random weights."""
        progress = None
        if self.options.checkpoint_dir:
            progress = checkpoint.load(
                self.options.checkpoint_dir, self._holding(), self.report.log
            )
        if progress is None:
            self.engine.initialise(self.options.seed)
            self.report.log("start=0")
            return
        self.step, self.samples = progress.step, progress.samples
        self.engine.loss_scale.restore(progress.loss_scale, progress.good_steps)
        self.report.log(f"start={self.step}")

    def run(self):
        """True if all steps are done; False if a checkpoint was asked for before."""
        while self.step < self.options.steps:
            begun = time.monotonic()
            result = self.engine.step(
                self.step + 1, self.samples, self._wants_checkpoint()
            )
            self.step += 1
            self.samples += self.engine.plan.global_batch_size
            self.report.step(self.step, result, time.monotonic() - begun)
            every = self.options.checkpoint_every
            done = self.step == self.options.steps
            if result.wanted or done or (every and self.step % every == 0):
                self._save()
            if result.wanted and not done:
                return False
        return True

    def _wants_checkpoint(self):
        return self.stop.received or (self.hook is not None and self.hook.is_wanted())

    def _save(self):
        if not self.options.checkpoint_dir:
            return
        begun = time.monotonic()
        scale = self.engine.loss_scale
        progress = checkpoint.Progress(
            self.step, self.samples, scale.value, scale.good_steps
        )
        labels = {
            "planHash": os.environ.get("HETPLAN_HASH", ""),
            "revision": os.environ.get("HETPLAN_REVISION", ""),
        }
        checkpoint.save(
            self.options.checkpoint_dir,
            self._holding(),
            progress,
            labels,
            self.options.keep_checkpoints,
        )
        self.report.log(f"checkpoint={self.step} seconds={time.monotonic() - begun:.3f}")

    def _holding(self):
        engine = self.engine
        return checkpoint.Holding(
            engine.plan,
            engine.config,
            engine.rank,
            engine.tp,
            engine.specs,
            engine.optimizer,
            engine.groups.control,
        )


def _device(options):
    wanted = options.device
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cpu":
        return torch.device("cpu"), "gloo"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    return device, "nccl"


def _parse():
    options = arguments.parser(__doc__.splitlines()[0])
    add = options.add_argument
    add("--hook-port", type=int, help="of rank 0, on which a checkpoint can be asked for")
    add("--hook-path", default="/checkpoint", help="the path that is posted to")
    add("--emulate", metavar="FILE", help="seconds of each layer by GPU type, slept for")
    add(
        "--device",
        choices=("auto", "cuda", "cpu"),
        default="auto",
        help="auto: GPU if there",
    )
    add(
        "--silence-limit",
        type=_seconds,
        default=60,
        metavar="S",
        help="seconds without a sign of life, after which a rank is given up",
    )
    add(
        "--timeout",
        type=_seconds,
        default=600,
        metavar="S",
        help="seconds that ranks wait for each other to start, and in a collective",
    )
    return options.parse_args()


def _seconds(text):
    seconds = float(text)
    if not 1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 86400 seconds")
    return seconds


def _make_engine(options, plan, config, device):
    rank = int(os.environ["RANK"])
    place = plan.place_of(rank)
    stage = plan.pipelines[place.pipeline].stages[place.stage]
    speed = speed_of(options.emulate, stage, stage.replicas[place.replica])
    return Engine(
        plan,
        config,
        arguments.settings(options, plan),
        Options(
            arguments.sequence_length(options, config, plan),
            arguments.dtype(options, plan),
            device,
            timedelta(seconds=options.timeout),
        ),
        arguments.open_data(options, config, plan),
        speed,
        rank,
    )


def _meet(options, plan, backend):
    """Finds the other ranks; returns the watchdog over them, started."""
    timeout = timedelta(seconds=options.timeout)
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    try:
        store, rank, world_size = next(rendezvous("env://", timeout=timeout))
        own = dist.TCPStore(
            address, int(port), None, False, timeout, wait_for_workers=False
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise RendezvousError(
            f"MASTER_ADDR, MASTER_PORT: {address}:{port}: {reason}"
        ) from None
    watchdog = Watchdog(
        own, rank, world_size, options.silence_limit, options.timeout, plan.describe
    ).start()
    # The watchdog, which can name who is missing, comes first.
    late = timeout + timedelta(seconds=2 * watchdog.interval_s + 10)
    store.set_timeout(late)
    dist.init_process_group(
        backend, store=store, rank=rank, world_size=world_size, timeout=late
    )
    dist.barrier()  # NCCL: all ranks make the communicator that sends between stages use
    return watchdog


def train(options):
    """The exit status."""
    plan = arguments.read_plan()
    plans.check_against_environment(plan, os.environ)
    config = arguments.read_model(options, plan)
    device, backend = _device(options)
    watchdog = _meet(options, plan, backend)
    try:
        return _run(options, plan, config, device)
    except RuntimeError:
        watchdog.wait_for_verdict()
        raise
    finally:
        watchdog.stop()


def _run(options, plan, config, device):
    rank = dist.get_rank()
    report = Report(rank, options.report, plan.global_batch_size)
    if config.dropout_fields:
        report.log(f"dropout is not applied: {', '.join(config.dropout_fields)}")
    engine = _make_engine(options, plan, config, device)
    hook = None
    if options.hook_port and rank == 0:
        hook = CheckpointHook(options.hook_port, path=options.hook_path)
    stop = StopSignal()
    training = Training(options, engine, report, hook, stop)
    training.start()
    done = training.run()
    if hook is not None:
        hook.acknowledge()
    if not done:
        # What is computed after the checkpoint would be lost.
        stop.wait(WAIT_FOR_SIGNAL_S)
        return STOPPED
    dist.barrier(group=engine.groups.control)
    dist.destroy_process_group()
    return 0


def main():
    try:
        sys.exit(train(_parse()))
    except WRONG_INPUT as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
