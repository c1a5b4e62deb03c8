"""The table of verbs: what each is for, and where its command comes from.

A verb that reads answers, calls a function of the library and shows its result is one `Line`: its
command follows from the signature, as `verb` says. To turn a command into a line:

1. The verb of the library is a function of answers, best `by_kind`, that returns a `Result`. What
   the command printed stands in the result's `sections`, what `--json` printed in `as_dict`, the
   table of `-o` first in `tables`, and the drawing of `--chart` first in `figures`.
2. Its parameters have the command's words, types with limits, and texts in the docstring; a
   parameter that the table of options has gets flags, type and help from there. If Python has
   another word for a good reason, `names` says which.
3. A parameter that the command line gives as a file or as words is in `VALUES` of `files`, which
   makes a value of it: `truth` and `gold`, `probabilities`, `annotators`, `cost`.
4. The line says the rest: what the bar calls the work, what a default becomes, the options of
   reading that it takes, and its text in help. The file of the old command goes.

    "agree": Line(
        "", "Measure how much annotators agree.", verb="agree", work="resampling",
        words={"measures": "percent, alpha, fleiss, ac1", "weights": "those of the scale"},
        reading=(*ANSWERS, *READING, *KINDS), views=("output", "chart"),
        text="Intervals come from …",
    )

An error of the library names keywords; the command shows them as its flags, and leaves out those
that it does not have. A command that does more is a function in a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Options of reading: of classes and numbers, of answers of every kind, and of annotators.
READING = ("format", "question", "columns", "classes", "missing", "duplicates", "spelling", "scale")
ANSWERS = ("kind", "assigned", "inputs")
KINDS = ("models", "people")


@dataclass(frozen=True)
class Line:
    """A verb of the command line.

    Parameters
    ----------
    home
        The module that has the command; none where it follows from a verb of the library.
    help
        What it does, in a sentence.
    verb
        The public name of that verb in `dissensus`.
    text
        The rest of its help, with an example.
    work
        What the bar says while the verb runs.
    reading
        Options of reading.
    views
        `output` if the main table can be written, `chart` if the result can be drawn.
    words
        Parameter → what its default becomes.
    names
        Parameter → the command's word for it, where that is another one.
    """

    home: str
    help: str
    verb: str = ""
    text: str = ""
    work: str = "working"
    reading: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


VERBS = {
    "demo": Line("demo", "Try dissensus on a data set that comes with it."),
    "report": Line("report", "Write a report about a data set."),
    "open": Line("open", "Open the workbench: settle disagreement in the browser."),
    "aggregate": Line("aggregate", "Estimate the true label of every item."),
    "watch": Line("watch", "Keep labels up to date while annotations arrive."),
    "compare": Line("compare", "Compare methods, with or without known labels."),
    "judge": Line("judge", "Compare models with people as annotators: replacement, rates, panels."),
    "agree": Line("agree", "Measure how much annotators agree."),
    "identify": Line("identify", "Find unreliable annotators, copied labels and hard items."),
    "train": Line("train", "Train a classifier on one label per item, hard or soft."),
    "aggregate-deep": Line("train", "Learn a classifier from the labels of all annotators."),
    "tendency": Line("tendency", "Predict the label of each annotator."),
    "next": Line("next", "Plan what to label next, by which annotator, and when to stop."),
    "recover": Line("recover", "Recover the distribution of labels from one label per item."),
    "meta": Line("meta", "Learn small tasks from few labels of noisy annotators."),
    "evaluate": Line("evaluate", "Score labels or distributions of labels."),
    "simulate": Line("simulate", "Simulate annotations with known truth."),
    "convert": Line("convert", "Write annotations in another format."),
    "install": Line("install", "Prepare a data set as a folder."),
    "check": Line("check", "Report what a file holds and what is wrong with it."),
    "cache": Line("shell", "Show or remove cached features of inputs."),
    "methods": Line("methods", "List the methods and their settings."),
    "completion": Line("shell", "Print a script for completion in bash, zsh or fish."),
    "agginfo": Line("methods", "List the methods of aggregation."),
    "identificationinfo": Line("identify", "List the scores of annotators and items."),
    "modelinfo": Line("train", "List the encoders, networks that turn inputs into vectors."),
}
