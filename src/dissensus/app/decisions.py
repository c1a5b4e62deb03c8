"""Decisions: what the entries of a journal amount to.

The last decision of a reviewer on an item counts, unless it was taken back. Where all reviewers of
an item chose the same class, it is gold; where they differ, the arbiter's choice is. An item that
somebody calls split or unclear is never gold, unless the arbiter chose a class.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .changes import Changes
from .journal import VERDICTS, Entry

OPEN, DECIDED, SPLIT, UNCLEAR, DISPUTED = range(5)
STATUSES = ("open", "decided", "split", "unclear", "reviewers differ")


class Decisions:
    """Decisions by item and reviewer; entries are added in the order of the journal.

    Others may read while one adds: what belongs to an item is replaced, never changed.

    >>> decisions = Decisions([Entry(1, "", "ann", "label", "a", "cat")])
    >>> decisions.gold()
    {'a': 'cat'}
    >>> decisions.add(Entry(2, "", "bob", "split", "a"))
    >>> decisions.gold(), STATUSES[decisions.status("a")]
    ({}, 'reviewers differ')
    >>> decisions.add(Entry(3, "", "bob", "undo", value="2"))
    >>> decisions.gold()
    {'a': 'cat'}
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.number = 0  # of the last entry
        self.arbiter = ""
        self._entries: dict[int, Entry] = {}  # that can be taken back
        self._by_item: dict[str, dict[str, tuple[Entry, ...]]] = {}
        self._changes: tuple[Entry, ...] = ()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self.number = max(self.number, entry.number)
        if entry.kind == "arbiter":
            self.arbiter = entry.value
        elif entry.kind == "undo":
            self._take_back(self._entries.pop(int(entry.value), None))
        else:
            self._entries[entry.number] = entry
            if entry.kind == "change":
                self._changes = (*self._changes, entry)
            else:
                of_item = self._by_item.get(entry.item, {})
                mine = (*of_item.get(entry.reviewer, ()), entry)
                self._by_item[entry.item] = {**of_item, entry.reviewer: mine}

    def _take_back(self, entry: Entry | None) -> None:
        if entry is None:
            return
        if entry.kind == "change":
            self._changes = tuple(one for one in self._changes if one is not entry)
            return
        of_item = self._by_item[entry.item]
        mine = tuple(one for one in of_item[entry.reviewer] if one is not entry)
        left = {**of_item, entry.reviewer: mine}
        left = {name: entries for name, entries in left.items() if entries}
        if left:
            self._by_item[entry.item] = left
        else:
            del self._by_item[entry.item]

    def of(self, item: str) -> dict[str, Entry]:
        """Return the decision of every reviewer of an item."""
        return {name: entries[-1] for name, entries in self._by_item.get(item, {}).items()}

    def __contains__(self, item: str) -> bool:
        return item in self._by_item

    def last(self, reviewer: str, kinds: tuple[str, ...] = VERDICTS) -> Entry | None:
        """Return a reviewer's last decision that was not taken back."""
        mine = (one for one in reversed(list(self._entries.values())) if one.reviewer == reviewer)
        return next((one for one in mine if one.kind in kinds), None)

    def find(self, number: int) -> Entry | None:
        """Return an entry that can be taken back."""
        return self._entries.get(number)

    @property
    def items(self) -> list[str]:
        """Items with a decision."""
        return list(self._by_item)

    @property
    def all(self) -> list[Entry]:
        """The decisions that count: one per item and reviewer."""
        return [entry for item in self.items for entry in self.of(item).values()]

    @property
    def checks(self) -> list[Entry]:
        """Decisions that show whether a label was wrong: the first on every item, if of a class."""
        first: dict[str, Entry] = {}
        for one in list(self._entries.values()):
            if one.kind in VERDICTS and one.item not in first:
                first[one.item] = one
        return [one for one in first.values() if one.kind == "label"]

    def status(self, item: str) -> int:
        """Return the status of an item, a position in `STATUSES`."""
        of_item = self.of(item)
        if self.arbiter in of_item:
            of_item = {self.arbiter: of_item[self.arbiter]}
        found = {(one.kind, one.value) for one in of_item.values()}
        if not found:
            return OPEN
        if len(found) > 1:
            return DISPUTED
        return {"label": DECIDED, "split": SPLIT, "unclear": UNCLEAR}[found.pop()[0]]

    def label(self, item: str) -> str | None:
        """Return the class that was decided; `None` where it is not gold."""
        if self.status(item) != DECIDED:
            return None
        of_item = self.of(item)
        chosen = of_item.get(self.arbiter) or next(iter(of_item.values()))
        return chosen.value

    def gold(self) -> dict[str, str]:
        """Return the class of every item that is gold."""
        labels = ((item, self.label(item)) for item in self.items)
        return {item: label for item, label in labels if label is not None}

    @property
    def changes(self) -> Changes:
        """The changes that are kept: those of the last entry."""
        if not self._changes:
            return Changes()
        stored: Mapping[str, Any] = json.loads(self._changes[-1].value)
        return Changes.from_dict(stored)

    @property
    def last_change(self) -> Entry | None:
        """The entry of the changes that are kept."""
        return self._changes[-1] if self._changes else None
