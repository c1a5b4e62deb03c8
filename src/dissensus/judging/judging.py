"""All questions about models as annotators, as far as the data allow, and a plan for people.

The plan says whom to ask about what, and when to stop, knowing what models predict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..answers.annotations import Annotations, Scale
from ..base.arrays import Integers
from ..base.names import Names
from ..base.storage import as_plain
from ..errors import OptionError
from ..formats import as_answers, as_truth
from ..planning import Plan
from ..planning import plan as plan_labels
from ..quality.copying import Copies, copies
from . import sentences as words
from .judges import Escalation, Judge, escalate, judges
from .mixed import Mixed, mixed
from .pair_biases import PairBias, pair_biases
from .panel import PanelWorth, panel
from .pool import Pooled, pool
from .replacement import EPSILON, ReplacementTest, replacement
from .transport import Difference, Transported, periods, transport, true_difference
from .true_mean import Mean, true_mean
from .true_shares import SAMPLED, Sampled, Share, true_shares

_MOST_GROUPS = 6  # whose differences are estimated


def plan(data: Mixed, pooled: Pooled, *, budget: float, **settings: Any) -> Plan:
    """Return which labels to request of which people; settings as those of `dissensus.plan`."""
    settings.setdefault("policy", "active-lab")
    settings.setdefault("draws", 0)
    return plan_labels(data.people, budget=budget, probabilities=pooled.predicted, **settings)


@dataclass(frozen=True, eq=False, repr=False)
class Judging:
    """Models as annotators: what they may replace, what the true rate is, what they are worth.

    Every section is a result of its own function; what the data do not allow is empty, and its
    sentence has what is missing.

    Attributes
    ----------
    data
        The labels of people and of models.
    sampled
        How the items that people labelled were chosen.
    replacement
        The alternative annotator test.
    judges, code
        How good every model is, and every scorer that is code.
    shares, means, differences
        True shares of classes, true means, and differences of groups.
    panel, pool
        What the panel is worth, and people and models in one label.
    escalation
        Which items people should check.
    pair_biases, transport
        Biases in comparisons, and whether a correction holds for other groups.
    copies
        Without any human label: pairs of models who agree too much.
    """

    data: Mixed
    sampled: Sampled
    epsilon: float
    confidence: float
    replacement: ReplacementTest
    judges: tuple[Judge, ...]
    code: tuple[Judge, ...]
    shares: tuple[Share, ...]
    means: tuple[Mean, ...]
    differences: tuple[Difference, ...]
    panel: PanelWorth | None
    pool: Pooled | None
    escalation: Escalation | None
    pair_biases: tuple[PairBias, ...]
    transport: tuple[Transported, ...]
    copies: Copies | None = None
    seed: int = 0

    def __repr__(self) -> str:
        return (
            f"<Judging: {len(self.judges)} models and {self.data.people.n_annotators} people "
            f"on {self.data.n_items} items>"
        )

    @property
    def n_labels(self) -> int:
        """Items that people labelled, or whose class is known."""
        return int(self.data.known.sum())

    @property
    def only_people(self) -> Names:
        """Classes that only people use."""
        return self._only(self.data.people, self.data.judges)

    @property
    def only_models(self) -> Names:
        """Classes that only models use."""
        return self._only(self.data.judges, self.data.people)

    def _only(self, users: Annotations, non_users: Annotations) -> Names:
        if self.data.numeric or not len(users) or not len(non_users):
            return self.data.classes[:0]
        inside, outside = (
            np.bincount(labels.label, minlength=self.data.n_classes) > 0
            for labels in (users, non_users)
        )
        return self.data.classes[inside & ~outside]

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """Section → sentences."""
        return words.sections(self)

    @property
    def sentences(self) -> list[str]:
        """What was found, a sentence each."""
        return [sentence for section in self.sections.values() for sentence in section]

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Section → rows."""
        tables = {
            "replacement": [
                {name: value for name, value in vars(test).items() if name != "compared"}
                | {"verdict": test.verdict}
                for test in self.replacement.models
            ],
            "judges": [
                {name: value for name, value in vars(row).items() if name != "confusion"}
                | {"kind": kind}
                for kind, group in (("model", self.judges), ("code", self.code))
                for row in group
            ],
            "shares": [vars(share) for share in self.shares],
            "means": [vars(mean) for mean in self.means],
            "differences": [vars(difference) for difference in self.differences],
            "pair_biases": [vars(bias) for bias in self.pair_biases],
            "transport": [vars(transported) for transported in self.transport],
        }
        return {name: as_plain(rows) for name, rows in tables.items()}

    def plan(self, *, budget: float, **settings: Any) -> Plan:
        """Return whom to ask about which items, and when to stop; settings as `dissensus.plan`."""
        if self.pool is None:
            raise OptionError("a plan needs classes and human labels to learn from")
        return plan(self.data, self.pool, budget=budget, seed=self.seed, **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        worth, escalation = self.panel, self.escalation
        return {
            "n_items": self.data.n_items,
            "n_labels": self.n_labels,
            "models": self.data.judge_names,
            "people": self.data.people.annotators.tolist(),
            "code": self.data.code.annotators.tolist(),
            "sampled": self.sampled,
            "only_people": self.only_people.tolist(),
            "only_models": self.only_models.tolist(),
            **self.tables,
            "compared": {test.judge: as_plain(test.compared) for test in self.replacement.models},
            "people_as_candidates": {
                "tested": self.replacement.n_people_tested,
                "pass": self.replacement.n_people_pass,
            },
            "confusion": {row.judge: as_plain(row.confusion) for row in self.judges},
            "panel": None if worth is None else as_plain(vars(worth)),
            "pool": None
            if self.pool is None
            else {
                "worth": as_plain(self.pool.worth),
                "learned": self.pool.learned,
                "n_labels": self.pool.n_labels,
            },
            "escalation": None
            if escalation is None
            else {
                "n_items": len(escalation.items),
                "enough": escalation.enough,
                "chosen": len(escalation.chosen),
                "part": as_plain(escalation.part),
            },
            "copies": None if self.copies is None else self.copies.as_dict(),
            "sentences": self.sentences,
        }


def judge(
    annotations: Annotations | str | Path | Any,
    *,
    models: Sequence[str] = (),
    people: Sequence[str] = (),
    by: Mapping[str, Any] | Sequence[Any] | str | None = None,
    cluster: Mapping[str, Any] | Sequence[Any] | str | None = None,
    truth: Any = None,
    sampled: Sampled = "random",
    epsilon: float = EPSILON,
    scale: Scale | None = None,
    reference: str | None = None,
    lengths: Mapping[str, tuple[float, float]] | None = None,
    systems: Mapping[str, tuple[str, str]] | None = None,
    families: Mapping[str, str] | None = None,
    budget: int | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> Judging:
    """Return what labels of models are worth beside those of people.

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes.
    models, people
        Patterns for the names of models and of people, as `gpt*`; by default the kinds that the
        annotations carry.
    by
        Groups of items (systems, languages): a column of the annotations, `{item: group}`, or one
        for each item; the column `time` is cut into periods.
    cluster
        Clusters of items that are not independent (documents, prompts), likewise.
    truth
        Known labels, as `{item: label}`, a pandas Series, a table or a file.
    sampled
        How the items that people labelled were chosen: `random`, `by-judge` (by what the models
        answered) or `by-label` (by their true class).
    epsilon
        Tolerance of the alternative annotator test: 0.2 for experts, 0.15 for trained annotators,
        0.1 for a crowd.
    scale
        The scale of the labels; by default the one that the annotations have.
    reference
        The group whose calibration is compared with the others.
    lengths, systems, families
        Of pairs, see `judging.pair_biases`.
    budget
        Items that people can check.
    resamples, confidence, seed
        Bootstrap resamples, confidence level of intervals, random seed.

    Examples
    --------
    >>> from dissensus.datasets.simulation import simulate_judges
    >>> judge(simulate_judges(n_items=200, n_labelled=100, seed=1).annotations)
    <Judging: 4 models and 3 people on 200 items>
    """
    if sampled not in SAMPLED:
        raise OptionError(f"sampled = {sampled!r}, but it must be {', '.join(SAMPLED)}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")
    if not 0 <= epsilon <= 1:
        raise OptionError(f"epsilon = {epsilon}, but it must be between 0 and 1")
    annotations = as_answers(annotations, kind="classes").with_kinds(models=models, people=people)
    if scale is not None:
        annotations = annotations.with_scale(scale)
    if isinstance(by, str) and by == "time":
        by = _periods(annotations)
    data = mixed(annotations, cluster=cluster, by=by, truth=as_truth(truth))
    draw: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    only_judge = _only_judge(data)
    labelled = bool(data.known.any())
    merged = pool(data, seed=seed) if labelled and not data.numeric else None
    return Judging(
        data=data,
        sampled=sampled,
        epsilon=epsilon,
        confidence=confidence,
        replacement=replacement(data, epsilon=epsilon, **draw),
        judges=judges(data, **draw),
        code=judges(replace(data, judges=data.code), **draw) if len(data.code) else (),
        shares=()
        if data.ordered
        else true_shares(data, sampled=sampled, judge=only_judge, confidence=confidence, seed=seed),
        means=true_mean(data, sampled=sampled, judge=only_judge, confidence=confidence, seed=seed)
        if data.ordered
        else (),
        differences=_differences(data, only_judge, sampled=sampled, confidence=confidence),
        panel=panel(data, families=families, **draw) if labelled else None,
        pool=merged,
        escalation=None
        if merged is None or not (~data.known & (data.n_judges > 0)).any()
        else escalate(data, merged, budget=budget, seed=seed),
        pair_biases=_biases(
            data, lengths=lengths, systems=systems, families=families, confidence=confidence
        ),
        transport=transport(data, reference=reference, judge=only_judge, confidence=confidence),
        copies=copies(data.judges, seed=seed)
        if not labelled and data.judges.n_annotators > 2 and not data.numeric
        else None,
        seed=seed,
    )


def _only_judge(data: Mixed) -> int | None:
    """Return the only judge; nothing where a panel of several is the judge."""
    return 0 if data.judges.n_annotators == 1 else None


def _differences(
    data: Mixed, only_judge: int | None, *, sampled: Sampled, confidence: float
) -> tuple[Difference, ...]:
    names = data.groups.tolist()
    if sampled != "random" or not 2 <= len(names) <= _MOST_GROUPS:
        return ()
    labels: list[str | None] = [None] if data.ordered else data.classes.tolist()
    if len(labels) == 2:
        labels = labels[1:]
    return tuple(
        true_difference(data, first, second, label=label, judge=only_judge, confidence=confidence)
        for label in labels
        for first, second in combinations(names, 2)
    )


def _biases(
    data: Mixed,
    *,
    lengths: Mapping[str, tuple[float, float]] | None,
    systems: Mapping[str, tuple[str, str]] | None,
    families: Mapping[str, str] | None,
    confidence: float,
) -> tuple[PairBias, ...]:
    about_pairs = "order" in data.judges.columns or lengths or systems
    if data.numeric or data.n_classes not in (2, 3) or not about_pairs:
        return ()
    return pair_biases(
        data, lengths=lengths, systems=systems, families=families, confidence=confidence
    )


def _periods(annotations: Annotations) -> list[str | None]:
    """Return the period of every item, from the earliest time of its labels."""
    from ..quality.check_times import seconds

    times = annotations.columns.get("time")
    when = None if times is None else seconds(times)
    if when is None and times is not None and times.dtype.kind in "OUT":
        try:
            when = seconds(times.astype(str).astype("datetime64[us]"))
        except ValueError:
            when = None
    if when is None:
        raise OptionError(remedy="needs a column of times", by="time")
    earliest = np.full(annotations.n_items, np.inf)
    has_time = np.isfinite(when)
    item: Integers = annotations.item[has_time].astype(np.int64)
    np.minimum.at(earliest, item, when[has_time])
    return periods([float(time) if np.isfinite(time) else None for time in earliest])
