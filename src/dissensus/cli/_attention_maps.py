"""`dissensus tendency map`."""

from __future__ import annotations

from typing import Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import echo, note, show_json
from .files import asked, read_annotations, split_names
from .verb import READING, Computed, options


@click.command("map")
@click.argument("model")
@click.argument("path")
@options(
    *("annotations --answers", "column", "frames", "sound", "raw", "only --items", "top --most"),
    *("among --annotators", *READING, "json", "seed"),
    output="maps",
    only=Computed("the first items"),
    top=12,
    among=Computed("all annotators"),
    over="mean",
)
def map_(
    model: str,
    path: str,
    output: str,
    only: str | None,
    top: int,
    among: str | None,
    annotations: str | None,
    column: str | None,
    frames: int,
    sound: bool,
    over: Any,
    raw: bool,
    as_json: bool,
    seed: int,
    question: str | None,
    **reading: Any,
) -> None:
    """Draw attention maps of annotators over the items of PATH, by a MODEL of `fit`.

    Writes a page (index.html), a sheet of all annotators side by side, a picture for every item
    and annotator, and a table of all weights. The model needs queries: query or qumatl.

    \b
    Example:
      dissensus tendency fit answers.csv --inputs photos -s query -o model
      dissensus tendency map model photos --annotations answers.csv -o maps
    """
    import numpy as np

    from ..base.names import as_names
    from ..deep.nn.encoders import encoder_for
    from ..deep.nn.features import features_of
    from ..deep.nn.reading import items_of, read_inputs
    from ..deep.tendency.attention_page import attention_report
    from ..deep.tendency.classifier import TendencyClassifier
    from ..deep.tendency.maps import query_model

    estimator = asked(TendencyClassifier.load(model), question)
    query_model(estimator.model_)  # before anything is read
    chosen = estimator.annotator_codes(split_names(among))
    items = as_names(split_names(only) or ()) if only else items_of(path)[:top]
    inputs = read_inputs(path, items, column=column, frames=frames, sound=sound)
    given = None
    if annotations:
        given = read_annotations(annotations, question=question, **reading)
        given = given.subset(items=np.isin(given.items, items))
    with progress_bar("encoding") as progress:
        features = features_of(inputs, estimator.encoder, tokens=True, progress=progress)
    texts = inputs.kind == "texts"  # whose encoder knows the subwords
    report = attention_report(
        estimator.model_,
        inputs,
        features,
        items=items,
        annotators=estimator.annotators_,
        classes=estimator.classes_,
        chosen=chosen,
        annotations=given,
        encoder=encoder_for(estimator.encoder, inputs) if texts else None,
        layers=over,
        raw=raw,
        seed=seed,
    )
    report.save(output)
    if as_json:
        show_json(report.as_dict())
        return
    for sentence in report.sentences:
        echo(sentence)
    note(f"The page is {output}/index.html, the sheet {output}/sheet.png")
