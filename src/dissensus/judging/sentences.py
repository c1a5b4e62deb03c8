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


def sections(judging: Judging) -> dict[str, list[str]]:
    """Return the sentences of every section that the data have."""
    written = {
        "labels": _labels(judging),
        "replacement": _replacement(judging),
        "judges": _judges(judging),
        "rates": _rates(judging),
        "panel": _panel(judging),
        "check": _check(judging),
        "pairs": _pairs(judging),
        "transport": _transport(judging),
    }
    return {name: list(lines) for name, lines in written.items()}


def too_few(have: int, need: int, noun: str = "labels") -> str:
    """Return that something cannot be computed from so few.

    >>> too_few(20, 50)
    'This cannot be told from 20 labels: 50 would do.'
    """
    return f"This cannot be told from {have} {noun}: {need} would do."


def _labels(judging: Judging) -> Iterator[str]:
    data = judging.data
    for names, users, labels, non_users in (
        (judging.only_people, "people", data.people, "models"),
        (judging.only_models, "models", data.judges, "people"),
    ):
        for name in names.tolist():
            count = int((labels.label == data.classes.tolist().index(name)).sum())
            yield (
                f"Only {users} use the label {_short(name)!r} ({_many(count, 'time')}): "
                f"no label of {non_users} ever equals it."
            )


def _replacement(judging: Judging) -> Iterator[str]:
    test = judging.replacement
    if not test.models:
        return
    if all(model.verdict == "unknown" for model in test.models):
        labels = max(model.most_items for model in test.models)
        yield (
            "May a model replace an annotator? "
            + too_few(labels, max(MIN_ITEMS, ENOUGH) if labels < MIN_ITEMS else 2 * MIN_ITEMS)
            + f" The test needs two people with {MIN_ITEMS} items each that others labelled, too."
        )
        return
    candidates = _candidates(test.n_people_pass, test.n_people_tested)  # in the first sentence
    for model in test.models:
        if model.verdict == "unknown":
            yield f"May {model.judge} replace an annotator? {too_few(model.most_items, ENOUGH)}"
        else:
            yield _verdict(model) + candidates
            candidates = ""


def _verdict(model: Replacement) -> str:
    n = len(model.compared)
    better = sum(comparison.no_worse for comparison in model.compared)
    smallest = model.smallest_epsilon
    would = "no tolerance would do" if math.isnan(smallest) else f"{smallest:g} would do"
    held = f"{round(model.stability * model.resamples)} of {model.resamples} resamples"
    compared = (
        f"it is no worse than {better} of {n} annotators at agreeing with the others, at a "
        f"tolerance of {model.epsilon:g} ({would})"
    )
    if model.verdict == "undecided":
        return (
            f"It is undecided whether {model.judge} may replace an annotator: {compared}; "
            f"it passes in {held}."
        )
    if model.verdict == "replaces":
        return f"{model.judge} may replace an annotator here: {compared}; this holds in {held}."
    few = max(comparison.n_items for comparison in model.compared) < _FEW
    caution = " With so few items, failing is no evidence against it." if few else ""
    return (
        f"{model.judge} may not replace an annotator here: {compared}; it passes in {held}."
        f"{caution}"
    )


def _candidates(passed: int, tested: int) -> str:
    verb = "passes" if passed == 1 else "pass"
    return f" {passed} of {tested} people {verb} the same test." if tested else ""


def _judges(judging: Judging) -> Iterator[str]:
    best = sorted(judging.judges, key=lambda judge: -np.nan_to_num(judge.agreement, nan=-1.0))
    for judge in (*best, *judging.code):
        if not judge.n_items:
            yield f"How good is {judge.judge}? {too_few(0, ENOUGH)}"
            continue
        if judging.data.ordered:
            side = "above" if judge.bias > 0 else "below"
            r = (
                ""
                if math.isnan(judge.correlation)
                else f", and its correlation with them is {judge.correlation:.2f}"
            )
            yield (
                f"{judge.judge} is {abs(judge.bias):.2g} {side} people on average, off by "
                f"{judge.absolute_error:.2g} on an item{r}."
            )
        if not math.isnan(judge.agreement):
            people = (
                ""
                if math.isnan(judge.people)
                else f"; two people agree on {_percent(judge.people)}"
            )
            yield (
                f"{judge.judge} agrees with a person on {_percent(judge.agreement)} of items "
                f"({_between(judge.low, judge.high)}){people}."
            )
        elif not math.isnan(judge.accuracy):
            share = _percent(judge.accuracy)
            yield f"{judge.judge} is right on {share} of items whose class is known."
        if judge.missing >= 0.005:
            yield f"{judge.judge} has no answer on {_percent(judge.missing)} of items."
        if not math.isnan(judge.consistency):
            repeated = _percent(judge.consistency)
            yield f"Asked again, {judge.judge} gives the same answer in {repeated} of cases."
    if judging.code:
        yield "Scorers that are code are compared with people, but in no panel."


def _rates(judging: Judging) -> Iterator[str]:
    names = judging.data.judge_names
    source = names[0] if len(names) == 1 else f"The panel of {len(names)} models"
    estimates = _estimates(judging)
    if not estimates:
        return
    if not judging.n_labels:
        yield f"What is the true rate? {too_few(0, ENOUGH)}"
        return
    for estimate in estimates:
        yield from (
            _share(estimate, source) if isinstance(estimate, Share) else _mean(estimate, source)
        )
    if any(not estimate.problem for estimate in estimates):
        yield f"This takes the items that people labelled for {_SAMPLED[judging.sampled]}."
        yield from _saved(judging, estimates[0])
    for pair in judging.differences[:_MOST_GROUPS]:
        if math.isnan(pair.estimate):
            continue
        of = f" in the share of {_short(pair.label)}" if pair.label else ""
        clear = "differ" if pair.low > 0 or pair.high < 0 else "do not clearly differ"
        middle, low, high = (
            _signed(value, bool(pair.label)) for value in (pair.estimate, pair.low, pair.high)
        )
        yield f"{pair.one} and {pair.other} {clear}{of}: {middle} ({low} to {high})."


def _estimates(judging: Judging) -> list[Share] | list[Mean]:
    """Return what sentences are about: the most frequent classes, or one class of every group."""
    if judging.means:
        return list(judging.means[:_MOST_GROUPS])
    shares = [
        share for share in judging.shares if share.judge_share > 0.005 or share.estimate > 0.005
    ]
    if not len(judging.data.groups):
        shares.sort(key=lambda share: -(share.judge_share if share.problem else share.estimate))
        return shares[: 2 if judging.data.n_classes == 2 else _MOST]
    spread = {
        label: float(
            np.ptp([share.judge_share for share in judging.shares if share.label == label])
        )
        for label in judging.data.classes.tolist()
    }
    widest = max(spread, key=lambda label: spread[label])
    return [share for share in shares if share.label == widest][:_MOST_GROUPS]


def _share(share: Share, source: str) -> Iterator[str]:
    group = f"{share.group}: " if share.group else ""
    name = _short(share.label)
    judged = _percent(share.judge_share)
    if share.problem == "few":
        yield f"{group}{source} says {judged} {name}. {too_few(share.n_labels, ENOUGH)}"
    elif share.problem:
        yield (
            f"{group}{source} says {judged} {name}, but does not separate the "
            "classes well enough to correct it."
        )
    else:
        people_alone = ""
        if not math.isnan(share.people_low):
            people_alone = f" Human labels alone: {_between(share.people_low, share.people_high)}."
        yield (
            f"{group}{source} says {judged} {name}. Corrected by "
            f"{_many(share.n_labels, 'human label')}: {_percent(share.estimate)} "
            f"({_between(share.low, share.high)}).{people_alone}"
        )


def _mean(mean: Mean, source: str) -> Iterator[str]:
    group = f"{mean.group}: " if mean.group else ""
    judged = f"{group}{source} has a mean of {mean.judge_mean:.3g}"
    if mean.problem == "few":
        yield f"{judged}. {too_few(mean.n_labels, ENOUGH)}"
    elif mean.problem:
        yield (f"{judged}; no correction is known for items that were not chosen at random.")
    else:
        people_alone = ""
        if not math.isnan(mean.people_low):
            people_alone = f" Human labels alone: {mean.people_low:.3g} to {mean.people_high:.3g}."
        yield (
            f"{judged}. Corrected by "
            f"{_many(mean.n_labels, 'human label')}: {mean.estimate:.3g} ({mean.low:.3g} to "
            f"{mean.high:.3g}).{people_alone}"
        )


def _saved(judging: Judging, estimate: Share | Mean) -> Iterator[str]:
    """Return what the models save, in labels."""
    if judging.sampled != "random" or estimate.problem or estimate.n_items == estimate.n_labels:
        return
    if isinstance(estimate, Mean):
        r = estimate.correlation
    else:
        data, code = judging.data, judging.data.classes.tolist().index(estimate.label)
        predicted = data.chosen(None)[:, code]
        usable = data.known & ~np.isnan(predicted)
        y, f = data.target_shares[usable][:, code], predicted[usable]
        r = float(np.corrcoef(y, f)[0, 1]) if np.ptp(y) and np.ptp(f) else 0.0
    if r < LEAST_CORRELATION:
        yield f"The models save no human labels here: their correlation with people is {r:.2f}."
    else:
        worth = round(100 / max(1 - r**2, 0.01))
        yield f"100 human labels with the models count like {worth} without (correlation {r:.2f})."


def _panel(judging: Judging) -> Iterator[str]:
    names, panel, merged = judging.data.judge_names, judging.panel, judging.pool
    people = ""
    if merged is not None and merged.learned:
        people = f"; on an item, about {_about(merged.worth)}"
    if len(names) > 1 and judging.copies is not None:
        pairs = judging.copies.pairs
        if pairs:
            listed = ", ".join(f"{pair.one} and {pair.other}" for pair in pairs[:3])
            yield f"Without human labels: {listed} agree more than independent models would."
        yield "What is the panel worth? " + too_few(0, MIN_PANEL)
    elif panel is not None and math.isnan(panel.worth):
        yield "What is the panel worth? " + too_few(panel.n_items, MIN_PANEL)
    elif panel is not None:
        range_ = f"({panel.low:.1f} to {panel.high:.1f})"
        count = f"Your {len(names)} judges"
        if panel.shared or (
            math.isnan(panel.people_rho) and (judging.data.truth >= 0).any() and panel.rho > 0.1
        ):
            yield (
                f"{count} make the same mistakes: they are worth about "
                f"{_number(panel.worth)} independent ones {range_}{people}."
            )
        elif panel.worth > 0.9 * len(names):
            number = _number(panel.worth)
            yield f"{count} are worth about {number} independent ones {range_}{people}."
        else:
            why = ""
            if not math.isnan(panel.people_rho):
                why = ", but people's errors are as alike, because items are in doubt"
            number = _number(panel.worth)
            yield f"{count} are worth about {number} independent ones {range_}{why}{people}."
        if panel.best > panel.accuracy + 0.005:
            yield (
                f"The majority of the panel is right on {_percent(panel.accuracy)} of items, its "
                f"best judge ({panel.best_judge}) on {_percent(panel.best)}."
            )
        if not math.isnan(panel.within) and not math.isnan(panel.between):
            yield (
                f"Errors of two judges of one family have a correlation of {panel.within:.2f}, of "
                f"two families {panel.between:.2f}."
            )
    elif people:
        yield f"On an item, the model counts like {_about(merged.worth)}." if merged else ""
    if merged is not None and not merged.learned and judging.n_labels:
        twice = int((judging.data.n_people > 1).sum())
        yield (
            "How many people do the models count for on an item? "
            + too_few(twice, ENOUGH, "items with two people")
        )


def _check(judging: Judging) -> Iterator[str]:
    escalation = judging.escalation
    if escalation is None or not len(escalation.items):
        return
    if escalation.n_seed < MIN_SEED:
        yield "Which items should people check? " + too_few(escalation.n_seed, MIN_SEED)
        return
    total, n_chosen = len(escalation.items), len(escalation.chosen)
    if not escalation.shortcut:
        yield (
            f"There is no short cut: people would have to label about {escalation.enough} of the "
            f"{total} items without human labels, because the models are far below a person."
        )
    elif not escalation.enough:
        yield (
            f"No answer of one person would overrule the models on any of the {total} items "
            "without human labels."
        )
    elif n_chosen >= escalation.enough:
        yield (
            f"Ask people about the {n_chosen} most doubtful items: that should do as much as all "
            f"{total}."
        )
    else:
        yield (
            f"Ask people about the {n_chosen} most doubtful items: that should do "
            f"{_percent(escalation.part)} as much as all {total}; {escalation.enough} items would "
            "do."
        )


def _pairs(judging: Judging) -> Iterator[str]:
    for bias in judging.pair_biases:
        yield from _bias(bias)


def _bias(bias: PairBias) -> Iterator[str]:
    points = f"by {_points(bias.estimate)} points ({_range(bias)})"
    if bias.problem == "order":
        yield (
            f"Does {bias.judge} prefer what is shown first? Bias and truth cannot be separated, "
            "because all pairs were shown in one order: swap some."
        )
    elif bias.problem == "people":
        yield f"Is {bias.judge} biased ({bias.kind})? {too_few(0, ENOUGH)}"
    elif bias.problem:
        yield f"Is {bias.judge} biased ({bias.kind})? {too_few(bias.n_pairs, ENOUGH, 'pairs')}"
    elif bias.kind == "position":
        changed = ""
        if bias.both_orders:
            flipped = _percent(bias.n_flips / bias.both_orders)
            changed = f"; {flipped} of its answers change with the order"
        side = "first" if bias.estimate > 0 else "second"
        if bias.clear:
            yield f"{bias.judge} prefers whatever is shown {side}, {points}{changed}."
        else:
            yield (
                f"{bias.judge} has no clear preference for what is shown first "
                f"({_range(bias)} points){changed}."
            )
    else:
        preferred = "the longer answer" if bias.kind == "length" else "answers of its own family"
        often = "more" if bias.estimate > 0 else "less"
        if bias.clear:
            yield f"{bias.judge} prefers {preferred} {often} often than people do, {points}."
        else:
            yield (
                f"Does {bias.judge} prefer {preferred} ({_range(bias)} points)? "
                + too_few(bias.n_pairs, max(bias.needed, bias.n_pairs + 1), "pairs")
            )


def _transport(judging: Judging) -> Iterator[str]:
    groups = {transported.group for transported in judging.transport}
    for name in judging.data.groups.tolist():
        rows = [transported for transported in judging.transport if transported.group == name]
        for transported in sorted(rows, key=lambda transported: transported.p_value)[:1]:
            yield _moved(transported)
        inside = judging.data.group == judging.data.groups.tolist().index(name)
        few = int((inside & judging.data.known).sum())
        reference = judging.transport[0].reference if judging.transport else None
        if groups and name not in groups and name != reference:
            yield f"Does the correction hold for {name}? {too_few(few, MIN_TRANSPORT)}"


def _moved(transported: Transported) -> str:
    share = bool(transported.label)
    of = f" on {_short(transported.label)}" if share else ""
    if transported.n_labels < MIN_TRANSPORT and not transported.alarm:
        few = too_few(transported.n_labels, MIN_TRANSPORT)
        return f"Does the correction hold for {transported.group}? {few}"
    side = "low" if transported.error > 0 else "high"
    ends = (
        sorted((abs(transported.low), abs(transported.high)))
        if transported.low * transported.high > 0
        else (transported.low, transported.high)
    )
    size = (
        f"{_points(transported.error)} points too {side}"
        if share
        else f"{abs(transported.error):.2g} too {side}"
    )
    interval = (
        f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f}"
        if share
        else f"{ends[0]:.2g} to {ends[1]:.2g}"
    )
    moved = (
        f"{transported.group}: calibrated on {transported.reference}, the models are {size}{of} "
        f"({interval})"
    )
    if transported.alarm:
        return f"{moved}; its own human labels have to correct them."
    return f"{moved}, which is no alarm."


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


def _range(bias: PairBias) -> str:
    low, high = 100 * bias.low, 100 * bias.high
    if bias.clear and bias.estimate < 0:
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
