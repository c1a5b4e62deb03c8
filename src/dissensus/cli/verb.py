"""A command from a signature: its parameters are options, and one table says what an option means.

    @command(strategy="auto; query for several questions", reading=READING)
    def fit(path: str, *, output: str, strategy: str | None = None, seed: int = 0, **reading: Any):

What stands before `*` is an argument of the command, the rest are its options, in this order. One
without a default is required. Flags, type and help of an option are those of its name in the table
of `option_types`, so that it means the same in every verb; a name that is not there has those that
follow from its type and the docstring. A parameter whose type is a subclass of `Options` stands for
the fields of that dataclass, and `**reading` for the options that the decorator lists. Words in the
decorator say what a default of `None` becomes.

A verb of the library that only reads, computes and shows needs no function: see `verbs`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from inspect import Parameter, cleandoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import click

import dissensus

from ..params import documented
from ..peerannot import commands as peerannot
from .option_types import DECLARED, SPELLINGS, WRITTEN, declared_by
from .verbs import ANSWERS as ANSWERS
from .verbs import KINDS as KINDS
from .verbs import READING as READING

if TYPE_CHECKING:
    from .verbs import Line

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

REQUIRED: Any = Parameter.empty
_LAST = ("time_limit", "as_json", "seed", "force")  # which commands of all kinds have
_LATE = 1.2  # times a time limit, after which it was too short
# Defaults of options that no signature names.
_DEFAULTS: dict[str, Any] = {"missing": "error", "duplicates": "count", "spelling": "keep"}
_DEFAULTS |= {"scale": "auto", "seed": 0, "copying": True}


class Computed(str):
    """Words for a default that a command works out."""

    __slots__ = ()


class Option(click.Option):
    """An option that the parser also knows by other spellings, which help does not show."""

    aliases: tuple[str, ...] = ()

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the other spellings as well."""
        own_flags, self.opts = self.opts, [*self.opts, *self.aliases]
        super().add_to_parser(parser, ctx)
        self.opts = own_flags


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that belong together: a dataclass that a command takes as one parameter."""


def computed(words: str) -> Any:
    """Return a field of `Options` whose default is worked out, as the words say."""
    return field(default=None, metadata={"words": Computed(words)})


def command(
    group: click.Group | None = None, *, time_limit: bool = False, **words: Any
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command of a function; the module says how.

    Parameters
    ----------
    group
        The group that the command belongs to.
    time_limit
        Whether its time can be limited; the function need not know.
    **words
        What the default of a parameter becomes, or the options that `**parameter` stands for.
    """

    def make(function: Callable[..., None]) -> click.Command:
        parameters = parameters_of(function, words)
        if time_limit:
            parameters.append(option("time_limit"))
        if _writes(parameters) and "force" not in signature(function).parameters:
            parameters.append(option("force", expose_value=False))
        parameters.sort(key=lambda one: _LAST.index(one.name) if one.name in _LAST else -1)
        made = click.Command(
            function.__name__.rstrip("_").replace("_", "-"),
            callback=_grouping(function),
            params=parameters,
            help=cleandoc(function.__doc__ or "").partition("\n\nParameters\n---")[0],
        )
        if group is not None:
            group.add_command(made)
        return made

    return make


def parameters_of(function: Callable[..., Any], words: Mapping[str, Any]) -> list[click.Parameter]:
    """Return the arguments and options that the parameters of a function or dataclass give."""
    parameters: list[click.Parameter] = []
    texts = documented(function.__doc__ or "")
    for name, parameter in signature(function).parameters.items():
        kind = _kind_of(parameter, function)
        if parameter.kind is Parameter.VAR_KEYWORD:
            parameters += [option(word) for word in words[name]]
        elif _is_group(kind):
            defaults = {one.name: one.metadata["words"] for one in fields(kind) if one.metadata}
            parameters += parameters_of(kind, defaults)
        elif parameter.kind is Parameter.KEYWORD_ONLY:
            default = words.get(name, parameter.default)
            default = Computed(default) if name in words else default
            parameters.append(option(name, default, kind=kind, text=texts.get(name, "")))
        else:
            parameters.append(_argument(parameter, kind))
    return parameters


def option(
    name: str, default: Any = ..., *, kind: Any = None, text: str = "", **settings: Any
) -> Option:
    """Return the option of a name: of the table, or as its type and its text say.

    Parameters
    ----------
    name
        Of the option's parameter, or its flag without dashes.
    default
        A value, `REQUIRED`, or words as `Computed`; by default that of all commands.
    kind
        The type of the parameter.
    text
        What its docstring says.
    settings
        Further ones of click.
    """
    flags, declared = DECLARED.get(name) or declared_by(name, kind, text)
    default = _DEFAULTS.get(name, ...) if default is ... else default
    is_flag = declared.get("is_flag", False)
    if default is REQUIRED:
        settings["required"] = True
    elif isinstance(default, Computed):
        settings |= {"default": None, "show_default": str(default)}
    elif default is not ... and (is_flag or default not in (None, ())):
        settings |= {"default": default, "show_default": not is_flag}
    if name == "time_limit":
        settings |= {"callback": _limit_time, "expose_value": False}
    elif name == "force":
        settings["callback"] = _keep_inputs
    made = Option(flags, **declared | settings)
    made.aliases = SPELLINGS.get(name, ())
    return made


def command_of(name: str, line: Line) -> click.Command:
    """Return the command of a verb of the library: it reads PATH, calls it and shows the result."""
    verb = getattr(dissensus, line.verb)
    _answers, *others = signature(verb).parameters
    texts = documented(verb.__doc__ or "")
    words = {parameter: line.names.get(parameter, parameter) for parameter in others}
    takes_progress = words.pop("progress", None) is not None
    parameters: list[click.Parameter] = [click.Argument(["path"])]
    for parameter, word in words.items():
        described = signature(verb).parameters[parameter]
        default = Computed(line.words[parameter]) if parameter in line.words else described.default
        kind = _kind_of(described, verb)
        parameters.append(option(word, default, kind=kind, text=texts.get(parameter, "")))
    own_words = {parameter.name for parameter in parameters}
    parameters += [option(word) for word in line.reading if word not in own_words]
    parameters += [option(word) for word in (*line.views, "json")]
    if _writes(parameters):
        parameters.append(option("force", expose_value=False))

    def call(path: str, as_json: bool, **values: Any) -> None:
        from ..base.progress import progress_bar
        from . import files

        output, chart = values.pop("output", None), values.pop("chart", None)
        files.check_views(output, chart)
        settings = {parameter: values.pop(word) for parameter, word in words.items()}
        settings = {name: None if value == () else value for name, value in settings.items()}
        answers, inputs = files.read_any(path, **values), values.get("inputs")
        settings = {
            name: files.value_of(name, value, answers, inputs) for name, value in settings.items()
        }
        with progress_bar(line.work) as progress:
            result = verb(answers, **settings | ({"progress": progress} if takes_progress else {}))
        files.show_result(result, output=output, chart=chart, as_json=as_json)

    text = f"{line.help}\n\n{cleandoc(line.text)}"
    return click.Command(name, callback=call, params=parameters, help=text.strip())


def spelled(verb: click.Command) -> click.Command:
    """Return a verb with the options of the verb that peerannot has of the same name."""
    spellings = peerannot.SPELLINGS.get(verb.name or "", {})
    for parameter in verb.params:
        if isinstance(parameter, Option):
            others = spellings.get(parameter.name or "", ())
            parameter.aliases = (*parameter.aliases, *(f"--{flag}" for flag in others))
    if "encoder" in spellings:
        verb.params += [
            click.Option(
                [f"--{flag}"], type=int, hidden=True, expose_value=False, callback=_say_why_not
            )
            for flag in peerannot.WITHOUT_EFFECT
        ]
    return verb


def _say_why_not(_: click.Context, parameter: click.Parameter, value: int | None) -> None:
    """Note that an option of peerannot changes nothing."""
    if value is not None:
        from ..pages.terminal import note

        flag = parameter.opts[0]
        note(f"{flag} has no effect: {peerannot.WITHOUT_EFFECT[flag.lstrip('-')]}")


def options(names: str | Sequence[str] = (), **defaults: Any) -> Callable[[Decorated], Decorated]:
    """Return a decorator that gives a function of click options by name, with some defaults."""
    listed = (names,) if isinstance(names, str) else names

    def add(function: Decorated) -> Decorated:
        added = [
            option(name, defaults.get(name, ...)) for name in dict.fromkeys((*defaults, *listed))
        ]
        present: list[Any] = getattr(function, "__click_params__", [])
        if _writes(added) and not any(one.name == "force" for one in (*present, *added)):
            added.append(option("force"))
        for one in added:
            if one.name == "force":
                one.expose_value = "force" in signature(function).parameters
        function.__click_params__ = [*present, *reversed(added)]  # type: ignore[attr-defined]
        return function

    return add


def _writes(parameters: Sequence[click.Parameter]) -> bool:
    """Return whether a command writes files, which may be there already."""
    return any(parameter.name in WRITTEN for parameter in parameters)


def _argument(parameter: Parameter, kind: Any) -> click.Argument:
    """Return an argument of a command: `Annotated` has its name in help, a literal its choices."""
    settings: dict[str, Any] = {}
    if get_origin(kind) is Annotated:
        kind, settings["metavar"] = get_args(kind)
    if get_origin(kind) is tuple:
        settings["nargs"] = -1
    elif parameter.default is not REQUIRED:
        settings |= {"required": False, "default": parameter.default}
    choices = declared_by(parameter.name, kind)[1].get("type")
    if isinstance(choices, click.Choice):
        settings["type"] = choices
    return click.Argument([parameter.name], **settings)


def _kind_of(parameter: Parameter, function: Callable[..., Any]) -> Any:
    """Return the type of a parameter; of one that is imported for type checkers only, `Any`."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    try:
        return eval(parameter.annotation, vars(sys.modules[function.__module__]))
    except NameError:
        return Any


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _grouping(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function as click calls it: every option by itself."""
    kinds = {name: _kind_of(one, function) for name, one in signature(function).parameters.items()}
    groups = {name: kind for name, kind in kinds.items() if _is_group(kind)}

    def call(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{one.name: values.pop(one.name) for one in fields(kind)})
        function(**values)

    return call


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
