"""Tests by their node ids, for tables that say which test shows what. Nothing is imported."""

import ast
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]
Test = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def problem(node_id: str) -> str | None:
    """Say why nothing runs under a node id, or is left out without a reason; else None.

    ``tests/adapters/test_x.py::test_y``, ``…::TestZ`` (a class may inherit its tests) and
    ``…::TestZ::test_y`` are understood; parameters in brackets are not, for they can't be read
    from the source.
    """
    path, *names = node_id.split("::")
    if not (REPO / path).is_file():
        return f"{node_id}: there is no file {path}"
    module = _tree(REPO / path)
    body, enclosing = module.body, [_marks(module.body)]
    for name in names:
        tests = [node for node in body if isinstance(node, Test) and node.name == name]
        if not tests or not name.lower().startswith("test"):
            return f"{node_id}: there is no test {name}"
        body = tests[-1].body
        enclosing += [tests[-1].decorator_list, _marks(body)]
    if not names:
        return f"{node_id}: name a test of the file"
    left_out = [*(mark for marks in enclosing for mark in marks), *_calls(body)]
    if any(_without_reason(mark) for mark in left_out):
        return f"{node_id}: it is skipped, or may fail, without a reason"
    return None


def _marks(body: list[ast.stmt]) -> list[ast.expr]:
    """Return what a module or class assigns to ``pytestmark``."""
    values = [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        )
    ]
    return [mark for value in values for mark in getattr(value, "elts", [value])]


def _calls(body: list[ast.stmt]) -> list[ast.expr]:
    """Return the calls in statements."""
    return [node for part in body for node in ast.walk(part) if isinstance(node, ast.Call)]


def _without_reason(mark: ast.expr) -> bool:
    """Tell whether it is a skip or an expected failure that does not say why."""
    call = mark.func if isinstance(mark, ast.Call) else mark
    name = ast.unparse(call)
    if name not in {
        f"pytest.{one}" for one in ("skip", "xfail", "mark.skip", "mark.skipif", "mark.xfail")
    }:
        return False
    if not isinstance(mark, ast.Call):
        return True
    said = any(keyword.arg in ("reason", "msg") for keyword in mark.keywords)
    return not said and not (
        mark.args and name in ("pytest.skip", "pytest.xfail", "pytest.mark.skip")
    )


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
