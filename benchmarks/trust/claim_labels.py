"""Claims about inferred labels and the plan, computed again; see `claims.py`."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

import recomputed
from claim_case import Case, Checks, Groups, count, is_share, near, same, share


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
        yield near(fixed, held, 0) or abs(fixed - held) <= 1, f"doubts of the list {held:.1f}"
    yield abs(fixed + left - expected) <= 1, f"{fixed:.0f} and {left:.0f} of {expected:.0f}"
    goal = 1 - case.report.doubt.target
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
    n, target = count(groups[0]), case.report.doubt.target
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


def probably_reached(case: Case, groups: Groups) -> Checks:
    right, low, _ = case.report.errors.accuracy
    target = share(groups[0])
    yield low < target[1], f"the lower end {low:.3f} is below the target"
    yield right >= target[0], f"{right:.3f} are expected to be right"
    yield case.report.errors.n_checked > 0, "labels were checked"


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


def weights(_: Case, groups: Groups) -> Checks:
    total = sum(float(one.rsplit(" ", 1)[1].rstrip("%")) for one in groups[0].split(", "))
    yield abs(total - 100) <= 3, f"weights add up to {total:.0f}%"


def members(_: Case, groups: Groups) -> Checks:
    yield None, f"not computed again: {groups[0]} members differ on {groups[1]}"


def below(case: Case, groups: Groups) -> Checks:
    confidence = np.array(case.page.downloads["labels"].columns["confidence"])
    yield is_share("confidence below .8", groups[0], float((confidence < 0.8).mean()))


def commonest(case: Case, groups: Groups) -> Checks:
    shares = pd.Series(case.labels).value_counts(normalize=True)
    yield shares.idxmax() == groups[0], f"the commonest label is {shares.idxmax()}"
    yield is_share("share", groups[1], float(shares.max()))


def sure_enough(case: Case) -> Checks:
    """Advice to stop only where the truth agrees."""
    if case.ordered and "labels" not in case.page.downloads:
        return
    if case.hidden:
        right = 1 - float(np.mean(list(case.wrong.values())))
        stops = case.report.doubt.should_stop
        yield (
            not (stops and right < case.report.doubt.target),
            f"stop {stops}, {right:.3f} are right",
        )


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


def one_plan(case: Case) -> Checks:
    """The plan never asks to label again and to stop."""
    words = [one.sentence.split()[0] for one in case.report.actions]
    yield not {"Have", "Stop"} <= set(words), f"actions: {', '.join(words)}"
    yield all(one.sentence.endswith(".") for one in case.report.actions), "actions end with a stop"
    lower = [one.sentence for one in case.report.actions if ". " in one.sentence]
    starts = [part[0] for one in lower for part in one.split(". ")[1:]]
    yield all(not start.islower() for start in starts), "sentences begin with a capital"


WHOLE = (one_plan, sure_enough, calibrated)
