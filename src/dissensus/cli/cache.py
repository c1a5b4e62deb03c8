"""`dissensus cache`."""

from __future__ import annotations

import click

from ..pages.terminal import note, print_table, show_json
from .verb import options


@click.command()
@options("empty", "json")
def cache(empty: bool, as_json: bool) -> None:
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
    n_bytes = sum(each.n_bytes for each in sizes)
    if empty:
        empty_store()
    if as_json:
        found = [each._asdict() for each in sizes]
        show_json({"folder": str(folder), "n_bytes": n_bytes, "features": found, "emptied": empty})
        return
    if sizes and not empty:
        rows = [
            (each.encoder, each.kind, f"{each.n_items:,}", _size(each.n_bytes)) for each in sizes
        ]
        print_table(("encoder", "features", ">inputs", ">size"), rows, str(folder))
    note(f"{folder}: {_size(n_bytes)} {'removed' if empty else 'of features'}")


def _size(n_bytes: int) -> str:
    """Return a number of bytes in megabytes.

    >>> _size(12_345_678)
    '12.3 MB'
    """
    return f"{n_bytes / 1e6:,.1f} MB"
