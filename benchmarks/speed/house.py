"""How large the house is: lines of code, and the functions that a command passes through.

    python benchmarks/run.py speed house

Lines are those of `src` without docstrings, comments and blanks. Functions are those of this
package that `aggregate -s dawid-skene` and `report` call, counted with `sys.setprofile`.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "dissensus"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_PROFILE = """
import sys, threading
called = set()
def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and "/dissensus/" in code.co_filename and code.co_flags & 1:
        if not code.co_name.startswith("<"):  # neither bodies of classes nor lambdas
            called.add((code.co_filename, code.co_name, code.co_firstlineno))
from dissensus.cli import main
sys.argv = ["dissensus", *sys.argv[1:]]
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(len(called), len({file for file, _, _ in called}), file=sys.stderr)
"""


def code_lines(path: Path) -> int:
    """Return how many lines of a file are code."""
    source = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def passed_through(*command: str) -> tuple[int, int]:
    """Return how many functions and files of this package a command passes through."""
    done = subprocess.run(
        [sys.executable, "-c", _PROFILE, *command], capture_output=True, text=True, check=True
    )
    functions, files = done.stderr.strip().splitlines()[-1].split()
    return int(functions), int(files)


def main() -> None:
    sizes: dict[str, list[int]] = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        sizes.setdefault(parts[0] if len(parts) > 1 else "(top)", []).append(code_lines(path))
    for name, lines in sorted(sizes.items()):
        print(f"{name:16} {len(lines):4} files {sum(lines):6} lines")
    every = [line for lines in sizes.values() for line in lines]
    print(f"{'all':16} {len(every):4} files {sum(every):6} lines")
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.csv"
        rows = [f"i{i},a{a},{(i * a) % 3}" for i in range(50) for a in range(5)]
        answers.write_text("\n".join(["item,annotator,label", *rows]) + "\n", encoding="utf-8")
        for name, command in (
            ("aggregate", ["aggregate", str(answers), "-s", "dawid-skene"]),
            ("report", ["report", str(answers), "-o", str(Path(folder) / "report.html")]),
        ):
            functions, files = passed_through(*command)
            print(f"{name:16} {functions:4} functions in {files} files")


if __name__ == "__main__":
    main()
