"""What each page was asked, and its answer as a function of its tables.

Names and figures in sentences come from the rows, so a new measurement writes a new answer.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median

from openings import Answer, Question, Rows, Tables, bars, curves, intervals, pick, value

QUESTIONS: dict[str, Question] = {}


def question(page: str, asked: str) -> Callable[[Callable[[Tables], Answer]], None]:
    """Keep the function as the answer of a page."""

    def keep(answer: Callable[[Tables], Answer]) -> None:
        QUESTIONS[page] = Question(asked, answer)

    return keep


def column(rows: Rows, name: str) -> list[float]:
    """Return the numbers of a column, without cells that have none."""
    return [one for one in (value(row[name]) for row in rows) if one == one]


def count(n: int, of: int) -> str:
    """Return a number of a total in words."""
    return f"all {of}" if n == of else f"{n} of {of}"


@question("methods", "Which method finds the right labels most often, on real data?")
def methods(tables: Tables) -> Answer:
    rows = [row for row in tables["All methods"] if row["sets"] == "23"]
    best, vote = rows[0], pick(rows, method="majority")
    worst = min(rows, key=lambda row: value(row["worst loss"]))
    sets = [name for name in tables["Accuracy"][0] if name != "method"]
    reach = value(rows[1]["accuracy"]) - value(rows[1]["±"])
    close = sum(value(row["accuracy"]) >= reach for row in rows[2:])
    return Answer(
        (
            f"Over {len(sets)} public sets with known truth, `{best['method']}` is right most often: "
            f"{best['accuracy']} % ± {best['±']} on average, the majority vote {vote['accuracy']} %.",
            f"No method wins everywhere, but `{worst['method']}` is never more than "
            f"{worst['worst loss']} points below the best one for a set, the majority vote up to "
            f"{vote['worst loss']}.",
            f"Among single models `{rows[1]['method']}` is the most accurate ({rows[1]['accuracy']} %), "
            f"and {close} others are within the interval of its mean.",
        ),
        bars(
            [(row["method"], value(row["accuracy"])) for row in rows],
            "mean accuracy over sets, percent",
            ours=[best["method"]],
            zero=False,
        ),
        f"Mean accuracy of {len(rows)} methods over {len(sets)} sets.",
        "Leave the default, `auto`, unless you have a reason. If you need one model to describe in a "
        f"paper, take `{rows[1]['method']}`; a plain vote costs you "
        f"{value(best['accuracy']) - value(vote['accuracy']):.1f} labels in a hundred.",
        f"`{best['method']}` {best['accuracy']} %, majority {vote['accuracy']} %",
    )


@question("calibration", "When it says 90 %, is it right in 90 of 100?")
def calibration(tables: Tables) -> Answer:
    title = tables.title("23 sets")
    rows = tables["23 sets"]
    honest = next(r for r in rows if r["method"].startswith("auto, constants chosen without"))
    plain = [row for row in rows if row["method"].endswith("posterior as it is")]
    sharp = max(plain, key=lambda row: value(row["ECE"]))
    errors = tables["Errors left"]
    held = sum(row["holds it"] == "yes" for row in errors)
    known = tables["50 known items"]
    sure = [row["set"] for row in tables["auto, set by set"] if value(row["gap"]) > 0.1]
    return Answer(
        (
            f"With its constants chosen on other sets, the default's certainty is off by "
            f"{100 * value(honest['ECE']):.1f} points on average (expected calibration error), "
            f"where uncalibrated models are off by {100 * min(column(plain, 'ECE')):.0f} to "
            f"{100 * value(sharp['ECE']):.0f}.",
            f"The stated number of wrong labels has an interval that holds the true number on "
            f"{count(held, len(errors))} sets.",
            f"Fifty known items lower the calibration error from "
            f"{100 * value(known[0]['ECE']):.1f} to {100 * value(known[1]['ECE']):.1f} points.",
        ),
        bars(
            [(row["method"], 100 * value(row["ECE"])) for row in rows],
            "expected calibration error, percentage points (less is better)",
            ours=[row["method"] for row in rows if row["method"].startswith("auto")],
        ),
        f"Calibration error: {title}.",
        "You can plan with the confidence column: relabel the least certain items first, and trust the "
        "number of errors in a report as an order of magnitude. On "
        f"{len(sure)} of {len(errors)} sets ({', '.join(sure)}) it was more than ten points too sure: "
        "check fifty items yourself and pass them as `--gold`.",
        f"off by {100 * value(honest['ECE']):.1f} points; the error count's interval held on "
        f"{held} of {len(errors)} sets",
    )


@question("performance", "How fast is it beside crowd-kit and peerannot?")
def performance(tables: Tables) -> Answer:
    rows = tables["Time of a fit"]
    ratios = {
        (row["method"], row["size"], row["library"]): value(row["× ours"])
        for row in rows
        if value(row["× ours"]) == value(row["× ours"])
    }
    small = {k: v for k, v in ratios.items() if k[1] == "S" and k[2] == "crowd-kit"}
    low, high = min(small, key=small.get), max(small, key=small.get)
    stopped = [r for r in rows if r["size"] == "M" and r["s per round, or fit"].startswith("over")]
    ds = next(v for k, v in ratios.items() if k == ("dawid-skene", "M", "crowd-kit"))
    csv = tables["Reading CSV"][1]
    start = tables["Commands"][0]
    return Answer(
        (
            f"On 10 000 labels {count(sum(v > 1 for v in small.values()), len(small))} methods that "
            f"crowd-kit has are faster here, from {small[low]:.0f} times (`{low[0]}`) to "
            f"{small[high]:.0f} times (`{high[0]}`).",
            f"On a million labels Dawid–Skene takes {ds:.0f} times less per iteration, and "
            f"{len(stopped)} fits of other libraries did not end within the limit of a minute.",
            f"Reading ten million rows of CSV takes {csv['seconds']} s, {csv['× polars']} times polars "
            f"alone, and `{start['command']}` {value(start['seconds, median']):.2f} s.",
        ),
        bars(
            [(f"{k[0]}, {k[2]}", v) for k, v in ratios.items() if k[1] == "S"],
            "times slower than dissensus, 10 000 labels",
            log=True,
        ),
        "Time of other libraries relative to ours, same data and iterations (logarithmic axis).",
        "Millions of labels need no cluster; two cores were enough for every figure on this page.",
        f"Dawid–Skene {ds:.0f} times faster than crowd-kit at 10^6 labels, GLAD "
        f"{small['glad', 'S', 'crowd-kit']:.0f} times at 10^4",
    )


@question("scale", "Does it work beyond memory, on several machines, and while labels arrive?")
def scale(tables: Tables) -> Answer:
    disk = tables["Dawid–Skene, 5 rounds"]
    large = max(disk, key=lambda row: value(row["answers"]))
    dask = tables["10^7 answers"]
    stream = tables["10^5 labels"]
    return Answer(
        (
            f"{value(large['answers']):.0e} labels were aggregated from Parquet in "
            f"{value(large['seconds']):.0f} s with {large['peak GiB']} GiB of memory.".replace(
                "1e+09", "10^9"
            ),
            f"Two Dask workers need {dask[0]['ratio']} to {dask[-1]['ratio']} times as long per "
            f"iteration as two threads of one process, and after workers were killed the posteriors "
            f"differed by at most {max(column(dask, 'largest difference then')):.0e}.",
            "Labels that arrive in a thousand batches are aggregated as accurately as by one fit, to "
            f"{max(map(abs, column(stream, 'stream less batch, points'))):.2f} points.",
        ),
        curves(
            [(row["how"], value(row["answers"]), value(row["peak GiB"])) for row in disk],
            "labels",
            "peak memory, GiB",
            log="xy",
        ),
        "Peak memory against the number of labels (logarithmic axes).",
        "Use `--memory` for files larger than your machine, `--engine dask` only when one machine is "
        "too slow, and `watch` while labelling goes on.",
        f"10^9 labels in {value(large['seconds']) / 60:.1f} minutes with {large['peak GiB']} GiB",
    )


@question("defaults", "How long does a whole command take, from file to result?")
def defaults(tables: Tables) -> Answer:
    rows = [row for row in tables["Whole commands"] if row["at most"] != "–"]
    one = pick(rows, what="aggregate 1e4")
    much = pick(rows, what="aggregate 1e6")
    report = pick(rows, what="report 15600")
    within = sum(value(row["CPU seconds"]) <= value(row["at most"]) for row in rows)
    return Answer(
        (
            f"`aggregate` with the default takes {one['CPU seconds']} s of CPU for 10 000 labels and "
            f"{much['CPU seconds']} s for a million.",
            f"A full report on 15 600 labels takes {report['CPU seconds']} s.",
            f"{within} of {len(rows)} commands are within the limits set for them.",
        ),
        bars(
            [(row["what"], value(row["CPU seconds"])) for row in rows],
            "CPU seconds of the whole command",
            ours=[row["what"] for row in rows],
        ),
        "CPU time of whole commands with default settings.",
        "Trying another method or setting costs seconds, up to a million labels.",
        f"a report on 15 600 labels in {report['CPU seconds']} CPU seconds",
    )


@question("exports", "Can it read a large export of Label Studio?")
def exports(tables: Tables) -> Answer:
    title = tables.title("A Label Studio export")
    ours, plain = tables["A Label Studio export"]
    faster = value(plain["of processor"]) / value(ours["of processor"])
    memory = value(plain["peak GiB"]) / value(ours["peak GiB"])
    return Answer(
        (
            f"An export with {int(value(ours['labels'])):,} labels is read in {ours['seconds']} s, "
            f"with times, durations and texts.",
            f"That is {faster:.1f} times faster than Python's `json.load` alone, in {memory:.1f} times "
            "less memory.",
            f"Peak memory is {value(list(ours.values())[-1]):.1f} times the size of the file.",
        ),
        bars(
            [(row["what"], value(row["peak GiB"])) for row in (ours, plain)],
            "peak memory, GiB",
            ours=["dissensus"],
        ),
        f"Memory for reading: {title[0].lower()}{title[1:]}.",
        "Pass the export as it is. You need about "
        f"{value(list(ours.values())[-1]):.1f} times its size in memory.",
        f"{ours['MB/s']} MB/s, {value(list(ours.values())[-1]):.1f} times the file in memory",
    )


@question("identification", "Does it find spammers and copies, and leave honest people alone?")
def identification(tables: Tables) -> Answer:
    ordered = tables["Verdicts on ordered labels"]
    thirty = [row for row in ordered if row["labels each"] == "30"]
    ten = [row for row in ordered if row["labels each"] == "10"]
    real = pick(tables["Verdicts beside the truth"], set="all")
    flagged = sum(int(real[name]) for name in ("random", "constant", "reversed"))
    nobody = tables["Nobody copies"]
    copies, pairs = (sum(int(row[name]) for row in nobody) for name in ("flagged", "pairs"))
    classes = [row for row in tables["Verdicts on classes"] if row["labels each"] == "100"]
    honest = max(value(row[kind]) for row in classes for kind in ("good", "biased"))
    return Answer(
        (
            f"On ratings with 30 labels each, {min(column(thirty, 'spammers flagged')):.0f} to "
            f"{max(column(thirty, 'spammers flagged')):.0f} % of the spammers are flagged and at most "
            f"{max(column(thirty, 'attentive flagged'))} % of attentive raters; with ten labels only "
            f"{min(column(ten, 'spammers flagged')):.0f} to "
            f"{max(column(ten, 'spammers flagged')):.0f} % are.",
            "Among classes guessing is harder to see: with 100 labels each, "
            + " and ".join(
                f"{value(row['guesser']):.0f} % ({row['classes']} classes)" for row in classes
            )
            + f" of those who guess are called random, and at most {honest} % of the honest.",
            f"On real data with a truth that was not used, {flagged} of {real['annotators']} annotators "
            f"are called random, constant or reversed, {real['surely follow the truth']} of whom surely "
            f"follow the truth; of {pairs} pairs who did not copy, {copies} {'was' if copies == 1 else 'were'} "
            "called copies.",
        ),
        curves(
            [
                (
                    f"{row['classes']} classes",
                    value(row["labels each"]),
                    value(row["spammers flagged"]),
                )
                for row in ordered
                if row["noise"] == "perceived" and row["raters an item"] == "5"
            ],
            "labels of each annotator",
            "spammers flagged, percent",
            zero=True,
        ),
        "How many spammers are found, by the number of labels each annotator gave (five raters an item).",
        "A verdict of `random` or `constant` is rarely wrong, so act on it. That nobody is flagged proves "
        "less: collect 30 ratings of everybody, and far more labels where there are two classes.",
        f"{real['surely follow the truth']} of {flagged} flagged annotators surely followed the truth",
    )


@question("camps", "Does it see when annotators split into camps, and not invent camps?")
def camps(tables: Tables) -> Answer:
    one = tables["Verdicts on crowds of one camp"]
    two = tables["Verdicts on crowds of two camps"]
    names = ("camps", "some agree more", "severity", "none")
    false = sum(int(row["camps"]) + int(row["some agree more"]) for row in one)
    crowds = sum(int(row[name]) for row in one for name in names)
    strong = [row for row in two if row["own truth on"] == "30%" and "an item" not in row["size"]]
    sparse = [
        row
        for row in two
        if row["own truth on"] == "30%" and "an item" in row["size"] and row["classes"] == "2"
    ]
    found = sum(int(row["camps"]) for row in strong)
    rare = sum(int(row["camps"]) for row in sparse)
    real = [row["set"] for row in tables["Real data"] if row["verdict"] == "camps"]
    return Answer(
        (
            f"In crowds of one camp, camps were reported in {false} of {crowds}.",
            f"Camps that judge 30 % of the items by a truth of their own were found in {found} of "
            f"{sum(int(row[n]) for row in strong for n in names)} crowds where everybody labels all "
            f"items, and in {rare} of {sum(int(row[n]) for row in sparse for n in names)} crowds of two "
            "classes with few labels per item.",
            f"Of {len(tables['Real data'])} real sets, {len(real)} have camps: {', '.join(real)}.",
        ),
        bars(
            [
                (
                    f"{row['own truth on']}, {row['classes']} classes, {row['size']}",
                    value(row["camps"]),
                )
                for row in two
            ],
            "crowds of 20 in which the two camps were found",
            ours=[
                f"{row['own truth on']}, {row['classes']} classes, {row['size']}"
                for row in two
                if value(row["camps"]) >= 10
            ],
        ),
        "Two planted camps: share of items on which they differ, classes, annotators × labels each.",
        "If a report names camps, look at who is in them before you call anybody wrong. "
        "If it names none, that proves little unless everybody labelled nearly everything.",
        f"false alarms: {false} of {crowds} crowds; {found} of "
        f"{sum(int(row[n]) for row in strong for n in names)} dense splits found",
    )


@question("agreement", "Are the coefficients right, fast, and are their intervals honest?")
def agreement(tables: Tables) -> Answer:
    large = tables["1,000,000 labels"]
    held = column(tables["Intervals"], "held")
    others = [row for row in large if row["library"] != "dissensus" and row["times ours"] != "–"]
    apart = max(
        abs(
            value(row["value"])
            - value(pick(large, measure=row["measure"], library="dissensus")["value"])
        )
        for row in others
    )
    faster = [
        f"{row['measure']} of {row['library']} from {row['form']}"
        for row in others
        if value(row["times ours"]) < 1
    ]
    alpha = pick(large, measure="alpha", library="dissensus")
    kripp = pick(large, measure="alpha", library="krippendorff", form="matrix")
    return Answer(
        (
            "Coefficients of a million labels "
            + (
                f"differ by at most {apart:.6f} from"
                if apart
                else "equal, in all six digits shown,"
            )
            + " those of krippendorff, irrCAC, statsmodels and nltk.",
            f"Alpha takes {1000 * value(alpha['seconds']):.0f} ms, {value(kripp['times ours']):.0f} times "
            f"less than krippendorff from its matrix; {len(faster)} of {len(others)} other ways were "
            f"faster ({', '.join(faster) or 'none'}).",
            f"Intervals of 95 % held the true value in {100 * min(held):.0f} to {100 * max(held):.0f} % "
            "of samples, for 30 to 300 items.",
        ),
        bars(
            [
                (f"{row['measure']}, {row['library']} ({row['form']})", value(row["times ours"]))
                for row in others
            ],
            "times slower than dissensus, a million labels",
            log=True,
        ),
        "Time of other libraries relative to ours (logarithmic axis; below 1 they are faster).",
        "Report a coefficient with its interval, and read the interval as slightly too narrow.",
        f"intervals held in {100 * min(held):.0f}–{100 * max(held):.0f} %; alpha "
        f"{value(kripp['times ours']):.0f} times faster at 10^6 labels",
    )


@question("answers", "Does it find the right spans, boxes, masks, texts and rankings?")
def answers(tables: Tables) -> Answer:
    spans, boxes, masks = (
        tables["Spans: ner_conll"],
        tables["Boxes: boxes_people"],
        tables["Masks: masks_cells"],
    )
    one = [pick(rows, method="one annotator at random") for rows in (spans, boxes, masks)]
    ours = [next(r for r in rows if "(default)" in r["method"]) for rows in (spans, boxes, masks)]
    texts = tables["Texts"]
    speech = {r["method"]: r for r in texts if r["set"] == "vldb2021_speech"}
    vote = pick(spans, method="majority tag of every token")
    peers = [value(r["mean IoU"]) for r in masks if r["method"].startswith(("crowd-kit", "Simple"))]
    shown = [
        ("spans: one annotator", value(one[0]["F1"])),
        ("spans: majority of every token", value(vote["F1"])),
        ("spans: default", value(ours[0]["F1"])),
        ("boxes: one annotator", value(one[1]["F1 at .5"])),
        ("boxes: default", value(ours[1]["F1 at .5"])),
        ("masks: one annotator", 100 * value(one[2]["mean IoU"])),
        ("masks: default", 100 * value(ours[2]["mean IoU"])),
    ]
    return Answer(
        (
            f"The default finds named entities with F1 {ours[0]['F1']} (one annotator {one[0]['F1']}, a "
            f"vote on every token {vote['F1']}) and people in photographs with F1 "
            f"{ours[1]['F1 at .5']} (one annotator {one[1]['F1 at .5']}).",
            f"Masks overlap with the truth by {ours[2]['mean IoU']} (one annotator "
            f"{one[2]['mean IoU']}, the best of crowd-kit and SimpleITK {max(peers)}).",
            f"Transcripts have {speech['auto']['word error rate']} % wrong words (one annotator "
            f"{speech['one annotator at random']['word error rate']}, crowd-kit's ROVER "
            f"{speech['crowd-kit ROVER']['word error rate']}).",
        ),
        bars(
            shown,
            "F1 or overlap with the truth, percent",
            ours=[n for n, _ in shown if "default" in n],
        ),
        "The consensus beside one annotator at random.",
        "Marks and texts go through the same commands as classes; keep the default of each kind. "
        f"Of the spans it gives {ours[0]['P']} % are right, and it finds {ours[0]['R']} % of the true "
        "ones: what annotators rarely mark stays unmarked.",
        f"spans F1 {ours[0]['F1']} (vote {vote['F1']}), boxes {ours[1]['F1 at .5']}, transcripts "
        f"{speech['auto']['word error rate']} % wrong words",
    )


@question("next", "How many labels does choosing the next item and annotator save?")
def next_labels(tables: Tables) -> Answer:
    rows = tables["Does joint need"]
    shares = {row["crowd"]: value(row["larger share"]) for row in rows}
    yes = sum(row["so"] == "yes" for row in rows)
    worst = max(shares, key=shares.get)
    true = tables["Does it come true?"]
    over = [value(row["expected"]) - value(row["right now"]) for row in true]
    gold = [abs(value(row["with gold"]) - value(row["right now"])) for row in true]
    return Answer(
        (
            f"The policy `joint` needs a median of {100 * median(shares.values()):.0f} % of the labels "
            f"that random choice needs, for 90 and 95 % of the gain.",
            f"It needs at most 70 % on {count(yes, len(rows))} crowds, simulated and real; the least is "
            f"saved on {worst}, where it needs {100 * shares[worst]:.0f} %.",
            f"The accuracy it expects is {mean(over):.0f} points too high on average with three labels "
            f"per item; fifty known items bring that to {mean(gold):.0f} in size.",
        ),
        bars(
            list(shares.items()),
            "labels needed, as a share of random choice",
            ours=[name for name, one in shares.items() if one <= 0.7],
        ),
        "Labels that `joint` needs beside random choice; blue where it is at most 0.7.",
        "Let `dissensus next` choose, and expect to save about "
        f"{100 - 100 * median(shares.values()):.0f} % of the labels. Give it fifty items with known "
        "labels if you plan with the accuracy it expects.",
        f"median {100 * median(shares.values()):.0f} % of the labels of random choice",
    )


@question("judge", "May a model replace annotators, and what is the true rate behind its labels?")
def judge(tables: Tables) -> Answer:
    rows = tables["The alternative annotator test"]
    equal = sum(row["equal"] == "yes" for row in rows)
    won = sum(value(row["winning rate"]) >= 0.5 for row in rows)
    shares = tables["Class shares, random samples"]
    covered = column(shares, "strata")
    width = [value(row["strata"].partition("(")[2]) for row in shares]
    panels = tables["What panels are worth"]
    number = column(panels, "effective number")
    return Answer(
        (
            f"The alternative annotator test gives the published figures for {count(equal, len(rows))} "
            f"pairs of model and set; {won} of them reach a winning rate of one half.",
            f"A class share corrected by human labels has intervals that are "
            f"{100 * (1 - mean(width)):.0f} % narrower than from the human labels alone, and 95 % "
            f"intervals hold in {100 * min(covered):.0f} to {100 * max(covered):.0f} % of samples.",
            f"Panels of {min(int(row['judges']) for row in panels)} to "
            f"{max(int(row['judges']) for row in panels)} judges are worth only {min(number):.1f} to "
            f"{max(number):.1f} independent ones.",
        ),
        bars(
            [
                (f"{row['set']}: {row['judges']} judges", value(row["effective number"]))
                for row in panels
            ],
            "independent judges that the panel is worth",
            ours=[f"{row['set']}: {row['judges']} judges" for row in panels],
        ),
        "What panels of models are worth: they share errors.",
        "A good model may stand in for a person on some tasks, never by default: run the test on your "
        "own items. Fifty to a hundred human labels correct a model's rate; ten more models do not.",
        f"{equal} of {len(rows)} published figures reproduced; six judges worth about "
        f"{median(number):.1f}",
    )


@question("learning", "Does training on all annotations beat training on the majority label?")
def learning(tables: Tables) -> Answer:
    named = ("labelme", "music", "sentiment")
    sets = {name: tables[f"Learning on {name}"] for name in named}

    right = {n: {row["method"]: value(row["accuracy"]) for row in sets[n]} for n in named}
    whole = set.intersection(*(set(found) for found in right.values()))
    joint = sorted(m for m in whole if not m.startswith(("true labels", "two-stage")))

    def best(name: str) -> dict[str, str]:
        """Return the row of the method that is best on the other sets."""
        others = [n for n in named if n != name]
        chosen = max(joint, key=lambda method: mean(right[n][method] for n in others))
        return pick(sets[name], method=chosen)

    votes = {name: pick(sets[name], method="two-stage") for name in named}
    truth = {name: pick(sets[name], method="true labels") for name in named}
    gains = {n: 100 * (value(best(n)["accuracy"]) - value(votes[n]["accuracy"])) for n in named}
    shown = [
        (f"{n}: {what}", 100 * value(row["accuracy"]))
        for n in named
        for what, row in (
            ("majority label", votes[n]),
            (best(n)["method"], best(n)),
            ("true labels", truth[n]),
        )
    ]
    peers = [
        (value(a["accuracy"]), value(b["accuracy"]))
        for n in ("labelme", "music")
        for a in tables[f"Beside peers on {n}"]
        if a["library"] == "dissensus"
        for b in tables[f"Beside peers on {n}"]
        if b["method"] == a["method"] and b["library"] in ("crowd-kit, alone", "scikit-activeml")
    ]
    ahead = sum(a >= b for a, b in peers)
    return Answer(
        (
            "A method that learns from all annotations, chosen on the two other sets, changes accuracy by "
            + ", ".join(f"{gains[n]:+.1f} points on {n} (`{best(n)['method']}`)" for n in named)
            + " beside a network trained on the majority label.",
            "With the true labels the same network would reach "
            + ", ".join(f"{100 * value(truth[n]['accuracy']):.1f} % on {n}" for n in named)
            + ".",
            f"Beside the same methods in crowd-kit and scikit-activeml, ours is at least as accurate in "
            f"{count(ahead, len(peers))} comparisons.",
        ),
        bars(
            shown,
            "test accuracy, percent",
            ours=[f"{n}: {best(n)['method']}" for n in named],
            zero=False,
        ),
        "Test accuracy: trained on the majority label, on all annotations, on true labels.",
        "If you train a classifier anyway, give `CrowdClassifier` the annotations and not the vote. Expect "
        f"up to {max(gains.values()):.0f} points, and compare methods on your own data if they matter.",
        ", ".join(f"{n} {gains[n]:+.1f} points" for n in named),
    )


@question("tendency", "Can one predict what each annotator would say?")
def tendency(tables: Tables) -> Answer:
    short = tables["In short"]
    lead = sum(row["lowest log loss"] == "auto" for row in short)
    none = sum(row["significantly below auto's"] == "none" for row in short)
    closer = [row for row in short if row["auto closer?"] in ("yes", "no")]
    one = tables["lewidi_hs_brexit"]
    auto, shared = pick(one, method="auto"), pick(one, method="consensus")
    gain = {}
    for row in short:
        rows = tables[row["set"]]
        gain[row["set"]] = value(pick(rows, method="consensus")["log loss"]) - value(
            pick(rows, method="auto")["log loss"]
        )
    return Answer(
        (
            f"On {len(short)} sets of texts the default predicts single annotators with the lowest log "
            f"loss on {lead}, and no method is significantly better on {count(none, len(short))}.",
            f"Its log loss is below that of a model of the consensus on "
            f"{count(sum(one > 0 for one in gain.values()), len(gain))} sets, by "
            f"{min(gain.values()):.2f} to {max(gain.values()):.2f}; accuracy changes less (hs_brexit: "
            f"{shared['accuracy']} to {auto['accuracy']}).",
            f"Predicted annotators agree with each other as real ones do more closely than the consensus "
            f"on {sum(r['auto closer?'] == 'yes' for r in closer)} of {len(closer)} sets where this can "
            "be compared.",
        ),
        bars(list(gain.items()), "log loss saved beside a model of the consensus", ours=list(gain)),
        "What a model of single annotators saves in log loss, set by set.",
        "Where people differ in taste and not in care, model each of them: you keep minorities that a "
        "vote removes. Expect better probabilities rather than many more right labels.",
        f"log loss {min(gain.values()):.2f} to {max(gain.values()):.2f} below a consensus model",
        source="In short",
    )


@question("recovering", "From one label per item, how would people have split?")
def recovering(tables: Tables) -> Answer:
    rows = tables["All sets together"]
    auto, single, oracle, again = (
        pick(rows, method=name) for name in ("auto", "single", "ldl", "people asked again")
    )
    sets = tables["The default set by set"]
    better = sum(
        value(r["USQ auto"]) < min(value(r["USQ floor"]), value(r["USQ one network"])) for r in sets
    )
    votes = next(r for r in rows if r["method"].startswith("heads (10 strict seeds), votes"))
    return Answer(
        (
            f"From the majority label alone, `auto` predicts the split of people with a cross-entropy of "
            f"{auto['CE']}; one network has {single['CE']} and networks that learned the true shares "
            f"{oracle['CE']}.",
            f"So it closes {100 * value(auto['gap CE']):.0f} % of that gap, and is better than the floor "
            f"and one network on {count(better, len(sets))} sets.",
            f"Votes of an ensemble whose members differ only by their seed are far worse "
            f"({votes['CE']}), and asking people again is far better ({again['CE']}).",
        ),
        bars(
            [
                (name, value(pick(rows, method=name)["CE"]))
                for name in (
                    *("marginal", "single", "deep-ensemble (5)", "bagged-heads (10), mean"),
                    *("kernel-ridge", "auto", "ldl", "people asked again"),
                )
            ],
            "cross-entropy with the shares of people (less is better)",
            ours=["auto"],
        ),
        "Predicted splits, mean over sets; `ldl` was given the true shares, the others one label per item.",
        "With only final labels left you can still see which items people would dispute. For the exact "
        "split of one item, ask people.",
        f"{100 * value(auto['gap CE']):.0f} % of the gap to networks that saw the shares",
    )


@question("meta", "Can one learn a task from a few items with noisy annotators?")
def meta(tables: Tables) -> Answer:
    rows = tables["Network: clean; spammers: independent"]
    ours = next(row for row in rows if row["method"].endswith("*"))
    vote, clean = pick(rows, method="protonet-mv"), pick(rows, method="clean support")
    known = pick(rows, method="known matrices")
    scratch = pick(tables["Other ways to learn"], method="majority + regression")
    real = tables["labelme"]
    best, songs = (
        next(row for row in rows if row["adapter"].endswith("*"))
        for rows in (real, tables["music"])
    )
    ratios = [name for name in ours if name.startswith("ratio")]
    series = (
        ("ours", ours),
        ("majority, then prototypes", vote),
        ("annotators known", known),
        ("true labels", clean),
    )
    return Answer(
        (
            f"On new characters of Omniglot, five classes with one to five items each, the adapter chosen "
            f"on validation is right in {100 * value(ours['mean']):.1f} %, prototypes of the majority in "
            f"{100 * value(vote['mean']):.1f} %, and a regression without source tasks in "
            f"{100 * value(scratch['mean']):.1f} %.",
            f"With 70 % spammers it is {100 * value(ours['ratio 0.7']):.0f} % against "
            f"{100 * value(vote['ratio 0.7']):.0f} %; knowing every annotator exactly would give "
            f"{100 * value(known['ratio 0.7']):.0f} %.",
            f"With the real annotators of LabelMe and five items per class the gain over the majority is "
            f"{best['− mv at 5']} ({best['− mv at 50']} with 50), with those of the music set "
            f"{songs['− mv at 5']}.",
        ),
        curves(
            [
                (name, value(column.removeprefix("ratio")), 100 * value(row[column]))
                for name, row in series
                for column in ratios
            ],
            "share of spammers among the annotators",
            "accuracy, percent",
        ),
        "Accuracy on new tasks against the share of spammers.",
        "If you have labelled sets of a similar kind, `meta` gets more from a handful of items with noisy "
        "labels. The more items per class, the less there is to gain.",
        f"{100 * value(ours['mean']):.1f} % beside {100 * value(vote['mean']):.1f} % for the majority",
    )


@question("hard_items", "Can it find items that nobody could label, and does removing them help?")
def hard_items(tables: Tables) -> Answer:
    kinds = ("images", "gaussian")
    find = {kind: tables[f"Finding the ambiguous tenth: {kind}"] for kind in kinds}
    learn = {kind: tables[f"A classifier that learns without them: {kind}"] for kind in kinds}
    area = {
        kind: {r["score"]: value(r["area under the curve"]) for r in find[kind]} for kind in kinds
    }
    names = [
        *("waum", "aumc", "surprise", "GLAD's difficulty", "vote entropy"),
        "doubt (1 − confidence)",
    ]
    change = {kind: pick(learn[kind], learned_from="waum, alpha 0.01") for kind in kinds}
    return Answer(
        (
            f"WAUM, which watches a network learn, finds ambiguous items with an area under the curve of "
            f"{area['images']['waum']:.2f} on images and {area['gaussian']['waum']:.2f} on points.",
            f"The best score from labels alone reaches "
            f"{max(area['images'][n] for n in names[2:]):.2f} and "
            f"{max(area['gaussian'][n] for n in names[2:]):.2f}.",
            f"Training without the worst hundredth changes accuracy by "
            f"{100 * value(change['images']['change']):+.1f} ± "
            f"{100 * value(change['images']['95 % ±']):.1f} and "
            f"{100 * value(change['gaussian']['change']):+.1f} ± "
            f"{100 * value(change['gaussian']['95 % ±']):.1f} points.",
        ),
        bars(
            [(name, area["images"][name]) for name in names],
            "area under the curve, images (0.5 is random)",
            ours=["waum", "aumc"],
            zero=False,
        ),
        "How well scores separate ambiguous images from the others.",
        "Use WAUM to see which items to reword or drop, if you have inputs. Do not expect a much better "
        "classifier from dropping them.",
        f"area {area['images']['waum']:.2f} (WAUM) beside "
        f"{max(area['images'][n] for n in names[2:]):.2f} from labels alone",
    )


@question("crowdlab", "Does it give cleanlab's multi-annotator scores?")
def crowdlab(tables: Tables) -> Answer:
    rows = [row for row in tables["CROWDLAB"] if row["library"] == "dissensus"]
    apart = max(column(rows, "largest difference"))
    times = column(rows, "times faster")
    large = next(row for row in rows if row["what"] == "crowdlab" and row["size"] == "M")
    peer = next(
        row
        for row in tables["CROWDLAB"]
        if row["what"] == "crowdlab" and row["size"] == "M" and row["library"] == "cleanlab"
    )
    return Answer(
        (
            f"All scores of CROWDLAB and ActiveLab equal cleanlab's; the largest difference is {apart:.0e}.",
            f"They take {min(times):.0f} to {max(times):.0f} times less CPU.",
            f"A million labels need {large['CPU seconds']} s and {large['peak GiB']} GiB, in cleanlab "
            f"{peer['CPU seconds']} s and {peer['peak GiB']} GiB.",
        ),
        curves(
            [
                (
                    f"{row['what']}, {row['library']}",
                    value(row["answers"]),
                    value(row["CPU seconds"]),
                )
                for row in tables["CROWDLAB"]
            ],
            "labels",
            "CPU seconds",
            log="xy",
        ),
        "CPU time against the number of labels (logarithmic axes).",
        "If you use cleanlab with several annotators, change the import: the numbers stay.",
        f"equal to {apart:.0e}; {min(times):.0f} to {max(times):.0f} times faster",
    )


@question("adapter", "Do scripts for crowd-kit run unchanged, with the same labels?")
def adapter(tables: Tables) -> Answer:
    rows = tables["The same script"]
    cells = [value(row[name]) for row in rows for name in row if name != "set"]
    cells = [one for one in cells if one == one]
    tests = pick(tables["crowd-kit's own tests"], file="all")
    moved = tables["Where labels differ"]
    theirs, ours = (sum(column(moved, f"moved {who}")) for who in ("theirs", "ours"))
    names = [name for name in rows[0] if name != "set"]
    means = [(name, mean(v for row in rows if (v := value(row[name])) == v)) for name in names]
    return Answer(
        (
            f"After changing the import, {sum(one == 100 for one in cells)} of {len(cells)} pairs of "
            f"method and set give exactly the same labels, and the others {min(cells)} % or more.",
            f"Of crowd-kit's own tests that pass there, {tests['pass there and here']} of "
            f"{tests['pass there']} pass here; the others are explained one by one.",
            f"With rows shuffled and names changed, {theirs:.0f} of crowd-kit's labels move and {ours:.0f} "
            "of ours.",
        ),
        bars(means, "labels that are the same, percent, mean over sets", zero=False, ours=names),
        "The same script with another import: how many labels are equal.",
        "Change `crowdkit` to `dissensus.crowdkit` and run your tests. Labels differ on tied votes, "
        "where ours do not depend on the order of rows.",
        f"{tests['pass there and here']} of {tests['pass there']} of crowd-kit's tests pass",
        source="crowd-kit's own tests",
    )


@question(
    "recovery", "Are known answers recovered: simulated truth, printed tables, other programs?"
)
def recovery(tables: Tables) -> Answer:
    printed = tables["Seed 0"]
    same = [row for row in printed if row["method"] != "MV"]
    equal = sum(abs(value(row["here"]) - value(row["printed"])) < 0.0005 for row in same)
    better = sum(value(row["here"]) > value(row["printed"]) + 0.0005 for row in same)
    real = tables["Dawid-Skene on real data"]
    known = [
        row for row in real if value(row["as found elsewhere"]) == value(row["as found elsewhere"])
    ]
    apart = max(
        abs(value(row["log-likelihood"]) - value(row["as found elsewhere"])) for row in known
    )
    first = [row for row in tables["Table 1"] if value(row["accuracy"]) == value(row["accuracy"])]
    best = max(
        (row for row in first if not row["method"].startswith("(")),
        key=lambda row: value(row["accuracy"]),
    )
    ceiling = next(row for row in first if row["method"].startswith("("))
    vote = pick(first, method="majority")
    order = sorted(first, key=lambda row: -value(row["accuracy"]))
    return Answer(
        (
            f"Of {len(same)} accuracies printed in the article on peerannot, {equal} come out to the "
            f"printed digit and {better} higher.",
            f"On {len(known)} real sets Dawid–Skene reaches the log-likelihood that another program found, "
            f"to {apart:.3f}.",
            f"On simulated crowds with a confusion matrix for each annotator, `{best['method']}` is right in "
            f"{100 * value(best['accuracy']):.1f} %, the majority in {100 * value(vote['accuracy']):.1f} %, "
            f"and whoever knows the matrices in {100 * value(ceiling['accuracy']):.1f} %.",
        ),
        bars(
            [(row["method"], 100 * value(row["accuracy"])) for row in order],
            "accuracy, percent",
            ours=[best["method"]],
            zero=False,
        ),
        "Simulated crowds of independent annotators: all methods, and the ceiling.",
        "The methods are what their papers say. Where a figure differs from print, the table shows both.",
        f"{equal} of {len(same)} printed accuracies to the digit",
    )


@question("training", "Does training scale with annotators, and survive being killed?")
def training(tables: Tables) -> Answer:
    rows = tables["Step time"]
    ours = [row for row in rows if row["matrices"].startswith("rows")]
    each = next(row for row in rows if row["matrices"].startswith("a module"))
    same = next(row for row in ours if row["annotators"] == each["annotators"])
    killed = tables["Killed with -9"]
    equal = sum(row["final weights, bit for bit"] == "equal" for row in killed)
    two = tables["Loss with one and two processes"]
    apart = max(abs(value(row["one"]) - value(row["two"])) for row in two)
    return Answer(
        (
            f"A step with {ours[-1]['annotators']} annotators takes {ours[-1]['beside rows at 10']} times "
            f"one with 10, and a network for each of {each['annotators']} takes "
            f"{value(each['median ms a step']) / value(same['median ms a step']):.0f} times as long.",
            f"After being killed, {count(equal, len(killed))} runs ended with the same weights, bit for bit.",
            f"Two processes give the loss of one, to {apart:.0e}.",
        ),
        curves(
            [
                (row["matrices"], value(row["annotators"]), value(row["median ms a step"]))
                for row in rows
            ],
            "annotators",
            "milliseconds a step",
            log="xy",
        ),
        "Step time against the number of annotators (logarithmic axes).",
        "Train with thousands of annotators as with ten, and start again after a crash with the same "
        "command.",
        f"{ours[-1]['beside rows at 10']} times the step time at {ours[-1]['annotators']} annotators",
    )


@question("situations", "Which method fits my situation?")
def situations(tables: Tables) -> Answer:
    rows = tables["Accuracy in percent"]
    names = [name for name in rows[0] if name != "method"]
    best = {name: max(rows, key=lambda row: value(row[name])) for name in names}
    auto, vote = pick(rows, method="auto"), pick(rows, method="majority")
    behind = {name: value(best[name][name]) - value(auto[name]) for name in names}
    gain = {name: value(auto[name]) - value(vote[name]) for name in names}
    most, worst = max(gain, key=gain.get), max(behind, key=behind.get)
    return Answer(
        (
            f"Over {len(names)} simulated situations the default is right {mean(gain.values()):.1f} points "
            f"more often than the majority, most with “{most}” ({gain[most]:+.1f}).",
            f"It is {mean(behind.values()):.1f} points behind the best method for each situation on "
            f"average, at most {behind[worst]:.1f} (“{worst}”, where `{best[worst]['method']}` is best).",
            f"The best method differs: {len({row['method'] for row in best.values()})} methods are best "
            "in at least one situation.",
        ),
        intervals(
            [(n, value(auto[n]), value(vote[n]), value(best[n][n])) for n in names],
            "accuracy, percent: majority (left end) to best method (right end), dot: default",
            ours=names,
        ),
        "The default between the majority and the best method, by situation.",
        "Find your situation in the table. If your labels look like none of them, keep the default.",
        f"default {mean(gain.values()):+.1f} points on the majority, "
        f"{mean(behind.values()):.1f} behind the best",
    )


@question("peer_grading", "Do models of graders rank students' work better than the mean grade?")
def peer_grading(tables: Tables) -> Answer:
    ranks, errors = tables["Rank correlation"], tables["Root mean square"]
    gain = {row["course"]: value(row["against mean"]) for row in ranks}
    least, most = min(gain, key=gain.get), max(gain, key=gain.get)
    better = sum(
        value(row["against mean"]) > value(row["against mean"].partition("±")[2]) for row in ranks
    )
    less = [1 - value(row["peer-grading"]) / value(row["mean"]) for row in errors]
    return Answer(
        (
            f"On simulated courses `peer-grading` ranks better than the mean grade, beyond the interval of "
            f"the difference, in {count(better, len(ranks))} kinds of courses.",
            f"The gain in rank correlation is between {gain[least]:.3f} (“{least}”) and "
            f"{gain[most]:.3f} (“{most}”).",
            f"The error of a grade is {100 * min(less):.0f} to {100 * max(less):.0f} % smaller than that "
            "of the mean.",
        ),
        bars(
            [(row["course"], 100 * one) for row, one in zip(errors, less, strict=True)],
            "error of a grade below that of the mean, percent",
            ours=[row["course"] for row in errors],
        ),
        "How much smaller the error of a grade is than with the mean, by kind of course.",
        "If students grade each other, use `peer-grading` and not the mean: it corrects who is lenient and "
        "who is careless. With equal graders there is little to gain.",
        f"error of a grade {100 * min(less):.0f} to {100 * max(less):.0f} % below the mean's",
    )


@question("workbench", "Can reviewers rely on the workbench: its stop, its speed, its memory?")
def workbench(tables: Tables) -> Answer:
    stops = tables["A reviewer who knows the truth"]
    size, killed = tables["A million labels"], tables["Kills with -9"]
    holds = sum(row["holds"] == "yes" for row in stops)
    fine = sum(row["≤ 5 %"] == "yes" for row in stops)
    checked = sorted(value(row["checked"]) for row in stops)
    spent = pick(size, what="all 500 requests")["seen"]
    lost = pick(killed, what="of these lost")["seen"]
    kills = pick(killed, what="kills")["seen"]
    return Answer(
        (
            f"Where the workbench says stop at a target of 95 %, the target was reached on "
            f"{count(fine, len(stops))} sets, and the 90 % interval that it states holds the true "
            f"share of errors on {count(holds, len(stops))}.",
            f"That takes checks of {checked[len(checked) // 2]:.0f} % of the items in the median "
            f"({checked[0]:.0f} to {checked[-1]:.0f} %).",
            f"With a million labels, lists, filters and searches take {spent} ms (median / 95th "
            f"percentile); {kills} kills lost {lost} decisions that were acknowledged.",
        ),
        bars(
            [(row["set"], value(row["truly wrong"])) for row in stops],
            "labels that are wrong at the stop, in percent",
            ours=[row["set"] for row in stops],
        ),
        "True share of wrong labels where the workbench says stop; the target is 5 %.",
        "Follow the queue until it says stop; before that, it states how much is left.",
        f"the stated interval holds the true share of errors on {count(holds, len(stops))} sets",
        "A reviewer who knows the truth",
    )
