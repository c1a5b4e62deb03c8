"""How fast an export of a labelling tool is read, and in how much memory.

`python benchmarks/run.py speed exports` writes a Label Studio export of 10^6 annotations (2·10^5
tasks, five annotators each, with the fields such exports have), reads it in a new process, and
compares with the time to decode the same file with the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from crowds import OUT
from measure import Found, fresh

_CLASSES = ("positive", "negative", "neutral", "mixed", "not about the product")
_REVIEW = (
    "the battery lasts two days but the screen broke after a week and nobody answered my letters "
    "so I would not buy it again although my sister likes hers and the colour is “très joli”"
)


def write_export(path: str, tasks: int, annotators: int = 5, people: int = 200) -> Found:
    """Write an export as Label Studio does: one line, every field."""
    import numpy as np

    draw = np.random.default_rng(0)
    begin = datetime(2026, 1, 5, 8, tzinfo=UTC)
    draft = Path(path).with_suffix(".part")
    draft.parent.mkdir(exist_ok=True)
    with draft.open("w", encoding="utf-8") as file:
        file.write("[")
        for task in range(tasks):
            truth = int(draw.integers(len(_CLASSES)))
            words = draw.choice(_REVIEW.split(), size=int(draw.integers(10, 50)))
            who = draw.choice(people, size=annotators, replace=False)
            annotations = np.where(
                draw.random(annotators) < 0.7, truth, draw.integers(5, size=annotators)
            )
            stars = draw.integers(1, 6, size=annotators)
            given = [
                _annotation(task, task * annotators + position, *one, begin)
                for position, one in enumerate(
                    zip(who.tolist(), annotations.tolist(), stars.tolist(), strict=True)
                )
            ]
            record = {
                "id": task + 1,
                "annotations": given,
                "file_upload": "reviews-2026.csv",
                "drafts": [],
                "predictions": [],
                "data": {"text": " ".join(words), "source": f"https://example.org/review/{task}"},
                "meta": {},
                "created_at": begin.isoformat().replace("+00:00", "Z"),
                "updated_at": begin.isoformat().replace("+00:00", "Z"),
                "inner_id": task + 1,
                "total_annotations": annotators,
                "cancelled_annotations": 0,
                "total_predictions": 0,
                "comment_count": 0,
                "unresolved_comment_count": 0,
                "last_comment_updated_at": None,
                "project": 7,
                "updated_by": int(who[-1]),
                "comment_authors": [],
            }
            file.write(("," if task else "") + json.dumps(record, ensure_ascii=False))
        file.write("]")
    draft.rename(path)
    return {}


def _annotation(
    task: int, number: int, who: int, annotations: int, stars: int, begin: datetime
) -> dict:
    at = (begin + timedelta(seconds=number * 0.7)).isoformat().replace("+00:00", "Z")
    result = {
        "value": {"choices": [_CLASSES[annotations]]},
        "id": f"r{number:09x}",
        "from_name": "sentiment",
        "to_name": "text",
        "type": "choices",
        "origin": "manual",
    }
    return {
        "id": number,
        "completed_by": {
            "id": who,
            "email": f"annotator-{who:03d}@example.org",
            "first_name": "",
            "last_name": "",
        },
        "result": [result],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": at,
        "updated_at": at,
        "draft_created_at": None,
        "lead_time": round(2 + stars * 1.37 + number % 17, 3),
        "prediction": {},
        "result_count": 1,
        "unique_id": f"5f3a{number:08x}-7c1e-4c0a-9d2b-{number:012x}",
        "import_id": None,
        "last_action": None,
        "bulk_created": False,
        "task": task + 1,
        "project": 7,
        "updated_by": who,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
    }


def read_ours(path: str) -> Found:
    """Read an export into annotations, the recognition of its format included."""
    from dissensus.formats import examine

    start, used = perf_counter(), process_time()
    found = examine(path)
    times = {"seconds": perf_counter() - start, "used": process_time() - used}
    return {**times, "labels": len(found.annotations), "format": found.format}


def read_json(path: str) -> Found:
    """Decode the same file with the standard library, and do nothing with it."""
    start, used = perf_counter(), process_time()
    with Path(path).open(encoding="utf-8") as file:
        tasks = json.load(file)
    times = {"seconds": perf_counter() - start, "used": process_time() - used}
    return {**times, "labels": sum(len(task["annotations"]) for task in tasks)}


def main() -> None:
    """Measure and write the page."""
    from pages import Section, Table

    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--tasks", type=int, default=200_000)
    summary.add_argument("--repeats", type=int, default=3)
    given = summary.parse_args()
    path = OUT / f"label-studio-{given.tasks}.json"
    if not path.exists():
        fresh("exports:write_export", path=str(path), tasks=given.tasks)
    size = path.stat().st_size
    rows = []
    for what, job in (("dissensus", "read_ours"), ("json.load alone", "read_json")):
        runs = [fresh(f"exports:{job}", path=str(path)) for _ in range(given.repeats)]
        failed = [run["failed"] for run in runs if "failed" in run]
        if failed:
            sys.exit(f"{what}: {failed[0]}")
        seconds, used = (median(run[name] for run in runs) for name in ("seconds", "used"))
        peak = max(run["peak"] for run in runs)
        figures = [seconds, used, size / used / 1e6, peak, peak * 2**30 / size]
        rows.append([what, runs[0]["labels"], *figures])
    section = Section("exports", "exports")
    section.add(
        Table(
            f"A Label Studio export of {size / 1e6:.0f} MB",
            ["what", "labels", "seconds", "of processor", "MB/s", "peak GiB", "× the file's size"],
            rows,
            "From a path to annotations with times, durations and texts; each in a new process, "
            "whose whole memory counts. MB/s are per second of processor time, which a busy "
            "machine stretches less than the clock. At least 100 and at most 4× are wanted; this "
            f"machine's load was {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.",
        )
    )
    section.write()


if __name__ == "__main__":
    main()
