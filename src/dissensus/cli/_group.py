"""A group of verbs that suggests one where a name is misspelt."""

from __future__ import annotations

from typing import Any

import click


class Group(click.Group):
    """A group of verbs."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the verb; of a name that is none, the one that is most like it."""
        name, verbs = args[0], self.list_commands(ctx)
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = get_close_matches(name, verbs, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(verbs)}"
        return ctx.fail(f"no verb {name!r}; {hint}")
