"""`dissensus completion` and `dissensus cache`: what a machine keeps for the command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ..pages.terminal import echo, note, print_table, show_json
from .verb import command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


COMPLETING = "_DISSENSUS_COMPLETE"  # set by the shell that asks
_INSTALL = {
    "bash": "dissensus completion bash >> ~/.bashrc",
    "zsh": "dissensus completion zsh >> ~/.zshrc",
    "fish": "dissensus completion fish > ~/.config/fish/completions/dissensus.fish",
}
_METHODS = ("strategy", "strategies")


@command()
def completion(shell: Literal["bash", "zsh", "fish"] | None = None) -> None:
    """Print a script for completion in bash, zsh or fish.

    One command installs it, in new shells: for bash, the example; for zsh, the same with ~/.zshrc;
    for fish, dissensus completion fish > ~/.config/fish/completions/dissensus.fish. Without SHELL,
    it is the one in use.

    \b
    Example:
      dissensus completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from . import cli

    name = shell or Path(os.environ.get("SHELL", "")).name
    source = get_completion_class(name)
    if name not in _INSTALL or source is None:
        raise click.UsageError(f"name a shell: {', '.join(_INSTALL)}")
    echo(source(cli, {}, "dissensus", COMPLETING).source().strip())
    echo(f"# installed by: {_INSTALL[name]}")


def complete_values(command: click.Command) -> None:
    """Let a verb complete names of methods and of files."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete_values(below)
    for parameter in command.params:
        if parameter.type is click.STRING:
            names = _methods if parameter.name in _METHODS else _files
            parameter._custom_shell_complete = names


def _files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _methods(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the methods of a verb; of those without methods of their own, the aggregators."""
    from click.shell_completion import CompletionItem

    from ..registry import REGISTRIES, aggregators

    verb = ctx.command_path.partition(" ")[2]
    own = [
        registry
        for registry in REGISTRIES
        if registry.family.partition(" ")[0] == verb.partition(" ")[0]
    ]
    names = sorted({name for registry in own or [aggregators] for name in registry})
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@command()
def cache(*, empty: bool = False, as_json: bool = False) -> None:
    """Show where features of inputs are cached and how large they are, or remove them.

    Frozen encoders see every text, image and video once: the features of the same content are read
    from the cache by all commands. XDG_CACHE_HOME names another parent folder.

    \b
    Example:
      dissensus cache
      dissensus cache --empty
    """
    from ..base.feature_store import empty_store, feature_folder, store_sizes

    folder, sizes = feature_folder(), store_sizes()
    n_bytes = sum(size.n_bytes for size in sizes)
    if empty:
        empty_store()
    if as_json:
        features = [size._asdict() for size in sizes]
        show_json(
            {"folder": str(folder), "n_bytes": n_bytes, "features": features, "emptied": empty}
        )
        return
    if sizes and not empty:
        rows = [
            (size.encoder, size.kind, f"{size.n_items:,}", _size(size.n_bytes)) for size in sizes
        ]
        print_table(("encoder", "features", ">inputs", ">size"), rows, str(folder))
    note(f"{folder}: {_size(n_bytes)} {'removed' if empty else 'of features'}")


def _size(n_bytes: int) -> str:
    """Return a number of bytes in megabytes.

    >>> _size(12_345_678)
    '12.3 MB'
    """
    return f"{n_bytes / 1e6:,.1f} MB"
