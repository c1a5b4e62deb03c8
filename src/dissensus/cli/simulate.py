"""`dissensus simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import note, show_json
from .files import replacing
from .verb import Options, command

_FILES = ("metadata.json", "ground_truth.npy", "matrices.npy")
_FORMATS = ("peerannot", "csv", "tsv", "parquet", "arrow", "jsonl")


@dataclass(frozen=True, kw_only=True)
class OfStrategy(Options):
    """Settings of strategies, of which each takes those that it has, as in peerannot."""

    matrix_file: str | None = None
    ratio: float | None = None
    ratio_diff: float | None = None
    random: float | None = None
    copy_prob: float | None = None

    def specification(self, strategy: str) -> str:
        """Return the strategy with its settings; the matrices of a file stand for any strategy."""
        from ..params import describe_fields, format_value
        from ..registry import simulators

        settings = dict(vars(self))
        if (file := settings.pop("matrix_file")) is not None:
            return f"given-matrices[file={format_value(file)}]"
        name, explicit = simulators.resolve(strategy)
        names = {field.name for field in describe_fields(simulators.find(name))}
        settings = {
            key: value for key, value in settings.items() if value is not None and key in names
        }
        inside = (f"{key}={format_value(value)}" for key, value in (settings | explicit).items())
        return f"{name}[{','.join(inside)}]"


@command(settings=("workerload", "feedback", "imbalance", "fast"))
def simulate(
    *,
    n_annotators: Any = "1",
    n_items: int = 20,
    n_classes: int = 2,
    folder: str = "./simulation",
    strategy: str = "hammer-spammer",
    to: str = "peerannot",
    model: OfStrategy,
    verbose: bool = False,
    as_json: bool = False,
    seed: int = 0,
    force: bool = False,
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
    from ..datasets.simulation import is_of_answers, simulate_answers
    from ..datasets.simulation import simulate as run
    from ..formats.tools.peerannot import write_simulation
    from ..registry import simulators, split_spec

    if len(n_annotators) != 1:
        raise OptionError("--n-annotators is one number here")
    own = "strategy" in _metadata(folder)
    size = {"n_annotators": n_annotators[0], "n_items": n_items, "seed": seed}
    file_format = "csv" if to == "table" else to
    if is_of_answers(strategy):
        ending = "csv" if file_format == "peerannot" else file_format
        _check_format(ending, to, _FORMATS[1:])
        replacing(_paths(folder, ending, _FILES[:1]), own=own, force=force)
        drawn = simulate_answers(strategy, feedback=settings["feedback"], **size)
        note(drawn.answers.summary)
        drawn.write(folder, ending)
        counts, written = {"n_answers": len(drawn.answers)}, f"{len(drawn.answers)} answers"
        options = drawn.options
    else:
        _check_format(file_format, to, _FORMATS)
        ending = "json" if file_format == "peerannot" else file_format
        replacing(_paths(folder, ending, _FILES), own=own, force=force)
        method = simulators.create(model.specification(strategy))
        with progress_bar("simulating") as progress:
            simulation = run(method, n_classes=n_classes, progress=progress, **size, **settings)
        write_simulation(simulation, folder, file_format, name=split_spec(strategy)[0])
        n_labels, options = len(simulation.annotations), simulation.options
        counts = {"n_labels": n_labels}
        written = f"{n_labels} labels by {n_annotators[0]} annotators on {n_items} items"
    if as_json:
        show_json({**options, **counts, "folder": folder})
        return
    for name, value in options.items() if verbose else ():
        note(f"{name}: {value}")
    note(f"{written} written to {folder}")


def _check_format(ending: str, to: str, formats: Sequence[str]) -> None:
    if ending not in formats:
        raise OptionError(f"--to {to}: a simulation is written as {', '.join(formats)}")


def _paths(folder: str, ending: str, others: Sequence[str]) -> list[Path]:
    """Return the files that a simulation writes."""
    return [Path(folder) / name for name in (f"answers.{ending}", f"truth.{ending}", *others)]


def _metadata(folder: str) -> dict[str, Any]:
    """Return the metadata of a folder; nothing if they cannot be read."""
    from ..formats.tools.peerannot import read_metadata

    with suppress(DataError):
        return read_metadata(folder)
    return {}
