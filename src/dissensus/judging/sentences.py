"""What was found about models and people, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .judges import MIN_SEED
from .pair_biases import PairBias
from .panel import MIN_ITEMS as MIN_PANEL
from .replacement import MIN_ITEMS, Replacement
from .transport import MIN_LABELS as MIN_TRANSPORT
from .transport import Transported
from .true_mean import LEAST_CORRELATION, Mean
from .true_shares import ENOUGH, Share

if TYPE_CHECKING:
    from .judging import Judging

_MOST = 4  # classes in sentences; tables have all
_MOST_GROUPS = 8
_SAMPLED = {
    "random": "a random sample",
    "by-judge": "chosen by what the models answered",
    "by-label": "chosen by their true class",
}
_FEW = 100  # items of a person, below which failing is no evidence


def sections(found: Judging) -> dict[str, list[str]]:
    """Return the sentences of every section that the data have."""
    written = {
        "labels": _labels(found),
        "replacement": _replacement(found),
        "judges": _judges(found),
        "rates": _rates(found),
        "panel": _panel(found),
        "check": _check(found),
        "pairs": _pairs(found),
        "transport": _transport(found),
    }
    return {name: list(lines) for name, lines in written.items()}


def too_few(have: int, need: int, what: str = "labels") -> str:
    """Return that something cannot be computed from so few.

    >>> too_few(20, 50)
    'This cannot be told from 20 labels: 50 would do.'
    """
    return f"This cannot be told from {have} {what}: {need} would do."


def _labels(found: Judging) -> Iterator[str]:
    data = found.data
    for names, whose, others, other in (
        (found.only_people, "people", data.people, "models"),
        (found.only_models, "models", data.judges, "people"),
    ):
        for name in names.tolist():
            count = int((others.label == data.classes.tolist().index(name)).sum())
            yield (
                f"Only {whose} use the label {_short(name)!r} ({_many(count, 'time')}): "
                f"no label of {other} ever equals it."
            )


def _replacement(found: Judging) -> Iterator[str]:
    test = found.replacement
    if not test.models:
        return
    if all(one.verdict == "unknown" for one in test.models):
        labels = max(one.most_items for one in test.models)
        yield (
            "May a model replace an annotator? "
            + too_few(labels, max(MIN_ITEMS, ENOUGH) if labels < MIN_ITEMS else 2 * MIN_ITEMS)
            + f" The test needs two people with {MIN_ITEMS} items each that others labelled, too."
        )
        return
    candidates = _candidates(test.n_people_pass, test.n_people_tested)  # in the first sentence
    for one in test.models:
        if one.verdict == "unknown":
            yield f"May {one.judge} replace an annotator? {too_few(one.most_items, ENOUGH)}"
        else:
            yield _verdict(one) + candidates
            candidates = ""


def _verdict(one: Replacement) -> str:
    n = len(one.compared)
    better = sum(other.no_worse for other in one.compared)
    smallest = one.smallest_epsilon
    would = "no tolerance would do" if math.isnan(smallest) else f"{smallest:g} would do"
    held = f"{round(one.stability * one.resamples)} of {one.resamples} resamples"
    compared = (
        f"it is no worse than {better} of {n} annotators at agreeing with the others, at a "
        f"tolerance of {one.epsilon:g} ({would})"
    )
    if one.verdict == "undecided":
        return (
            f"It is undecided whether {one.judge} may replace an annotator: {compared}; "
            f"it passes in {held}."
        )
    if one.verdict == "replaces":
        return f"{one.judge} may replace an annotator here: {compared}; this holds in {held}."
    few = max(other.n_items for other in one.compared) < _FEW
    caution = " With so few items, failing is no evidence against it." if few else ""
    return (
        f"{one.judge} may not replace an annotator here: {compared}; it passes in {held}.{caution}"
    )


def _candidates(passed: int, tested: int) -> str:
    verb = "passes" if passed == 1 else "pass"
    return f" {passed} of {tested} people {verb} the same test." if tested else ""


def _judges(found: Judging) -> Iterator[str]:
    best = sorted(found.judges, key=lambda one: -np.nan_to_num(one.agreement, nan=-1.0))
    for one in (*best, *found.code):
        if not one.n_items:
            yield f"How good is {one.judge}? {too_few(0, ENOUGH)}"
            continue
        if found.data.ordered:
            side = "above" if one.bias > 0 else "below"
            r = (
                ""
                if math.isnan(one.correlation)
                else f", and its correlation with them is {one.correlation:.2f}"
            )
            yield (
                f"{one.judge} is {abs(one.bias):.2g} {side} people on average, off by "
                f"{one.absolute_error:.2g} on an item{r}."
            )
        if not math.isnan(one.agreement):
            people = (
                "" if math.isnan(one.people) else f"; two people agree on {_percent(one.people)}"
            )
            yield (
                f"{one.judge} agrees with a person on {_percent(one.agreement)} of items "
                f"({_between(one.low, one.high)}){people}."
            )
        elif not math.isnan(one.accuracy):
            yield f"{one.judge} is right on {_percent(one.accuracy)} of items whose class is known."
        if one.missing >= 0.005:
            yield f"{one.judge} has no answer on {_percent(one.missing)} of items."
        if not math.isnan(one.consistency):
            same = _percent(one.consistency)
            yield f"Asked again, {one.judge} gives the same answer in {same} of cases."
    if found.code:
        yield "Scorers that are code are compared with people, but in no panel."


def _rates(found: Judging) -> Iterator[str]:
    names = found.data.judge_names
    who = names[0] if len(names) == 1 else f"The panel of {len(names)} models"
    wanted = _chosen(found)
    if not wanted:
        return
    if not found.n_labels:
        yield f"What is the true rate? {too_few(0, ENOUGH)}"
        return
    for one in wanted:
        yield from _share(one, who) if isinstance(one, Share) else _mean(one, who)
    if any(not one.problem for one in wanted):
        yield f"This takes the items that people labelled for {_SAMPLED[found.sampled]}."
        yield from _saved(found, wanted[0])
    for pair in found.differences[:_MOST_GROUPS]:
        if math.isnan(pair.estimate):
            continue
        of = f" in the share of {_short(pair.label)}" if pair.label else ""
        clear = "differ" if pair.low > 0 or pair.high < 0 else "do not clearly differ"
        middle, low, high = (
            _signed(value, bool(pair.label)) for value in (pair.estimate, pair.low, pair.high)
        )
        yield f"{pair.one} and {pair.other} {clear}{of}: {middle} ({low} to {high})."


def _chosen(found: Judging) -> list[Share] | list[Mean]:
    """Return what sentences are about: the most frequent classes, or one class of every group."""
    if found.means:
        return list(found.means[:_MOST_GROUPS])
    shares = [one for one in found.shares if one.judge_share > 0.005 or one.estimate > 0.005]
    if not len(found.data.groups):
        shares.sort(key=lambda one: -(one.judge_share if one.problem else one.estimate))
        return shares[: 2 if found.data.n_classes == 2 else _MOST]
    spread = {
        label: float(np.ptp([one.judge_share for one in found.shares if one.label == label]))
        for label in found.data.classes.tolist()
    }
    widest = max(spread, key=lambda label: spread[label])
    return [one for one in shares if one.label == widest][:_MOST_GROUPS]


def _share(one: Share, who: str) -> Iterator[str]:
    group = f"{one.group}: " if one.group else ""
    name = _short(one.label)
    share = _percent(one.judge_share)
    if one.problem == "few":
        yield f"{group}{who} says {share} {name}. {too_few(one.n_labels, ENOUGH)}"
    elif one.problem:
        yield (
            f"{group}{who} says {share} {name}, but does not separate the "
            "classes well enough to correct it."
        )
    else:
        alone = ""
        if not math.isnan(one.people_low):
            alone = f" Human labels alone: {_between(one.people_low, one.people_high)}."
        yield (
            f"{group}{who} says {share} {name}. Corrected by "
            f"{_many(one.n_labels, 'human label')}: {_percent(one.estimate)} "
            f"({_between(one.low, one.high)}).{alone}"
        )


def _mean(one: Mean, who: str) -> Iterator[str]:
    group = f"{one.group}: " if one.group else ""
    if one.problem == "few":
        yield f"{group}{who} has a mean of {one.judge_mean:.3g}. {too_few(one.n_labels, ENOUGH)}"
    elif one.problem:
        yield (
            f"{group}{who} has a mean of {one.judge_mean:.3g}; no correction is known for items "
            "that were not chosen at random."
        )
    else:
        alone = ""
        if not math.isnan(one.people_low):
            alone = f" Human labels alone: {one.people_low:.3g} to {one.people_high:.3g}."
        yield (
            f"{group}{who} has a mean of {one.judge_mean:.3g}. Corrected by "
            f"{_many(one.n_labels, 'human label')}: {one.estimate:.3g} ({one.low:.3g} to "
            f"{one.high:.3g}).{alone}"
        )


def _saved(found: Judging, first: Share | Mean) -> Iterator[str]:
    """Return what the models save, in labels."""
    if found.sampled != "random" or first.problem or first.n_items == first.n_labels:
        return
    if isinstance(first, Mean):
        r = first.correlation
    else:
        data, code = found.data, found.data.classes.tolist().index(first.label)
        given = data.chosen(None)[:, code]
        used = data.known & ~np.isnan(given)
        y, f = data.target_shares[used][:, code], given[used]
        r = float(np.corrcoef(y, f)[0, 1]) if np.ptp(y) and np.ptp(f) else 0.0
    if r < LEAST_CORRELATION:
        yield f"The models save no human labels here: their correlation with people is {r:.2f}."
    else:
        worth = round(100 / max(1 - r**2, 0.01))
        yield f"100 human labels with the models count like {worth} without (correlation {r:.2f})."


def _panel(found: Judging) -> Iterator[str]:
    names, one, merged = found.data.judge_names, found.panel, found.pool
    people = ""
    if merged is not None and merged.learned:
        people = f"; on an item, about {_about(merged.worth)}"
    if len(names) > 1 and found.copies is not None:
        pairs = found.copies.pairs
        if pairs:
            shown = ", ".join(f"{pair.one} and {pair.other}" for pair in pairs[:3])
            yield f"Without human labels: {shown} agree more than independent models would."
        yield "What is the panel worth? " + too_few(0, MIN_PANEL)
    elif one is not None and math.isnan(one.worth):
        yield "What is the panel worth? " + too_few(one.n_items, MIN_PANEL)
    elif one is not None:
        range_ = f"({one.low:.1f} to {one.high:.1f})"
        count = f"Your {len(names)} judges"
        if one.shared or (
            math.isnan(one.people_rho) and (found.data.truth >= 0).any() and one.rho > 0.1
        ):
            yield (
                f"{count} make the same mistakes: they are worth about "
                f"{_number(one.worth)} independent ones {range_}{people}."
            )
        elif one.worth > 0.9 * len(names):
            yield f"{count} are worth about {_number(one.worth)} independent ones {range_}{people}."
        else:
            why = ""
            if not math.isnan(one.people_rho):
                why = ", but people's errors are as alike, because items are in doubt"
            number = _number(one.worth)
            yield f"{count} are worth about {number} independent ones {range_}{why}{people}."
        if one.best > one.accuracy + 0.005:
            yield (
                f"The majority of the panel is right on {_percent(one.accuracy)} of items, its "
                f"best judge ({one.best_judge}) on {_percent(one.best)}."
            )
        if not math.isnan(one.within) and not math.isnan(one.between):
            yield (
                f"Errors of two judges of one family have a correlation of {one.within:.2f}, of "
                f"two families {one.between:.2f}."
            )
    elif people:
        yield f"On an item, the model counts like {_about(merged.worth)}." if merged else ""
    if merged is not None and not merged.learned and found.n_labels:
        twice = int((found.data.n_people > 1).sum())
        yield (
            "How many people do the models count for on an item? "
            + too_few(twice, ENOUGH, "items with two people")
        )


def _check(found: Judging) -> Iterator[str]:
    one = found.escalation
    if one is None or not len(one.items):
        return
    if one.n_seed < MIN_SEED:
        yield "Which items should people check? " + too_few(one.n_seed, MIN_SEED)
        return
    total, chosen = len(one.items), len(one.chosen)
    if not one.shortcut:
        yield (
            f"There is no short cut: people would have to label about {one.enough} of the {total} "
            "items without human labels, because the models are far below a person."
        )
    elif not one.enough:
        yield (
            f"No answer of one person would overrule the models on any of the {total} items "
            "without human labels."
        )
    elif chosen >= one.enough:
        yield (
            f"Ask people about the {chosen} most doubtful items: that should do as much as all "
            f"{total}."
        )
    else:
        yield (
            f"Ask people about the {chosen} most doubtful items: that should do "
            f"{_percent(one.part)} as much as all {total}; {one.enough} items would do."
        )


def _pairs(found: Judging) -> Iterator[str]:
    for one in found.pair_biases:
        yield from _bias(one)


def _bias(one: PairBias) -> Iterator[str]:
    points = f"by {_points(one.estimate)} points ({_range(one)})"
    if one.problem == "order":
        yield (
            f"Does {one.judge} prefer what is shown first? Bias and truth cannot be separated, "
            "because all pairs were shown in one order: swap some."
        )
    elif one.problem == "people":
        yield f"Is {one.judge} biased ({one.kind})? {too_few(0, ENOUGH)}"
    elif one.problem:
        yield f"Is {one.judge} biased ({one.kind})? {too_few(one.n_pairs, ENOUGH, 'pairs')}"
    elif one.kind == "position":
        changed = ""
        if one.both_orders:
            changed = (
                f"; {_percent(one.n_flips / one.both_orders)} of its answers change with the order"
            )
        side = "first" if one.estimate > 0 else "second"
        if one.clear:
            yield f"{one.judge} prefers whatever is shown {side}, {points}{changed}."
        else:
            yield (
                f"{one.judge} has no clear preference for what is shown first "
                f"({_range(one)} points){changed}."
            )
    else:
        what = "the longer answer" if one.kind == "length" else "answers of its own family"
        often = "more" if one.estimate > 0 else "less"
        if one.clear:
            yield f"{one.judge} prefers {what} {often} often than people do, {points}."
        else:
            yield (
                f"Does {one.judge} prefer {what} ({_range(one)} points)? "
                + too_few(one.n_pairs, max(one.needed, one.n_pairs + 1), "pairs")
            )


def _transport(found: Judging) -> Iterator[str]:
    groups = {one.group for one in found.transport}
    for name in found.data.groups.tolist():
        rows = [one for one in found.transport if one.group == name]
        for one in sorted(rows, key=lambda one: one.p_value)[:1]:
            yield _moved(one)
        inside = found.data.group == found.data.groups.tolist().index(name)
        few = int((inside & found.data.known).sum())
        reference = found.transport[0].reference if found.transport else None
        if groups and name not in groups and name != reference:
            yield f"Does the correction hold for {name}? {too_few(few, MIN_TRANSPORT)}"


def _moved(one: Transported) -> str:
    share = bool(one.label)
    of = f" on {_short(one.label)}" if share else ""
    if one.n_labels < MIN_TRANSPORT and not one.alarm:
        return f"Does the correction hold for {one.group}? {too_few(one.n_labels, MIN_TRANSPORT)}"
    side = "low" if one.error > 0 else "high"
    ends = sorted((abs(one.low), abs(one.high))) if one.low * one.high > 0 else (one.low, one.high)
    size = (
        f"{_points(one.error)} points too {side}" if share else f"{abs(one.error):.2g} too {side}"
    )
    interval = (
        f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f}"
        if share
        else f"{ends[0]:.2g} to {ends[1]:.2g}"
    )
    if one.alarm:
        return (
            f"{one.group}: calibrated on {one.reference}, the models are {size}{of} ({interval}); "
            "its own human labels have to correct them."
        )
    return (
        f"{one.group}: calibrated on {one.reference}, the models are {size}{of} ({interval}), "
        "which is no alarm."
    )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"


def _many(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _between(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f}"


def _points(value: float) -> str:
    return f"{abs(100 * value):.0f}"


def _range(one: PairBias) -> str:
    low, high = 100 * one.low, 100 * one.high
    if one.clear and one.estimate < 0:
        low, high = -high, -low
    return f"{low:.0f} to {high:.0f}".replace("-0 ", "0 ")


def _signed(value: float, share: bool) -> str:
    return f"{100 * value:+.0f} points" if share else f"{value:+.2g}"


def _number(value: float) -> str:
    """Return a number of judges: whole where it is close to one.

    >>> _number(2.04), _number(1.52)
    ('2', '1.5')
    """
    return f"{value:.0f}" if abs(value - round(value)) < 0.1 else f"{value:.1f}"


def _about(worth: float) -> str:
    return "1 person" if _number(worth) == "1" else f"{_number(worth)} people"
