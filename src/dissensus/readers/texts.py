"""What the items are: a table beside the annotations, with a text or the name of an image each."""

from __future__ import annotations

import polars as pl

from .._names import as_names
from .columns import NEEDED, find_columns
from .sources import open_source
from .tables import column_names, read_columns

__all__ = ["read_texts"]

_ROLES = {
    "item": [*NEEDED["item"], "id"],
    "text": [
        *["text", "content", "sentence", "tweet", "comment", "message", "body", "post", "title"],
        *["image", "image_path", "file", "filename", "file_name", "path", "url"],
    ],
}


def read_texts(file: str) -> pl.DataFrame:
    """Return a table of item and text from a file with two such columns.

    An item that stands there twice keeps its first text.
    """
    source = open_source(file)
    roles = find_columns(column_names(source), _ROLES, None, source.name)
    frame = read_columns(source, list(roles.values())).drop_nulls()
    texts = frame[roles["text"]].cast(pl.String)
    items = as_names(frame[roles["item"]].to_list()).tolist()
    return pl.DataFrame({"item": items, "text": texts}).unique("item", maintain_order=True)
