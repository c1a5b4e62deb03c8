"""`dissensus identify`, and peerannot's `identificationinfo`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..base.plain import as_rows
from ..base.progress import progress_bar
from ..errors import OptionError
from ._hard_items import HardItems
from ..quality.identify_output import print_annotators, print_cleaned, print_items, print_score, score_json
from ._network import Network, network_options
from ..pages.terminal import note, print_table, show_json
from .files import (
    class_options,
    examine_answers,
    examine_folder,
    is_data_folder,
    read_known,
    read_probabilities,
    write_table,
)
from .verb import KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..quality.score_context import ScoreContext
    from ..quality.scores import Score, Scored
    from ..result import Table


@click.command()
@click.argument("path", default=".")
@options(
    *("score", "items", "gold", "probabilities", "rules", "output", "chart --plot"),
    *("top --most", "latent --no-models=false", "copying", "n_classes"),
    *("answers --labels", "metadata --metadata_path --metadata-path", "matrix_file", "use_pleiss"),
    *("maxiter_dawid_skene --maxiter-DS", "hard_labels"),
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
@options("kind", "assigned", *READING, *KINDS, "json", "seed")
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

    given = _other_answers(path, answers, reading | {"inputs": network.inputs})
    if given is not None:
        from . import _answers

        kind = given.answers.kind
        refused = {"--drop": rules, "--probabilities": probabilities, "--chart": chart}
        _answers.refuse(refused, kind)
        how: dict[str, Any] = {
            "strategy": score,
            "gold": gold,
            "inputs": network.inputs,
            "items": items,
        }
        _answers.identify(given.answers, output=output, top=top, as_json=as_json, seed=seed, **how)
        return
    reading = class_options(path, reading)
    chosen = scores.find_score(score) if score else None
    draw = _chart(chart, rules, chosen)
    if items and chosen:
        raise click.UsageError("--items shows all scores of items; give it without -s")
    folder = is_data_folder(path, answers)
    found = examine_folder(path, reading, answers=answers, metadata=metadata, n_classes=n_classes)
    annotations = found.annotations
    if items or chosen or rules:
        part = "--items" if items else "-s" if chosen else "--drop"
        annotations.check_classes(f"identify with {part}", "identify without it")
    asked = scores.ScoreContext(
        annotations,
        consensus,
        gold=read_known(gold, annotations),
        matrices=_read_matrices(matrix_file),
        rounds=rounds if rounds or not folder else 50,
        probabilities=read_probabilities(probabilities, annotations),
        communities=communities,
        seed=seed,
    )

    def show(table: Table, content: Callable[[], Any], print_: Callable[[], None]) -> None:
        write_table(table, output)
        if as_json:
            show_json(content())
        elif not output:
            print_()

    if rules:
        _drop(asked, rules, output, as_json)
    elif chosen and chosen.trains:
        hard = HardItems(
            *(chosen, path, folder, metadata, hard_labels, use_pleiss, alpha, topk or 1, network)
        )
        hard.identify(found, asked, output=output, draw=draw, top=top, as_json=as_json)
    elif chosen:
        with progress_bar("scoring"):
            scored = scores.score(asked, chosen.name)
        draw(lambda pairs: pairs.score_pair(scored, scores.score(asked, _partner(chosen))))
        if folder:
            _write_as_peerannot(path, scored, asked)
        show(scored.table(), lambda: score_json(scored), lambda: print_score(scored, top))
    elif items:
        table = dict(asked.items.table())
        two = (scores.score(asked, name) for name in ("confidence", "entropy"))
        draw(lambda pairs: pairs.score_pair(*two))
        if asked.probabilities is not None:
            table["crowdlab_label"] = asked.quality.labels
            table["consensus_quality"] = asked.quality.consensus_quality
        show(table, lambda: as_rows(table), lambda: print_items(table, top))
    else:
        with progress_bar("scoring annotators") as progress:
            identified = asked.identified(models=latent, copying=copying, progress=progress)
        draw(lambda pairs: pairs.annotator_pair(identified))
        table = dict(identified.table())
        if probabilities:
            table["annotator_quality"] = asked.quality.annotator_quality
        show(table, identified.as_dict, lambda: print_annotators(identified, top))


@click.command()
@options("json")
def identificationinfo(as_json: bool) -> None:
    """List the scores of annotators, items and the crowd."""
    from ..quality.scores import SCORES

    if as_json:
        names = ("name", "of", "text", "aliases")
        show_json([{name: getattr(one, name) for name in names} for one in SCORES])
        return
    rows = [(one.name, one.of, one.text, ", ".join(one.aliases)) for one in SCORES]
    print_table(("score", "of", "meaning", "aliases"), rows, "dissensus identify -s …")


def _other_answers(path: str, answers: str | None, reading: dict[str, Any]) -> Any:
    """Return answers of other kinds than classes and numbers, if PATH holds them."""
    from pathlib import Path

    if is_data_folder(path, answers) or not Path(path).is_file():
        return None
    return examine_answers(path, **reading)


def _chart(
    path: str | None, rules: tuple[str, ...], chosen: Score | None
) -> Callable[[Callable[[Any], Any]], None]:
    """Return what draws a figure to a path; nothing without one."""
    if path is None:
        return lambda _figure: None
    from ..pages.charts import check_chart

    check_chart(path)
    if rules or (chosen and chosen.of == "crowd"):
        raise OptionError("--chart draws scores of annotators or items; leave it out")

    def draw(figure: Callable[[Any], Any]) -> None:
        from ..quality import score_pairs

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


def _drop(asked: ScoreContext, rules: tuple[str, ...], output: str | None, as_json: bool) -> None:
    from ..quality.cleaning import clean
    from ..formats.writers_init import write

    given = {"result": asked.result, "gold": asked.gold, "seed": asked.seed}
    with progress_bar("cleaning"):
        cleaned = clean(asked.annotations, rules, **given)
    if output:
        write(cleaned.annotations, output)
    if as_json:
        show_json(cleaned.as_dict())
    elif output != "-":
        print_cleaned(cleaned, output)


def _write_as_peerannot(path: str, scored: Scored, asked: ScoreContext) -> None:
    """Write a score to the file of peerannot, if it has one."""
    from ..formats.tools.folders import write_glad, write_score

    score = scored.score
    if score.file is None:
        return
    if score.file.startswith("glad/"):
        params = asked.fit("glad").params
        files = write_glad(path, params.ability, params.log_easiness)
    else:
        files = [write_score(path, score.file, scored.array)]
    for file in files:
        note(f"{score.name} written to {file}")
