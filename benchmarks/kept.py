"""Measurements that are kept, so that a long study goes on where it was stopped.

One JSON file for every measurement, in a folder of the study below `out/`. What is there is taken
as it is, also when the source has changed since; delete the folder to measure anew. What failed is
tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from crowds import OUT

__all__ = ["KEPT", "kept"]

# For every page that is made of these.
KEPT = (
    "Measurements are kept from run to run: the source and the command named above are those of "
    "the last run, and rows may be older."
)


def kept(study: str, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what was measured under this name before, or measure and keep it."""
    path = OUT / study / f"{re.sub(r'[^A-Za-z0-9_.=,-]+', '-', name)}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    found = measure()
    if "failed" in found:
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(found), encoding="utf-8")
    draft.rename(path)
    return found
