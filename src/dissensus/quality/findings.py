"""What `check` can find, by code."""

from __future__ import annotations

from ..answers.annotations import Annotations
from ..formats.spellings import are_free_texts

# All findings; the docs list them from here.
CODES = {
    "incomplete": "rows without item, annotator or label",
    "swallowed-rows": "lines that look like rows are read as one quoted field",
    "repeats": "an annotator gave the same label to an item more than once",
    "contradictions": "an annotator gave different labels to one item",
    "spellings": "classes that look like one, written differently",
    "annotator-spellings": "annotators that look like one, written differently",
    "item-spellings": "items that look like one, written differently",
    "missing-like": "a label that looks like a missing one",
    "free-text": "labels are free text, not classes",
    "one-class": "all labels are the same",
    "unused-classes": "classes that nobody used",
    "rare-classes": "classes with hardly any labels",
    "kinds": "labels of people and of models together",
    "one-kind-classes": "classes that only people or only models use",
    "no-overlap": "no item has two labels",
    "single-labels": "items with one label",
    "unlabelled-items": "items without labels",
    "anonymous": "the annotator of a label is unknown",
    "few-annotators": "fewer than three annotators",
    "two-labels": "no item has three labels",
    "cannot-be-told": "items whose agreement does not show how many labels are right",
    "sparse-confusion": "hardly any labels for the cells of confusion matrices",
    "light-annotators": "most annotators gave too few labels to be judged",
    "dominant-annotator": "one annotator gave most of the labels",
    "groups": "annotators who share no item with the others",
    "always-the-same": "annotators who always give one class, where others do not",
    "copies": "annotators whose labels are equal on all common items",
    "impossible-durations": "impossible durations",
    "fast-annotators": "annotators who are much faster than the others",
    "bursts": "labels faster than anybody can read",
    "same-time": "times of pages instead of labels",
    "unreadable-times": "times that cannot be parsed",
    "gold-elsewhere": "gold about items that nobody labelled",
    "gold-classes": "gold with classes that no label has",
    "gold-alone": "gold that contradicts everybody",
    "gold-moved": "a gold class that is mostly labelled as another",
    "no-empty-answers": "marks, and nobody is known to have marked nothing",
    "always-empty": "annotators who never mark anything, where others do",
    "outliers": "numbers far from the others on the same item",
    "constant-numbers": "annotators who always give the same number",
}


def is_free_text(annotations: Annotations) -> bool:
    """Return whether labels are free text: many, and hardly any of them twice."""
    return are_free_texts(annotations.n_classes, len(annotations))
