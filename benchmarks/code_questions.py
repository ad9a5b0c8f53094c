"""Questions about code, from the standard library of the Python that runs this.

A function's first line of documentation is the question, the function without its documentation
the passage to be found.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FEWEST_WORDS, _FEWEST_LINES = 5, 4


class Function(NamedTuple):
    """A function of a module: the question that it answers, and its source without that."""

    module: str
    name: str
    question: str
    source: str


def functions(limit: int | None = None) -> list[Function]:
    """Return the documented functions of the standard library, every n-th where there is a limit.

    Functions with equal questions are left out, since nothing could tell them apart.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    found = [f for path in sorted(_modules(folder)) for f in _functions(path, folder)]
    questions = [f.question for f in found]
    once = {question for question in questions if questions.count(question) == 1}
    distinct = [f for f in found if f.question in once]
    step = 1 if limit is None else max(1, len(distinct) // limit)
    return distinct[::step][:limit]


def in_camel_case(source: str) -> str:
    """Write the names in a program as other languages do: ``run_target`` becomes ``runTarget``."""

    def joined(match: re.Match[str]) -> str:
        first, *others = match[0].split("_")
        return first + "".join(map(str.capitalize, others))

    return re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", joined, source)


def _modules(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if not {"test", "tests", "idlelib", "site-packages", "lib2to3", "idle_test"} & {*parts}:
            yield path


def _functions(path: Path, folder: Path) -> Iterator[Function]:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        documentation = ast.get_docstring(node) or ""
        question = documentation.partition("\n")[0].strip()
        first, end = node.body[0], node.end_lineno or node.lineno
        source = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno or 0 : end]
        long_enough = len(question.split()) >= _FEWEST_WORDS and len(source) >= _FEWEST_LINES
        if long_enough and first.lineno > node.lineno:
            module = path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
            yield Function(module, node.name, question, textwrap.dedent("\n".join(source)))
