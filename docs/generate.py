"""Write what the docs take from the code: the methods page and every verb's options.

python docs/generate.py           write the pages again
python docs/generate.py --check   only say which are not as they should be
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

from dissensus.catalogue import Entry, catalogue
from dissensus.cli import VERBS, cli
from dissensus.identification.scores import SCORES
from dissensus.readers.exports import TOOLS, tool

DOCS = Path(__file__).parent
BEGIN_FORMATS, END_FORMATS = "<!-- formats: generated -->", "<!-- /formats -->"
BEGIN, END = "<!-- options: generated -->", "<!-- /options -->"
BEGIN_SCORES, END_SCORES = "<!-- scores: generated -->", "<!-- /scores -->"
TITLES = {
    "aggregate": "Aggregating",
    "consensus": "Answers of every kind",
    "estimate": "Estimating",
    "simulate": "Simulating",
}
TITLES |= {"aggregate-deep": "Learning", "next": "Planning", "recover fit": "Recovering"}
TITLES |= {"tendency fit": "Predicting annotators", "meta": "Adapting to small tasks"}


def methods_page() -> str:
    """Return the page of all methods, from the registry."""
    lines = [
        "# Methods",
        "",
        "Generated from the registry by `make docs`; the same is printed by `dissensus methods`.",
        "A method is written `name[setting=value,…]`; case, `-` and `_` make no difference.",
    ]
    found = catalogue()
    for family in dict.fromkeys(entry.family for entry in found):
        mine = [entry for entry in found if entry.family == family]
        lines += ["", f"## {TITLES[family]}: `{mine[0].command}`", ""]
        lines += ["| method | what it does | also called |", "|---|---|---|"]
        for entry in mine:
            aliases = ", ".join(f"`{alias}`" for alias in entry.aliases)
            lines.append(f"| [`{entry.name}`](#{entry.name}) | {entry.summary} | {aliases} |")
        for entry in mine:
            lines += method_section(entry)
    return "\n".join(lines) + "\n"


def method_section(entry: Entry) -> list[str]:
    """Return one method: its model and its settings."""
    lines = ["", f"### {entry.name}", ""]
    for paragraph in entry.paragraphs:
        lines += [paragraph, ""]
    if entry.settings:
        lines += ["| setting | default | may be | meaning |", "|---|---|---|---|"]
        for one in entry.settings:
            lines.append(f"| `{one.name}` | {one.default} | {one.limits} | {one.doc} |")
    return lines


def formats_table() -> str:
    """Return every format of a tool: what it is, and what it is recognised by."""
    lines = [BEGIN_FORMATS, "| `--format` | what it is | recognised when |", "|---|---|---|"]
    for name in TOOLS:
        module = tool(name)
        what = (module.__doc__ or "").splitlines()[0].rstrip(".")
        when = (module.recognises.__doc__ or "").splitlines()[0].rstrip(".")
        when = when.removeprefix("Return whether ").removeprefix("Return that ")
        cells = [cell.replace("|", "\\|") for cell in (what, when)]
        lines.append(f"| [`{name}`](#{name}) | {cells[0]} | {cells[1]} |")
    for name in TOOLS:
        paragraphs = inspect.cleandoc(tool(name).__doc__ or "").partition("\n\n")[2]
        if paragraphs:
            lines += ["", f"### {name}", "", paragraphs]
    return "\n".join([*lines, END_FORMATS])


def scores_table() -> str:
    """Return every score of `identify`: what it is of and what it says."""
    lines = [BEGIN_SCORES, "| `-s` | of | what it says | also called | peerannot's file |"]
    lines.append("|---|---|---|---|---|")
    for one in SCORES:
        aliases = ", ".join(f"`{alias}`" for alias in one.aliases)
        file = f"`{one.file}`" if one.file else ""
        lines.append(f"| `{one.name}` | {one.of} | {one.text} | {aliases} | {file} |")
    return "\n".join([*lines, END_SCORES])


def options_of(verb: str) -> str:
    """Return a verb's usage and options, as a table; of a group, those of all its verbs."""
    command = cli.get_command(click.Context(cli), verb)
    if command is None:
        raise KeyError(verb)
    below = command.commands if isinstance(command, click.Group) else {"": command}
    lines = [BEGIN]
    for name, one in below.items():
        lines += [*usage_of(one, f"dissensus {verb} {name}".rstrip()), ""]
    return "\n".join([*lines[:-1], END])


def usage_of(command: click.Command, called: str) -> list[str]:
    """Return how a command is called, and its options as a table."""
    context = click.Context(command, info_name=called)
    lines = [f"`{command.get_usage(context).removeprefix('Usage: ')}`", ""]
    lines += ["| option | meaning |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            name, text = (part.replace("|", "\\|") for part in record)
            lines.append(f"| `{name}` | {text} |")
    return lines


def pages() -> dict[Path, str]:
    """Return every generated page as it should be."""
    out = {DOCS / "methods.md": methods_page()}
    for verb in VERBS:
        path = DOCS / "commands" / f"{verb}.md"
        if path.exists():
            before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
            out[path] = before + options_of(verb) + rest.partition(END)[2]
    path = DOCS / "formats.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN_FORMATS)
    out[path] = before + formats_table() + rest.partition(END_FORMATS)[2]
    path = DOCS / "commands" / "identify.md"
    before, _, rest = out[path].partition(BEGIN_SCORES)
    out[path] = before + scores_table() + rest.partition(END_SCORES)[2]
    return out


def main() -> int:
    """Write the pages, or with `--check` list those that would change."""
    check = "--check" in sys.argv[1:]
    stale = [p for p, text in pages().items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        print(
            f"{path.relative_to(DOCS.parent)} {'is out of date: make docs' if check else 'written'}"
        )
        if not check:
            path.write_text(pages()[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
