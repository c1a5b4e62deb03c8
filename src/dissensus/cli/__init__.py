"""The command `dissensus`: one file per verb, imported when it is used.

A group of verbs: it suggests one for a misspelt name, and advises only what a verb can do.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import nullcontext, suppress
from functools import cache
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..base.progress import progress_bar
from ..peerannot.commands import VERBS as OTHER_NAMES
from .verbs import VERBS

__all__ = ["cli", "main"]

_WAITING = ("open", "watch")  # verbs that wait for people or files
_GARBAGE = 50_000  # objects before a collection; Python has 700
# Modules of optional parts, which an error names.
_EXTRAS = {"av": "video", "dask": "dask", "distributed": "dask"}
_EXTRAS |= {"starlette": "app", "uvicorn": "app"}
_EXTRAS |= dict.fromkeys(
    ("torch", "safetensors", "sklearn", "lightning_fabric", "PIL", "transformers"), "deep"
)


class Group(click.Group):
    """A group of verbs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; an error names its flags."""
        from ..errors import DissensusError, Message

        try:
            return super().invoke(ctx)
        except DissensusError as problem:
            verb = self.get_command(ctx, ctx.invoked_subcommand or "")
            if verb is not None and not isinstance(verb, click.Group):
                from ..pages.terminal import flags_of

                problem.message = Message(problem.message.text(flags_of(verb)))
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the verb; of a name that is none, the one that is most like it."""
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        verbs = self.list_commands(ctx)
        near = get_close_matches(name, verbs, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(verbs)}"
        return ctx.fail(f"no verb {name!r}; {hint}")


class Verbs(Group):
    """A group that imports a verb when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Return a verb: of its module, or of a function of the library."""
        if name not in VERBS:
            return None
        command = _command(name)
        if "_DISSENSUS_COMPLETE" in os.environ:
            from .shell import complete_values

            complete_values(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs from the table."""
        own = [verb for verb in VERBS if verb not in OTHER_NAMES]
        for title, verbs in (("Verbs", own), ("Verbs of peerannot", OTHER_NAMES)):
            with formatter.section(title):
                formatter.write_dl([(verb, VERBS[verb].help) for verb in verbs])


@cache
def _command(name: str) -> click.Command:
    from .verb import command_of, spelled

    line = VERBS[name]
    if line.verb:
        return spelled(command_of(name, line))
    module = import_module(f".{line.home}", __name__)
    return spelled(getattr(module, name.replace("-", "_")))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="dissensus")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Labels from several annotators who disagree.

    Begin with `dissensus demo`, then `dissensus report YOUR_FILE`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> Any:
    """Run the command; errors of input end in one line and exit code 2."""
    from ..base.files import reason
    from ..errors import DissensusError

    # Imports make many objects that stay: looking for garbage among them takes a fifth of a start.
    gc.set_threshold(_GARBAGE, 20, 100)
    atexit.register(gc.freeze)
    # Before NumPy is imported: its threads wait for each other on matrices as small as ours.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what an encoding cannot write is escaped
            stream.reconfigure(errors="backslashreplace")
    _split_stderr()
    verb = "".join((sys.argv[1:] if arguments is None else arguments)[:1])
    reports = verb in VERBS and verb not in _WAITING
    try:
        with progress_bar(verb) if reports else nullcontext():
            cli.main(arguments, prog_name="dissensus", standalone_mode=False)
        sys.stdout.flush()
    except DissensusError as problem:
        _end(str(problem), 2)
    except click.UsageError as problem:
        path = problem.ctx.command_path if problem.ctx else "dissensus"
        message = problem.format_message().rstrip(".")
        _end(f"{message}{'' if message.endswith('?') else ';'} see `{path} --help`", 2)
    except click.ClickException as problem:
        _end(problem.format_message(), 2)
    except click.exceptions.Exit as ending:
        sys.exit(ending.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted; nothing was written", 130)
    except BrokenPipeError:  # the reader has closed the pipe
        _silence()
        sys.exit(0)
    except ModuleNotFoundError as problem:
        extra = _EXTRAS.get((problem.name or "").partition(".")[0])
        if extra is None:
            raise
        from ..errors import install_command

        _end(f"this needs {problem.name}: {install_command(extra)}", 2)
    except MemoryError as problem:
        _end(f"not enough memory ({problem}); choose smaller data or settings", 2)
    except OSError as problem:  # the system refused to read or write something
        _silence()
        _end(f"{problem.filename or 'standard output'}: {reason(problem)}", 2)


def _split_stderr() -> None:
    """Write messages through another handle, so that what libraries write can be held back."""
    stream = sys.stderr
    if stream is sys.__stderr__ and stream is not None:
        with suppress(OSError, ValueError):
            how: Any = {"encoding": stream.encoding, "errors": stream.errors, "buffering": 1}
            sys.stderr = os.fdopen(os.dup(stream.fileno()), "w", **how)


def _silence() -> None:
    """Discard what is left in standard output, which cannot be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str, code: int) -> None:
    from ..pages.terminal import echo

    echo(f"dissensus: {' '.join(message.split())}", err=True)
    sys.exit(code)
