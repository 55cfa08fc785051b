"""What `make bench` plans: instances with the options of hetplan that pose them, the
algorithms that are run on each, and the bars that `optimal` is held against.

Clusters are files of tests/data, or made here and written into the folder that is given
to `files`; so are the synthetic profiles of the OOM-first paper.
"""
import dataclasses
import json
import os

import synthetic_profile

SAILOR = "tests/data/sailor/layer_times"
NETWORK = "tests/data/sailor/network"
CLUSTERS = "tests/data/clusters"

# Run on an instance where it names no others; `optimal` last, to be compared with them.
ALGORITHMS = ["megatron", "metis", "oomfirst", "amp", "amp-sa", "ditto", "ditto-greedy",
              "autohet", "optimal"]
# As the OOM-first paper runs them.
WALKS = ["metis-walk", "oomfirst-walk"]
WALK_OPTIONS = ["--metis-variance", "1", "--metis-permute", "128", "--memory-model", "metis"]


@dataclasses.dataclass
class Bar:
    """What `optimal` is to reach; None: nothing is asked."""
    sailor_s: float = None  # a step of the best plan of Sailor's whole candidate list
    user_s: float = None    # CPU time of the process
    gap: float = None
    other: tuple = None     # another algorithm, and the CPU time that it may take


@dataclasses.dataclass
class Instance:
    group: str    # of the tables
    name: str     # of the cluster, for people
    profile: str  # a path, or the number of layers of a synthetic one
    cluster: str  # a path, or the nodes of one
    batch: int
    options: list = dataclasses.field(default_factory=list)
    bar: Bar = dataclasses.field(default_factory=Bar)
    small: bool = False  # one of those that CI runs
    algorithms: list = dataclasses.field(default_factory=lambda: ALGORITHMS)
    running: list = None  # nodes of which the plan of `optimal` runs (--from); None: no plan

    def title(self):
        return f"{self.group}: {self.name}"

    def slug(self):
        return "".join(c if c.isalnum() else "-" for c in self.title().lower())

    def files(self, folder, cluster=None):
        """Options that name profile and cluster (its own, if none is given), written into
        `folder` where they are made."""
        name = self.slug() + ("-running" if cluster else "") + ".json"
        profile, cluster = self.profile, cluster or self.cluster
        if isinstance(profile, int):
            layers, profile = profile, os.path.join(folder, f"synthetic-{profile}")
            synthetic_profile.write(layers, profile)
        if not isinstance(cluster, str):
            nodes, cluster = cluster, os.path.join(folder, name)
            with open(cluster, "w", encoding="utf-8") as file:
                json.dump({"nodes": nodes}, file)
        return ["--profile", profile, "--cluster", cluster]


def nodes(gpu_type, gpus):
    """`gpus` GPUs of a type on nodes like those of tests/data/clusters."""
    a_node, memory, inside = {"GH200": (4, 96, 300), "A100": (4, 40, 240), "V100": (4, 16, 60),
                              "RTX3090": (8, 24, 12)}[gpu_type]
    return {"name": gpu_type.lower(), "type": gpu_type, "gpus": a_node, "memory_gb": memory,
            "intra_gb_s": inside, "inter_gb_s": 3, "repeat": gpus // a_node}


def oomfirst_nodes(count):
    common = {"gpus": 4, "inter_gb_s": 10, "repeat": count}
    return [{"type": "V100", "memory_gb": 16, "intra_gb_s": 50, **common},
            {"type": "A100", "memory_gb": 80, "intra_gb_s": 46, **common}]


def measured():
    """Models as Sailor measured them, on the clusters of tests/data."""
    def instance(group, folder, name, cluster, batch, **more):
        return Instance(group, name, f"{SAILOR}/{folder}",
                        f"{CLUSTERS}/{cluster}.json" if isinstance(cluster, str) else cluster,
                        batch, **more)

    def opt(*arguments, **more):
        return instance("OPT-350M", "opt-350", *arguments, **more)

    def curves(*arguments, **more):
        return instance("OPT-350M, measured links", "opt-350", *arguments,
                        options=["--network", NETWORK], **more)

    def neo(*arguments, **more):
        return instance("GPT-Neo-2.7B", "gpt-neo-2.7", *arguments, **more)

    def llama(*arguments, **more):
        return instance("LLAMA-3-8B", "llama-3-8", *arguments, **more)

    four = "4 GH200 + 8 A100 + 16 V100 + 8 RTX3090"
    four_file = "gh200x4_a100x8_v100x16_rtx3090x8"
    return [
        opt("8 A100", "metis_a100x8", 256),
        opt("8 A100 + 8 V100", "a100x8_v100x8", 256, small=True),
        opt("8 A100 + 4 + 2 V100", "uneven_a100x8_v100x4_v100x2", 96, small=True),
        opt("16 A100 + 16 V100", "a100x16_v100x16", 1024, small=True,
            bar=Bar(11.42, 0.2, 0.12)),
        opt("32 A100 + 96 V100", "a100x32_v100x96", 1024, bar=Bar(5.38, 0.4, 0.30)),
        opt("80 A100 + 240 V100", "a100x80_v100x240", 1024, bar=Bar(2.92, 0.7)),
        opt("128 A100 + 384 V100", "a100x128_v100x384", 1024, bar=Bar(2.16, 1)),
        opt("8 GH200 + 8 A100 + 8 RTX3090", "gh200x8_a100x8_rtx3090x8", 1024),
        opt(four, four_file, 1024, small=True, bar=Bar(13.8, 0.5)),
        curves("16 A100 + 16 V100", "a100x16_v100x16", 1024, small=True),
        curves("32 A100 + 96 V100", "a100x32_v100x96", 1024),
        curves("128 A100 + 384 V100", "a100x128_v100x384", 1024),
        curves(four, four_file, 1024),
        neo("8 A100 + 8 V100", "a100x8_v100x8", 256),
        neo("16 A100 + 16 V100", "a100x16_v100x16", 1024),
        neo("32 A100 + 96 V100", "a100x32_v100x96", 2048, bar=Bar(39.4, 1, 0.30)),
        neo("128 A100 + 384 V100", "a100x128_v100x384", 2048),
        llama("8 GH200 + 8 A100", "gh200x8_a100x8_rtx3090x8", 256, small=True),
        llama("32 GH200 + 64 A100", [nodes("GH200", 32), nodes("A100", 64)], 1024),
    ]


def scaled():
    """Four types, as many GPUs of each."""
    return [Instance("OPT-350M, scaled", f"{count} each of A100, V100, GH200, RTX3090",
                     f"{SAILOR}/opt-350",
                     [nodes(t, count) for t in ["A100", "V100", "GH200", "RTX3090"]], 8192,
                     bar=Bar(user_s=10) if count == 1024 else Bar())
            for count in [64, 256, 1024]]


def changes():
    """A node of a running job is lost, or comes back."""
    whole = [nodes("A100", 16), nodes("V100", 48)]
    less = [nodes("A100", 16), nodes("V100", 44)]
    return [Instance("OPT-350M, running", name, f"{SAILOR}/opt-350", after, 1024,
                     running=before, algorithms=["repair", "optimal"],
                     bar=Bar(other=("repair", 0.05)), small=after == less)
            for name, before, after in [("16 A100 + 48 V100 lose a node", whole, less),
                                        ("16 A100 + 44 V100 get a node", less, whole)]]


def papers():
    """The settings of the papers' own evaluations, as far as their data are published."""
    def amp(name, profile, cluster, batch, **more):
        return Instance("AMP, 4.3", name, f"tests/data/amp/{profile}.json",
                        f"tests/data/amp/{cluster}.json", batch, **more)

    def oomfirst(layers, gpus, *limits, **more):
        return Instance("OOM-first, table 1", f"{layers} layers, {gpus} A100 + {gpus} V100",
                        layers, oomfirst_nodes(gpus // 4), 128, algorithms=WALKS + ALGORITHMS,
                        bar=Bar(user_s=limits[0], other=("metis-walk", limits[1]))
                        if limits else Bar(), **more)

    def autohet(model, cluster, **more):
        return Instance("AutoHet, V", f"{model}, {cluster.replace('_', ' + ')}",
                        f"tests/data/autohet/{model}.json",
                        f"tests/data/autohet/{cluster}.json", 256,
                        options=["--sequence-length", "2048", "--precision", "bf16"], **more)

    return [
        amp("GPT-2, 16 T4", "gpt2", "t4x16", 32, small=True),
        amp("GPT-2, 12 V100 + 4 T4", "gpt2", "v100x12_t4x4", 32),
        amp("TransGAN, 16 V100", "transgan", "v100x16", 64),
        *(Instance("Ditto, figure 8", f"GPT2-XL, Ex{n}", "tests/data/gpt2-xl/profile.json",
                   f"tests/data/gpt2-xl/ex{n}.json", 192, small=n == 1)
          for n in range(1, 6)),
        *(autohet("gpt3-6.7b", cluster)
          for cluster in ["a100x4_h800x2", "a100x5_h800x3", "a100x8_h800x8"]),
        *(autohet("llama-6.7b", cluster, small=cluster == "a100x1_h20x4")
          for cluster in ["a100x1_h20x4", "a100x2_h20x6", "a100x8_h20x8"]),
        oomfirst(10, 16, 0.05, 0.005, small=True),
        oomfirst(20, 32, 0.1, 0.2),
        oomfirst(20, 64),
        oomfirst(40, 128, 0.5, 2),
    ]


ALL = measured() + papers() + scaled() + changes()
