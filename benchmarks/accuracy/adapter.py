"""crowd-kit and our adapter, one script with another import.

Run it with `python benchmarks/run.py accuracy adapter`.

The same call, `fit_predict` of the same table with the same defaults, on `crowdkit.aggregation` and
on `dissensus.crowdkit`; how many labels are the same, and why the others are not:

    tie        one of the two finds several labels best together
    untied     how many differ in all if tasks with a tied vote are left out of the table
    end        how many Dawid-Skene says alike in both after 400 rounds: they stop by other rules
    once       how many KOS says alike in both if only a worker's first answer to a task counts
    probas, skills, priors, errors   the largest difference of two cells
    objective  what the model maximises, at our parameters less at theirs: above 0, ours are better;
               those of crowd-kit's Dawid-Skene are one step ahead of the labels it gives

A label should not depend on how tasks and workers are called or in which order rows come. Both are
run again on shuffled rows with new names; `moved` counts the labels that are then different.

crowd-kit's majority vote gives a tie to the label that comes first in the rows, with the pandas
used here, and weighted votes to the first in sorted order; we always to the latter. So agreement
with a vote, the skill of MajorityVote, Wawa and ZeroBasedSkill, differs on tied tasks. In KOS a
worker who answered a task twice hears their own answer back from crowd-kit; with us both are one.
The errors of crowd-kit's Dawid-Skene have no row for a label that a worker never gave; ours are
near zero there. M-MSR starts at random in both, with the first worker of the rows or of the names.

crowd-kit's Wawa and ZeroBasedSkill ask scikit-learn whether they are fitted, which current versions
refuse to say of what is no estimator of theirs. They run here with that question taken out.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gold_sets import load
from kept import KEPT, kept
from measure import fresh
from pages import Section, Table

THEIRS, OURS = "crowdkit.aggregation", "dissensus.crowdkit"
METHODS = (
    *("MajorityVote", "Wawa", "KOS", "DawidSkene", "OneCoinDawidSkene", "ZeroBasedSkill"),
    *("MMSR", "MACE", "GLAD"),
)
SLOW = ("MMSR", "MACE", "GLAD")  # crowd-kit's take minutes on large sets
QUICK = ("bluebirds", "bm", "face4", "one coin")
TABLES = ("probas_", "skills_", "priors_", "errors_")
SETS = (
    *("bluebirds", "bm", "rte", "sp_amt", "zencrowd_in"),  # of two classes
    *("labelme", "music", "face4", "dog", "weather_amt"),
)
SIMULATED = {
    "one coin": ("one-coin", {"n_items": 500, "n_annotators": 40, "n_classes": 2, "feedback": 5}),
    "spammers": ("hammer-spammer", {"n_items": 500, "n_annotators": 30, "n_classes": 2}),
    "confusion": ("independent-confusion", {"n_items": 500, "n_annotators": 30, "n_classes": 4}),
}
VOTES = ("MajorityVote", "Wawa", "ZeroBasedSkill")
ROUNDS = 400  # enough for Dawid-Skene to stand still
TIE = 1e-9


def table_of(name: str) -> tuple[Any, dict[str, str]]:
    """Return a table of task, worker and label, and the truth."""
    import pandas as pd

    from dissensus import simulate

    if name in SIMULATED:
        strategy, options = SIMULATED[name]
        made = simulate(strategy, seed=0, **options)
        annotations, truth = made.annotations, made.truths
    else:
        annotations, truth = load(name)
    columns = {
        "task": annotations.items[annotations.item].tolist(),
        "worker": annotations.annotators[annotations.annotator].tolist(),
        "label": annotations.classes[annotations.label].tolist(),
    }
    return pd.DataFrame(columns).astype("object"), truth


def renamed(table: Any, seed: int = 0) -> tuple[Any, dict[str, str]]:
    """Return the table with other names and another order, and what tasks were called before."""
    random = np.random.default_rng(seed)
    out, before = table.sample(frac=1, random_state=seed).reset_index(drop=True), {}
    for column in ("task", "worker"):
        known = sorted(set(table[column]))
        new = [f"{column}{position:06d}" for position in random.permutation(len(known))]
        out[column] = out[column].map(dict(zip(known, new, strict=True)))
        if column == "task":
            before = dict(zip(new, known, strict=True))
    return out, before


def fitted(library: str, method: str, table: Any, **settings: Any) -> tuple[Any, dict[str, Any]]:
    """Return a fitted model and its labels: the script in which only the import changes."""
    model = getattr(import_module(library), method)(**settings)
    return model, model.fit_predict(table).to_dict()


def study(name: str, method: str) -> dict[str, Any]:
    """Return how two libraries do on one set with one method."""
    import warnings

    warnings.simplefilter("ignore")
    _take_question_out()
    table, truth = table_of(name)
    models, labels, seconds = {}, {}, {}
    for library in (THEIRS, OURS):
        import_module(library)  # not to be timed
        began = time.perf_counter()
        models[library], labels[library] = fitted(library, method, table)
        seconds[library] = time.perf_counter() - began
    apart = [task for task, label in labels[THEIRS].items() if labels[OURS][task] != label]
    found: dict[str, Any] = {
        "tasks": len(labels[THEIRS]),
        "apart": len(apart),
        "tie": sum(any(_tied(models[one], task) for one in models) for task in apart),
        "untied": _apart_untied(method, table) if apart and method in VOTES else None,
        "end": _same_in_the_end(table, apart) if method == "DawidSkene" else None,
        "once": _same_once(table, apart) if method == "KOS" else None,
        "objective": _objectives(method, table, models),
        **{name.rstrip("_"): _largest(name, *models.values()) for name in TABLES},
    }
    other, before = renamed(table)
    for short, library in (("theirs", THEIRS), ("ours", OURS)):
        again = {before[t]: label for t, label in fitted(library, method, other)[1].items()}
        found[f"moved {short}"] = sum(labels[library][t] != label for t, label in again.items())
        right = [labels[library].get(task) == label for task, label in truth.items()]
        known = [task in labels[library] for task in truth]
        found[f"right {short}"] = 100 * sum(right) / sum(known)
        found[f"seconds {short}"] = seconds[library]
    return found


def _largest(name: str, theirs: Any, ours: Any) -> float | None:
    """Return the largest difference of two cells that both have."""
    one, other = getattr(theirs, name, None), getattr(ours, name, None)
    if one is None or other is None or not hasattr(one, "index"):
        return None
    rows = one.index.intersection(other.index)
    apart = one.loc[rows] - other.loc[rows]
    return float(np.nanmax(np.abs(apart.to_numpy(dtype=float))))


def broken() -> dict[str, Any]:
    """Return what crowd-kit's classes say when nothing is taken out."""
    table, _ = table_of("one coin")
    out = {}
    for method in ("Wawa", "ZeroBasedSkill"):
        try:
            fitted(THEIRS, method, table)
            out[method] = "runs"
        except Exception as problem:
            out[method] = f"{type(problem).__name__}: {problem}".split("\n")[0][:90]
    return out


def _take_question_out() -> None:
    for module in ("wawa", "zero_based_skill"):
        found = import_module(f"crowdkit.aggregation.classification.{module}")
        found.check_is_fitted = lambda *_given, **_named: None


def _tied(model: Any, task: str) -> bool:
    """Return whether a model finds several labels best together."""
    posteriors = getattr(model, "probas_", None)
    if posteriors is None:
        return False
    first, second = sorted(posteriors.loc[task], reverse=True)[:2]
    return bool(first - second <= TIE)


def _apart_untied(method: str, table: Any) -> int:
    """Return how many labels differ if tasks with a tied vote are left out."""
    votes = table.groupby(["task", "label"]).size().unstack(fill_value=0)
    leading = votes.eq(votes.max(axis=1), axis=0).sum(axis=1)
    rest = table[table["task"].isin(leading.index[leading == 1])]
    theirs, ours = (fitted(library, method, rest)[1] for library in (THEIRS, OURS))
    return sum(ours[task] != label for task, label in theirs.items())


def _same_in_the_end(table: Any, apart: list[str]) -> int:
    """Return how many labels are the same once both have gone on for many rounds."""
    if not apart:
        return 0
    theirs = fitted(THEIRS, "DawidSkene", table, n_iter=ROUNDS, tol=-np.inf)[1]
    ours = fitted(OURS, "DawidSkene", table, n_iter=ROUNDS, tol=0.0)[1]
    return sum(theirs[task] == ours[task] for task in apart)


def _same_once(table: Any, apart: list[str]) -> int:
    """Return how many labels are the same if nobody answers a task again."""
    once = table.drop_duplicates(["task", "worker"])
    theirs, ours = (fitted(library, "KOS", once)[1] for library in (THEIRS, OURS))
    return sum(theirs[task] == ours[task] for task in apart)


def _objectives(method: str, table: Any, models: dict[str, Any]) -> float | None:
    """Return what the model maximises at our parameters less at theirs."""
    value = {"DawidSkene": _likelihood, "GLAD": _glad_posterior}.get(method)
    return None if value is None else value(table, models[OURS]) - value(table, models[THEIRS])


def _likelihood(table: Any, model: Any) -> float:
    """Return the log likelihood of Dawid-Skene: sum over tasks of log sum over truths."""
    labels = sorted(set(table["label"]))
    errors = np.log(np.maximum(model.errors_[labels], 1e-300)).to_dict("index")
    joint = {task: np.log(np.maximum(model.priors_[labels], 1e-300)) for task in set(table["task"])}
    for task, worker, label in table[["task", "worker", "label"]].itertuples(index=False):
        joint[task] = joint[task] + np.array([errors[worker, label][true] for true in labels])
    return float(sum(np.logaddexp.reduce(np.asarray(value)) for value in joint.values()))


def _glad_posterior(table: Any, model: Any) -> float:
    """Return log likelihood and log prior of GLAD, but for a constant."""
    labels = sorted(set(table["label"]))
    alpha, beta = model.alphas_.to_dict(), model.betas_.to_dict()
    joint = {task: np.full(len(labels), -np.log(len(labels))) for task in beta}
    for task, worker, label in table[["task", "worker", "label"]].itertuples(index=False):
        x = alpha[worker] * np.exp(beta[task])
        wrong = -np.logaddexp(0, x) - np.log(len(labels) - 1)
        right = -np.logaddexp(0, -x)
        joint[task] = joint[task] + np.where(np.array(labels) == label, right, wrong)
    far = sum((one - 1) ** 2 for one in (*alpha.values(), *beta.values()))
    return float(sum(np.logaddexp.reduce(value) for value in joint.values()) - far / 2)


def main() -> None:
    """Run both on everything, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", help="Names with commas; all by default.")
    parser.add_argument("--methods", help="Classes with commas; all by default.")
    parser.add_argument("--limit", type=float, default=900, help="Seconds for one method and set.")
    given = parser.parse_args()
    names = given.sets.split(",") if given.sets else [*SETS, *SIMULATED]
    methods = given.methods.split(",") if given.methods else METHODS
    section = Section("adapter", "adapter")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for method in methods:  # those that take long come last
        for name in names:
            if method in SLOW and name not in QUICK:
                continue
            job = partial(_measured, name, method, given.limit)
            found[name, method] = kept("adapter", f"{name} {method}", job)
            print(name, method, found[name, method], flush=True)
    equal = [[name, *(_share(found.get((name, method))) for method in methods)] for name in names]
    why = [
        [*key, *_cells(one)]
        for key, one in sorted(found.items(), key=lambda pair: methods.index(pair[0][1]))
        if any(one.get(what) for what in ("apart", "moved theirs", "moved ours"))
        and "failed" not in one
    ]
    note = "Labels that are the same, percent of all tasks. KOS chooses between two labels only. "
    note += KEPT
    section.add(Table("The same script with another import", ["set", *methods], equal, note))
    columns = ["set", "class", "tasks", "apart", "tie", "untied", "end", "once", "objective"]
    columns += ["moved theirs", "moved ours", "right theirs", "right ours", "s theirs", "s ours"]
    section.add(Table("Where labels differ, or move", columns, why, __doc__.split("\n\n", 1)[1]))
    far = [
        [method, *(_most(found, method, name.rstrip("_")) for name in TABLES)] for method in methods
    ]
    title = "The largest difference of two cells, and the set where it is"
    section.add(Table(title, ["class", *TABLES], far))
    annotations = fresh("adapter:broken")
    rows = [[method, annotations[method]] for method in annotations if method != "peak"]
    title = "What crowd-kit says with the question left in"
    section.add(Table(title, ["class", "what happens"], rows))
    section.write()


def _measured(name: str, method: str, limit: float) -> dict[str, Any]:
    return fresh("adapter:study", limit=limit, name=name, method=method)


def _most(found: dict[tuple[str, str], dict[str, Any]], method: str, what: str) -> str | None:
    values = {
        name: one[what] for (name, kind), one in found.items() if kind == method and one.get(what)
    }
    if not values:
        return None
    worst = max(values, key=lambda name: values[name])
    return f"{values[worst]:.2g} ({worst})"


def _share(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if "failed" in found:
        return "–" if "binary" in found["failed"] else found["failed"]
    return f"{100 * (1 - found['apart'] / found['tasks']):.2f}"


def _cells(found: dict[str, Any]) -> list[Any]:
    names = ("tasks", "apart", "tie", "untied", "end", "once", "objective")
    counts = [found.get(name) for name in names]
    moved = [found[f"moved {whose}"] for whose in ("theirs", "ours")]
    right = [f"{found[f'right {whose}']:.2f}" for whose in ("theirs", "ours")]
    return [*counts, *moved, *right, *(found[f"seconds {whose}"] for whose in ("theirs", "ours"))]


if __name__ == "__main__":
    main()
