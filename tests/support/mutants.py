"""Change lines of the program at random, and see whether the tests that belong to them fail.

``make mutants`` tries 200. Each mutant is one changed operator, number or condition, in place. The
file is restored afterwards. It dies where a quick test of its file, or of a file that imports it,
fails. The survivors are listed: each is a line that no test needs, or a test that is missing.

    python tests/support/mutants.py COUNT SEED
"""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

ROOMS = ("nodegraph", "retrievers")

MAX_TEST_FILES = 8

SECONDS = 240

_OPERATORS: dict[type[ast.AST], Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add},
}


def mutations(tree: ast.Module) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yield the line of each place that can be changed, and what changes it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
            new = _OPERATORS[type(node.ops[0])]()
            yield node.lineno, lambda node=node, new=new: node.ops.__setitem__(0, new)  # type: ignore[misc]
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _OPERATORS:
            new = _OPERATORS[type(node.op)]()
            yield node.lineno, lambda node=node, new=new: setattr(node, "op", new)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            yield node.lineno, lambda node=node, value=value: setattr(node, "value", value)  # type: ignore[misc]
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            test = ast.UnaryOp(ast.Not(), node.test)
            yield node.lineno, lambda node=node, test=test: setattr(node, "test", test)  # type: ignore[misc]
        elif isinstance(node, ast.Return) and node.value is not None:
            yield node.lineno, lambda node=node: setattr(node, "value", ast.Constant(None))  # type: ignore[misc]


def tests_of(file: Path) -> list[str]:
    """Return the test files of a file: its own first, then those that import its module."""
    own = ROOT / "tests" / file.parent / f"test_{file.name}"
    module = re.compile(rf"\b{re.escape('.'.join(file.with_suffix('').parts))}\b")
    of_folder = (ROOT / "tests" / file.parent).glob("test_*.py")
    users = (
        path for path in (ROOT / "tests").rglob("test_*.py") if module.search(path.read_text())
    )
    every = dict.fromkeys([*([own] if own.exists() else []), *sorted(users), *sorted(of_folder)])
    return [str(path.relative_to(ROOT)) for path in every][:MAX_TEST_FILES]


def survives(file: Path) -> bool:
    """Run the tests of a file; return whether all of them pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-m",
        "not slow and not models",
    ]
    try:
        ran = subprocess.run(
            [*command, *tests_of(file)],
            cwd=ROOT,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def main(count: int, seed: int) -> None:
    if subprocess.run(["git", "diff", "--quiet", "--", *ROOMS], cwd=ROOT).returncode:
        sys.exit("there are changes that are not committed; commit them, since lines are changed")
    choose = random.Random(seed)
    files = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    sizes = [path.stat().st_size for path in files]
    tried, survivors = 0, list[str]()
    while tried < count:
        (path,) = choose.choices(files, sizes)
        source = path.read_text()
        tree = ast.parse(source)
        if not (places := list(mutations(tree))):
            continue
        tried += 1
        line, change = choose.choice(places)
        change()
        try:
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
            if survives(path.relative_to(ROOT)):
                text = source.splitlines()[line - 1].strip()
                survivors.append(f"{path.relative_to(ROOT)}:{line}: {text}")
                sys.stderr.write(f"{survivors[-1]}\n")
        finally:
            path.write_text(source)
        sys.stderr.write(f"{tried} tried, {len(survivors)} survived\n")
    died = count - len(survivors)
    sys.stdout.write("\n".join([f"seed {seed}: {died} of {count} died", *survivors, ""]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
