"""Draw the inputs of the recorded outputs: `python -m tests.golden.draw`. Run once, and kept."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = Path(__file__).parent / "inputs"
CLASSES = ("bear", "deer", "fox")
Rows = list[list[Any]]


def draw() -> None:
    """Write a table of answers and a table of known ones for every kind, texts and features."""
    rng = np.random.default_rng(20261118)
    for kind in (classes, ordinal, numbers, sets, rankings, texts, spans, boxes, points, masks):
        answers, truth = kind(rng)
        _write(f"{kind.__name__}.csv", answers)
        _write(f"{kind.__name__}_truth.csv", truth)
    _write("texts_of_items.csv", described(rng))
    for name, rows in zip(("judged", "judged_truth"), judged(rng), strict=True):
        _write(f"{name}.csv", rows)
    _write("people.csv", [["annotator", "team", "kind"], *_people()])


def who(rng: np.random.Generator, n_annotators: int, most: int) -> list[int]:
    """Return some annotators of an item, in order."""
    return sorted(rng.choice(n_annotators, most, replace=False).tolist())


def classes(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw 90 photos by eleven people and a model: two at random, one always `fox`."""
    answers: Rows = [["item", "annotator", "label", "time"]]
    known: Rows = [["item", "label"]]
    skill = [0.9, 0.85, 0.8, 0.75, 0.7, 0.85, 0.6, 0.9]
    for item in range(90):
        true = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
        known.append([f"photo {item:02}", CLASSES[true]])
        for person in who(rng, 12, 5):
            at = f"2026-03-{1 + item // 6:02}T10:{person:02}:{item % 60:02}"
            if person >= 10:
                label = int(rng.integers(3))
            elif person == 9:
                label = 2
            elif person == 8:
                label = [1, 0, 2][true] if rng.random() < 0.8 else true
            else:
                label = true if rng.random() < skill[person] else int(rng.integers(3))
            answers.append([f"photo {item:02}", _name(person), CLASSES[label], at])
    return answers, known


def ordinal(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw 60 reviews with one to five stars; one person is lenient."""
    answers: Rows = [["item", "annotator", "rating"]]
    known: Rows = [["item", "label"]]
    for item in range(60):
        true = rng.normal(3, 1.1)
        known.append([f"review {item:02}", int(np.clip(round(true), 1, 5))])
        for person in who(rng, 9, 4):
            value = true + rng.normal(0, 0.4 + 0.1 * person) + (person == 3)
            answers.append([f"review {item:02}", _name(person), int(np.clip(round(value), 1, 5))])
    return answers, known


def numbers(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw 50 lengths; one person measures too much, one without care."""
    answers: Rows = [["item", "annotator", "value"]]
    known: Rows = [["item", "label"]]
    for item in range(50):
        true = rng.gamma(4, 10)
        known.append([f"leaf {item:02}", round(true, 2)])
        for person in who(rng, 8, 4):
            spread = 12.0 if person == 7 else 1.5
            value = true + rng.normal(0, spread) + 4 * (person == 2)
            answers.append([f"leaf {item:02}", _name(person), round(value, 2)])
    return answers, known


def sets(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw topics of 45 posts."""
    topics = ["health", "money", "sport", "travel"]
    answers: Rows = [["item", "annotator", "labels"]]
    known: Rows = [["item", "labels"]]
    for item in range(45):
        true = rng.random(4) < 0.4
        known.append([f"post {item:02}", "|".join(np.array(topics)[true])])
        for person in who(rng, 8, 4):
            flip = rng.random(4) < (0.35 if person == 7 else 0.1)
            named = "|".join(np.array(topics)[true ^ flip])
            answers.append([f"post {item:02}", _name(person), named])
    return answers, known


def rankings(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw 160 comparisons of eight systems."""
    worth = np.linspace(-1.5, 1.5, 8)
    answers: Rows = [["item", "annotator", "left", "right", "winner"]]
    for item in range(40):
        left, right = rng.choice(8, 2, replace=False)
        for person in who(rng, 7, 4):
            wins = rng.random() < 1 / (1 + np.exp(worth[right] - worth[left]))
            wins = rng.random() < 0.5 if person == 6 else wins
            winner = "left" if wins else "right"
            row = [f"pair {item:02}", _name(person), f"system {left}", f"system {right}", winner]
            answers.append(row)
    scores = [[f"system {k}", round(float(value), 3)] for k, value in enumerate(worth)]
    return answers, [["thing", "score"], *scores]


def texts(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw transcripts of 25 sentences with words left out and replaced."""
    words = [
        "the",
        "old",
        "river",
        "runs",
        "slowly",
        "past",
        "green",
        "hills",
        "and",
        "small",
        "white",
        "houses",
        "at",
        "dawn",
    ]
    answers: Rows = [["item", "annotator", "text"]]
    known: Rows = [["item", "text"]]
    for item in range(25):
        true = rng.choice(words, 7).tolist()
        known.append([f"clip {item:02}", " ".join(true)])
        for person in who(rng, 7, 4):
            wrong = 0.4 if person == 6 else 0.12
            heard = [w for w in true if rng.random() > wrong / 3]
            heard = [str(rng.choice(words)) if rng.random() < wrong else w for w in heard]
            answers.append([f"clip {item:02}", _name(person), " ".join(heard)])
    return answers, known


def spans(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw names of people and places in 25 texts; some texts have none."""
    answers: Rows = [["item", "annotator", "start", "end", "label"]]
    known: Rows = [["item", "start", "end", "label"]]
    for item in range(25):
        name = f"text {item:02}"
        true = [(20 * k + int(rng.integers(5)), ["PER", "LOC"][k % 2]) for k in range(item % 4)]
        known += [[name, start, start + 6, label] for start, label in true]
        known += [] if true else [[name, None, None, None]]
        for person in who(rng, 7, 4):
            marks: Rows = []
            for start, label in true:
                if rng.random() < (0.5 if person == 6 else 0.9):
                    off = int(rng.random() < 0.15)
                    said = label if rng.random() < 0.9 else "LOC"
                    marks.append([name, _name(person), start + off, start + 6, said])
            if rng.random() < 0.12:
                marks.append([name, _name(person), 90, 94, "PER"])
            answers += marks or [[name, _name(person), None, None, None]]
    return answers, known


def boxes(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw boxes around up to three birds in 22 photos."""
    answers: Rows = [["item", "annotator", "x", "y", "w", "h"]]
    known: Rows = [["item", "x", "y", "w", "h"]]
    for item in range(22):
        name = f"bird {item:02}"
        true = [
            np.array([150 * k + rng.uniform(0, 20), *rng.uniform(40, 90, 3)])
            for k in range(1 + item % 3)
        ]
        known += [[name, *box.round(1)] for box in true]
        for person in who(rng, 7, 4):
            spread = 15 if person == 6 else 3
            marks = [
                [name, _name(person), *(box + rng.normal(0, spread, 4)).clip(1).round(1)]
                for box in true
                if rng.random() < 0.9
            ]
            if rng.random() < 0.1:
                marks.append([name, _name(person), *rng.uniform(500, 560, 2).round(1), 30.0, 30.0])
            answers += marks or [[name, _name(person), None, None, None, None]]
    return answers, known


def points(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw the middles of cells in 22 pictures."""
    answers: Rows = [["item", "annotator", "x", "y"]]
    known: Rows = [["item", "x", "y"]]
    for item in range(22):
        name = f"slide {item:02}"
        true = [rng.uniform(0, 60, 2) + 120 * k for k in range(1 + item % 3)]
        known += [[name, *place.round(1)] for place in true]
        for person in who(rng, 7, 4):
            marks = [
                [name, _name(person), *(place + rng.normal(0, 2, 2)).clip(0).round(1)]
                for place in true
                if rng.random() < (0.5 if person == 6 else 0.9)
            ]
            answers += marks or [[name, _name(person), None, None]]
    return answers, known


def masks(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw discs in pictures of 12 × 10 pixels."""
    answers: Rows = [["item", "annotator", "counts", "height", "width"]]
    known: Rows = [["item", "counts", "height", "width"]]
    y, x = np.mgrid[:12, :10]
    for item in range(12):
        middle = rng.uniform(3, 8, 2)
        away = np.hypot(y - middle[0], x - middle[1])
        known.append([f"scan {item:02}", _runs(away < 3), 12, 10])
        for person in who(rng, 7, 4):
            size = 3 + rng.normal(0, 1.2 if person == 6 else 0.3)
            seen = away + rng.normal(0, 0.3, away.shape) < size
            answers.append([f"scan {item:02}", _name(person), _runs(seen), 12, 10])
    return answers, known


def described(rng: np.random.Generator) -> Rows:
    """Draw a text for every photo, with two features that follow its class, for learning."""
    with (INPUTS / "classes_truth.csv").open(newline="") as file:
        truth = {row["item"]: row["label"] for row in csv.DictReader(file)}
    said = {"bear": "large and brown", "deer": "slender with antlers", "fox": "small and red"}
    rows: Rows = [["item", "text", "where", "x1", "x2"]]
    for item, label in truth.items():
        place = "forest" if rng.random() < 0.5 else "meadow"
        middle = {"bear": (1.5, 0.0), "deer": (-1.0, 1.2), "fox": (-1.0, -1.2)}[label]
        features = (np.array(middle) + rng.normal(0, 0.6, 2)).round(3)
        rows.append([item, f"An animal, {said[label]}, in the {place}.", place, *features])
    return rows


def judged(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw 100 answers that two models judge and, for sixty of them, two of three people."""
    answers: Rows = [["item", "annotator", "label", "kind", "subject"]]
    known: Rows = [["item", "label"]]
    for item in range(100):
        name, subject = f"answer {item:02}", ("maths", "law")[item % 2]
        true = rng.random() < 0.6
        known.append([name, ("fail", "pass")[true]])
        raters = [("model:gpt", 0.85), ("model:mini", 0.7)]
        raters += [(_name(k), 0.92 - 0.04 * k) for k in who(rng, 3, 2)] if item < 60 else []
        for rater, skill in raters:
            label = true if rng.random() < skill else not true
            kind = "model" if rater.startswith("model") else "person"
            answers.append([name, rater, ("fail", "pass")[label], kind, subject])
    return answers, known


def _runs(mask: np.ndarray) -> str:
    flat = mask.T.ravel()
    change = np.flatnonzero(np.diff(flat, prepend=False))
    return " ".join(map(str, np.diff(np.append(change, len(flat)), prepend=0)))


def _name(person: int) -> str:
    return _people()[person][0]


def _people() -> Rows:
    names = ["Ann", "Bob", "Cem", "Dee", "Eve", "Fay", "Gil", "Hal", "Ida", "Jon", "Kim"]
    people: Rows = [[name, "red" if k % 2 else "blue", "person"] for k, name in enumerate(names)]
    return [*people, ["model:small", "blue", "model"]]


def _write(name: str, rows: Rows) -> None:
    with (INPUTS / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    draw()
