"""Code, docs and messages use the field's terms: none of the retired words is left.

`python -m tests.test_words src/dissensus/planning` lists what is left below a path.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = ("src", "docs", "benchmarks", "tests", "README.md")
KINDS = {".py", ".md", ".html", ".js", ".css", ".toml"}

# Retired word → the field's term. Words are compared in lower case, names cut at "_" and capitals.
RETIRED = {
    r"said": "annotations, labels",
    # "Cannot be told from" is plain English for what data do not show.
    r"(?<!cannot be )told|tells?|telling": "summary, message, progress; report, show, distinguish",
    r"foresee\w*|foresight|foretell\w*|foretold": "predict, predictions, held-out likelihood",
    # Agreement by chance is the field's own term.
    r"(?<!by )(?<!above )(?<!beyond )(?<!better than )chances?"
    r"(?! (agreement|corrected|correction|adjusted|level))": "probability, likelihood",
    r"belie(f|fs|ve|ves|ved|ving)": "posterior, probability, confidence",
    r"habits?": "label marginals, response bias",
    r"views": "features",
    r"(?<!decimal )places": "token features, positions, indices",
    r"stock": "input index",
    r"meetings": "co-annotated pairs",
    r"stor(y|ies)": "cause of disagreement",
    r"hopes?|hoped|hoping": "lookahead posterior",
    r"outlook": "posterior state",
    r"seats?": "reindex; jury members",
    r"dealt|deals": "random folds, split",
    r"fooled|fools?": "item-dependent confusion",
    r"painted": "drawn, synthetic",
    r"shaky": "noisy",
    r"nobody spoke|spoke of": "unlabelled",
    r"nine in ten futures": "90 % prediction interval",
    r"dealt anew": "reshuffled",
    r"beside the others": "compared with the consensus",
    r"decides? what is random": "random seed",
    r"two sides": "group comparison",
}
# Retired names of classes and modules.
CLASSES = (
    "Crowd|Habits|Hopes|How|Kept|Meetings|Outlook|Panel|Places|Rounds|Rule|Seen|Shown|Standing|Stock"
    "|Stored|Stories|Sums|Terms|Tell|Views"
)
MODULES = (
    "beside|choosing|drawing|falls|foreseen|holding|standing|tails|two_sides|weighing|_class_scores"
    "|_discovery|_hopes|_meetings|_number_scores|_outlook|_painted|_panel|_rounds|_stored|_stories"
    "|_sums|_terms|_views"
)

# Lines that may keep a word, each with its reason; at most twenty.
ALLOWED = {
    (name, "Who said what: modeling individual labelers"): "the title of a paper"
    for name in (
        "src/dissensus/learning/doctor_net.py",
        "docs/methods/aggregate-deep/doctor-net.md",
    )
}

_PATTERN = re.compile("|".join(rf"\b({word})\b" for word in RETIRED))
_CLASS = re.compile(rf"^\s*class ({CLASSES})\b")


def words_of(line: str) -> str:
    """Return a line in lower case with names cut into words."""
    line = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", line)
    return line.replace("_", " ").replace("-", " ").lower()


def left_in(path: Path) -> list[tuple[str, str]]:
    """Return the lines of a file with retired words: (line, word)."""
    name = path.relative_to(ROOT).as_posix()
    found = []
    if re.fullmatch(MODULES, path.stem) and name.startswith("src"):
        found.append((name, path.stem))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if any(name == where and text in line for where, text in ALLOWED):
            continue
        match = _PATTERN.search(words_of(line)) or _CLASS.match(line)
        if match:
            found.append((f"{name}:{number}", match[0].strip()))
    return found


def files(*where: str) -> list[Path]:
    """Return the files to look through."""
    paths = [ROOT / each for each in where or WHERE]
    every = [p for path in paths for p in ([path] if path.is_file() else path.rglob("*"))]
    built = "_build"  # the site
    kept = (p for p in every if p.suffix in KINDS and p.is_file() and built not in p.parts)
    return sorted(p for p in kept if p != Path(__file__))


def test_no_retired_word_is_left():
    found = [one for path in files() for one in left_in(path)]
    assert not found, "\n".join(f"{place}: {word}" for place, word in found[:50])


def test_exceptions_are_few_and_needed():
    assert len(ALLOWED) <= 20
    for (name, text), reason in ALLOWED.items():
        assert reason
        assert text in (ROOT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for path in files(*sys.argv[1:]):
        for place, word in left_in(path):
            print(f"{place}: {word}")  # noqa: T201
