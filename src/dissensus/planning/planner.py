"""What to label next, by whom, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.gold import gold_codes
from ..answers.identifiability import Unidentifiable
from ..base.arrays import Floats, Integers
from ..base.storage import as_plain, as_rows
from ..base.tables import Drawable
from ..errors import DataError, OptionError
from ..formats import as_answers, as_truth
from ..formats.predictions import as_models
from ..registry import policies
from ..result import Table
from .choosing import Constraints, amounts_of, check_options, choose, keys_of, with_new
from .curve import Curve, Point, expected_curve
from .information import posterior_state
from .label_errors import LabelErrors, checks_needed, label_errors
from .policies import Policy

if TYPE_CHECKING:
    from ..pages.charts import Figure

_MIN_GAIN = 0.01  # information of a label of mean cost, in nats


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Drawable):
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
        labels above it in the plan; NaN where it cannot be told.
    accuracy
        Expected share of right labels, now and with the whole plan.
    errors
        How many labels are wrong now, with an interval.
    curve
        Expected accuracy for other budgets; `None` if not requested.
    target
        The accuracy to reach.
    reached
        Where the curve reaches the target; `None` beyond the curve.
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
    errors: LabelErrors
    target: float
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

    def _chart(self) -> tuple[Figure | None, str]:
        from ..aggregation.sections import curve_figure

        return curve_figure(self), "there is no curve to draw: plan with draws=10"

    def _table(self) -> Table:
        return self.table

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        return {
            "policy": self.policy,
            "labels": len(self),
            "cost": float(self.cost.sum()),
            "accuracy": as_plain({"now": self.accuracy[0], "with_plan": self.accuracy[1]}),
            "errors": as_plain(self.errors),
            "stop": self.stop,
            "reason": self.reason,
            "target": self.target,
            "reached": as_plain(self.reached),
            "curve": None if self.curve is None else as_plain(self.curve.points),
            "plan": as_rows(self.table),
        }


def plan_labels(
    annotations: Annotations | Any,
    result: ClassAggregation | None = None,
    *,
    budget: float,
    policy: str | Policy = "joint",
    cost: float | Mapping[Any, float] | None = None,
    limit: int | Mapping[Any, int] | None = None,
    per_item: int | None = None,
    batch: int | None = None,
    annotators: Iterable[Any] | None = None,
    truth: Any = None,
    available: Relation | Any = None,
    probabilities: npt.ArrayLike | None = None,
    target: float = 0.95,
    min_gain: float | None = None,
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
    truth
        Known labels of items drawn at random, as `{item: label}`, a pandas Series, a table or a
        file. Nothing is learned from them; they show how many labels are wrong.
    available
        Annotations, or what `read` takes, whose pairs of item and annotator are the only ones that
        can be requested.
    probabilities
        Probabilities of a classifier, (item, class), for `active-lab`; of several, (model, item,
        class).
    target
        The accuracy to reach. The advice is to stop where the lower end of its interval is reached.
    min_gain
        Information in nats per cost below which a label is not worth its cost; by default 0.01 for
        a label of mean cost.
    draws
        Simulated runs for the curve; 0 for no curve.
    seed
        Random seed.
    progress
        Called with the runs done and their number.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", "00001", items="abc")
    >>> plan_labels(annotations, budget=2, per_item=1, draws=0).table["item"].tolist()
    ['c', 'b']
    """
    method = policies.create(policy) if isinstance(policy, str) else policy
    annotations = as_answers(annotations, kind="classes")
    annotations.check_classes(
        "a plan", "of numbers, label the items next that `aggregate` gives the largest deviation"
    )
    check_options(
        annotations, budget=budget, per_item=per_item, batch=batch, target=target, draws=draws
    )
    allowed = np.ones(annotations.n_annotators, dtype=bool)
    if annotators is not None:
        annotations, result, allowed = with_new(annotations, result, annotators)
    if probabilities is not None:
        probabilities = as_models(annotations, probabilities)
    elif method.needs_probabilities:
        raise OptionError(f"{policies.describe(method)} needs the probabilities of a classifier")
    for names in ("items", "annotators", "classes"):
        fitted = annotations if result is None else result.answers
        if not np.array_equal(getattr(annotations, names), getattr(fitted, names)):
            raise DataError(f"the result has other {names} than the annotations; fit it to these")
    state = posterior_state(annotations, result, probabilities, seed)
    price = amounts_of(cost, annotations, "cost", 1.0)
    room = amounts_of(limit, annotations, "limit", annotations.n_items).astype(np.int64) * allowed
    keys = None
    if available is not None:
        relation = as_answers(available)
        keys = keys_of(relation, annotations)
    constraints = Constraints(
        budget=float(budget),
        cost=price,
        room=room,
        per_item=per_item,
        max_labels=batch,
        allowed_pairs=keys,
    )
    identifiable, unidentifiable = state.result.is_identifiable, state.result.unidentifiable
    selection = choose(state, method, constraints, np.random.default_rng(seed))
    curve = None
    if draws and identifiable.any():
        curve = expected_curve(
            state, method, constraints, draws=draws, seed=seed, progress=progress
        )
    errors = _errors(state.result, gold_codes(annotations, as_truth(truth)))
    accuracy = errors.accuracy[0]
    curve = None if curve is None else curve.anchored(errors)
    if min_gain is None:
        min_gain = _MIN_GAIN / float(price[room > 0].mean()) if (room > 0).any() else _MIN_GAIN
    best = float((selection.gain / price[selection.annotator]).max(initial=0.0))
    stop, reason = _verdict(
        errors,
        target=target,
        worthwhile=best >= min_gain,
        n=len(selection.item),
        unidentifiable=unidentifiable,
    )
    before, after = (
        np.where(identifiable[selection.item], right, np.nan)
        for right in (selection.before, selection.after)
    )
    lift = float(np.nansum(after - before) / max(int(identifiable.sum()), 1))
    return Plan(
        policy=policies.describe(method),
        annotations=annotations,
        item=selection.item,
        annotator=selection.annotator,
        gain=selection.gain,
        cost=price[selection.annotator],
        before=before,
        after=after,
        accuracy=(accuracy, accuracy if math.isnan(accuracy) else min(accuracy + lift, 1.0)),
        curve=curve,
        errors=errors,
        target=target,
        reached=None if curve is None else curve.reaching(target),
        stop=stop,
        reason=reason,
    )


def _errors(result: ClassAggregation, gold: Integers | None) -> LabelErrors:
    """Return how many labels are wrong; items without labels count with their prior."""
    labelled = result.answers.labels_per_item > 0
    n_checked = n_wrong = 0
    if gold is not None:
        checked = np.flatnonzero((gold >= 0) & labelled)
        n_checked = len(checked)
        if n_checked == 0:
            raise DataError("known labels are given, but for no item that has labels")
        n_wrong = int((result.label[checked] != gold[checked]).sum())
    confidence = np.where(result.is_identifiable, result.probabilities.max(axis=1), np.nan)
    return label_errors(confidence, n_checked=n_checked, n_wrong=n_wrong)


def _verdict(
    errors: LabelErrors,
    target: float,
    worthwhile: bool,
    n: int,
    unidentifiable: Unidentifiable | None,
) -> tuple[bool, str]:
    """Return whether to stop, and why."""
    right, low, high = errors.accuracy
    if unidentifiable is not None and math.isnan(right):
        nothing = () if n else ("No label can be requested within the budget and the limits.",)
        return False, " ".join((*nothing, *unidentifiable))
    of = "" if unidentifiable is None else f" of {errors.n_items} items"
    share = f"about {right:.1%} of the labels{of} are right ({low:.1%} to {high:.1%})"
    if errors.reaches(target):
        return True, f"Stop: {share}, the target is {target:.1%}."
    if n == 0:
        return False, f"No label can be requested within the budget and the limits; {share}."
    if worthwhile:
        return False, f"Go on: {share}, the target is {target:.1%}."
    remedy = f"check {checks_needed(target)} random items, or ask other annotators"
    return False, f"Further labels of these annotators hardly help; {share}: {remedy}."
