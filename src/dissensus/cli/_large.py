"""`dissensus aggregate` for many rows: sets of Parquet files, data beyond memory, clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ._shared import note, progress_bar, show_json

if TYPE_CHECKING:
    from ..engine import Engine
    from ..readers import Reading
    from ..scale.files import Labelled

__all__ = ["SIZE", "Large", "engine_at", "large_options", "tell_labelled"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class _Size(click.ParamType[int]):
    """Bytes, as people write them: 4GiB, 500 MB, 8G."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return how many bytes are meant."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)(i?B?)\s*", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is no size; write 4GiB or 500MB", param, ctx)
        number, unit, ending = match.groups()
        if unit and ending.upper() == "B":
            return int(float(number) * 1000 ** ("KMGT".index(unit.upper()) + 1))
        return int(float(number) * _UNITS[unit.upper()])


SIZE = _Size()

_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where to work: on this machine, or on a Dask cluster.",
    ),
    click.option("--address", help="Of a Dask scheduler.  [default: a cluster on this machine]"),
    click.option(
        "--memory",
        type=SIZE,
        help="Stay below this, for sets of Parquet files: 4GiB.  [default: half of the machine's]",
    ),
    click.option("--work", help="Folder for unfinished work.  [default: beside the output]"),
    click.option("--resume", is_flag=True, help="Take up unfinished work from its last round."),
)


def large_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for many rows."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def engine_at(engine: str, address: str | None, threads: int | None) -> Iterator[Engine | None]:
    """Yield a cluster where one is asked for."""
    if engine != "dask":
        from ..errors import OptionError

        if address is not None:
            raise OptionError("--address is for --engine dask")
        yield None
        return
    from ..engine.cluster import joined

    with joined(address, threads) as cluster:
        yield cluster


@dataclass(frozen=True)
class Large:
    """What was asked, for data that may be many files or beyond memory."""

    paths: tuple[str, ...]
    engine: str
    address: str | None
    memory: int | None
    work: str | None
    resume: bool
    threads: int | None
    reading: dict[str, Any]

    def wanted(self) -> bool:
        """Return whether the rows have to be worked on where they are."""
        from ..scale.files import fits
        from ..sharded.chunks import find_files, holds_parquet, is_many, rows_in

        if not is_many(self.paths) and not holds_parquet(self.paths[0]):
            return False
        if self.engine == "dask" or self.resume:
            return True
        return not fits(rows_in(find_files(self.paths)), self.memory)

    def read(self) -> Reading:
        """Return a set of files that fits into memory."""
        from ..readers import Reading
        from ..sharded.chunks import chunks_of, find_files, read_all

        rows = chunks_of(find_files(self.paths), self._columns, missing=self.reading["missing"])
        return Reading(read_all(rows, self._classes), "parquet")

    def aggregate(self, strategy: str | None, output: str | None, gold: Any, seed: int) -> Labelled:
        """Write the labels; return what was learned."""
        from ..scale.files import aggregate_files

        if strategy is None:
            strategy = "dawid-skene"
            note("beyond memory, or on a cluster, the default is -s dawid-skene")
        with (
            engine_at(self.engine, self.address, self.threads) as cluster,
            progress_bar("aggregating") as progress,
        ):
            return aggregate_files(
                self.paths,
                strategy,
                output,
                engine=cluster,  # type: ignore[arg-type]
                columns=self._columns,
                classes=self._classes,
                gold=gold,
                missing=self.reading["missing"],
                memory=self.memory,
                threads=self.threads,
                work=self.work,
                resume=self.resume,
                seed=seed,
                on_round=progress,
            )

    @property
    def _columns(self) -> dict[str, str]:
        from ..readers.columns import parse_columns

        return parse_columns(self.reading["columns"])

    @property
    def _classes(self) -> list[str] | None:
        told = self.reading["classes"]
        return [name.strip() for name in told.split(",")] if told else None


def tell_labelled(done: Labelled, as_json: bool) -> None:
    """Say what was learned, for machines if asked."""
    outcome = done.outcome
    if outcome.trace and not outcome.converged:
        note(f"not converged after {len(outcome.trace)} rounds; more with max_iter")
    if as_json:
        show_json(
            {
                "method": outcome.method,
                "n_items": outcome.annotations.n_items,
                "n_annotators": outcome.annotations.n_annotators,
                "n_labels": len(outcome.annotations),
                "classes": outcome.annotations.classes.tolist(),
                "converged": outcome.converged,
                "rounds": len(outcome.trace),
                "trace": list(outcome.trace),
            }
        )
