"""One function for every pattern of `claims.py`: it computes the claim again and compares.

A function yields pairs: whether the claim is true (`None`: only measured), and what was found.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import recomputed
from dissensus import read
from dissensus.identification import camps as find_camps

Checks = Iterator[tuple[bool | None, str]]
Groups = Sequence[Any]

_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_VERDICTS = {  # the last words of a sentence about people, and the verdict
    "at random": "random",
    "may answer at random": "likely random",
    "the same label": "constant",
    "the same answer": "constant",
    "the others": "reversed",
    "the known labels": "reversed",
    "lower than the others": "harsh",
    "higher than the others": "lenient",
    "widely": "noisy",
}
FAULTS = ("random", "constant", "reversed", "likely random")
FLAGGED = ("random", "constant", "likely random")
CLOSE = 0.2  # correlation above which nobody may be called random
SURE = 2.33  # standard deviations above which somebody surely follows known labels
ENOUGH = 10  # labels for a verdict
MISSED = "outside the 90% interval"
PLANTED = 10  # crowds with planted camps


class Verdict(NamedTuple):
    """A claim, and whether it is true."""

    set: str
    claim: str
    sentence: str
    ok: bool | None
    detail: str

    @classmethod
    def of(cls, case: Case, claim: str, sentence: str, ok: Any, detail: str) -> Verdict:
        """Return the verdict on a claim of a report."""
        return cls(case.name, claim, sentence, None if ok is None else bool(ok), detail)

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "measured" if self.ok is None else str(bool(self.ok)).lower()


@dataclass(frozen=True)
class Case:
    """A report, and the rows that it is about."""

    name: str
    rows: pd.DataFrame  # item, annotator, label; value if ordered
    report: Any
    page: Any
    folder: Path
    given: dict[str, str]  # the truth that the report got
    hidden: dict[str, str]  # the truth
    people: pd.DataFrame | None = None
    ordered: bool = False
    method: str = "auto"

    @cached_property
    def labels(self) -> dict[str, str]:
        """The inferred labels, from the download."""
        columns = self.page.downloads["labels"].columns
        return dict(zip(map(str, columns["item"]), map(str, columns["label"]), strict=True))

    @cached_property
    def certainty(self) -> dict[str, float]:
        """The certainty of every label."""
        items = self.report.annotations.items.tolist()
        return dict(zip(items, self.report.certainty.tolist(), strict=True))

    @cached_property
    def people_of(self) -> dict[str, list[str]]:
        """Annotators by verdict, from the table."""
        columns = self.page.downloads["annotators"].columns
        found: dict[str, list[str]] = {}
        for name, verdict in zip(columns["annotator"], columns["verdict"], strict=True):
            found.setdefault(str(verdict), []).append(str(name))
        return found

    @cached_property
    def stated(self) -> pd.DataFrame:
        """The table of annotators, from the download."""
        columns = self.page.downloads["annotators"].columns
        return pd.DataFrame({k: list(v) for k, v in columns.items()}).set_index("annotator")

    @cached_property
    def wrong(self) -> dict[str, bool]:
        """Whether labels are wrong, where the truth is known; by more than a step if ordered."""
        if self.report.annotations.scale != "ordinal":
            pairs = self.labels.items()
            return {i: self.hidden[i] != label for i, label in pairs if i in self.hidden}
        step = {name: k for k, name in enumerate(self.report.annotations.classes.tolist())}
        return {
            item: abs(step[self.hidden[item]] - step[label]) > 1
            for item, label in self.labels.items()
            if item in self.hidden
        }

    def holds(self, inside: bool, about: str) -> tuple[bool | None, str]:
        """Return that a 90 % interval holds the truth; a miss is only measured, see `claims.py`."""
        return (True, f"truth: {about}") if inside else (None, f"{MISSED}: {about}")

    @property
    def steps(self) -> bool:
        """Whether labels are right within one step."""
        return getattr(self.report.annotations, "scale", "") == "ordinal"

    def follows(self, name: str, known: dict[str, str]) -> recomputed.Follows:
        """Return how far an annotator follows known labels, elsewhere the others."""
        return recomputed.follows(self.rows, known, self.ordered, name)


def near(stated: float, found: float, digits: int) -> bool:
    """Return whether a stated number is the found one, rounded."""
    return abs(stated - found) <= 0.5000001 * 10**-digits


def close(what: str, stated: str, found: float) -> tuple[bool, str]:
    """Return whether a text states a number, with its digits."""
    digits = len(stated.partition(".")[2])
    return near(float(stated), found, digits), f"{what} {found:.4g}, stated {stated}"


def share(text: str) -> tuple[float, float]:
    """Return the shares that a percentage may stand for."""
    value = float(text.split()[-1].rstrip("%")) / 100
    if text.startswith("above"):
        return value, 1.0
    if text.startswith("below"):
        return 0.0, value
    reach = 0.5000001 * 10 ** -(2 + len(text.rstrip("%").partition(".")[2]))
    return value - reach, value + reach


def is_share(what: str, stated: str, found: float) -> tuple[bool, str]:
    """Return whether a percentage states a share."""
    low, high = share(stated)
    return low <= found <= high, f"{what} {found:.4f}, stated {stated}"


def count(text: str) -> int:
    """Return a number written as digits or a word."""
    word = text.lower().replace("\u202f", "")
    return _NUMBERS.index(word) if word in _NUMBERS else int(word)


def same(what: str, stated: str | int, found: int) -> tuple[bool, str]:
    """Return whether a count is stated."""
    return count(str(stated)) == found, f"{what} {found}, stated {stated}"


# Sentences


def volume(case: Case, groups: Groups) -> Checks:
    rows = case.rows
    yield same("annotators", groups[0], rows["annotator"].nunique())
    yield same("labels", groups[1], len(rows))
    yield same("items", groups[2], rows["item"].nunique())
    yield close("labels per item", groups[3], len(rows) / rows["item"].nunique())
    if groups[4]:
        yield close("least", groups[4], rows["value"].min())
        yield close("most", groups[5], rows["value"].max())


def known_accuracy(case: Case, groups: Groups) -> Checks:
    right = [case.given[item] == label for item, label in case.labels.items() if item in case.given]
    yield same("known items", groups[0], len(right))
    yield is_share("share of right labels", groups[1], float(np.mean(right)))
    exact = stats.binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    stated = [np.mean(share(one)) for one in groups[2:]]
    apart = max(abs(stated[0] - exact.low), abs(stated[1] - exact.high))
    yield apart < 0.02, f"Wilson's interval {exact.low:.3f} to {exact.high:.3f}"


def expected_accuracy(case: Case, groups: Groups) -> Checks:
    certain = np.mean(list(case.certainty.values()))
    low, high = share(groups[2])[0], share(groups[3])[1]
    if not case.report.errors.n_checked:
        yield is_share("mean certainty", groups[0], float(certain))
    yield low <= certain <= high, f"mean certainty {certain:.3f} in the interval"
    if case.hidden:
        right = 1 - float(np.mean(list(case.wrong.values())))
        yield case.holds(low <= right <= high, f"{right:.3f} right, {groups[2]} to {groups[3]}")


def odd_items(case: Case, groups: Groups) -> Checks:
    yield same("split votes", groups[0] or 0, recomputed.split_votes(case.rows))
    nobody = recomputed.nobody_gave(case.rows, case.labels)
    yield same("labels that nobody gave", groups[1] or 0, nobody)


def agreement(case: Case, groups: Groups) -> Checks:
    level = getattr(case.report.annotations, "scale", "interval")
    value, low, high = recomputed.alpha(case.rows, level)
    yield close("alpha", groups[1], value)
    yield recomputed.word(value) == groups[0], f"alpha {value:.3f} is {recomputed.word(value)}"
    reach = max(0.25 * (high - low), 0.011)
    apart = max(abs(float(groups[2]) - low), abs(float(groups[3]) - high))
    yield apart <= reach, f"resampled items: {low:.3f} to {high:.3f}"


def people(case: Case, groups: Groups) -> Checks:
    words = groups[1]
    verdict = max((end for end in _VERDICTS if words.endswith(end)), key=len)
    names = case.people_of.get(_VERDICTS[verdict], [])
    shown, more = _names(groups[2])
    yield same(f"{_VERDICTS[verdict]} in the table", groups[0], len(names))
    yield len(shown) + more == len(names), f"{len(shown)} names and {more} more"
    yield set(shown) <= set(names), f"named {', '.join(shown)}"
    yield from _CHECKED[_VERDICTS[verdict]](case, names)


def _names(text: str) -> tuple[list[str], int]:
    """Return the names of a list in words, and how many more there are."""
    listed = text.replace("annotator ", "").replace(" and ", ", ").split(", ")
    if listed[-1].endswith(" more"):
        return listed[:-1], int(listed[-1].split()[0])
    return listed, 0


def _ignore_items(case: Case, names: list[str]) -> Checks:
    """Nobody who is called random follows the others, or known labels."""
    for name in names:
        found = case.follows(name, case.given)
        about = f"{name}: r {found.correlation:.2f} ({found.low:.2f} to {found.high:.2f})"
        yield not found.low > CLOSE, f"{about} over {found.n}"
        yield from _follows_truth(case, name)


def _follows_truth(case: Case, name: str) -> Checks:
    mine = set(case.rows.loc[case.rows["annotator"] == name, "item"])
    known = {item: label for item, label in case.hidden.items() if item in mine}
    if len(known) < ENOUGH:
        return
    rows = case.rows[case.rows["item"].isin(known)]
    found = recomputed.follows(rows, known, case.ordered, name)
    if case.given:
        yield not found.z > SURE, f"{name} follows known labels with z {found.z:.1f}"
    elif found.z > SURE:
        yield None, f"{name} follows the truth, which was hidden, with z {found.z:.1f}"


def _always_same(case: Case, names: list[str]) -> Checks:
    for name in names:
        given = case.rows.loc[case.rows["annotator"] == name, "label"]
        most = given.value_counts(normalize=True).iloc[0]
        yield most >= 0.95, f"{name} gives one label {most:.1%} of the time"
        yield from _follows_truth(case, name)


def _contradict(case: Case, names: list[str]) -> Checks:
    by_truth = any("contradict" in one and "known" in one for one in case.report.sentences)
    for name in names:
        found = case.follows(name, case.given if by_truth else {})
        yield found.z < -2.5, f"{name}: r {found.correlation:.2f}, z {found.z:.1f}"


def _lower(case: Case, names: list[str]) -> Checks:
    for name in names:
        mean, low, high = recomputed.bias(case.rows, name)
        yield high < 0, f"{name}: {mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _higher(case: Case, names: list[str]) -> Checks:
    for name in names:
        mean, low, high = recomputed.bias(case.rows, name)
        yield low > 0, f"{name}: {mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _scatter(case: Case, names: list[str]) -> Checks:
    found = recomputed.scatter(case.rows)
    usual = float(np.median([value for value, _ in found.values()]))
    for name in names:
        value, low = found[name]
        yield (
            value > usual,
            f"{name} scatters by {value:.2f} (at least {low:.2f}), usual {usual:.2f}",
        )


_CHECKED = {
    **dict.fromkeys(("random", "likely random"), _ignore_items),
    "constant": _always_same,
    "reversed": _contradict,
    "harsh": _lower,
    "lenient": _higher,
    "noisy": _scatter,
}


def nobody_random(case: Case, groups: Groups) -> Checks:
    yield not any(case.people_of.get(one) for one in FAULTS), "no such verdict in the table"
    few = case.people_of.get("too few labels", [])
    yield same("too few labels", groups[0] or 0, len(few))
    for name in few:
        found = case.follows(name, case.given)
        unsure = found.n < ENOUGH or not found.z > SURE
        yield unsure, f"{name}: {found.n} labels, z {found.z:.1f}"
    for name in case.people_of.get("attentive", []):
        found = case.follows(name, case.given)
        if found.n >= ENOUGH:
            yield not found.high < CLOSE, f"{name}: r at most {found.high:.2f}"


def camps(case: Case, groups: Groups) -> Checks:
    members = case.report.camps.members
    for names, text in zip(members, groups[:2], strict=True):
        listed = text.split(", ")
        counted = text == f"{len(names)} annotators"
        yield counted or listed == names, f"members {', '.join(names[:6])}"
    group = {name: k for k, names in enumerate(members) for name in names}
    yield from _pairs(case, group, groups[2:4], 0.05)
    if groups[4]:
        shares = recomputed.label_shares(case.rows, *members)
        apart = (shares.iloc[0] - shares.iloc[1]).abs()
        yield math.isclose(apart[groups[4]], apart.max()), f"largest difference on {apart.idxmax()}"
        for k, stated in enumerate(groups[5:]):
            yield close(f"camp {k + 1}, in %", stated, 100 * shares.iloc[k][groups[4]])


def camps_differ(case: Case, _: Groups) -> Checks:
    yield any("two camps" in one for one in case.report.sentences), "camps are stated"


def no_camps(case: Case, groups: Groups) -> Checks:
    others = case.rows.groupby("item")["annotator"].transform("nunique") > 1
    enough = case.rows[others].groupby("annotator").size() >= 20
    yield count(groups[0]) <= enough.sum(), f"{enough.sum()} annotators have 20 shared labels"
    faulty = {name for one in FAULTS[:3] for name in case.people_of.get(one, [])}
    kept = case.rows[~case.rows["annotator"].isin(faulty)]
    rng = np.random.default_rng(1)
    power = float(groups[1] or 50) / 100
    found = 0
    for seed in range(PLANTED):
        path = case.folder / f"planted{seed}.csv"
        recomputed.planted_camps(kept, power, rng).to_csv(path, index=False)
        planted = find_camps(read(path), seed=seed)
        found += planted.verdict in ("camps", "some agree more")
    about = f"found in {found} of {PLANTED} crowds with camps on {power:.0%} of the items"
    yield (found > PLANTED / 2 if groups[1] else found <= PLANTED / 2), about


def severity(case: Case, groups: Groups) -> Checks:
    shares = pd.crosstab(case.rows["annotator"], case.rows["label"], normalize="index")[groups[0]]
    low, high = shares.quantile([0.1, 0.9])
    yield abs(100 * low - float(groups[1])) < 5, f"10th percentile {low:.1%}"
    yield abs(100 * high - float(groups[2])) < 5, f"90th percentile {high:.1%}"


def camps_not_looked_for(case: Case, _: Groups) -> Checks:
    yield not any("two camps" in one for one in case.report.sentences), "and none are stated"


def _group(case: Case, column: str, group: str) -> tuple[set[str], set[str]]:
    """Return who is in a group, and in other groups of two or more."""
    assert case.people is not None
    values = case.people.loc[case.people.index.isin(case.rows["annotator"].unique()), column]
    sizes = values.value_counts()
    known = values[values.isin(sizes[sizes >= 2].index) & (values != "")]
    inside = set(known[known == group].index)
    return inside, set(known.index) - inside


def _flagged(case: Case) -> set[str]:
    return {name for verdict in FLAGGED for name in case.people_of.get(verdict, [])}


def flags(case: Case, groups: Groups) -> Checks:
    inside, outside = _group(case, *groups[:2])
    here, there, p = recomputed.fisher(_flagged(case), inside, outside)
    found = (here, len(inside), there, len(outside))
    yield (
        found == tuple(map(count, groups[2:6])),
        f"flagged {here}/{len(inside)}, {there}/{len(outside)}",
    )
    stated = float(groups[7])
    yield (p < stated if groups[6] == "<" else near(stated, p, 3)), f"Fisher's p {p:.2g}"
    assert case.people is not None
    yield p * case.people.shape[1] < 0.05, "also after Bonferroni's correction over columns"


def group_labels(case: Case, groups: Groups) -> Checks:
    yield from _label_difference(
        case, *groups[:3], (1 if groups[4] == "more" else -1) * float(groups[3])
    )


def _label_difference(case: Case, column: str, group: str, label: str, points: float) -> Checks:
    inside, outside = _group(case, column, group)
    flagged = _flagged(case)
    sizes = [len(one - flagged) for one in (inside, outside)]
    if min(sizes) >= 2:
        inside, outside = inside - flagged, outside - flagged
    value, error = recomputed.group_difference(case.rows, inside, outside, label)
    about = (
        f"{column} = {group}, {label}: {100 * value:+.1f} ± {100 * error:.1f}, stated {points:+}"
    )
    yield near(points, 100 * value, 1), about


def group_agreement(case: Case, groups: Groups) -> Checks:
    assert case.people is not None
    names = set(case.rows["annotator"]) - _flagged(case)
    values = case.people[groups[0]]
    group = {name: values[name] for name in names if values.get(name, "") != ""}
    yield from _pairs(case, group, groups[1:3], 0.0)


def _pairs(case: Case, group: dict[str, Any], stated: Groups, least: float) -> Checks:
    """Pairs of one group agree more than pairs of two, as stated."""
    found = recomputed.pair_agreement(case.rows, group)
    for what, (within, between) in found.items():
        yield within - between >= least, f"{what} within {within:.2f}, between {between:.2f}"
    for text, value in zip(stated, found["correlation"], strict=True):
        yield abs(float(text) - value) <= 0.05, f"{value:.3f}, stated {text}"


def scatter(case: Case, groups: Groups) -> Checks:
    deviation = case.rows.groupby("item")["value"].std(ddof=1)
    size = case.rows.groupby("item").size()
    usual = float(deviation.median())
    yield near(float(groups[0]), usual, 2), f"median standard deviation {usual:.3g}"
    yield same("wide items", groups[1], int(((deviation > 2 * usual) & (size > 2)).sum()))


# Actions


def leave_out(case: Case, groups: Groups) -> Checks:
    names = [name for verdict in ("random", "constant") for name in case.people_of.get(verdict, [])]
    shown, more = _names(groups[0])
    yield len(shown) + more == len(names) and set(shown) <= set(names), f"{len(names)} are left out"
    for name in names:
        found = case.follows(name, case.given)
        yield not found.low > 0, f"{name}: r at least {found.low:.2f}, over {found.n}"
    labels = [_aggregated(case, case.rows, "all")]
    kept = case.rows[~case.rows["annotator"].isin(names)]
    labels.append(_aggregated(case, kept, "kept"))
    yield labels[0] == case.labels, "the command gives the labels of the report"
    changed = sum(labels[1].get(item) != label for item, label in labels[0].items())
    yield same("changed labels", groups[1], changed)


def _aggregated(case: Case, rows: pd.DataFrame, name: str) -> dict[str, str]:
    """Return the labels that the command writes for these rows."""
    source, target = case.folder / f"{name}.csv", case.folder / f"{name}_labels.csv"
    rows[["item", "annotator", "label"]].to_csv(source, index=False)
    command = [sys.executable, "-m", "dissensus", "aggregate", str(source), "-o", str(target)]
    subprocess.run([*command, "-s", case.method], check=True, capture_output=True)
    labels = pd.read_csv(target, dtype=str, keep_default_na=False)
    return dict(zip(labels["item"], labels["label"], strict=True))


def ask(case: Case, groups: Groups) -> Checks:
    shown, more = _names(groups[0])
    names = case.people_of.get("reversed", [])
    yield len(shown) + more == len(names) and set(shown) <= set(names), f"{names} contradict"


def give_known(case: Case, groups: Groups) -> Checks:
    shown, more = _names(groups[0])
    names = case.people_of.get("likely random", [])
    yield set(shown) <= set(names), f"likely random: {', '.join(names)}"
    yield len(shown) + more <= len(names), f"{len(names)} are likely random"
    for name in shown:
        n = case.rows.loc[case.rows["annotator"] == name, "item"].isin(case.given).sum()
        yield n < ENOUGH, f"{name} has labelled {n} known items already"


def give_more(case: Case, groups: Groups) -> Checks:
    shown, _ = _names(groups[0])
    yield set(shown) <= set(case.people_of.get("likely random", [])), "they are likely random"
    for name in shown:
        n = case.rows.loc[case.rows["annotator"] == name, "item"].isin(case.given).sum()
        yield n >= ENOUGH, f"{name} has labelled {n} known items"


def relabel(case: Case, groups: Groups) -> Checks:
    columns = case.page.downloads["relabel"].columns
    items, certainty = list(map(str, columns["item"])), np.array(columns["certainty"], dtype=float)
    yield same("items in the download", groups[0], len(items))
    yield bool((np.diff(certainty) >= 0).all()), "the download is sorted by certainty"
    doubt = {item: 1 - one for item, one in case.certainty.items()}
    least = sorted(doubt.values(), reverse=True)[: len(items)]
    held, total = sum(doubt[item] for item in items), sum(doubt.values())
    yield math.isclose(held, sum(least), rel_tol=1e-9), "these are the least certain items"
    fixed, expected, left, low, high = map(float, groups[1:6])
    if not case.report.errors.n_checked:
        yield near(expected, total, 0), f"sum of doubts {total:.1f}, stated {expected:.0f}"
    yield abs(fixed - held * expected / total) <= 1, f"doubts of the list {held:.1f} of {total:.1f}"
    yield abs(fixed + left - expected) <= 1, f"{fixed:.0f} and {left:.0f} of {expected:.0f}"
    goal = 1 - case.report.target
    yield left <= goal * len(doubt) + 1, f"{left:.0f} left of {len(doubt)}: the target is reached"
    if groups[6]:
        yield is_share("share of the items", groups[6], len(items) / len(doubt))
    if case.hidden:
        listed = set(items)
        wrong = sum(one for item, one in case.wrong.items() if item not in listed)
        all_wrong = sum(case.wrong.values())
        yield case.holds(
            low - 0.5 <= wrong <= high + 0.5,
            f"{wrong} of {all_wrong} wrong labels outside the list, {low:.0f} to {high:.0f}",
        )


def spot_check(case: Case, groups: Groups) -> Checks:
    n, target = count(groups[0]), case.report.target
    yield target**n <= 0.05 < target ** (n - 1), f"{target}^{n} = {target**n:.3f}"
    items = list(case.page.downloads["check"].columns["item"])
    drawn = min(n, len(case.labels))
    yield len(set(items)) == len(items) == drawn, f"{len(items)} different items to check"


def stop(case: Case, groups: Groups) -> Checks:
    low, target = share(groups[0])[0], share(groups[1])[0]
    yield low >= target - 0.005, f"at least {groups[0]}, target {groups[1]}"
    if case.hidden:
        right = 1 - float(np.mean(list(case.wrong.values())))
        yield right >= target, f"truth: {right:.3f} are right"


def keep_camps(case: Case, groups: Groups) -> Checks:
    yield from camps_differ(case, groups)


def question_first(case: Case, _: Groups) -> Checks:
    found = [case.follows(name, case.given) for name in case.rows["annotator"].unique()]
    z = [one.z for one in found if one.n >= ENOUGH]
    loose = sum(not one >= 1.96 for one in z)
    yield 2 * loose > len(z), f"{loose} of {len(z)} annotators do not follow the items"


def together(case: Case, groups: Groups) -> Checks:
    votes = case.rows.pivot_table(
        index="item", columns="annotator", values="label", aggfunc="first"
    )
    usual = recomputed.pairs_agree(case.rows)
    for group in groups[0].split("; "):
        names, _ = _names(group)
        for one, other in pairwise(names):
            common = votes[[one, other]].dropna()
            equal = int((common[one] == common[other]).sum())
            p = stats.binomtest(equal, len(common), usual, alternative="greater").pvalue
            yield p < 0.01, f"{one} and {other}: {equal} of {len(common)} equal, usual {usual:.0%}"


def islands(case: Case, groups: Groups) -> Checks:
    yield same("connected groups", groups[0], recomputed.components(case.rows))


# Texts, notes and findings of sections


def per_item(case: Case, groups: Groups) -> Checks:
    size = case.rows.groupby("item").size()
    if groups[3]:
        yield size.min() == size.max() == count(groups[3]), f"{size.min()} to {size.max()} labels"
        return
    yield same("least", groups[0], int(size.min()))
    yield same("most", groups[1], int(size.max()))
    yield close("mean", groups[2], float(size.mean()))


def how_inferred(case: Case, _: Groups) -> Checks:
    yield case.page.method.partition("[")[0] == case.method.partition("[")[0], case.page.method


def wrong_labels(case: Case, groups: Groups) -> Checks:
    yield same("labels", groups[0], len(case.certainty))
    doubt = sum(1 - one for one in case.certainty.values())
    expected, low, high = count(groups[1]), count(groups[3]), count(groups[4])
    if not case.report.errors.n_checked:
        yield near(expected, doubt, 0), f"sum of doubts {doubt:.1f}"
    if case.hidden:
        wrong = sum(case.wrong.values())
        yield case.holds(low <= wrong <= high, f"{wrong} are wrong, {low} to {high}")


def pairs_agree(case: Case, groups: Groups) -> Checks:
    yield is_share("pairs that agree", groups[0], recomputed.pairs_agree(case.rows))
    value = float(case.page.facts["alpha"])
    yield groups[1] == recomputed.word(value), f"alpha {value} is {recomputed.word(value)}"


def common_class(case: Case, groups: Groups) -> Checks:
    yield is_share("pairs that agree", groups[0], recomputed.pairs_agree(case.rows))
    shares = case.rows["label"].value_counts(normalize=True)
    yield is_share(f"labels {groups[3]}", groups[2], float(shares[groups[3]]))
    yield shares.idxmax() == groups[3], f"the commonest label is {shares.idxmax()}"


def alone(case: Case, groups: Groups) -> Checks:
    size = case.rows.groupby("item").size()
    yield same("single labels", groups[0], int((size == 1).sum()))
    yield same("items", groups[1], len(size))


def one_label(case: Case, groups: Groups) -> Checks:
    size = case.rows.groupby("item").size()
    yield same("single labels", groups[0], int((size == 1).sum()))
    yield is_share("share", groups[1], float((size == 1).mean()))


def weights(_: Case, groups: Groups) -> Checks:
    total = sum(float(one.rsplit(" ", 1)[1].rstrip("%")) for one in groups[0].split(", "))
    yield abs(total - 100) <= 3, f"weights add up to {total:.0f}%"


def members(_: Case, groups: Groups) -> Checks:
    yield None, f"not computed again: {groups[0]} members differ on {groups[1]}"


def explained(_case: Case, _: Groups) -> Checks:
    yield from ()  # definitions, and what a figure leaves out


def same_class(case: Case, groups: Groups) -> Checks:
    by = case.rows.groupby("annotator")["label"]
    steady = set(by.nunique()[by.nunique() == 1].index)
    stated = case.people_of.get("constant", [])
    yield count(groups[0]) <= len(steady), f"{len(steady)} annotators give one class only"
    yield set(stated) <= steady, f"constant: {', '.join(stated)}"


def sparse(case: Case, groups: Groups) -> Checks:
    k, n = case.rows["label"].nunique(), case.rows["annotator"].nunique()
    yield close("free cells per label", groups[0], k * (k - 1) * n / len(case.rows))


def outliers(case: Case, groups: Groups) -> Checks:
    apart = (case.rows["value"] - case.rows.groupby("item")["value"].transform("median")).abs()
    usual = 1.4826 * float(apart[apart > 0].median() if apart.median() == 0 else apart.median())
    yield close("usual distance", groups[3], usual)
    n = int((apart > float(groups[2]) * usual).sum())
    yield same("outliers", groups[0], n)
    yield is_share("share", groups[1], n / len(apart))


# Figures


def commonest(case: Case, groups: Groups) -> Checks:
    shares = pd.Series(case.labels).value_counts(normalize=True)
    yield shares.idxmax() == groups[0], f"the commonest label is {shares.idxmax()}"
    yield is_share("share", groups[1], float(shares.max()))


def below(case: Case, groups: Groups) -> Checks:
    confidence = np.array(case.page.downloads["labels"].columns["confidence"])
    yield is_share("confidence below .8", groups[0], float((confidence < 0.8).mean()))


def verdict_counts(case: Case, groups: Groups) -> Checks:
    stated = dict(reversed(one.split(" ", 1)) for one in groups[0].split(", "))
    found = {verdict: str(len(names)) for verdict, names in case.people_of.items()}
    yield stated == found, f"in the table {found}"


def confusion(case: Case, groups: Groups) -> Checks:
    inferred = case.rows["item"].map(case.labels)
    pairs = Counter(zip(case.rows["label"], inferred, strict=True))
    (given, label), most = max(
        ((pair, n) for pair, n in pairs.items() if pair[0] != pair[1]), key=lambda one: one[1]
    )
    yield same("most frequent difference", groups[0], most)
    yield (given, label) == groups[1:3], f"{given} on {label}"
    yield is_share("share of labels", groups[3], most / int((inferred == label).sum()))


def shown(_case: Case, _: Groups) -> Checks:
    yield from ()  # definitions, and what a figure leaves out


def values(case: Case, groups: Groups) -> Checks:
    mean = case.rows.groupby("item")["value"].mean()
    for stated, found in zip(groups, (mean.min(), mean.max(), mean.mean()), strict=True):
        yield close("mean of an item", stated, float(found))


# Claims about the whole report


def facts(case: Case) -> Checks:
    """The figures at the top of the page."""
    counted = {
        "annotators": case.rows["annotator"].nunique(),
        "items": case.rows["item"].nunique(),
        "labels": len(case.rows),
        "numbers": len(case.rows),
        "classes": case.rows["label"].nunique(),
    }
    for name, value in counted.items():
        if name in case.page.facts:
            yield same(name, case.page.facts[name], value)


def one_plan(case: Case) -> Checks:
    """The plan never asks to label again and to stop."""
    words = [one.sentence.split()[0] for one in case.report.actions]
    yield not {"Have", "Stop"} <= set(words), f"actions: {', '.join(words)}"
    yield all(one.sentence.endswith(".") for one in case.report.actions), "actions end with a stop"
    lower = [one.sentence for one in case.report.actions if ". " in one.sentence]
    starts = [part[0] for one in lower for part in one.split(". ")[1:]]
    yield all(not start.islower() for start in starts), "sentences begin with a capital"


def sure_enough(case: Case) -> Checks:
    """Advice to stop only where the truth agrees."""
    if case.ordered and "labels" not in case.page.downloads:
        return
    if case.hidden:
        right = 1 - float(np.mean(list(case.wrong.values())))
        stops = case.report.should_stop
        yield not (stops and right < case.report.target), f"stop {stops}, {right:.3f} are right"


def calibrated(case: Case) -> Checks:
    """Certainties are between 0 and 1; how far they are off."""
    if "labels" not in case.page.downloads:
        return
    certainty = np.array(list(case.certainty.values()))
    yield bool(((certainty >= 0) & (certainty <= 1)).all()), "certainty between 0 and 1"
    if case.hidden and not case.given:
        items = [item for item in case.certainty if item in case.wrong]
        p = np.array([case.certainty[item] for item in items])
        right = np.array([not case.wrong[item] for item in items])
        z = (right - p).sum() / math.sqrt((p * (1 - p)).sum())
        yield None, f"certainty {p.mean():.3f}, right {right.mean():.3f}: z {z:+.1f}"


def correlations(case: Case) -> Checks:
    """The correlations of the table of annotators."""
    if "correlation" not in case.stated or case.steps:
        return
    apart = []
    for name, row in case.stated.iterrows():
        value = case.follows(str(name), case.given).correlation
        if math.isfinite(value) and math.isfinite(row["correlation"]):
            if case.ordered:  # the page has Pearson's
                own, others = recomputed._compared(case.rows, {}, True, str(name))
                value = float(stats.pearsonr(own[:, 0], others[:, 0])[0])
            apart.append(abs(value - row["correlation"]))
    yield max(apart) < 1e-6, f"{len(apart)} correlations, largest difference {max(apart):.2g}"


def intervals(case: Case) -> Checks:
    """Values lie in their own intervals."""
    sections = list(case.page.sections)
    while sections:
        one = sections.pop(0)
        sections += one.subsections
        tables = [table for row in one.panels for table in row if not isinstance(table, str)]
        for table in tables:
            if not table.heads[-1].endswith("interval"):
                continue
            for row in table.rows:
                if row[-1]:
                    low, high = map(float, row[-1].split(" to "))
                    yield low <= float(row[-2]) <= high, f"{row[0]}: {row[-2]} in {row[-1]}"


def group_table(case: Case) -> Checks:
    """The table of groups."""
    for section in case.page.sections:
        for one in section.subsections:
            if one.name == "groups":
                for column, group, label, points, _ in one.panels[0][0].rows:
                    yield from _label_difference(case, column, group, label, float(points))


def item_rows(case: Case) -> Checks:
    """Votes, labels and order of the table of items."""
    section = next(one for one in case.page.sections if one.name == "items")
    columns = {name: list(column.values) for name, column in section.table.columns.items()}
    if "votes" not in columns:
        return
    given = case.rows.groupby("item")["label"].agg(Counter).to_dict()
    votes = [
        {label: int(n) for n, label in (one.split(" × ") for one in text.split(", "))}
        for text in columns["votes"]
        if not text.endswith("…")
    ]
    whole = [
        item
        for item, text in zip(columns["item"], columns["votes"], strict=True)
        if not text.endswith("…")
    ]
    yield all(dict(given[i]) == v for i, v in zip(whole, votes, strict=True)), f"{len(votes)} votes"
    certain = columns.get("confidence") or columns["within one step"]
    yield bool((np.diff(certain[:1000]) >= 0).all()), "the least certain first"
    labels = zip(columns["item"], columns["label"], strict=True)
    yield all(case.labels[item] == label for item, label in labels), "labels as in the download"


WHOLE = (
    *(facts, one_plan, sure_enough, calibrated, correlations, intervals),
    *(group_table, item_rows),
)
