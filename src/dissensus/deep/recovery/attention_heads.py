"""Heads on one encoder, each with its own attention over words or patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..nn.batches import Source, chunks
from ..nn.features import Features, TokenFeatures
from ..nn.standardize import standardization
from ...params import Count
from .heads import Fraction, Heads, NetworkMethod, Networks
from .members import Members, fold_weights, initial_weights
from .method import FitInputs

_MASKED = -1e9
_STANDARDIZED = 2048  # items by which token features are standardized
_BATCH = 64


class TokenSource:
    """Token features with the mask as the last feature: (item, token, feature + 1)."""

    def __init__(self, tokens: TokenFeatures) -> None:
        self.tokens = tokens
        self.sizes = tokens.sizes

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, items: Any, /) -> Tensor:
        values, mask = self.tokens.load(items, trim=True)
        both = np.concatenate([values, mask[..., None]], axis=2, dtype=np.float32)
        return torch.from_numpy(both).to(torch.get_default_dtype())


class AttentionPooling(Heads):
    """Heads, each with its own attention over tokens."""

    def __init__(self, n: int, width: int, n_classes: int, *, hidden: int, **more: Any) -> None:
        super().__init__(n, width, n_classes, hidden=hidden, **more)
        self.query = initial_weights(n, width, 1, seed=self.settings["seed"])

    def inputs_from(self, features: Features) -> TokenSource:  # type: ignore[override]
        assert features.tokens is not None
        return TokenSource(features.tokens)

    def standardize(self, x: Tensor | Source) -> None:
        some = chunks(x, _BATCH, min(len(x), _STANDARDIZED))
        tokens = torch.cat([each[each[..., -1] > 0][:, :-1] for each in some])
        self.mean, self.scale = standardization(tokens)

    def attend(self, x: Tensor) -> Tensor:
        """Return the attention of every member: (member, item, token)."""
        # The scaled query has the same softmax as scaled tokens. It has a zero for the mask, so
        # that nothing has to be copied.
        query = nn.functional.pad(self.query[:, :, 0] * self.scale, (0, 1))
        score = (x @ query.T).movedim(2, 0)
        return score.masked_fill(x[..., -1] == 0, _MASKED).softmax(dim=-1)

    def log_proba(self, x: Tensor) -> Tensor:
        pooled = self.attend(x).transpose(0, 1) @ x  # (item, member, feature + 1)
        return super().log_proba(pooled[..., :-1].transpose(0, 1))


@dataclass(frozen=True, kw_only=True)
class AttentionHeads(NetworkMethod):
    """Heads on one encoder, each with its own attention.

    Heads on one encoder, each with its own attention over words or patches.

        attention_mt = softmax over tokens t of query_m · token_t
        vector_m     = Σ_t attention_mt token_t,   then a hidden layer and a linear head

    SeedBERT expects that other initializations lead to attention on other parts of the input. Here
    every head has its own query.

    When it fails: It needs token features. Heads attend to other words by little, and rarely for
    the reasons for which people differ.

    Parameters
    ----------
    n
        Number of heads; each holds out another part of the items.
    dropout
        Dropout rate of the pooled vector and of the hidden layer.
    """

    needs: ClassVar[tuple[str, ...]] = ("tokens",)
    network: ClassVar[type[Members]] = AttentionPooling

    n: Count = 5
    hidden: Count = 64
    dropout: Fraction = 0.3
    epochs: Count = 12
    steps: Count = 300
    patience: Count = 2

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        assert features.tokens is not None
        network = AttentionPooling(
            self.n, np.shape(features.tokens.values)[-1], context.n_classes, hidden=self.hidden,
            dropout=self.dropout, input_dropout=self.dropout, seed=context.seed,
        )  # fmt: skip
        weight = fold_weights(self.n, len(features), context.seed)
        return self._train(network, features, context, weight)
