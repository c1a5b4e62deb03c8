"""Simulated annotators and their answers, with known truth: what strategies are drawn with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..answers import Answers
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.arrays import Array
from ..base.names import Names, as_names, numbered
from ..errors import OptionError
from ..registry import answer_simulators, simulators, split_spec
from .confusions import GivenMatrices
from .draws import all_at_once, one_by_one
from .raters import JudgedItems, simulate_judges
from .strategy import AnswerStrategy, CrowdParameters, Design, Strategy, assign

__all__ = [
    "AnswerSimulation",
    "AnswerStrategy",
    "CrowdParameters",
    "JudgedItems",
    "Simulation",
    "Strategy",
    "simulate",
    "simulate_answers",
    "simulate_judges",
    "simulate_labels",
]


@dataclass(frozen=True, eq=False)
class AnswerSimulation:
    """Simulated answers of other kinds than classes and numbers, and their truth."""

    answers: Answers
    truth: Answers | dict[str, float]  # one answer per item, or the scores of things
    crowd: dict[str, Array]  # what was drawn of annotators
    options: dict[str, Any]  # every argument, ready for JSON

    def write(self, folder: str | Path, ending: str) -> None:
        """Write answers and truth as tables of an ending, and every option, to a folder."""
        from ..formats.writers_init import write
        from ..formats.writing import write_columns, write_json

        folder, truth = Path(folder), self.truth
        folder.mkdir(parents=True, exist_ok=True)
        write(self.answers, folder / f"answers.{ending}")
        file = folder / f"truth.{ending}"
        if isinstance(truth, dict):
            scores = {"thing": as_names(truth), "score": np.array(list(truth.values()))}
            write_columns(scores, file)
        else:
            write(truth, file)
        write_json(folder / "metadata.json", self.options, indent=2)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated annotations and their truth."""

    annotations: Annotations | Numbers
    truth: Array  # (item): a class, or a number
    crowd: CrowdParameters
    options: dict[str, Any]  # every argument, ready for JSON
    classes: Names | None = None  # none where the truth is numbers

    @property
    def truths(self) -> dict[str, str] | dict[str, float]:
        """The truth by name: `{item: class}`, or `{item: number}`."""
        values = self.truth if self.classes is None else self.classes[self.truth]
        return dict(zip(self.annotations.items.tolist(), values.tolist(), strict=True))

    @property
    def extras(self) -> dict[str, Array]:
        """Other parameters that were drawn, besides the confusion matrices."""
        return self.crowd.extras


@overload
def simulate(strategy: AnswerStrategy, **settings: Any) -> AnswerSimulation: ...


@overload
def simulate(strategy: Any = ..., **settings: Any) -> Any: ...


def simulate(strategy: Any = "hammer-spammer", **settings: Any) -> Any:
    """Draw annotators and their answers to items with known truth.

    `objects`, `comparisons`, `masks` and `sets` go to `simulate_answers`, other strategies to
    `simulate_labels`; both take `n_items`, `n_annotators`, `feedback` and `seed`.

    Examples
    --------
    >>> simulate("sets", n_items=3, n_annotators=2).answers.kind
    'sets'
    """
    if is_of_answers(strategy):
        return simulate_answers(strategy, **settings)
    return simulate_labels(strategy, **settings)


def is_of_answers(strategy: Any) -> bool:
    """Return whether a strategy draws answers of other kinds than classes and numbers."""
    if not isinstance(strategy, str):
        return isinstance(strategy, AnswerStrategy)
    name = split_spec(strategy)[0].strip().casefold()
    return name in answer_simulators.table


def simulate_answers(
    strategy: str | AnswerStrategy,
    *,
    n_items: int = 20,
    n_annotators: int = 1,
    feedback: int | None = None,
    seed: int = 0,
) -> AnswerSimulation:
    """Draw answers of other kinds than classes and numbers.

    Parameters
    ----------
    strategy
        A strategy, or `name[setting=value,…]`.
    n_items, n_annotators
        Number of items and of annotators.
    feedback
        Answers per item; all annotators if not given.
    seed
        Random seed.
    """
    model = answer_simulators.create(strategy) if isinstance(strategy, str) else strategy
    rng = np.random.default_rng(seed)
    drawn = model.draw(assign(n_items, n_annotators, feedback, rng), rng)
    spec = answer_simulators.describe(model)
    options: dict[str, Any] = {"strategy": spec, "settings": asdict(model)}
    options |= {"n_items": n_items, "n_annotators": n_annotators, "feedback": feedback}
    return AnswerSimulation(drawn.answers, drawn.truth, drawn.crowd, options | {"seed": seed})


def simulate_labels(
    strategy: str | Strategy = "hammer-spammer",
    *,
    n_items: int = 20,
    n_annotators: int = 1,
    n_classes: int = 2,
    feedback: int | None = None,
    workerload: int | None = None,
    imbalance: bool = False,
    seed: int = 0,
    fast: bool = False,
    matrices: npt.ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Draw annotators and their labels of items with known truth.

    Parameters
    ----------
    strategy
        A strategy, or `name[setting=value,…]`.
    n_items
        Number of items.
    n_annotators
        Number of annotators.
    n_classes
        Number of classes; numeric answers have none.
    feedback
        Labels per item, at most; all annotators if not given. As with peerannot, no item gets
        more labels than an annotator may give (`workerload`).
    workerload
        Labels per annotator, at most; all items if not given.
    imbalance
        Whether the number of labels differs between items, from one up to what is allowed.
    seed
        Random seed.
    fast
        Draw everything at once, on all cores, instead of item by item. The truth and the crowd
        stay the same, the answers do not; every item gets its `feedback`, or it is an error.
    matrices
        Confusion matrices (annotator, true class, given class) for `given-matrices`.
    progress
        Called with the items done and their number.

    Examples
    --------
    >>> drawn = simulate_labels("independent-confusion", n_items=200, n_annotators=30, n_classes=5,
    ...                  feedback=10)
    >>> drawn.annotations
    <Annotations: 2000 labels by 30 annotators on 200 items; classes 0, 1, 2, 3, 4>
    >>> drawn.truth[:8].tolist()
    [4, 3, 2, 1, 1, 0, 0, 0]
    >>> drawn.crowd.confusion[0, 0].round(4).tolist()
    [0.3902, 0.0576, 0.3646, 0.086, 0.1015]
    """
    model = simulators.create(strategy) if isinstance(strategy, str) else strategy
    spec = simulators.describe(model)
    if matrices is not None and not isinstance(model, GivenMatrices):
        raise OptionError(f"matrices are for given-matrices, but the strategy is {spec}")
    design = Design(
        n_items=n_items,
        n_annotators=n_annotators,
        n_classes=n_classes,
        feedback=feedback,
        workerload=workerload,
        imbalance=imbalance,
        seed=seed,
        fast=fast,
        matrices=matrices,
    )
    progress = progress or (lambda _n_items, _total: None)
    rng = np.random.default_rng(seed)
    truth = model.truth(design, rng)
    crowd = model.crowd(design, rng)
    if fast:
        starts, annotator, answer = all_at_once(
            model, design, crowd=crowd, truth=truth, progress=progress
        )
    else:
        starts, annotator, answer = one_by_one(
            model, design, crowd=crowd, truth=truth, rng=rng, progress=progress
        )
    # Rows are sorted already; `from_codes` would need memory to check it.
    columns: dict[str, Any] = {
        "index": starts,
        "annotator": annotator,
        "items": numbered(n_items),
        "annotators": numbered(n_annotators),
    }
    sizes = {name: getattr(design, name) for name in vars(design) if name != "matrices"}
    options = {"strategy": spec, "settings": asdict(model), **sizes}
    if model.numeric:
        return Simulation(Numbers(value=answer, **columns), truth, crowd, options)
    annotations = Annotations(label=answer, classes=numbered(n_classes), **columns)
    return Simulation(annotations, truth, crowd, options, annotations.classes)
