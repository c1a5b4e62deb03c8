"""The command lines whose outputs are recorded, by group: every verb over inputs of every kind.

Several commands in one case run one after the other in the same folder, which holds copies of the
inputs and fixtures. Files that a command writes are recorded with it, unless they begin with `.`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .draw import INPUTS

TESTS = INPUTS.parent.parent
FIXTURES = sorted(path.name for path in (TESTS / "fixtures").iterdir())
OF_KINDS = sorted(path.name for path in (TESTS / "fixtures_kinds").iterdir())
ANSWERS = ("classes", "ordinal", "numbers", "sets", "rankings", "texts", "spans", "boxes",
           "points", "masks")  # fmt: skip
KIND = {"classes": "single", "numbers": "numeric"}  # as options name it, where it is another word

METHODS = {
    "classes": (
        *("auto", "majority", "naive-soft", "two-thirds", "wawa", "iwmv", "log-odds", "zbs"),
        *("plantnet", "m-msr", "catd", "crh", "pm", "dawid-skene", "DS", "wds", "dawid-skene-map"),
        *("bcc", "one-coin", "ZC", "diagonal", "fast-dawid-skene", "hybrid-dawid-skene"),
        *("hierarchical", "hier-eb", "two-level", "glad", "GLAD-CG", "mace", "dswc", "dswc-vb"),
        *("cbcc", "minimax-entropy", "crossed-effects", "vi-mf", "lfc", "judge-pool"),
        *("majority[ties=first]", "dawid-skene[smoothing=0.1,max_iter=3]"),
    ),
    "ordinal": ("auto", "majority", "ordinal-distance", "ordinal-split", "ordinal-latent", "mean"),
    "numbers": ("mean", "median", "trimmed-mean", "lfc-n", "gaussian", "catd", "crh", "pm"),
    "sets": ("joint-sets", "per-option", "medoid", "dawid-skene"),
    "rankings": ("bradley-terry", "plackett-luce", "borda", "medoid", "dawid-skene"),
    "texts": ("auto", "rover", "medoid"),
    "spans": ("span-pool", "candidates", "sequence", "objects", "medoid", "dawid-skene"),
    "boxes": ("objects", "medoid", "dawid-skene"),
    "points": ("objects", "medoid", "dawid-skene"),
    "masks": ("weighted-masks", "staple", "medoid", "dawid-skene"),
}
TARGETS = {
    "long": "copy.csv", "nested": "copy.json", "wide": "copy.csv", "crowd-kit": "copy.csv",
    "label-studio": "copy.json", "argilla": "copy.jsonl", "huggingface": "copy.jsonl",
    "huggingface-folder": "published", "peerannot": "folder",
}  # fmt: skip
SIMULATORS = ("hammer-spammer", "independent-confusion", "student-teacher", "discrete-difficulty",
              "glad", "mace", "one-coin", "community", "ordinal", "numeric", "peer-grading",
              "objects", "comparisons", "masks", "sets")  # fmt: skip
VERBS = ("report", "open", "aggregate", "watch", "compare", "judge", "agree", "identify", "train",
         "aggregate-deep", "tendency fit", "tendency predict", "tendency evaluate", "tendency map",
         "recover fit", "recover predict", "recover evaluate", "meta fit", "meta adapt", "next",
         "evaluate", "simulate", "convert", "install", "check", "cache", "methods", "completion",
         "demo", "agginfo", "identificationinfo", "modelinfo")  # fmt: skip
SMALL = ("--epochs", "2", "--batch-size", "32", "--seed", "1")
QUESTIONS = {
    "appen.csv": "mood tags remark", "argilla.json": "mood topics stars",
    "argilla.parquet": "mood topics", "argilla_flat.json": "mood topics",
    "argilla_flat.jsonl": "mood topics", "huggingface.jsonl": "labels hate tags",
    "inspect.eval": "score number clear kind politeness",
    "inspect.json": "score number clear kind politeness",
    "label_studio.csv": "mood stars topics",
    "label_studio.json": "mood topics stars size kind better",
    "label_studio_min.json": "mood topics stars", "langfuse.json": "helpful tone quality",
    "langfuse_page.json": "helpful tone",
    "mlflow.json": "correct length aspects.tone aspects.clear tags",
    "mlflow_traces.jsonl": "correct length aspects.tone aspects.clear tags",
    "mturk.csv": "mood style comment spam", "mturk_json.csv": "mood tags ok sure kind",
    "openai_evals.jsonl": "choice correct", "potato.csv": "mood rate",
    "potato.jsonl": "mood rate", "potato_state.json": "mood rate",
    "prodigy.jsonl": "choice SPAM image", "promptfoo.json": "pass score",
    "questions.csv": "mood topic", "toloka.tsv": "result boxes", "zooniverse.csv": "T0 T1 T10",
    "coco": "boxes masks:cell masks:dirt", "label_studio_images.json": "box dot area paint",
    "prodigy_marks.jsonl": "spans boxes masks",
}  # fmt: skip


class Case(NamedTuple):
    """Commands that run one after the other, and the last of which is recorded with its files."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    deep: bool = False  # needs torch


def case(*words: str, after: tuple[tuple[str, ...], ...] = (), deep: bool = False) -> Case:
    """Return the case of a command, called by its words."""
    return Case(
        " && ".join(" ".join(command) for command in (*after, words)), (*after, words), deep
    )


def groups() -> dict[str, list[Case]]:
    """Return all cases by group; a group is recorded in a file."""
    found = {
        "agree": _plain_and_json("agree") + _agree(),
        "check": _plain_and_json("check") + _check(),
        "compare": _compare(),
        "convert": _convert(),
        "evaluate": _evaluate(),
        "formats": _formats(),
        "identify": _plain_and_json("identify") + _identify(),
        "judge": _judge(),
        "learning": _learning(),
        "next": _next(),
        "others": _others(),
        "simulate": _simulate(),
        "errors": _errors(),
        "help": [case(*verb.split(), "--help") for verb in VERBS],
    }
    found |= {f"aggregate_{answers}": _aggregate(answers) for answers in ANSWERS}
    found |= {f"report_{answers}": _report(answers) for answers in ANSWERS}
    return found


def _plain_and_json(verb: str) -> list[Case]:
    return [case(verb, f"{a}.csv", *more) for a in ANSWERS for more in ((), ("--json",))]


def _aggregate(answers: str) -> list[Case]:
    table = f"{answers}.csv"
    cases = [case("aggregate", table), case("aggregate", table, "-o", "labels.csv", "--json")]
    cases += [case("aggregate", table, "-s", method) for method in METHODS[answers]]
    cases += [case("aggregate", table, "--gold", f"{answers}_truth.csv", "-o", "labels.csv")]
    cases += [case("aggregate", table, "--hard")]
    if answers == "classes":
        cases += [case("aggregate", table, "-s", "hierarchical[pooled=0]")]
        cases += [case("aggregate", table, "-s", m, "--gold", "classes_truth.csv")
                  for m in ("gold-majority", "dawid-skene", "glad", "mace")]  # fmt: skip
        cases += [case("aggregate", "bluebirds.csv", "-s", m)
                  for m in ("kos", "vi-bp", "multidimensional")]  # fmt: skip
    return cases


def _report(answers: str) -> list[Case]:
    table, truth = f"{answers}.csv", f"{answers}_truth.csv"
    cases = [case("report", table, "-o", "page.html"), case("report", table, "--json")]
    cases += [case("report", table, "--truth", truth, "-o", "page.html")]
    if answers == "classes":
        inputs = ("--inputs", "texts_of_items.csv")
        cases += [case("report", table, "--gold", truth, *inputs, "-o", "page.html")]
        cases += [case("report", table, "--annotators", "people.csv", "--json")]
        cases += [case("report", table, "--by", "time"), case("report", table, "classes_truth.csv")]
        rounds = ("report", "before.csv", "after.csv")
        cases += [case(*rounds, "-o", "page.html"), case(*rounds, "--json")]
        cases += [case("report", "judged.csv", "--by", "kind", "-o", "page.html")]
        cases += [case("report", "judged.csv", "-o", "page.html")]
    return cases


def _agree() -> list[Case]:
    cases = [case("agree", "classes.csv", "--per", per) for per in ("item", "annotator", "class")]
    measures = ("cohen", "scott", "conger", "brennan-prediger", "randolph")
    cases += [case("agree", "classes.csv", *(w for m in measures for w in ("-m", m)))]
    cases += [case("agree", "classes.csv", "--pairs", "--min-overlap", "5")]
    cases += [case("agree", "classes.csv", "--pairs", "--min-overlap", "5", "--json")]
    cases += [case("agree", "ordinal.csv", "--weights", "quadratic", "--interval", "bca")]
    return [*cases, case("agree", "numbers.csv", "--per", "annotator", "-o", "agreement.csv")]


def _check() -> list[Case]:
    gold = ("--gold", "classes_truth.csv")
    cases = [case("check", "classes.csv", *gold), case("check", "classes.csv", *gold, "--json")]
    return [*cases, case("check", "numbers.csv", "--strict"), case("check", "messy.csv")]


def _identify() -> list[Case]:
    cases = [case("identify", f"{answers}.csv", "--items") for answers in ANSWERS]
    scores = (
        "spam_score",
        "trace",
        "accuracy",
        "p_random",
        "glad",
        "mace",
        "entropy",
        "krippendorff_alpha",
    )
    cases += [case("identify", "classes.csv", "-s", score) for score in scores]
    drop = ("--drop", "verdict == random", "-o", "kept.csv")
    cases += [
        case("identify", "classes.csv", *drop),
        case("identify", "classes.csv", *drop, "--json"),
    ]
    return [*cases, case("identify", "classes.csv", "--gold", "classes_truth.csv", "--latent")]


def _compare() -> list[Case]:
    cases = []
    for answers in ANSWERS:
        if answers == "numbers":
            cases += [case("compare", "numbers.csv")]
            continue
        methods = METHODS[answers][1:3] if answers != "texts" else ("rover", "medoid")
        chosen = tuple(word for method in methods for word in ("-s", method))
        truth = ("--truth", f"{answers}_truth.csv")
        cases += [case("compare", f"{answers}.csv", *chosen, *more) for more in ((), truth)]
    return [*cases, case("compare", "classes.csv", "-s", "majority", "-s", "dawid-skene", "--json")]


def _evaluate() -> list[Case]:
    cases = []
    for answers in ANSWERS:
        fit = (("aggregate", f"{answers}.csv", "-o", "labels.csv"),)
        truth = ("--truth", f"{answers}_truth.csv")
        kind = () if answers in ("classes", "ordinal", "numbers") else ("--kind", answers)
        sizes = ("--inputs", "masks.csv") if answers == "masks" else ()
        words = ("evaluate", "labels.csv", *truth, *kind, *sizes)
        cases += [case(*words, *more, after=fit) for more in ((), ("--json",))]
    fit = (("aggregate", "classes.csv", "-s", "naive-soft", "-o", "labels.csv"),)
    return [
        *cases,
        case("evaluate", "labels.csv", "--soft", "--annotations", "classes.csv", after=fit),
    ]


def _next() -> list[Case]:
    cases = []
    for answers in ANSWERS:
        words = ("next", f"{answers}.csv", "--budget", "20")
        cases += [case(*words, *more) for more in (("-o", "plan.csv"), ("--json",))]
    policies = ("bald", "uncertainty", "random")
    cases += [case("next", "classes.csv", "--budget", "15", "-s", policy) for policy in policies]
    about = ("--truth", "classes_truth.csv", "--target", "0.9", "--per-item", "2", "--limit", "5")
    return [*cases, case("next", "classes.csv", *about)]


def _convert() -> list[Case]:
    cases = [case("convert", "classes.csv", out, "--to", to) for to, out in TARGETS.items()]
    cases += [
        case("convert", f"{a}.csv", f"copy.{end}") for a in ANSWERS for end in ("jsonl", "tsv")
    ]
    kinds = [name for name in ANSWERS if name not in ("classes", "ordinal", "numbers")]
    for name in kinds:
        cases += [case("convert", f"{name}.csv", "copy.json", "--to", to)
                  for to in ("label-studio", "argilla")]  # fmt: skip
    exports = [name for name in (*FIXTURES, *OF_KINDS) if name not in QUESTIONS]
    cases += [case("convert", name, "copy.csv") for name in exports]
    for name, questions in QUESTIONS.items():
        cases += [case("convert", name, "copy.csv", "--question", one) for one in questions.split()]
    return cases


def _formats() -> list[Case]:
    cases = [case("check", name, "--json") for name in (*FIXTURES, *OF_KINDS)]
    for name, questions in QUESTIONS.items():
        cases += [case("check", name, "--question", one) for one in questions.split()]
    return cases


def _judge() -> list[Case]:
    words = ("judge", "judged.csv", "--repeats", "50")
    truth, by = ("--truth", "judged_truth.csv"), ("--by", "subject", "--json")
    require = ("--require", "replaces(model:gpt)", "--require", "share(pass) >= 0.2")
    more = ((), ("--json",), truth, require, ("-o", "page.html"), by)
    check = ("--check", "checks.csv", "--budget", "10")
    cases = [case(*words, *options) for options in (*more, check)] + [case("judge", "ordinal.csv")]
    people = ("--annotators", "people.csv", "--repeats", "50")
    return [*cases, case("judge", "classes.csv", *people), case("agree", "judged.csv")]


def _simulate() -> list[Case]:
    size = ("--n-annotators", "6", "--n-items", "12", "-K", "3", "--folder", "drawn")
    cases = [case("simulate", *size, "-s", name, "--to", "csv") for name in SIMULATORS]
    loads = ("-wl", "8", "-fb", "4", "--imbalance-votes", "--seed", "7")
    cases += [case("simulate", *size, *loads), case("simulate", *size, "--fast", "--json")]
    return [*cases, case("simulate", *size, "-s", "glad", "-r", "0.4", "--verbose")]


def _others() -> list[Case]:
    watch = ("watch", "classes.csv", "-o", "labels.csv", "--once")
    cases = [case(*watch), case(*watch, "--json"), case(*watch, after=(watch,))]
    cases += [case("demo"), case("methods", "dawid-skene"), case("methods", "--json")]
    cases += [case("agginfo"), case("identificationinfo"), case("modelinfo")]
    cases += [case("completion", "bash"), case("install", "demo", "--folder", "here")]
    folder = (("convert", "classes.csv", "folder"),)
    cases += [case("aggregate", "folder", "-s", "DS", after=folder)]
    cases += [case("identify", "folder", "-s", "spam_score", after=folder)]
    cases += [case("identify", "folder", "-s", "entropy", after=folder)]
    shards = (
        ("convert", "classes.csv", "one.parquet"),
        ("convert", "bluebirds.csv", "two.parquet"),
    )
    out = ("--memory", "1GiB", "-o", "labels.csv")
    return [*cases, case("aggregate", "one.parquet", "two.parquet", "-s", "DS", *out, after=shards)]


def _learning() -> list[Case]:
    inputs = ("--inputs", "features.npz")
    labels = (("aggregate", "classes.csv", "-s", "DS", "-o", "labels.csv"),)
    train = ("train", "features.npz", "--labels", "labels.csv", *SMALL)
    deep = ("aggregate-deep", "classes.csv", *inputs, *SMALL)
    tendency = ("tendency", "fit", "classes.csv", *inputs, "-o", "model")
    recover = ("recover", "fit", "labels.csv", *inputs, "-o", "model")
    predict = ("predict", "model", "features.npz", "-o", "predictions.csv")
    cases = [case(*train, after=labels)]
    ends = ("crowd-layer", "conal", "confusion-layer", "raykar", "two-stage", "union-net")
    cases += [case(*deep, "-s", method) for method in ends]
    for method in ("linear", "own-majority", "consensus", "multi-task", "query[epochs=2]"):
        fit = ((*tendency, "-s", method),)
        cases += [case("tendency", *predict, "--among", "Ann,Kim", after=fit)]
    evaluate = ("tendency", "evaluate", "classes.csv", *inputs, "-s", "linear")
    cases += [case(*evaluate), case(*evaluate, "--json")]
    for method in ("kernel-ridge", "marginal", "seedbert[n=2,epochs=2]"):
        fit = (*labels, (*recover, "-s", method))
        cases += [case("recover", *predict, after=fit)]
    evaluate = ("recover", "evaluate", "classes.csv", *inputs, "-s", "kernel-ridge")
    return [Case(one.name, one.commands, deep=True) for one in (*cases, case(*evaluate))]


def _errors() -> list[Case]:
    lines = (
        *("aggregate nowhere.csv", "aggregate empty.csv", "aggregate header.csv"),
        *("aggregate messy.csv", "aggregate messy.csv --missing drop", "report messy.csv"),
        *("aggregate ragged.csv", "aggregate truncated.json", "aggregate latin.csv"),
        *("aggregate unnamed.csv", "aggregate unnamed.csv --columns item=1,annotator=2,label=3"),
        *("aggregate classes.csv --columns label=colour", "aggregate classes.csv -s dawid"),
        *("aggregate classes.csv -s dawid-skene[smoothing=-1]", "aggregate classes.csv -s kos"),
        *("aggregate classes.csv -s rover", "aggregate spans.csv -s glad[oops=1]"),
        *("aggregate classes.csv --classes bear,deer", "aggregate classes.csv --gold people.csv"),
        *("aggregate classes.csv --question colour", "aggregate questions.csv"),
        *("aggregate classes.csv -o nowhere/labels.csv", "aggregate classes.csv -o labels.doc"),
        *("aggregate twice.csv --duplicates error", "aggregate twice.csv --duplicates first"),
        *("aggregate classes.csv --format zooniverse", "aggregate classes.csv --format odd"),
        *("aggregate numbers.csv -s dawid-skene", "aggregate classes.csv -s mean"),
        *("compare numbers.csv", "next numbers.csv", "judge spans.csv", "judge numbers.csv"),
        *("agree classes.csv -m kappa", "agree spans.csv -m alpha", "agree one.csv"),
        *("identify classes.csv -s spamm", "identify classes.csv --drop colour==red"),
        *("identify spans.csv --drop verdict==random", "identify numbers.csv --items"),
        *("evaluate classes.csv --truth numbers_truth.csv", "evaluate classes.csv"),
        *("evaluate labels.csv --truth nowhere.csv", "report one.csv", "report one.csv --json"),
        *("report classes.csv --gold numbers_truth.csv", "report classes.csv --by colour"),
        *("convert classes.csv copy.doc", "convert classes.csv classes.csv"),
        "convert spans.csv folder",
        *("simulate -s odd", "simulate -r 3", "watch nowhere.csv -o labels.csv --once"),
        *("aggregate classes.csv --kind spans", "aggregate classes.csv --scale interval"),
        *("open nowhere.csv --no-browser", "open spans.csv --no-browser", "install nowhere"),
        *("next classes.csv --budget -1", "next classes.csv --limit odd.csv", "methods odd"),
        "agg x.csv",
        *("judge classes.csv --require share(bear)", "judge classes.csv --models nobody*"),
        *("train nowhere.npz --labels x.csv", "tendency fit classes.csv --inputs nowhere.csv -o m"),
        *("recover fit nowhere.csv -o m", "meta adapt classes.csv --load nowhere"),
    )  # fmt: skip
    return [case(*line.split()) for line in lines]


def write_inputs(folder: Path) -> None:
    """Write what the cases read into a new folder."""
    import gzip
    import shutil

    import numpy as np
    import polars as pl

    folder.mkdir()
    for path in sorted(INPUTS.glob("*.csv")):
        shutil.copy(path, folder)
    for home in ("fixtures", "fixtures_kinds"):
        shutil.copytree(TESTS / home, folder, dirs_exist_ok=True)
    rows = (INPUTS / "classes.csv").read_text().splitlines(keepends=True)
    for half, name in enumerate(("before", "after")):
        (folder / f"{name}.csv").write_text("".join([rows[0], *rows[1 + 225 * half :][:225]]))
    birds = gzip.decompress((TESTS / "data" / "bluebirds" / "answers.csv.gz").read_bytes())
    (folder / "bluebirds.csv").write_bytes(b"".join(birds.splitlines(keepends=True)[:1001]))
    described = pl.read_csv(folder / "texts_of_items.csv")
    features = described.select("x1", "x2").to_numpy().astype(np.float32)
    np.savez(folder / "features.npz", x=features, items=described["item"].to_numpy().astype(str))
    head = "item,annotator,label\n"
    bad: dict[str, bytes] = {
        "empty.csv": b"",
        "header.csv": head.encode(),
        "messy.csv": (
            head + "a,x,cat\na,,dog\nb,x,\nb,y,NaN\nb,y,cat \nb,z,cat\nc,x,dog\n"
        ).encode(),
        "ragged.csv": (head + "a,x,cat\na,y,cat,dog\n").encode(),
        "truncated.json": b'[{"item": "a", "annotator": "x", "label": "cat"}, {"item"',
        "latin.csv": (head + "a,x,café\na,y,café\n").encode("latin-1"),
        "unnamed.csv": b"p,q,r\na,x,cat\nb,x,dog\na,y,cat\n",
        "twice.csv": (head + "a,x,cat\na,x,dog\na,y,dog\nb,x,cat\nb,y,cat\n").encode(),
        "one.csv": (head + "a,x,cat\nb,x,dog\nc,x,cat\n").encode(),
        "odd.csv": b"what,why\n1,2\n",
    }
    for name, content in bad.items():
        (folder / name).write_bytes(content)
