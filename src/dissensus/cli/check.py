"""`dissensus check`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import cell, print_table, print_text, show, show_json, with_flags
from .files import class_options, examine_annotations, examine_answers, read_known
from .verb import ANSWERS, KINDS, READING, options

if TYPE_CHECKING:
    from ..quality.checks import Check

_MOST_CLASSES = 12
_FEW, _MOST_NAMES = 3, 200  # names in a sentence, and on the terminal
_LINE = 55  # characters of examples on one line


@click.command()
@click.argument("path")
@options(("gold", "strict", *ANSWERS, *READING, *KINDS, "scale --labels", "json"))
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

    answer_reading = examine_answers(path, **reading)
    if answer_reading is not None:
        if gold:
            raise OptionError(
                f"--gold is for classes here, and these are {answer_reading.answers.kind}"
            )
        with progress_bar("checking"):
            report = checking.check(answer_reading.answers)
        _show(path, answer_reading.format, report, as_json=as_json, strict=strict)
        return
    reading = class_options(path, reading)
    data, gaps = checking.read_incomplete(
        lambda missing: examine_annotations(
            path, **reading | ({"missing": missing} if reading["missing"] == "error" else {})
        )
    )
    with progress_bar("checking"):
        report = checking.check(data, gold=read_known(gold))
    report = replace(report, findings=(*gaps, *report.findings))
    _show(path, data.format, report, as_json=as_json, strict=strict)


def _show(path: str, format_: str, report: Check, *, as_json: bool, strict: bool) -> None:
    findings = (replace(one, remedy=with_flags(one.remedy)) for one in report.findings)
    report = replace(report, findings=tuple(findings))
    if as_json:
        show_json({"path": path, "format": format_, **report.as_dict()})
    else:
        _print(path, format_, report)
    if strict and report.serious:
        sys.exit(1)


def _print(path: str, format_: str, report: Check) -> None:
    word = {"classes": "labels", "numbers": "numbers"}.get(report.kind, "answers")
    gold = f", gold for {report.n_gold}" if report.n_gold else ""
    print_text(
        f"{path} ({format_}): {report.n_labels} {word} by "
        f"{report.n_annotators} annotators on {report.n_items} items{gold}."
    )
    per = "answers" if word == "answers" else "labels"
    spreads = {
        f"{per} per item": report.labels_per_item,
        f"{per} per annotator": report.labels_per_annotator,
    }
    rows = [
        (name, str(spread.least), f"{spread.median:g}", f"{spread.mean:.1f}", str(spread.most))
        for name, spread in spreads.items()
    ]
    print_table(("", ">least", ">median", ">mean", ">most"), rows, box=None)
    if word != "answers":
        print_text(f"scale: {report.scale} ({report.reason})")
    if report.kind == "classes":
        print_text(_classes(report))
    for role, names in (
        ("items", report.left_out.items),
        ("annotators", report.left_out.annotators),
    ):
        if len(names) > _FEW:
            continued = " … (all with --json)" if len(names) > _MOST_NAMES else ""
            print_text(f"{role} without a label: {', '.join(names[:_MOST_NAMES])}{continued}")
    if report.findings:
        _print_findings(report)
    else:
        print_text("Nothing was found that speaks against aggregating.")


def _print_findings(report: Check) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column("", no_wrap=True)
    table.add_column("", ratio=1, overflow="fold")
    for finding in report.findings:
        line = "; ".join(finding.examples)
        examples = [line] if line and len(line) <= _LINE else finding.examples
        lines = [cell(finding.sentence), *(f"[dim]{cell(example)}[/dim]" for example in examples)]
        if finding.remedy:
            lines.append(f"→ {cell(finding.remedy)}")
        name = cell(finding.code)
        if finding.severity == "serious":
            name = f"[bold red]{name}\nserious[/bold red]"
        table.add_row(name, "\n".join(lines))
    show(table)
    serious = len(report.serious)
    print_text(f"{serious} serious, {len(report.findings) - serious} worth knowing.")


def _classes(report: Check) -> str:
    """Return the most common classes and their share; ordered classes in order."""
    ordered = list(report.classes.items())
    if report.scale == "nominal":
        ordered.sort(key=lambda pair: -pair[1])
    total = max(report.n_labels, 1)
    most_common = ", ".join(
        f"{name if len(name) <= 30 else name[:29] + '…'} {count / total:.1%}"
        for name, count in ordered[:_MOST_CLASSES]
    )
    continued = f", … ({len(ordered)} in all)" if len(ordered) > _MOST_CLASSES else ""
    return f"classes: {most_common}{continued}"
