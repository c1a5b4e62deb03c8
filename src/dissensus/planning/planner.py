"""What to label next, by whom, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._plain import as_plain, as_rows
from .._probabilities import as_models
from .._relation import Floats, Integers, Relation
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..readers import as_annotations
from ..registry import policies
from ..result import Aggregation, Table, gold_codes
from ._choose import choose
from ._constraints import Constraints, amounts_of, check_options, keys_of, with_new
from ._posterior_state import posterior_state
from .curve import Curve, Gap, Point, expected_curve, gap_on
from .policy import Policy

_MIN_GAIN = 0.01  # information of a label of mean cost, in nats


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Labels to request, their expected gain, and when to stop.

    Attributes
    ----------
    policy
        The policy with its settings, as the registry writes it.
    annotations
        The annotations so far, with all annotators who may be asked.
    item, annotator
        Codes of the pairs to request, the most useful first.
    gain
        Expected information of each answer about the truth, in nats.
    cost
        The cost of each label.
    before, after
        Probability that the item's label is right, before this answer and with it, given the
        labels above it in the plan.
    accuracy
        Expected share of right labels, now and with the whole plan. Without gold it is the model's
        own estimate, which is mostly too high.
    gap
        The overconfidence on gold items; `None` without gold. It is subtracted from accuracy and
        curve.
    curve
        Expected accuracy for other budgets; `None` if not requested.
    target
        The requested accuracy, if any.
    reached
        Where the curve reaches the target; `None` without target, or beyond the curve.
    stop
        Whether to stop.
    reason
        The reason, in a sentence.
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
        """Return plain dictionaries, lists and numbers."""
        return {
            "policy": self.policy,
            "labels": len(self),
            "cost": float(self.cost.sum()),
            "accuracy": {"now": self.accuracy[0], "with_plan": self.accuracy[1]},
            "gap": as_plain(self.gap),
            "stop": self.stop,
            "reason": self.reason,
            "target": self.target,
            "reached": as_plain(self.reached),
            "curve": None if self.curve is None else as_plain(self.curve.points),
            "plan": as_rows(self.table),
        }


def plan(
    annotations: Annotations | Any,
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
    """Return which labels to request next, of which annotators, and whether to stop.

    Labelled pairs are not requested again, nor any pair twice.

    Parameters
    ----------
    annotations
        Annotations so far, a table, or a path that `read` takes; unlabelled items may be declared.
    result
        Their fit; by default five iterations of `hierarchical`, which are stable with few labels.
    budget
        The budget; without costs, the number of labels.
    policy
        A policy, or `name[setting=value,…]`.
    cost
        The cost of a label, for all annotators or `{annotator: cost}`.
    limit
        Labels that an annotator may still give, for all or `{annotator: limit}`.
    per_item
        More labels of one item, at most.
    batch
        Labels to request now, at most, if the rest of the budget should wait for their answers.
    annotators
        Annotators who may be asked; new names get the prior of all annotators. By default all who
        gave a label or are declared.
    gold
        Known labels, `{item: label}`. Nothing is learned from them; they calibrate the expected
        accuracy. Items should be chosen at random.
    available
        Annotations or numbers whose pairs of item and annotator are the only ones that can be
        requested.
    probabilities
        Probabilities of a classifier, (item, class), for `active-lab`; of several, (model, item,
        class).
    target
        The accuracy to reach.
    least
        Stop when no label has this information in nats per cost; by default 0.01 for a label of
        mean cost.
    draws
        Simulated runs for the curve; 0 for no curve.
    seed
        Random seed.
    progress
        Called with the runs done and their number.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", "00001", items="abc")
    >>> plan(annotations, budget=2, per_item=1, draws=0).table["item"].tolist()
    ['c', 'b']
    """
    method = policies.create(policy) if isinstance(policy, str) else policy
    annotations = as_annotations(annotations)
    annotations.check_classes(
        "a plan", "of numbers, label the items next that `aggregate` gives the largest deviation"
    )
    check_options(annotations, budget, per_item, batch, target, draws)
    allowed = np.ones(annotations.n_annotators, dtype=bool)
    if annotators is not None:
        annotations, result, allowed = with_new(annotations, result, annotators)
    if probabilities is not None:
        probabilities = as_models(annotations, probabilities)
    elif method.needs_probabilities:
        raise OptionError(f"{policies.describe(method)} needs the probabilities of a classifier")
    for names in ("items", "annotators", "classes"):
        fitted = annotations if result is None else result.annotations
        if not np.array_equal(getattr(annotations, names), getattr(fitted, names)):
            raise DataError(f"the result has other {names} than the annotations; fit it to these")
    state = posterior_state(annotations, result, probabilities, seed)
    price = amounts_of(cost, annotations, "cost", 1.0)
    room = amounts_of(limit, annotations, "limit", annotations.n_items).astype(np.int64) * allowed
    keys = None if available is None else keys_of(available, annotations)
    constraints = Constraints(float(budget), price, room, per_item, batch, keys)
    chosen = choose(state, method, constraints, np.random.default_rng(seed))
    curve = None
    if draws:
        curve = expected_curve(
            state, method, constraints, draws=draws, seed=seed, progress=progress
        )
    codes = gold_codes(annotations, gold)
    gap = None if codes is None else gap_on(state, codes)
    now = state.accuracy()
    if gap is not None:
        now = float(np.clip(now - gap.mean, 0, 1))
        curve = None if curve is None else curve.lowered(gap)
    if least is None:
        least = _MIN_GAIN / float(price[room > 0].mean()) if (room > 0).any() else _MIN_GAIN
    best = float((chosen.gain / price[chosen.annotator]).max(initial=0.0))
    stop, reason = _verdict(now, gap, target, best, least, len(chosen.item))
    lift = float((chosen.after - chosen.before).sum() / max(annotations.n_items, 1))
    return Plan(
        policies.describe(method),
        annotations,
        chosen.item,
        chosen.annotator,
        chosen.gain,
        price[chosen.annotator],
        chosen.before,
        chosen.after,
        (now, min(now + lift, 1.0)),
        curve,
        gap,
        target,
        curve.reaching(target) if curve is not None and target is not None else None,
        stop,
        reason,
    )


def _verdict(
    now: float, gap: Gap | None, target: float | None, best: float, enough: float, n_labels: int
) -> tuple[bool, str]:
    """Return whether to stop, and why."""
    source = "by the model" if gap is None else f"by {gap.n_items} known items"
    if target is not None and now >= target:
        reason = f"{now:.1%} of the labels are right {source}, the target is {target:.1%}."
        return True, f"Stop{', if the model is right' if gap is None else ''}: {reason}"
    if n_labels == 0:
        return True, "Stop: no annotator is left within the budget and the limits."
    if best < enough:
        return True, f"Stop: the best label gains {best:.2g} nats per cost, less than {enough:.2g}."
    if target is None:
        return False, f"Go on: the best label gains {best:.2g} nats per cost."
    return False, f"Go on: {now:.1%} of the labels are right {source}, not yet {target:.1%}."
