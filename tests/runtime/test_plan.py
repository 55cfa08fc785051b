"""heterotrain.plan: what a plan.json says, and errors that name the field."""

import copy
import unittest

from heterotrain import plan as plans
from test_training import six_gpus


class ReadsPlans(unittest.TestCase):
    def setUp(self):
        self.plan = plans.from_dict(six_gpus())

    def test_ranks_are_contiguous_per_node_in_order_of_appearance(self):
        self.assertEqual(self.plan.gpus_of_nodes, (3, 2, 1))
        ranks = [replica.ranks for _, _, replica in self.plan.replicas()]
        self.assertEqual(ranks, [(0, 1), (2,), (3,), (4,), (5,)])

    def test_each_rank_has_its_place(self):
        self.assertEqual(self.plan.place_of(1), plans.Place(0, 0, 0, 1))
        self.assertEqual(self.plan.place_of(4), plans.Place(1, 0, 1, 0))

    def test_samples_are_numbered_through_pipelines_and_replicas(self):
        second = self.plan.pipelines[1]
        self.assertEqual(second.first_sample, 3 * 3)
        self.assertEqual([r.first_sample for r in second.stages[0].replicas], [0, 2])
        self.assertEqual(self.plan.global_batch_size, 3 * 3 + 2 * 3)

    def test_holders_of_a_layer_are_replicas_of_all_pipelines(self):
        ranks = [replica.ranks for replica in self.plan.holders(2)]
        self.assertEqual(ranks, [(2,), (3,), (4,)])

    def test_environment_must_agree(self):
        right = {
            "WORLD_SIZE": "6",
            "RANK": "4",
            "LOCAL_RANK": "1",
            "HETPLAN_RANK_OFFSET": "3",
        }
        plans.check_against_environment(self.plan, right)
        for name, value in (("WORLD_SIZE", "5"), ("HETPLAN_RANK_OFFSET", "2")):
            with self.subTest(name), self.assertRaisesRegex(
                plans.PlanError, f"^{name}: is"
            ):
                plans.check_against_environment(self.plan, {**right, name: value})


def _set(path, value):
    """A change of one field: _set(("pipelines", 0, "microBatches"), 0)."""

    def change(plan):
        target = plan
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return change


P0, STAGE, REPLICA = (
    "pipelines[0]",
    ("pipelines", 0, "stages", 1),
    ("pipelines", 1, "stages", 0),
)
WRONG = [
    (_set(("pipelines",), []), "pipelines: must be a list that is not empty"),
    (_set(("pipelines", 0), 7), "pipelines[0]: must be an object"),
    (_set(("globalBatchSize",), 16), "globalBatchSize: is 16, the pipelines'"),
    (_set(("layerCount",), 7), f"{P0}.stages: have 6 layers, the plan 7"),
    (_set(("precision",), "fp8"), "precision: 'fp8' is not one of"),
    (_set(("optimizer",), "lion"), "optimizer: 'lion' is not one of"),
    (_set(("schedule",), "GPipe"), "schedule: 'GPipe'"),
    (_set(("pipelines", 0, "microBatches"), 0), f"{P0}.microBatches: must be"),
    (_set((*STAGE, "firstLayer"), 3), f"{P0}.stages[1].firstLayer: must be 2"),
    (_set((*STAGE, "layerCount"), 5), f"{P0}.stages: have 7 layers"),
    (_set((*STAGE, "recompute"), "some"), f"{P0}.stages[1].recompute: 'some'"),
    (
        _set((*STAGE, "replicas", 0, "microBatchSize"), 4),
        f"{P0}.stages[1].replicas: microBatchSize adds up to 4, in the stage before to 3",
    ),
    (
        _set((*STAGE, "replicas", 0, "gpus"), []),
        f"{P0}.stages[1].replicas[0].gpus: must be",
    ),
    (_set((*STAGE, "replicas", 0, "gpus"), [1]), "GPU 1 of node-a is also in"),
    (_set((*STAGE, "replicas", 0, "gpus"), [3]), "but not index 2"),
    (_set((*STAGE, "replicas", 0, "gpus"), [-1]), "-1 is not the index of a GPU"),
    (
        _set((*REPLICA, "replicas", 1, "node"), 3),
        "pipelines[1].stages[0].replicas[1].node: must be text",
    ),
]


class RefusesPlans(unittest.TestCase):
    def test_each_error_names_its_field(self):
        for change, message in WRONG:
            wrong = copy.deepcopy(six_gpus())
            change(wrong)
            with self.subTest(message), self.assertRaises(plans.PlanError) as caught:
                plans.from_dict(wrong)
            self.assertIn(message, str(caught.exception))
