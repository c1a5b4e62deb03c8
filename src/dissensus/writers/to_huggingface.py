"""Tables for Hugging Face `datasets`: a row for every item, lists of labels and annotators.

`labels` and `annotators` are parallel lists, and so is whatever is carried along. A result adds
`label`, `confidence` and `soft_label`, a structure with the belief in every class by name.
"""

from __future__ import annotations

import polars as pl

from ..result import Aggregation, Estimation
from .content import Content, column, table_of

__all__ = ["answers", "results"]


def answers(content: Content) -> pl.DataFrame:
    """Return item, text where it is known, labels and annotators, and gold where it is known."""
    annotations = content.annotations
    lists = (
        table_of(annotations)
        .rename({"label": "labels", "annotator": "annotators"})
        .group_by("item", maintain_order=True)
        .all()
    )
    names = annotations.items.tolist()
    frame = pl.DataFrame({"item": names}, schema={"item": pl.String})
    for name, values in (("text", content.texts), ("gold", content.gold)):
        if values:
            known = pl.Series(name, [values.get(item) for item in names], dtype=pl.String)
            frame = frame.with_columns(known)
    frame = frame.join(lists, on="item", how="left", maintain_order="left")
    return frame.with_columns(pl.col(pl.List).fill_null([]))


def results(content: Content) -> pl.DataFrame:
    """Return the same with the label of every item and how sure it is."""
    frame, what = answers(content), content.what
    if isinstance(what, Estimation):
        value = pl.Series("label", what.value).fill_nan(None)
        return frame.with_columns(value, pl.Series("deviation", what.deviation).fill_nan(None))
    if not isinstance(what, Aggregation):
        raise TypeError(what)
    posteriors = pl.DataFrame(
        {name: what.posterior[:, position] for position, name in enumerate(what.classes.tolist())}
    )
    return frame.with_columns(
        column(what.labels).alias("label"),
        pl.Series("confidence", what.confidence),
        posteriors.to_struct("soft_label"),
    )
