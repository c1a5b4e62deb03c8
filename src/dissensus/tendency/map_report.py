"""Maps of items for people: pictures, a sheet of all annotators side by side, a page, a table.

index.html          all of it, to look at; needs no network
sheet.png           items by annotators
pictures/1-2.png    item 1, annotator 2, by their order in maps.csv
maps.csv            item, annotator, place, weight
trust.json          how far the maps can be trusted
raw.safetensors     if asked for: weights (item, layer, head, annotator, token) of every fit
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import atomic_folder
from .._names import Names
from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import OptionError
from ..nn.encoders import Encoder
from ..nn.inputs import Arrays, Images, Inputs, Texts
from ..nn.videos import Videos, frames_of
from ._base import Tendency, Views
from ._map_images import Shown, as_address, heat, pair_picture, sheet
from .faithfulness import Faithfulness, faithfulness
from .maps import Maps, Over, look, word_maps, word_spans

if TYPE_CHECKING:
    from ..reporting.maps_page import MapCard, MapItem

__all__ = ["MapReport", "map_report"]

_LONG = 320  # pixels of the longer side of an image on the page
_SMALL = 96  # pixels of a frame
_SMOOTH = 12  # pixels of a patch in heat that lies over an image
_SHEET = 30  # items on the sheet


@dataclass(frozen=True, eq=False)
class MapReport:
    """Where annotators look in some items."""

    shown: list[Shown]
    annotators: Names
    maps: Maps
    trust: Faithfulness

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder, whole or not at all."""
        folder = Path(folder)
        empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        if not empty and not (folder / "maps.csv").is_file():
            raise OptionError(f"{folder}: is there and holds no maps; name a new folder")
        with atomic_folder(folder) as draft:
            (draft / "pictures").mkdir()
            for item, one in enumerate(self.shown, 1):
                for annotator in range(len(self.annotators)):
                    picture = pair_picture(one, annotator)
                    picture.save(draft / "pictures" / f"{item}-{annotator + 1}.png", optimize=True)
            names = self.annotators.tolist()
            sheet(self.shown[:_SHEET], names).save(draft / "sheet.png", optimize=True)
            with (draft / "maps.csv").open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out)
                writer.writerow(["item", "annotator", "place", "weight"])
                writer.writerows(self.rows())
            told = json.dumps(self.trust.as_dict(), indent=1)
            (draft / "trust.json").write_text(told, encoding="utf-8")
            (draft / "index.html").write_text(self.page(), encoding="utf-8")
            if self.maps.raw:
                _save_raw(draft / "raw.safetensors", self.maps.raw)

    def rows(self) -> list[tuple[str, str, str, float]]:
        """Return every weight: item, annotator, place, weight."""
        return [
            (one.name, name, position, round(float(weight), 6))
            for one in self.shown
            for name, row in zip(self.annotators.tolist(), one.maps, strict=True)
            for position, weight in zip(_places(one), row, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        items = [
            {
                "item": one.name,
                "places": _places(one),
                "annotators": [
                    {
                        "annotator": name,
                        "label": label,
                        "chance": chance,
                        "said": annotations or None,
                        "map": row.round(6).tolist(),
                    }
                    for name, (label, chance), annotations, row in zip(
                        self.annotators.tolist(),
                        one.foreseen,
                        one.annotations,
                        one.maps,
                        strict=True,
                    )
                ],
            }
            for one in self.shown
        ]
        return {"items": items, "trust": self.trust.as_dict()}

    @property
    def sentences(self) -> list[str]:
        """What to know first."""
        return _sentences(self)

    def page(self) -> str:
        """Return the page."""
        from ..reporting.maps_page import render_maps

        return render_maps(
            "Where annotators look",
            self.sentences,
            [
                ("annotators", str(len(self.annotators))),
                ("items shown", str(len(self.shown))),
                (_PLACES[self.shown[0].kind], _count(self.shown)),
            ],
            [_item(one, self.annotators) for one in self.shown],
            _scores(self.trust),
            f"from {len(self.shown)} items",
        )


def map_report(
    tendency: Tendency,
    inputs: Inputs,
    views: Views,
    *,
    items: Names,
    annotators: Names,
    classes: Names,
    chosen: Integers | None = None,
    annotations: Annotations | None = None,
    encoder: Encoder | None = None,
    over: Over = "mean",
    raw: bool = False,
    seed: int = 0,
) -> MapReport:
    """Return where annotators look in items.

    Parameters
    ----------
    tendency
        A fitted model with queries.
    inputs
        The items as people see them.
    views
        The same items as the model sees them.
    items, annotators, classes
        Names of all items given, of all annotators of the model, and of classes.
    chosen
        Codes of the annotators to show; all if not given.
    annotations
        What annotators said of these items, where that is known, with the same names.
    encoder
        Of texts: the one that has made the views.
    over, raw
        As of `look`.
    seed
        Decides on which items trust is measured.
    """
    codes = np.arange(len(annotators)) if chosen is None else np.asarray(chosen)
    maps = look(tendency, views, codes, over=over, raw=raw, whole=isinstance(inputs, Texts))
    log = tendency.log_proba(views, codes)  # (item, annotator, class)
    known = {} if annotations is None else annotations.to_dict()
    by_words: list[Floats] = []
    if isinstance(inputs, Texts):
        tokenizer: Any = getattr(encoder, "tokenizer", None)
        if tokenizer is None:
            raise OptionError("maps of texts need the encoder that has made their tokens")
        by_words = word_maps(maps, inputs.texts, tokenizer, int(getattr(encoder, "length", 512)))
    shown = []
    for item, name in enumerate(items.tolist()):
        given = known.get(name, {})
        shown.append(
            Shown(
                name,
                "words" if by_words else maps.kind,
                _pictures(inputs, item, maps),
                _words(inputs, item),
                by_words[item] if by_words else maps.values[item],
                maps.shape,
                [(str(classes[row.argmax()]), float(np.exp(row.max()))) for row in log[item]],
                [_as_text(given.get(who, "")) for who in annotators[codes].tolist()],
            )
        )
    trust = faithfulness(tendency, views, codes, seed=seed)
    return MapReport(shown, annotators[codes], maps, trust)


def _pictures(inputs: Inputs, item: int, maps: Maps) -> list[Any]:
    """Return an item as pictures: one of an image, one per frame of a video."""
    from PIL import Image

    if isinstance(inputs, Images):
        with Image.open(inputs.paths[item]) as image:
            small = image.convert("RGB")
            small.thumbnail((_LONG, _LONG))
            return [small]
    if isinstance(inputs, Videos):
        return [_picture(x) for x in frames_of(inputs.paths[item], maps.shape[0], _SMALL).numpy()]
    if isinstance(inputs, Arrays) and inputs.values.ndim in (4, 5):
        x = inputs.values[item].numpy()
        return [_picture(each) for each in (x if x.ndim == 4 else x[None])]
    return []


def _picture(x: Floats) -> Any:
    """Return pixels (channel, row, column), or (row, column, channel), from 0 to 1 as a picture."""
    from PIL import Image

    x = x.transpose(1, 2, 0) if x.shape[0] in (1, 3) else x
    pixels = (np.clip(x, 0, 1) * 255).round().astype(np.uint8)
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).convert("RGB")
    larger = _LONG // max(image.size)
    size = image.width * larger, image.height * larger
    return image.resize(size, Image.Resampling.NEAREST) if larger > 1 else image


def _words(inputs: Inputs, item: int) -> list[str]:
    if not isinstance(inputs, Texts):
        return []
    text = inputs.texts[item]
    return [text[begin:end] for begin, end in word_spans(text)]


def _as_text(annotations: Any) -> str:
    return ", ".join(annotations) if isinstance(annotations, list) else str(annotations)


def _places(one: Shown) -> list[str]:
    """Return names of the places of an item."""
    if one.kind == "words":
        return [f"{position}: {word}" for position, word in enumerate(one.words, 1)]
    if len(one.shape) == 2:
        return [f"row {r + 1}, column {c + 1}" for r, c in np.ndindex(*one.shape)]
    what = "frame" if one.kind == "frames" else "place"
    return [f"{what} {position}" for position in range(1, one.maps.shape[1] + 1)]


_PLACES = {"patches": "patches", "frames": "frames", "words": "words", "places": "places"}


def _count(shown: Sequence[Shown]) -> str:
    sizes = [one.maps.shape[1] for one in shown]
    return str(sizes[0]) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _item(one: Shown, annotators: Names) -> MapItem:
    from ..reporting.maps_page import MapItem

    everybody = one.maps.mean(axis=0)
    highest = float(one.maps.max())
    furthest = float(np.abs(one.maps - everybody).max())
    cards = [
        _card(one, position, name, everybody, highest, furthest)
        for position, name in enumerate(annotators.tolist())
    ]
    video = one.kind == "frames"
    addresses = [as_address(picture, "JPEG") for picture in one.pictures]
    image = addresses[0] if addresses and not video else ""
    return MapItem(one.name, one.kind, image, addresses if video else [], one.words, cards)


def _card(
    one: Shown, position: int, name: str, everybody: Floats, highest: float, furthest: float
) -> MapCard:
    from ..reporting.maps_page import MapCard

    values, change = one.maps[position], one.maps[position] - everybody
    over = difference = ""
    if one.kind in ("patches", "places"):
        shape = one.shape if len(one.shape) == 2 else (1, len(values))
        smooth = bool(one.pictures)
        over = _heat(heat(values.reshape(shape), highest), smooth)
        difference = _heat(_contrast(change.reshape(shape), furthest), smooth)
    label, chance = one.foreseen[position]
    return MapCard(
        name,
        label,
        chance,
        one.annotations[position],
        over,
        difference,
        (values / max(highest, 1e-12)).tolist(),
        (change / max(furthest, 1e-12)).tolist(),
    )


def _heat(colours: Any, smooth: bool) -> str:
    from PIL import Image

    image = Image.fromarray(colours, "RGBA")
    size = image.width * _SMOOTH, image.height * _SMOOTH
    kind = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    return as_address(image.resize(size, kind))


def _contrast(change: Floats, furthest: float) -> Any:
    """Return red for more and blue for less, the stronger the further: (row, column, 4)."""
    share = np.abs(change) / max(furthest, 1e-12)
    red, blue = np.array([215, 48, 31]), np.array([33, 102, 172])
    colour = np.where(change[..., None] > 0, red, blue)
    return np.concatenate([colour, (255 * 0.85 * share)[..., None]], axis=-1).astype(np.uint8)


def _sentences(report: MapReport) -> list[str]:
    trust = report.trust
    what = {"patches": "a place", "frames": "a frame", "words": "a word", "places": "a place"}
    told = [
        f"The stronger the colour, the more the model looked at {what[report.shown[0].kind]} when "
        "it foresaw what this annotator would say."
    ]
    if not isnan(trust.apart):
        told.append(
            f"On the same item, two annotators look {_far(trust.apart)} "
            f"({trust.apart:.2f}; 0 is the same, 1 is nothing in common)."
        )
    if not isnan(trust.deletion):
        gap = trust.deletion_by_chance - trust.deletion
        matters = (
            "what the maps show matters"
            if gap > 0.05
            else "the maps hardly show what matters, so read little into them"
        )
        told.append(
            "With the places hidden that a map ranks first, the foreseen label keeps a chance of "
            f"{trust.deletion:.0%} on average, with places hidden at random "
            f"{trust.deletion_by_chance:.0%}: {matters}."
        )
    return told


def _far(apart: float) -> str:
    if apart < 0.1:
        return "at nearly the same places"
    return "at partly different places" if apart < 0.4 else "at different places"


def _scores(trust: Faithfulness) -> list[tuple[str, str, str]]:
    def pair(one: float, two: float) -> str:
        return "–" if isnan(one) else f"{one:.2f} against {two:.2f}"

    def single(one: float) -> str:
        return "–" if isnan(one) else f"{one:.2f}"

    return [
        (
            "deletion",
            pair(trust.deletion, trust.deletion_by_chance),
            "chance of the foreseen label while first places are hidden, against random places; "
            "lower is better",
        ),
        (
            "insertion",
            pair(trust.insertion, trust.insertion_by_chance),
            "the same while only first places are shown; higher is better",
        ),
        (
            "randomisation",
            single(trust.randomisation),
            "how far maps move when an annotator gets a random query; near 0, maps are not the "
            "annotator's",
        ),
        (
            "stability",
            single(trust.stability),
            "correlation of maps between fits with different seeds; 1 is the same",
        ),
        (
            "gradient",
            single(trust.gradient),
            "rank correlation with gradient × input, another opinion on what matters",
        ),
        (
            "apart",
            single(trust.apart),
            "how far the maps of two annotators lie apart; 0 is the same, 1 nothing in common",
        ),
    ]


def _save_raw(path: Path, raw: list[Floats]) -> None:
    from safetensors.numpy import save_file

    save_file(
        {f"fit {position}": np.ascontiguousarray(each) for position, each in enumerate(raw, 1)},
        path,
    )
