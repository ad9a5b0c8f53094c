"""Mutation testing: change random lines of the source, and check that at least one test fails.

    python tests/support/mutants.py COUNT SEED [FOLDER ...]

All quick tests run once with coverage, to find out which tests execute each line. A mutant is a
copy of the source in which one operator, number, condition or return value has been changed. Two
mutants at a time, or WORKERS of the environment, are tested in worktrees of the current commit.
The report lists the mutants for which no test failed. Mutants whose tests exceed the time limit
are listed separately and do not count as noticed, because a busy machine has the same effect.
``build/mutants/noticed.txt`` names the test that failed for each of the other mutants. If folders
such as ``retrievers/indexes`` are given, only files in these folders are changed, and only the
tests in the corresponding folders run.
"""

from __future__ import annotations

import ast
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias, cast

from coverage import CoverageData  # type: ignore[import-not-found]

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("nodegraph", "retrievers", "adapters")
BUILD = REPO / "build" / "mutants"
WORKERS = int(os.environ.get("WORKERS") or 2)
FIRST = 12  # number of tests that run first for each mutant
TIMEOUT = 300
SECONDS = 100  # maximum total time of the tests for a mutant, as measured with coverage
STARTUP = 0.1  # seconds that a test takes in addition to its body
LARGE = 64  # larger numbers are sizes, for which adding one makes no difference

Outcome: TypeAlias = Literal["noticed", "not noticed", "timed out"]

_OPERATORS: dict[type[ast.AST], Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add},
}


def mutations(tree: ast.Module) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yield the line number of each possible change, and a function that makes the change."""
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
    """Return a part of the tree where changes affect only time, memory, types, logs or messages."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef(name="__repr__"):
            return node
        case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
            return node
        case ast.arg(annotation=part) | ast.AnnAssign(annotation=part) if part:
            return part
        case ast.FunctionDef(returns=part) | ast.AsyncFunctionDef(returns=part) if part:
            return part
        case ast.Call(func=ast.Attribute(value=ast.Name(id="_logger" | "logger"))):
            return node
        case ast.Call(func=ast.Name(id="lru_cache")) | ast.Return(value=ast.Constant(value=None)):
            return node
        case ast.keyword(arg="slots" | "strict" | "repr" | "allow_nan" | "stacklevel"):
            return node
        case ast.Raise() | ast.BinOp(op=ast.LShift()):
            return node
        case ast.Constant(value=int(size)) if size >= LARGE:
            return node
    return ast.Pass()


def worktree(name: str) -> Path:
    """Create a worktree of the current commit whose modules replace the installed package."""
    tree = BUILD / name
    subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=REPO, capture_output=True)
    subprocess.run(["git", "worktree", "add", "-q", "--detach", tree], cwd=REPO, check=True)
    for package in PACKAGES:
        (tree / "root" / package).symlink_to(tree / package)
    (tree / "build").mkdir()
    (tree / "build" / "nodekin").symlink_to(tree / "root")
    return tree


def run_tests(tree: Path, output: Path, *arguments: str, limit: float | None = None) -> Outcome:
    """Run quick tests in a worktree, and return whether one of them fails.

    The tests time out after ``limit`` seconds.
    """
    command = [sys.executable, "-m", "pytest", "-m", "not slow and not models", *arguments]
    paths = f"{tree / 'build'}:{os.environ.get('PYTHONPATH', '')}"
    with output.open("w") as file:
        run = subprocess.Popen(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=file,
            start_new_session=True,
        )
        try:
            return "noticed" if run.wait(limit) else "not noticed"
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # this also kills servers that were started by tests
            run.wait()
            return "timed out"


def record(tree: Path, folders: list[str]) -> None:
    """Run the tests of some folders, and save the lines that each test runs and its duration."""
    workers = f"-n{WORKERS}"
    options = ["-vv", workers, "--durations=0", "--durations-min=0", "--cov", "--cov-report="]
    paths = [f"tests/{folder}" for folder in folders] or ["tests"]
    run_tests(tree, BUILD / "tests.txt", *options, "--cov-context=test", *paths)
    (tree / ".coverage").rename(BUILD / ".coverage")


def durations() -> dict[str, float]:
    """Return the duration of each recorded test that passed, in seconds."""
    text = (BUILD / "tests.txt").read_text(encoding="utf-8")
    passed = {*re.findall(r"PASSED (tests/.+?) *$", text, re.MULTILINE)}
    found = re.findall(r"^([\d.]+)s call +(tests/.+?) *$", text, re.MULTILINE)
    return {name: float(seconds) for seconds, name in found if name in passed}


def tests_of(file: str, line: int, data: CoverageData, seconds: dict[str, float]) -> list[str]:
    """Return the tests that execute a line, or the tests of its file if there are none.

    Tests in the corresponding folder come first, followed by other tests, fastest first.
    """
    lines, path = data.contexts_by_lineno(file), Path("tests", file)
    contexts = [*filter(None, lines.get(line, ()))]
    own, near = str(path.with_name(f"test_{path.stem}")), f"{path.parent}/"
    # Code in other processes is not recorded, and code outside of functions runs during the import.
    always = own if contexts else (near, "tests/test_architecture.py")
    contexts = contexts or chain.from_iterable(lines.values())
    names = {context.rpartition("|")[0] for context in contexts} & {*seconds}
    names.update(name for name in seconds if name.startswith(always))
    ordered = sorted(
        names,
        key=lambda name: (not name.startswith(own), not name.startswith(near), seconds[name]),
    )
    totals = accumulate(seconds[name] + STARTUP for name in ordered)
    return [name for name, total in zip(ordered, totals, strict=True) if total <= SECONDS]


def outcome(
    trees: SimpleQueue[Path], file: str, source: str, tests: list[str]
) -> tuple[Outcome, str]:
    """Change a file in a worktree, and run its tests.

    Return the outcome and the last line of pytest's output that names a failed test.
    """
    tree = trees.get()
    path = tree / file
    listed = tree / "build" / "tests.txt"
    output = tree / "build" / "output.txt"
    before = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    options = ["-qx", "-n", "0", "-p", "no:cacheprovider", f"@{listed}"]
    found: Outcome = "not noticed"
    reason = ""
    for part in filter(None, (tests[:FIRST], tests[FIRST:])):
        listed.write_text("\n".join(part), encoding="utf-8")
        found = run_tests(tree, output, *options, limit=TIMEOUT)
        if found != "not noticed":
            reason = failure(output)
            break
    path.write_text(before, encoding="utf-8")
    trees.put(tree)
    return found, reason


def failure(output: Path) -> str:
    """Return the last line of pytest's output that begins with FAILED or ERROR."""
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[-1] if failed else "".join(lines[-1:])


def main(count: int, seed: int, folders: list[str]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    trees = SimpleQueue[Path]()
    for number in range(WORKERS):
        tree = worktree(f"worktree{number}")
        trees.put(tree)
    if not (BUILD / ".coverage").exists():
        record(tree, folders)
    data, seconds = CoverageData(str(BUILD / ".coverage")), durations()
    data.read()
    rng, places, jobs = random.Random(seed), list[str](), list[tuple[str, str, list[str]]]()
    paths = sorted(path for name in folders or PACKAGES for path in (tree / name).rglob("*.py"))
    sizes = [path.stat().st_size for path in paths]
    while len(jobs) < count:
        (path,) = rng.choices(paths, sizes)
        module = ast.parse(path.read_text(encoding="utf-8"))
        if changes := [*mutations(module)]:
            line, change = rng.choice(changes)
            before = ast.unparse(module).splitlines()
            change()
            mutant = ast.unparse(ast.fix_missing_locations(module))
            new = next(b for a, b in zip(before, mutant.splitlines(), strict=False) if a != b)
            file = path.relative_to(tree).as_posix()
            places.append(f"{file}:{line}: {new.strip()}")
            jobs.append((file, mutant, tests_of(file, line, data, seconds)))
    tried = Counter[str]()
    noticed = Counter[str]()
    with ThreadPoolExecutor(WORKERS) as pool, (BUILD / "noticed.txt").open("w") as reasons:
        outcomes = pool.map(lambda job: outcome(trees, *job), jobs)
        for place, (found, reason) in zip(places, outcomes, strict=True):
            package = place.partition("/")[0]
            tried.update([package, "all"])
            if found == "noticed":
                noticed.update([package, "all"])
                reasons.write(f"{place}\n    {reason}\n")
                reasons.flush()
            else:
                sys.stdout.write(f"{found}: {place}\n")
                sys.stdout.flush()
    for package, number in tried.items():
        sys.stdout.write(f"{package}: {noticed[package]} of {number} noticed\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
