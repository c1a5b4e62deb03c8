"""`dissensus demo`."""

from __future__ import annotations

import click

from ._shared import json_option, note, show_json

__all__ = ["demo"]


@click.command()
@click.option("--strategy", "-s", default="auto", show_default=True, help="name[setting=value,…]")
@click.option(
    "--folder", default="./demo", show_default=True, help="Where annotations and labels go."
)
@json_option
def demo(strategy: str, folder: str, as_json: bool) -> None:
    """Show what dissensus does, on a data set that comes with it.

    Photos from camera traps, labelled by forty people of very different care. Writes
    answers.csv, truth.csv, labels.csv and report.html to the folder and prints what there is to
    know.

    \b
    Example:
      dissensus demo
    """
    from pathlib import Path

    from .. import _demo
    from ..reporting.report import report
    from ..reporting.summary import summarise
    from ..writers import write
    from ..writers.table_files import write_truth
    from ._summary import print_summary

    annotations, truth = _demo.demo()
    told = report(annotations, strategy, name="Camera traps (demo)", truth=truth)
    result = told.result
    position = Path(folder)
    write(annotations, position / "answers.csv")
    write_truth(truth, position / "truth.csv")
    write(result, position / "labels.csv")
    told.save(position / "report.html")
    summary = summarise(annotations, result, truth=truth)
    if as_json:
        show_json(summary.as_dict())
        return
    print_summary(summary)
    note(f"\nWritten to {position}: answers.csv, truth.csv, labels.csv. Try next:")
    note(f"  dissensus aggregate {position}/answers.csv -s majority -o majority.csv")
    note(f"  dissensus evaluate majority.csv --truth {position}/truth.csv")
    note(f"The report is in {position}/report.html: open it in a browser.")
