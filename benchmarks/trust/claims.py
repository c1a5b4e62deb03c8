"""Whether what reports state is true: `python benchmarks/run.py trust claims`.

Every sentence, action, note and caption of the reports on six shared sets has to match a pattern of
`PATTERNS`, and the function of that name in one of `CHECKS` computes the claim again from the
rows of the table. Where the truth of a set is known, reports are made with and without it, and both
are compared with it. Prints a table, and ends with 1 if a claim is false or a sentence unknown.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import binomtest

import claim_data
import claim_labels
import claim_people
from claim_case import MISSED, Case, Verdict
from dissensus import read, report
from pages import Table

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SETS = ["rte", "labelme", "bluebirds", "lewidi_hs_brexit", "gwsd", "politeness_wikipedia"]
NUMBERS = ["politeness_wikipedia"]

_N, _X, _P = r"([\d\u202f]+)", r"(-?[\d.]+)", r"((?:above |below )?[\d.]+%)"
_WHO, _GIVEN = r"(.+?)", r"(?:labels|answers)"
_COUNT = r"(\w+) annotators?"
# Names of functions in claim_data.py, claim_labels.py and claim_people.py, and what they check.
PATTERNS = {
    # Sentences
    "volume": rf"{_N} annotators? gave {_N} (?:labels?|numbers?) to {_N} items?, {_X} each on "
    rf"average(?:, from {_X} to {_X})?\.",
    "known_accuracy": rf"Of the {_N} items? whose label is known, {_P} are labelled right "
    rf"\({_P} to {_P}\)\.",
    "expected_accuracy": rf"About {_P} of the inferred labels are right( within one step)? "
    rf"\(probably {_P} to {_P}\)\.(?: The certainty is calibrated on known items\.)?",
    "odd_items": rf"Look at these yourself: (?:{_N} items? with a split vote)?(?: and )?"
    rf"(?:{_N} items? with a label that nobody gave)?\.",
    "agreement": rf"Agreement is ([a-z ]+) \(alpha {_X}, {_X} to {_X}\)\.",
    "people": rf"{_COUNT} (answers? at random|nearly always gives? one answer|"
    r"contradicts? (?:the others|known labels(?: or the others)?)|may answer at random): "
    rf"{_WHO}\.",
    "nobody_random": rf"No annotator seems to answer at random(?: \({_N} annotators? gave too few "
    r"labels to say\))?\.",
    "camps": rf"There are two camps: \(1\) {_WHO}; \(2\) {_WHO}\. They agree more with their own "
    rf"camp \(correlation {_X}\) than with the other \({_X}\)\.(?: Camp 1 gives the label "
    rf"“?{_WHO}”? "
    rf"to {_X} %, camp 2 to {_X} % of items\.)? They judge differently; neither camp is wrong for "
    r"it\.",
    "camps_differ": r"Where the camps differ there is no single right label\.",
    "no_camps": rf"No camps were found among {_N} annotators\. (?:Two equal camps that judge {_X} "
    r"% of the items independently of each other would mostly have been found; smaller differences "
    r"may exist\.|But these labels can hardly show any: even two camps that judge half of the "
    r"items independently of each other would mostly be missed\.)",
    "severity": rf"Annotators differ in how readily they give the label “?{_WHO}”? \(most of "
    rf"them in "
    rf"{_X} to {_X} % of their labels\); no camps beyond that were found\. .*",
    "camps_not_looked_for": r"Camps were not looked for: .*",
    "flags": rf"Verdicts fall on {_WHO} = {_WHO} more than on others: {_N} of {_N} annotators are "
    rf"flagged, {_N} of {_N} elsewhere \(Fisher's exact test, p (<|=) {_X}\); leaving them out "
    r"would remove labels of this group\.",
    "group_labels": rf"Annotators of {_WHO} = {_WHO} give the label “?{_WHO}”? {_X} points "
    rf"(more|less) "
    rf"often than others on the same items \(95 % interval {_X} to {_X}\)\.",
    "group_agreement": rf"Annotators agree more with those of the same {_WHO} \(correlation {_X}\) "
    rf"than with others \({_X}; t = {_X}, p (?:<|=) {_X}\)\.",
    "scatter": rf"Answers on an item usually scatter by {_X}; on {_N} items? by more than twice as "
    r"much\.",
    "more_flags": r"The same holds for (\w+) more groups?; see Groups\.",
    "standard_error": rf"The standard error of a value is {_X} \(median over items\)\.",
    # Actions
    "leave_out": rf"Leave out {_WHO}, whose {_GIVEN} do not follow the items: this changes {_N} "
    r"labels?\.",
    "ask": rf"Ask {_WHO} whether the task was misunderstood\.",
    "give_known": rf"Give {_WHO} known items: their {_GIVEN} may ignore the items, but this is not "
    r"certain\.",
    "give_more": rf"Give {_WHO} more items: their {_GIVEN} may ignore the items, and the known "
    r"ones among them do not settle it\.",
    "relabel": rf"Have {_N} items? labelled again, the least certain first: they hold about {_X} "
    rf"of about {_X} wrong labels, and about {_X} \({_X} to {_X}\) would be left\.(?: That is "
    rf"{_P} of the items: plan for more labels per item\.)?",
    "spot_check": rf"Check {_N} random items against known labels: (?:they show how many labels "
    rf"really are wrong|without an error among them, {_P} would be reached)\.",
    "stop": rf"Stop here: at least {_P} of the labels are right, the target is {_P}\.",
    "probably_reached": rf"{_P} are probably reached, but this is not certain: check "
    rf"(?:about {_N} )?more random items against known labels\.",
    "answer_again": rf"Have {_N} items? answered again, on which answers scatter most: with twice "
    rf"as many answers, the standard error of their values is expected to fall from {_X} to {_X} "
    r"on average\.",
    "keep_camps": r"Keep the labels of both camps, and learn or report what each says: neither is "
    r"wrong, and further labels would not settle it\.",
    "question_first": rf"Look at the question and its instructions first: the {_GIVEN} of most "
    r"annotators do not follow the items, so they carry hardly any information\.",
    "together": r"Ask whether these worked together: (.+)\.",
    "islands": rf"Annotators fall into {_N} groups that share no item: .*",
    "scores_alike": rf"Spearman's rank correlation of the two scores is {_X}\.(?: {_N} annotators "
    r"without both scores are not shown\.)?(?: Equal values are spread a little\.)?",
    # Texts, notes and findings of sections
    "per_item": rf"The file was read as \w+\. An item has (?:{_N} to {_N} {_GIVEN}, {_X} on "
    rf"average|{_N} (?:label|answer)s?)\.",
    "how_inferred": r"Labels were inferred by .*",
    "wrong_labels": rf"Of {_N} labels?(?: without gold)?, about {_N} are wrong( by more than one "
    rf"step)? \(90% interval {_N} to {_N}\), judged by .*",
    "pairs_agree": rf"{_P} of the pairs of labels on one item agree\. Beyond chance, agreement is "
    r"([a-z ]+)\.",
    "common_class": rf"{_P} of pairs agree, but alpha is {_X}: {_P} of labels are {_WHO}, so "
    r"agreement by chance is high; compare ac1",
    "alone": rf"{_N} of {_N} items have one label only and do not count",
    "one_label": rf"{_N} items \({_P}\) have one label: nothing can correct it\.",
    "value_method": r"The value of an item is (?:estimated by the method (\w+)|the mean of its "
    r"answers)\.",
    "weights": r"Together these predict held-out labels best: (.+)\. `dissensus compare` .*",
    "members": rf"The {_N} members differ from the pool on {_P} of the items on average\.",
    "explained": r"(?:Annotators are compared with|Why annotators disagree|Everybody is "
    r"compared with|Annotators of a camp agree with each other more|Click an item|On the dashed "
    r"line|To the right: answers too high).*",
    "same_class": rf"{_N} annotators? always gives? one class where others do not \({_P} of the "
    r"labels\)\.",
    "scale": rf"labels .+ to .+ are taken for an ordinal scale: disagreements are {_P} closer than "
    r"by chance; .*",
    "sparse": rf"Confusion matrices have {_X} (?:free )?cells for every label: .*",
    "outliers": rf"{_N} answers \({_P}\) are more than {_X} usual distances \({_X}\) from the "
    r"median of their item\.",
    # Figures
    "commonest": rf"The most common class is {_WHO}: {_P} of the items\.",
    "below": rf"Confidence is below 80% for {_P} of the items\.",
    "verdict_counts": r"Number of annotators by verdict: ([^.]+)\.(?: Those whose .* not shown\.)?"
    r"(?: Lines are 95% intervals; .*)?",
    "confusion": rf"The most frequent difference: {_N} labels? “{_WHO}” on items labelled “{_WHO}” "
    rf"\({_P} of their labels\)\.",
    "shown": r"(?:.*neither camp is wrong for it\. )?(?:Shown: |Those who agree stand next to).*",
    "values": rf"From {_X} to {_X}, {_X} on average\.",
}
_MODULES = (claim_data, claim_labels, claim_people)
WHOLE = [claim for module in _MODULES for claim in module.WHOLE]
CHECKS = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    for name in PATTERNS
}
_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def printed(case: Case) -> Iterator[str]:
    """Yield every sentence of a report and its page, once."""
    sections = list(case.page.sections)
    texts = [*case.report.sentences, *(one.sentence for one in case.report.actions)]
    while sections:
        one = sections.pop(0)
        texts += [*one.text, *one.notes, *(found.sentence for found in one.findings or ())]
        sections += one.subsections
    texts += [figure.words for figure in case.page.charts.values()]
    yield from dict.fromkeys(texts)


def check(case: Case) -> list[Verdict]:
    """Return the verdicts on all claims of a report."""
    verdicts = []
    for sentence in printed(case):
        found = [(name, one.fullmatch(sentence)) for name, one in _COMPILED.items()]
        matched = [(name, one) for name, one in found if one is not None]
        if not matched:
            verdicts.append(Verdict(case.name, "unknown", sentence, False, "matches no pattern"))
        for name, one in matched:
            for ok, detail in CHECKS[name](case, one.groups()):
                verdicts.append(Verdict.of(case, name, sentence, ok, detail))
    for claim in WHOLE:
        for ok, detail in claim(case):
            what = (claim.__doc__ or "").splitlines()[0]
            verdicts.append(Verdict.of(case, claim.__name__, what, ok, detail))
    return verdicts


def load(path: Path) -> pd.DataFrame:
    """Return rows of answers as texts."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    return rows.rename(columns={"task": "item", "worker": "annotator"})


def make(name: str, with_truth: bool, folder: Path) -> Case:
    """Return the report on a shared set, and what is known about it."""
    source, people = DATA / name / "answers.csv.gz", DATA / name / "workers.csv.gz"
    rows = load(source)[["item", "annotator", "label"]]
    truth, hidden = DATA / name / "truth.csv.gz", {}
    if truth.exists():
        known = load(truth)
        hidden = dict(zip(known["item"], known["label"], strict=True))
    if name in NUMBERS:
        rows["value"] = rows["label"].astype(float)
        numbers = read(str(source), scale="numeric")
        made = report(numbers, truth=str(truth) if with_truth else None)
    else:
        made = report(
            str(source),
            truth=str(truth) if with_truth else None,
            annotators=people if people.exists() else None,
        )
    table = load(people).set_index("annotator") if people.exists() else None
    given = hidden if with_truth else {}
    title = f"{name} with truth" if with_truth else name
    return Case(title, rows, made, made.layout(), folder, given, hidden, table, name in NUMBERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--all", action="store_true", help="print every claim, not only sums")
    options = parser.parse_args()
    verdicts: list[Verdict] = []
    for name in options.sets.split(","):
        has_truth = (DATA / name / "truth.csv.gz").exists()
        for with_truth in (False, True)[: 1 + has_truth]:
            with tempfile.TemporaryDirectory() as folder:
                verdicts += check(make(name, with_truth, Path(folder)))
    if options.all:
        rows = [(one.set, one.claim, one.word, one.detail) for one in verdicts]
        Table("Claims", ["set", "claim", "verdict", "recomputed"], rows).show()
    counts = Counter((one.claim, one.word) for one in verdicts)
    words = ("true", "false", "measured")
    claims = dict.fromkeys(one.claim for one in verdicts)
    sums = [(claim, *(counts[claim, word] for word in words)) for claim in claims]
    Table("Claims of reports", ["claim", *words], sums).show()
    measured = [one for one in verdicts if one.ok is None]
    Table(
        "Measured", ["set", "what", "by how much"], [(m.set, m.claim, m.detail) for m in measured]
    ).show()
    inside = [one for one in verdicts if one.detail.startswith("truth: ")]
    missed = [one for one in verdicts if one.detail.startswith(MISSED)]
    n_inside, n_intervals = len(inside), len(inside) + len(missed)
    false = [one for one in verdicts if one.ok is False]
    rare = n_intervals and binomtest(n_inside, n_intervals, 0.9, "less").pvalue < 0.05
    print(f"90% intervals hold the truth: {n_inside} of {n_intervals}")
    if rare:
        false.append(Verdict("all", "intervals", "90% intervals", False, "hold too rarely"))
    for one in false:
        print(f"FALSE {one.set}: {one.sentence}\n      {one.detail}")
    print(f"{len(verdicts)} claims, {len(false)} false")
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
