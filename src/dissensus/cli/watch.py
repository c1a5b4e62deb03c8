"""`dissensus watch`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError
from ..pages.terminal import note, show_json
from .verb import REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..scale.watching import Update

_TOGETHER = ("belong together", "exclude each other")


@click.command()
@click.argument("path", required=False)
@options(
    (
        *("label_studio", "project", "key", "listen", "question"),
        *("once", "every --interval", "columns", "classes", "missing", "json", "seed"),
    ),
    output=REQUIRED,
    strategy="dawid-skene",
    state=Computed("beside the output"),
    every=5.0,
    refit=0.5,
)
def watch(
    path: str | None,
    output: str,
    strategy: str,
    state: str | None,
    label_studio: str | None,
    project: int | None,
    key: str | None,
    listen: int | None,
    question: str | None,
    once: bool,
    every: float,
    refit: float,
    columns: str | None,
    classes: str | None,
    missing: str,
    as_json: bool,
    seed: int,
    force: bool,
) -> None:
    """Keep labels up to date while annotations arrive.

    PATH is a file that grows, or a folder that files are added to; its sub-folders are not read.
    New rows update the labels and the annotator parameters without a full fit; now and then there
    is one. Restarted, it resumes where it was: no row is lost or counted twice, also when files are
    renamed, copied or compressed. A column of ids (id, annotation_id …) ensures that even where
    rows are sent twice. A file that cannot be read is reported and stops no other. With the state
    of another PATH it does not go on, unless --force starts again.

    --label-studio follows a project instead: labels and confidences are written back as
    predictions, and the agreement of a task into its meta. With --listen its webhooks are taken at
    once, otherwise the project is read again and again. The API key comes from
    LABEL_STUDIO_API_KEY or a file.

    \b
    Example:
      dissensus watch answers/ -o labels.csv
      dissensus watch --label-studio http://localhost:8080 --project 1 --listen 9000 -o labels.csv
    """
    from ..formats.columns import parse_columns
    from ..formats.sources import format_for
    from ..scale.following import WatchedProject, connected
    from ..scale.online import CurrentLabels
    from ..scale.stream import Stream
    from ..scale.watching import WatchedFiles

    format_for(output)
    target = Path(output)
    declared = [name.strip() for name in classes.split(",")] if classes else None
    fitting: dict[str, Any] = {"classes": declared, "refit": refit, "seed": seed}
    live = {"--project": project, "--key": key, "--listen": listen, "--question": question}
    of_files = {"PATH": path, "--state": state, "--columns": columns}
    for name, value in (of_files if label_studio else live).items():
        if value is not None:
            raise OptionError(f"{name} and --label-studio {_TOGETHER[bool(label_studio)]}")
    if label_studio is not None:
        if project is None:
            raise OptionError("--label-studio needs the number of a project: --project NUMBER")
        labels = CurrentLabels(strategy, **fitting)
        watched = WatchedProject(
            connected(label_studio, project, key),
            labels,
            target,
            question=question,
            classes=declared,
            port=listen,
            once=once,
        )
        _show(watched.updates(every), as_json)
        return
    if path is None:
        raise OptionError("name a file or folder to watch, or --label-studio URL")
    folder = state or str(target.with_name(f".{target.name}.state"))
    with Stream.opened(folder, strategy, **fitting) as stream:
        files = WatchedFiles(
            stream,
            Path(path),
            target,
            columns=parse_columns(columns),
            missing=missing,
            joined="aggregate --spelling join makes them one",
            once=once,
        )
        files.resume(force=force)
        _show(files.updates(every), as_json)


def _show(updates: Iterator[Update], as_json: bool) -> None:
    for update in updates:
        if as_json:
            show_json(update.as_dict())
        else:
            for sentence in update.sentences:
                note(sentence)
