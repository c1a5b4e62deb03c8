"""Write what the docs take from the code and from benchmarks/: methods, options, and the choice.

python docs/generate.py           write methods.md, commands.md and choose.md again
python docs/generate.py --check   only say which of these are not as they should be
python docs/generate.py FOLDER    write every generated page into a folder

Only these three are committed, without links to pages of methods, which are on the site alone. So
are the tables of options and formats: a committed page has two marks where they go.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import click

from dissensus.answers import KINDS
from dissensus.cli import VERBS, cli
from dissensus.cli.methods import Entry, catalogue, outlines
from dissensus.formats.format import TOOLS, formats
from dissensus.quality.scores import SCORES
from dissensus.registry import aggregators, estimators, split_spec
from measurements import tables

DOCS = Path(__file__).parent
BEGIN_SITUATIONS, END_SITUATIONS = "<!-- situations: generated -->", "<!-- /situations -->"
BEGIN_REAL, END_REAL = "<!-- real: generated -->", "<!-- /real -->"
BEGIN_NUMBERS, END_NUMBERS = "<!-- numbers: generated -->", "<!-- /numbers -->"
BEGIN_LEARNING, END_LEARNING = "<!-- learning: generated -->", "<!-- /learning -->"
BEGIN_KINDS, END_KINDS = "<!-- kinds: generated -->", "<!-- /kinds -->"
BEGIN_FORMATS, END_FORMATS = "<!-- formats: generated -->", "<!-- /formats -->"
BEGIN, END = "<!-- options: generated -->", "<!-- /options -->"
BEGIN_SCORES, END_SCORES = "<!-- scores: generated -->", "<!-- /scores -->"
PICTURE = "<!-- picture -->"  # where docs/build.py puts what was measured
TITLES = {
    "aggregate": "Classes",
    "aggregate answers": "Answers of every kind",
    "aggregate numbers": "Numbers",
    "aggregate-deep": "Learning from inputs",
    "tendency fit": "Predicting each annotator",
    "recover fit": "Recovering distributions",
    "meta": "Small tasks",
    "simulate": "Simulating",
    "next": "Planning",
}


def methods_page() -> str:
    """Return the list of all methods, from the registry."""
    lines = [
        "# Methods",
        "",
        "A page for each method: its model, formula, settings, paper, and when it fails. Which "
        "one to take is",
        "on [Choose a method](choose.md). All of this is generated from the registry; `dissensus "
        "methods` prints",
        "it in the terminal. A method is written `name[setting=value,…]`; case, `-` and `_` make "
        "no difference.",
    ]
    found = outlines()
    for family in dict.fromkeys(entry.family for entry in found):
        mine = [entry for entry in found if entry.family == family]
        lines += ["", f"## {TITLES[family]}", "", f"`{mine[0].command}`", ""]
        lines += ["| method | what it does | also called |", "|---|---|---|"]
        for entry in mine:
            aliases = ", ".join(f"`{alias}`" for alias in entry.aliases)
            lines.append(f"| [`{entry.name}`]({where(entry)}) | {entry.summary} | {aliases} |")
    return "\n".join(lines) + "\n\n" + toctrees(found)


def toctrees(found: list[Entry]) -> str:
    """Return the pages of methods for the site's navigation, a tree for each family."""
    trees = []
    for family in dict.fromkeys(entry.family for entry in found):
        names = [where(entry) for entry in found if entry.family == family]
        head = ["```{toctree}", ":hidden:", f":caption: {TITLES[family]}", ""]
        trees.append("\n".join([*head, *names, "```"]))
    return "\n\n".join(trees) + "\n"


def where(entry: Entry) -> str:
    """Return the page of a method, from the page of all methods."""
    return f"methods/{folder_of(entry.family)}/{entry.name}.md"


def folder_of(family: str) -> str:
    """Return the folder with the pages of a family."""
    return family.removesuffix(" fit").replace(" ", "-")


def method_page(entry: Entry) -> str:
    """Return one method: its model, where it fails, its settings and its paper."""
    title = " ".join(entry.text.split("\n\n")[0].split())
    lines = [f"# {entry.name}", "", entry.summary, "", PICTURE, "", "## Model", "", title]
    for block in entry.model:
        formula = block.startswith("    ")
        lines += ["", *(["```text", dedent(block), "```"] if formula else [paragraph(block)])]
    lines += ["", "## When it fails", "", entry.fails, "", "## How to call it", "", called(entry)]
    if entry.settings:
        lines += [
            "",
            "## Settings",
            "",
            "| setting | default | may be | meaning |",
            "|---|---|---|---|",
        ]
        for one in entry.settings:
            lines.append(f"| `{one.name}` | {one.default} | {one.limits} | {one.doc} |")
    if entry.papers:
        lines += ["", "## Paper"]
        lines += [line for one in entry.papers for line in ("", " ".join(one.split()))]
    return "\n".join(lines) + "\n"


def paragraph(block: str) -> str:
    """Return a paragraph on one line, a list with a line for each entry."""
    if block.startswith("- "):
        return "\n".join(" ".join(one.split()) for one in re.split(r"\n(?=- )", block))
    return " ".join(block.split())


def called(entry: Entry) -> str:
    """Return how a method is given on the command line, and its other names."""
    text = f"`{entry.command.replace('…', entry.name, 1)}`"
    if entry.aliases:
        text += "; also called " + ", ".join(f"`{alias}`" for alias in entry.aliases)
    return text + f". The command: [{entry.verb}](../../commands/{entry.verb}.md)."


def commands_page() -> str:
    """Return the list of all commands."""
    lines = ["# Commands", "", "Every command explains itself: `dissensus report --help`.", ""]
    lines += ["| command | what for |", "|---|---|"]
    own = [verb for verb in VERBS if (DOCS / "commands" / f"{verb}.md").exists()]
    lines += [f"| [`{verb}`](commands/{verb}.md) | {VERBS[verb].help} |" for verb in own]
    tree = ["```{toctree}", ":hidden:", "", *(f"commands/{verb}" for verb in own), "```"]
    return "\n".join([*lines, "", *tree]) + "\n"


# Situations of benchmarks/accuracy/situations.py: the heading of each, and what to know about it.
SITUATIONS = {
    "five raters, 1–5": (
        "Five annotators on a scale from 1 to 5",
        "Everybody rates everything, and steps are in order. Ratings are recognised as ordered "
        "by themselves.",
    ),
    "crowd, 1–5": (
        "A crowd on a scale from 1 to 5",
        "With three ratings per item the order of the steps is worth most: methods that know it "
        "are far ahead. "
        "(The crowd is drawn by the formula of `ordinal-distance`, which favours it.)",
    ),
    "two annotators": (
        "Two annotators",
        "Where two disagree, nothing in the labels says who is right. Get a third label for "
        "these items: "
        "[what next](what_next.md).",
    ),
    "five annotators": (
        "Five annotators who label everything",
        "Everybody has given hundreds of labels, so a matrix per annotator can be learned.",
    ),
    "crowd": (
        "A crowd, two classes, three labels per item",
        "Each annotator gave about fifteen labels: methods with a prior are safer than plain "
        "`dawid-skene`.",
    ),
    "spammers": (
        "Many annotators guess",
        "Any method that weighs annotators removes them; a vote does not.",
    ),
    "hard items": (
        "Some items are harder than others",
        "All methods that weigh annotators are close.",
    ),
    "copied answers": (
        "Some annotators copy others",
        "No method here models copying, and all of them are too sure; `dissensus identify` finds "
        "the pairs.",
    ),
    "rare class": (
        "One class is rare",
        "Methods with a uniform prevalence (`vi-mf`, `vi-bp`, `minimax-entropy`) and `mace` fall "
        "far below a vote.",
    ),
    "many classes": (
        "Twenty classes, few labels per annotator",
        "A matrix per annotator has far more cells than labels: take a method with few "
        "parameters or a strong prior.",
    ),
}
COMMON = ("auto", "majority", "dawid-skene")  # shown for every situation
TOP = 4  # methods shown beside these


def situations_section() -> str:
    """Return which method is best in which situation, and a section for each."""
    page = tables("situations")
    table = page["Accuracy in percent, by situation"]
    steps = page["Distance to the truth in steps, on scales"]
    texts = {row[0]: row[1] for row in page["The situations"].rows}
    lines = ["| your situation | `auto` | best single method | majority |", "|---|---|---|---|"]
    sections = ["", "## By situation"]
    for name, (title, advice) in SITUATIONS.items():
        right = table.values(name)
        ranked = sorted(right, key=right.__getitem__, reverse=True)
        best = next(method for method in ranked if method != "auto")
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        lines.append(
            f"| [{title}](#{anchor}) | {right['auto']:.1f} % | {linked(best)} {right[best]:.1f} % "
            f"| {right['majority']:.1f} % |"
        )
        shown = [m for m in ranked if m not in COMMON][:TOP] + list(COMMON)
        shown.sort(key=right.__getitem__, reverse=True)
        distance = steps.values(name) if name in steps.columns else {}
        head = ["method", "right", *(["distance in steps"] if distance else [])]
        sections += ["", f"### {title}", "", f"{texts[name].capitalize()}. {advice}", ""]
        sections += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for method in shown:
            far = [f"{distance[method]:.2f}"] if distance else []
            sections.append(f"| {' | '.join([linked(method), f'{right[method]:.1f} %', *far])} |")
    lines += [
        "",
        "Right labels in percent. [How it was measured](../benchmarks/accuracy/situations.json).",
    ]
    return "\n".join([BEGIN_SITUATIONS, *lines, *sections, END_SITUATIONS])


def linked(method: str) -> str:
    """Return a method with a link to its page."""
    name = split_spec(method)[0]
    family = aggregators if name in aggregators else estimators
    return f"[`{method}`](methods/{folder_of(family.family)}/{name}.md)"


def real_section() -> str:
    """Return methods on real data with known truth."""
    table = tables("methods")["All methods"]
    right, loss = table.values("accuracy"), table.values("worst loss")
    every = max(table.values("sets").values())
    ranked = [m for m, n in table.values("sets").items() if n == every]
    shown = dict.fromkeys([*ranked[:5], "dawid-skene", "glad", "mace", "majority", "one-coin"])
    lines = ["| method | right | worst loss |", "|---|---|---|"]
    lines += [f"| {linked(m)} | {right[m]:.1f} % | {loss[m]:.1f} |" for m in ranked if m in shown]
    return "\n".join([BEGIN_REAL, *lines, END_REAL])


def numbers_section() -> str:
    """Return methods for numbers by situation."""
    page = tables("situations")
    table = page["Root mean squared error of numbers, by situation"]
    texts = page["The situations with numbers"].rows
    lines = [f"- **{name}**: {text}." for name, text in texts]
    lines += [
        "",
        f"| method | {' | '.join(table.columns[1:])} |",
        "|---" * len(table.columns) + "|",
    ]
    lines += [f"| {linked(row[0])} | {' | '.join(row[1:])} |" for row in table.rows]
    lines += ["", "Root mean squared error: lower is better."]
    return "\n".join([BEGIN_NUMBERS, *lines, END_NUMBERS])


def learning_section() -> str:
    """Return the best methods of learning, with floor and ceiling."""
    page = tables("learning")
    sets = ("labelme", "music", "sentiment")
    values = {name: page[f"Learning on {name}"].values("accuracy") for name in sets}
    mean = {m: sum(values[name][m] for name in sets) / 3 for m in values[sets[0]]}
    ranked = sorted(mean, key=mean.__getitem__, reverse=True)[:7]
    lines = [f"| method | {' | '.join(sets)} | mean |", "|---" * (len(sets) + 2) + "|"]
    for method in [*ranked, *(["two-stage"] if "two-stage" not in ranked else [])]:
        cells = [f"{100 * values[name][method]:.1f}" for name in sets] + [
            f"{100 * mean[method]:.1f}"
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join([BEGIN_LEARNING, *lines, END_LEARNING])


def kinds_table() -> str:
    """Return which tools have answers of which kind, read (r) and written (w)."""
    lines = [f"| | {' | '.join(KINDS)} |", f"|---|{'---|' * len(KINDS)}"]
    for name, tool in formats.items():
        written = () if tool.answers is None else tool.answers.kinds
        if tool.kinds or written:
            cells = ("r" * (kind in tool.kinds) + "w" * (kind in written) for kind in KINDS)
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([BEGIN_KINDS, *lines, END_KINDS])


def formats_table() -> str:
    """Return every format of a tool: what it is, and what it is recognised by."""
    lines = [BEGIN_FORMATS, "| `--format` | what it is | recognised when |", "|---|---|---|"]
    about = {name: inspect.getdoc(inspect.getmodule(read)) or "" for name, read in TOOLS.items()}
    for name in TOOLS:
        what = about[name].splitlines()[0].rstrip(".")
        recognises = formats[name].recognises
        doc = "only on request" if recognises is None else recognises.__doc__ or ""
        when = doc.splitlines()[0].rstrip(".")
        when = when.removeprefix("Return whether ").removeprefix("Return that ")
        cells = [cell.replace("|", "\\|") for cell in (what, when)]
        lines.append(f"| [`{name}`](#{name}) | {cells[0]} | {cells[1]} |")
    for name in TOOLS:
        paragraphs = about[name].partition("\n\n")[2]
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
    context = click.Context(command, info_name=called, **cli.context_settings)  # or -h is lost
    lines = [f"`{command.get_usage(context).removeprefix('Usage: ')}`", ""]
    lines += ["| option | meaning |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            name, text = (part.replace("|", "\\|") for part in record)
            lines.append(f"| `{name}` | {text} |")
    return lines


def as_committed(text: str) -> str:
    """Return a list without what only the site has: pages of methods and the navigation."""
    text = re.sub(r"\[(`[^`]+`)\]\(methods/[^)]*\)", r"\1", text)
    return re.sub(r"\n+```{toctree}\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def with_parts(path: Path, *parts: str) -> str:
    """Return a page in which generated parts, each between its marks, are replaced."""
    text = path.read_text(encoding="utf-8")
    for part in parts:
        begin, end = part.splitlines()[0], part.splitlines()[-1]
        before, _, rest = text.partition(begin)
        text = before + part + rest.partition(end)[2]
    return text


def lists() -> dict[str, str]:
    """Return the pages from which readers choose, as they are on the site."""
    parts = situations_section(), real_section(), numbers_section(), learning_section()
    return {
        "methods.md": methods_page(),
        "commands.md": commands_page(),
        "choose.md": with_parts(DOCS / "choose.md", *parts),
    }


def pages() -> dict[str, str]:
    """Return every generated page by its path in docs/; without torch, not those of its methods."""
    out = lists()
    out |= {where(entry): method_page(entry) for entry in catalogue()}
    for verb in VERBS:
        path = DOCS / "commands" / f"{verb}.md"
        if path.exists():
            parts = (
                (options_of(verb), scores_table()) if verb == "identify" else (options_of(verb),)
            )
            out[f"commands/{verb}.md"] = with_parts(path, *parts)
    out["formats.md"] = with_parts(DOCS / "formats.md", formats_table(), kinds_table())
    return out


def committed() -> dict[str, str]:
    """Return the pages that are generated and committed."""
    return {name: as_committed(text) for name, text in lists().items()}


def write(texts: Mapping[str, str], folder: Path) -> list[str]:
    """Write pages into a folder, and return those that were not the same before."""
    stale = stale_pages(texts, folder)
    for name in stale:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name], encoding="utf-8")
    return stale


def stale_pages(texts: Mapping[str, str], folder: Path) -> list[str]:
    """Return the pages of a folder that are missing or have another text."""
    paths = {name: folder / name for name in texts}
    return [n for n, p in paths.items() if not p.exists() or p.read_text("utf-8") != texts[n]]


def main() -> int:
    """Write the committed pages or all of them, or list those that would change."""
    parser = argparse.ArgumentParser(description="Write the pages that are generated.")
    parser.add_argument("folder", nargs="?", type=Path, help="where every page goes")
    parser.add_argument("--check", action="store_true", help="only list what is out of date")
    arguments = parser.parse_args()
    if arguments.check:
        stale = stale_pages(committed(), DOCS)
        print("".join(f"docs/{name} is out of date: make docs\n" for name in stale), end="")
        return int(bool(stale))
    texts = pages() if arguments.folder else committed()
    for name in write(texts, arguments.folder or DOCS):
        print(f"{name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
