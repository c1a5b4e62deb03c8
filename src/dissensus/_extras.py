"""Optional parts: the command that installs one, in a checkout or beside a wheel."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path


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
