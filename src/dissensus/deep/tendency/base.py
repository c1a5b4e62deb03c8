"""What a model of individual annotators fulfils, and the metadata it may learn from.

A `TendencyMethod` holds settings, as the registry knows them. Fitted to features and annotations,
it returns a `Tendency`, which predicts labels,

    log_probability(features, item, annotator)[n, l]
        = log P(annotator[n] gives label l to item[n]),

at a cost that grows with the number of pairs, not with items × annotators. A `Tendency` is
immutable: adding an annotator returns a new one. `state` returns its parameters as arrays and
JSON, and `restore` of the method rebuilds it.

    class Mine(TendencyMethod):
        strength: Positive = 1.0

        def _fit(self, features, annotations, context): return MyTendency(…)
        def restore(self, state): return MyTendency(**state.arrays)

Metadata of annotators, groups they belong to and quantities, are encoded as numbers. A column of
numbers with more than `_FEW` different values becomes one standardized feature; any other column
one feature per value, minus the value's share, so that zero is the average annotator. Missing and
unknown values are zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ...answers.annotations import Annotations, Floats, Integers
from ...base.engine import one_blas_thread
from ...base.names import text
from ...base.storage import State
from ...errors import DataError, MethodError
from ...method import Progress
from ...params import Settings
from ..nn.features import Features

__all__ = ["FitOptions", "State", "Tendency", "TendencyMethod", "pieces", "silent"]

Table = Mapping[str, Mapping[str, Any]]  # annotator → column → value

_CELLS = 2**22  # probabilities per piece
_FEW = 5  # different numbers that are still treated as groups
_MOST = 50  # groups of a column; rarer ones are ignored


class Tendency(ABC):
    """A fitted model of individual annotators."""

    n_annotators: int
    n_classes: int

    @abstractmethod
    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        """Return log-probabilities of labels for pairs of item and annotator: (pair, class).

        Items are row indices of the features, annotators are codes.
        """

    def log_proba(self, features: Features, annotator: Integers | None = None) -> Floats:
        """Return log-probabilities for all items and, by default, all annotators.

        The shape is (item, annotator, class).
        """
        codes = np.arange(self.n_annotators) if annotator is None else np.asarray(annotator)
        out = np.empty((len(features), len(codes), self.n_classes))
        for items in pieces(len(features), len(codes) * self.n_classes):
            pairs = self.log_probability(
                features, np.repeat(items, len(codes)), np.tile(codes, len(items))
            )
            out[items] = pairs.reshape(len(items), len(codes), self.n_classes)
        return out

    @abstractmethod
    def state(self) -> State:
        """Return what was learned."""

    def with_annotator(self, features: Features, label: Integers, options: FitOptions) -> Tendency:
        """Return a model with one more annotator, whose code is `n_annotators`.

        Only parameters of the new annotator are learned; all others stay as they are.

        Parameters
        ----------
        features
            The items that they labelled.
        label
            Their label of each, as codes of classes; may be empty if metadata are given.
        options
            The seed, and the annotator's encoded metadata, if the model was fitted with metadata:
            (feature).
        """
        raise MethodError(f"{type(self).__name__} cannot add an annotator; fit it again")


def pieces(n_items: int, cells_per_item: int) -> Iterator[Integers]:
    """Yield ranges of items, small enough for an array with so many cells per item."""
    step = max(_CELLS // max(cells_per_item, 1), 1)
    for start in range(0, n_items, step):
        yield np.arange(start, min(start + step, n_items))


def silent(done: float, total: float = 0, message: str = "") -> None:
    """Report no progress."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitOptions:
    """What a fit needs besides the data; composite methods pass it on to their parts.

    Parameters
    ----------
    metadata
        Encoded metadata of the annotators: (annotator, feature).
    seed
        Random seed.
    progress
        Called with steps done, steps in total and a message.
    folder, resume
        Where networks write checkpoints, and whether to resume from them.
    about, data
        What is trained, and digests of what it learns from, as in `dissensus.deep.nn.train`.
    """

    metadata: Floats | None = None
    seed: int = 0
    progress: Progress = silent
    folder: Path | None = None
    resume: bool = False
    about: str = ""
    data: Mapping[str, str] | None = None

    def subfolder(self, name: str) -> FitOptions:
        """Return the same context with a folder below its folder."""
        return replace(self, folder=None if self.folder is None else self.folder / name)


@dataclass(frozen=True, kw_only=True)
class TendencyMethod(Settings, ABC):
    """Settings of a model of individual annotators."""

    uses_tokens: ClassVar[bool] = False  # whether it learns from token features

    def fit(
        self, features: Features, annotations: Annotations, context: FitOptions | None = None
    ) -> Tendency:
        """Fit the model to items, in the order of the annotations.

        Items without labels and annotators without labels may exist.
        """
        context = FitOptions() if context is None else context
        annotations.check_inputs(features)
        if not len(annotations):
            raise DataError("no annotations to learn from")
        if context.metadata is not None:
            if len(context.metadata) != annotations.n_annotators:
                raise DataError(
                    f"metadata of {len(context.metadata)} annotators, but there are "
                    f"{annotations.n_annotators}"
                )
            context = replace(context, metadata=np.asarray(context.metadata, dtype=np.float64))
        with one_blas_thread():
            return self._fit(features, annotations, context)

    def fit_questions(
        self, features: Features, questions: Sequence[Annotations], context: FitOptions
    ) -> Tendency:
        """Fit one model to several questions about the same items, by the same annotators."""
        raise MethodError(
            f"{type(self).__name__} learns one question at a time; query and qumatl learn several"
        )

    def needs_tokens(self, annotations: Annotations) -> bool:
        """Return whether token features are of use for these annotations."""
        return self.uses_tokens

    @abstractmethod
    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> Tendency: ...

    @abstractmethod
    def restore(self, state: State) -> Tendency:
        """Return the fitted model with this state."""


@dataclass(frozen=True)
class Metadata:
    """An encoding of columns as features."""

    numbers: dict[str, tuple[float, float]]  # column → mean, standard deviation
    groups: dict[str, dict[str, float]]  # column → value → share

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Return the encoding of a table of annotators.

        >>> Metadata.fit({"a": {"party": "x"}, "b": {"party": "y"}}).names
        ['party = x', 'party = y']
        """
        numbers: dict[str, tuple[float, float]] = {}
        groups: dict[str, dict[str, float]] = {}
        for column in dict.fromkeys(name for row in table.values() for name in row):
            values = [row[column] for row in table.values() if not _missing(row.get(column))]
            parsed = [_number(value) for value in values]
            if values and None not in parsed and len(set(parsed)) > _FEW:
                number = np.array(parsed, dtype=np.float64)
                numbers[column] = (float(number.mean()), float(number.std()) or 1.0)
                continue
            common = Counter(text(value) for value in values).most_common(_MOST)
            if len(common) > 1:
                groups[column] = {name: count / len(values) for name, count in sorted(common)}
        if not numbers and not groups:
            raise DataError("metadata in which no column varies; leave them out")
        return cls(numbers, groups)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        groups = [
            f"{column} = {value}" for column, shares in self.groups.items() for value in shares
        ]
        return [*self.numbers, *groups]

    def features(self, table: Table, annotators: Iterable[str]) -> Floats:
        """Return features of annotators, zeros for those not in the table."""
        rows = [self._row(table.get(name, {})) for name in annotators]
        return np.array(rows).reshape(-1, len(self.names))

    def _row(self, values: Mapping[str, Any]) -> list[float]:
        out = []
        for column, (mean, std) in self.numbers.items():
            number = _number(values.get(column))
            out.append(0.0 if number is None else (number - mean) / std)
        for column, shares in self.groups.items():
            value = values.get(column)
            name = "" if _missing(value) else text(value)
            out += [
                (name == group) - share if name in shares else 0.0
                for group, share in shares.items()
            ]
        return out


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or _missing(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
