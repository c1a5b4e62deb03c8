"""Consensus: what is true of items whose answers are sets, rankings, marks, masks or texts.

One file per method, imported on first use. Where a kind reduces to classes, every method of
`aggregation` works too: `dawid-skene` on spans aggregates candidate spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from ..answers import Answers
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..consensus_base import ConsensusContext, ConsensusMethod
from ..registry import consensus_methods, registries
from . import Aggregator, Progress
from . import aggregate as aggregate_classes
from .aggregation import Consensus

if TYPE_CHECKING:
    from ..base.engine import Engine
    from ..result import Aggregation

__all__ = [
    "Consensus",
    "ConsensusContext",
    "ConsensusMethod",
    "aggregate",
    "consensus",
    *(target.partition(":")[2] for target in consensus_methods.table.values()),
]


def __getattr__(name: str) -> Any:
    return consensus_methods.load(name)


def consensus(
    answers: Answers,
    method: str | ConsensusMethod = "auto",
    *,
    gold: Answers | Mapping[Any, Any] | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Consensus:
    """Infer what is true of every item from answers of any kind but classes and numbers.

    Parameters
    ----------
    answers
        The answers.
    method
        A method, or `name[setting=value,…]`; `auto` is the default of the kind.
    gold
        Known answers: `{item: value}` with values as in rows, or answers of one annotator.
    seed
        Random seed.
    engine
        Where to work; by default the threads of this machine.
    progress
        Called after every iteration with its number and the objective.
    """
    consensus_method = (
        registries[answers.kind].create(method) if isinstance(method, str) else method
    )
    return consensus_method.fit(answers, gold=gold, seed=seed, engine=engine, progress=progress)


@overload
def aggregate(
    annotations: Answers, method: str | ConsensusMethod = ..., *, gold: Any = ..., **context: Any
) -> Consensus: ...


@overload
def aggregate(
    annotations: Any, method: str | Aggregator = ..., *, gold: Any = ..., **context: Any
) -> Aggregation: ...


def aggregate(
    annotations: Any, method: Any = "auto", *, gold: Any = None, **context: Any
) -> Aggregation | Consensus:
    """Infer what is true of every item: labels from annotations, a consensus from answers.

    Answers go to `consensus`, annotations to `aggregation.aggregate`; both take `method`, `gold`,
    `seed`, `engine` and `progress`. Paths and tables are read first, see `readers.read`.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> aggregate(annotations, "majority").labels.tolist()
    ['0', '1']
    """
    if not isinstance(annotations, (Annotations, Answers, Numbers)):
        from ..formats import Reading, read

        annotations = annotations if isinstance(annotations, Reading) else read(annotations)
    if isinstance(annotations, Answers):
        return consensus(annotations, method, gold=gold, **context)
    return aggregate_classes(annotations, method, gold=gold, **context)
