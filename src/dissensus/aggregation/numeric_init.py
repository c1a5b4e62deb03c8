"""Aggregation of numbers: the values of items from the numbers of several annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answers.numbers import Numbers
from ..answers.selections import without_own
from ..formats import as_annotations, as_truth
from ..registry import estimators
from .numbers import Estimator

if TYPE_CHECKING:
    from ..result import Estimation
    from ..method import Progress
    from .numeric_catd import Catd as Catd
    from .numeric_crh import Crh as Crh
    from .gaussian import Gaussian as Gaussian
    from .lfc_n import LfcN as LfcN
    from .mean import Mean as Mean
    from .median import Median as Median
    from .peer_grading import PeerGrading as PeerGrading
    from .numeric_pm import Pm as Pm
    from .trimmed_mean import TrimmedMean as TrimmedMean

__all__ = [
    "Estimator",
    "estimate",
    *(target.partition(":")[2] for target in estimators.table.values()),
]


def __getattr__(name: str) -> Any:
    return estimators.load(name)


def estimate(
    annotations: Numbers | str | Path | Any,
    method: str | Estimator | None = None,
    *,
    gold: Any = None,
    authors: Mapping[str, str] | str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimation:
    """Infer the value of every item.

    Parameters
    ----------
    annotations
        The numbers; or annotations, a path or a table whose labels are numbers.
    method
        A method, or `name[setting=value,…]`; by default `mean`, and `peer-grading` with authors.
        Where annotators are biased and items have few
        answers, `gaussian[rate=within]` may be closer to the truth.
    gold
        Known values, as `{item: number}`, a pandas Series, a table or a file: they are kept, and
        methods with parameters learn from them.
    authors
        Whose item it is, `{item: annotator}`, or a file: answers of authors about their own items
        are left out, and `peer-grading` ties the reliability of graders to their own grade.
    seed
        Random seed.
    progress
        Called after every iteration with its number and the objective.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])
    >>> estimate(annotations, "median").value.tolist()
    [2.0, 5.0]
    """
    if not isinstance(annotations, Numbers):
        from ..formats import as_numbers

        annotations = as_numbers(as_annotations(annotations), annotations)
    method = method or ("mean" if authors is None else "peer-grading")
    chosen = estimators.create(method) if isinstance(method, str) else method
    if authors is not None:
        from ..formats.side_tables import read_authors

        known = authors if isinstance(authors, Mapping) else read_authors(authors)
        annotations, _ = without_own(annotations, known)
        if "authors" in chosen.side_tables:
            chosen = replace(chosen, authors=known)  # type: ignore[call-arg]
    if chosen.side_tables:
        from ..formats.side_tables import read_side_tables

        chosen = read_side_tables(chosen, chosen.side_tables)
    return chosen.fit(annotations, gold=as_truth(gold), seed=seed, progress=progress)
