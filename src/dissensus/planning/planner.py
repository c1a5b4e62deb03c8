"""What to label next, by whom, and whether to go on at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._relation import Floats, Integers, Relation
from ..annotations import Annotations
from ..errors import OptionError
from ..registry import policies
from ..result import Aggregation, Table, gold_codes
from ._choose import Constraints, Selection, choose
from ._constraints import (
    amounts_of,
    check_options,
    check_same,
    checked_probabilities,
    keys_of,
    with_new,
)
from ._posterior_state import posterior_state
from .curve import Curve, Gap, Point, expected_curve, gap_on, mean_cost
from .policy import Policy

__all__ = ["Plan", "plan"]

_LEAST = 0.01  # nats that a label of mean cost should tell


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Which labels to ask for, what they are expected to bring, and when to stop.

    Attributes
    ----------
    policy
        The policy with its settings, as the registry writes it.
    annotations
        The annotations so far, with everybody who may be asked.
    item, annotator
        Codes of the pairs to ask, the worthiest first.
    gain
        What each answer is expected to tell about the truth, in nats.
    cost
        What each label costs.
    before, after
        Probability that the item's label is right, before this answer and with it. Labels that
        stand above in the plan are taken to have come.
    accuracy
        Share of items whose label is expected to be right, now and with the whole plan. Without
        gold the model's own word, which is mostly too high.
    gap
        What gold says about that; `None` without gold. It is taken off accuracy and curve.
    curve
        What is expected for other budgets; `None` if it was not asked for.
    target
        The accuracy that was asked for, if any.
    reached
        Where the curve reaches the target; `None` without target, or beyond the curve.
    stop
        Whether to stop asking.
    reason
        Why, or why not, in a sentence.
    """

    policy: str
    annotations: Annotations
    item: Integers
    annotator: Integers
    gain: Floats
    cost: Floats
    before: Floats
    after: Floats
    accuracy: tuple[float, float]
    curve: Curve | None
    gap: Gap | None
    target: float | None
    reached: Point | None
    stop: bool
    reason: str

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        ended = "; stop" if self.stop else ""
        return f"<Plan by {self.policy}: {len(self)} labels for {self.cost.sum():g}{ended}>"

    @property
    def table(self) -> Table:
        """The plan as columns, ready to be written."""
        return {
            "item": self.annotations.items[self.item],
            "annotator": self.annotations.annotators[self.annotator],
            "gain": self.gain,
            "gain_per_cost": self.gain / self.cost,
            "cost": self.cost,
            "accuracy_before": self.before,
            "accuracy_after": self.after,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        columns = {name: values.tolist() for name, values in self.table.items()}
        rows = zip(*columns.values(), strict=True)
        return {
            "policy": self.policy,
            "labels": len(self),
            "cost": float(self.cost.sum()),
            "accuracy": {"now": self.accuracy[0], "with_plan": self.accuracy[1]},
            "gap": None if self.gap is None else vars(self.gap),
            "stop": self.stop,
            "reason": self.reason,
            "target": self.target,
            "reached": None if self.reached is None else vars(self.reached),
            "curve": None if self.curve is None else self.curve.as_dict(),
            "plan": [dict(zip(columns, row, strict=True)) for row in rows],
        }


def plan(
    annotations: Annotations,
    result: Aggregation | None = None,
    *,
    budget: float,
    policy: str | Policy = "joint",
    cost: float | Mapping[Any, float] | None = None,
    limit: int | Mapping[Any, int] | None = None,
    per_item: int | None = None,
    batch: int | None = None,
    annotators: Iterable[Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
    available: Relation | None = None,
    probabilities: npt.ArrayLike | None = None,
    target: float | None = None,
    least: float | None = None,
    draws: int = 10,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Return which labels to ask for next, of whom, and whether to go on at all.

    No pair is planned that is known already, nor any twice.

    Parameters
    ----------
    annotations
        The annotations so far; items without labels may be declared.
    result
        A fit of them; by default five rounds of `hierarchical`, which hold with few labels, too.
    budget
        What may be spent; without costs, the number of labels.
    policy
        A policy, or `name[setting=value,…]`.
    cost
        What a label costs, for everybody or `{annotator: cost}`.
    limit
        Labels that an annotator may still give, for everybody or `{annotator: limit}`.
    per_item
        More labels of one item, at most.
    batch
        Labels to ask for now, at most, if less than the budget should wait for their answers.
    annotators
        Who may be asked; names that are new are taken for one of the crowd. By default everybody
        who has given a label or is declared.
    gold
        Known labels, `{item: label}`. Nothing is learned from them; they tell how far to believe
        the accuracy that is expected. Best are items chosen at random.
    available
        Annotations or numbers whose pairs of item and annotator are the only ones that can be
        asked.
    probabilities
        What a classifier says of the items, (item, class), for `active-lab`.
    target
        The accuracy that is enough.
    least
        Stop when no label tells that many nats for every unit of cost; by default 0.01 for a
        label of mean cost.
    draws
        Futures to draw for the curve; 0 for no curve.
    seed
        Decides what is random.
    progress
        Called with the futures that are drawn and how many there will be.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", "00001", items="abc")
    >>> found = plan(annotations, budget=2, per_item=1, draws=0)
    >>> found.table["item"].tolist()
    ['c', 'b']
    """
    chosen = policies.create(policy) if isinstance(policy, str) else policy
    check_options(annotations, budget, per_item, batch, target, draws)
    if annotators is not None:
        annotations, result, known_pairs = with_new(annotations, result, annotators)
    else:
        known_pairs = np.ones(annotations.n_annotators, dtype=bool)
    if chosen.needs_probabilities and probabilities is None:
        raise OptionError(f"{policies.describe(chosen)} needs the probabilities of a classifier")
    if result is not None:
        check_same(annotations, result)
    posterior = None if probabilities is None else checked_probabilities(probabilities, annotations)
    view = posterior_state(annotations, result, posterior, seed)
    price = amounts_of(cost, annotations, "cost", 1.0)
    room = np.where(
        known_pairs,
        amounts_of(limit, annotations, "limit", annotations.n_items).astype(np.int64),
        0,
    )
    keys = None if available is None else keys_of(available, annotations)
    constraints = Constraints(float(budget), price, room, per_item, batch, keys)
    found = choose(view, chosen, constraints, np.random.default_rng(seed))
    curve = None
    if draws:
        curve = expected_curve(view, chosen, constraints, draws=draws, seed=seed, progress=progress)
    codes = gold_codes(annotations, gold)
    gap = None if codes is None else gap_on(view, codes)
    now = view.accuracy()
    if gap is not None:
        now = float(np.clip(now - gap.mean, 0, 1))
        curve = None if curve is None else curve.lowered(gap)
    enough = _LEAST / mean_cost(price, room) if least is None else least
    best = float((found.gain / price[found.annotator]).max(initial=0.0))
    stop, reason = _verdict(now, gap, target, best, enough, len(found.item))
    reached = curve.reaching(target) if curve is not None and target is not None else None
    return Plan(
        policies.describe(chosen),
        annotations,
        found.item,
        found.annotator,
        found.gain,
        price[found.annotator],
        found.before,
        found.after,
        (now, min(now + _lift(found, annotations.n_items), 1.0)),
        curve,
        gap,
        target,
        reached,
        stop,
        reason,
    )


def _verdict(
    now: float, gap: Gap | None, target: float | None, best: float, enough: float, n_labels: int
) -> tuple[bool, str]:
    """Return whether to stop, and why."""
    word = "by the model" if gap is None else f"by {gap.n_items} known items"
    if target is not None and now >= target:
        gain = f"{now:.1%} of the labels are right {word}, {target:.1%} are asked for."
        return True, f"Stop{', if the model is right' if gap is None else ''}: {gain}"
    if n_labels == 0:
        return True, "Stop: nobody is left to ask within the budget and the limits."
    if best < enough:
        return True, f"Stop: the best label tells {best:.2g} nats per cost, less than {enough:.2g}."
    if target is None:
        return False, f"Go on: the best label tells {best:.2g} nats per cost."
    return False, f"Go on: {now:.1%} of the labels are right {word}, not yet {target:.1%}."


def _lift(found: Selection, n_items: int) -> float:
    """Return how much the plan adds to the share of items whose label is right."""
    return float((found.after - found.before).sum() / max(n_items, 1))
