"""`dissensus check`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import show_json
from .files import examine_path, read_known
from .verb import ANSWERS, KINDS, READING, options


@click.command()
@click.argument("path")
@options(("gold", "strict", *ANSWERS, *READING, *KINDS, "json"))
def check(path: str, gold: str | None, strict: bool, as_json: bool, **reading: Any) -> None:
    """Report what a file holds and what is wrong with it, before anything is aggregated.

    Finds repeated labels, classes spelled in several ways, annotators who share no item, who copy
    or always choose one class, impossible times, gold that contradicts everybody, and too little
    data to learn from. Each finding comes with examples and a remedy.

    \b
    Example:
      dissensus check answers.csv --gold truth.csv
    """
    from ..quality import checks as checking

    data, gaps = _examined(path, reading)
    with progress_bar("checking"):
        report = checking.check(data, gold=read_known(gold))
    findings = (*gaps, *report.findings)
    report = replace(report, findings=findings, path=path, format=data.format)
    if as_json:
        show_json(report.as_dict())
    else:
        report.show()
    if strict and report.serious:
        sys.exit(1)


def _examined(path: str, reading: dict[str, Any]) -> Any:
    """Return what a path holds, and a finding about incomplete rows."""
    from ..quality.checks import read_incomplete

    ways = ("error", "drop") if reading["missing"] == "error" else (reading["missing"],) * 2
    return read_incomplete(
        lambda missing: examine_path(path, **reading | {"missing": ways[missing == "drop"]})
    )
