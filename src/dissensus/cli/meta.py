"""`dissensus meta`: `fit` to source tasks, `adapt` to a small task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..base.storage import as_rows
from ..errors import OptionError
from ..pages.terminal import class_columns, note, print_table, print_text, show_json
from . import Group
from .files import examine_annotations, read_known, write_table
from .verb import READING, REQUIRED, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..deep.meta.target import FewShotTask
    from ..formats import Reading

_SHOWN = 10  # annotators on the terminal


@click.group(cls=Group)
def meta() -> None:
    """Learn small tasks from few labels (few-shot learning from noisy annotators).

    `fit` learns once, from tasks with clean labels, how tasks of that kind are learned. `adapt`
    then learns a new task from a few items and their annotations.

    \b
    Example:
      dissensus meta fit --source old_tasks.csv -o model
      dissensus meta adapt --load model answers.csv --inputs texts.csv -o labels.csv
    """


@meta.command()
@options(
    (
        *("column", "label", "task", "encoder", "strategy --adapter", "n_annotators --annotators"),
        *("labels_per_item --per-item", "rotations --turns", "checkpoints", "time_limit"),
        *("json", "seed"),
        *("objective --teach",),
    ),
    sources=REQUIRED,
    output=REQUIRED,
    strategy="auto",
    head="none",
    objective="clean",
    ways="5",
    shots="1,3,5",
    n_annotators="3,5,7",
    spammers="0,0.8",
    accuracy="0.8,1",
    flippers=0.0,
    class_spammers=0.0,
    uneven=0.0,
    epochs=40,
    episodes=3200,
    lr=2e-3,
    precision="32",
    tuning=300,
)
def fit(
    sources: tuple[str, ...],
    output: str,
    column: str | None,
    label: str | None,
    task: str | None,
    strategy: str,
    n_annotators: Any,
    labels_per_item: float | None,
    rotations: bool,
    checkpoints: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn from source tasks with clean labels how small tasks are learned.

    Adapters (-s, several separated by semicolons) are tuned on classes that the embedding has not
    learned from, with pseudo-annotators as the options describe them, and the most accurate one is
    kept.

    \b
    Example:
      dissensus meta fit --source characters/ --encoder 'conv4[size=28]' --rotations -o model
    """
    from dataclasses import replace

    from ..deep.meta.episodes import Sizes
    from ..deep.meta.few_shot import TRAINING, FewShotCrowd
    from ..deep.meta.pseudo_annotators import PseudoAnnotators
    from ..deep.meta.tasks import join_sources, read_source

    source = join_sources(
        [read_source(path, column=column, label=label, task=task) for path in sources]
    )
    sizes, crowd, training = (
        {name: settings.pop(name) for name in names}
        for names in (
            ("ways", "shots", "uneven"),
            ("spammers", "accuracy", "flippers", "class_spammers"),
            ("epochs", "lr", "precision"),
        )
    )
    model = FewShotCrowd(
        strategy,
        sizes=Sizes(annotators=n_annotators, **sizes),
        annotators=PseudoAnnotators(per_item=labels_per_item, **crowd),
        training=replace(TRAINING, **training),
        rotations=4 if rotations else 1,
        **settings,
    )
    with progress_bar("training") as progress:
        model.fit(
            source.inputs,
            source.label,
            task=source.task if len(set(source.task)) > 1 else None,
            folder=checkpoints,
            resume=True,
            progress=progress,
        )
    model.save(output)
    if as_json:
        scores = {name: {"accuracy": a, "half": h} for name, (a, h) in model.validation_.items()}
        summary = {"adapter": model.adapter_, "held_out": model.split_, "validation": scores}
        show_json({**summary, "folder": output})
        return
    for name, (mean, half) in model.validation_.items():
        note(f"{'*' if name == model.adapter_ else ' '} {name}: {mean:.3f} ± {half:.3f}")
    tuned_on = "all classes" if model.split_ == "nothing" else f"{model.split_}, held out"
    note(f"Tuned on {tuned_on}, with the query accuracies above. Written to {output}")


@meta.command()
@click.argument("path")
@options(
    (
        *("load --model", "inputs", "column", "output", "confusion", "budget --ask", "plan"),
        *("chart", "truth"),
        *(*READING, "json", "seed"),
    ),
    load=REQUIRED,
)
def adapt(
    path: str,
    load: str,
    inputs: str | None,
    column: str | None,
    output: str | None,
    confusion: str | None,
    budget: float | None,
    plan: str | None,
    chart: str | None,
    truth: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a new task from a few items and their annotations.

    Unlabelled items among the inputs get labels, too. With --budget, the most useful labels to
    request next are listed. --chart draws the items in the plane, with their classes before and
    after every step of EM, and beside the known ones of --truth.

    \b
    Example:
      dissensus meta adapt --load model answers.csv --inputs texts.csv -o labels.csv
    """
    import numpy as np

    from ..deep.learning.outcome import confusion_columns
    from ..deep.meta.few_shot import FewShotCrowd
    from ..pages.charts import check_chart

    if plan and not budget:
        raise OptionError("--plan is the file of labels to request; --budget says how many")
    if truth and not chart:
        raise OptionError("--truth is shown in a figure; --chart names its file")
    known_labels = read_known(truth)
    if chart:
        check_chart(chart)
    examined = examine_annotations(path, **reading)
    model = FewShotCrowd.load(load)
    support, names, other_inputs = _inputs(examined, inputs, column)
    with progress_bar("adapting"):
        task = model.adapt(support, examined.annotations)
        new = (
            task.predict_proba(other_inputs)
            if names
            else np.zeros((0, examined.annotations.n_classes))
        )
        requests = task.next(int(budget), seed=seed) if budget else None
    write_table(_labels(task, names, new), output)
    matrices = confusion_columns(task.confusion, task.annotators_, task.classes_)
    write_table(matrices, confusion)
    if requests is not None:
        write_table(requests, plan)
    if chart:
        task.view(
            known_labels, new=other_inputs if names else None, names=names, seed=seed
        ).plot().save(chart)
    if as_json:
        show_json(_summary(task, names, requests))
    elif output != "-":
        _print(task, names, new, requests, output)


def _inputs(reading: Reading, path: str | None, column: str | None) -> tuple[Any, list[str], Any]:
    """Return the inputs of the items with labels, and names and inputs of the others."""
    from ..deep.nn.reading import read_inputs, read_others

    annotations: Annotations = reading.annotations
    if path is not None:
        names, other_inputs = read_others(path, annotations.items, column=column)
        return read_inputs(path, annotations.items, column=column), names.tolist(), other_inputs
    if reading.texts is None:
        raise OptionError("what are the items? --inputs names a folder, a table or a .npz")
    texts = dict(reading.texts.select("item", "text").iter_rows())
    lost = [item for item in annotations.items.tolist() if item not in texts]
    if lost:
        raise OptionError(f"no text for item {lost[0]!r}; --inputs names where they are")
    return [texts[item] for item in annotations.items.tolist()], [], None


def _labels(task: FewShotTask, names: list[str], new: Any) -> dict[str, Any]:
    """Return labels of all items as columns."""
    import numpy as np

    from ..base.names import as_names

    posterior = np.concatenate([task.posterior, new])
    columns = {
        "item": as_names([*task.annotations.items.tolist(), *names]),
        "label": task.classes_[posterior.argmax(axis=1)],
        "confidence": posterior.max(axis=1),
        "n_labels": np.pad(task.annotations.labels_per_item, (0, len(names))),
    }
    return columns | class_columns(task.classes_, posterior)


def _summary(task: FewShotTask, names: list[str], requests: Any) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "adapter": task.model.adapter_,
        "classes": task.classes_.tolist(),
        "items": task.annotations.n_items,
        "new_items": len(names),
        "labels": dict(zip(task.annotations.items.tolist(), task.labels.tolist(), strict=True)),
        "annotators": as_rows(task.annotators),
        "confusion": dict(zip(task.annotators_.tolist(), task.confusion.tolist(), strict=True)),
    }
    if requests is not None:
        summary["ask"] = as_rows(requests)
    return summary


def _print(
    task: FewShotTask, names: list[str], new: Any, requests: Any, output: str | None
) -> None:
    ranked = sorted(as_rows(task.annotators), key=lambda row: -row["accuracy"])
    rows = [
        (row["annotator"], str(row["n_labels"]), f"{row['accuracy']:.0%}")
        for row in ranked[:_SHOWN]
    ]
    if len(ranked) > _SHOWN:
        rows.append(("…", f"{len(ranked) - _SHOWN} more", ""))
    title = f"Annotators, by {task.model.adapter_}"
    print_table(("annotator", ">labels", ">right"), rows, title)
    labelled = f"{task.annotations.n_items} items with {len(task.annotations)} labels"
    sentence = f"{labelled}: mean confidence {task.posterior.max(axis=1).mean():.0%}"
    if names:
        sentence += f"; {len(names)} new items: {new.max(axis=1).mean():.0%}"
    print_text(f"{sentence}.")
    if requests is not None:
        suggestions = [
            f"{row['annotator']} about {row['item']}" for row in as_rows(requests)[:_SHOWN]
        ]
        print_text(f"Ask next: {'; '.join(suggestions)}.")
    if output:
        print_text(f"Labels written to {output}.")
