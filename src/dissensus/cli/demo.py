"""`dissensus demo`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.progress import progress_bar
from ..pages.terminal import note, print_table, print_text, show_json
from .files import replacing
from .verb import options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..reporting.summary import RankedAnnotator, Summary


_FILES = ("answers.csv", "truth.csv", "labels.csv", "report.html")


@click.command()
@options("json", strategy="auto", folder="./demo")
def demo(strategy: str, folder: str, as_json: bool, force: bool) -> None:
    """Try dissensus on a data set that comes with it.

    Camera trap photos, labelled by forty people of very different accuracy. Writes answers.csv,
    truth.csv, labels.csv and report.html to the folder and prints a summary.

    \b
    Example:
      dissensus demo
    """
    from ..datasets import demo as _demo
    from ..formats.writers_init import write
    from ..formats.writing import write_truth
    from ..reporting.report import report
    from ..reporting.summary import summarise

    annotations, truth = _demo.demo()
    target = Path(folder)
    own = (target / "answers.csv").is_file() and _is_demo(target / "answers.csv", annotations)
    replacing([target / name for name in _FILES], own=own, force=force)
    with progress_bar("reporting") as progress:
        name = "Camera traps (demo)"
        page = report(annotations, strategy, name=name, truth=truth, progress=progress)
    write(annotations, target / "answers.csv")
    write_truth(truth, target / "truth.csv")
    write(page.result, target / "labels.csv")
    page.save(target / "report.html")
    summary = summarise(annotations, page.result, truth=truth)
    if as_json:
        show_json(summary.as_dict())
        return
    _print(summary)
    note(f"\nWritten to {target}: answers.csv, truth.csv, labels.csv. Try next:")
    note(f"  dissensus aggregate {target}/answers.csv -s majority -o majority.csv")
    note(f"  dissensus evaluate majority.csv --truth {target}/truth.csv")
    note(f"The report is in {target}/report.html: open it in a browser.")


def _is_demo(path: Path, annotations: Annotations) -> bool:
    """Return whether a file holds the annotations of the demo."""
    from ..errors import DataError
    from ..formats import read

    try:
        return read(path) == annotations
    except DataError:
        return False


def _print(summary: Summary) -> None:
    """Print a summary, the most important first."""
    from rich.bar import Bar

    from ..pages.sections import CONFIDENT

    spread = summary.labels_per_item
    print_text(
        f"\n{summary.n_annotators} annotators gave {summary.n_labels} labels "
        f"to {summary.n_items} items, {spread.least} to {spread.most} each "
        f"({spread.mean:.1f} on average)."
    )
    if summary.items_without_labels:
        print_text(f"{summary.items_without_labels} items have no label at all.")
    print_text(_agreement(summary))
    rounds = f" after {summary.rounds} iterations" if summary.rounds else ""
    ended = "" if summary.converged else ", not converged"
    print_text(
        f"{summary.method}{rounds}{ended}: the mean confidence of labels is "
        f"{summary.mean_confidence:.0%}; {summary.unsure:.0%} of the items are below "
        f"{CONFIDENT:.0%}."
    )
    accuracy = summary.evaluation and summary.evaluation.scores["accuracy"]
    if summary.evaluation and accuracy:
        print_text(
            f"The truth of {summary.evaluation.n_scored} items is known: {accuracy.value:.1%} of "
            f"the labels are right ({accuracy.low:.1%} to {accuracy.high:.1%})."
        )
    most = max((row.inferred for row in summary.classes), default=1.0)
    rows = [
        (row.name, f"{row.given:.1%}", f"{row.inferred:.1%}", Bar(most, 0, row.inferred, width=24))
        for row in summary.classes
    ]
    print_table(("class", "labels", "inferred", ""), rows, "Labels")
    _print_annotators("Annotators to trust most", summary.best)
    _print_annotators("Annotators to talk to", summary.worst)
    if summary.n_unranked:
        print_text(f"{summary.n_unranked} annotators gave too few labels to be ranked.")
    _print_disputed(summary)


def _agreement(summary: Summary) -> str:
    if math.isnan(summary.percent):
        return "Agreement is unknown: no item has two labels."
    if math.isnan(summary.alpha):
        return "All labels are the same class."
    return (
        f"Agreement is {summary.alpha_word}: two labels on one item are the same in "
        f"{summary.percent:.0%} of cases; Krippendorff's alpha is {summary.alpha:.2f}."
    )


def _print_annotators(title: str, ranked: tuple[RankedAnnotator, ...]) -> None:
    if ranked:
        rows = [
            (
                annotator.name,
                str(annotator.n_labels),
                f"{annotator.quality:.0%}",
                f"{annotator.agreement:.0%}",
            )
            for annotator in ranked
        ]
        print_table(("annotator", ">labels", ">right", ">with consensus"), rows, title)


def _print_disputed(summary: Summary) -> None:
    if summary.disputed:
        rows = [
            (
                item.name,
                item.label or "undecided",
                f"{item.confidence:.0%}",
                ", ".join(f"{count} {name}" for name, count in item.votes.items()),
            )
            for item in summary.disputed
        ]
        print_table(("item", "label", ">confidence", "votes"), rows, "Items to look at again")
