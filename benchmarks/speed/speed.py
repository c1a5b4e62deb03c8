"""How long every method takes, beside the peers that have it.

Run it with `python benchmarks/run.py speed speed`.

Methods that work in rounds are timed per round: the same fit with 1 and with 11 rounds, no early
end, and a tenth of the difference, so that start and end cancel. Other methods are timed whole. All
libraries begin with data in their own form, coded and in memory. Every figure is the median of
several processes, in which the libraries take turns.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

from crowds import SIZES, load, stored
from measure import Found, fresh
from peers import LIBRARIES, Answer, Prepared, prepare, version_of

OURS = "dissensus"
_MORE = 10  # rounds between the two fits
_BINARY = {"kos"}  # methods for two classes; the others are folded into these
_WHOLE = {"m-msr"}  # methods whose rounds do not add up to the time of a fit


def time_fit(library: str, method: str, crowd: str, in_rounds: bool, patience: float) -> Found:
    """Return the seconds per round, or per fit, and how right the labels are."""
    annotations, truth = load(crowd, binary=method in _BINARY)
    prepared = (
        ours(method, annotations) if library == OURS else prepare(library, method, annotations)
    )
    first = _seconds(prepared, 1 if in_rounds else None)[0]  # not counted: it warms up
    # A slope over one round is rough; it is for peers that could not finish otherwise.
    more = _MORE if library == OURS or first * (_MORE + 3) < patience else 1
    each: list[float] = []
    spent = first
    while True:
        if in_rounds:
            few, _ = _seconds(prepared, 1)
            many, found = _seconds(prepared, 1 + more)
            each.append((many - few) / more)
            spent += few + many
        else:
            few, found = _seconds(prepared, None)
            each.append(few)
            spent += few
        if spent > 1 or len(each) == 20:
            break
    if in_rounds and library == OURS and len(found.trace) != 1 + more:
        raise RuntimeError(f"ended by itself after {len(found.trace)} rounds")
    label = prepared.read(found).label
    return {
        "seconds": median(each),
        "rounds": 1 + more if in_rounds else None,
        "accuracy": float((label == truth).mean()),
        "answers": len(annotations),
    }


def ours(method: str, annotations: Any) -> Prepared:
    """Return our own method as the peers' are."""
    from dissensus import aggregators

    chosen = aggregators.create(method)

    def fit(rounds: int | None) -> Any:
        if rounds is None:
            return chosen.fit(annotations)
        return replace(chosen, max_iter=rounds, tol=0.0).fit(annotations)

    return Prepared(fit, lambda found: Answer(found.label, found.posterior))


def works_in_rounds(method: str) -> bool:
    """Return whether a method of ours has a setting for the number of iterations."""
    from dissensus import aggregators

    settings = set(aggregators.find(method).__dataclass_fields__)
    return {"max_iter", "tol"} <= settings and method not in _WHOLE


def _seconds(prepared: Prepared, rounds: int | None) -> tuple[float, Any]:
    start = perf_counter()
    found = prepared.fit(rounds)
    return perf_counter() - start, found


def compare(
    method: str, size: str, peers: list[str], repeats: int, limit: float, tired: set[str]
) -> list[list[Any]]:
    """Return a row for every library; those that fail once are not asked again."""
    crowd = stored(size)
    rounds = works_in_rounds(method)
    libraries = {OURS: rounds}
    for library in peers:
        if method in LIBRARIES[library]:
            libraries[library] = rounds and LIBRARIES[library][method].rounds is not None
    found: dict[str, list[Found]] = {library: [] for library in libraries}
    for _ in range(repeats):
        for library, in_rounds in libraries.items():
            failed = any("failed" in one for one in found[library])
            if failed or f"{library} {method}" in tired:
                continue
            if library != OURS and version_of(library) is None:
                found[library].append({"failed": "not installed"})
                continue
            one = fresh(
                "speed:time_fit",
                limit=None if library == OURS else limit,
                library=library,
                method=method,
                crowd=crowd,
                in_rounds=in_rounds,
                patience=limit,
            )
            found[library].append(one)
    tired |= {
        f"{library} {method}"
        for library, each in found.items()
        if any("failed" in one for one in each) and library != OURS
    }
    return [
        _row(method, size, library, libraries[library] == rounds, each, found[OURS])
        for library, each in found.items()
        if each
    ]


def _row(
    method: str, size: str, library: str, comparable: bool, each: list[Found], own: list[Found]
) -> list[Any]:
    failed = next((one["failed"] for one in each if "failed" in one), None)
    answers = SIZES[size].answers
    if failed is not None:
        return [method, size, library, answers, None, failed, None, None, None, None]
    seconds = median(one["seconds"] for one in each)
    ratio = None
    if library != OURS and comparable and not any("failed" in one for one in own):
        ratio = seconds / median(one["seconds"] for one in own)
    return [
        method,
        size,
        library,
        answers,
        min(one["rounds"] for one in each) if each[0]["rounds"] else None,
        seconds,
        ratio,
        seconds / answers * 1e9,
        round(median(one["accuracy"] for one in each), 4),
        max(one["peak"] for one in each),
    ]


COLUMNS = [
    "method",
    "size",
    "library",
    "answers",
    "rounds",
    "s per round, or fit",
    "× ours",
    "ns per answer",
    "accuracy",
    "peak GiB",
]


def main() -> None:
    """Measure and write the section."""
    from dissensus import aggregators
    from pages import Section, Table

    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--sizes", default="S,M", help=f"of {', '.join(list(SIZES)[:5])}")
    summary.add_argument("--methods", help="names, with commas; all if not given")
    summary.add_argument("--libraries", default=",".join(LIBRARIES), help="peers to run")
    summary.add_argument("--repeats", type=int, default=3)
    summary.add_argument("--limit", type=float, default=120, help="seconds that a peer gets")
    given = summary.parse_args()
    section = Section("speed", "performance")
    tired: set[str] = set()
    names = given.methods.split(",") if given.methods else list(aggregators)
    peers = [name for name in given.libraries.split(",") if name]
    rows: list[list[Any]] = []
    for size in given.sizes.split(","):
        for method in names:
            more = compare(method, size, peers, given.repeats, given.limit, tired)
            print(*(f"{row[2]} {row[0]} {row[1]}: {row[5]}" for row in more), sep="\n", flush=True)
            rows += more
    section.add(
        Table(
            "Time of a fit",
            COLUMNS,
            rows,
            "Seconds per round where rounds are given, for the whole fit where not. The data are "
            "coded before; accuracy is after the rounds given, against the simulated truth. "
            f"Peers that need more than {given.limit:g} s are stopped and left out of larger "
            "sizes. Sizes: "
            + "; ".join(
                f"{name} {s.items} items, {s.annotators} annotators, {s.classes} classes"
                for name, s in list(SIZES.items())[:5]
            )
            + ".",
        )
    )
    grown = _growth(rows)
    if grown:
        section.add(Table("Cost against size", ["method", "sizes", "× per answer"], grown))
    section.write()


def _growth(rows: list[list[Any]]) -> list[list[Any]]:
    """Return how the cost per answer grows from the smallest size of 1e5 answers or more."""
    grown = []
    for method in dict.fromkeys(row[0] for row in rows):
        cost = {row[1]: row[7] for row in rows if row[0] == method and row[2] == OURS and row[7]}
        sizes = [size for size in cost if SIZES[size].answers >= 100_000]
        if len(sizes) > 1:
            first, last = sizes[0], sizes[-1]
            grown.append([method, f"{first} → {last}", cost[last] / cost[first]])
    return grown


if __name__ == "__main__":
    main()
