"""`dissensus meta`: `fit` on source tasks, `adapt` to a small one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._progress import progress_bar
from ._shared import (
    examine_annotations,
    json_option,
    note,
    reading_options,
    seed_option,
    show_json,
)

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..meta.target import FewShotTask
    from ..readers import Reading

__all__ = ["meta"]

_SHOWN = 10  # annotators on the terminal


class _Numbers(click.ParamType[Any]):
    """Numbers with commas between."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a tuple of numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(self.kind(each) for each in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers with commas, as 1,3,5", param, ctx)


@click.group()
def meta() -> None:
    """Learn small tasks from few labels of shaky annotators.

    `fit` learns once, from tasks with clean labels, how tasks of that sort are learned. `adapt`
    then learns a new task from a few items and what annotators said of them.

    \b
    Example:
      dissensus meta fit --source old_tasks.csv -o model
      dissensus meta adapt --model model answers.csv --inputs texts.csv -o labels.csv
    """


@meta.command()
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    help="Folder of images by class, .npz of x and y, or table of texts and classes; may repeat.",
)
@click.option("--output", "-o", required=True, help="Folder for the model.")
@click.option("--column", help="Of a table: the column of texts or image files.")
@click.option("--label", help="Of a table: the column of classes.")
@click.option("--task", help="Of a table: the column of tasks; episodes stay within one.")
@click.option(
    "--encoder", default="auto", show_default=True, help="What turns inputs into vectors."
)
@click.option(
    "--adapter",
    "-s",
    default="auto",
    show_default=True,
    help="name[setting=value,…]; several with semicolons: the best on the source.",
)
@click.option(
    "--head",
    type=click.Choice(["none", "weights", "linear"]),
    default="none",
    show_default=True,
    help="What is learned on top of a frozen encoder.",
)
@click.option(
    "--objective",
    default="clean",
    show_default=True,
    help="Train on clean supports, on all classes, or by an adapter on noisy supports.",
)
@click.option("--ways", type=_Numbers(int), default="5", show_default=True, help="Classes.")
@click.option(
    "--shots", type=_Numbers(int), default="1,3,5", show_default=True, help="Items per class."
)
@click.option(
    "--annotators",
    type=_Numbers(int),
    default="3,5,7",
    show_default=True,
    help="Pseudo-annotators of an episode.",
)
@click.option(
    "--spammers",
    type=_Numbers(float),
    default="0,0.8",
    show_default=True,
    help="Lowest and highest share of those who guess.",
)
@click.option(
    "--accuracy",
    type=_Numbers(float),
    default="0.8,1",
    show_default=True,
    help="Lowest and highest accuracy of the others.",
)
@click.option("--per-item", type=float, help="Labels per item in the mean; all, if not told.")
@click.option(
    "--flippers",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of those who know whose errors are always the same.",
)
@click.option(
    "--class-spammers",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of those who guess who prefer some labels.",
)
@click.option(
    "--uneven",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="How far classes differ in their number of items.",
)
@click.option("--rotations", is_flag=True, help="Rotated images form new classes.")
@click.option(
    "--epochs", type=click.IntRange(min=1), default=40, show_default=True, help="At most."
)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    default=3200,
    show_default=True,
    help="Episodes in an epoch.",
)
@click.option("--lr", type=float, default=2e-3, show_default=True, help="Learning rate.")
@click.option(
    "--precision", type=click.Choice(["32", "bf16"]), default="32", show_default=True, help="Bits."
)
@click.option(
    "--tuning",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="Batches that the numbers of an adapter are fitted to.",
)
@click.option("--checkpoints", help="Folder for checkpoints; a broken run goes on from there.")
@json_option
@seed_option
def fit(
    sources: tuple[str, ...],
    output: str,
    column: str | None,
    label: str | None,
    task: str | None,
    encoder: str,
    adapter: str,
    head: Any,
    objective: str,
    ways: Any,
    shots: Any,
    annotators: Any,
    spammers: Any,
    accuracy: Any,
    per_item: float | None,
    flippers: float,
    class_spammers: float,
    uneven: float,
    rotations: bool,
    epochs: int,
    episodes: int,
    lr: float,
    precision: Any,
    tuning: int,
    checkpoints: str | None,
    as_json: bool,
    seed: int,
) -> None:
    """Learn from source tasks how small tasks are learned.

    Source tasks have clean labels. The numbers of every adapter are fitted to classes that the
    embedding has not learned from (all, if it learns nothing), and the adapter is chosen that is
    right most often there with the pseudo-annotators told.

    \b
    Example:
      dissensus meta fit --source characters/ --encoder 'conv4[size=28]' --rotations -o model
    """
    from dataclasses import replace

    from ..meta.episodes import Sizes
    from ..meta.few_shot import TRAINING, FewShotCrowd
    from ..meta.pseudo_annotators import PseudoAnnotators
    from ..meta.sources import join_sources, read_source

    given = join_sources(
        [read_source(path, column=column, label=label, task=task) for path in sources]
    )
    model = FewShotCrowd(
        adapter,
        encoder=encoder,
        head=head,
        objective=objective,
        sizes=Sizes(ways=ways, shots=shots, annotators=annotators, uneven=uneven),
        annotators=PseudoAnnotators(
            spammers=spammers,
            accuracy=accuracy,
            per_item=per_item,
            flippers=flippers,
            class_spammers=class_spammers,
        ),
        training=replace(TRAINING, epochs=epochs, lr=lr, precision=precision),
        episodes=episodes,
        rotations=4 if rotations else 1,
        tuning=tuning,
        seed=seed,
    )
    many = len(set(given.task)) > 1
    with progress_bar("training") as progress:
        model.fit(
            given.inputs,
            given.label,
            task=given.task if many else None,
            folder=checkpoints,
            resume=True,
            progress=progress,
        )
    model.save(output)
    if as_json:
        scores = {name: {"accuracy": a, "half": h} for name, (a, h) in model.validation_.items()}
        told = {"adapter": model.adapter_, "held_out": model.split_, "validation": scores}
        show_json({**told, "folder": output})
        return
    for name, (mean, half) in model.validation_.items():
        note(f"{'*' if name == model.adapter_ else ' '} {name}: {mean:.3f} ± {half:.3f}")
    kept = "all classes" if model.split_ == "nothing" else f"{model.split_}, held out"
    note(f"Fitted to {kept}; queries right there as told above. Written to {output}")


@meta.command()
@click.argument("path")
@click.option("--model", "folder", required=True, help="Folder that `meta fit` has written.")
@click.option(
    "--inputs",
    help="Folder of images, table of texts, or .npz of features, for items labelled and new.",
)
@click.option("--column", help="Of the inputs: the column of a table, or the array of a .npz.")
@click.option("--output", "-o", help="Where labels go, of all items; the ending tells the format.")
@click.option("--confusion", help="Where the annotators' confusion goes.")
@click.option("--ask", type=click.IntRange(min=1), help="Also say which labels to ask for next.")
@click.option("--plan", help="Where these go.")
@reading_options
@json_option
@seed_option
def adapt(
    path: str,
    folder: str,
    inputs: str | None,
    column: str | None,
    output: str | None,
    confusion: str | None,
    ask: int | None,
    plan: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a new task from a few items and what annotators said of them.

    Items among the inputs that nobody labelled get labels, too.

    \b
    Example:
      dissensus meta adapt --model model answers.csv --inputs texts.csv -o labels.csv
    """
    import numpy as np

    from ..errors import OptionError
    from ..meta.few_shot import FewShotCrowd
    from ..writers.table_files import write_columns

    if plan and not ask:
        raise OptionError("--plan says where the labels to ask for go; --ask says how many")
    found = examine_annotations(path, **reading)
    model = FewShotCrowd.load(folder)
    support, names, others = _inputs(found, inputs, column)
    task = model.adapt(support, found.annotations)
    new = task.predict_proba(others) if names else np.zeros((0, found.annotations.n_classes))
    table = _labels(task, names, new)
    asked = task.next(ask, seed=seed) if ask else None
    if output:
        write_columns(table, output)
    if confusion:
        write_columns(_matrices(task), confusion)
    if plan and asked is not None:
        write_columns(asked, plan)
    if as_json:
        show_json(_told(task, names, asked))
    elif output != "-":
        _print(task, names, new, asked, output)


def _inputs(found: Reading, path: str | None, column: str | None) -> tuple[Any, list[str], Any]:
    """Return the inputs of the items with labels, and names and inputs of the others."""
    from ..errors import OptionError
    from ..nn.reading import read_inputs, read_others

    annotations: Annotations = found.annotations
    if path is not None:
        names, others = read_others(path, annotations.items, column=column)
        return read_inputs(path, annotations.items, column=column), names.tolist(), others
    if found.texts is None:
        raise OptionError("what are the items? --inputs names a folder, a table or a .npz")
    texts = dict(found.texts.select("item", "text").iter_rows())
    lost = [item for item in annotations.items.tolist() if item not in texts]
    if lost:
        raise OptionError(f"no text for item {lost[0]!r}; --inputs names where they are")
    return [texts[item] for item in annotations.items.tolist()], [], None


def _labels(task: FewShotTask, names: list[str], new: Any) -> dict[str, Any]:
    """Return labels of all items as columns."""
    import numpy as np

    from .._names import as_names

    posterior = np.concatenate([task.posterior, new])
    n_labels = np.concatenate([task.annotations.labels_per_item, np.zeros(len(names), dtype=int)])
    columns = {
        "item": as_names([*task.annotations.items.tolist(), *names]),
        "label": task.classes_[posterior.argmax(axis=1)],
        "confidence": posterior.max(axis=1),
        "n_labels": n_labels,
    }
    posteriors = zip(task.classes_.tolist(), posterior.T, strict=True)
    return columns | {f"p:{name}": values for name, values in posteriors}


def _matrices(task: FewShotTask) -> dict[str, Any]:
    """Return confusion matrices as columns: annotator, true, given, probability."""
    import numpy as np

    matrix = task.confusion
    annotator, true, given = (axis.ravel() for axis in np.indices(matrix.shape))
    return {
        "annotator": task.annotators_[annotator],
        "true": task.classes_[true],
        "given": task.classes_[given],
        "probability": matrix.ravel(),
    }


def _told(task: FewShotTask, names: list[str], asked: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "adapter": task.model.adapter_,
        "classes": task.classes_.tolist(),
        "items": task.annotations.n_items,
        "new_items": len(names),
        "labels": dict(zip(task.annotations.items.tolist(), task.labels.tolist(), strict=True)),
        "annotators": [
            {"annotator": name, "n_labels": count, "accuracy": right}
            for name, count, right in zip(
                *(values.tolist() for values in task.annotators.values()), strict=True
            )
        ],
        "confusion": dict(zip(task.annotators_.tolist(), task.confusion.tolist(), strict=True)),
    }
    if asked is not None:
        told["ask"] = [
            {"item": item, "annotator": annotator, "gain": gain}
            for item, annotator, gain in zip(*(v.tolist() for v in asked.values()), strict=True)
        ]
    return told


def _print(task: FewShotTask, names: list[str], new: Any, asked: Any, written: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"Annotators, by {escape(task.model.adapter_)}")
    table.add_column("annotator")
    table.add_column("labels", justify="right")
    table.add_column("right", justify="right")
    columns = [values.tolist() for values in task.annotators.values()]
    rows = sorted(zip(*columns, strict=True), key=lambda row: -row[2])
    for name, count, right in rows[:_SHOWN]:
        table.add_row(escape(name), str(count), f"{right:.0%}")
    if len(rows) > _SHOWN:
        table.add_row("…", f"{len(rows) - _SHOWN} more", "")
    console.print(table)
    sure = task.posterior.max(axis=1).mean()
    told = f"{task.annotations.n_items} items with {len(task.annotations)} labels: sure of {sure:.0%} in the mean"
    if names:
        told += f"; {len(names)} new items: sure of {new.max(axis=1).mean():.0%}"
    console.print(f"{told}.")
    if asked is not None:
        pairs = zip(asked["item"].tolist(), asked["annotator"].tolist(), strict=True)
        shown = [f"{annotator} about {item}" for item, annotator in list(pairs)[:_SHOWN]]
        console.print(escape(f"Ask next: {'; '.join(shown)}."))
    if written:
        console.print(f"Labels written to {escape(str(Path(written)))}.")
