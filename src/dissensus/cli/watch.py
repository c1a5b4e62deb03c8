"""`dissensus watch`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..pages.terminal import note, show_json
from .files import split_patterns
from .verb import Options, command, computed

if TYPE_CHECKING:
    from ..scale.watching import Update

_TOGETHER = ("belong together", "exclude each other")


@dataclass(frozen=True, kw_only=True)
class LabelStudio(Options):
    """A project that is followed instead of files."""

    label_studio: str | None = None
    project: int | None = None
    key: str | None = None
    listen: int | None = None
    question: str | None = None

    def others(self) -> dict[str, Any]:
        """Return what says more about the project, by flag."""
        names = ("project", "key", "listen", "question")
        return {f"--{name}": getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Rows(Options):
    """How the rows of files are read, and where it is kept which are."""

    state: str | None = computed("beside the output")
    columns: str | None = None
    missing: str = "error"

    def others(self) -> dict[str, Any]:
        """Return what is for files, by flag."""
        missing = None if self.missing == "error" else self.missing
        return {"--state": self.state, "--columns": self.columns, "--missing": missing}


@command()
def watch(
    path: str | None = None,
    *,
    output: str,
    strategy: str = "dawid-skene",
    every: float = 5.0,
    refit: float = 0.5,
    live: LabelStudio,
    once: bool = False,
    rows: Rows,
    classes: str | None = None,
    as_json: bool = False,
    seed: int = 0,
    force: bool = False,
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
    target, url = Path(output), live.label_studio
    declared = split_patterns(classes) or None
    fitting: dict[str, Any] = {"classes": declared, "refit": refit, "seed": seed}
    of_files = {"PATH": path} | rows.others()
    for name, value in (of_files if url else live.others()).items():
        if value is not None:
            raise OptionError(f"{name} and --label-studio {_TOGETHER[bool(url)]}")
    if url is not None:
        if live.project is None:
            raise OptionError("--label-studio needs the number of a project: --project NUMBER")
        project = WatchedProject(
            connected(url, live.project, live.key),
            CurrentLabels(strategy, **fitting),
            target,
            question=live.question,
            classes=declared,
            port=live.listen,
            once=once,
        )
        _show(project.updates(every), as_json)
        return
    if path is None:
        raise OptionError("name a file or folder to watch, or --label-studio URL")
    folder = rows.state or str(target.with_name(f".{target.name}.state"))
    with Stream.opened(folder, strategy, **fitting) as stream:
        files = WatchedFiles(
            stream,
            Path(path),
            target,
            columns=parse_columns(rows.columns),
            missing=rows.missing,
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
