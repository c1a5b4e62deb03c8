"""Tables for Hugging Face `datasets`: a row for every item, lists of labels and annotators.

`labels` and `annotators` are parallel lists, and so is whatever is carried along. A result adds
`label`, `confidence` and `soft_label`, a structure with the posterior probability of every class.
"""

from __future__ import annotations

import polars as pl

from ..content import Content


def answers(content: Content) -> pl.DataFrame:
    """Return item, text where it is known, labels and annotators, and gold where it is known."""
    annotations = content.annotations
    lists = (
        annotations.to_polars()
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
    """Return the same with label and confidence of every item, or number and standard error."""
    table = content.what.to_polars().drop("item")
    classes = [name for name in table.columns if name.startswith("p:")]
    probabilities = table.select(pl.col(name).alias(name.removeprefix("p:")) for name in classes)
    frame = answers(content).with_columns(table.drop(classes))
    if not probabilities.width:
        return frame
    return frame.with_columns(probabilities.to_struct("soft_label"))
