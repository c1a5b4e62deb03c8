"""Every kind of answers and every verb: files, recognition, scores and what is refused."""

import json
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import dissensus as ds
from dissensus.answers import KINDS, Boxes, Masks, Points, Rankings, Sets, Spans, Texts, kind_class
from dissensus.errors import DataError, OptionError
from dissensus.formats import examine, read_truth
from dissensus.metrics import agree, evaluate
from dissensus.metrics.distances import disorder

from ..support import run as run_command
from ..support import shared_path


class Ended(NamedTuple):
    """How a command ended, in text."""

    code: int
    out: str
    err: str


def run(*arguments):
    code, out, err = run_command(*arguments)
    return Ended(code, out.decode(), err.decode())


def small(kind):
    """Return answers of a kind by four annotators on six items, some of them empty."""
    rng = np.random.default_rng(3)
    item = [f"i{i}" for i in range(6) for _ in range(4)]
    annotator = [f"w{j}" for _ in range(6) for j in range(4)]
    values = []
    for row in range(24):
        empty, at = row % 11 == 10, int(rng.integers(0, 3))
        match kind:
            case "spans":
                value = [] if empty else [{"start": at, "end": at + 3, "label": "AB"[row % 2]}]
            case "boxes":
                value = [] if empty else [{"x": 10 + at, "y": 5, "w": 20.5, "h": 30, "label": "a"}]
            case "points":
                value = [] if empty else [{"x": 100 + at, "y": 50}, {"x": 1, "y": 2 + at}]
            case "masks":
                counts = [12] if empty else [2 + at, 5, 5 - at]
                value = {"size": [3, 4], "counts": counts}
            case "sets":
                value = [] if empty else ["cat", "dog|wolf", "a;b"][: 1 + at]
            case "rankings":
                things = [{"value": "x y", "rank": 1 + at % 2}, {"value": "b", "rank": 1}]
                value = [] if empty else [*things, {"value": "c", "rank": 3}]
            case "texts":
                value = "" if empty else f"the cat sat, {'on' if at else 'in'} the “mat”"
        values.append(value)
    return kind_class(kind).from_values(item, annotator, values)


def write_inputs(tmp_path):
    """Write a table with the sizes of images."""
    path = tmp_path / "tasks.csv"
    path.write_text("item,height,width\n" + "".join(f"i{i},3,4\n" for i in range(6)))
    return path


CLASS_KINDS = {
    "single": "item,annotator,label\n"
    + "".join(f"i{r // 4},w{r % 4},{'ab'[r % 3 % 2]}\n" for r in range(24)),
    "ordinal": "item,annotator,label\n"
    + "".join(f"i{r // 4},w{r % 4},{1 + (r // 4 + r % 2) % 5}\n" for r in range(24)),
    "numeric": "item,annotator,label\n"
    + "".join(f"i{r // 4},w{r % 4},{r // 4 + 0.1 * (r % 4)}\n" for r in range(24)),
}
VERBS = ("aggregate", "agree", "identify", "compare", "next", "check", "convert", "evaluate")
# Pairs that do not exist, and why.
MISSING = {
    ("watch", "spans"): "its state counts labels; a consensus is fitted to all answers at once"
}


@pytest.mark.parametrize("kind", [*CLASS_KINDS, *KINDS])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_works_on_every_kind(verb, kind, tmp_path):
    path = tmp_path / "answers.csv"
    if kind in CLASS_KINDS:
        path.write_text(CLASS_KINDS[kind])
    else:
        ds.write(small(kind), path)
    options = ["--kind", kind] if kind in CLASS_KINDS else []
    out = tmp_path / "out.csv"
    if verb == "convert":
        done = run("convert", path, tmp_path / "copy.jsonl", *options)
    elif verb == "evaluate":
        assert run("aggregate", path, "-o", out, *options).code == 0
        truth = tmp_path / "truth.csv"
        if kind in CLASS_KINDS:
            truth.write_text(
                "item,label\ni0,1\ni1,2\n" if kind != "single" else "item,label\ni0,a\n"
            )
        else:
            ds.write(first_answers(small(kind)), truth)
        chosen = ["--kind", kind] if kind in KINDS else []
        sizes = ["--inputs", write_inputs(tmp_path)] if kind == "masks" else []
        done = run("evaluate", out, "--truth", truth, *chosen, *sizes)
    else:
        done = run(verb, path, *options)
    if (verb, kind) in MISSING:
        assert done.code == 2
        assert MISSING[verb, kind].split()[-1] in done.err
        return
    assert done.code == 0, done.err
    if kind in KINDS:
        assert kind in done.err, "the kind is named"


def first_answers(answers):
    """Return the answers of the first annotator alone."""
    return answers.subset(annotators=["w0"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet", "arrow", "csv.gz"])
def test_what_is_written_is_read_again_with_empty_answers(kind, ending, tmp_path):
    answers, path = small(kind), tmp_path / f"answers.{ending}"
    ds.write(answers, path)
    again = ds.read(path)
    assert type(again) is type(answers)
    assert again.to_rows() == answers.to_rows()
    assert int(again.empty.sum()) == 2


def test_comparisons_keep_the_shown_order_and_empty_answers(tmp_path):
    left, right, winner = ["a", "b", "c"], ["b", "c", "a"], ["right", "tie", "c"]
    answers = Rankings.from_comparisons("pqr", "xyx", left, right, winner)
    answers = answers.merge(Rankings.from_values(["p"], ["z"], [[]]))
    ds.write(answers, tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().splitlines()[0] == "item,annotator,left,right,winner"
    assert ds.read(tmp_path / "c.csv").to_rows() == answers.to_rows()


def kind_of(text, tmp_path, **given):
    path = tmp_path / "table.csv"
    path.write_text(text)
    found = examine(path, **given)
    return found.answers.kind


@pytest.mark.parametrize(
    ("header", "rows", "kind"),
    [
        ("start,end", ["0,2", "1,2", ","], "spans"),
        ("start,end,label", ["0,2,PER", "0,2,PER", ",,"], "spans"),
        ("x,y,w,h", ["1,2,3,4"] * 3, "boxes"),
        ("x,y,width,height,label", ["1,2,3,4,a", "2,2,3,4,a", "1,1,3,4,b"], "boxes"),
        ("xmin,ymin,xmax,ymax", ["1,2,3,4"] * 3, "boxes"),
        ("xtl,ytl,xbr,ybr", ["1,2,3,4"] * 3, "boxes"),
        ("x,y", ["1,2"] * 3, "points"),
        ("left,right,winner", ["a,b,a", "a,b,tie", "a,c,right"], "rankings"),
        ("left,right,label", ["a,b,a", "a,b,tie", "a,c,c"], "rankings"),
        ("ranking", ["a b c", "b a c", "c a b"], "rankings"),
        ("order", ["a b c", "b a c", "c a b"], "rankings"),
        ("labels", ["a|b", "a", ""], "sets"),
        ("labels", ["a;b", "a", ""], "sets"),
        ("text", ["one two", "two three", ""], "texts"),
        ("transcription", ["one two", "two three", ""], "texts"),
    ],
)
def test_the_kind_is_recognised_by_the_columns(header, rows, kind, tmp_path):
    lines = [f"item,annotator,{header}", *(f"i,w{n},{row}" for n, row in enumerate(rows))]
    assert kind_of("\n".join(lines) + "\n", tmp_path) == kind


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("label,text", ["cat,what is it", "dog,what is it", "cat,what is it"]),
        ("label,start,end", ["cat,3,14", "dog,20,31", "cat,5,9"]),
        ("label,start,end", ["cat,1700000000,1700000009"] * 3),
        ("label,start,end", ["cat,2026-01-01 10:00,2026-01-01 10:01"] * 3),
        ("label,start,end", ["cat,0.5,1.25", "dog,1.5,2.5", "dog,0.5,1.25"]),
        ("label,order", ["cat,1", "dog,2", "cat,3"]),
        ("label,x,y", ["cat,0.1,0.2", "dog,0.1,0.2", "cat,0.1,0.2"]),
        ("label,left,right", ["cat,eye1.png,eye2.png", "dog,eye1.png,eye2.png"]),
        ("label,counts", ["cat,3", "dog,4"]),
    ],
)
def test_a_column_of_classes_keeps_the_others_what_they_are(header, rows, tmp_path):
    lines = [f"item,annotator,{header}", *(f"i,w{n},{row}" for n, row in enumerate(rows))]
    assert kind_of("\n".join(lines) + "\n", tmp_path) == "classes"


def test_the_kind_can_be_given(tmp_path):
    text = "item,annotator,label\na,x,the cat sat on it\na,y,the cat sat on that\n"
    assert kind_of(text, tmp_path) == "classes"
    assert kind_of(text, tmp_path, kind="text") == "texts"
    assert kind_of("item,annotator,labels\na,x,b|c\na,y,b\n", tmp_path, kind="single") == "classes"
    with pytest.raises(OptionError, match="no kind 'sounds'"):
        kind_of(text, tmp_path, kind="sounds")
    with pytest.raises(DataError, match="no spans in it"):
        kind_of(text, tmp_path, kind="spans")


def test_free_text_taken_for_classes_is_refused_with_the_way_out(tmp_path):
    rng = np.random.default_rng(0)
    words = [" ".join(map(str, rng.integers(0, 10**6, 6))) for _ in range(40_000)]
    table = pl.DataFrame(
        {
            "item": [str(n // 4) for n in range(40_000)],
            "annotator": [str(n % 4000) for n in range(40_000)],
            "label": words,
        }
    )
    table.write_csv(tmp_path / "t.csv")
    done = run("aggregate", tmp_path / "t.csv", "-s", "dawid-skene")
    assert done.code == 2
    assert "every answer seems to be a class of its own; --kind text finds" in done.err


def test_assigned_supplies_empty_answers(tmp_path):
    (tmp_path / "m.csv").write_text("item,annotator,start,end\na,x,0,2\n")
    (tmp_path / "who.csv").write_text("item,annotator\na,x\na,y\nb,x\n")
    done = examine(tmp_path / "m.csv")
    assert any("assigned='FILE'" in note for note in done.notes)
    answers = ds.read(tmp_path / "m.csv", assigned=tmp_path / "who.csv")
    assert [len(row["spans"]) for row in answers.to_rows()] == [1, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "item,annotator,start,end\na,x,0,2\na,y,5,3\n",
            "line 3: no mark can be at start 5, end 3",
        ),
        ("item,annotator,start,end\na,x,0,2\na,y,-1,3\n", "line 3: no mark can be at start -1"),
        ("item,annotator,start,end\na,x,0,\n", "line 2: a mark without end"),
        ("item,annotator,start,end\na,x,one,2\n", "line 2: start is 'one', not a whole number"),
        ("item,annotator,start,end\na,x,0.5,2\n", "line 2: start is '0.5', not a whole number"),
        ("item,annotator,start,end\na,x,0,2\na,y\n", "line 3: 2 fields, but the header has 4"),
        ("item,annotator,start,end\n,x,0,2\n", "line 2: no item"),
        ("item,annotator,start,end,label\na,x,,,PER\na,y,1,2,PER\n", "line 2: the label 'PER' wit"),
        ("item,annotator,x,y,w,h\na,x,1,1,-3,4\n", "line 2: no mark can be at"),
        ("item,annotator,x,y,w,h\na,x,1,1,inf,4\n", "line 2: no mark can be at"),
        ("item,annotator,counts,height,width\na,x,1 2 3,2,2\n", "line 2: the counts add up to 6"),
        ("item,annotator,counts,height,width\na,x,1 2 1,2,2\na,y,9 -5,2,2\n", "masks"),
        ("item,annotator,counts\na,x,1 2 1\n", "--inputs FILE with height and width"),
        ("item,annotator,left,right,winner\na,x,p,q,p\na,y,p,q,r\n", "line 3: the winner 'r' is"),
        ("item,annotator,ranking\na,x,p q p\n", "line 2: 'p' is ranked twice"),
    ],
)
def test_bad_rows_are_named(text, message, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    kind = "masks" if "counts" in text else "auto"
    done = run("aggregate", tmp_path / "bad.csv", "--kind", kind)
    assert done.code == 2
    assert "Traceback" not in done.err
    if message != "masks":
        assert message in done.err


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"item": "a", "annotator": "x", "spans": [{"start": 3, "end": 1}]}, "line 2: no mark"),
        ({"item": "a", "annotator": "x", "spans": "none"}, "line 2: spans is a list"),
        ({"item": "a", "annotator": "x"}, "line 2: no spans"),
        ({"item": "a", "spans": []}, "line 2: no annotator"),
        ({"item": None, "annotator": "x", "spans": []}, "line 2: item is None, not a name"),
        ({"item": "a", "annotator": "x", "spans": [5]}, "line 2: spans are a list of marks"),
    ],
)
def test_bad_records_are_named(record, message, tmp_path):
    good = {"item": "a", "annotator": "w", "spans": [{"start": 0, "end": 1}]}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(record)}\n")
    with pytest.raises(DataError, match=message):
        examine(tmp_path / "a.jsonl", kind="spans")


def test_markup_and_formulas_in_texts_stay_texts(tmp_path):
    evil = ["=1+1 <script>", "\x1b[31m red", 'a "quoted", line\nbreak', "", "né|;>"]
    texts = Texts.from_values(["a"] * 5, "vwxyz", evil)
    for ending in ("csv", "jsonl"):
        ds.write(texts, tmp_path / f"t.{ending}")
        assert ds.read(tmp_path / f"t.{ending}").to_rows() == texts.to_rows()
    done = run("identify", tmp_path / "t.csv", "--items")
    assert "\x1b[31m" not in done.out


def test_sides_and_sizes_come_from_a_side_table(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n0,x,a1\n0,y,a2\n1,x,equal\n")
    (tmp_path / "t.csv").write_text("task,arg1,arg2\n0,p,q\n1,q,r\n")
    found = ds.read(tmp_path / "a.csv", kind="comparisons", inputs=tmp_path / "t.csv")
    assert found.pairs().outcome.tolist() == [0, 1, 2]
    assert found.things.tolist() == ["p", "q", "r"]


def test_scores_of_a_perfect_consensus_are_perfect():
    for kind in KINDS:
        one = first_answers(small(kind))
        scores = evaluate(one, one, resamples=20).scores
        for name, score in scores.items():
            assert score.value == pytest.approx(0.0 if name == "wer" else 1.0), (kind, name)


def test_spans_are_scored_by_hand():
    truth = Spans.from_columns("aab", "ttt", [0, 5, None], [2, 7, None], label=["P", "L", None])
    given = Spans.from_columns("aab", "ccc", [0, 5, 1], [2, 8, 2], label=["P", "L", "P"])
    scores = evaluate(given, truth, resamples=0).scores
    assert scores["f1"].value == pytest.approx(2 / 5)
    assert scores["precision"].value == pytest.approx(1 / 3)
    assert scores["recall"].value == pytest.approx(1 / 2)
    assert scores["overlap_f1"].value == pytest.approx(4 / 5)


def test_word_errors_are_counted_by_hand():
    truth = {"a": "the cat sat", "b": "on the mat"}
    given = Texts.from_values("ab", "cc", ["the cat", "on a big mat"])
    assert evaluate(given, truth, resamples=0).scores["wer"].value == pytest.approx(3 / 6)


def test_alpha_of_classes_as_sets_of_one_is_krippendorffs():
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 3, (30, 4))
    item, who = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    sets = Sets.from_values(item, who, [[str(v)] for v in matrix.ravel()])
    annotations = ds.Annotations.from_columns(item, who, matrix.ravel())
    found = agree(sets, resamples=0)["observed"].value
    percent = agree(annotations, "percent", resamples=0)["percent"].value
    assert found == pytest.approx(1 - percent)
    option = agree(sets, resamples=0)["option_alpha"].value
    per_class = [
        agree(ds.Annotations.from_columns(item, who, matrix.ravel() == k), "alpha", resamples=0)
        for k in range(3)
    ]
    mean = np.mean([one["alpha"].value for one in per_class])
    assert option == pytest.approx(mean)


def test_token_alpha_is_that_of_tokens_one_by_one():
    spans = small("spans")
    rows = []
    for row in spans.to_rows():
        last = max(
            m["end"] for r in spans.to_rows() if r["item"] == row["item"] for m in r["spans"]
        )
        for token in range(last):
            label = [m["label"] for m in row["spans"] if m["start"] <= token < m["end"]]
            rows.append((f"{row['item']} {token}", row["annotator"], label[0] if label else "O"))
    expected = agree(ds.Annotations.from_columns(*zip(*rows, strict=True)), "alpha", resamples=0)
    found = agree(spans, resamples=0)["token_alpha"].value
    assert found == pytest.approx(expected["alpha"].value)


def test_disorder_is_the_cost_of_the_best_alignment():
    spans = Spans.from_columns("aaa", "xxy", [0, 10, 1], [4, 14, 4], label=["P", "P", "P"])
    cost = disorder(spans, spans.place, np.array([0]), np.array([1]))
    assert cost.tolist() == pytest.approx([(1 + (1 / 7) ** 2) / 1.5])


def test_equal_answers_agree_fully():
    for kind in KINDS:
        values = small(kind).values()[:3]
        items = [f"i{i}" for i in range(3) for _ in range(2)]
        same = kind_class(kind).from_values(
            items, ["x", "y"] * 3, [v for v in values for _ in "xy"]
        )
        found = agree(same, resamples=10)
        assert found["alpha"].value == 1.0, kind
        assert found["observed"].value == 0.0, kind


def test_a_silent_and_a_careless_annotator_are_found():
    boxes = ds.simulate("objects", n_items=60, n_annotators=8, seed=1).answers
    rows = [row for row in boxes.to_rows() if row["annotator"] != "0"]
    silent = [{"item": str(i), "annotator": "0", "boxes": []} for i in range(60)]
    found = ds.identify(Boxes.from_rows([*rows, *silent]))
    assert (
        dict(zip(found.annotators["annotator"].tolist(), found.verdict.tolist(), strict=True))["0"]
        == "misses marks"
    )
    drawn = ds.simulate("comparisons[careless=0.3,things=10]", n_items=200, n_annotators=10, seed=2)
    verdict = ds.identify(drawn.answers).verdict.tolist()
    careless = [word == "careless" for word in verdict]
    assert careless == drawn.crowd["careless"].tolist()


def test_few_answers_give_no_verdict():
    found = ds.identify(ds.simulate("sets", n_items=4, n_annotators=5).answers)
    assert set(found.verdict.tolist()) == {"too few answers"}


def test_the_most_contested_item_is_shown_again_first():
    texts = Texts.from_values(list("aabb"), list("xyxy"), ["one two", "one two", "red", "blue"])
    table = ds.plan(texts, budget=1).table
    assert table["item"].tolist() == ["b"]
    assert int(ds.plan(texts, budget=7).table["more"].sum()) == 7
    assert int(ds.plan(texts, budget=7, per_item=3).table["more"].sum()) == 2


def test_better_methods_score_better_on_simulated_boxes():
    drawn = ds.simulate("objects", n_items=40, n_annotators=10, feedback=5)
    found = ds.compare(drawn.answers, ["objects", "majority"], truth=drawn.truth)
    score = {one.method: one.evaluation.scores["f1_50"].value for one in found.methods}
    assert score["objects"] > score["majority"] > 0.5
    assert found.n_scored > 20


@pytest.mark.parametrize("strategy", ["objects", "comparisons", "masks", "sets"])
def test_simulated_answers_are_written_with_their_truth(strategy, tmp_path):
    folder = tmp_path / "drawn"
    done = run("simulate", "-s", strategy, "--n-annotators", 5, "--n-items", 9, "--folder", folder)
    assert done.code == 0, done.err
    answers = ds.read(folder / "answers.csv")
    same = ds.simulate(strategy, n_annotators=5, n_items=9).answers
    assert answers.to_rows() == same.to_rows()
    known = read_truth(folder / "truth.csv", kind=answers.kind)
    assert len(known) == (20 if strategy == "comparisons" else 9)


def test_a_saved_consensus_is_converted(tmp_path):
    ds.write(small("spans"), tmp_path / "s.csv")
    assert run("aggregate", tmp_path / "s.csv", "--save", tmp_path / "r", "-o", "-").code == 0
    assert run("convert", tmp_path / "r", tmp_path / "c.jsonl").code == 0
    agreed = ds.read(tmp_path / "c.jsonl")
    assert agreed.to_rows() == ds.AnswerAggregation.load(tmp_path / "r").truth.to_rows()


def test_favouring_recall_keeps_more_marks(tmp_path):
    drawn = ds.simulate("objects[clutter=1]", n_items=30, n_annotators=6, seed=4)
    ds.write(drawn.answers, tmp_path / "b.csv")
    sizes = [
        len(run("aggregate", tmp_path / "b.csv", *more).out.splitlines())
        for more in ([], ["--favour", "recall"])
    ]
    assert sizes[0] <= sizes[1]
    (tmp_path / "t.csv").write_text("item,annotator,text\na,x,b c\na,y,b d\n")
    assert "--favour is for marks" in run("aggregate", tmp_path / "t.csv", "--favour", "recall").err


def test_known_answers_are_kept_as_gold(tmp_path):
    ds.write(small("sets"), tmp_path / "s.csv")
    (tmp_path / "g.csv").write_text('item,labels\ni0,"[""a;b""]"\n')
    done = run("aggregate", tmp_path / "s.csv", "--gold", tmp_path / "g.csv")
    assert done.code == 0, done.err
    first = done.out.splitlines()[1]
    assert first.startswith("i0,a;b,1.0")


def test_sets_are_known_by_their_options(tmp_path):
    (tmp_path / "t.csv").write_text("task,label,present\na,cat,1\na,dog,0\nb,cat,0\nb,dog,0\n")
    assert read_truth(tmp_path / "t.csv", kind="sets").values() == [["cat"], []]


def test_the_agreement_of_the_specification_is_reached():
    boxes = agree(ds.read(shared_path("boxes_people") / "answers.csv.gz"), resamples=0)
    assert boxes["f1_50"].value == pytest.approx(0.646, abs=5e-4)
    assert boxes["alpha"].value == pytest.approx(0.498, abs=5e-3)
    spans = agree(ds.read(shared_path("ner_conll") / "answers.csv.gz"), resamples=0)
    assert spans["span_f1"].value == pytest.approx(0.460, abs=5e-4)
    sets = agree(ds.read(shared_path("relations_sets") / "answers.csv.gz"), resamples=0)
    assert sets["alpha"].value == pytest.approx(0.413, abs=5e-3)
    assert sets["option_alpha"].value == pytest.approx(0.478, abs=5e-4)


def test_points_and_masks_keep_the_sizes_of_images(tmp_path):
    points = Points.from_columns("aab", "xyx", [0, 1, 9], [0, 0, 8], size={"a": (40, 30)})
    ds.write(points, tmp_path / "p.csv")
    assert ds.read(tmp_path / "p.csv") == points
    masks = Masks.from_columns("aa", "xy", ["1 2 1", ""], size={"a": (2, 2)})
    ds.write(masks, tmp_path / "m.csv")
    assert ds.read(tmp_path / "m.csv") == masks
