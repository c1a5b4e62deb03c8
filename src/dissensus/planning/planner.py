"""What to label next, by whom, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.gold import gold_codes
from ..answers.identifiability import Unidentifiable
from ..base.arrays import Floats, Integers
from ..base.storage import as_plain, as_rows
from ..base.tables import columns_of
from ..dispatch import by_kind
from ..errors import DataError, OptionError
from ..formats import as_answers, as_truth
from ..formats.predictions import as_models
from ..registry import policies
from ..result import Result, Table
from .choosing import Constraints, Limits, choose
from .curve import Curve, Point, expected_curve
from .information import posterior_state
from .label_errors import LabelErrors, checks_needed, label_errors
from .policies import Policy

if TYPE_CHECKING:
    from ..pages.charts import Figure
    from ..pages.sections import Section

_MIN_GAIN = 0.01  # information of a label of mean cost, in nats


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Result):
    """What to request next, the expected gain, and when to stop.

    Of classes, labels are requested: pairs of an item and an annotator. Of other kinds, items are
    shown again, and what belongs to labels is empty.

    Attributes
    ----------
    kind
        The kind of the answers.
    policy
        The policy with its settings, as the registry writes it.
    annotations
        The answers so far; of classes with all annotators who may be asked.
    item, annotator
        Codes of what to request, the most useful first.
    gain
        Expected information of each answer about the truth, in nats; of other kinds, by how much
        the expected distance falls.
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
    items
        Items to show again, by column: item, n_answers so far, their mean distance, the expected
        distance, further answers, gain; `None` for classes.
    distance
        The mean distance of two answers to the same item.
    budget
        Number of further answers to show items for.
    """

    kind: str
    policy: str
    annotations: Any
    item: Integers
    gain: Floats
    cost: Floats
    reason: str
    annotator: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    before: Floats = field(default_factory=lambda: np.zeros(0))
    after: Floats = field(default_factory=lambda: np.zeros(0))
    accuracy: tuple[float, float] = (math.nan, math.nan)
    curve: Curve | None = None
    errors: LabelErrors | None = None
    target: float = math.nan
    reached: Point | None = None
    stop: bool = False
    items: Table | None = None
    distance: float = math.nan
    budget: int = 0

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        noun = "labels" if self.items is None else "items to show again"
        ended = "; stop" if self.stop else ""
        return f"<Plan by {self.policy}: {len(self)} {noun} for {self.cost.sum():g}{ended}>"

    @property
    def table(self) -> Table:
        """The plan as columns, ready to be written."""
        if self.items is not None:
            return self.items
        return {
            "item": self.annotations.items[self.item],
            "annotator": self.annotations.annotators[self.annotator],
            "gain": self.gain,
            "gain_per_cost": self.gain / self.cost,
            "cost": self.cost,
            "accuracy_before": self.before,
            "accuracy_after": self.after,
        }

    @property
    def tables(self) -> Mapping[str, Table]:
        """The plan, and the curve if it was requested."""
        if self.curve is None:
            return {"plan": self.table}
        return {"plan": self.table, "curve": columns_of(as_plain(self.curve.points))}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reason, and what accuracy is expected."""
        out, (right_now, right_then) = [self.reason], self.accuracy
        if right_now == right_now:
            out.append(
                f"Expected to be right: {right_now:.1%} now, {right_then:.1%} with this plan."
            )
        if self.curve is not None and not self.stop:
            expected = f"not expected within {self.curve.points[-1].labels} more labels"
            if self.reached is not None:
                after = f"{self.reached.labels} more labels, for {self.reached.cost:.4g}"
                expected = f"expected after {after}"
            out.append(f"{self.target:.1%} is {expected}.")
        return tuple(out)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Expected accuracy against cost."""
        from .sections import curve_figure

        figure = curve_figure(self)
        return {} if figure is None else {"curve": figure}

    def sections(self) -> tuple[Section, ...]:
        """Return what to request, what accuracy that is expected to reach, and the advice."""
        from .sections import plan_sections

        return plan_sections(self)

    def _chart(self) -> tuple[Figure | None, str]:
        return self.figures.get("curve"), "there is no curve to draw: plan with draws=10"

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        if self.items is not None:
            content = {"kind": self.kind, "distance": self.distance, "budget": self.budget}
            return as_plain(content | {"reason": self.reason}) | {"items": as_rows(self.items)}
        return {
            "kind": self.kind,
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


class Advice(NamedTuple):
    """Settings of when to stop."""

    target: float
    min_gain: float | None
    truth: Any
    draws: int


@by_kind(read=as_answers, limits=Limits, advice=Advice)
def plan(
    answers: Any,
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

    Labelled pairs are not requested again, nor any pair twice. Of kinds other than classes, items
    to show again are listed; they take `budget` and `per_item` alone.

    Parameters
    ----------
    answers
        Answers so far, a table, or a path that `read` takes; unlabelled items may be declared.
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
        More labels of one item, at most; of other kinds, answers to an item, those that are there
        included.
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
    >>> plan(annotations, budget=2, per_item=1, draws=0).table["item"].tolist()
    ['c', 'b']
    """
    raise NotImplementedError


@plan.for_kind("classes")
def plan_labels(
    annotations: Annotations,
    result: ClassAggregation | None,
    *,
    policy: str | Policy,
    limits: Limits,
    advice: Advice,
    probabilities: npt.ArrayLike | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Plan:
    """Return which labels to request next."""
    method = policies.create(policy) if isinstance(policy, str) else policy
    limits.check(annotations)
    target, draws = advice.target, advice.draws
    if not 0 < target < 1:
        raise OptionError(f"target = {target}, but it must be above 0 and below 1")
    if draws < 0:
        raise OptionError(f"draws = {draws}, but it must be at least 0")
    annotations, result, constraints = limits.constraints(annotations, result)
    if probabilities is not None:
        probabilities = as_models(annotations, probabilities)
    elif method.needs_probabilities:
        raise OptionError(f"{policies.describe(method)} needs the probabilities of a classifier")
    for names in ("items", "annotators", "classes"):
        fitted = annotations if result is None else result.answers
        if not np.array_equal(getattr(annotations, names), getattr(fitted, names)):
            raise DataError(f"the result has other {names} than the annotations; fit it to these")
    state = posterior_state(annotations, result, probabilities, seed)
    identifiable = state.result.is_identifiable
    selection = choose(state, method, constraints, np.random.default_rng(seed))
    curve = None
    if draws and identifiable.any():
        curve = expected_curve(
            state, method, constraints, draws=draws, seed=seed, progress=progress
        )
    errors = _errors(state.result, gold_codes(annotations, as_truth(advice.truth)))
    accuracy = errors.accuracy[0]
    curve = None if curve is None else curve.anchored(errors)
    price = constraints.cost
    stop, reason = _verdict(
        errors,
        target=target,
        worthwhile=_is_worthwhile(selection.gain / price[selection.annotator], constraints, advice),
        n=len(selection.item),
        unidentifiable=state.result.unidentifiable,
    )
    before, after = (
        np.where(identifiable[selection.item], right, np.nan)
        for right in (selection.before, selection.after)
    )
    lift = float(np.nansum(after - before) / max(int(identifiable.sum()), 1))
    return Plan(
        kind=annotations.kind,
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


def _is_worthwhile(gain_per_cost: Floats, constraints: Constraints, advice: Advice) -> bool:
    """Return whether the most useful label is worth its cost."""
    price, least = constraints.cost[constraints.room > 0], advice.min_gain
    if least is None:
        least = _MIN_GAIN / float(price.mean()) if len(price) else _MIN_GAIN
    return float(gain_per_cost.max(initial=0.0)) >= least


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
