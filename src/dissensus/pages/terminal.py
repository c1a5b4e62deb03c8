"""Writing results: messages, JSON and tables for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ..answers.left_out import LeftOut
from ..base.files import printable
from ..base.progress import hide_bar
from ..errors import DissensusError, Note, Spell
from .sections import SERIOUS, Action, Finding, Section
from .sections import Table as SmallTable

_LINE = 55  # characters of examples on one line


def is_first() -> bool:
    """Return whether this is the first of several processes, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def note(message: str) -> None:
    """Write a message to standard error; of several processes only the first does."""
    if is_first():
        echo(message, err=True)


def with_flags(message: str) -> str:
    """Return a message with the flags of the verb that runs, instead of keywords."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(message, Note):
        return message
    return message.message.text(flags_of(context.command))


def words_of(problem: DissensusError) -> str:
    """Return an error with the flags of the verb that runs, instead of keywords."""
    context = click.get_current_context(silent=True)
    return str(problem) if context is None else problem.message.text(flags_of(context.command))


def flags_of(verb: click.Command) -> Spell:
    """Return how keywords are written as flags of a verb, nothing where it does not have them."""
    flags = {one.name: one.opts[0] for one in verb.params if isinstance(one, click.Option)}
    flags |= {_keyword(flag): flag for one in verb.params for flag in one.opts}

    def spell(name: str, value: Any) -> str | None:
        flag = flags.get(name)
        if flag is None or value is True or value is ...:
            return flag
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        return f"{flag} {value}"

    return spell


def _keyword(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def echo(message: str, *, err: bool = False, end: str = "\n") -> None:
    """Print a line, with the control characters in it made visible."""
    hide_bar()
    click.echo(printable(with_flags(message)) + end, err=err, nl=False)


def note_reading(notes: Iterable[str], left_out: LeftOut) -> None:
    """Write notes about data that were read, each once per run; `show_json` has what is missing."""
    about = _about_run()
    written = about.setdefault("notes", set())
    for sentence in notes:
        if sentence not in written:
            written.add(sentence)
            note(sentence)
    about["left_out"] = about.get("left_out", LeftOut()) + left_out


def _about_run() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    about: dict[str, Any] = {} if context is None else context.meta.setdefault(__name__, {})
    return about


def show_json(content: Any) -> None:
    """Print a result as JSON, and what was left out of its data, if anything was."""
    left_out = _about_run().get("left_out")
    if left_out and isinstance(content, dict) and "left_out" not in content:
        content = content | {"left_out": left_out.to_dict()}
    content = _spelled(content)
    body = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        body = json.dumps(content, indent=2, allow_nan=False)
    echo(body)  # a visible control character is JSON's own escape of it


def _spelled(content: Any) -> Any:
    """Return a result with the flags of the verb in its notes."""
    if isinstance(content, dict):
        return {name: _spelled(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_spelled(value) for value in content]
    return with_flags(content) if isinstance(content, Note) else content


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as a cell of a table; a dash if it is unknown."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def interval(low: float, high: float, digits: int = 4) -> str:
    """Return an interval as a cell of a table; nothing if it is unknown."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{low:.{digits}f} to {high:.{digits}f}"


def print_text(text: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    show(printable(with_flags(text)), markup=False)


def show(renderable: Any, **settings: Any) -> None:
    """Print a text or table of rich, whose texts are `cell`s."""
    from rich.console import Console

    hide_bar()
    Console(highlight=False).print(renderable, **settings)


def cell(text: Any) -> Any:
    """Return a text as rich prints it: without markup and control characters."""
    from rich.markup import escape

    return escape(printable(with_flags(text))) if isinstance(text, str) else text


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, box: Any = ...
) -> None:
    """Print a table; columns whose name begins with `>` are aligned to the right."""
    from rich.box import HEAVY_HEAD
    from rich.table import Table

    frame: dict[str, Any] = {"box": HEAVY_HEAD}
    if box is not ...:
        frame = {"box": box, "padding": (0, 1, 0, 0)}
    table = Table(title=cell(title), **frame)
    for name in columns:
        justify: Any = "right" if name.startswith(">") else "left"
        table.add_column(cell(name.lstrip(">")), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    show(table)


def print_sections(sections: Iterable[Section]) -> None:
    """Print sections: text, tables, findings, then notes; drawings are for pages.

    Of subsections with a title, that and the sentences.
    """
    for section in sections:
        for sentence in section.text:
            print_text(sentence)
        for panel in section.panels:
            for part in panel:
                if isinstance(part, SmallTable):
                    texts, numbers = part.heads[: part.n_texts], part.heads[part.n_texts :]
                    heads = (*texts, *(f">{head}" for head in numbers))
                    box = {} if part.framed else {"box": None}
                    print_table(heads, part.rows, part.caption or None, **box)
        if section.findings is not None:
            print_findings(section.findings)
        for sentence in section.notes:
            print_text(f"Note: {sentence.removesuffix('.')}.")
        _print_actions(section.actions)
        for subsection in section.subsections:
            _print_subsection(subsection)


def _print_subsection(subsection: Section) -> None:
    if not subsection.title:
        print_sections([subsection])
        return
    echo(subsection.title)
    for sentence in subsection.text:
        echo(f"  {sentence}")


def print_opening(section: Section) -> None:
    """Print the sentences of a report, a line each, and what to do."""
    for sentence in section.text:
        echo(sentence)
    _print_actions(section.actions)


def _print_actions(actions: Sequence[Action]) -> None:
    if actions:
        echo("\nWhat to do:")
        for position, action in enumerate(actions, 1):
            echo(f"  {position}. {with_flags(action.sentence)}")


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings with their examples and remedies, or that there are none."""
    from rich.table import Table

    if not findings:
        print_text("Nothing was found that speaks against aggregating.")
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column("", no_wrap=True)
    table.add_column("", ratio=1, overflow="fold")
    for finding in findings:
        line = "; ".join(finding.examples)
        examples = [line] if line and len(line) <= _LINE else finding.examples
        lines = [cell(finding.sentence), *(f"[dim]{cell(example)}[/dim]" for example in examples)]
        if finding.remedy:
            lines.append(f"→ {cell(finding.remedy)}")
        name = cell(finding.code)
        if finding.severity == SERIOUS:
            name = f"[bold red]{name}\nserious[/bold red]"
        table.add_row(name, "\n".join(lines))
    show(table)
    n_serious = sum(finding.severity == SERIOUS for finding in findings)
    print_text(f"{n_serious} serious, {len(findings) - n_serious} worth knowing.")


def print_scores(scores: Mapping[str, Any], names: Mapping[str, str], title: str) -> None:
    """Print scores with intervals, in the order of their names in words."""
    rows = [
        (words, number(score.value, 4), interval(score.low, score.high))
        for name, words in names.items()
        if (score := scores.get(name)) is not None
    ]
    print_table(("score", "value", "95 % interval"), rows, title)
