"""How far two checkpoints are apart: `python3 -m heterotrain.compare A B` prints the
largest difference of weights and optimizer, and where; exit status 1 if it is above
--tolerance. A and B are folders of one step, or of all, of which the newest counts.
"""

import argparse
import os
import sys

from . import checkpoint


def difference(folder, other):
    """(largest absolute difference, "layer 3 qkv_weight") between two checkpoints. Raises
    CheckpointError if they do not have the same tensors, or one of DAMAGE."""
    largest, where = 0.0, "nowhere"
    tensors = {(layer, name): t for layer, name, t in checkpoint.whole_tensors(other)}
    for layer, name, tensor in checkpoint.whole_tensors(folder):
        if (layer, name) not in tensors:
            raise checkpoint.CheckpointError(f"{other}: layer {layer} has no {name}")
        counterpart = tensors.pop((layer, name))
        apart = (tensor.double() - counterpart.double()).abs().max().item()
        if not apart <= largest:  # also if it is no number
            largest, where = apart, f"layer {layer} {name}"
    for layer, name in tensors:
        raise checkpoint.CheckpointError(f"{folder}: layer {layer} has no {name}")
    return largest, where


def step_folder(path):
    """The folder of the checkpoint itself: `path`, or the newest one in it."""
    if os.path.exists(os.path.join(path, checkpoint.MANIFEST)):
        return path
    folder, _ = checkpoint.newest(path)
    if folder is None:
        raise checkpoint.CheckpointError(f"{path}: has no finished checkpoint")
    return folder


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("first")
    options.add_argument("second")
    options.add_argument("--tolerance", type=float, default=0.0)
    chosen = options.parse_args()
    try:
        first, second = step_folder(chosen.first), step_folder(chosen.second)
        largest, where = difference(first, second)
    except (checkpoint.CheckpointError, *checkpoint.DAMAGE) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"largest difference {largest:.3g} at {where}")
    sys.exit(0 if largest <= chosen.tolerance else 1)


if __name__ == "__main__":
    main()
