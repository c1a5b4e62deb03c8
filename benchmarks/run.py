"""Run a benchmark by its question: `python benchmarks/run.py QUESTION [NAME] [OPTION…]`.

python benchmarks/run.py                       list the questions and their scripts
python benchmarks/run.py trust                 list the scripts of one question
python benchmarks/run.py trust camps --help    run a script; what follows goes to it

Scripts import each other and the modules of this folder by name, here and in processes that they
start. `--check` instead of a question imports every module and names those that cannot be.
"""

from __future__ import annotations

import ast
import os
import runpy
import sys
from importlib import import_module
from pathlib import Path

HOME = Path(__file__).parent
QUESTIONS = {
    "speed": "How long does it take, and how much memory, beside others?",
    "accuracy": "Are labels and coefficients right, and equal to those of others?",
    "trust": "Is it as sure as it should be; whom does it suspect; what does it advise?",
    "judge": "May a model replace annotators, and what is the true rate?",
    "deep": "What is learned from inputs, one truth or one answer for each annotator?",
    "robustness": "Does it survive damaged files, kills and odd values?",
}


def folders() -> list[str]:
    """Return the folders whose modules import each other."""
    return [str(HOME), *(str(HOME / question) for question in QUESTIONS)]


def scripts(question: str) -> dict[str, str]:
    """Return the scripts of a question, and the first line of each."""
    found = {}
    for path in sorted((HOME / question).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        runs = any(isinstance(node, ast.If) for node in tree.body)  # as a script
        if runs and "__main__" in ast.unparse(tree):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def show(question: str) -> None:
    """Print a question with its scripts."""
    print(f"{question}: {QUESTIONS[question]}")
    for name, line in scripts(question).items():
        print(f"  {name:22} {line.partition(': `')[0].rstrip('.')}")


def unimportable() -> list[str]:
    """Return the modules that cannot be imported, with the reason."""
    found = []
    for folder in folders():
        for path in sorted(Path(folder).glob("*.py")):
            try:
                import_module(path.stem)
            except ImportError as error:
                found.append(f"{path.relative_to(HOME)}: {error}")
    return found


def main() -> int:
    """List or run."""
    sys.path[:0] = [folder for folder in folders() if folder not in sys.path]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders(), *([before] if before else [])])
    question, name = (*sys.argv[1:3], "", "")[:2]
    if question == "--check":
        problems = unimportable()
        print("\n".join(problems))
        return int(bool(problems))
    if question not in QUESTIONS:
        for known in QUESTIONS:
            show(known)
        return int(question not in ("", "--help"))
    if name not in scripts(question):
        show(question)
        return int(name not in ("", "--help"))
    path = HOME / question / f"{name}.py"
    sys.argv = [str(path), *sys.argv[3:]]
    runpy.run_path(str(path), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
