"""Several questions about one item, learned together."""
# ruff: noqa: E402

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")

from dissensus import Annotations
from dissensus.deep.nn.features import features_of
from dissensus.deep.tendency import FitOptions, qumatl
from dissensus.deep.tendency.classifier import TendencyClassifier
from dissensus.deep.tendency.maps import attention_maps
from dissensus.deep.tendency.qumatl import QuestionTendency
from dissensus.errors import DataError, MethodError, OptionError
from dissensus.registry import tendencies

from ..support import run

QUICK = "width=8,layers=1,heads=2,hidden=8,fc=8,fits=1,epochs=2"
SPECS = [f"query[{QUICK}]", f"query[{QUICK},self_attention=True]", f"query[{QUICK},offsets=False]",
         f"query[{QUICK},qformer=False]", f"qumatl[{QUICK},head_hidden=4]",
         f"query[{QUICK},ordinal=True]"]  # fmt: skip


def crowd(n_items=40):
    """Return tokens, a question of two classes by three people, and one of three by four."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_items, 4, 5)).astype(np.float32)
    safe = (x[:, 0, :3] > 0).astype(int)
    lively = np.digitize(x[:, 3, :4], [-0.5, 0.5])
    lively[rng.random(lively.shape) < 0.2] = -1
    return x, {"safe": safe, "lively": lively}


def joint(spec, **more):
    x, labels = crowd()
    features = features_of(x)
    people = [str(number) for number in range(4)]
    questions = [
        Annotations.from_matrix(each).with_codes(annotators=people) for each in labels.values()
    ]
    model = tendencies.create(spec).fit_questions(features, questions, FitOptions(**more))
    return model, features, questions


@pytest.mark.parametrize("spec", SPECS)
def test_every_question_has_distributions_over_its_own_classes(spec):
    model, features, _ = joint(spec)
    for number, n_classes in enumerate((2, 3)):
        log = QuestionTendency(model, number).log_proba(features)
        assert log.shape == (40, 4, n_classes)
        assert_allclose(np.exp(log).sum(axis=2), 1, atol=1e-6)


@pytest.mark.parametrize("offsets", [True, False])
def test_questions_share_the_query_and_have_their_own_classifiers(offsets):
    model, features, _ = joint(f"query[{QUICK},offsets={offsets}]")
    net = model.nets[0]
    assert net.queries.own.weight.shape == (4, 8)
    assert (net.queries.offsets is not None) == offsets
    assert net.n_queries == (8 if offsets else 4)
    maps = [attention_maps(QuestionTendency(model, each), features).values for each in (0, 1)]
    assert np.array_equal(*maps) != offsets
    before = QuestionTendency(model, 0).log_proba(features)
    with torch.no_grad():
        for value in net.heads.heads[1].parameters():
            value.add_(1.0)
    assert_array_equal(QuestionTendency(model, 0).log_proba(features), before)


def test_a_question_that_the_others_are_silent_about_is_learned_as_if_alone():
    """With offsets of zero and one question of five answered, the loss is that of the question."""
    features = features_of(crowd()[0])
    spec = f"query[{QUICK},dropout=0,offsets=False,self_attention=True]"
    given = Annotations.from_matrix(crowd()[1]["safe"])
    empty = given.keep(np.zeros(len(given), dtype=bool))
    alone = tendencies.create(spec).fit(features, given).nets[0]
    both = tendencies.create(spec).fit_questions(features, [given, empty], FitOptions()).nets[0]
    both.qformer.load_state_dict(alone.qformer.state_dict())
    both.tokens.load_state_dict(alone.tokens.state_dict())
    both.fc.load_state_dict(alone.fc.state_dict())
    both.heads.heads[0].load_state_dict(alone.heads.state_dict())
    both.queries.load_state_dict(alone.queries.state_dict())
    x = alone.split(features.rows[np.arange(5)])
    row, annotator = torch.arange(5).repeat_interleave(3), torch.arange(3).repeat(5)
    with torch.no_grad():
        assert_allclose(
            both.log_given(x, row, annotator), alone.log_given(x, row, annotator), atol=1e-6
        )


def test_consistency_pulls_the_answers_of_an_annotator_together():
    x, labels = crowd(60)
    questions = [Annotations.from_matrix(each) for each in (labels["safe"], 1 - labels["safe"])]
    features, apart = features_of(x), []
    for weight in (0, 20):
        spec = f"query[{QUICK.replace('epochs=2', 'epochs=30')},lr=0.01,consistency={weight}]"
        model = tendencies.create(spec).fit_questions(features, questions, FitOptions())
        one, two = (QuestionTendency(model, number).log_proba(features) for number in (0, 1))
        apart.append(np.abs(np.exp(one) - np.exp(two)).mean())
    assert apart[1] < apart[0] / 2
    with pytest.raises(MethodError, match="the same classes"):
        joint(f"query[{QUICK},consistency=1]")


@pytest.mark.parametrize("apart", [False, True])
def test_a_step_has_as_many_labels_of_all_questions_as_it_would_have_of_one(monkeypatch, apart):
    """Five questions about the same items have five times the steps; about others, as many."""
    batches = []
    monkeypatch.setattr(qumatl, "train", lambda net, _, settings, **more: batches.append(settings))
    asked = np.arange(50) % 5 if apart else np.zeros(50, dtype=int)
    labels = np.random.default_rng(0).integers(2, size=(5, 50, 3))
    labels = np.where((asked == np.arange(5)[:, None])[:, :, None] | (not apart), labels, -1)
    questions = [Annotations.from_matrix(each, classes=range(2)) for each in labels]
    features = features_of(np.zeros((50, 2, 3), dtype=np.float32))
    tendencies.create(f"query[{QUICK}]").fit_questions(features, questions, FitOptions())
    assert [each.batch for each in batches] == [32 if apart else 6]


def test_queries_of_several_questions_do_not_attend_to_each_other_by_default():
    for spec, expected in (SPECS[0], False), (SPECS[1], True):
        assert joint(spec)[0].nets[0].sizes.shape.self_attention == expected


def test_queries_of_several_questions_get_tokens_at_full_scale_and_more_shrinkage():
    """Small first weights would hide directions of the tokens that only one question needs."""
    spec = SPECS[0].replace("epochs=2", "epochs=1,lr=1e-9")
    model, features, questions = joint(spec)
    alone = tendencies.create(spec).fit(features, questions[0])
    passed = []
    for net in (model.nets[0], alone.nets[0]):
        cross = net.qformer.layers[0].cross
        x = torch.randn(1000, 5, generator=torch.Generator().manual_seed(0))
        passed.append(float((x @ cross.value.weight.T @ cross.out.weight.T).std().detach()))
    assert 0.5 < passed[0] < 2
    assert passed[1] < 0.01
    assert [net.shrink for net in (model.nets[0], alone.nets[0])] == [3.0, 0.1]
    assert joint(SPECS[0].replace("]", ",shrink=0.5]"))[0].nets[0].shrink == 0.5


def test_the_estimator_asks_one_question_after_the_other(tmp_path):
    x, labels = crowd()
    model = TendencyClassifier(SPECS[0]).fit(x, labels)
    assert model.questions_ == ["safe", "lively"]
    assert model.annotators_.tolist() == ["0", "1", "2", "3"]
    with pytest.raises(DataError, match=r"choose one by question\('safe'\)"):
        model.predict(x)
    with pytest.raises(OptionError, match="no question 'clean'; there is safe, lively"):
        model.question("clean")
    model.save(tmp_path / "model")
    again = TendencyClassifier.load(tmp_path / "model")
    for name, classes in (("safe", [0, 1]), ("lively", [0, 1, 2])):
        one, other = model.question(name), again.question(name)
        assert one.classes_.tolist() == other.classes_.tolist() == classes
        assert one.classes_.dtype == other.classes_.dtype == labels[name].dtype
        proba = one.predict_annotator_proba(x)
        assert proba.shape == (40, 4, len(classes))
        assert_array_equal(other.predict_annotator_proba(x), proba)
        assert set(one.predict(x).tolist()) <= set(classes)
        given = Annotations.from_matrix(labels[name])
        assert other.evaluate(x, given).count.sum() == len(given)
        with pytest.raises(MethodError, match="save the model of all of them"):
            one.save(tmp_path / "part")
        with pytest.raises(MethodError, match="cannot add an annotator"):
            one.add_annotator(x[:2], [0, 1], "new")
    assert model.fit(x, labels["safe"]).questions_ == []
    assert model.predict(x).shape == (40,)


def test_methods_without_queries_learn_one_question_at_a_time():
    x, labels = crowd()
    with pytest.raises(MethodError, match="one question at a time; query and qumatl"):
        TendencyClassifier("own-majority").fit(x, labels)
    with pytest.raises(MethodError, match="votes are of one question"):
        TendencyClassifier(f"qumatl[{QUICK},votes=after]").fit(x, labels)
    with pytest.raises(DataError, match="no questions"):
        TendencyClassifier(SPECS[0]).fit(x, {})


def test_the_command_fits_predicts_and_scores_several_questions(tmp_path):
    x, labels = crowd()
    rows = [["item", "annotator", "question", "label"]]
    for question, table in labels.items():
        for item, annotator in np.argwhere(table >= 0).tolist():
            rows.append([f"i{item}", f"p{annotator}", question, f"c{table[item, annotator]}"])
    rows = [row for row in rows if row[2] != "safe" or row[0] != "i7"]  # nobody answered
    with (tmp_path / "answers.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(rows)
    np.savez(tmp_path / "x.npz", x=x, items=[f"i{item}" for item in range(40)])
    done = run("tendency", "fit", "answers.csv", "--inputs", "x.npz", "--question", "safe,lively",
               "-s", SPECS[0], "-o", "model", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["questions"], found["n_items"]) == (["safe", "lively"], 40)
    assert (found["n_annotators"], found["n_labels"]) == (4, len(rows) - 1)
    done = run("tendency", "predict", "model", "x.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert b"--question chooses one of safe, lively" in done.stderr
    done = run("tendency", "predict", "model", "x.npz", "--question", "lively", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == b"item,annotator,label,confidence,p:c0,p:c1,p:c2"
    assert len(done.stdout.splitlines()) == 1 + 40 * 4
    done = run("tendency", "evaluate", "answers.csv", "--inputs", "x.npz", "--load", "model",
               "--question", "safe", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"own-majority", "consensus", SPECS[0]}
