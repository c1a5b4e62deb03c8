"""`dissensus simulate`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import json_option, note, progress_bar, seed_option, show_json

__all__ = ["simulate"]


@click.command()
@click.option("--n-worker", "n_annotators", default=1, show_default=True, help="Annotators.")
@click.option("--n-task", "n_items", default=20, show_default=True, help="Items.")
@click.option("--n-classes", "-K", default=2, show_default=True, help="Classes.")
@click.option("--folder", default="./simulation", show_default=True, help="Where it goes.")
@click.option(
    "--strategy",
    "-s",
    default="hammer-spammer",
    show_default=True,
    help="name[setting=value,…]; see `dissensus methods`.",
)
@click.option("--matrix-file", help="Confusion matrices to use: .npy of (annotator, true, given).")
@click.option("--ratio", "-r", type=float, help="Share of spammers, students or good annotators.")
@click.option("--ratio-diff", type=float, help="discrete-difficulty: easy items for one hard item.")
@click.option("--random", type=float, help="discrete-difficulty: share of items nobody can know.")
@click.option("--copy-prob", type=float, help="student-teacher: chance to copy the very answer.")
@click.option("--workerload", "-wl", type=int, help="Items per annotator, at most.")
@click.option("--feedback", "-fb", type=int, help="Labels per item, at most.")
@click.option("--imbalance-votes", "imbalance", is_flag=True, help="Unequal numbers of labels.")
@click.option("--fast", is_flag=True, help="All at once: other draws, a thousand times faster.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["peerannot", "table", "csv", "tsv", "parquet", "arrow", "jsonl"]),
    default="peerannot",
    show_default=True,
    help="`peerannot` writes answers.json and arrays; the others answers and truth as tables.",
)
@click.option("--verbose", is_flag=True, help="Say every option.")
@json_option
@seed_option
def simulate(
    n_annotators: int,
    n_items: int,
    n_classes: int,
    folder: str,
    strategy: str,
    matrix_file: str | None,
    workerload: int | None,
    feedback: int | None,
    imbalance: bool,
    fast: bool,
    format_: str,
    verbose: bool,
    as_json: bool,
    seed: int,
    **settings: float | None,
) -> None:
    """Make annotations of a crowd whose truth is known.

    The folder gets the annotations, the truth, the crowd's confusion matrices and every option.
    With the same options and seed it is the same crowd, draw by draw as peerannot draws it.

    \b
    Example:
      dissensus simulate --n-worker 30 --n-task 200 -K 5 -s independent-confusion --feedback 10
    """
    from ..registry import simulators
    from ..simulation import simulate as run
    from ..writers.folders import write_simulation

    spec = _with_settings(strategy, settings, matrix_file)
    with progress_bar("simulating", n_items) as progress:
        made = run(
            simulators.create(spec),
            n_items=n_items,
            n_annotators=n_annotators,
            n_classes=n_classes,
            feedback=feedback,
            workerload=workerload,
            imbalance=imbalance,
            seed=seed,
            fast=fast,
            progress=lambda done, _total: progress(done),
        )
    write_simulation(made, folder, "csv" if format_ == "table" else format_)
    if as_json:
        show_json({**made.options, "n_labels": len(made.annotations), "folder": folder})
        return
    if verbose:
        for name, value in made.options.items():
            note(f"{name}: {value}")
    note(
        f"{len(made.annotations)} labels by {n_annotators} annotators on {n_items} items "
        f"written to {folder}"
    )


def _with_settings(strategy: str, settings: dict[str, Any], matrix_file: str | None) -> str:
    """Return the strategy with what options say; those it does not know are left aside.

    peerannot takes all options for all strategies and uses what fits. With a matrix file,
    whatever strategy is named, the matrices are those of the file.
    """
    from ..params import describe_fields, format_value
    from ..registry import simulators

    if matrix_file:
        return f"given-matrices[file={format_value(matrix_file)}]"
    name, told = simulators.resolve(strategy)
    known = {field.name for field in describe_fields(simulators.find(name))}
    given = {key: value for key, value in settings.items() if value is not None and key in known}
    inside = ",".join(f"{key}={format_value(value)}" for key, value in (given | told).items())
    return f"{name}[{inside}]"
