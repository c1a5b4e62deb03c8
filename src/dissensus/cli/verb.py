"""The options of all commands: one name, one type, one meaning.

Every command takes its options from this table, so that an option means the same everywhere:

    @options(("strategy", *READING, "scale --labels"), output=REQUIRED, folds=5)

Names after the first are hidden aliases: former names, and those of peerannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, TypeVar

import click

from .option_types import CHOICES, REPEATABLE, TABLE

Command = TypeVar("Command", bound=Callable[..., Any])


_DEFAULTS: dict[str, Any] = {"missing": "error", "duplicates": "count", "seed": 0}
_DEFAULTS |= {"spelling": "keep", "scale": "auto", "encoder": "auto"}
_DEFAULTS |= {"frames": 16, "freeze": None, "latent": None, "copying": True}

READING = ("format", "question", "columns", "classes", "missing", "duplicates", "spelling", "scale")
ANSWERS = ("kind", "assigned", "inputs")  # of verbs for answers of every kind
KINDS = ("models", "people")  # of annotators
REQUIRED = object()
_LATE = 1.2  # times a time limit, after which it was too short


class Computed(str):
    """Words for a default that a command works out."""

    __slots__ = ()


class Option(click.Option):
    """An option with hidden aliases: another name, or `name=value` for a flag."""

    def __init__(self, *declarations: Any, aliases: list[str], **settings: Any) -> None:
        super().__init__(*declarations, **settings)
        self.aliases = aliases

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the aliases as well, which neither help nor messages show."""
        own_flags, self.opts = self.opts, [*self.opts, *(a for a in self.aliases if "=" not in a)]
        super().add_to_parser(parser, ctx)
        self.opts = own_flags
        for alias in self.aliases:
            name, _, value = alias.partition("=")
            if value:
                parser.add_option(self, [name], self.name, action="store_const", const=value)


# Flags and settings of every option, by the name that a command gives it.
DECLARED: dict[str, tuple[list[str], dict[str, Any]]] = {
    re.split("[ /]", flags.lstrip("-"))[0].replace("-", "_"): (
        flags.split(),
        {"help": text} | ({"is_flag": True} if kind is bool else {"type": kind}),
    )
    for kind, rows in TABLE
    for flags, text in rows.items()
}
DECLARED |= {
    flags.split()[0].lstrip("-").replace("-", "_"): (
        flags.split(),
        {"type": click.Choice(words.split(), case_sensitive=False), "help": text},
    )
    for flags, (words, text) in CHOICES.items()
}
DECLARED |= {
    flags.split()[-1]: (flags.split(), {"type": kind, "help": text, "multiple": True})
    for flags, (kind, text) in REPEATABLE.items()
}
# In older versions of peerannot it takes no value.
DECLARED["scheduler"][1].update(is_flag=False, flag_value="multistep")


# Other spellings of an option, the same in every verb.
_SPELLINGS = {
    "strategy": ["--method"],
    "strategies": ["--method"],
    "score": ["--method", "--strategy"],
}

WRITTEN = {name for name, (flags, _) in DECLARED.items() if flags[0] in TABLE[1][1]} | {"output"}
WRITTEN -= {"to", "title", "output_name", "checkpoints", "state", "work"}  # not a file of its own


def _keep_inputs(ctx: click.Context, _: click.Parameter, force: bool) -> bool:
    """Refuse to write over an input of the command, unless forced; other options are known here."""
    from ..base.files import is_input
    from ..errors import OutputError

    inputs: list[str] = []
    outputs: list[str] = []
    for parameter in ctx.command.params if not force else ():
        written = parameter.name == "target" or parameter.name in WRITTEN
        values = ctx.params.get(parameter.name or "")
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, str) and parameter.type is click.STRING:
                (outputs if written else inputs).append(value)
    for output in outputs:
        for source in inputs:
            if is_input(output, source):
                raise OutputError(f"{output}: is read by this command, too; --force replaces it")
    return force


def _limit_time(ctx: click.Context, _: click.Parameter, seconds: float | None) -> None:
    """Limit the time of the command, and note at its end if that mattered."""
    if seconds is not None:
        ctx.with_resource(_time_limited(seconds))


@contextmanager
def _time_limited(seconds: float) -> Iterator[None]:
    from ..base.progress import time_limit
    from ..pages.terminal import note

    with time_limit(seconds) as limit:
        yield
    if limit.seconds > _LATE * seconds:
        note(
            f"the time limit of {seconds:g} s was too short: reading, encoding, the least of "
            f"learning and writing took {limit.seconds:.0f} s"
        )
    elif limit.reached:
        note(f"stopped at the time limit of {seconds:g} s, with the best found until then")


def options(names: str | Sequence[str] = (), **defaults: Any) -> Callable[[Command], Command]:
    """Return a decorator that gives a command some options of the table.

    Parameters
    ----------
    names
        Names of options, each followed by its hidden aliases, as in `"scale --labels"`.
    **defaults
        Defaults of this command, by name: a value, `REQUIRED`, or words as `Computed`.
    """
    listed = (names,) if isinstance(names, str) else names

    def add(command: Command) -> Command:
        aliases_of = {name.split()[0]: name.split()[1:] for name in (*defaults, *listed)}
        declared = {parameter.name for parameter in getattr(command, "__click_params__", ())}
        if WRITTEN & aliases_of.keys() and "force" not in declared:
            aliases_of = aliases_of | {"force": []}
        for name, aliases in reversed(aliases_of.items()):
            spellings = [*aliases, *_SPELLINGS.get(name, [])]
            flags, settings = DECLARED[name]
            default = defaults.get(name, _DEFAULTS.get(name))
            if default is REQUIRED:
                settings = settings | {"required": True}
            elif isinstance(default, Computed):
                settings = settings | {"default": None, "show_default": str(default)}
            elif name in defaults or name in _DEFAULTS:
                is_shown = default is not None and not settings.get("is_flag")
                settings = settings | {"default": default, "show_default": is_shown}
            if name == "time_limit":
                settings = settings | {"callback": _limit_time, "expose_value": False}
            if name == "force":
                is_used = "force" in signature(command).parameters
                settings = settings | {"callback": _keep_inputs, "expose_value": is_used}
            command = click.option(*flags, cls=Option, aliases=spellings, **settings)(command)
        return command

    return add
