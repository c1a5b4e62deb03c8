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
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..errors import DataError, DissensusError, OptionError
from ..formats import Reading
from ..pages.terminal import words_of
from ..pages.wording import amount
from ..planning import DRAWN_EVERY, errors_left
from ..planning.label_errors import Checked
from ..registry import aggregators
from .browse import as_named
from .decisions import DECIDED, DISPUTED, Changes, Decisions, Effect, as_meant, effect, fingerprint
from .exports import Command
from .fits import Fit, Present, Progress, changes_in_words, fit
from .journal import USED, VERDICTS, Entry, Journal, RequestError

_QUIET, _LONGEST = 1.0, 10.0  # seconds without a decision before a fit, and at most
_POLL = 2.0  # seconds between two looks at the file
_RESERVED = 300.0  # seconds that an item is kept for a reviewer
_LONG = 600.0  # seconds; a longer decision was a break
_TIMED = 20  # decisions from which the time per item is known


class Caller(NamedTuple):
    """What who started the workbench knows: how a command is written, and messages."""

    command: Command | None = None  # the words of `aggregate` with settings
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext  # of a request or a fit


class Assignment(NamedTuple):
    """An item that a reviewer is to decide on."""

    item: str
    drawn: bool = False


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
        As of `report`.
    reviews
        How many reviewers decide on every item.
    progress
        Called with the number of completed steps of the first fit and their total.
    caller
        What who started the workbench knows.
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
        caller: Caller | None = None,
    ) -> None:
        self.load, self.journal, self.name = load, journal, name
        self.caller = caller or Caller()
        self.source, self.folder, self.method = source, folder, method
        self.target, self.reviews, self.seed = target, reviews, seed
        self.reading = load()
        self.reading.annotations.check_classes("the workbench")
        self.decisions = _decisions(journal.entries(), self.reading)
        self.say: Callable[[str], None] = lambda _words: None  # to who started the workbench
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
            self.problem = f"with the changes that are kept: {words_of(problem)}"
            return replace(self._fit(progress, with_changes=False), number=-1)

    def _fit(
        self, progress: Callable[[int, int], None] | None = None, *, with_changes: bool = True
    ) -> Fit:
        with self._lock:
            reading, entries = self.reading, self.journal.entries()
        decisions = _decisions(entries, reading, with_changes=with_changes)
        return fit(
            reading,
            decisions,
            name=self.name,
            method=self.method,
            target=self.target,
            seed=self.seed,
            checked=self._checked(decisions),
            folder=self.folder,
            progress=progress,
        )

    def entries(self) -> list[Entry]:
        """Return the entries of the journal, with the classes of the file."""
        return as_meant(self.journal.entries(), self.reading.annotations.classes.tolist())

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
                time_now = time.monotonic()
                since = (since or time_now) if waiting else None
                due = (
                    time_now - self._last_entry >= _QUIET
                    or time_now - (since or time_now) >= _LONGEST
                )
            if time.monotonic() - looked >= _POLL:
                looked = time.monotonic()
                with self.caller.scope():
                    self._look_at_file()
            if waiting and due:
                since = None
                with self.caller.scope():
                    self._fit_again()

    def _fit_again(self) -> None:
        self.fitting, number = True, self.decisions.number
        try:
            new_data, self._new_data = self._new_data, False
            self._install(self._fit())
        except Exception as problem:  # the thread lives on, and pages say what failed
            if isinstance(problem, DissensusError):
                words = words_of(problem)
            else:
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
            file = None if self.source is None else self.source.stat()
        except OSError:
            return None
        return None if file is None else (file.st_mtime_ns, file.st_size)

    def _look_at_file(self) -> None:
        """Take up labels that arrived."""
        stamp = self._file_stamp()
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        n_before = len(self.reading.annotations)
        try:
            reading = self.load()
            reading.annotations.check_classes("the workbench")
        except DissensusError as problem:
            self.messages.append(f"The file changed, but it cannot be read: {words_of(problem)}")
            return
        n_more = len(reading.annotations) - n_before
        words = f"{n_more:+d} labels" if n_more else "as many labels as before"
        self.messages.append(f"The file changed ({words}); labels are fitted again.")
        decisions = _decisions(self.journal.entries(), reading)
        with self._wanted:
            self.reading, self._new_data, self.problem = reading, True, ""
            for entry in self.journal.entries(decisions.number):  # that came in between
                decisions.add(entry)
            self.decisions = decisions
        if self.outdated_words:
            self.messages[-1] += f" {self.outdated_words}"
            self.say(self.outdated_words)

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
        changes: int | None = None,
        labels: str | None = None,
    ) -> Entry:
        """Enter a decision, and return it once it is kept.

        `changes` and `labels` are what the reviewer's page showed, if that was not the last fit:
        the number of the changes that named the classes, and the fingerprint of the item's labels.
        """
        with self._wanted:
            present, decisions = self.present, self.decisions
            last_fit = present.fit
            item = as_named(item, last_fit.codes)
            code = last_fit.codes.get(item)
            if code is None:
                raise DataError(f"no item {item!r}")
            if kind not in VERDICTS:
                raise OptionError(f"a decision is {', '.join(VERDICTS)}, not {kind!r}")
            classes = last_fit.file.classes.tolist()
            number, names = last_fit.changes_number, last_fit.changes
            originals = names.originals(classes)
            inferred = last_fit.report.result.labels[code]
            inferred = "" if inferred is None else originals.get(inferred, inferred)
            if changes is not None and changes != number:
                number, names = changes, decisions.changes_of(changes)
                originals = names.originals(classes)
            if kind == "label" and as_named(value, originals) not in originals:
                raise DataError(f"no class {value!r}")
            return self._enter(
                reviewer,
                kind,
                item=item,
                value=originals[as_named(value, originals)] if kind == "label" else "",
                comment=comment,
                inferred=inferred,
                certainty=_stated(float(last_fit.report.doubt.certainty_without_gold[code])),
                drawn=drawn and item not in decisions,
                seconds=self._time_spent(reviewer, item),
                changes=number,
                labels=fingerprint(last_fit.file, code) if labels is None else labels,
                request=request,
            )

    def undo(self, reviewer: str, number: int | None = None, request: str | None = None) -> Entry:
        """Take back a reviewer's last decision, or an entry; return what was taken back."""
        with self._wanted:
            taken_back = self._taken_by(reviewer, request)
            if taken_back is not None:
                if taken_back.kind == "change" if number is None else taken_back.number != number:
                    raise RequestError(USED)
                return taken_back
            decisions = self.decisions
            last = decisions.last(reviewer) if number is None else decisions.find(number)
            if last is None:
                raise OptionError("there is nothing to undo")
            if last.reviewer != reviewer and last.kind != "change":
                raise OptionError("only the reviewer who decided can undo it")
            self._enter(reviewer, "undo", item=last.item, value=str(last.number), request=request)
            return last

    def take_back(self, reviewer: str, request: str | None = None) -> Entry | None:
        """Take back the changes that are kept; return their entry, `None` if there are none."""
        with self._wanted:
            taken_back = self._taken_by(reviewer, request)
            if taken_back is not None:
                if taken_back.kind != "change":
                    raise RequestError(USED)
                return taken_back
            last = self.decisions.last_change
            if last is not None:
                self._enter(reviewer, "undo", value=str(last.number), request=request)
            return last

    def _taken_by(self, reviewer: str, request: str | None) -> Entry | None:
        """Return what a request has taken back before."""
        earlier = self.journal.of_request(request)
        if earlier is None:
            return None
        if earlier.kind != "undo" or earlier.reviewer != reviewer:
            raise RequestError(USED)
        return self.journal.entry(int(earlier.value))

    def keep(self, reviewer: str, changes: Changes, request: str | None = None) -> Entry:
        """Keep changes; labels are fitted again."""
        changes.apply(self.reading.annotations)  # fails early
        if changes.method:
            aggregators.create(changes.method)
        value = json.dumps(changes.to_dict(), ensure_ascii=False)
        with self._wanted:
            return self._enter(reviewer, "change", value=value, request=request)

    def name_arbiter(self, reviewer: str, arbiter: str) -> None:
        """Make a reviewer the arbiter, whose choice counts where reviewers differ."""
        with self._wanted:
            if arbiter != self.decisions.arbiter:
                self._enter(reviewer, "arbiter", value=arbiter)
                self.present = Present.of(self.present.fit, self.decisions)

    @property
    def outdated_words(self) -> str:
        """How many decisions are on labels that are gone, in a sentence; empty if none is."""
        n = len(self.decisions.outdated)
        if not n:
            return ""
        were, they, them = ("was", "it is", "it") if n == 1 else ("were", "they are", "them")
        return (
            f"{amount(n, 'decision')} {were} made on labels that are no longer in {self.name}; "
            f"{they} not gold until you confirm {them} on the page Overview."
        )

    @property
    def outdated_mark(self) -> str:
        """What stands for the decisions on labels that are gone, and the labels now."""
        return sha256(json.dumps(self.decisions.labels_now).encode()).hexdigest()

    def confirm(self, reviewer: str, mark: str, request: str | None = None) -> None:
        """Let decisions on labels that are gone count for the labels of now.

        `mark` is the `outdated_mark` of the page that showed them.
        """
        with self._wanted:
            earlier = self.journal.of_request(request)
            if earlier is not None:
                if (earlier.reviewer, earlier.kind) != (reviewer, "confirm"):
                    raise RequestError(USED)
                return
            if mark != self.outdated_mark:
                raise DataError("decisions or labels have changed since; look at the list again")
            if self.decisions.outdated:
                value = json.dumps(self.decisions.labels_now)
                self._enter(reviewer, "confirm", value=value, request=request)
                self.present = Present.of(self.present.fit, self.decisions)

    def _enter(self, reviewer: str, kind: str, **fields: Any) -> Entry:
        """Add an entry to the journal and to what is shown; the caller has the lock.

        So the journal, the decisions in memory and the last decision change together and in the
        same order.
        """
        entry, new = self.journal.add(reviewer, kind, **fields)
        if new:
            self.decisions.add(entry)
            if entry.item in self.present.fit.codes:
                self.present = self.present.after(entry.item, self.decisions)
            self._reserved.pop(entry.item, None)
            self._last_entry, self.problem = time.monotonic(), ""
            self._wanted.notify_all()
        return entry

    def _time_spent(self, reviewer: str, item: str) -> float | None:
        holder, since = self._reserved.get(item, ("", 0.0))
        spent = time.monotonic() - since
        return round(spent, 2) if holder == reviewer and spent <= _LONG else None

    # The queue.

    def next_item(self, reviewer: str, skipped: frozenset[str] = frozenset()) -> Assignment | None:
        """Return the item that a reviewer should decide on next; `None` where none is left."""
        with self._lock:
            time_now = time.monotonic()
            for item, (_, since) in list(self._reserved.items()):
                if time_now - since > _RESERVED:
                    del self._reserved[item]
            assignment = self._choose(reviewer, skipped)
            if assignment is not None:
                self._reserved[assignment.item] = reviewer, time_now
            return assignment

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

        n_own = 0
        for item in decisions.items:
            of_item = decisions.of(item)
            n_own += reviewer in of_item
            few = len(of_item) < self.reviews
            disputed = reviewer == decisions.arbiter and decisions.status(item) == DISPUTED
            is_due = of_item and reviewer not in of_item and (few or disputed)
            is_due = is_due and item in present.fit.codes
            if is_due and free(item):
                return Assignment(item)
        drawn = (n_own + 1) % DRAWN_EVERY == 0
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
        is_undecided = present.fit.labelled & ~decided
        certainty = present.fit.report.doubt.certainty_without_gold[is_undecided]
        errors = errors_left(certainty, self._checked(self.decisions))
        review = replace(plan, errors=errors, n_needed=0, seconds=0.0)
        if not review.stop:
            since = present.provisional & decided
            n_needed = int((~since[plan.order[: plan.n_needed]]).sum())
            timed = self._seconds(present.fit) is not None
            seconds = plan.seconds * n_needed / max(plan.n_needed, 1) if timed else 0.0
            review = replace(review, n_needed=n_needed, seconds=seconds)
        everywhere = plan.n_items == present.fit.labelled.sum()
        return Progress(
            review=review,
            decided=int(decided.sum()),
            n_drawn=sum(entry.drawn for entry in self.decisions.checks),
            n_identifiable=None if everywhere else plan.n_items,
        )

    def _checked(self, decisions: Decisions) -> Checked | None:
        """Return how decisions compare with the labels that fits had before."""
        checks = [entry for entry in decisions.checks if entry.certainty is not None]
        if not checks:
            return None
        annotations, changes = self.reading.annotations, decisions.changes
        position = {changes.name(name): k for k, name in enumerate(annotations.classes.tolist())}
        most = 1 if annotations.scale == "ordinal" else 0  # steps that are no error
        wrong = []
        for entry in checks:
            decided, inferred = (
                position.get(changes.name(x)) for x in (entry.value, entry.inferred)
            )
            wrong.append(decided is None or inferred is None or abs(decided - inferred) > most)
        doubt = 1 - np.array([entry.certainty for entry in checks], dtype=np.float64)
        return Checked(doubt, np.array(wrong, dtype=bool))

    def _seconds(self, of: Fit) -> Floats | None:
        """Return how long every item takes, by the length of its text; `None` if unknown."""
        timed = [entry for entry in self.decisions.all if entry.seconds]
        if len(timed) < _TIMED:
            return None
        texts = of.report.texts
        length = np.array([len(texts.get(entry.item, "")) for entry in timed], dtype=np.float64)
        seconds = np.minimum([entry.seconds or 0.0 for entry in timed], _LONG)
        slope = 0.0
        if np.ptp(length) > 0:
            slope = max(float(np.cov(length, seconds)[0, 1] / length.var(ddof=1)), 0.0)
        base = max(float(seconds.mean() - slope * length.mean()), 1.0)
        lengths = [len(texts.get(item, "")) for item in of.annotations.items.tolist()]
        return base + slope * np.array(lengths)

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
            present.file,
            present.report.result,
            changes,
            method=method,
            gold=gold,
            seed=self.seed,
            old_changes=present.changes,
        )


def _stated(certainty: float) -> float | None:
    """Return a certainty, `None` where it cannot be told."""
    return None if math.isnan(certainty) else certainty


def _decisions(entries: list[Entry], reading: Reading, *, with_changes: bool = True) -> Decisions:
    annotations = reading.annotations
    meant = as_meant(entries, annotations.classes.tolist())
    return Decisions(
        (entry for entry in meant if with_changes or entry.kind != "change"), annotations
    )
