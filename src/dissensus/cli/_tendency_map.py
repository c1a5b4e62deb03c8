"""`dissensus tendency map`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ._shared import (
    json_option,
    note,
    progress_bar,
    read_annotations,
    reading_options,
    seed_option,
    show_json,
)

if TYPE_CHECKING:
    from .._names import Names
    from .._relation import Integers
    from ..annotations import Annotations
    from ..nn.encoders import Encoder
    from ..nn.inputs import Inputs

__all__ = ["map_"]


@click.command("map")
@click.argument("model")
@click.argument("path")
@click.option("--output", "-o", default="maps", show_default=True, help="Folder for the maps.")
@click.option("--items", help="Which items, with commas.  [default: the first]")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    help="How many items, where none are named.",
)
@click.option("--annotators", help="Whose maps, with commas.  [default: all]")
@click.option("--answers", help="Labels of the items, to show next to the maps.")
@click.option("--column", help="Of PATH: the column of texts or files, or the array.")
@click.option(
    "--frames",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Of videos: frames that are used.",
)
@click.option(
    "--over",
    type=click.Choice(["mean", "last", "rollout"]),
    default="mean",
    show_default=True,
    help="The mean over layers, the last layer, or attention rollout.",
)
@click.option("--raw", is_flag=True, help="Keep the weights of every layer and head as well.")
@reading_options
@json_option
@seed_option
def map_(
    model: str,
    path: str,
    output: str,
    items: str | None,
    most: int,
    annotators: str | None,
    answers: str | None,
    column: str | None,
    frames: int,
    over: Any,
    raw: bool,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Draw attention maps of annotators over the items of PATH, by a MODEL that `fit` has written.

    Writes a page (index.html), a sheet of all annotators side by side, a picture for every item
    and annotator, and a table of all weights. The model has to have queries: query or qumatl.

    \b
    Example:
      dissensus tendency fit answers.csv --inputs photos -s query -o model
      dissensus tendency map model photos --answers answers.csv -o maps
    """
    from ..nn.features import features_of
    from ..nn.reading import read_inputs
    from ..reporting.attention_maps import attention_report
    from ..tendency.classifier import TendencyClassifier
    from ..tendency.maps import query_model

    estimator = TendencyClassifier.load(model)
    query_model(estimator.model_)  # before anything is read
    chosen = _codes(annotators, estimator.annotators_)
    names = _names(path, items, most)
    inputs = read_inputs(path, names, column=column, frames=frames)
    annotations = read_annotations(answers, **reading) if answers else None
    with progress_bar("reading inputs") as progress:
        features = features_of(inputs, estimator.encoder, tokens=True, progress=progress)
    report = attention_report(
        estimator.model_,
        inputs,
        features,
        items=names,
        annotators=estimator.annotators_,
        classes=estimator.classes_,
        chosen=chosen,
        annotations=_same(annotations, names),
        encoder=_encoder(estimator.encoder, inputs),
        layers=over,
        raw=raw,
        seed=seed,
    )
    report.save(output)
    if as_json:
        show_json(report.as_dict())
        return
    for sentence in report.sentences:
        click.echo(sentence)
    note(f"The page is {output}/index.html, the sheet {output}/sheet.png")


def _codes(annotators: str | None, known: Names) -> Integers | None:
    """Return the annotators that were named."""
    from .._names import as_names
    from .._relation import indices_of
    from ..errors import DataError

    if annotators is None:
        return None
    wanted = as_names([name.strip() for name in annotators.split(",")])
    codes = indices_of(wanted, known)
    if (codes < 0).any():
        raise DataError(f"no annotator {wanted[codes < 0][0]!r} in the model")
    return codes


def _names(path: str, items: str | None, most: int) -> Names:
    """Return the items that were named, or the first."""
    from .._names import as_names
    from ..nn.reading import items_of

    if items is not None:
        return as_names([name.strip() for name in items.split(",")])
    return items_of(path)[:most]


def _same(annotations: Annotations | None, names: Names) -> Annotations | None:
    """Return what was said of these items."""
    if annotations is None:
        return None
    import numpy as np

    return annotations.subset(items=np.isin(annotations.items, names))


def _encoder(name: str, inputs: Inputs) -> Encoder | None:
    """Return the encoder of texts, which knows the parts of words."""
    from ..nn.encoders import encoder_for

    return encoder_for(name, inputs) if inputs.kind == "texts" else None
