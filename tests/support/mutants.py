"""Change lines of the program at random, and see whether the tests that run them fail.

``make mutants`` tries 200. Each mutant is one changed operator, number or condition, in place. The
file is restored afterwards. First all quick tests run once, and it is written down which functions
each of them calls. A mutant dies where a test that calls its function fails. The survivors are
listed: each is a line that no test needs, or a test that is missing.

    python tests/support/mutants.py COUNT SEED [FOLDER ...]

With folders, such as ``nodegraph`` or ``retrievers/indexes``, only their files are changed, and
only the tests below the same paths are run: ``make mutants COUNT=12 FOLDERS=retrievers/indexes``.
"""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

ROOMS = ("nodegraph", "retrievers")

CALLS = Path(os.environ.get("NODEKIN_CALLS", ROOT / "build" / "calls.json"))

SECONDS = 200.0
"""How long the tests of a mutant take, by the time of each with its calls written down, which is
some three times as long; the most specific come first."""

_OPTIONS = ["-q", "-n", "0", "-p", "no:cacheprovider"]

_SIZE = 64  # numbers from here on

_FIRST = 12  # tests that run alone first: collecting all takes longer

_QUICK = "not slow and not models"

_OPERATORS: dict[type[ast.AST], Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add},
}


class Calls:
    """A plugin of pytest that writes down the functions that each test calls, and its time."""

    def __init__(self) -> None:
        self.codes: dict[int, CodeType] = {}
        self.tests: dict[str, tuple[float, list[str]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.codes = {}
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            functions = {
                f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno}"
                for code in list(self.codes.values())  # threads may go on
                if Path(code.co_filename).is_relative_to(ROOT)
            }
            seconds = self.tests.get(item.nodeid, (0.0, []))[0]
            of_rooms = sorted(name for name in functions if name.startswith((*ROOMS, "adapters")))
            self.tests[item.nodeid] = seconds, of_rooms

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds, functions = self.tests.get(report.nodeid, (0.0, []))
        self.tests[report.nodeid] = seconds + report.duration, functions

    def pytest_sessionfinish(self) -> None:
        CALLS.parent.mkdir(exist_ok=True)
        CALLS.write_text(json.dumps(self.tests))

    def _call(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        self.codes[id(code)] = code


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Calls())


def mutations(tree: ast.Module) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yield the line of each place that can be changed, and what changes it."""
    same = {id(part) for node in ast.walk(tree) for part in _without_effect(node)}
    for node in ast.walk(tree):
        if id(node) in same:
            continue
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


def _without_effect(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts whose change nothing can notice but time, memory and a type checker.

    And what only people read: logs, ``__repr__`` and the words of an error. A size of 64 or more is
    as good as one more. ``zip(..., strict=True)`` has lists of one length, and JSON finite numbers,
    unless the program is wrong already.
    """
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef(name="__repr__"):
            part = node
        case ast.arg(annotation=part) | ast.AnnAssign(annotation=part):
            pass
        case ast.FunctionDef(returns=part) | ast.AsyncFunctionDef(returns=part):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id="_logger" | "logger"))):
            part = node
        case ast.keyword(arg="slots" | "strict" | "repr" | "allow_nan"):
            part = node
        case ast.Raise(exc=ast.Call() as part):
            pass
        case ast.Constant(value=int(size)) if size >= _SIZE:
            part = node
        case ast.Assign(value=ast.BinOp(op=ast.LShift()) as part):
            pass
        case ast.Return(value=ast.Constant(value=None)) | ast.Call(func=ast.Name(id="lru_cache")):
            part = node
        case _:
            part = None
    if part is not None:
        yield from ast.walk(part)


def tests_of(file: Path, tree: ast.Module, line: int) -> list[str]:
    """Return the file's own tests, and those that call the function of a line, small ones first.

    Of a line outside of functions these are the tests that call any function of the file, and
    one of the source.
    """
    first, last = 0, 10**9
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            at = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if node.body[0].lineno <= line <= (node.end_lineno or 0) and at > first:
                first, last = at, node.end_lineno or 0
    own = f"tests/{file.parent}/test_{file.name}"
    choice = list[tuple[int, float, str]]()
    for numbers in (range(first, min(last, 10**4) + 1), range(10**4)):  # some run at import only
        names = {f"{file}:{number}" for number in numbers}
        for test, (seconds, functions) in _calls().items():
            if not test.startswith(own) and not names.isdisjoint(functions):
                choice.append((len(functions), seconds, test))
        if choice:
            break
    tests, left = [own] if (ROOT / own).exists() else [], SECONDS
    if not first:
        tests.append("tests/test_architecture.py::test_values_can_not_be_changed")
    for _, seconds, test in sorted(choice):
        if seconds <= left:
            tests.append(test)
            left -= seconds
    return tests


@cache
def _calls() -> dict[str, tuple[float, list[str]]]:
    calls: dict[str, tuple[float, list[str]]] = json.loads(CALLS.read_text())
    return calls


def run_tests(arguments: list[str], limit: float | None = None) -> int:
    """Run tests quietly; return their status: 5 where there are none, -1 after the limit."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
            cwd=ROOT,
            capture_output=limit is not None,
            timeout=limit,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": str(ROOT / "tests"),
            },
        )
    except subprocess.TimeoutExpired:
        return -1
    if b"not found: " in (ran.stderr or b""):
        raise RuntimeError(f"there are no such tests: {ran.stderr!r:.500}")
    return ran.returncode


def survives(file: Path, tree: ast.Module, line: int) -> bool:
    """Run the tests that belong to a changed line; return whether all of them pass.

    Last of all come the examples and the slow tests of the file.
    """
    tests, names = tests_of(file, tree, line), CALLS.with_name("tests.txt")
    for batch in filter(None, (tests[:_FIRST], tests[_FIRST:])):
        names.write_text("\n".join(batch))
        if run_tests(["-x", "-m", _QUICK, f"@{names}"], 2 * SECONDS) not in (0, 5):
            return False
    own = ROOT / "tests" / file.parent / f"test_{file.name}"
    module = ".".join(("nodekin", *file.with_suffix("").parts)).removesuffix(".__init__")
    last = [
        ["-m", _QUICK, f"tests/test_docs.py::test_docstring_examples[{module}]"],
        *([["-m", "slow and not models", str(own)]] if own.exists() else []),
    ]
    return all(run_tests(["-x", *tests], SECONDS) in (0, 5, -1) for tests in last)


def main(count: int, seed: int, folders: list[str]) -> None:
    global CALLS
    if folders:
        CALLS = CALLS.with_name(f"calls.{'.'.join(folders).replace('/', '-')}.json")
        os.environ["NODEKIN_CALLS"] = str(CALLS)
    rooms = folders or ROOMS
    if subprocess.run(["git", "diff", "--quiet", "--", *rooms], cwd=ROOT).returncode:
        sys.exit("there are changes that are not committed; commit them, since lines are changed")
    newest = max(
        path.stat().st_mtime for room in (*rooms, "tests") for path in (ROOT / room).rglob("*.py")
    )
    if not CALLS.exists() or CALLS.stat().st_mtime < newest:
        tests = [f"tests/{room}" for room in (folders or (*ROOMS, "adapters"))]
        run_tests(["-p", "support.mutants", "-m", _QUICK, *tests])
    choose = random.Random(seed)
    files = sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
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
        before = ast.unparse(tree)
        change()
        file, mutant = path.relative_to(ROOT), ast.unparse(ast.fix_missing_locations(tree))
        try:
            path.write_text(mutant)
            if survives(file, ast.parse(source), line):
                lines = zip(before.splitlines(), mutant.splitlines(), strict=False)
                text = next(new.strip() for old, new in lines if old != new)
                survivors.append(f"{file}:{line}: {text}")
                sys.stderr.write(f"{survivors[-1]}\n")
        finally:
            path.write_text(source)
        sys.stderr.write(f"{tried} tried, {len(survivors)} survived\n")
    died = count - len(survivors)
    sys.stdout.write("\n".join([f"seed {seed}: {died} of {count} died", *survivors, ""]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
