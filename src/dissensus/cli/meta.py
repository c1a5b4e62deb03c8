"""`dissensus meta`: `fit` to source tasks, `adapt` to a small task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import note, print_sections, print_text, show_json
from . import Group
from .files import check_views, examine_annotations, read_known, write_table
from .training import Content
from .verb import READING, Options, command

if TYPE_CHECKING:
    from ..deep.meta.adapted import Adapted
    from ..deep.meta.few_shot import FewShotCrowd


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


@dataclass(frozen=True, kw_only=True)
class Episodes(Options):
    """The tasks to come: their sizes and their annotators."""

    ways: Any = "5"
    shots: Any = "1,3,5"
    n_annotators: Any = "3,5,7"
    labels_per_item: float | None = None
    uneven: float = 0.0
    spammers: Any = "0,0.8"
    accuracy: Any = "0.8,1"
    flippers: float = 0.0
    class_spammers: float = 0.0

    def settings(self) -> dict[str, Any]:
        """Return the settings of a learner."""
        from ..deep.meta.episodes import Sizes
        from ..deep.meta.pseudo_annotators import PseudoAnnotators

        crowd = {"spammers": self.spammers, "accuracy": self.accuracy, "flippers": self.flippers}
        crowd |= {"class_spammers": self.class_spammers, "per_item": self.labels_per_item}
        sizes = {"ways": self.ways, "shots": self.shots, "uneven": self.uneven}
        return {
            "sizes": Sizes(annotators=self.n_annotators, **sizes),
            "annotators": PseudoAnnotators(**crowd),
        }


@dataclass(frozen=True, kw_only=True)
class Learning(Options):
    """How the embedding is trained, and adapters are tuned."""

    encoder: str = "auto"
    head: str = "none"
    objective: str = "clean"
    epochs: int = 40
    episodes: int = 3200
    lr: float = 2e-3
    precision: Any = "32"
    tuning: int = 300
    rotations: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the settings of a learner."""
        from ..deep.meta.few_shot import TRAINING

        own = {name: getattr(self, name) for name in ("encoder", "head", "objective", "episodes")}
        training = replace(TRAINING, epochs=self.epochs, lr=self.lr, precision=self.precision)
        rotations = 4 if self.rotations else 1
        return own | {"training": training, "tuning": self.tuning, "rotations": rotations}


@command(meta, time_limit=True)
def fit(
    *,
    sources: tuple[str, ...],
    output: str,
    column: str | None = None,
    label: str | None = None,
    task: str | None = None,
    strategy: str = "auto",
    tasks: Episodes,
    learning: Learning,
    checkpoints: str | None = None,
    as_json: bool = False,
    seed: int = 0,
) -> None:
    """Learn from source tasks with clean labels how small tasks are learned.

    Adapters (-s, several separated by semicolons) are tuned on classes that the embedding has not
    learned from, with pseudo-annotators as the options describe them, and the most accurate one is
    kept.

    \b
    Example:
      dissensus meta fit --source characters/ --encoder 'conv4[size=28]' --rotations -o model
    """
    from ..deep.meta.few_shot import FewShotCrowd
    from ..deep.meta.tasks import join_sources, read_source

    source = join_sources(
        [read_source(path, column=column, label=label, task=task) for path in sources]
    )
    model = FewShotCrowd(strategy, seed=seed, **tasks.settings(), **learning.settings())
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
    _show_fit(model, output, as_json)


def _show_fit(model: FewShotCrowd, output: str, as_json: bool) -> None:
    if as_json:
        scores = {name: {"accuracy": a, "half": h} for name, (a, h) in model.validation_.items()}
        summary = {"adapter": model.adapter_, "held_out": model.split_, "validation": scores}
        show_json({**summary, "folder": output})
        return
    for name, (mean, half) in model.validation_.items():
        note(f"{'*' if name == model.adapter_ else ' '} {name}: {mean:.3f} ± {half:.3f}")
    tuned_on = "all classes" if model.split_ == "nothing" else f"{model.split_}, held out"
    note(f"Tuned on {tuned_on}, with the query accuracies above. Written to {output}")


@dataclass(frozen=True, kw_only=True)
class Outputs(Options):
    """Files that a small task is written to."""

    output: str | None = None
    confusion: str | None = None
    plan: str | None = None
    chart: str | None = None

    def write(self, result: Adapted) -> None:
        """Write the tables that are asked for."""
        files = {"labels": self.output, "confusion": self.confusion, "requests": self.plan}
        for name, file in files.items():
            if file:
                write_table(result.tables[name], file)


@command(meta, reading=READING)
def adapt(
    path: str,
    *,
    load: str,
    inputs: str | None = None,
    content: Content,
    into: Outputs,
    budget: float | None = None,
    truth: str | None = None,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.meta.adapted import adapted, read_support
    from ..deep.meta.few_shot import FewShotCrowd

    if into.plan and not budget:
        raise OptionError("--plan is the file of labels to request; --budget says how many")
    if truth and not into.chart:
        raise OptionError("--truth is shown in a figure; --chart names its file")
    known_labels = read_known(truth)
    check_views(into.output, into.chart)
    examined = examine_annotations(path, **reading)
    model = FewShotCrowd.load(load)
    support, names, others = read_support(examined, inputs, column=content.column)
    most = None if budget is None else int(budget)
    with progress_bar("adapting"):
        task = model.adapt(support, examined.annotations)
        result = adapted(task, names, others, budget=most, seed=seed)
    into.write(result)
    if into.chart:
        further = {"new": others, "names": names.tolist()} if len(names) else {}
        task.view(known_labels, **further, seed=seed).plot().save(into.chart)
    if as_json:
        show_json(result.as_dict())
    elif into.output != "-":
        print_sections(result.sections())
        if into.output:
            print_text(f"Labels written to {into.output}.")
