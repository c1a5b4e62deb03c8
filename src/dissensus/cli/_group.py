"""A group of verbs: it suggests one for a misspelt name, and advises only what a verb can do."""

from __future__ import annotations

import re
from typing import Any

import click

_OPTION = re.compile(r"(?<![\w-])--[a-z-]+")


class Group(click.Group):
    """A group of verbs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; of an error, leave out advice to use options that it does not have."""
        from ..errors import DissensusError

        try:
            return super().invoke(ctx)
        except DissensusError as problem:
            verb = self.get_command(ctx, ctx.invoked_subcommand or "")
            if verb is not None and not isinstance(verb, click.Group):
                known = {flag for one in verb.params for flag in (*one.opts, *one.secondary_opts)}
                first, *clauses = str(problem).split("; ")
                kept = (
                    one
                    for one in clauses
                    if known.issuperset(_OPTION.findall(one)) or "torchrun" in one
                )
                problem.args = ("; ".join([first, *kept]),)
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
