"""A comparison of methods, with and without truth.

Without truth, methods are compared by the likelihood of held-out annotations (`held_out`). That is
the best such score known, and a weak one: it rewards explaining annotators, and annotators share
errors. So a comparison reports which methods are statistically tied, on which items they disagree,
and warnings about the data, rather than naming a winner. The warnings need no fit: too few labels
for confusion matrices, annotators without co-annotated items, items with a single label.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..answers import KINDS
from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.storage import as_plain
from ..base.tables import Table, columns_of
from ..dispatch import by_kind
from ..errors import Note, OptionError
from ..formats import as_answers, as_truth
from ..metrics import Evaluation, evaluate
from ..registry import methods as methods_of_kind
from ..result import Result
from . import Method, as_method
from .aggregation import ClassAggregation
from .answer_comparison import ComparedMethod, compared_by_distance
from .classes import ClassMethod
from .held_out import HeldOut, held_out

if TYPE_CHECKING:
    from ..pages.charts import Figure
    from ..pages.sections import Section

_SPARSE = 0.3  # parameters per label above which confusion matrices are mostly prior
_SINGLE = 0.1  # fraction of items with one label above which there is a warning
# The methods that are compared by default.
_USUAL = {
    "classes": (
        *("majority", "wawa", "dawid-skene", "dawid-skene-map", "bcc", "hierarchical", "mace"),
    )
}
_ORDINAL = ("ordinal-distance", "ordinal-latent")  # and these on an ordinal scale
_SLOW = ("sequence",)
_REDUCIBLE = {  # kinds that reduce to classes → methods for classes
    "spans": ("dawid-skene", "majority"),
    "boxes": ("dawid-skene", "majority"),
    "points": ("majority",),
    "sets": ("majority",),
}
_SIGNIFICANT = 2.0  # standard errors
_MISSED = Note(
    "answers left out miss what annotators miss, so a method that finds more than they do "
    "looks farther away",
    remedy="choose by known answers ({}) where there are any.",
    truth=...,
)


def data_warnings(annotations: Annotations) -> list[str]:
    """Return warnings about the data, a sentence each."""
    warnings = []
    cells = cells_per_label(annotations)
    if cells > _SPARSE:
        warnings.append(
            f"There are {cells:.2g} parameters of confusion matrices for every label: "
            "plain Dawid-Skene is not to be trusted, methods with a prior are."
        )
    n_separate = n_groups(annotations)
    if n_separate > 1:
        warnings.append(
            f"Annotators fall into {n_separate} groups that share no item: "
            "quality cannot be compared between groups."
        )
    single = single_share(annotations)
    if single > _SINGLE:
        warnings.append(f"{single:.0%} of the items have one label: nothing can correct it.")
    return warnings


def cells_per_label(annotations: Annotations) -> float:
    """Return the number of free parameters of confusion matrices per label."""
    cells = annotations.n_annotators * annotations.n_classes * (annotations.n_classes - 1)
    return cells / len(annotations) if len(annotations) else 0.0


def single_share(annotations: Annotations) -> float:
    """Return the fraction of items with exactly one label."""
    return float((annotations.labels_per_item == 1).mean()) if annotations.n_items else 0.0


def n_groups(annotations: Annotations) -> int:
    """Return the number of connected groups of annotators with labels."""
    return len(np.unique(groups(annotations)[annotations.labels_per_annotator > 0]))


def groups(annotations: Annotations) -> Integers:
    """Return the connected group of every annotator, linked by co-annotated items.

    An annotator without labels is a group of their own.

    >>> annotations = Annotations.from_columns("aabcc", "vwwxy", "00000")
    >>> groups(annotations).tolist()
    [0, 0, 1, 1]
    """
    n_nodes = annotations.n_items + annotations.n_annotators  # items first
    ends = np.full(annotations.n_annotators, len(annotations))
    graph: sparse.csr_array[Any, Any] = sparse.csr_array(
        (
            np.ones(len(annotations)),
            annotations.annotator + np.int64(annotations.n_items),
            np.concatenate([annotations.index, ends]),
        ),
        shape=(n_nodes, n_nodes),
    )
    group = connected_components(graph, directed=False)[1][annotations.n_items :]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


class ContestedItem(NamedTuple):
    """An item on which methods disagree."""

    item: str
    labels: dict[str, list[str]]  # label → the methods that give it


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Result):
    """A comparison of methods: by held-out likelihood, or by the distance to answers left out.

    Attributes
    ----------
    kind
        The kind of the answers.
    methods
        One row for every method, the best first.
    n_scored
        Number of scored annotations, or of answers left out.
    warnings
        What to know before choosing, a sentence each.
    results
        The fits to all answers, by method.
    contested
        Items on which methods for classes disagree, those with the most even split first.
    n_contested
        Number of such items.
    share
        The share of the answers that is left out; `None` for classes, all of which are held out.
    """

    kind: str
    methods: tuple[ComparedMethod, ...]
    n_items: int
    n_scored: int
    warnings: tuple[str, ...]
    results: Mapping[str, Any]
    contested: tuple[ContestedItem, ...] = ()
    n_contested: int = 0
    share: float | None = None

    def __repr__(self) -> str:
        names = ", ".join(row.method for row in self.methods)
        return f"<Comparison of {names}: {self.verdict.removesuffix('.')}>"

    @property
    def by_distance(self) -> bool:
        """Whether methods are compared by the distance to answers left out."""
        return self.share is not None

    @property
    def n_left_out(self) -> int:
        """Number of answers left out; 0 where labels are held out."""
        return self.n_scored if self.by_distance else 0

    @property
    def caution(self) -> str:
        """The first warning; empty where there is none."""
        return self.warnings[0] if self.warnings else ""

    def _chart(self) -> tuple[Figure | None, str]:
        return self.figures.get("methods"), "there is nothing to draw: no item has two labels"

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Methods as dots with intervals."""
        from .sections import methods_figure

        figure = methods_figure(self)
        return {} if figure is None else {"methods": figure}

    @property
    def tables(self) -> Mapping[str, Table]:
        """The methods, with the first of their scores where a truth is known."""
        rows = []
        for method in self.methods:
            row = _row(method)
            evaluation: Evaluation | None = row.pop("evaluation")
            for name, score in list(evaluation.available.items())[:1] if evaluation else ():
                row |= {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}
            rows.append(row)
        return {"methods": columns_of(rows)}

    @property
    def verdict(self) -> str:
        """The conclusion, in a sentence."""
        tied = [row.method for row in self.methods if row.tied]
        if self.by_distance:
            if len(tied) == 1:
                return f"{tied[0]} is closest to the answers left out."
            return f"{', '.join(tied)} cannot be distinguished by the answers left out."
        fraction = self.n_contested / self.n_items if self.n_items else 0.0
        differ = f"The methods differ on {self.n_contested} items ({fraction:.1%})"
        if self.n_scored == 0:
            return f"{differ}; no item has two labels, so nothing can be predicted."
        if len(tied) == 1:
            return f"{differ}; {tied[0]} predicts held-out labels best, which is weak evidence."
        methods = f"{', '.join(tied[:-1])} and {tied[-1]}"
        return f"{differ}; {methods} are tied in predicting held-out labels."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The conclusion, and what to know before choosing."""
        return (self.verdict, *(Note.after("Caution: ", warning) for warning in self.warnings))

    def sections(self) -> tuple[Section, ...]:
        """Return the methods, the conclusion, and the items on which they disagree most."""
        from .sections import comparison_sections

        return comparison_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        content: dict[str, Any] = {
            "kind": self.kind,
            "methods": [_row(method) for method in self.methods],
            "n_items": self.n_items,
            "n_scored": self.n_scored,
            "verdict": self.verdict,
        }
        if self.by_distance:
            content |= {"n_left_out": self.n_left_out, "share": self.share}
            content |= {"caution": self.caution}
        else:
            content |= {"contested": self.contested, "n_contested": self.n_contested}
            content |= {"signs": self.warnings}
        return as_plain(content)


def _row(method: ComparedMethod) -> dict[str, Any]:
    """Return what a method has, without what does not belong to its kind of answers."""
    optional = ("held_out", "agreement", "megabytes", "distance")
    row = method._asdict()
    return {name: value for name, value in row.items() if value is not None or name not in optional}


def default_methods(answers: Any) -> tuple[str, ...]:
    """Return the methods that are compared where none is named on the command line."""
    if answers.kind in _USUAL:
        return (*_USUAL[answers.kind], *(_ORDINAL if answers.scale == "ordinal" else ()))
    own = [name for name in methods_of_kind[answers.kind] if name not in _SLOW]
    return (*own, *_REDUCIBLE.get(answers.kind, ()))


@by_kind(read=as_answers)
def compare(
    answers: Any,
    methods: str | Method[Any, Any] | Sequence[str | Method[Any, Any]] | None = None,
    *,
    truth: Any = None,
    gold: Any = None,
    folds: int = 5,
    seeds: int = 1,
    seed: int = 0,
    most: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Fit methods to the same answers and compare them.

    Methods for classes are compared by the likelihood of held-out labels, others by the distance of
    their consensus to answers left out; of numbers, by the absolute difference.

    Parameters
    ----------
    answers
        Answers of any kind, or anything that `read` takes: a path, a table.
    methods
        Methods, or their specifications; one alone is scored, too. By default majority and
        dawid-skene, for other kinds the methods of the kind.
    truth
        What is known, to evaluate with: `{item: answer}`, a pandas Series, a table or a file. No
        method sees it.
    gold
        What is known and methods may use, given likewise.
    folds
        Number of folds of the held-out likelihood; of other kinds, one answer in so many is left
        out.
    seeds
        Number of random splits into folds.
    seed
        Random seed, for folds, ties and random starts.
    most
        Maximum number of contested items to list.
    progress
        Called with the number of fits done and in total.

    Examples
    --------
    >>> from dissensus import demo
    >>> comparison = compare(demo()[0], ["majority", "dawid-skene"])
    >>> sorted(row.method for row in comparison.methods)
    ['dawid-skene', 'majority']
    """
    raise NotImplementedError


@compare.for_kind("classes")
def compare_classes(
    annotations: Annotations,
    methods: Any,
    *,
    truth: Any,
    gold: Any,
    folds: int,
    seeds: int,
    seed: int,
    most: int,
    progress: Callable[[int, int], None] | None,
) -> Comparison:
    """Compare methods for classes by the likelihood of held-out labels."""
    if seeds < 1:
        raise OptionError(f"seeds = {seeds}, but it must be at least 1")
    method_of = _named(annotations.kind, methods or ("majority", "dawid-skene"), folds)
    names, instances = list(method_of), list(method_of.values())
    truth, gold = as_truth(truth), as_truth(gold)
    fits = [_timed(method, annotations, gold, seed) for method in instances]
    results = [result for result, _, _ in fits]
    held = _repeated(
        annotations, instances, folds=folds, seeds=range(seed, seed + seeds), progress=progress
    )
    score, gap, error = _scores(annotations, held)
    labels = np.stack([result.label for result in results])  # (method, item)
    common = _most_common(labels, annotations.n_classes)
    rows = [
        ComparedMethod(
            method=name,
            held_out=score[position],
            gap=gap[position],
            error=error[position],
            tied=bool(gap[position] <= _SIGNIFICANT * error[position]),
            agreement=float((labels[position] == common).mean())
            if annotations.n_items
            else math.nan,
            seconds=seconds,
            megabytes=megabytes,
            evaluation=None if truth is None else evaluate(result, truth, seed=seed),
        )
        for position, (name, (result, seconds, megabytes)) in enumerate(
            zip(names, fits, strict=True)
        )
    ]
    contested = np.flatnonzero((labels != labels[0]).any(axis=0))
    unidentifiable = results[0].unidentifiable
    return Comparison(
        kind=annotations.kind,
        methods=tuple(sorted(rows, key=lambda row: row.gap)),
        contested=_contested(annotations, names, labels, items=contested, most=most),
        n_contested=len(contested),
        n_items=annotations.n_items,
        n_scored=len(held.annotation),
        warnings=(
            *data_warnings(annotations),
            *([unidentifiable.reason] if unidentifiable else []),
        ),
        results=dict(zip(names, results, strict=True)),
    )


@compare.for_kind("numbers", *KINDS)
def compare_answers(
    answers: Any,
    methods: Any,
    *,
    truth: Any,
    gold: Any,
    folds: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Comparison:
    """Compare methods for other kinds by the distance to answers left out."""
    names = list(_named(answers.kind, methods or default_methods(answers), folds))
    rows, n_left_out, results = compared_by_distance(
        answers, names, truth=truth, gold=gold, folds=folds, seed=seed, progress=progress
    )
    return Comparison(
        kind=answers.kind,
        methods=tuple(rows),
        n_items=answers.n_items,
        n_scored=n_left_out,
        share=1 / folds,
        warnings=(_MISSED,) if answers.kind in _REDUCIBLE else (),
        results=results,
    )


def _named(kind: str, methods: Any, folds: int) -> dict[str, Any]:
    """Return methods by their specifications, each once."""
    if folds < 2:
        raise OptionError(f"folds = {folds}, but it must be at least 2")
    specs = [methods] if isinstance(methods, (str, Method)) else methods
    instances = [as_method(method, kind) for method in specs]
    method_of = {method.spec_for(kind): method for method in instances}
    if len(method_of) < len(instances):
        raise OptionError("a method is named twice; name every method once")
    return method_of


def _repeated(
    annotations: Annotations,
    methods: list[ClassMethod],
    folds: int,
    seeds: range,
    progress: Callable[[int, int], None] | None,
) -> HeldOut:
    """Return the likelihood of held-out annotations over several random splits."""
    size = len(methods) * folds
    splits = []
    for repeat, seed in enumerate(seeds):

        def advance(n_done: int, _total: int, offset: int = repeat * size) -> None:
            if progress is not None:
                progress(offset + n_done, size * len(seeds))

        splits.append(held_out(annotations, methods, folds=folds, seed=seed, progress=advance))
    return HeldOut(
        np.concatenate([split.annotation for split in splits]),
        np.concatenate([split.probability for split in splits], axis=1),
    )


def _timed(
    method: ClassMethod, annotations: Annotations, gold: Any, seed: int
) -> tuple[ClassAggregation, float, float]:
    """Return a fit, its seconds, and its megabytes."""
    tracemalloc.start()
    try:
        began = time.perf_counter()
        result = method.fit(annotations, gold=gold, seed=seed)
        seconds = time.perf_counter() - began
        return result, seconds, tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _scores(
    annotations: Annotations, held: HeldOut
) -> tuple[list[float], list[float], list[float]]:
    """Return mean log-likelihood, gap to the best, and its standard error, of every method.

    Labels on one item are not independent, so standard errors are clustered by item.
    """
    n_methods, n_scored = held.probability.shape
    if n_scored == 0:
        unknown = [math.nan] * n_methods
        return unknown, [0.0] * n_methods, [math.inf] * n_methods
    log = np.log(held.probability)  # (method, annotation)
    mean = log.mean(axis=1)
    gap = log[mean.argmax()] - log
    item = annotations.item[held.annotation]
    error = []
    for method_gap in gap:
        excess = np.bincount(item, method_gap - method_gap.mean(), minlength=annotations.n_items)
        error.append(float(np.sqrt((excess**2).sum()) / n_scored))
    return mean.tolist(), gap.mean(axis=1).tolist(), error


def _most_common(labels: Any, n_classes: int) -> Any:
    """Return the label that most methods give to every item."""
    votes: Floats = np.zeros((labels.shape[1], n_classes + 1))
    for row in labels:
        votes[np.arange(len(row)), row] += 1  # undecided, -1, is the last column
    best = votes.argmax(axis=1)
    return np.where(best == n_classes, -1, best)


def _contested(
    annotations: Annotations, names: list[str], labels: Any, items: Any, most: int
) -> tuple[ContestedItem, ...]:
    out = []
    for item in items.tolist():
        labels_of: dict[str, list[str]] = {}
        for name, label in zip(names, labels[:, item].tolist(), strict=True):
            labels_of.setdefault(
                "undecided" if label < 0 else annotations.classes[label], []
            ).append(name)
        out.append(ContestedItem(annotations.items[item], labels_of))
    out.sort(key=lambda entry: max(len(group) for group in entry.labels.values()))
    return tuple(out[:most])
