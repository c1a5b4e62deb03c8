"""How `identify` finds hard items with a network: what it learns from, and the files it writes."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._progress import progress_bar
from ._identified import give, json_of, print_score
from ._learned import read_data
from ._shared import is_first, note, show_json

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..identification.scores import Asked, Score
    from ..learning._hardness import Hardness
    from ..learning.data_sets import DataSet
    from ..nn import Inputs
    from ..readers import Reading
    from ..reporting.hardest import HardItem
    from ._deep import Network

__all__ = ["Wanted", "find_hard", "hard_options"]

_SHOWN = 24  # items in the picture

_OPTIONS = (
    click.option(
        "--hard-labels",
        help="For aum, one label per item: a table or an array, as `aggregate` writes them.  "
        "[default: --gold, or the folders of train/]",
    ),
    click.option("--use-pleiss", is_flag=True, help="Margins over the best of the other classes."),
    click.option(
        "--alpha",
        type=click.FloatRange(min=0, max=1, max_open=True),
        default=0.01,
        show_default=True,
        help="Share of items that are too hard.",
    ),
    click.option(
        "--topk",
        type=click.IntRange(min=0),
        default=0,
        help="Margins over the class after so many.  [default: 1]",
    ),
    click.option(
        "--held-out",
        type=click.FloatRange(min=0, max=0.9),
        default=0.1,
        show_default=True,
        help="Share of items that decides after how many epochs to end; 0 goes to the last.",
    ),
)


def hard_options(command: Any) -> Any:
    """Add the options of scores that train a network."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Wanted:
    """What was asked of such a score."""

    score: Score
    path: str
    folder: bool  # whether it is one of peerannot's
    metadata: str | None
    hard_labels: str | None
    pleiss: bool
    alpha: float
    top: int
    held_out: float
    network: Network


def find_hard(
    wanted: Wanted,
    found: Reading,
    asked: Asked,
    *,
    output: str | None,
    most: int,
    as_json: bool,
) -> None:
    """Train, write what peerannot writes and a picture, and show the hardest items."""
    from dataclasses import replace

    from ..identification.scores import Scored
    from ..readers.sources import format_for

    if output and output != "-":
        format_for(output)  # before anything is computed
    data = read_data(
        wanted.path, asked.annotations, wanted.network, found=found, metadata=wanted.metadata
    )
    position = _place(wanted, data.inputs)
    matrices = asked.matrices
    if matrices is not None and len(matrices) == asked.annotations.n_annotators:
        matrices = matrices[_still_there(asked.annotations, data.annotations)]
    asked = replace(
        asked,
        annotations=data.annotations,
        inputs=data.inputs,
        matrices=matrices,
        gold=_known(wanted, asked, data) if wanted.score.name == "aum" else None,
    )
    hard = _trained(wanted, asked, position)
    if not is_first():
        return
    files = _write(wanted, hard, data, found.annotations, position)
    scored = Scored(wanted.score, data.annotations.items, hard.score)
    give(hard.table(), output)
    if as_json:
        told = {"too_hard": hard.too_hard.tolist(), "epochs": hard.epochs, "learned": hard.learned}
        show_json(json_of(scored) | told | {"files": files})
        return
    if not output:
        print_score(scored, most)
    if hard.learned <= hard.common:
        note(
            f"the network knows {hard.learned:.0%} of the labels, and one class has "
            f"{hard.common:.0%}: it learned nothing; try more --n-epochs, another --lr or --model"
        )
    count = int(hard.pruned.sum())
    note(
        f"{count} of {data.annotations.n_items} items are too hard, after {hard.epochs} epochs; "
        f"all files are in {position}"
    )


def _trained(wanted: Wanted, asked: Asked, position: Path) -> Hardness:
    from dataclasses import replace

    from ..nn.runs import clear_ended

    network, name = wanted.network, wanted.score.name
    run = position / "training"
    if is_first() and not network.resume:
        for each in (run, *run.glob("*/")):
            clear_ended(each)
    how: dict[str, Any] = {
        "encoder": network.spec(asked.inputs),
        "frozen": network.frozen,
        "augment": network.augmented,
        "hidden": network.hidden,
        "dropout": network.dropout,
        "input_dropout": network.input_dropout,
        "alpha": wanted.alpha,
        "top": max(wanted.top, 1),
        "margin": "pleiss" if wanted.pleiss else "top2",
        "folder": run,
        "resume": network.resume,
        **asdict(network.training(asked.seed)),
        "held_out": wanted.held_out,
    }
    if name in ("aum", "aumc"):
        how["keep"] = True
    with ExitStack() as stack:
        how["progress"] = stack.enter_context(progress_bar("training"))
        return replace(asked, network=how).hardness(name)


def _place(wanted: Wanted, inputs: Inputs) -> Path:
    """Return where the files go, as peerannot names the folder."""
    name, network = wanted.score.name, wanted.network
    base = Path(network.folder or (wanted.path if wanted.folder else "."))
    model = network.encoder
    if model == "auto":
        model = network.spec(inputs)
    model = re.sub(r"[^\w.-]+", "-", model.partition("[")[0]).strip("-.") or "network"
    kind = "pleiss" if wanted.pleiss else "yang"
    last = name if name in ("aum", "aumc") else f"{name}_{wanted.alpha}_{kind}"
    return base / "identification" / model / last


def _known(wanted: Wanted, asked: Asked, data: DataSet) -> dict[str, str] | None:
    """Return one label per item for AUM: of a file, gold, or the folders that images lie in."""
    if wanted.hard_labels:
        from ..readers.predictions import read_predictions

        given: Any = read_predictions(wanted.hard_labels, labels="nominal")
        known = given.label >= 0
        names = zip(
            given.items[known].tolist(), given.classes[given.label[known]].tolist(), strict=True
        )
        return dict(names)
    if asked.gold is not None:
        return dict(asked.gold)
    return data.folders


def _still_there(before: Annotations, now: Annotations) -> Any:
    from .._relation import indices_of

    return indices_of(now.annotators, before.annotators)


def _write(
    wanted: Wanted, hard: Any, data: DataSet, every: Annotations, position: Path
) -> list[str]:
    """Write the files, and return where they are."""
    import numpy as np

    from .._relation import indices_of
    from ..readers.folders import save_array
    from ..writers.hard_items import samples_of, write_aum, write_too_hard, write_waum

    rest = data.others.inputs if data.others is not None else None
    files = [getattr(inputs, "paths", ()) for inputs in (data.inputs, rest)]
    samples = samples_of(data.annotations.items, *files)
    too_hard = position / f"too_hard_{wanted.alpha}.txt"
    write_too_hard(too_hard, samples.index[hard.pruned], hard.too_hard)
    written = [too_hard, _picture(wanted, hard, data.inputs, position)]
    if wanted.score.name in ("aum", "aumc"):
        write_aum(position, hard, samples)
        written += [position / "aum_values.csv", position / "full_aum_records.csv"]
    else:
        write_waum(position, hard, samples)
        written += [position / name for name in _WAUM]
        posterior = np.zeros((every.n_items, data.annotations.n_classes))
        posterior[indices_of(data.annotations.items, every.items)] = hard.posterior
        file = f"labels_{wanted.score.name}_{wanted.alpha}.npy"
        written.append(position.parents[2] / "labels" / file)
        save_array(written[-1], posterior)
    return [str(each) for each in written]


_WAUM = ("waum.csv", "score_per_worker.json", "aum_per_worker.json")


def _picture(wanted: Wanted, hard: Hardness, inputs: Inputs, position: Path) -> Path:
    """Write the hardest items as people see them: images as a sheet, anything else as a page."""
    from .._files import atomic_file
    from ..reporting.hardest import contact_sheet, hard_page, is_picture

    items = _hardest(hard, inputs, _class_names(wanted, hard.annotations))
    title = f"The {len(items)} hardest of {hard.annotations.n_items} items, by {wanted.score.name}"
    if items and all(is_picture(item.shown) for item in items):
        with atomic_file(position / "hardest.png") as draft:
            draft.write_bytes(contact_sheet(items, title))
        return position / "hardest.png"
    with atomic_file(position / "hardest.html") as draft:
        draft.write_text(hard_page(items, title), encoding="utf-8")
    return position / "hardest.html"


def _class_names(wanted: Wanted, annotations: Annotations) -> list[str]:
    """Return the classes as people call them; a folder may have better names than numbers."""
    from ..readers.folders import read_metadata

    names = read_metadata(wanted.path, wanted.metadata).get("label_names") if wanted.folder else ()
    if isinstance(names, list) and len(names) == annotations.n_classes:
        return [str(name) for name in names]
    return annotations.classes.tolist()


def _hardest(hard: Hardness, inputs: Inputs, classes: list[str]) -> list[HardItem]:
    import numpy as np

    from ..reporting.hardest import HardItem

    annotations = hard.annotations
    chosen = hard.hardest[: min(_SHOWN, int((~np.isnan(hard.score)).sum()))]
    shown = _as_seen(inputs.take(chosen))
    out = []
    for item, what in zip(chosen.tolist(), shown, strict=True):
        votes = np.bincount(
            annotations.label[annotations.index[item] : annotations.index[item + 1]]
        )
        order = [code for code in np.argsort(-votes, kind="stable").tolist() if votes[code]]
        labels = tuple((classes[code], int(votes[code])) for code in order)
        score, pruned = float(hard.score[item]), bool(hard.pruned[item])
        out.append(HardItem(str(annotations.items[item]), score, pruned, labels, what))
    return out


def _as_seen(inputs: Inputs) -> list[Any]:
    """Return what people see of inputs: files, texts, pixels, or nothing of plain numbers."""
    from ..nn import Arrays, Images, Texts

    if isinstance(inputs, Images):
        return list(inputs.paths)
    if isinstance(inputs, Texts):
        return list(inputs.texts)
    if isinstance(inputs, Arrays) and inputs.values.ndim == 4:
        return list(inputs.values.numpy())
    return [None] * len(inputs)
