"""`dissensus simulate`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import note, show_json
from .files import replacing
from .verb import options

_FILES = ("metadata.json", "ground_truth.npy", "matrices.npy")
_FORMATS = ("peerannot", "csv", "tsv", "parquet", "arrow", "jsonl")
_OF_STRATEGY = ("ratio", "ratio_diff", "random", "copy_prob")  # options that some strategies use


@click.command()
@options(
    (
        *("n_annotators --n-worker", "n_items --n-task", "to --format", "matrix_file", "ratio"),
        *("ratio_diff", "random", "copy_prob", "workerload", "feedback", "imbalance_votes", "fast"),
        *("verbose", "json", "seed"),
    ),
    n_annotators="1",
    n_items=20,
    n_classes=2,
    folder="./simulation",
    strategy="hammer-spammer",
    to="peerannot",
)
def simulate(
    n_annotators: tuple[int, ...],
    folder: str,
    strategy: str,
    to: str,
    matrix_file: str | None,
    verbose: bool,
    as_json: bool,
    force: bool,
    **settings: Any,
) -> None:
    """Simulate annotations with known truth.

    The folder gets the annotations, the truth, the confusion matrices of the annotators and every
    option. The same options and seed give the same annotations, draw by draw those of peerannot.
    --to peerannot writes answers.json and arrays; csv, tsv, parquet, arrow and jsonl are tables.
    An earlier simulation is replaced, another data set only with --force. objects, comparisons,
    masks and sets draw boxes, comparisons, masks and sets of options; they are written as csv.

    \b
    Example:
      dissensus simulate --n-annotators 30 --n-items 200 -K 5 -s independent-confusion -fb 10
    """
    from ..datasets.simulation import is_of_answers
    from ..datasets.simulation import simulate as run
    from ..formats.tools.peerannot import write_simulation
    from ..registry import simulators, split_spec

    if len(n_annotators) != 1:
        raise OptionError("--n-annotators is one number here")
    file_format = "csv" if to == "table" else to
    if is_of_answers(strategy):
        _simulate_answers(
            strategy,
            n_annotators[0],
            settings,
            folder=folder,
            to=file_format,
            as_json=as_json,
            force=force,
        )
        return
    if file_format not in _FORMATS:
        raise OptionError(f"--to {to}: a simulation is written as {', '.join(_FORMATS)}")
    own = "strategy" in _metadata(folder)
    ending = "json" if file_format == "peerannot" else file_format
    names = (f"answers.{ending}", f"truth.{ending}", *_FILES)
    replacing([Path(folder) / name for name in names], own=own, force=force)
    of_strategy = {name: settings.pop(name) for name in _OF_STRATEGY}
    spec = _with_settings(strategy, of_strategy, matrix_file)
    with progress_bar("simulating") as progress:
        simulation = run(
            simulators.create(spec), n_annotators=n_annotators[0], progress=progress, **settings
        )
    write_simulation(simulation, folder, file_format, name=split_spec(strategy)[0])
    n_labels = len(simulation.annotations)
    if as_json:
        show_json({**simulation.options, "n_labels": n_labels, "folder": folder})
        return
    if verbose:
        for name, value in simulation.options.items():
            note(f"{name}: {value}")
    crowd = f"{n_annotators[0]} annotators on {settings['n_items']} items"
    note(f"{n_labels} labels by {crowd} written to {folder}")


def _simulate_answers(
    strategy: str,
    n_annotators: int,
    settings: dict[str, Any],
    *,
    folder: str,
    to: str,
    as_json: bool,
    force: bool,
) -> None:
    """Write simulated answers and their truth, and every option."""
    import numpy as np

    from ..answers import Answers
    from ..base.names import as_names
    from ..datasets.simulation import simulate_answers
    from ..formats.writers_init import write
    from ..formats.writing import write_columns, write_json

    ending = "csv" if to == "peerannot" else to
    if ending not in _FORMATS:
        raise OptionError(f"--to {to}: a simulation is written as {', '.join(_FORMATS[1:])}")
    files = [Path(folder) / name for name in (f"answers.{ending}", f"truth.{ending}")]
    note_file = Path(folder) / _FILES[0]
    replacing([*files, note_file], own="strategy" in _metadata(folder), force=force)
    common = {name: settings[name] for name in ("n_items", "feedback", "seed")}
    drawn = simulate_answers(strategy, n_annotators=n_annotators, **common)
    note(drawn.answers.summary)
    Path(folder).mkdir(parents=True, exist_ok=True)
    write(drawn.answers, files[0])
    if isinstance(drawn.truth, Answers):
        write(drawn.truth, files[1])
    else:
        scores = {"thing": as_names(drawn.truth), "score": np.array(list(drawn.truth.values()))}
        write_columns(scores, files[1])
    write_json(note_file, drawn.options, indent=2)
    if as_json:
        show_json({**drawn.options, "n_answers": len(drawn.answers), "folder": folder})
    else:
        note(f"{len(drawn.answers)} answers written to {folder}")


def _metadata(folder: str) -> dict[str, Any]:
    """Return the metadata of a folder; nothing if they cannot be read."""
    from ..formats.tools.peerannot import read_metadata

    with suppress(DataError):
        return read_metadata(folder)
    return {}


def _with_settings(strategy: str, settings: dict[str, Any], matrix_file: str | None) -> str:
    """Return the strategy with the settings that options give and it knows.

    peerannot takes all options for all strategies and uses those that fit. With a matrix file,
    whatever strategy is named, the matrices are those of the file.
    """
    from ..params import describe_fields, format_value
    from ..registry import simulators

    if matrix_file:
        return f"given-matrices[file={format_value(matrix_file)}]"
    name, explicit = simulators.resolve(strategy)
    setting_names = {field.name for field in describe_fields(simulators.find(name))}
    given_settings = {
        key: value for key, value in settings.items() if value is not None and key in setting_names
    }
    inside = ",".join(
        f"{key}={format_value(value)}" for key, value in (given_settings | explicit).items()
    )
    return f"{name}[{inside}]"
