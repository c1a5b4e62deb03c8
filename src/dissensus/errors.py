"""Errors caused by the input of a user.

    DissensusError
    ├── DataError       a file or table cannot be read as what it should be
    │   └── KindError   a verb does not take answers of this kind
    ├── MethodError     no method of that name, or invalid settings
    ├── OptionError     invalid options, or options that exclude each other
    └── OutputError     a file or folder cannot be written

A message says what was found, where, and what would do, in one line: keywords of the public
function, which the command line writes as its flags. It exits with 2. Every other exception is a
bug of ours and keeps its traceback. Nothing takes a message apart: what it is made of are fields.

    raise DataError(
        "row 4: no annotator", where="a.csv", rows=3, remedy="leaves such rows out", missing="drop"
    )

    Python         a.csv: row 4: no annotator; 2 more rows like this; missing='drop' leaves such …
    command line   a.csv: row 4: no annotator; 2 more rows like this; --missing drop leaves such …

Optional parts: the command that installs one, in a checkout or beside a wheel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, NamedTuple, Self

Spell = Callable[[str, Any], str | None]  # a keyword and its value, or nothing where there is none


class Remedy(NamedTuple):
    """What would do: words, and the keywords that stand in front of them or in place of `{}`."""

    words: str
    instead: Mapping[str, Any]

    def text(self, spell: Spell) -> str:
        """Return it with its keywords spelled; nothing where one cannot be given."""
        spelled = [spell(name, value) for name, value in self.instead.items()]
        if None in spelled:
            return ""
        keywords = " or ".join(filter(None, spelled))
        return (
            self.words.replace("{}", keywords) if "{}" in self.words else f"{keywords} {self.words}"
        )


def as_keyword(name: str, value: Any) -> str:
    """Return a keyword as Python has it; `...` is a value that the reader knows.

    >>> as_keyword("missing", "drop"), as_keyword("state", ...)
    ("missing='drop'", 'state=…')
    """
    return f"{name}=…" if value is ... else f"{name}={value!r}"


@dataclass(frozen=True)
class Message:
    """What was found, where, in how many rows, and what would do."""

    what: str
    where: str = ""
    rows: int = 1
    remedies: tuple[Remedy, ...] = ()

    def text(self, spell: Spell = as_keyword) -> str:
        """Return the message in one line, whatever names are in it."""
        what = f"{self.where}: {self.what}" if self.where else self.what
        more = self.rows - 1
        like = f"{more} more {'row' if more == 1 else 'rows'} like this" if more > 0 else ""
        clauses = (what, like, *(remedy.text(spell) for remedy in self.remedies))
        return " ".join("; ".join(filter(None, clauses)).splitlines())


class Note(str):
    """A sentence to show with a result, whose keywords the command line writes as flags.

    >>> print(Note("2 names look like one", remedy="makes them one", spelling="join"))
    2 names look like one; spelling='join' makes them one
    """

    message: Message

    def __new__(cls, what: str, *, remedy: str = "", **instead: Any) -> Self:
        """Return the sentence with the keywords of Python."""
        message = Message(what, remedies=(Remedy(remedy, instead),) if remedy else ())
        note = super().__new__(cls, message.text())
        note.message = message
        return note

    @classmethod
    def after(cls, words: str, sentence: str) -> str:
        """Return a sentence after some words; if it is a note, it stays one."""
        if not isinstance(sentence, cls):
            return words + sentence
        (what,), instead = sentence.__getnewargs_ex__()
        return cls(words + what, **instead)

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return what makes it again, for pickle."""
        for remedy in self.message.remedies:
            return (self.message.what,), {"remedy": remedy.words, **remedy.instead}
        return (self.message.what,), {}


class DissensusError(Exception):
    """An error that another input would cure.

    Parameters
    ----------
    what
        What was found.
    where
        The file or table it was found in.
    rows
        In how many rows, the first of which `what` names.
    remedy
        What `instead` does, as "leaves such rows out"; `{}` in it stands for the keywords.
    instead
        Keywords and values of the public function that would do; `...` for a value of one's own.
    """

    def __init__(
        self, what: str = "", *, where: str = "", rows: int = 1, remedy: str = "", **instead: Any
    ) -> None:
        super().__init__(what)
        remedies = (Remedy(remedy, instead),) if remedy else ()
        self.message = Message(what, where, rows, remedies)

    def or_else(self, remedy: str, **instead: Any) -> Self:
        """Return the same error with one more remedy."""
        remedies = (*self.message.remedies, Remedy(remedy, instead))
        self.message = replace(self.message, remedies=remedies)
        return self

    def at(self, where: str) -> Self:
        """Return the same error about a file or table, unless it names one already."""
        if not self.message.where:
            self.message = replace(self.message, where=where)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it again, for another process."""
        return _again, (type(self), self.message)

    def __str__(self) -> str:
        """Return the message in one line."""
        return self.message.text()


def _again(cls: type[DissensusError], message: Message) -> DissensusError:
    error = cls(message.what)
    error.message = message
    return error


class DataError(DissensusError, ValueError):
    """A file or table cannot be read as what it should be."""


class KindError(DataError):
    """A verb does not take answers of a kind.

    Parameters
    ----------
    verb, kind
        The verb, and the kind of the answers.
    word
        `notimpl`, it could be done; `notyet`, not with today's parts; `never`, it makes no sense.
    reason
        Why not.
    """

    def __init__(self, verb: str, kind: str, word: str, reason: str) -> None:
        super().__init__(f"{verb} does not take {kind}: {reason}")
        self.verb, self.kind, self.word, self.reason = verb, kind, word, reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it again, for another process."""
        return type(self), (self.verb, self.kind, self.word, self.reason)


class MethodError(DissensusError, ValueError):
    """No method of that name, or invalid settings."""


class OptionError(DissensusError, ValueError):
    """Invalid options, or options that exclude each other."""


class OutputError(DissensusError, OSError):
    """A file or folder cannot be written."""


def install_command(extra: str) -> str:
    """Return the command that installs what an extra holds.

    A checkout is installed again with it; beside a wheel, which nobody can name, come its packages.
    """
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e '{checkout}[{extra}]'"
    try:
        listed = requires("dissensus") or []
    except PackageNotFoundError:  # neither installed nor a checkout
        listed = [f"dissensus[{extra}]; extra == '{extra}'"]
    needed = [one.partition(";")[0] for one in listed if re.search(rf"extra == .{extra}\b", one)]
    return " ".join(["pip install", *(f"'{one.strip()}'" for one in needed)])
