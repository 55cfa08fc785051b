"""Samples by number. Sample k of step n is the same tokens under every plan, so each rank
makes its own without asking anybody."""

import math
import os

import torch


class DataError(ValueError):
    """The tokens cannot be used."""


class SyntheticTokens:
    """Arithmetic sequences over the vocabulary, a tenth of the tokens random: enough for a
    model to learn something."""

    NOISE = 0.1

    def __init__(self, vocabulary_size, length, seed):
        self.vocabulary_size, self.length, self.seed = vocabulary_size, length, seed

    def sample(self, number):
        """[length + 1] tokens: inputs, and one further on, targets."""
        generator = torch.Generator().manual_seed(self.seed * 1000003 + number)
        start, stride = torch.randint(
            self.vocabulary_size, (2,), generator=generator
        ).tolist()
        tokens = start + (1 + stride % 8) * torch.arange(self.length + 1)
        noise = torch.randint(
            self.vocabulary_size, (self.length + 1,), generator=generator
        )
        is_noise = torch.rand(self.length + 1, generator=generator) < self.NOISE
        return torch.where(is_noise, noise, tokens % self.vocabulary_size)


class TokenFile:
    """A file of tokens, little-endian and nothing else: 16 bits each for vocabularies up to
    65,536, else 32. It is cut into windows of `length` tokens, which each epoch visits in
    another order."""

    def __init__(self, path, vocabulary_size, length, seed):
        size = 2 if vocabulary_size <= 1 << 16 else 4
        count = os.path.getsize(path) // size
        self.windows = (count - 1) // length
        if self.windows < 1:
            raise DataError(
                f"{path}: {count} tokens are fewer than a sample of {length} + 1"
            )
        dtype = torch.int16 if size == 2 else torch.int32
        self.tokens = torch.from_file(path, shared=False, size=count, dtype=dtype)
        self.mask = (1 << 8 * size) - 1
        self.path, self.vocabulary_size = path, vocabulary_size
        self.length, self.seed = length, seed

    def sample(self, number):
        epoch, position = divmod(number, self.windows)
        start = self._shuffled(epoch, position) * self.length
        tokens = self.tokens[start : start + self.length + 1].long() & self.mask
        if int(tokens.max()) >= self.vocabulary_size:
            raise DataError(
                f"{self.path}: token {int(tokens.max())} is beyond the vocabulary of"
                f" {self.vocabulary_size}"
            )
        return tokens

    def _shuffled(self, epoch, position):
        """A permutation of the windows: multiplied by a number prime to theirs."""
        generator = torch.Generator().manual_seed(self.seed * 1000003 + epoch)
        factor, offset = torch.randint(1, 1 << 31, (2,), generator=generator).tolist()
        factor %= self.windows
        while math.gcd(factor, self.windows) != 1:
            factor += 1
        return (factor * position + offset) % self.windows


def open_data(source, vocabulary_size, length, seed):
    """`source`: "synthetic", or the path of a token file."""
    if source == "synthetic":
        return SyntheticTokens(vocabulary_size, length, seed)
    return TokenFile(source, vocabulary_size, length, seed)


def batch(data, first, count):
    """Samples first .. first + count - 1: (inputs, targets), [count, length] each."""
    tokens = torch.stack([data.sample(first + i) for i in range(count)])
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
