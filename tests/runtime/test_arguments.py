"""What `hetplan render` writes for Megatron-LM and FlagScale, read by their own parsers
(flagscale_package): every argument is known, every check passes, and what they make of it
is what the plan says. The plans are the golden ones, of every algorithm, that the runtime
can run."""

import contextlib
import glob
import importlib
import io
import json
import os
import subprocess
import sys
import unittest
import warnings
from unittest import mock

import torch

import flagscale_package

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HETPLAN = os.environ.get("HETPLAN") or os.path.join(ROOT, "build", "hetplan")
# What plans leave to the user's own script.
MODEL = ("--hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
         "--untie-embeddings-and-output-weights --lr 1e-4 --train-iters 5 --tokenizer-type NullTokenizer --vocab-size 1000").split()


def setUpModule():
    flagscale_package.load()


def arguments_module():
    module = importlib.import_module("megatron.training.arguments")
    # The two of their helpers that validate_args cannot do without: the GPU's generation,
    # and the form of checkpoints.
    module.get_device_arch_version = lambda: 9
    module.update_use_dist_ckpt = lambda args: setattr(args, "use_dist_ckpt", args.ckpt_format != "torch")
    return module


def layout_class():
    module = importlib.import_module("megatron.core.transformer.pipeline_parallel_layer_layout")
    return module.PipelineParallelLayerLayout


def renderings(runtime):
    """(name, plan, rendering) of each golden plan that the runtime can run."""
    paths = glob.glob(os.path.join(ROOT, "tests/golden/*/*/plan.json"))
    for path in sorted(paths + glob.glob(os.path.join(ROOT, "tests/golden/render/*/input.json"))):
        done = subprocess.run([HETPLAN, "render", "--runtime", runtime, "--output", "json", path],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            rendering = json.loads(done.stdout)
            if "pipelines" in rendering["plan"]:
                yield os.path.relpath(path, ROOT), rendering["plan"], rendering


def rank_pods(rendering):
    """The pod of each rank."""
    return [pod for pod in rendering["pods"] for _ in range(pod["gpus"])]


def replicas_of_ranks(plan, rendering):
    """{rank: (stage, replica)}; ranks are contiguous on a node, in the order of pods."""
    offsets, offset = {}, 0
    for pod in rendering["pods"]:
        offsets[pod["node"]] = offset
        offset += pod["gpus"]
    return {offsets[replica["node"]] + gpu: (s, replica)
            for pipeline in plan["pipelines"]
            for s, stage in enumerate(pipeline["stages"])
            for replica in stage["replicas"]
            for gpu in replica["gpus"]}


def blocks_of_stages(plan):
    """Transformer layers of each stage, without embedding and head."""
    return [len([layer for layer in range(stage["firstLayer"], stage["firstLayer"] + stage["layerCount"])
                 if 0 < layer < plan["layerCount"] - 1])
            for stage in plan["pipelines"][0]["stages"]]


def parse(argv, plan, rank, world):
    """What their program makes of the command line, before its checks."""
    words = [*argv, "--num-layers", str(plan["layerCount"] - 2), *MODEL]
    environment = {"RANK": str(rank), "WORLD_SIZE": str(world)}
    with mock.patch.object(sys, "argv", ["train.py", *words]), mock.patch.dict(os.environ, environment):
        return arguments_module().parse_args()


@contextlib.contextmanager
def as_rank(rank, device_types):
    """torch.distributed as rank `rank` sees it, which gathers every rank's device type."""
    def gather(ret, own):
        assert own == {"rank": rank, "device_type": device_types[rank]}
        ret[:] = [{"rank": r, "device_type": name} for r, name in enumerate(device_types)]

    with mock.patch.multiple(torch.distributed, is_initialized=lambda: True, get_rank=lambda: rank,
                             get_world_size=lambda: len(device_types), all_gather_object=gather):
        yield


class Quiet(unittest.TestCase):
    def setUp(self):
        contexts = contextlib.ExitStack()
        self.addCleanup(contexts.close)
        contexts.enter_context(contextlib.redirect_stdout(io.StringIO()))
        contexts.enter_context(warnings.catch_warnings())
        # Megatron-LM wants it on GPUs before Blackwell, with tensor parallelism.
        contexts.enter_context(mock.patch.dict(os.environ, {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}))
        warnings.simplefilter("ignore")


class Megatron(Quiet):
    def test_arguments_pass_its_parser_and_its_checks(self):
        seen = 0
        for name, plan, rendering in renderings("megatron"):
            with self.subTest(name):
                world = len(rank_pods(rendering))
                args = parse(rendering["pods"][0]["arguments"], plan, 0, world)
                arguments_module().validate_args(args)
                stage = plan["pipelines"][0]["stages"][0]
                replica = stage["replicas"][0]
                self.assertEqual(args.tensor_model_parallel_size, len(replica["gpus"]))
                self.assertEqual(args.pipeline_model_parallel_size, len(plan["pipelines"][0]["stages"]))
                self.assertEqual(args.data_parallel_size,
                                 sum(len(p["stages"][0]["replicas"]) for p in plan["pipelines"]))
                self.assertEqual(args.global_batch_size, plan["globalBatchSize"])
                self.assertEqual(args.micro_batch_size, replica["microBatchSize"])
                self.assertEqual(args.global_batch_size // (args.micro_batch_size * args.data_parallel_size),
                                 plan["pipelines"][0]["microBatches"])
                self.assertEqual((args.bf16, args.fp16), (plan["precision"] == "bf16", plan["precision"] == "fp16"))
                recompute = stage["recompute"]
                self.assertEqual(args.recompute_granularity, None if recompute == "none" else recompute)
                self.assertEqual(args.use_distributed_optimizer, plan["optimizer"] == "adam-distributed")
                seen += 1
        self.assertGreaterEqual(seen, 10)

    def test_layouts_are_the_plans_stages(self):
        seen = 0
        for name, plan, rendering in renderings("megatron"):
            args = parse(rendering["pods"][0]["arguments"], plan, 0, len(rank_pods(rendering)))
            if args.pipeline_model_parallel_layout is None:
                continue
            with self.subTest(name):
                layout = layout_class()(args.pipeline_model_parallel_layout, args.pipeline_model_parallel_size)
                layout.validate_layer_layout(plan["layerCount"] - 2, None)
                counts = [sum(layer.name == "decoder" for layer in stage[0]) for stage in layout.layout]
                self.assertEqual(counts, blocks_of_stages(plan))
                self.assertEqual(layout.virtual_pipeline_model_parallel_size, 1)
                seen += 1
        self.assertGreaterEqual(seen, 5)

    def test_its_parser_refuses_what_is_wrong(self):
        """So that the tests above could fail."""
        _, plan, rendering = next(renderings("megatron"))
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            parse([*rendering["pods"][0]["arguments"], "--no-such-flag"], plan, 0, 1)
        args = parse(rendering["pods"][0]["arguments"], plan, 0, len(rank_pods(rendering)))
        args.pipeline_model_parallel_size = args.world_size + 1
        with self.assertRaises(AssertionError):
            arguments_module().validate_args(args)
        with self.assertRaises(AssertionError):
            layout_class()("Et*3|tL", 2).validate_layer_layout(5, None)


class FlagScale(Quiet):
    def check_rank(self, rank, plan, rendering, device_types):
        fs_module = importlib.import_module("flagscale.train.arguments")
        pod = rank_pods(rendering)[rank]
        args = parse(pod["arguments"], plan, rank, len(device_types))
        stage, replica = replicas_of_ranks(plan, rendering)[rank]
        with as_rank(rank, device_types):
            mapper = fs_module.RankMapper(args)
            self.assertEqual(mapper.to_logical_ranks([rank]), [rank])
            checks = fs_module.FSTrainArguments(args, rank_mapper=mapper)
            checks.pre_validate_args()
            arguments_module().validate_args(args)
            checks.post_validate_args()
        self.assertEqual(args.tensor_model_parallel_size, len(replica["gpus"]))
        self.assertEqual(args.micro_batch_size, replica["microBatchSize"])
        self.assertEqual(args.hetero_pipeline_layer_split, blocks_of_stages(plan))
        self.assertEqual(args.global_batch_size // (args.micro_batch_size * args.data_parallel_size),
                         plan["pipelines"][0]["microBatches"])
        meshes = [mesh for mesh in args.hetero_process_meshes for _ in range(mesh[4])]
        self.assertEqual(meshes[stage][0], len(replica["gpus"]))
        return args

    def test_every_rank_passes_its_checks_and_gets_its_part(self):
        seen = 0
        for name, plan, rendering in renderings("flagscale"):
            with self.subTest(name):
                device_types = [pod["arguments"][pod["arguments"].index("--hetero-current-device-type") + 1]
                                for pod in rank_pods(rendering)]
                for rank in range(len(device_types)):
                    self.check_rank(rank, plan, rendering, device_types)
                seen += 1
        self.assertGreaterEqual(seen, 10)

    def test_recomputation_by_stage_is_what_the_plan_says(self):
        seen = 0
        for name, plan, rendering in renderings("flagscale"):
            pods = rank_pods(rendering)
            if "--recompute-granularity-per-stage-micro-batch" not in pods[0]["arguments"]:
                continue
            with self.subTest(name):
                device_types = [pod["arguments"][pod["arguments"].index("--hetero-current-device-type") + 1]
                                for pod in pods]
                args = self.check_rank(0, plan, rendering, device_types)
                pipeline = plan["pipelines"][0]
                expected = [[int(stage["recompute"] == "full")] * pipeline["microBatches"] for stage in pipeline["stages"]]
                self.assertEqual(args.recompute_granularity_per_stage_micro_batch, expected)
                self.assertEqual(args.recompute_num_layers_per_stage_micro_batch, expected)
                seen += 1
        self.assertGreaterEqual(seen, 1)


if __name__ == "__main__":
    unittest.main()
