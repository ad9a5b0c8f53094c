"""Change random lines of the source, one at a time, and check that a test that runs them fails.

    python tests/support/mutants.py COUNT SEED [FOLDER ...]

First all quick tests run once with coverage, which records the tests of each line. A mutant is one
changed operator, number, condition or return value. Its file is restored after the tests. The
report lists the mutants that no test noticed. With folders, such as ``retrievers/indexes``, only
their files are changed, and only the tests below the same paths run.
"""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("nodegraph", "retrievers", "adapters")
RECORD = REPO / "build" / "mutants.json"
MOST_TESTS = 150  # of one mutant, the most specific first
TIMEOUT = 300
LARGE = 64  # a larger number is a size, which may be one more

_OPERATORS: dict[type[ast.AST], Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add},
}

Tests = dict[str, dict[str, list[str]]]
"""The tests of each line, by file and line number."""


def mutations(tree: ast.Module) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yield the line and the function of each possible change."""
    skipped = {id(part) for node in ast.walk(tree) for part in ast.walk(_unnoticeable(node))}
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.expr | ast.stmt):
            continue
        name, new = "", cast("Any", None)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
            name, new = "ops", [_OPERATORS[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _OPERATORS:
            name, new = "op", _OPERATORS[type(node.op)]()
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            is_bool = isinstance(node.value, bool)
            name, new = "value", not node.value if is_bool else node.value + 1
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            name, new = "test", ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.Return) and node.value is not None:
            name, new = "value", ast.Constant(None)
        if name:
            yield node.lineno, partial(setattr, node, name, new)


def _unnoticeable(node: ast.AST) -> ast.AST:
    """Return a part whose change only affects time, memory, types, logs or error messages."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef(name="__repr__"):
            return node
        case ast.arg(annotation=part) | ast.AnnAssign(annotation=part) if part:
            return part
        case ast.FunctionDef(returns=part) | ast.AsyncFunctionDef(returns=part) if part:
            return part
        case ast.Call(func=ast.Attribute(value=ast.Name(id="_logger" | "logger"))):
            return node
        case ast.Call(func=ast.Name(id="lru_cache")) | ast.Return(value=ast.Constant(value=None)):
            return node
        case ast.keyword(arg="slots" | "strict" | "repr" | "allow_nan"):
            return node
        case ast.Raise() | ast.BinOp(op=ast.LShift()):
            return node
        case ast.Constant(value=int(size)) if size >= LARGE:
            return node
    return ast.Pass()


def pytest(*arguments: str, **options: Any) -> int:
    """Run the quick tests among the arguments; return the exit status."""
    quick = ["-q", "-m", "not slow and not models", "-p", "no:cacheprovider", *arguments]
    command = [sys.executable, "-m", "pytest", *quick]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=REPO, env=env, **options).returncode


def record(folders: list[str]) -> Tests:
    """Run the tests of some folders; return the tests of each line."""
    from coverage import CoverageData  # type: ignore[import-not-found]

    RECORD.parent.mkdir(exist_ok=True)
    paths = [f"tests/{folder}" for folder in folders] if folders else ["tests"]
    pytest(
        "-n", "auto", "--dist", "worksteal", "--cov", "--cov-context=test", "--cov-report=", *paths
    )
    data = CoverageData(str(REPO / ".coverage"))
    data.read()
    tests: Tests = {}
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file)
        tests[file] = {
            str(line): sorted({name.partition("|")[0] for name in names if name})
            for line, names in lines.items()
        }
    RECORD.write_text(json.dumps(tests))
    return tests


def tests_of(file: str, line: int, tests: Tests) -> list[str]:
    """Return the tests that run a line, or of its file, those that run the fewest lines first."""
    lines = tests.get(file, {})
    found = lines.get(str(line)) or [name for names in lines.values() for name in names]
    sizes = Counter(name for each in tests.values() for names in each.values() for name in names)
    return sorted(set(found), key=lambda name: (sizes[name], name))[:MOST_TESTS]


def is_noticed(file: str, line: int, tests: Tests) -> bool:
    """Run the tests of a changed line; return whether one of them fails."""
    names = tests_of(file, line, tests)
    if not names:
        return False
    listed = RECORD.with_name("mutant_tests.txt")
    listed.write_text("\n".join(names))
    try:
        status = pytest("-x", "-n", "0", f"@{listed}", capture_output=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return True
    if status not in (0, 1):
        raise RuntimeError(f"pytest ended with {status} for {listed}")
    return status == 1


def main(count: int, seed: int, folders: list[str]) -> None:
    if subprocess.run(["git", "diff", "--quiet", "--", *PACKAGES], cwd=REPO).returncode:
        sys.exit("commit or stash the changes of the source first, since files are changed")
    tests = json.loads(RECORD.read_text()) if RECORD.exists() else record(folders)
    rng = random.Random(seed)
    files = sorted(path for folder in folders or PACKAGES for path in (REPO / folder).rglob("*.py"))
    sizes = [path.stat().st_size for path in files]
    tried, noticed = defaultdict[str, int](int), defaultdict[str, int](int)
    while sum(tried.values()) < count:
        (path,) = rng.choices(files, sizes)
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        if not (places := [*mutations(tree)]):
            continue
        line, change = rng.choice(places)
        before = ast.unparse(tree).splitlines()
        change()
        mutant = ast.unparse(ast.fix_missing_locations(tree))
        file = path.relative_to(REPO).as_posix()
        try:
            path.write_text(mutant, encoding="utf-8")
            dead = is_noticed(file, line, tests)
        finally:
            path.write_text(source, encoding="utf-8")
        tried[file.split("/")[0]] += 1
        noticed[file.split("/")[0]] += dead
        if not dead:
            new = next(b for a, b in zip(before, mutant.splitlines(), strict=False) if a != b)
            sys.stdout.write(f"not noticed: {file}:{line}: {new.strip()}\n")
            sys.stdout.flush()
    for package in tried:
        sys.stdout.write(f"{package}: {noticed[package]} of {tried[package]} noticed\n")
    sys.stdout.write(f"seed {seed}: {sum(noticed.values())} of {count} noticed\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
