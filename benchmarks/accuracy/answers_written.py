"""Texts, comparisons and sets beside baselines.

Run it with `python benchmarks/run.py accuracy answers_written`.

Word error rates against references; log loss of held-out comparisons over five folds, and of
held-out sets where five answers per item are fitted. Intervals are of a bootstrap over items or
folds. crowd-kit is measured where it is installed; its methods for pairs know no ties.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from dissensus.aggregation import aggregate
from dissensus.aggregation.joint_sets import Profiles, held_out
from dissensus.answers import Rankings, Sets, Texts
from dissensus.answers.texts import edit_distances, tokens_of
from gold_sets import DATA
from pages import Section, Table

_DRAWS = 300


def table(name: str, file: str = "answers") -> pl.DataFrame:
    """Return a table of a shared set."""
    return pl.read_csv(DATA / name / f"{file}.csv.gz", infer_schema=False).fill_null("")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its CPU seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def word_errors(written: list[str], reference: list[str]) -> tuple[float, str]:
    """Return the word error rate in percent, and its interval."""
    tokens, n = tokens_of([*written, *reference]), len(written)
    edits = edit_distances(tokens.word, tokens.starts, np.arange(n), n + np.arange(n))
    words = tokens.sizes[n:]
    rng = np.random.default_rng(0)
    drawn = [rng.integers(n, size=n) for _ in range(_DRAWS)]
    rates = [100 * edits[rows].sum() / words[rows].sum() for rows in drawn]
    low, high = np.quantile(rates, [0.025, 0.975])
    return 100 * edits.sum() / words.sum(), f"{low:.2f} to {high:.2f}"


def _crowd_kit(frame: pl.DataFrame) -> dict[str, str] | None:
    """Return the texts of crowd-kit's ROVER."""
    try:
        from crowdkit.aggregation import ROVER
    except ImportError:
        return None
    rename = {"label": "text"}
    words = ROVER(tokenizer=lambda s: s.lower().split(), detokenizer=" ".join)
    return words.fit_predict(frame.rename(rename).to_pandas()).to_dict()


def text_table(section: Section) -> None:
    rows: list[list[Any]] = []
    for name in ("crowdspeech_dev_clean", "vldb2021_speech", "crowdwsa"):
        frame, truth = table(name), dict(table(name, "truth").iter_rows())
        texts = Texts.from_values(*(frame[c].to_list() for c in ("task", "worker", "label")))
        rng = np.random.default_rng(0)
        chosen = (texts.index[:-1] + rng.integers(texts.labels_per_item)).tolist()
        reference = [truth[item] for item in texts.items.tolist()]
        one = [str(texts.text[row]) for row in chosen]
        rows.append([name, "one annotator at random", *word_errors(one, reference), 0.0])
        for method in ("medoid[rounds=1]", "medoid", "rover[rounds=0,empty=1.0]", "rover", "auto"):
            found, seconds = timed(lambda m=method, t=texts: aggregate(t, m))
            written = found.items["text"].tolist()
            rows.append([name, method, *word_errors(written, reference), round(seconds, 1)])
        if name == "vldb2021_speech":
            theirs, seconds = timed(lambda f=frame: _crowd_kit(f))
            if theirs is not None:
                written = [theirs[item] for item in texts.items.tolist()]
                errors = word_errors(written, reference)
                rows.append([name, "crowd-kit ROVER", *errors, round(seconds, 1)])
    columns = ["set", "method", "word error rate", "95 % interval", "CPU seconds"]
    section.add(Table("Texts", columns, rows))


def comparisons(name: str) -> Rankings:
    """Return a set of comparisons."""
    frame = table(name).join(table(name, "tasks"), on="task", how="left")
    if name == "convargs":
        left, right = frame["arg1"], frame["arg2"]
        words = {"a1": "left", "a2": "right", "equal": "tie"}
    else:
        left, right = (frame["query"] + " " + frame[side] for side in ("doc_a", "doc_b"))
        words = {"a": "left", "b": "right", "s": "tie"}
    columns = (frame["task"], frame["worker"], left, right, frame["label"].replace(words))
    return Rankings.from_comparisons(*(column.to_list() for column in columns))


def comparison_table(section: Section) -> None:
    rows = []
    for name in ("convargs", "music_similarity_prefs"):
        answers = comparisons(name)
        fold = np.random.default_rng(0).integers(5, size=len(answers))
        for method in ("", "bradley-terry[honest=False,side=False]", "bradley-terry[honest=False]",
                       "bradley-terry"):  # fmt: skip
            losses, start = [], time.process_time()
            for number in range(5):
                train, test = answers.keep(fold != number), answers.keep(fold == number)
                losses.append(_loss(train, test, method))
            seconds = (time.process_time() - start) / 5
            error = np.std(losses, ddof=1) / np.sqrt(5)
            interval = f"± {1.96 * error:.3f}"
            label = method or "shares of outcomes"
            rows.append(
                [name, label, round(float(np.mean(losses)), 4), interval, round(seconds, 1)]
            )
    columns = ["set", "method", "log loss", "95 % interval", "CPU seconds a fit"]
    section.add(Table("Comparisons, held out", columns, rows))


def _loss(train: Rankings, test: Rankings, method: str) -> float:
    pairs, who = test.pairs(), test.annotator.astype(int)
    if not method:
        shares = np.bincount(train.pairs().outcome, minlength=3) / len(train)
        return float(-np.log(shares[pairs.outcome]).mean())
    found = aggregate(train, method).params
    d = found["score"][pairs.left] - found["score"][pairs.right] + float(found["side"])
    odds = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full_like(d, found["tie"])], axis=1)
    likely = (odds / odds.sum(axis=1, keepdims=True))[np.arange(len(d)), pairs.outcome]
    if "honest=False" not in method:
        eta = found["honest"][who[pairs.answer]]
        likely = eta * likely + (1 - eta) * found["own"][who[pairs.answer], pairs.outcome]
    return float(-np.log(likely).mean())


def set_table(section: Section) -> None:
    frame = table("relations_sets")
    values = [text.split(";") if text else [] for text in frame["labels"].to_list()]
    answers = Sets.from_values(frame["task"].to_list(), frame["worker"].to_list(), values)
    rows = []
    for seed in (0, 1):
        random = np.random.default_rng(seed).random(len(answers))
        order = np.lexsort((random, answers.item))
        place = np.empty(len(answers), dtype=int)
        place[order] = np.arange(len(answers)) - answers.index[answers.item]
        train, test = answers.keep(place < 5), answers.keep(place >= 5)
        shares = np.zeros((answers.n_items, answers.n_options))
        np.add.at(shares, train.item, train.chosen().toarray())
        shares = (shares + 0.02) / (train.labels_per_item[:, None] + 0.04)
        yes, p = test.chosen().toarray() > 0, shares[test.item]
        plain = -np.log(np.where(yes, p, 1 - p)).sum(axis=1)
        rows.append([seed, "vote shares", round(plain.mean(), 3), _interval(plain), 0.0])
        for method in ("joint-sets[profiles=1,temperature=1]", "joint-sets[temperature=1]",
                       "joint-sets"):  # fmt: skip
            found, seconds = timed(lambda m=method, t=train: aggregate(t, m))
            params = Profiles(*(found.params[name] for name in Profiles._fields))
            loss = -held_out(train, test, params, float(found.params["temperature"]))
            interval = _interval(loss)
            rows.append([seed, method, round(loss.mean(), 3), interval, round(seconds, 1)])
    columns = ["draw", "method", "log loss an answer", "95 % interval", "CPU seconds"]
    section.add(Table("Sets: relations_sets, held out", columns, rows))


def _interval(loss: np.ndarray) -> str:
    return f"± {1.96 * loss.std() / np.sqrt(len(loss)):.3f}"


def main() -> None:
    section = Section("texts, comparisons and sets", "answers")
    text_table(section)
    comparison_table(section)
    set_table(section)
    section.write()


if __name__ == "__main__":
    main()
