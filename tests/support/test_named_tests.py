import pytest

from tests.support import named_tests
from tests.support.named_tests import problem

SOURCE = """
import pytest

def test_runs(): ...
async def test_awaits(): ...
def helper(): ...

@pytest.mark.skipif(True, reason="no fork here")
def test_with_reason(): ...

@pytest.mark.skip
def test_skipped(): ...

@pytest.mark.skipif(True)
class TestSkipped:
    def test_inside(): ...

@pytest.mark.xfail(strict=True)
def test_may_fail(): ...

def test_skips_itself():
    pytest.skip()

def test_says_why():
    pytest.skip("no server")

class TestInherits(object): ...
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "test_x.py").write_text(SOURCE)
    monkeypatch.setattr(named_tests, "REPO", tmp_path)


@pytest.mark.parametrize(
    "name", ["test_runs", "test_awaits", "test_with_reason", "test_says_why", "TestInherits"]
)
def test_what_runs_or_says_why_not_is_no_problem(tree, name):
    assert problem(f"test_x.py::{name}") is None


@pytest.mark.parametrize(
    ("node_id", "why"),
    [
        ("test_y.py::test_runs", "no file test_y.py"),
        ("test_x.py", "name a test"),
        ("test_x.py::test_gone", "no test test_gone"),
        ("test_x.py::test_runs[1]", "no test"),
        ("test_x.py::helper", "no test helper"),
        ("test_x.py::test_skipped", "without a reason"),
        ("test_x.py::TestSkipped", "without a reason"),
        ("test_x.py::TestSkipped::test_inside", "without a reason"),
        ("test_x.py::test_may_fail", "without a reason"),
        ("test_x.py::test_skips_itself", "without a reason"),
    ],
)
def test_what_is_not_there_or_left_out_is_a_problem(tree, node_id, why):
    assert why in problem(node_id)
