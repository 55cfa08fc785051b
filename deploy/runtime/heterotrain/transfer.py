"""Activations and their gradients between the replicas of neighbouring stages.

Two stages may split a micro-batch differently: each pair of replicas that share samples
has a channel for them. Between tensor-parallel groups, whose ranks all have the same
activations, a channel carries every number once: cut into as many parts as the smaller
group has ranks, which the receiving group then shares out among its own.
"""

from dataclasses import dataclass

import torch.distributed as dist


@dataclass(frozen=True)
class Channel:
    """Samples start .. stop, of this replica's own, that a peer replica has too."""

    start: int
    stop: int
    peers: tuple  # ranks of the peer, one for each part; part j is that of tp index j

    def part(self, tensor, index):
        """The view of a part of a contiguous [samples, ...]."""
        flat = tensor[self.start : self.stop].view(-1)
        count, parts = flat.numel(), len(self.peers)
        start, stop = count * index // parts, count * (index + 1) // parts
        return flat[start:stop]


def channels(own, other_stage):
    """The channels of replica `own` to the stage before or after it."""
    found = []
    for other in other_stage.replicas:
        start = max(own.first_sample, other.first_sample)
        stop = min(own.last_sample, other.last_sample)
        if start < stop:
            peers = other.ranks[: min(own.tp, other.tp)]
            found.append(
                Channel(start - own.first_sample, stop - own.first_sample, peers)
            )
    return found


class Boundary:
    """One rank's side of the boundary to a neighbouring stage."""

    def __init__(self, own, other_stage, tp):
        self.channels = channels(own, other_stage)
        self.own_ranks = own.ranks
        self.tp = tp

    def exchange(self, outgoing, incoming):
        """Sends `outgoing` and fills `incoming`, both contiguous [samples of this replica,
        ...] or None. Blocks until the peers have come to the same exchange."""
        operations = []
        for channel in self.channels:
            if self.tp.rank >= len(channel.peers):
                continue
            peer = channel.peers[self.tp.rank]
            if outgoing is not None:
                part = channel.part(outgoing, self.tp.rank)
                operations.append((dist.isend, part, peer))
            if incoming is not None:
                part = channel.part(incoming, self.tp.rank)
                operations.append((dist.irecv, part, peer))
        _run(operations)
        if incoming is not None and self.tp.size > 1:
            self._share(incoming)

    def _share(self, incoming):
        for channel in self.channels:
            for index in range(len(channel.peers)):
                part = channel.part(incoming, index)
                dist.broadcast(part, self.own_ranks[index], group=self.tp.group)


def _run(operations):
    """All at once: NCCL would wait for ever in one of two that cross."""
    operations = [operation for operation in operations if operation[1].numel()]
    if not operations:
        return
    if dist.get_backend() == "nccl":
        requests = dist.batch_isend_irecv([dist.P2POp(*each) for each in operations])
    else:
        requests = [start(tensor, peer) for start, tensor, peer in operations]
    for request in requests:
        request.wait()
