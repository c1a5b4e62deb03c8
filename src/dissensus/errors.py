"""Errors caused by the input of a user.

    DissensusError
    ├── DataError       a file or table cannot be read as what it should be
    ├── MethodError     no method of that name, or invalid settings
    ├── OptionError     invalid options, or options that exclude each other
    └── OutputError     a file or folder cannot be written

A message says what was found, where, and what would do, in one line. The command line shows it
as it is and exits with 2. Every other exception is a bug of ours and keeps its traceback.

Optional parts: the command that installs one, in a checkout or beside a wheel.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path


class DissensusError(Exception):
    """An error that another input would cure."""

    def __str__(self) -> str:
        """Return the message in one line, whatever names are in it."""
        return " ".join(super().__str__().splitlines())


class DataError(DissensusError, ValueError):
    """A file or table cannot be read as what it should be."""


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
