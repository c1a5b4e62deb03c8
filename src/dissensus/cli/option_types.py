"""The table of all options: type, flags and help of each.

A command names an option by its parameter, or by its flag without dashes. One that the table does
not have follows from the type and the documentation of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from annotated_types import Ge, Gt, Interval, Le, Lt

from ..peerannot.commands import BARE


class _Scale(click.Choice[str]):
    """A scale of measurement; `numeric` is another word for interval."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return one of the five scales."""
        return super().convert("interval" if value == "numeric" else value, param, ctx)


class _Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers separated by commas."""

    name = "numbers"
    kind: type[int] | type[float] = float

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """Return a tuple of numbers."""
        try:
            return tuple(self.kind(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas", param, ctx)


class _Integers(_Numbers):
    """Integers separated by commas."""

    name = "integers"
    kind = int


class _Size(click.ParamType[int]):
    """A number of bytes: 4GiB, 500 MB, 8G."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)(i?B?)\s*", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is not a size; write 4GiB or 500MB", param, ctx)
        number, unit, ending = match.groups()
        base = 1000 if unit and ending.upper() == "B" else 1024
        return int(float(number) * base ** (" KMGT".index(unit.upper() or " ")))


_COUNT, _WHOLE = click.IntRange(1, 10**12), click.IntRange(min=0)
_POSITIVE, _NOT_NEGATIVE = click.FloatRange(min=0, min_open=True), click.FloatRange(min=0)
_SHARE, _BELOW_ONE = click.FloatRange(0, 1), click.FloatRange(0, 1, max_open=True)
_METHOD = "Method, as name[setting=value,…]; see `dissensus methods`."

# Type, then flags (and the parameter's name, where it is another) and help.
TABLE: tuple[tuple[Any, dict[str, str]], ...] = (
    (
        str,  # what is read
        {
            "--format format_": "Format of PATH, if it is not recognised.",
            "--question": "Question to read, if several were asked.",
            "--columns": "Roles of columns, by name or number: item=…,annotator=…,label=…",
            "--classes": "All classes in order, separated by commas.",
            "--distance": "Distance between classes: linear, circle, or a table with a row and a "
            "column per class.",
            "--kind": "Kind of the answers, if it is not recognised, such as sets or spans.",
            "--assigned": "Table of item and annotator: who looked, also where nothing is marked.",
            "--gold": "Known labels to learn from.",
            "--truth": "Known labels to score with.",
            "--annotations": "Labels of all annotators, to compare with.",
            "--annotators": "Table about annotators, one column per attribute.",
            "--authors": "Table of item and author; authors' labels on own items are left out.",
            "--among": "Annotators to choose from: names separated by commas, or a file of names.",
            "--only": "Items to choose, separated by commas.",
            "--inputs": "What the items are: a table of texts, a folder of images, .npy or .npz.",
            "--features": "Features of the items, beside the inputs: .npy or .npz.",
            "--show": "Columns of --inputs to show with an item, separated by commas.",
            "--column": "Column of texts or image files in a table; array in a .npz.",
            "--label": "Column of classes.",
            "--task": "Column of tasks; an episode stays within one.",
            "--labels": "One label per item to learn from, as `aggregate` writes them.",
            "--hard-labels": "One label per item, for aum.",
            "--probabilities": "Class probabilities of the items from a classifier.",
            "--valid": "Known labels of validation items.",
            "--test": "Known labels of test items.",
            "--by": "Column to group by.",
            "--tendency": "Output of `tendency evaluate --json`, to include.",
            "--waum": "Output of `identify -s waum`, to draw beside entropies.",
            "--load": "Folder of a fitted model.",
            "--answers": "File of annotations in a data set folder.",
            "--metadata": "JSON with the name and the number of classes of a data set folder.",
            "--path-remove": "Text file whose last column names items to remove.",
            "--matrix-file": "Confusion matrices: .npy of (annotator, true, given).",
            "--label-names": "Text file of class names, one per line.",
            "--files-path": "Text file of training images, one per line.",
            "--train-path": "Folder of training images, one folder per class.",
            "--val-path": "Folder of validation images, one folder per class.",
            "--test-path": "Folder of test images, one folder per class.",
            "--test-ground-truth": "Known labels of the test images.",
            "--models": "Patterns for the names of models, separated by commas: 'gpt*,claude*'.",
            "--people": "Patterns for the names of people, separated by commas.",
            "--cluster": "Column of clusters whose items are not independent: documents, prompts.",
            "--reference": "Group whose calibration the others are compared with.",
            "--cost": "Cost of a label: a number, or a table of annotator and cost.",
            "--limit": "Labels per annotator: a number, or a table of annotator and limit.",
            "--label-studio": "Address of a Label Studio to follow, instead of PATH.",
            "--key": "File with the API key; otherwise LABEL_STUDIO_API_KEY has it.",
            "--arbiter": "Reviewer whose choice counts where reviewers differ.",
            "--host": "Address to serve at; any but this machine's own needs a password.",
            "--tls-cert": "Certificate for TLS, a file.",
            "--tls-key": "Key of the certificate, a file.",
            "--license": "License of the data for its card, such as cc-by-4.0.",
        },
    ),
    (
        str,  # what is written
        {
            "--output -o": "Output file or folder; `-` is standard output.",
            "--output-name -o": "Name of the output files.",
            "--folder": "Output folder.",
            "--to": "Output format, if the ending of the file does not say it.",
            "--chart": "Also draw a figure: .svg, .png or .html.",
            "--reliability": "Also draw a reliability diagram: .svg, .png or .html.",
            "--save": "Folder for the whole result, to load in Python.",
            "--confusion": "Output file for the confusion matrices of annotators.",
            "--plan": "Output file for the labels to request.",
            "--check": "Output file for the items that people should check.",
            "--checkpoints": "Folder for checkpoints; an interrupted run resumes from it.",
            "--state": "File or folder for the state between runs.",
            "--work": "Folder for unfinished work.",
            "--title": "Title of the report.",
            "--pseudonyms": "Key file; annotators get pseudonyms, which it keeps.",
        },
    ),
    (
        str,  # methods
        {
            "--strategy -s": _METHOD,
            "--score -s": "Score, see `dissensus identificationinfo`.",
            "--consensus": "Method whose consensus annotators are compared with.",
            "--encoder": "Encoder of the inputs, as name[setting=value,…]; see "
            "`dissensus modelinfo`.",
            "--objective": "Training of the embedding: clean, classes, or an adapter.",
            "--address": "Address of a Dask scheduler.",
        },
    ),
    (
        bool,
        {
            "--json as_json": "Print JSON.",
            "--sound": "Use videos with their sound.",
            "--force": "Replace inputs, and files that this command did not write.",
            "--hard": "Write or learn from class labels instead of probabilities.",
            "--items": "Show the table of items instead of that of annotators.",
            "--latent/--no-latent": "Also fit GLAD and MACE.",
            "--copying/--no-copying": "Look for pairs of annotators who agree too much.",
            "--use-pleiss": "Margin over the best of the other classes.",
            "--pairs": "Compare pairs of annotators, and look for camps.",
            "--multiple": "A label names several options, as in a|b.",
            "--soft": "Score class probabilities against the votes of annotators.",
            "--dic": "Score predictions of single annotators.",
            "--empty": "Remove everything.",
            "--strict": "Exit with code 1 if there is a serious finding.",
            "--no-browser": "Do not open the browser.",
            "--once": "Process what is there and exit.",
            "--recover": "Put what can be read of a damaged state into a new one.",
            "--resume": "Resume interrupted work.",
            "--votes": "Also write the vote share of the ensemble members: v:<class>.",
            "--raw": "Also write the weights of every layer and head.",
            "--rotations": "Rotated images form new classes.",
            "--fast": "Vectorised sampling: a thousand times faster, other draws.",
            "--imbalance-votes imbalance": "Vary the number of labels per item.",
            "--verbose": "Print all options.",
            "--no-task": "Write answers.json alone: no images, no metadata.",
            "--trust-code": "Run the script of a data set. It can do whatever you can do.",
            "--pretrained": "Start from published weights and fine-tune them.",
            "--freeze/--tune": "Keep the weights of the encoder, or fine-tune them.",
            "--data-augmentation augmented": "Augment images at random while training.",
        },
    ),
    (
        _COUNT,
        {
            "--n-classes -K": "Number of classes, named 0, 1, ….",
            "--n-items": "Number of items.",
            "--folds": "Number of folds.",
            "--reviews": "Number of reviewers who decide on every item.",
            "--top": "Number of rows or items to show.",
            "--threads": "Number of threads.",
            "--min-overlap": "Common items a pair of annotators needs.",
            "--min-labels": "Labels an annotator needs to be averaged over.",
            "--per-item": "Most labels per item.",
            "--batch": "Most labels to request at once.",
            "--workerload -wl": "Most items per annotator.",
            "--feedback -fb": "Most labels per item.",
            "--vote-count": "Number of annotators behind every label.",
            "--members": "Number of ensemble members.",
            "--frames": "Number of frames sampled from a video, or of parts of a sound.",
            "--maxiter-dawid-skene rounds": "Iterations of Dawid and Skene.",
            "--img-size": "Side of the images, in pixels.",
            "--epochs": "Most training epochs.",
            "--episodes": "Episodes per epoch.",
            "--tuning": "Batches that the settings of an adapter are tuned on.",
            "--batch-size": "Items per step.",
            "--devices": "Number of processes; several need torchrun.",
        },
    ),
    (
        _WHOLE,
        {
            "--seed": "Random seed.",
            "--repeats": "Number of bootstrap samples, or of random splits.",
            "--draws": "Number of Monte Carlo samples of future labels.",
            "--communities": "Number of communities of annotators.",
            "--project": "Number of the project.",
            "--topk": "Margin over the class of this rank.",
            "--hidden": "Width of the hidden layer.",
            "--patience": "Epochs without improvement before training stops; 0 never stops.",
        },
    ),
    (
        _SHARE,
        {
            "--flippers": "Share of accurate annotators whose errors are always the same.",
            "--class-spammers": "Share of guessing annotators who prefer some labels.",
            "--dropout": "Dropout after the hidden layer.",
            "--input-dropout": "Dropout of the encoded inputs.",
            "--momentum": "Momentum of sgd.",
            "--epsilon": "Tolerance of the test: 0.2 for experts, 0.15 trained, 0.1 for a crowd.",
        },
    ),
    (
        _BELOW_ONE,
        {
            "--alpha": "Share of items that are pruned.",
            "--held-out": "Share of items held out.",
            "--confidence": "Confidence level of intervals.",
        },
    ),
    (
        _NOT_NEGATIVE,
        {
            "--budget": "Labels to spend, or their cost.",
            "--min-gain": "Stop below this gain per cost, in nats.",
            "--uneven": "Class imbalance of tasks to come: 0 for none, 1 for any.",
            "--labels-per-item": "Mean number of labels per item.",
            "--refit": "Refit when the annotations have grown by this share.",
            "--every": "Seconds between two looks.",
            "--decay": "Weight decay.",
        },
    ),
    (
        _POSITIVE,
        {
            "--lr": "Learning rate.",
            "--lr-decay": "Factor of the learning rate at a milestone.",
            "--time-limit": "Seconds after which learning stops, with the best found.",
        },
    ),
    (
        float,  # limits are those of the method
        {
            "--target": "Accuracy to reach, as 0.95.",
            "--ratio -r": "Share of spammers, students or good annotators.",
            "--ratio-diff": "Easy items per hard item, of discrete-difficulty.",
            "--random": "Share of items nobody can know, of discrete-difficulty.",
            "--copy-prob": "Probability of copying the teacher, of student-teacher.",
        },
    ),
    (
        _Integers(),
        {
            "--n-annotators": "Number of annotators.",
            "--ways": "Classes per episode.",
            "--shots": "Items per class.",
        },
    ),
    (
        _Numbers(),
        {
            "--spammers": "Lowest and highest share of guessing annotators.",
            "--accuracy": "Lowest and highest accuracy of the others.",
        },
    ),
    (
        _Scale(["auto", "nominal", "ordinal", "interval", "ratio"]),
        {"--scale": "Scale of the labels; `numeric` is interval."},
    ),
    (
        click.IntRange(0, 65535),
        {
            "--listen": "Port of this machine for webhooks; 0 is any.",
            "--port": "Port of this machine for the browser; 0 is any.",
        },
    ),
    (_Size(), {"--memory": "Memory limit, as 4GiB."}),
)
CHOICES = {
    "--missing": ("error drop", "Rows without item, annotator or label."),
    "--duplicates": (
        "count first last error",
        "Repeated labels of an annotator on an item: all count, or one does.",
    ),
    "--spelling": (
        "keep join",
        "Names that look like one, as 'cat' and 'cat ': counted apart, or joined.",
    ),
    "--per": ("item annotator class", "Also break it down."),
    "--favour": (
        "accuracy recall",
        "Marks to keep: the probable ones, or the most for the best F1.",
    ),
    "--weights": ("identity linear quadratic ordinal ratio", "Weights of disagreements."),
    "--interval": ("percentile bca", "Kind of bootstrap interval."),
    "--sampled": ("random by-judge by-label", "How the items that people labelled were chosen."),
    "--engine": ("local dask", "Where to compute: on this machine, or on a Dask cluster."),
    "--head": ("none weights linear", "What is learned on top of a frozen encoder."),
    "--over": (
        "mean last penultimate rollout",
        "Mean over layers, the last or last but one, or attention rollout.",
    ),
    "--optimizer -optim": ("adam adamw radam sgd", "Optimizer."),
    "--scheduler": ("constant multistep cosine warmup-cosine", "Learning rate schedule."),
    "--precision": ("32 bf16", "Floating point precision."),
    "--answers-format": (
        "0 1 2",
        "Layout: 0 matrix, 1 {item: {annotator: label}}, 2 by annotator.",
    ),
    "--test-ground-truth-format": ("-1 0 1 2", "As --answers-format; -1 for the same."),
}
REPEATABLE = {  # options that may be given several times
    "--strategy -s strategies": (str, _METHOD),
    "--measure -m measures": (str, "Measure of agreement; repeat for several."),
    "--require requirements": (
        str,
        "Exit with code 1 unless it holds: 'replaces(NAME)', 'share(CLASS) >= 0.8'; repeatable.",
    ),
    "--drop rules": (str, "Drop labels: 'verdict == random', 'item.cause == hard'; repeatable."),
    "--archive archives": (
        str,
        "Local file of a public data set, or a folder of them, instead of fetching; repeatable.",
    ),
    "--source sources": (str, "Images by class, .npz of x and y, or table of texts; repeatable."),
    "--milestones -m milestones": (
        _COUNT,
        "Epochs after which the learning rate falls; repeatable.",
    ),
}


_SIDES = {Ge: ("min", "ge"), Gt: ("min", "gt"), Le: ("max", "le"), Lt: ("max", "lt")}


Declared = tuple[list[str], dict[str, Any]]  # flags and the parameter's name, settings of click


def _table() -> dict[str, Declared]:
    """Return every option by the name of its parameter, and by its flag."""
    rows: dict[str, dict[str, Any]] = {}
    for kind, texts in TABLE:
        type_ = {"is_flag": True} if kind is bool else {"type": kind}
        rows |= {flags: type_ | {"help": text} for flags, text in texts.items()}
    for flags, (words, text) in CHOICES.items():
        choice = click.Choice(words.split(), case_sensitive=False)
        rows[flags] = {"type": choice, "help": text}
    by_flag = {flags.lstrip("-").replace("/", " ").split()[0]: flags for flags in rows}
    by_name = {flags.split()[-1]: flags for flags in (*rows, *REPEATABLE)}
    for flags, (kind, text) in REPEATABLE.items():
        rows[flags] = {"type": kind, "help": text, "multiple": True}
    return {
        name.replace("-", "_"): (flags.split(), rows[flags])
        for name, flags in (by_flag | by_name).items()
        if name[0] != "-"
    }


DECLARED = _table()
for _name, _value in BARE.items():
    DECLARED[_name][1].update(is_flag=False, flag_value=_value)
# Python's word, and that of peerannot's `identify`.
SPELLINGS = dict.fromkeys(("strategy", "strategies", "score"), ("--method",))
WRITTEN = {name for name, (flags, _) in DECLARED.items() if flags[0] in TABLE[1][1]} | {"output"}
WRITTEN -= {"to", "title", "output_name", "checkpoints", "state", "work"}  # not a file of its own


def declared_by(name: str, kind: Any, text: str = "") -> Declared:
    """Return flags and settings of an option from the type and text of its parameter.

    >>> flags, settings = declared_by("per_class", bool, "Scores of every class.")
    >>> flags, settings["is_flag"]
    (['--per-class', 'per_class'], True)
    >>> declared_by("folds", Annotated[int, Ge(2)] | None)[1]["type"]
    <IntRange x>=2>
    """
    flags = [f"--{name.rstrip('_').replace('_', '-')}", name]
    settings: dict[str, Any] = {"help": text}
    if get_origin(kind) in (Union, UnionType):
        kinds = [each for each in get_args(kind) if each is not NoneType]
        kind = next((each for each in kinds if get_args(each)), kinds[0])
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is bool:
        return flags, settings | {"is_flag": True}
    if isinstance(origin, type) and issubclass(origin, (tuple, Sequence)):
        _, inner = declared_by(name, arguments[0])
        return flags, settings | {"type": inner["type"], "multiple": True}
    if origin is Literal:
        return flags, settings | {"type": click.Choice(list(arguments), case_sensitive=False)}
    if origin is Annotated:
        return flags, settings | {"type": _range(*arguments)}
    return flags, settings | {"type": kind if kind in (int, float) else str}


def _range(kind: type, *limits: Any) -> Any:
    """Return the numbers of a type within the limits of an annotation."""
    bounds: dict[str, Any] = {}
    for limit in limits:
        for bound in limit if isinstance(limit, Interval) else (limit,):
            side, name = _SIDES[type(bound)]
            bounds |= {side: getattr(bound, name), f"{side}_open": isinstance(bound, (Gt, Lt))}
    return (click.IntRange if kind is int else click.FloatRange)(**bounds)
