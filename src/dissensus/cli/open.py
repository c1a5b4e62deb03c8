"""`dissensus open`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import note
from .files import examine_path, holds_marks, split_names
from .verb import ANSWERS, KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..formats import Reading


@click.command("open")
@click.argument("path")
@options(
    (
        *("show", "no_browser", "arbiter", "tls_cert", "tls_key", "recover"),
        *(*ANSWERS, *READING, *KINDS, "seed"),
    ),
    strategy="auto",
    target=0.95,
    reviews=1,
    host="127.0.0.1",
    port=Computed("8642, or a free one"),
    state=Computed("PATH.workbench"),
    title=Computed("the name of the file"),
)
def open(  # noqa: A001
    path: str,
    strategy: str,
    show: str | None,
    target: float,
    reviews: int,
    arbiter: str | None,
    host: str,
    port: int | None,
    no_browser: bool,
    state: str | None,
    title: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    recover: bool,
    inputs: str | None,
    seed: int,
    **reading: Any,
) -> None:
    """Open the workbench: settle disagreement in the browser.

    Items with all their labels, certainty and the reasons of disagreement; a queue that removes
    most errors per minute; decisions by keyboard, by one or several reviewers; what if an annotator
    is left out or classes are merged. Decisions are kept beside PATH, which is never changed, and
    can be taken home as gold.

    \b
    Example:
      dissensus open answers.csv --inputs texts.csv
    """
    from ..app.server import serve
    from ..app.state_files import open_state
    from ..app.workbench import Caller, Workbench

    if path == "-" or not Path(path).exists():
        raise DataError(f"{path}: no such file or folder")
    if bool(tls_cert) != bool(tls_key):
        raise OptionError("--tls-cert and --tls-key belong together")
    first = [examine_path(path, **reading, inputs=inputs)]
    if holds_marks(first[0]):
        kind = first[0].answers.kind
        raise DataError(f"{path}: the workbench settles classes, not {kind}; `report` shows them")

    def load() -> Reading:
        examined = first.pop() if first else examine_path(path, **reading, inputs=inputs)
        return examined if inputs is None else _with_inputs(examined, inputs, split_names(show))

    state = state or f"{path.rstrip('/')}.workbench"
    scope = partial(click.Context, click.get_current_context().command)  # writes flags
    journal = open_state(state, say=note, recover=recover)
    try:
        _ask_password(journal, host)
        source = Path(path)
        with progress_bar("fitting") as progress:
            workbench = Workbench(
                load,
                journal,
                name=title or source.name,
                source=source if source.is_file() else None,
                folder=_folder(source, inputs),
                method=strategy,
                target=target,
                reviews=reviews,
                seed=seed,
                progress=progress,
                caller=Caller(aggregate_command, scope),
            )
        for sentence in workbench.skipped:
            note(f"{sentence} This is skipped; What if takes it back.")
        if workbench.problem:
            note(f"The fit failed {workbench.problem}; What if takes them back.")
        if arbiter:
            workbench.name_arbiter(arbiter, arbiter)
    except BaseException:
        journal.close()
        raise
    serve(
        workbench,
        host=host,
        port=port,
        browser=not no_browser,
        certificate=tls_cert,
        key=tls_key,
        say=note,
    )


def aggregate_command(settings: Mapping[str, str]) -> list[str]:
    """Return the command that repeats a fit of the workbench."""
    flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return ["dissensus", "aggregate", "annotations.csv", *flags]


def _folder(path: Path, inputs: str | None) -> Path:
    """Return where files of items are looked for."""
    place = path if inputs is None else Path(inputs)
    return place if place.is_dir() else place.parent


def _with_inputs(reading: Reading, inputs: str, show: list[str] | None) -> Reading:
    """Return a reading with the texts or files of its items."""
    from ..formats.side_tables import read_texts

    if not Path(inputs).is_dir():
        return replace(reading, texts=read_texts(inputs, show))
    import polars as pl

    from ..app.browse import files_by_item

    names = files_by_item(Path(inputs), reading.annotations.items.tolist())
    if not names:
        raise DataError(f"{inputs}: no images, sounds or videos that are named like the items")
    table = pl.DataFrame({"item": list(names), "text": list(names.values())})
    return replace(reading, texts=table)


def _ask_password(journal: Any, host: str) -> None:
    """Ask for a password, if others than this machine can reach the workbench."""
    from ..app.guard import Hosts, set_password

    if Hosts(host).team and journal.secret("password") is None:
        note("Others can reach this address, so reviewers need a password.")
        set_password(
            journal, click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        )
