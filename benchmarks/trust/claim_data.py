"""Claims about the data, agreement, numbers and tables, computed again; see `claims.py`."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd

import recomputed
from claim_case import Case, Checks, Groups, close, count, is_share, near, same, share


def volume(case: Case, groups: Groups) -> Checks:
    rows = case.rows
    yield same("annotators", groups[0], rows["annotator"].nunique())
    yield same("labels", groups[1], len(rows))
    yield same("items", groups[2], rows["item"].nunique())
    yield close("labels per item", groups[3], len(rows) / rows["item"].nunique())
    if groups[4]:
        yield close("least", groups[4], rows["value"].min())
        yield close("most", groups[5], rows["value"].max())


def agreement(case: Case, groups: Groups) -> Checks:
    level = getattr(case.report.annotations, "scale", "interval")
    value, low, high = recomputed.alpha(case.rows, level)
    yield close("alpha", groups[1], value)
    yield recomputed.word(value) == groups[0], f"alpha {value:.3f} is {recomputed.word(value)}"
    reach = max(0.25 * (high - low), 0.011)
    apart = max(abs(float(groups[2]) - low), abs(float(groups[3]) - high))
    yield apart <= reach, f"resampled items: {low:.3f} to {high:.3f}"


def scatter(case: Case, groups: Groups) -> Checks:
    deviation = case.rows.groupby("item")["value"].std(ddof=1)
    size = case.rows.groupby("item").size()
    usual = float(deviation.median())
    yield near(float(groups[0]), usual, 2), f"median standard deviation {usual:.3g}"
    yield same("wide items", groups[1], int(((deviation > 2 * usual) & (size > 2)).sum()))


def standard_error(case: Case, groups: Groups) -> Checks:
    by = case.rows.groupby("item")["value"]
    yield close("median", groups[0], float((by.std(ddof=1) / np.sqrt(by.size())).median()))


def answer_again(case: Case, groups: Groups) -> Checks:
    yield same(
        "items in the download", groups[0], len(case.page.downloads["relabel"].columns["item"])
    )
    now = recomputed.error_of_wide(case.rows)
    for factor, stated in ((1.0, groups[1]), (0.5, groups[2])):
        found = now * math.sqrt(factor)
        yield abs(float(stated) / found - 1) < 0.1, f"by regression {found:.2f}, stated {stated}"


def per_item(case: Case, groups: Groups) -> Checks:
    size = case.rows.groupby("item").size()
    if groups[3]:
        yield size.min() == size.max() == count(groups[3]), f"{size.min()} to {size.max()} labels"
        return
    yield same("least", groups[0], int(size.min()))
    yield same("most", groups[1], int(size.max()))
    yield close("mean", groups[2], float(size.mean()))


def pairs_agree(case: Case, groups: Groups) -> Checks:
    yield is_share("pairs that agree", groups[0], recomputed.pairs_agree(case.rows))
    value = case.report.agreement["alpha"].value
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


def value_method(case: Case, groups: Groups) -> Checks:
    columns = case.page.downloads["values"].columns
    mean = case.rows.groupby("item")["value"].mean()
    stated = pd.Series(list(columns["value"]), index=list(map(str, columns["item"])))
    apart = float((mean - stated).abs().max())
    yield (
        groups[0] not in ("mean", None) or apart < 1e-3,
        f"largest difference to the means {apart:.2g}",
    )


def explained(_case: Case, _: Groups) -> Checks:
    yield from ()  # definitions, and what a figure leaves out


def scale(case: Case, groups: Groups) -> Checks:
    found = recomputed.closer(case.rows)
    low, high = share(groups[0])
    yield (
        low - 0.03 <= found <= high + 0.03,
        f"unequal labels are {found:.1%} closer than by chance",
    )


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
            stated = case.page.facts[name]
            yield same(name, stated[0], value)


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


WHOLE = (facts, intervals, item_rows)
