"""Claims about annotators, camps and groups, computed again; see `claims.py`."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import recomputed
from claim_case import ENOUGH, Case, Checks, Groups, close, count, near, same
from dissensus import read
from dissensus.quality import camps as find_camps

_VERDICTS = {  # the last words of a sentence about people, and the verdict
    "at random": "random",
    "may answer at random": "likely random",
    "one answer": "constant",
    "the others": "reversed",
    "known labels": "reversed",
}
FAULTS = ("random", "constant", "reversed", "likely random")
FLAGGED = ("random", "constant", "likely random")
CLOSE = 0.2  # correlation above which nobody may be called random
SURE = 2.33  # standard deviations above which somebody surely follows known labels
PLANTED = 10  # crowds with planted camps


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


_CHECKED = {
    **dict.fromkeys(("random", "likely random"), _ignore_items),
    "constant": _always_same,
    "reversed": _contradict,
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


def keep_camps(case: Case, groups: Groups) -> Checks:
    yield from camps_differ(case, groups)


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
        planted = recomputed.planted_camps(kept, power, rng)
        planted[["item", "annotator", "label"]].to_csv(path, index=False)
        verdict = find_camps(read(path), ordered=case.steps, seed=seed).verdict
        found += verdict in ("camps", "some agree more")
    about = f"found in {found} of {PLANTED} crowds with camps on {power:.0%} of the items"
    yield (found > PLANTED / 2 if groups[1] else found <= PLANTED / 2), about


def severity(case: Case, groups: Groups) -> Checks:
    shares = pd.crosstab(case.rows["annotator"], case.rows["label"], normalize="index")[groups[0]]
    low, high = shares.quantile([0.1, 0.9])
    yield abs(100 * low - float(groups[1])) < 5, f"10th percentile {low:.1%}"
    yield abs(100 * high - float(groups[2])) < 5, f"90th percentile {high:.1%}"


def camps_not_looked_for(case: Case, _: Groups) -> Checks:
    yield not any("two camps" in one for one in case.report.sentences), "and none are stated"


def _flagged(case: Case) -> set[str]:
    return {name for verdict in FLAGGED for name in case.people_of.get(verdict, [])}


def _group(case: Case, column: str, group: str) -> tuple[set[str], set[str]]:
    """Return who is in a group, and in other groups of two or more."""
    assert case.people is not None
    values = case.people.loc[case.people.index.isin(case.rows["annotator"].unique()), column]
    sizes = values.value_counts()
    known = values[values.isin(sizes[sizes >= 2].index) & (values != "")]
    inside = set(known[known == group].index)
    return inside, set(known.index) - inside


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


def more_flags(case: Case, groups: Groups) -> Checks:
    found = sum(one.startswith("Verdicts fall on") for one in case.report.groups.sentences)
    yield same("further groups", groups[0], found - 1)


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


def verdict_counts(case: Case, groups: Groups) -> Checks:
    stated = dict(one.rsplit(" ", 1) for one in groups[0].split(", "))
    found = {verdict: str(len(names)) for verdict, names in case.people_of.items()}
    yield stated == found, f"in the table {found}"


def same_class(case: Case, groups: Groups) -> Checks:
    by = case.rows.groupby("annotator")["label"]
    steady = set(by.nunique()[by.nunique() == 1].index)
    stated = case.people_of.get("constant", [])
    yield count(groups[0]) <= len(steady), f"{len(steady)} annotators give one class only"
    yield set(stated) <= steady, f"constant: {', '.join(stated)}"


def scores_alike(case: Case, groups: Groups) -> Checks:
    """Trace and spam score of annotators, as drawn, rank them alike."""
    title = "Annotators by trace and spam score"
    (figure,) = (one for one in case.report.charts.values() if one.title == title)
    drawn = pd.DataFrame(figure.spec["data"]["values"])
    found = drawn["x"].rank().corr(drawn["y"].rank())
    yield abs(found - float(groups[0])) < 0.0151, f"correlation of ranks {found:.2f}"
    if groups[1]:
        missing = case.rows["annotator"].nunique() - len(drawn)
        yield missing == int(groups[1]), f"{missing} annotators are not drawn"


def correlations(case: Case) -> Checks:
    """The correlations of the table of annotators."""
    name = "follows" if "follows" in case.stated else "correlation"
    exact, apart = not (case.ordered or case.steps), []
    for annotator, row in case.stated.iterrows():
        found = case.follows(str(annotator), case.given)
        if math.isfinite(found.correlation) and (exact or found.n >= 20):
            apart.append(abs(found.correlation - row[name]))
    # A model weighs the ratings of the others, of which the mean is taken here.
    if apart:
        far = max(apart) if exact else float(np.median(apart))
        limit = 1e-6 if exact else 0.05
        yield far < limit, f"{len(apart)} correlations, difference {far:.2g}"


def styles(case: Case) -> Checks:
    """Harsh annotators give lower labels than the others, lenient ones higher, surely."""
    if case.ordered:
        yield from _lower(case, case.people_of.get("harsh", []))
        yield from _higher(case, case.people_of.get("lenient", []))


def _lower(case: Case, names: list[str]) -> Checks:
    for name in names:
        mean, low, high = recomputed.bias(case.rows, name)
        yield high < 0, f"{name}: {mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _higher(case: Case, names: list[str]) -> Checks:
    for name in names:
        mean, low, high = recomputed.bias(case.rows, name)
        yield low > 0, f"{name}: {mean:+.2f} ({low:+.2f} to {high:+.2f})"


def group_table(case: Case) -> Checks:
    """The table of groups."""
    for section in case.page.sections:
        for one in section.subsections:
            if one.name == "groups":
                for column, group, label, points, _ in one.panels[0][0].rows:
                    yield from _label_difference(case, column, group, label, float(points))


WHOLE = (correlations, styles, group_table)
