"""All questions about models as annotators, as far as the data allow, and a plan for people.

The plan says whom to ask about what, and when to stop, knowing what models predict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import unwrap
from typing import Any

import numpy as np

from ..answers import KINDS
from ..answers.annotations import Annotations, Scale
from ..base.arrays import Integers
from ..base.names import Names
from ..base.storage import as_plain, as_rows
from ..base.tables import Table
from ..dispatch import by_kind
from ..errors import OptionError
from ..formats import as_answers, as_truth
from ..pages.charts import Figure
from ..pages.sections import Section
from ..pages.wording import many
from ..planning import Plan
from ..planning import plan as plan_labels
from ..quality.copying import Copies, copies
from ..result import Result
from .escalation import Escalation, escalate
from .judges import Judges, judges
from .mixed import Mixed, mixed
from .pair_biases import PairBiases, pair_biases
from .panel import PanelWorth, panel, people_in_words
from .pool import Pooled, pool
from .question import ENOUGH, shortened, too_few
from .rates import Difference, Rates, rates
from .replacement import EPSILON, ReplacementTest, replacement
from .transport import Transport, periods, transport
from .true_mean import Mean
from .true_shares import SAMPLED, Sampled, Share


def plan(data: Mixed, pooled: Pooled, *, budget: float, **settings: Any) -> Plan:
    """Return which labels to request of which people; settings as those of `dissensus.plan`."""
    settings.setdefault("policy", "active-lab")
    settings.setdefault("draws", 0)
    return plan_labels(data.people, budget=budget, probabilities=pooled.predicted, **settings)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Judging(Result):
    """Models as annotators: what they may replace, what the true rate is, what they are worth.

    Every question is a result of its own function; what the data do not allow is empty, and its
    sentence has what is missing.

    Attributes
    ----------
    data
        The labels of people and of models.
    replacement
        The alternative annotator test.
    judges
        How good every model is, and every scorer that is code.
    rates
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
    replacement: ReplacementTest
    judges: Judges
    rates: Rates
    panel: PanelWorth | None
    pool: Pooled | None
    escalation: Escalation | None
    pair_biases: PairBiases
    transport: Transport
    copies: Copies | None = None
    seed: int = 0

    def __repr__(self) -> str:
        return (
            f"<Judging: {self.data.judges.n_annotators} models and "
            f"{self.data.people.n_annotators} people on {self.data.n_items} items>"
        )

    @property
    def n_labels(self) -> int:
        """Items that people labelled, or whose class is known."""
        return int(self.data.known.sum())

    @property
    def shares(self) -> tuple[Share, ...]:
        """True shares of classes."""
        return self.rates.shares

    @property
    def means(self) -> tuple[Mean, ...]:
        """True means of numbers and of classes in order."""
        return self.rates.means

    @property
    def differences(self) -> tuple[Difference, ...]:
        """True differences of groups."""
        return self.rates.differences

    @property
    def only_people(self) -> Names:
        """Classes that only people use."""
        return self._only(self.data.people, self.data.judges)[0]

    @property
    def only_models(self) -> Names:
        """Classes that only models use."""
        return self._only(self.data.judges, self.data.people)[0]

    def _only(self, users: Annotations, non_users: Annotations) -> tuple[Names, Integers]:
        """Return the classes that only some use, and how often."""
        n_classes = self.data.n_classes
        n_times = np.bincount(users.label, minlength=n_classes)
        only = (n_times > 0) & (np.bincount(non_users.label, minlength=n_classes) == 0)
        if self.data.numeric or not len(non_users):
            only[:] = False
        return self.data.classes[only], n_times[only]

    @cached_property
    def questions(self) -> Mapping[str, Section]:
        """What was found, a section for every question."""
        answered = (
            Section("labels", "Labels", tuple(self._about_labels())),
            *self.replacement.sections(),
            *self.judges.sections(),
            *self.rates.sections(),
            self._about_panel(),
            *(() if self.escalation is None else self.escalation.sections()),
            *self.pair_biases.sections(),
            *self.transport.sections(),
        )
        return {section.name: section for section in answered}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, a sentence each."""
        return tuple(text for section in self.questions.values() for text in section.text)

    @property
    def tables(self) -> Mapping[str, Table]:
        """The numbers of every question."""
        parts = (self.judges, self.replacement, self.rates, self.pair_biases, self.transport)
        return {name: table for part in parts for name, table in part.tables.items()}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The charts that the data allow."""
        parts = (self.judges, self.panel, self.rates, self.escalation)
        return {
            name: figure
            for part in parts
            if part is not None
            for name, figure in part.figures.items()
        }

    def sections(self) -> tuple[Section, ...]:
        """Return the questions, and the judges of classes beside people."""
        answered = [section for section in self.questions.values() if section.text]
        caption = f"{self.n_labels} of {self.data.n_items} items have human labels"
        panels = [] if self.data.numeric else [[self.judges.overview(caption)]]
        return (
            Section("questions", "Models and people", subsections=answered),
            Section("overview", "Judges and people", panels=panels),
        )

    def _about_labels(self) -> Iterator[str]:
        people, models = ("people", self.data.people), ("models", self.data.judges)
        for (users, labels), (non_users, others) in ((people, models), (models, people)):
            for name, count in zip(*self._only(labels, others), strict=True):
                yield (
                    f"Only {users} use the label {shortened(name)!r} ({many(int(count), 'time')}): "
                    f"no label of {non_users} ever equals it."
                )

    def _about_panel(self) -> Section:
        """Return what the panel is worth, or why that is not known, and what the pool learned."""
        sentences: list[str] = []
        panels: Any = []
        if self.panel is not None:
            (section,) = self.panel.sections()
            sentences, panels = [*section.text], section.panels
        elif self.copies is not None and self.data.judges.n_annotators > 1:
            if self.copies.pairs:
                pairs = [f"{pair.one} and {pair.other}" for pair in self.copies.pairs[:3]]
                agree = f"{', '.join(pairs)} agree more than independent models would."
                sentences.append(f"Without human labels: {agree}")
            sentences.append(f"{PanelWorth.title} {too_few(0, ENOUGH)}")
        elif self.pool is not None and self.pool.learned:
            people = people_in_words(self.pool.worth)
            sentences.append(f"On an item, the model counts like {people}.")
        if self.pool is not None and not self.pool.learned and self.n_labels:
            few = too_few(int((self.data.n_people > 1).sum()), ENOUGH, "items with two people")
            sentences.append(f"How many people do the models count for on an item? {few}")
        return Section(PanelWorth.name, PanelWorth.title, sentences, panels=panels)

    def with_checks_in(self, path: str) -> Judging:
        """Return it with the file that lists the items to check, which its sentence then names."""
        if self.escalation is None:
            return self
        return replace(self, escalation=replace(self.escalation, path=path))

    def plan(self, *, budget: float, **settings: Any) -> Plan:
        """Return whom to ask about which items, and when to stop; settings as `dissensus.plan`."""
        if self.pool is None:
            raise OptionError("a plan needs classes and human labels to learn from")
        return plan(self.data, self.pool, budget=budget, seed=self.seed, **settings)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        test, models = self.replacement, self.judges.models
        parts = {"panel": self.panel, "pool": self.pool, "escalation": self.escalation}
        return {
            "n_items": self.data.n_items,
            "n_labels": self.n_labels,
            "models": self.data.judge_names,
            "people": self.data.people.annotators.tolist(),
            "code": self.data.code.annotators.tolist(),
            "sampled": self.rates.sampled,
            "only_people": self.only_people.tolist(),
            "only_models": self.only_models.tolist(),
            **{name: as_rows(table) for name, table in self.tables.items()},
            "compared": {model.judge: as_plain(model.compared) for model in test.models},
            "people_as_candidates": {"tested": test.n_people_tested, "pass": test.n_people_pass},
            "confusion": {model.judge: as_plain(model.confusion) for model in models},
            **{name: None if part is None else part.as_dict() for name, part in parts.items()},
            "copies": None if self.copies is None else self.copies.as_dict(),
            "sentences": list(self.sentences),
        }


@by_kind(read=as_answers)
def judge(
    answers: Any,
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
    answers
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
    annotations = as_answers(answers, kind="classes").with_kinds(models=models, people=people)
    if scale is not None:
        annotations = annotations.with_scale(scale)
    if isinstance(by, str) and by == "time":
        by = _periods(annotations)
    data = mixed(annotations, cluster=cluster, by=by, truth=as_truth(truth))
    if reference is not None and reference not in data.groups.tolist():
        raise OptionError(f"no group {reference!r}", remedy="{} makes groups", by=...)
    draw: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    only_judge = 0 if data.judges.n_annotators == 1 else None  # of several, the panel is the judge
    labelled = bool(data.known.any())
    merged = pool(data, seed=seed) if labelled and not data.numeric else None
    worth = panel(data, families=families, **draw) if labelled else None
    if worth is not None and merged is not None and merged.learned:
        worth = replace(worth, people=merged.worth)
    unlabelled = ~data.known & (data.n_judges > 0)
    about_pairs = "order" in data.judges.columns or lengths or systems
    biases = PairBiases()
    if about_pairs and not data.numeric and data.n_classes in (2, 3):
        biases = pair_biases(
            data, lengths=lengths, systems=systems, families=families, confidence=confidence
        )
    return Judging(
        data=data,
        replacement=replacement(data, epsilon=epsilon, **draw),
        judges=judges(data, **draw),
        rates=rates(data, sampled=sampled, judge=only_judge, confidence=confidence, seed=seed),
        panel=worth,
        pool=merged,
        escalation=None
        if merged is None or not unlabelled.any()
        else escalate(data, merged, budget=budget, seed=seed),
        pair_biases=biases,
        transport=transport(data, reference=reference, judge=only_judge, confidence=confidence),
        copies=copies(data.judges, seed=seed)
        if not labelled and data.judges.n_annotators > 2 and not data.numeric
        else None,
        seed=seed,
    )


judge.for_kind("classes", "numbers")(unwrap(judge))
for _kind in KINDS:
    judge.lacking(_kind, "notimpl", f"no measure of models on {_kind} yet")
_OF_SETS = "no measure of models on sets yet; read with kind='single', each label is a class"
judge.lacking("sets", "notimpl", _OF_SETS)


def _periods(annotations: Annotations) -> list[str | None]:
    """Return the period of every item, from the earliest time of its labels."""
    from ..quality.check_times import seconds

    times = annotations.columns.get("time")
    when = None if times is None else seconds(times)
    if when is None and times is not None and times.dtype.kind in "OUT":
        with suppress(ValueError):
            when = seconds(times.astype(str).astype("datetime64[us]"))
    if when is None:
        raise OptionError(remedy="needs a column of times", by="time")
    earliest = np.full(annotations.n_items, np.inf)
    has_time = np.isfinite(when)
    item: Integers = annotations.item[has_time].astype(np.int64)
    np.minimum.at(earliest, item, when[has_time])
    return periods([float(time) if np.isfinite(time) else None for time in earliest])
