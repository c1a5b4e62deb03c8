"""How fair verdicts on annotators are: simulated crowds, sets with known truth, ordered sets.

`identification.py` writes these tables to its page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from dissensus import Annotations, DissensusError, Numbers, identify, read
from dissensus.answers.gold import gold_codes
from dissensus.quality.correlation import class_correlation, known_chunks
from dissensus.quality.verdicts import rating_scores
from gold_sets import DATA, SETS, load
from pages import Table
from verdict_crowds import SPAMMERS, STYLES, class_crowd, rating_crowd

FLAGS = ("random", "likely random", "constant")
SURE = ("random", "constant", "reversed")
ORDERED = {
    **dict.fromkeys(("politeness_wikipedia", "nli_variation", "wordsim353"), "interval"),
    **dict.fromkeys(("mqm_ende", "mqm_zhen", "n_emotion"), "interval"),
    **dict.fromkeys(("lewidi_csc", "s_adult", "adult3", "anesthesia"), "ordinal"),
    **dict.fromkeys(("lewidi_paraphrase", "alt_10k_prompts", "alt_summeval"), "ordinal"),
}


def percent(count: float, among: float) -> float:
    """Return a share in percent with one digit."""
    return round(100 * float(count) / max(float(among), 1), 1)


def ratings(seeds: int) -> Table:
    """Return who is flagged in crowds of raters."""
    rows = []
    for after in (False, True):
        for n_classes in (5, 7, 25):
            for labels, per_item in ((10, 5), (30, 3), (30, 5), (30, 10), (100, 5)):
                count, sizes = Counter(), Counter()
                for seed in range(seeds):
                    rng = np.random.default_rng([seed, n_classes, labels, per_item])
                    made = rating_crowd(rng, n_classes, labels, per_item, after_scale=after)
                    word = identify(made.annotations, scale="ordinal", copying=False).verdict
                    spammer, flagged = made.are(*SPAMMERS), np.isin(word, FLAGS)
                    count["wrong"] += flagged[~spammer].sum()
                    count["surely"] += np.isin(word, SURE)[~spammer].sum()
                    count["found"] += flagged[spammer].sum()
                    sizes["attentive"] += (~spammer).sum()
                    sizes["spammer"] += spammer.sum()
                    for style in STYLES:
                        own = word[made.are(style)]
                        named = np.isin(own, STYLES) if style == "normal" else own == style
                        count[style] += named.sum()
                        sizes[style] += len(own)
                cells = [percent(count[one], sizes["attentive"]) for one in ("wrong", "surely")]
                cells += [percent(count["found"], sizes["spammer"])]
                cells += [percent(count[style], sizes[style]) for style in STYLES]
                noise = "on the report" if after else "perceived"
                rows.append([noise, n_classes, labels, per_item, *cells])
    columns = ["noise", "classes", "labels each", "raters an item", "attentive flagged"]
    columns += ["surely", "spammers flagged", "normal given a style"]
    columns += [f"{style} named" for style in STYLES[1:]]
    note = (
        f"Percent of 40 raters in {seeds} crowds a row, noise 0.5, a fifth of them spammers: "
        "uniform, by the crowd's marginals, or one class with 2 % slips. Flagged: random, likely "
        "random or constant; surely: random, constant or reversed. Noise on the report does not "
        "shrink with the range that central raters use, so that they follow the items less."
    )
    return Table("Verdicts on ordered labels", columns, rows, note)


def noisier(seeds: int) -> Table:
    """Return how verdicts on ordered labels depend on the noise of the raters."""
    rows = []
    for noise in (0.4, 0.5, 0.6, 0.7, 0.8, 1.0):
        for labels, per_item in ((30, 3), (30, 5), (30, 10), (100, 5)):
            wrong, attentive, found, spammers, follow = 0, 0, 0, 0, []
            for seed in range(seeds):
                rng = np.random.default_rng([seed, 5, labels, per_item])
                made = rating_crowd(rng, 5, labels, per_item, noise=noise)
                scores = identify(made.annotations, scale="ordinal", copying=False)
                spammer, flagged = made.are(*SPAMMERS), np.isin(scores.verdict, FLAGS)
                wrong, attentive = wrong + flagged[~spammer].sum(), attentive + (~spammer).sum()
                found, spammers = found + flagged[spammer].sum(), spammers + spammer.sum()
                follow += scores.correlation[~spammer].tolist()
            cells = [percent(wrong, attentive), percent(found, spammers)]
            rows.append([noise, labels, per_item, f"{np.nanmedian(follow):.2f}", *cells])
    columns = ["noise", "labels each", "raters an item", "median correlation"]
    columns += ["attentive flagged", "spammers flagged"]
    note = (
        "Perceived noise, relative to the spread of the items; five classes. The tables above use "
        "0.5. With more noise attentive raters and spammers are harder to separate."
    )
    return Table(f"Ordered labels by noise, {seeds} crowds a row", columns, rows, note)


def classes(seeds: int) -> Table:
    """Return who is flagged in crowds of annotators who give classes."""
    kinds, rows = ("good", "biased", "low", "guesser", "constant"), []
    for n_classes, labels in ((2, 7), (2, 30), (2, 100), (4, 10), (4, 30), (4, 100), (8, 30)):
        count, sizes = Counter(), Counter()
        for per_item in (3, 5, 10):
            for seed in range(seeds):
                rng = np.random.default_rng([seed, n_classes, labels, per_item])
                made = class_crowd(rng, n_classes, labels, per_item)
                word = identify(made.annotations, copying=False).verdict
                for kind in kinds:
                    own = word[made.are(kind)]
                    count[kind] += np.isin(own, SURE).sum()
                    count[kind, "likely"] += (own == "likely random").sum()
                    sizes[kind] += len(own)
        cells = [percent(count[kind], sizes[kind]) for kind in kinds]
        cells += [percent(count[kind, "likely"], sizes[kind]) for kind in kinds[:4]]
        rows.append([n_classes, labels, *cells])
    columns = ["classes", "labels each", *kinds, *(f"{kind}, likely" for kind in kinds[:4])]
    note = (
        f"Percent called random, constant or reversed, then likely random; 40 annotators, 3, 5 and "
        f"10 labels an item, {seeds} crowds each. In binary data 100 labels do not separate a "
        "guesser from an honest annotator who is right on 65 %."
    )
    return Table("Verdicts on classes", columns, rows, note)


def guessing(seeds: int) -> Table:
    """Return how correlations are distributed where everybody guesses."""
    rows = []
    for scale in ("nominal", "ordinal"):
        for n_annotators, n_classes, n_items in (
            (3, 4, 30),
            (6, 2, 150),
            (6, 4, 150),
            (10, 7, 300),
        ):
            z, words = [], Counter()
            for seed in range(seeds):
                labels = np.random.default_rng(seed).integers(
                    n_classes, size=(n_items, n_annotators)
                )
                found = identify(Annotations.from_matrix(labels), scale=scale, copying=False)
                z += found.basis.following.z.tolist()
                words.update(found.verdict.tolist())
            cells = [np.mean(z), np.std(z), words["attentive"] / words.total()]
            rows.append([scale, n_annotators, n_classes, n_items, *(f"{one:.2f}" for one in cells)])
    columns = ["scale", "annotators", "classes", "items", "mean z", "deviation of z", "attentive"]
    note = "z: correlation in standard deviations of random answers; ideally 0 and 1."
    return Table(f"Everybody guesses, {seeds} seeds", columns, rows, note)


def changed(seeds: int) -> Table:
    """Return how far correlations move if one rater's scores are shifted or doubled."""
    changes = {
        "shifted by a standard deviation": lambda value: value + value.std(),
        "shifted by 5 of 7 points": lambda value: value + 5,
        "doubled": lambda value: 2 * value,
    }
    rows = []
    for name, change in changes.items():
        moved = []
        for seed in range(seeds):
            given = rating_crowd(np.random.default_rng(seed), 7, 30, 5).annotations
            value = given.label.astype(float)
            before = _numbers(given, value)
            for rater in (8, 20, 39):
                own = given.annotator == rater
                after = _numbers(given, np.where(own, change(value), value))
                moved.append(np.nanmax(np.abs(after - before)))
        rows.append([name, f"{np.median(moved):.3f}", f"{max(moved):.3f}"])
    note = f"Largest change of anybody's correlation; 40 raters, 30 labels each, {seeds} crowds."
    return Table("One rater's scores changed", ["change", "median", "largest"], rows, note)


def _numbers(given: Annotations, value: Any) -> Any:
    names = {"items": given.n_items, "annotators": given.n_annotators}
    return identify(Numbers.from_codes(given.item, given.annotator, value, **names)).correlation


def gold() -> Iterator[list[Any]]:
    """Yield verdicts on classes beside what known items show."""
    total: Counter[str] = Counter()
    for name in SETS:
        annotations, truth = load(name)
        labels = set(annotations.classes.tolist())
        known = gold_codes(annotations, {i: one for i, one in truth.items() if one in labels})
        assert known is not None
        start = process_time()
        found = identify(annotations, copying=False)
        seconds = process_time() - start
        of_known = known[annotations.item] >= 0
        follows = class_correlation(annotations, of_known, known_chunks(annotations, known))
        z = follows.correlation * np.sqrt(follows.size - 1)
        sure = np.isin(found.verdict, SURE) & (follows.n_labels >= 10) & (z > 2.33)
        count = Counter(found.verdict.tolist()) + Counter({"annotators": annotations.n_annotators})
        count += Counter({"contradicted": int(sure.sum())})
        total += count
        yield [name, len(annotations), *_cells(count), f"{seconds:.2f}"]
    yield ["all", None, *_cells(total), None]


def _cells(count: Counter[str]) -> list[int]:
    words = ("random", "constant", "reversed", "likely random", "too few labels", "attentive")
    return [count[word] for word in ("annotators", *words, "contradicted")]


def gold_table() -> Table:
    """Return verdicts on the sets with known truth, which identify is not shown."""
    columns = ["set", "labels", "annotators", "random", "constant", "reversed", "likely random"]
    columns += ["too few labels", "attentive", "surely follow the truth", "CPU seconds"]
    note = (
        "The truth is not used. Of those called random, constant or reversed, some surely follow "
        "the known items: 10 or more, z > 2.33. By chance, one in a hundred would."
    )
    return Table("Verdicts beside the truth", columns, list(gold()), note)


def ordered() -> Iterator[list[Any]]:
    """Yield verdicts on ordered sets, checked against plain rank correlations."""
    for name, scale in ORDERED.items():
        try:
            annotations = read(DATA / name / "answers.csv.gz")
        except (DissensusError, OSError):
            continue
        found = identify(annotations, scale=scale, copying=False)
        score = rating_scores(annotations)
        if scale == "interval":
            score = np.array([float(label) for label in annotations.classes.tolist()])
        value, flagged = score[annotations.label], np.isin(found.verdict, FLAGS)
        lows = [rank_bound(annotations, value, code) for code in np.flatnonzero(flagged)]
        count = found.verdict_counts
        styles = sum(count.get(word, 0) for word in (*STYLES, "noisy"))
        cells = [count.get(word, 0) for word in (*FLAGS, "reversed", "too few labels")]
        cells += [styles, count.get("attentive", 0), sum(low > 0.2 for low in lows)]
        yield [name, scale, len(annotations), annotations.n_annotators, *cells]


def rank_bound(annotations: Annotations | Numbers, value: Any, code: int) -> float:
    """Return the lower end of the rank correlation with the plain mean of the others."""
    item = annotations.item
    own = np.flatnonzero(annotations.annotator == code)
    mine, theirs = [], []
    for position in own:
        first, last = annotations.index[item[position]], annotations.index[item[position] + 1]
        others = value[first:last][annotations.annotator[first:last] != code]
        if len(others):
            mine.append(value[position])
            theirs.append(others.mean())
    if len(set(mine)) < 2 or len(set(theirs)) < 2:
        return -1.0
    z = np.arctanh(np.clip(spearmanr(mine, theirs)[0], -0.9999, 0.9999))
    return float(np.tanh(z - 1.96 / np.sqrt(max(len(mine) - 3, 1))))


def ordered_table() -> Table:
    """Return verdicts on ordered and numeric sets."""
    columns = ["set", "scale", "labels", "annotators", *FLAGS, "reversed", "too few labels"]
    columns += ["a style", "attentive", "flagged above 0.2"]
    note = (
        "The last column counts flagged annotators whose 95 % interval of the rank correlation "
        "with the plain mean of the others lies above 0.2."
    )
    return Table("Verdicts on ordered and numeric sets", columns, list(ordered()), note)
