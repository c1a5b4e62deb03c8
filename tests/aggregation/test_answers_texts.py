"""Texts: tokens, edit distances, ROVER and the choice between it and the medoid."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.aggregation import aggregate
from dissensus.answers import Texts
from dissensus.answers.texts import plain_word, tokens_of

from ..support import shared_path


def plain_edits(one, other) -> int:
    """The textbook table, cell by cell."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        new = [i]
        for j, b in enumerate(other, 1):
            new.append(min(new[-1] + 1, row[j] + 1, row[j - 1] + (a != b)))
        row = new
    return row[-1]


def word_errors(written: list[str], references: list[str]) -> float:
    """Edits of words over words of the reference, by the textbook table."""
    edits = total = 0
    for one, other in zip(written, references, strict=True):
        words = [[w for w in map(plain_word, text.split()) if w] for text in (one, other)]
        edits += plain_edits(*words)
        total += len(words[1])
    return 100 * edits / total


@given(st.lists(st.text("ab c", max_size=12), min_size=2, max_size=8))
def test_distances_are_those_of_the_textbook(texts):
    answers = Texts.from_values(["i"] * len(texts), [f"a{n}" for n in range(len(texts))], texts)
    first, second = answers.within_item_pairs()
    words = [text.split() for text in texts]
    expected = [
        plain_edits(words[a], words[b]) / max(len(words[a]), len(words[b]), 1)
        for a, b in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(answers.distance(first, second), expected)


def test_case_and_punctuation_do_not_count():
    tokens = tokens_of(["Don’t stop!", "don't  STOP", "— don't 'stop'"])
    assert tokens.sizes.tolist() == [2, 2, 2]
    assert len(set(tokens.word.tolist())) == 2


def test_languages_without_blanks_are_cut_into_characters():
    texts = Texts.from_values(["i"] * 3, list("abc"), ["今日は天気がとてもいいですね"] * 3)
    assert texts.tokens.unit == "character"
    assert aggregate(texts).items["text"].tolist() == ["今日は天気がとてもいいですね"]


def test_every_slot_takes_the_word_of_most():
    texts = ["the cat sat on a mat", "the bat sat on the mat", "a cat sat on the mat"]
    answers = Texts.from_values(["i"] * 3, list("abc"), texts)
    assert aggregate(answers, "rover").items["text"].tolist() == ["the cat sat on the mat"]


def test_a_word_that_one_adds_is_left_out_and_one_that_one_misses_is_kept():
    texts = ["we came upon a village", "we came upon a small village", "we came a village"]
    answers = Texts.from_values(["i"] * 3, list("abc"), texts)
    assert aggregate(answers, "rover").items["text"].tolist() == ["we came upon a village"]


def test_the_most_frequent_spelling_is_written():
    texts = ["I saw Rome.", "i saw Rome.", "I saw rome", "I saw Rome."]
    answers = Texts.from_values(["i"] * 4, list("abcd"), texts)
    assert aggregate(answers, "rover").items["text"].tolist() == ["I saw Rome."]


def test_all_agree_one_annotator_and_empty_answers():
    same = Texts.from_values(["i"] * 4, list("abcd"), ["one two"] * 4)
    assert aggregate(same, "rover").confidence.tolist() == [1.0]
    single = aggregate(Texts.from_values(["i"], ["a"], ["one two"]))
    assert single.items["text"].tolist() == ["one two"]
    assert any("one annotator" in note for note in single.notes)
    nothing = aggregate(Texts.from_values(["i", "i"], ["a", "b"], ["", " "]), "rover")
    assert nothing.items["text"].tolist() == [""]


def test_careless_annotators_weigh_less():
    rng = np.random.default_rng(0)
    vocabulary = [f"w{n}" for n in range(200)]
    rows = []
    for item in range(80):
        words = rng.choice(vocabulary, 12).tolist()
        for who in range(6):
            wrong = 0.6 if who < 3 else 0.1
            given = [w if rng.random() > wrong else str(rng.choice(vocabulary)) for w in words]
            rows.append((f"i{item:02d}", f"a{who}", " ".join(given)))
    answers = Texts.from_values(*map(list, zip(*rows, strict=True)))
    annotators = aggregate(answers, "rover").annotators
    for column in ("accuracy", "weight"):
        assert annotators[column][3:].min() > annotators[column][:3].max()


def test_order_and_names_do_not_matter():
    frame = [
        (f"i{n % 5}", f"a{n // 5}", f"word{n % 3} and word{n % 4} or {n % 7}") for n in range(40)
    ]
    one = Texts.from_values(*map(list, zip(*frame, strict=True)))
    other = Texts.from_values(*map(list, zip(*frame[::-1], strict=True)))
    assert aggregate(one).items["text"].tolist() == aggregate(other).items["text"].tolist()


def test_gold_is_kept():
    answers = Texts.from_values(["i", "i", "j"], list("aba"), ["x y", "x z", "p q"])
    result = aggregate(answers, "rover", gold={"j": "known"})
    assert result.items["text"].tolist()[1] == "known"
    assert result.confidence[1] == 1


def test_translations_take_the_medoid_and_transcripts_a_vote():
    apart = Texts.from_values(["i"] * 3, list("abc"), ["a b c d", "a x y z", "p q r a"])
    assert "closest to the others" in aggregate(apart).notes[0]
    near = Texts.from_values(["i"] * 3, list("abc"), ["a b c d", "a b c e", "a b c d"])
    assert "word by word" in aggregate(near).notes[0]


@pytest.mark.parametrize(
    ("name", "bar"), [("crowdspeech_dev_clean", 5.65), ("vldb2021_speech", 7.0)]
)
def test_transcripts_have_as_few_errors_as_specified(name, bar):
    folder = shared_path(name)
    frame = pl.read_csv(folder / "answers.csv.gz", infer_schema=False).fill_null("")
    truth = dict(pl.read_csv(folder / "truth.csv.gz", infer_schema=False).iter_rows())
    columns = (frame[column].to_list() for column in ("task", "worker", "label"))
    items = aggregate(Texts.from_values(*columns)).items
    references = [truth[item] for item in items["item"].tolist()]
    assert word_errors(items["text"].tolist(), references) < bar


def test_an_empty_text_among_others_is_outvoted():
    texts = Texts.from_values("aaab", "xyzx", ["", "the cat", "the cat", ""])
    assert aggregate(texts, "rover").items["text"].tolist() == ["the cat", ""]
