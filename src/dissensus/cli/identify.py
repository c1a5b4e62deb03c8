"""`dissensus identify`, and peerannot's `identificationinfo`.

Most scores follow from labels alone. Those in `HardItems` train a network on the inputs, and write
files as peerannot does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ..base.progress import progress_bar
from ..base.storage import as_rows
from ..errors import OptionError
from ..pages.terminal import is_first, note, print_table, print_text, show_json
from .files import (
    examine_folder,
    holds_marks,
    is_data_folder,
    read_known,
    read_known_answers,
    read_probabilities,
    write_table,
)
from .training import Network, network_options, read_data
from .verb import KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..answers import Answers
    from ..deep.learning.data_sets import DataSet
    from ..deep.learning.label_trainer import Hardness
    from ..deep.nn import Inputs
    from ..formats import Reading
    from ..quality.scores import Score, ScoreContext, Scored
    from ..reporting.hardest import HardItem
    from ..result import Result, Table


_SHOWN = 24  # items in the picture
_SCALES = ("nominal", "ordinal", "interval", "ratio", "numeric")  # as of other verbs' --labels
_WAUM_FILES = ("waum.csv", "score_per_worker.json", "aum_per_worker.json")


@dataclass(frozen=True)
class View:
    """How scores are shown: a table in a file, JSON, the first rows on the terminal, a chart."""

    output: str | None
    top: int  # rows on the terminal
    as_json: bool
    draw: Callable[[Callable[[Any], Any]], None]

    def show(self, table: Table, result: Result, content: Callable[[], Any], **of: Any) -> None:
        """Write a table; print its content as JSON, or the result for people."""
        write_table(table, self.output)
        if self.as_json:
            show_json(content())
        elif not self.output:
            result.show(top=self.top, **of)


@dataclass(frozen=True)
class HardItems:
    """A score that trains a network, and its options."""

    score: Score
    path: str
    is_folder: bool  # whether PATH is a data set folder
    metadata: str | None
    hard_labels: str | None
    pleiss: bool
    alpha: float
    topk: int
    network: Network

    def identify(self, reading: Reading, context: ScoreContext, view: View) -> None:
        """Train, write the files of peerannot and a picture, and print the hardest items."""
        from ..base.names import indices_of
        from ..formats.sources import format_for
        from ..quality.scores import Scored, score

        if view.output and view.output != "-":
            format_for(view.output)  # before anything is computed
        annotations = context.annotations
        data = read_data(
            self.path, annotations, self.network, examined=reading, metadata=self.metadata
        )
        folder, matrices = self._folder(data.inputs), context.matrices
        if matrices is not None and len(matrices) == annotations.n_annotators:
            matrices = matrices[indices_of(data.annotations.annotators, annotations.annotators)]
        context = replace(
            context,
            annotations=data.annotations,
            inputs=data.inputs,
            matrices=matrices,
            gold=self._single_labels(context, data) if self.score.name == "aum" else None,
        )
        hard = self._train(context, folder / "training")
        if not is_first():
            return
        files = self._write(hard, data, reading, folder)
        scored = Scored(self.score, data.annotations.items, hard.score)
        write_table(hard.table(), view.output)
        view.draw(lambda pairs: pairs.item_pair(hard, score(data.annotations, "entropy")))
        if view.as_json:
            summary = {"epochs": hard.epochs, "learned": hard.learned, "files": files}
            show_json(scored.as_dict() | {"too_hard": hard.too_hard.tolist()} | summary)
            return
        if not view.output:
            scored.show(top=view.top)
        if hard.learned <= hard.common:
            note(
                f"the network predicts {hard.learned:.0%} of the labels, and one class has "
                f"{hard.common:.0%}: it learned nothing; try more --epochs, another --lr or "
                "--encoder"
            )
        note(
            f"{int(hard.pruned.sum())} of {data.annotations.n_items} items are too hard, after "
            f"{hard.epochs} epochs; all files are in {folder}"
        )

    def _train(self, context: ScoreContext, run: Path) -> Hardness:
        from ..deep.nn.runs import clear_ended

        network, name = self.network, self.score.name
        if is_first() and not network.resume:
            for folder in (run, *run.glob("*/")):
                clear_ended(folder)
        settings: dict[str, Any] = {
            **network.estimator(context.inputs),
            **asdict(network.training(context.seed)),
            "alpha": self.alpha,
            "top": max(self.topk, 1),
            "margin": "pleiss" if self.pleiss else "top2",
            "folder": run,
            "resume": network.resume,
        }
        if name in ("aum", "aumc"):
            settings["keep"] = True
        with progress_bar("training") as progress:
            return replace(context, network={**settings, "progress": progress}).hardness(name)

    def _folder(self, inputs: Inputs) -> Path:
        """Return the output folder, as peerannot names it."""
        name, margin = self.score.name, "pleiss" if self.pleiss else "yang"
        base = Path(self.network.folder or (self.path if self.is_folder else "."))
        last = name if name in ("aum", "aumc") else f"{name}_{self.alpha}_{margin}"
        return base / "identification" / self.network.name(inputs) / last

    def _single_labels(self, context: ScoreContext, data: DataSet) -> dict[str, str] | None:
        """Return one label per item for AUM: from a file, gold, or the folders of the images."""
        if self.hard_labels:
            from ..formats.predictions import read_predictions

            labels_given: Any = read_predictions(self.hard_labels, scale="nominal")
            is_labelled = labels_given.label >= 0
            labels = labels_given.classes[labels_given.label[is_labelled]]
            return dict(zip(labels_given.items[is_labelled].tolist(), labels.tolist(), strict=True))
        return data.folders if context.gold is None else dict(context.gold)

    def _write(self, hard: Any, data: DataSet, reading: Reading, folder: Path) -> list[str]:
        """Write the files, and return their paths."""
        import numpy as np

        from ..base.names import indices_of
        from ..formats.tools.peerannot import samples_of, write_aum, write_too_hard, write_waum
        from ..formats.writing import save_array

        other_inputs = data.others.inputs if data.others is not None else None
        images = [getattr(inputs, "paths", ()) for inputs in (data.inputs, other_inputs)]
        samples = samples_of(data.annotations.items, *images)
        too_hard = folder / f"too_hard_{self.alpha}.txt"
        write_too_hard(too_hard, samples.index[hard.pruned], hard.too_hard)
        written = [too_hard, self._picture(hard, data.inputs, folder)]
        if self.score.name in ("aum", "aumc"):
            write_aum(folder, hard, samples)
            written += [folder / "aum_values.csv", folder / "full_aum_records.csv"]
        else:
            write_waum(folder, hard, samples)
            written += [folder / name for name in _WAUM_FILES]
            annotations = reading.annotations
            posterior = np.zeros((annotations.n_items, data.annotations.n_classes))
            posterior[indices_of(data.annotations.items, annotations.items)] = hard.posterior
            file = f"labels_{self.score.name}_{self.alpha}.npy"
            written.append(folder.parents[2] / "labels" / file)
            save_array(written[-1], posterior)
        return [str(path) for path in written]

    def _picture(self, hard: Hardness, inputs: Inputs, folder: Path) -> Path:
        """Write the hardest items: images as a contact sheet, anything else as a page."""
        from ..base.files import atomic_file
        from ..reporting.hardest import contact_sheet, hard_page, is_picture

        items = _hardest(hard, inputs, self._class_names(hard.annotations.classes.tolist()))
        n_items = hard.annotations.n_items
        title = f"The {len(items)} hardest of {n_items} items, by {self.score.name}"
        pictures = bool(items) and all(is_picture(item.content) for item in items)
        file = folder / ("hardest.png" if pictures else "hardest.html")
        with atomic_file(file) as draft:
            page = contact_sheet(items, title) if pictures else hard_page(items, title).encode()
            draft.write_bytes(page)
        return file

    def _class_names(self, classes: list[str]) -> list[str]:
        """Return the names of classes; the metadata of a folder may have better ones."""
        from ..formats.tools.peerannot import read_metadata

        if self.is_folder:
            names = read_metadata(self.path, self.metadata).get("label_names")
            if isinstance(names, list) and len(names) == len(classes):
                return [str(name) for name in names]
        return classes


def _hardest(hard: Hardness, inputs: Inputs, classes: list[str]) -> list[HardItem]:
    import numpy as np

    from ..deep.nn import Arrays, Images, Texts
    from ..reporting.hardest import HardItem

    annotations = hard.annotations
    hardest = hard.hardest[: min(_SHOWN, int((~np.isnan(hard.score)).sum()))]
    inputs = inputs.take(hardest)
    contents: list[Any] = [None] * len(inputs)
    if isinstance(inputs, (Images, Texts)):
        contents = list(inputs.paths if isinstance(inputs, Images) else inputs.texts)
    elif isinstance(inputs, Arrays) and inputs.values.ndim == 4:
        contents = list(inputs.values.numpy())
    votes = annotations.votes()
    out = []
    for item, content in zip(hardest.tolist(), contents, strict=True):
        order = np.argsort(-votes[item], kind="stable").tolist()
        labels = tuple((classes[k], int(votes[item, k])) for k in order if votes[item, k])
        score, pruned = float(hard.score[item]), bool(hard.pruned[item])
        name = str(annotations.items[item])
        out.append(HardItem(name, score, pruned, labels=labels, content=content))
    return out


@click.command()
@click.argument("path", default=".")
@options(
    (
        *("score", "items", "gold", "probabilities", "rules", "output", "chart"),
        *("top", "latent", "copying", "n_classes"),
        *("answers", "metadata", "matrix_file", "use_pleiss"),
        *("maxiter_dawid_skene", "hard_labels"),
    ),
    score=Computed("all scores of annotators"),
    consensus="dawid-skene-map",
    top=20,
    communities=0,
    latent=False,
    answers=Computed("answers.json"),
    maxiter_dawid_skene=Computed("50 in a data set folder"),
    hard_labels=Computed("--gold, or the folders of train/"),
    alpha=0.01,
    topk=Computed("1"),
)
@network_options(epochs=50)
@options(("kind", "assigned", *READING, *KINDS, "json", "seed"))
def identify(
    path: str,
    score: str | None,
    consensus: str,
    items: bool,
    gold: str | None,
    probabilities: str | None,
    rules: tuple[str, ...],
    output: str | None,
    chart: str | None,
    top: int,
    communities: int,
    latent: bool,
    copying: bool,
    n_classes: int | None,
    answers: str | None,
    metadata: str | None,
    matrix_file: str | None,
    rounds: int | None,
    hard_labels: str | None,
    use_pleiss: bool,
    alpha: float,
    topk: int | None,
    network: Network,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Find unreliable annotators, copied labels and hard items.

    Every annotator is compared with the others, and with known items first. Without -s all scores
    are shown, the worst annotators first, with a verdict; --items shows the items. With --drop, the
    labels that are left go to the output. In a data set folder, -s also writes identification/… as
    peerannot does. aum, aumc, waum and waum_perworker train a network on the inputs and find the
    items that it cannot learn. Of answers of other kinds, annotators are compared with the
    consensus of -s, and --items lists the items by the distance of their answers. --chart draws two
    scores against each other: of annotators trace and spam score, of items the score of -s and the
    entropy of their labels.

    \b
    Examples:
      dissensus identify answers.csv
      dissensus identify answers.csv --drop "verdict == random" -o kept.csv
      dissensus identify answers.csv -s waum --inputs texts.csv --chart waum.svg
    """
    from ..quality import scores

    _check_answers_file(path, answers)
    is_folder = is_data_folder(path, answers)
    reading |= {"inputs": None if is_folder else network.inputs}
    examined = examine_folder(
        path, reading, answers=answers, metadata=metadata, n_classes=n_classes
    )
    if holds_marks(examined):
        from ._answers import refuse

        other_answers = examined.answers
        refuse({"--drop": rules, "--probabilities": probabilities, "--chart": chart}, other_answers)
        gold_answers = read_known_answers(gold, other_answers, network.inputs)
        view = View(output, top, as_json, _chart(None, rules, None))
        _show_others(other_answers, score, gold_answers, view, items=items, seed=seed)
        return
    wanted_score = _wanted(score, items=items)
    view = View(output, top, as_json, _chart(chart, rules, wanted_score))
    annotations = examined.annotations
    part = "--items" if items else "-s" if wanted_score else "--drop" if rules else None
    if part:
        annotations.check_classes(f"identify with {part}", "identify without it")
    context = scores.ScoreContext(
        annotations,
        consensus,
        gold=read_known(gold, annotations),
        matrices=_read_matrices(matrix_file),
        rounds=rounds if rounds or not is_folder else 50,
        probabilities=read_probabilities(probabilities, annotations),
        communities=communities,
        seed=seed,
    )
    if rules:
        _drop(context, rules, output, as_json)
    elif wanted_score and wanted_score.trains:
        files: Any = {"path": path, "is_folder": is_folder, "metadata": metadata}
        rule: Any = {
            "hard_labels": hard_labels,
            "pleiss": use_pleiss,
            "alpha": alpha,
            "topk": topk or 1,
        }
        hard = HardItems(score=wanted_score, network=network, **files, **rule)
        hard.identify(examined, context, view)
    elif wanted_score:
        _show_score(context, wanted_score, view, path if is_folder else None)
    elif items:
        _show_items(context, view)
    else:
        _show_annotators(context, view, models=latent, copying=copying)


def _show_others(
    answers: Answers, strategy: str | None, gold: Any, view: View, *, items: bool, seed: int
) -> None:
    """Show annotators or items of kinds other than classes and numbers."""
    from ..quality import AnswerScores, identify
    from ._answers import fit, method_of

    result = fit(answers, method_of(answers, strategy), gold=gold, seed=seed)
    scores = cast("AnswerScores", identify(answers, result, seed=seed))
    view.show(scores.items if items else scores.annotators, scores, scores.as_dict, items=items)


def _wanted(name: str | None, *, items: bool) -> Score | None:
    """Return the score of a name; with --items, all are shown."""
    from ..quality.scores import find_score

    score = find_score(name) if name else None
    if items and score:
        raise click.UsageError("--items shows all scores of items; give it without -s")
    return score


def _show_score(context: ScoreContext, score: Score, view: View, folder: str | None) -> None:
    """Show one score, and write it into a data set folder as peerannot does."""
    from ..quality import scores

    with progress_bar("scoring"):
        scored = scores.score(context, score.name)
    view.draw(lambda pairs: pairs.score_pair(scored, scores.score(context, _partner(score))))
    if folder is not None:
        _write_as_peerannot(folder, scored, context)
    view.show(scored.table(), scored, scored.as_dict)


def _show_items(context: ScoreContext, view: View) -> None:
    """Show all scores of items."""
    from ..quality import scores

    table = dict(context.items.table())
    pair = (scores.score(context, name) for name in ("confidence", "entropy"))
    view.draw(lambda pairs: pairs.score_pair(*pair))
    if context.probabilities is not None:
        table["crowdlab_label"] = context.quality.labels
        table["consensus_quality"] = context.quality.consensus_quality
    view.show(table, context.items, lambda: as_rows(table))


def _show_annotators(context: ScoreContext, view: View, *, models: bool, copying: bool) -> None:
    """Show all scores of annotators, with a verdict on each."""
    with progress_bar("scoring annotators") as progress:
        identified = context.identified(models=models, copying=copying, progress=progress)
    view.draw(lambda pairs: pairs.annotator_pair(identified))
    table = dict(identified.table())
    if context.probabilities is not None:
        table["annotator_quality"] = context.quality.annotator_quality
    view.show(table, identified, identified.as_dict)


@click.command()
@options("json")
def identificationinfo(as_json: bool) -> None:
    """List the scores of annotators, items and the crowd."""
    from ..quality.scores import SCORES

    if as_json:
        names = ("name", "of", "text", "aliases")
        show_json([{name: getattr(score, name) for name in names} for score in SCORES])
        return
    rows = [(score.name, score.of, score.text, ", ".join(score.aliases)) for score in SCORES]
    print_table(("score", "of", "meaning", "aliases"), rows, "dissensus identify -s …")


def _check_answers_file(path: str, answers: str | None) -> None:
    """Refuse the name of the answers in a folder where there is no folder."""
    if answers is None or Path(path).is_dir():
        return
    hint = f"; --scale {answers} says how labels are measured" if answers in _SCALES else ""
    raise OptionError(f"--answers {answers}: {path} is no data set folder{hint}")


def _chart(
    path: str | None, rules: tuple[str, ...], score: Score | None
) -> Callable[[Callable[[Any], Any]], None]:
    """Return what draws a figure to a path; nothing without one."""
    if path is None:
        return lambda _figure: None
    from ..pages.charts import check_chart

    check_chart(path)
    if rules or (score and score.of == "crowd"):
        raise OptionError("--chart draws scores of annotators or items; leave it out")

    def draw(figure: Callable[[Any], Any]) -> None:
        from ..quality import sections as score_pairs

        drawn = figure(score_pairs)
        if drawn is None:
            note("there is nothing to draw: fewer than two have both scores")
            return
        drawn.save(path)
        note(f"{drawn.title}: {drawn.words} Drawn to {path}")

    return draw


def _partner(score: Score) -> str:
    """Return the score to draw another one against."""
    if score.of == "annotator":
        return "trace" if score.name == "spam_score" else "spam_score"
    return "confidence" if score.name == "entropy" else "entropy"


def _read_matrices(file: str | None) -> Any:
    if file is None:
        return None
    from ..formats.tools.peerannot import read_matrices

    return read_matrices(file)


def _drop(context: ScoreContext, rules: tuple[str, ...], output: str | None, as_json: bool) -> None:
    from ..formats.writers_init import write
    from ..quality.cleaning import clean

    settings = {"result": context.result, "gold": context.gold, "seed": context.seed}
    with progress_bar("cleaning"):
        cleaned = clean(context.annotations, rules, **settings)
    if output:
        write(cleaned.annotations, output)
    if as_json:
        show_json(cleaned.as_dict())
    elif output != "-":
        cleaned.show()
        written = f"Kept labels written to {output}."
        print_text(written if output else "Nothing is written without -o.")


def _write_as_peerannot(path: str, scored: Scored, context: ScoreContext) -> None:
    """Write a score to the file of peerannot, if it has one."""
    from ..formats.tools.peerannot import write_glad, write_score

    score = scored.score
    if score.file is None:
        return
    if score.file.startswith("glad/"):
        params = context.fit("glad").params
        files = write_glad(path, params.ability, params.log_easiness)
    else:
        files = [write_score(path, score.file, scored.array)]
    for file in files:
        note(f"{score.name} written to {file}")
