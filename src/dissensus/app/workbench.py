"""The workbench: data, journal, the last finished fit, and what reviewers have decided since.

Requests read the present state, which is replaced and never changed. Decisions go to the journal
first. One thread fits again when decisions, changes or labels have come.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import NamedTuple

import numpy as np

from .._relation import Floats
from ..errors import DataError, DissensusError, OptionError
from ..label_errors import Checked, LabelErrors
from ..planning import DRAWN_EVERY, Review, errors_left
from ..readers import Reading
from ..registry import aggregators
from .changes import Changes, Effect, effect
from .decisions import DECIDED, DISPUTED, Decisions
from .fits import Fit, Present, fit
from .journal import VERDICTS, Entry, Journal

_QUIET, _LONGEST = 1.0, 10.0  # seconds without a decision before a fit, and at most
_POLL = 2.0  # seconds between two looks at the file
_RESERVED = 300.0  # seconds that an item is kept for a reviewer
_LONG = 600.0  # seconds; a longer decision was a break
_TIMED = 20  # decisions from which the time per item is known
_MOVED = 0.005  # change of an annotator's accuracy worth a word
_NAMED = 2  # annotators in one message


class Assignment(NamedTuple):
    """An item that a reviewer is to decide on."""

    item: str
    drawn: bool = False


class Progress(NamedTuple):
    """How far the review is.

    Attributes
    ----------
    decided
        Number of items that are decided.
    wrong
        The expected share of wrong labels among all items that can be judged, with its 90 %
        interval; NaN without any.
    n_identifiable
        How many items that are, `None` where it can be judged of all.
    errors
        How many labels are wrong among those nobody checked.
    n_drawn
        Number of checked items that were drawn at random.
    n_needed, seconds
        How many more to check, as far as can be expected, and how long that takes; 0 seconds where
        the time is not known yet.
    target, stop
        The share of right labels to reach, and whether it is reached.
    """

    decided: int
    wrong: tuple[float, float, float]
    errors: LabelErrors
    n_drawn: int
    n_needed: int
    seconds: float
    target: float
    stop: bool
    n_identifiable: int | None = None

    @property
    def identifiable(self) -> bool:
        """Whether it can be judged how many labels are wrong."""
        return not math.isnan(self.wrong[0])


class Workbench:
    """Everything that the app shows and takes.

    Parameters
    ----------
    load
        Reads the data; called again when the file changes.
    journal
        The journal.
    name
        Of the data set.
    source
        The file to watch, if there is one.
    folder
        Where files that texts name are looked for.
    method, target, seed
        As of `report_labels`.
    reviews
        How many reviewers decide on every item.
    progress
        Called with the number of completed steps of the first fit and their total.
    """

    def __init__(
        self,
        load: Callable[[], Reading],
        journal: Journal,
        *,
        name: str,
        source: Path | None = None,
        folder: Path | None = None,
        method: str = "auto",
        target: float = 0.95,
        reviews: int = 1,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.load, self.journal, self.name = load, journal, name
        self.source, self.folder, self.method = source, folder, method
        self.target, self.reviews, self.seed = target, reviews, seed
        self.decisions = Decisions(journal.entries())
        self.reading = load()
        self.reading.annotations.check_classes("the workbench")
        self.messages: list[str] = []
        self.problem = ""  # why the last fit or reading failed
        self.fitting = False
        self._lock = Lock()
        self._wanted = Condition(self._lock)
        self._reserved: dict[str, tuple[str, float]] = {}
        self._stopping = self._new_data = False
        self._stamp = self._file_stamp()
        self._last_entry = 0.0
        self._install(self._first_fit(progress))
        self._thread = Thread(target=self._work, name="fits", daemon=True)

    # Fits.

    def start(self) -> None:
        """Begin to fit in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and close the journal."""
        with self._wanted:
            self._stopping = True
            self._wanted.notify_all()
        if self._thread.is_alive():
            self._thread.join(30)
        self.journal.close()

    @property
    def settled(self) -> bool:
        """Whether the last fit knows everything."""
        return self.present.fit.number >= self.decisions.number and not self._new_data

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until a fit knows everything; return whether it does."""
        with self._wanted:
            if self._thread.is_alive():
                self._last_entry = 0.0
                self._wanted.notify_all()
                self._wanted.wait_for(lambda: self.settled or bool(self.problem), timeout)
                return self.settled
        self._fit_again()
        return self.settled

    def _first_fit(self, progress: Callable[[int, int], None] | None) -> Fit:
        """Return a fit to begin with: without the changes that are kept, where they make it fail.

        Such a fit counts as one that knows nothing, so what needs the changes waits.
        """
        try:
            return self._fit(progress)
        except DissensusError as problem:
            if not self.decisions.changes:
                raise
            self.problem = f"with the changes that are kept: {problem}"
            return replace(self._fit(progress, with_changes=False), number=-1)

    def _fit(
        self, progress: Callable[[int, int], None] | None = None, *, with_changes: bool = True
    ) -> Fit:
        with self._lock:
            entries = self.journal.entries()
            decisions = Decisions(one for one in entries if with_changes or one.kind != "change")
        return fit(
            self.reading,
            decisions,
            name=self.name,
            method=self.method,
            target=self.target,
            seed=self.seed,
            checked=self._checked(decisions),
            folder=self.folder,
            progress=progress,
        )

    def _install(self, new: Fit) -> None:
        """Make a fit the present one."""
        old = getattr(self, "present", None)
        with self._wanted:
            self.present = Present.of(new, self.decisions)
            self._plan = new.plan(self._seconds(new), self._checked(self.decisions))
            self._wanted.notify_all()
        if old is not None:
            self.messages.append(changes_in_words(old.fit, new))

    def _work(self) -> None:
        looked = time.monotonic()
        since: float | None = None  # when an entry began to wait
        while True:
            with self._wanted:
                self._wanted.wait(_QUIET / 4)
                if self._stopping:
                    return
                waiting = not self.settled and not self.problem
                now = time.monotonic()
                since = (since or now) if waiting else None
                due = now - self._last_entry >= _QUIET or now - (since or now) >= _LONGEST
            if time.monotonic() - looked >= _POLL:
                looked = time.monotonic()
                self._look_at_file()
            if waiting and due:
                since = None
                self._fit_again()

    def _fit_again(self) -> None:
        self.fitting, number = True, self.decisions.number
        try:
            new_data, self._new_data = self._new_data, False
            self._install(self._fit())
        except Exception as problem:  # the thread lives on, and pages say what failed
            words = str(problem)
            if not isinstance(problem, DissensusError):
                traceback.print_exc()
                words = f"{type(problem).__name__}: {problem}"
            with self._wanted:
                self._new_data = new_data
                if self.decisions.number == number:  # else what came since is fitted
                    self.problem = words
        finally:
            self.fitting = False
            with self._wanted:
                self._wanted.notify_all()

    def _file_stamp(self) -> tuple[int, int] | None:
        try:
            found = None if self.source is None else self.source.stat()
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size)

    def _look_at_file(self) -> None:
        """Take up labels that arrived."""
        stamp = self._file_stamp()
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        before = len(self.reading.annotations)
        try:
            reading = self.load()
            reading.annotations.check_classes("the workbench")
        except DissensusError as problem:
            self.messages.append(f"The file changed, but it cannot be read: {problem}")
            return
        more = len(reading.annotations) - before
        what = f"{more:+d} labels" if more else "as many labels as before"
        self.messages.append(f"The file changed ({what}); labels are fitted again.")
        with self._wanted:
            self.reading, self._new_data, self.problem = reading, True, ""

    # Decisions.

    def decide(
        self,
        reviewer: str,
        item: str,
        kind: str,
        value: str = "",
        *,
        comment: str = "",
        drawn: bool = False,
        request: str | None = None,
    ) -> Entry:
        """Enter a decision, and return it once it is kept."""
        present = self.present
        code = present.fit.codes.get(item)
        if code is None:
            raise DataError(f"no item {item!r}")
        if kind not in VERDICTS:
            raise OptionError(f"a decision is {', '.join(VERDICTS)}, not {kind!r}")
        if kind == "label" and value not in present.fit.classes:
            raise DataError(f"no class {value!r}")
        fitted = present.fit.report
        inferred = fitted.result.labels[code]
        entry, new = self.journal.add(
            reviewer,
            kind,
            item=item,
            value=value if kind == "label" else "",
            comment=comment,
            inferred="" if inferred is None else inferred,
            certainty=_stated(float(fitted.certainty_without_gold[code])),
            drawn=drawn and item not in self.decisions,
            seconds=self._time_spent(reviewer, item),
            request=request,
        )
        if new:
            self._enter(entry, item)
        return entry

    def undo(self, reviewer: str, number: int | None = None, request: str | None = None) -> Entry:
        """Take back a reviewer's last decision, or an entry; return what was taken back."""
        with self._lock:
            last = self.decisions.last(reviewer) if number is None else self.decisions.find(number)
        if last is None:
            raise OptionError("there is nothing to undo")
        if last.reviewer != reviewer and last.kind != "change":
            raise OptionError("only the reviewer who decided can undo it")
        entry, new = self.journal.add(
            reviewer, "undo", item=last.item, value=str(last.number), request=request
        )
        if new:
            self._enter(entry, last.item)
        return last

    def keep(self, reviewer: str, changes: Changes, request: str | None = None) -> Entry:
        """Keep changes; labels are fitted again."""
        changes.apply(self.reading.annotations)  # fails early
        if changes.method:
            aggregators.create(changes.method)
        value = json.dumps(changes.to_dict(), ensure_ascii=False)
        entry, new = self.journal.add(reviewer, "change", value=value, request=request)
        if new:
            self._enter(entry, "")
        return entry

    def name_arbiter(self, reviewer: str, arbiter: str) -> None:
        """Make a reviewer the arbiter, whose choice counts where reviewers differ."""
        if arbiter != self.decisions.arbiter:
            entry, _ = self.journal.add(reviewer, "arbiter", value=arbiter)
            self._enter(entry, "")
            with self._lock:
                self.present = Present.of(self.present.fit, self.decisions)

    def _enter(self, entry: Entry, item: str) -> None:
        with self._wanted:
            self.decisions.add(entry)
            if item:
                self.present = self.present.after(item, self.decisions)
            self._reserved.pop(item, None)
            self._last_entry, self.problem = time.monotonic(), ""
            self._wanted.notify_all()

    def _time_spent(self, reviewer: str, item: str) -> float | None:
        with self._lock:
            who, since = self._reserved.get(item, ("", 0.0))
        spent = time.monotonic() - since
        return round(spent, 2) if who == reviewer and spent <= _LONG else None

    # The queue.

    def next_item(self, reviewer: str, skipped: frozenset[str] = frozenset()) -> Assignment | None:
        """Return the item that a reviewer should decide on next; `None` where none is left."""
        with self._lock:
            now = time.monotonic()
            for item, (_, since) in list(self._reserved.items()):
                if now - since > _RESERVED:
                    del self._reserved[item]
            shown = self._choose(reviewer, skipped)
            if shown is not None:
                self._reserved[shown.item] = reviewer, now
            return shown

    def reserve(self, reviewer: str, item: str) -> None:
        """Keep an item for a reviewer who looks at it, unless another does."""
        with self._lock:
            self._reserved.setdefault(item, (reviewer, time.monotonic()))

    def _choose(self, reviewer: str, skipped: frozenset[str]) -> Assignment | None:
        present, decisions = self.present, self.decisions
        names = present.fit.annotations.items

        def free(item: str) -> bool:
            held = self._reserved.get(item, (reviewer, 0.0))[0] == reviewer
            return held and item not in skipped

        mine = 0
        for item in decisions.items:
            of_item = decisions.of(item)
            mine += reviewer in of_item
            few = len(of_item) < self.reviews
            disputed = reviewer == decisions.arbiter and decisions.status(item) == DISPUTED
            asked = reviewer not in of_item and (few or disputed) and item in present.fit.codes
            if asked and free(item):
                return Assignment(item)
        drawn = (mine + 1) % DRAWN_EVERY == 0
        order = present.fit.random_order if drawn else self._plan.order
        for code in order:
            item = names[code]
            if present.status[code] or not present.fit.labelled[code]:
                continue
            if free(item):
                return Assignment(item, drawn)
        return None

    def progress(self) -> Progress:
        """Return how far the review is."""
        present, plan = self.present, self._plan
        decided = present.status == DECIDED
        left = present.fit.labelled & ~decided
        certainty = present.fit.report.certainty_without_gold[left]
        errors = errors_left(certainty, self._checked(self.decisions))
        review = Review(plan.order, errors, plan.n_items, 0, 0.0, self.target)
        since = present.provisional & decided
        n_needed = int((~since[plan.order[: plan.n_needed]]).sum())
        timed = self._seconds(present.fit) is not None
        seconds = plan.seconds * n_needed / max(plan.n_needed, 1) if timed else 0.0
        n_drawn = sum(one.drawn for one in self.decisions.checks)
        return Progress(
            int(decided.sum()),
            review.wrong,
            errors,
            n_drawn,
            0 if review.stop else n_needed,
            seconds,
            self.target,
            review.stop,
            None if plan.n_items == present.fit.labelled.sum() else plan.n_items,
        )

    def _checked(self, decisions: Decisions) -> Checked | None:
        """Return how decisions compare with the labels that fits had before."""
        checks = [one for one in decisions.checks if one.certainty is not None]
        if not checks:
            return None
        annotations, changes = self.reading.annotations, decisions.changes
        position = {changes.name(name): k for k, name in enumerate(annotations.classes.tolist())}
        most = 1 if annotations.scale == "ordinal" else 0  # steps that are no error
        wrong = []
        for one in checks:
            decided, inferred = (position.get(changes.name(x)) for x in (one.value, one.inferred))
            wrong.append(decided is None or inferred is None or abs(decided - inferred) > most)
        doubt = 1 - np.array([one.certainty for one in checks], dtype=np.float64)
        return Checked(doubt, np.array(wrong, dtype=bool))

    def _seconds(self, of: Fit) -> Floats | None:
        """Return how long every item takes, by the length of its text; `None` if unknown."""
        timed = [one for one in self.decisions.all if one.seconds]
        if len(timed) < _TIMED:
            return None
        texts = of.report.texts
        length = np.array([len(texts.get(one.item, "")) for one in timed], dtype=np.float64)
        seconds = np.minimum([one.seconds or 0.0 for one in timed], _LONG)
        slope = 0.0
        if np.ptp(length) > 0:
            slope = max(float(np.cov(length, seconds)[0, 1] / length.var(ddof=1)), 0.0)
        base = max(float(seconds.mean() - slope * length.mean()), 1.0)
        every = [len(texts.get(item, "")) for item in of.annotations.items.tolist()]
        return base + slope * np.array(every)

    # What if.

    @property
    def skipped(self) -> tuple[str, ...]:
        """A sentence about every change that is kept and that the file does not allow."""
        return self.decisions.changes.possible(self.reading.annotations)[1]

    def what_if(self, changes: Changes) -> Effect:
        """Return what changes would do, compared with the last fit."""
        present = self.present.fit
        gold = {**self.reading.gold, **self.decisions.gold()}
        method = changes.method or self.method
        return effect(
            self.reading.annotations,
            present.report.result,
            changes,
            method=method,
            gold=gold,
            seed=self.seed,
        )


def _stated(certainty: float) -> float | None:
    """Return a certainty, `None` where it cannot be told."""
    return None if math.isnan(certainty) else certainty


def changes_in_words(old: Fit, new: Fit) -> str:
    """Return what a fit changed, in a sentence."""
    labels = dict(zip(old.annotations.items.tolist(), old.report.result.labels, strict=True))
    pairs = zip(new.annotations.items.tolist(), new.report.result.labels, strict=True)
    differ = [item for item, label in pairs if labels.get(item, label) != label]
    changed = sum(item not in new.gold for item in differ)
    decided = len(differ) - changed
    words = [f"{changed} other labels changed" if changed != 1 else "1 other label changed"]
    if decided:
        words.insert(0, f"{decided} decided label{'s' * (decided > 1)} replaced the inferred one")
    moved = []
    old_accuracy, new_accuracy = (one.report.result.annotators["agreement"] for one in (old, new))
    for name, code in new.people.items():
        before = old.people.get(name)
        if before is not None:
            was, now = old_accuracy[before], new_accuracy[code]
            if abs(now - was) >= _MOVED:
                moved.append((abs(now - was), f"{name}'s accuracy {was:.2f} → {now:.2f}"))
    words += [text for _, text in sorted(moved, key=lambda pair: -pair[0])[:_NAMED]]
    return f"{'; '.join(words)}."
