"""Aggregation: what is true of every item, from the answers of several annotators.

A family of methods is a file, imported on first use. `aggregate` takes answers of every kind: the
registry has the methods for each. Where a kind reduces to classes, every method for classes works
on it too: `dawid-skene` on spans aggregates candidate spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from ..answers.annotations import Annotations
from ..answers.base import Answers
from ..answers.numbers import Numbers
from ..answers.selections import without_own
from ..errors import MethodError
from ..formats import as_answers, as_truth
from ..formats.side_tables import read_authors, read_side_tables
from ..method import FitContext, Fitted, Method, Progress, no_progress
from ..registry import methods
from .aggregation import Aggregation, AnswerAggregation, ClassAggregation, NumberAggregation
from .classes import ClassContext, ClassMethod, check_size
from .em import EM, Expected

if TYPE_CHECKING:
    from ..base.arrays import Floats
    from ..base.engine import Engine
    from .auto import Auto as Auto
    from .bcc import Bcc as Bcc
    from .bcc import Cbcc as Cbcc
    from .crossed_effects import CrossedEffects as CrossedEffects
    from .dawid_skene import DawidSkene as DawidSkene
    from .dawid_skene import DawidSkeneMap as DawidSkeneMap
    from .dawid_skene import FastDawidSkene as FastDawidSkene
    from .dawid_skene import HybridDawidSkene as HybridDawidSkene
    from .dawid_skene import Wds as Wds
    from .dswc import Dswc as Dswc
    from .dswc import DswcVb as DswcVb
    from .glad import Glad as Glad
    from .lfc import Lfc as Lfc
    from .m_msr import MMsr as MMsr
    from .mace import Mace as Mace
    from .message_passing import Kos as Kos
    from .message_passing import ViBp as ViBp
    from .message_passing import ViMf as ViMf
    from .minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from .multidimensional import Multidimensional as Multidimensional
    from .one_coin import Diagonal as Diagonal
    from .one_coin import Hierarchical as Hierarchical
    from .one_coin import OneCoin as OneCoin
    from .one_coin import TwoLevel as TwoLevel
    from .ordinal_distance import OrdinalDistance as OrdinalDistance
    from .ordinal_distance import OrdinalSplit as OrdinalSplit
    from .ordinal_latent import OrdinalLatent as OrdinalLatent
    from .truth_discovery import Catd as Catd
    from .truth_discovery import Crh as Crh
    from .truth_discovery import Pm as Pm
    from .votes import GoldMajority as GoldMajority
    from .votes import Majority as Majority
    from .votes import NaiveSoft as NaiveSoft
    from .votes import TwoThirds as TwoThirds
    from .votes import Weighted as Weighted
    from .weighted_votes import Iwmv as Iwmv
    from .weighted_votes import LogOdds as LogOdds
    from .weighted_votes import Plantnet as Plantnet
    from .weighted_votes import Wawa as Wawa
    from .weighted_votes import Zbs as Zbs

# The class of every method → the methods of a kind that it is one of.
_FAMILIES = {cls: family for family in methods.values() for cls in family.classes}

__all__ = [
    "EM",
    "Aggregation",
    "AnswerAggregation",
    "ClassAggregation",
    "ClassContext",
    "ClassMethod",
    "Expected",
    "FitContext",
    "Fitted",
    "Method",
    "NumberAggregation",
    "Progress",
    "aggregate",
    "as_method",
    "check_size",
    "no_progress",
    *_FAMILIES,
]


def __getattr__(name: str) -> Any:
    return _FAMILIES.get(name, methods["classes"]).load(name)


def as_method(method: str | Method[Any, Any], kind: str = "classes") -> Any:
    """Return a method for a kind from its specification; files that its settings name are read."""
    created = methods[kind].create(method) if isinstance(method, str) else method
    if not isinstance(created, Method):
        raise MethodError(f"a method is a name or a Method, not {method!r}")
    if created.side_tables:
        return read_side_tables(created, created.side_tables)
    return created


class _Settings(TypedDict, total=False):
    """The keywords of `aggregate`, for type checkers."""

    gold: Any
    authors: Mapping[str, str] | str | Path | None
    start: ClassAggregation | Floats | None
    features: Floats | None
    seed: int
    engine: Engine | None
    progress: Progress | None


@overload
def aggregate(
    answers: Annotations, method: str | ClassMethod = ..., **settings: Unpack[_Settings]
) -> ClassAggregation: ...


@overload
def aggregate(
    answers: Numbers, method: str | Method[Any, Any] = ..., **settings: Unpack[_Settings]
) -> NumberAggregation: ...


@overload
def aggregate(
    answers: Answers, method: str | Method[Any, Any] = ..., **settings: Unpack[_Settings]
) -> AnswerAggregation: ...


@overload
def aggregate(
    answers: Any, method: str | Method[Any, Any] = ..., **settings: Unpack[_Settings]
) -> Any: ...


def aggregate(
    answers: Any,
    method: str | Method[Any, Any] = "auto",
    *,
    gold: Any = None,
    authors: Mapping[str, str] | str | Path | None = None,
    start: ClassAggregation | Floats | None = None,
    features: Floats | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Any:
    """Infer what is true of every item.

    Parameters
    ----------
    answers
        Answers of any kind, or anything that `read` takes: a path, a pandas, polars or Arrow
        table, a mapping.
    method
        A method for answers of this kind, or `name[setting=value,…]`; `auto` is the default of the
        kind.
    gold
        What is known, as `{item: answer}`, a pandas Series, a table or a file: it is kept, and
        methods with parameters learn from it.
    authors
        Whose item it is, `{item: annotator}`, or a file: answers of authors about their own items
        are left out.
    start
        What to start from: an earlier result or a posterior (item, class). Only iterative methods
        for classes use it.
    features
        Features of the items, (item, feature), for methods for classes that use them.
    seed
        Random seed, for ties and random starts.
    engine
        Where to work; by default the threads of this machine.
    progress
        Called after every iteration with its number and the objective.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> aggregate(annotations, "majority").labels.tolist()
    ['0', '1']
    """
    answers = as_answers(answers)
    if authors is not None and method == "auto":
        method = methods[answers.kind].by_authors
    fitted_by: Method[Any, Any] = as_method(method, answers.kind)
    if authors is not None:
        author_of = authors if isinstance(authors, Mapping) else read_authors(authors)
        fitted_by = fitted_by.with_authors(author_of)
        answers, _ = without_own(answers, author_of)
    return fitted_by.fit(
        answers,
        gold=as_truth(gold) if fitted_by.gold_is_labels else gold,
        start=start,
        features=features,
        seed=seed,
        engine=engine,
        progress=progress,
    )
