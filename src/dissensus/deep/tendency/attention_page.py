"""The report on attention maps: a page, a sheet of all annotators side by side, images and tables.

index.html          everything on one page, without network access
sheet.png           items by annotators
pictures/1-2.png    item 1, annotator 2, in the order of maps.csv
maps.csv            item, annotator, position, weight
faithfulness.json   how far the maps can be trusted
raw.safetensors     on request: weights (item, layer, head, annotator, token) of every fit
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...answers.annotations import Annotations, Integers, Names
from ...base.files import atomic_folder
from ...errors import OptionError
from ...method import Progress
from ...pages.embedding import as_image, fill
from ..nn import Arrays, Encoder, Features, Images, Inputs, Texts
from ..nn.encoders import encoder_for
from ..nn.features import features_of
from ..nn.media import Videos
from . import Tendency
from .attention_images import ItemMaps, contrast, data_url, heat, overlay, pair_image, sheet
from .classifier import TendencyClassifier
from .maps import Faithfulness, Layers, Maps, attention_maps, faithfulness, word_maps, word_spans

_LONG = 320  # pixels of the longer side of an image on the page
_SMALL = 96  # pixels of a frame
_SHEET = 30  # items on the sheet
_FILES = ("pictures", "*.png", "maps.csv", "faithfulness.json", "index.html", "raw.safetensors")
_SINGULAR = {"patches": "patch", "frames": "frame", "words": "word", "tokens": "token"}
_MEANINGS = {
    "deletion": "probability of the predicted label while the highest positions are masked, "
    "against random positions; lower is better",
    "insertion": "the same while only the highest positions are shown; higher is better",
    "randomization": "how far maps move when an annotator gets a random query; near 0, maps do not "
    "depend on the annotator",
    "stability": "correlation of maps between fits with different seeds; 1 is identical",
    "gradient": "rank correlation with gradient × input, another attribution method",
    "distance": "between maps of two annotators; 0 is identical, 1 is disjoint",
}


class MapNames(NamedTuple):
    """Names of the items, of all annotators of the model, and of classes."""

    items: Names
    annotators: Names
    classes: Names


@dataclass(frozen=True, eq=False)
class AttentionReport:
    """Attention maps of some items."""

    items: list[ItemMaps]
    annotators: Names
    maps: Maps
    faithfulness: Faithfulness

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder, completely or not at all."""
        with atomic_folder(folder, _FILES) as draft:
            (draft / "pictures").mkdir()
            for number, item in enumerate(self.items, 1):
                for annotator in range(len(self.annotators)):
                    path = draft / "pictures" / f"{number}-{annotator + 1}.png"
                    pair_image(item, annotator).save(path, optimize=True)
            names = self.annotators.tolist()
            sheet(self.items[:_SHEET], names).save(draft / "sheet.png", optimize=True)
            with (draft / "maps.csv").open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out)
                writer.writerow(["item", "annotator", "position", "weight"])
                writer.writerows(self.rows())
            measures = json.dumps(self.faithfulness.as_dict(), indent=1)
            (draft / "faithfulness.json").write_text(measures, encoding="utf-8")
            (draft / "index.html").write_text(self.page(), encoding="utf-8")
            if self.maps.raw:
                from safetensors.numpy import save_file

                fits = enumerate(map(np.ascontiguousarray, self.maps.raw), 1)
                save_file({f"fit {fit}": raw for fit, raw in fits}, draft / "raw.safetensors")

    def rows(self) -> list[tuple[str, str, str, float]]:
        """Return every weight: item, annotator, position, weight."""
        return [
            (item.name, name, position, round(float(weight), 6))
            for item in self.items
            for name, row in zip(self.annotators.tolist(), item.maps, strict=True)
            for position, weight in zip(_positions(item), row, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the maps for JSON."""
        items = []
        for item in self.items:
            annotators = [
                {**card, "given": card["given"] or None, "map": row.round(6).tolist()}
                for card, row in zip(item.cards(self.annotators.tolist()), item.maps, strict=True)
            ]
            row = {"item": item.name, "positions": _positions(item), "annotators": annotators}
            items.append(row)
        return {"items": items, "faithfulness": self.faithfulness.as_dict()}

    @property
    def sentences(self) -> list[str]:
        """The main findings."""
        measures, kind = self.faithfulness, _SINGULAR[self.items[0].kind]
        sentences = [
            f"The stronger the colour, the more attention the model paid to a {kind} when it "
            "predicted the label of this annotator."
        ]
        if not isnan(measures.distance):
            where = "partly different" if measures.distance < 0.4 else "different"
            where = "nearly the same" if measures.distance < 0.1 else where
            sentences.append(
                f"On the same item, two annotators attend to {where} positions "
                f"({measures.distance:.2f}; 0 is identical, 1 is disjoint)."
            )
        if not isnan(measures.deletion):
            matters = (
                "the maps show what matters"
                if measures.deletion_random - measures.deletion > 0.05
                else "the maps hardly show what matters, so do not over-interpret them"
            )
            sentences.append(
                "With the highest positions of a map masked, the predicted label keeps a "
                f"probability of {measures.deletion:.0%} on average, with random positions masked "
                f"{measures.deletion_random:.0%}: {matters}."
            )
        return sentences

    def page(self) -> str:
        """Return the page; everything on it is there without scripts, too."""
        sizes = [item.maps.shape[1] for item in self.items]
        equal_sizes = min(sizes) == max(sizes)
        sections = {"overview": "Summary", "maps": "Maps", "trust": "Trust", "about": "Terms"}
        return fill(
            "maps.html",
            {"items": len(self.items)},
            scripts=("maps.js",),
            styles=("report.css", "maps.css"),
            title="Attention maps of annotators",
            sections=sections.items(),
            sentences=self.sentences,
            facts={
                "annotators": (len(self.annotators), "main"),
                "items shown": (len(self.items), "main"),
                self.items[0].kind: (
                    sizes[0] if equal_sizes else f"{min(sizes)} to {max(sizes)}",
                    "main",
                ),
            },
            items=[_page_item(item, self.annotators) for item in self.items],
            annotators=self.annotators.tolist(),
            scores=[
                (name, _measure(self.faithfulness, name), meaning)
                for name, meaning in _MEANINGS.items()
            ],
        )


def maps_of(
    estimator: TendencyClassifier,
    inputs: Inputs,
    items: Names,
    *,
    among: Sequence[str] | None = None,
    annotations: Annotations | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> AttentionReport:
    """Return attention maps of annotators over some items, by a fitted estimator.

    Parameters
    ----------
    estimator
        Of a method with queries.
    inputs, items
        The items and their names.
    among
        Names of the annotators to show; all by default.
    annotations
        Labels, also on other items, if known.
    progress
        Called with steps done, steps in all, and a message.
    options
        Of `attention_report`: layers, raw, seed.
    """
    codes = estimator.annotator_codes(among)
    if annotations is not None:
        annotations = annotations.subset(items=np.isin(annotations.items, items))
    features = features_of(inputs, estimator.encoder, tokens=True, progress=progress)
    texts = inputs.kind == "texts"  # whose encoder knows the subwords
    return attention_report(
        estimator.model_,
        inputs,
        features,
        MapNames(items, estimator.annotators_, estimator.classes_),
        chosen=codes,
        annotations=annotations,
        encoder=encoder_for(estimator.encoder, inputs) if texts else None,
        **options,
    )


def attention_report(
    tendency: Tendency,
    inputs: Inputs,
    features: Features,
    names: MapNames,
    *,
    chosen: Integers | None = None,
    annotations: Annotations | None = None,
    encoder: Encoder | None = None,
    layers: Layers = "mean",
    raw: bool = False,
    seed: int = 0,
) -> AttentionReport:
    """Return attention maps of items, ready to be written.

    Parameters
    ----------
    tendency
        A fitted model with queries.
    inputs
        The items: texts, images, videos or arrays.
    features
        Features of the same items.
    names
        Of the items, of all annotators of the model, and of classes.
    chosen
        Codes of the annotators to show; all by default.
    annotations
        Labels of these items, if known, with the same names.
    encoder
        Of texts: the encoder of the features.
    layers, raw
        As in `attention_maps`.
    seed
        Random seed of the items on which faithfulness is measured.
    """
    codes = np.arange(len(names.annotators)) if chosen is None else np.asarray(chosen)
    annotators = names.annotators[codes]
    texts = inputs.texts if isinstance(inputs, Texts) else ()
    maps = attention_maps(
        tendency, features, codes, layers=layers, raw=raw, all_tokens=isinstance(inputs, Texts)
    )
    log = tendency.log_proba(features, codes)  # (item, annotator, class)
    labels = {} if annotations is None else annotations.to_dict()
    values, kind = list(maps.values), str(maps.kind)
    if isinstance(inputs, Texts):
        tokenizer: Any = getattr(encoder, "tokenizer", None)
        if tokenizer is None:
            raise OptionError("maps of texts need the encoder of their features")
        length = int(getattr(encoder, "length", 512))
        values, kind = word_maps(maps, texts, tokenizer, length), "words"
    item_maps = []
    for index, name in enumerate(names.items.tolist()):
        own_labels = [labels.get(name, {}).get(annotator, "") for annotator in annotators.tolist()]
        best = log[index].argmax(axis=1)
        probability = np.exp(log[index].max(axis=1))
        text = texts[index] if texts else ""
        item_maps.append(
            ItemMaps(
                name=name,
                kind=kind,
                images=_images(inputs, index),
                words=[text[start:end] for start, end in word_spans(text)],
                maps=values[index],
                shape=maps.shape,
                predicted=list(
                    zip(map(str, names.classes[best]), probability.tolist(), strict=True)
                ),
                own_labels=[
                    ", ".join(label) if isinstance(label, list) else str(label)
                    for label in own_labels
                ],
            )
        )
    return AttentionReport(
        items=item_maps,
        annotators=annotators,
        maps=maps,
        faithfulness=faithfulness(tendency, features, codes, seed=seed),
    )


def _images(inputs: Inputs, item: int) -> list[Any]:
    """Return an item as images: one of an image, one per frame of a video."""
    from PIL import Image

    if isinstance(inputs, Images):
        with Image.open(inputs.paths[item]) as image:
            small = image.convert("RGB")
            small.thumbnail((_LONG, _LONG))
            return [small]
    if isinstance(inputs, Videos):
        frames = inputs.load(inputs.paths[item], _SMALL).numpy()
        return [as_image(frame, _LONG) for frame in frames]
    if isinstance(inputs, Arrays) and inputs.values.ndim in (4, 5):
        x = inputs.values[item].numpy()
        return [as_image(frame, _LONG) for frame in (x if x.ndim == 4 else x[None])]
    return []


def _positions(item: ItemMaps) -> list[str]:
    """Return names of the positions of an item."""
    if item.kind == "words":
        return [f"{number}: {word}" for number, word in enumerate(item.words, 1)]
    if len(item.shape) == 2:
        return [f"row {row + 1}, column {column + 1}" for row, column in np.ndindex(*item.shape)]
    return [f"{_SINGULAR[item.kind]} {number}" for number in range(1, item.maps.shape[1] + 1)]


def _page_item(item: ItemMaps, annotators: Names) -> dict[str, Any]:
    """Return what the page shows of an item, with a card per annotator."""
    changes = item.maps - item.maps.mean(axis=0)
    highest, furthest = float(item.maps.max()), float(np.abs(changes).max())
    cards = item.cards(annotators.tolist())
    for card, values, change in zip(cards, item.maps, changes, strict=True):
        card["strengths"] = (values / max(highest, 1e-12)).tolist()
        card["differences"] = (change / max(furthest, 1e-12)).tolist()
        if item.kind in ("patches", "tokens"):
            smooth = bool(item.images)
            card["map"] = overlay(heat(values.reshape(item.grid), highest), smooth)
            card["difference"] = overlay(contrast(change.reshape(item.grid), furthest), smooth)
    images = [data_url(image, "JPEG") for image in item.images]
    return {
        "name": item.name,
        "kind": item.kind,
        "images": images,
        "words": item.words,
        "cards": cards,
    }


def _measure(measures: Faithfulness, name: str) -> str:
    value, random = getattr(measures, name), getattr(measures, f"{name}_random", None)
    if isnan(value):
        return "–"
    return f"{value:.2f}" if random is None else f"{value:.2f} against {random:.2f}"
