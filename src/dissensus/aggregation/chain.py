"""Forward-backward and Viterbi over many sequences at once, position by position.

Sequences lie one after the other in arrays of tokens. They are visited from the longest, so those
that reach a position are always the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Integers


class Smoothed(NamedTuple):
    """What follows from the emissions of all sequences."""

    evidence: float  # log, summed
    state: Floats  # (token, state): posterior
    moves: Floats  # (state, next state): expected number of transitions
    ahead: Floats  # (token, state): likelihood of the token and all after it, up to a factor


@dataclass(frozen=True)
class Chain:
    """The positions of tokens in their sequences."""

    length: Integers  # (sequence): at least 1

    @property
    def first(self) -> Integers:
        """The first token of every sequence."""
        return np.cumsum(self.length) - self.length

    def steps(self) -> Iterator[Integers]:
        """Yield the tokens at every position, in the order of sequences from the longest."""
        order = np.argsort(-self.length, kind="stable")
        first, length = self.first[order], self.length[order]
        for position in range(int(length[0]) if len(length) else 0):
            yield first[: np.searchsorted(-length, -position)] + position

    def smooth(self, emission: Floats, start: Floats, move: Floats) -> Smoothed:
        """Return posteriors from log emissions, (token, state), and weights of start and moves."""
        highest = emission.max(axis=1, keepdims=True)
        given = np.exp(emission - highest)
        forward, scale = np.empty_like(given), np.empty(len(given))
        steps = list(self.steps())
        for position, tokens in enumerate(steps):
            before = start if position == 0 else forward[tokens - 1] @ move
            forward[tokens] = before * given[tokens]
            scale[tokens] = forward[tokens].sum(axis=1)
            forward[tokens] /= scale[tokens, None]
        ahead, moves = given / scale[:, None], np.zeros_like(move)  # last tokens: nothing follows
        for tokens in steps[:0:-1]:
            moves += forward[tokens - 1].T @ ahead[tokens]
            ahead[tokens - 1] *= ahead[tokens] @ move.T
        state = forward * ahead * scale[:, None] / np.where(given > 0, given, 1.0)
        evidence = float(np.log(scale).sum() + highest.sum())
        return Smoothed(evidence, state, moves * move, ahead)

    def best(self, emission: Floats, start: Floats, move: Floats) -> Integers:
        """Return the most probable states of all tokens, by Viterbi."""
        with np.errstate(divide="ignore"):
            log_start, log_move = np.log(start), np.log(move)
        score, origin = np.empty_like(emission), np.zeros(emission.shape, dtype=np.int64)
        steps = list(self.steps())
        for position, tokens in enumerate(steps):
            if position == 0:
                score[tokens] = log_start + emission[tokens]
                continue
            paths = score[tokens - 1][:, :, None] + log_move  # (sequence, state, next state)
            origin[tokens] = paths.argmax(axis=1)
            score[tokens] = paths.max(axis=1) + emission[tokens]
        state = np.zeros(len(emission), dtype=np.int64)
        last = self.first + self.length - 1
        state[last] = score[last].argmax(axis=1)
        for tokens in steps[:0:-1]:
            state[tokens - 1] = origin[tokens, state[tokens]]
        return state
