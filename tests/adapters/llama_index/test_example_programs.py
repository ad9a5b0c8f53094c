"""The programs of examples/ that use LlamaIndex."""

from __future__ import annotations

import ast
import itertools
import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Settings

PROGRAMS = Path(__file__).parents[3] / "examples" / "migration"
OTHER_RESULTS = {"evaluation"}
"""Programs whose results differ, for a reason that a test of its own shows."""

NEEDS = {"hybrid_fusion": "llama_index.retrievers"}
"""Packages of LlamaIndex that a program's first form needs besides its core."""

NAMES = sorted(
    path.stem.removeprefix("llama_index_")
    for path in PROGRAMS.glob("llama_index_*.py")
    if path.stem != "llama_index_offline"
)


@pytest.fixture(autouse=True)
def no_model_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the folder importable, as it is for a program that is started in it."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    yield
    assert Settings._llm is None
    assert Settings._embed_model is None


@cache
def program(name: str) -> tuple[Any, Any]:
    """Run a program as a script, once; return the results of both forms."""
    needed = NEEDS.get(name)
    if needed and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed: pip install llama-index-retrievers-bm25")
    with redirect_stdout(StringIO()) as printed:
        names = runpy.run_path(str(PROGRAMS / f"llama_index_{name}.py"), run_name="__main__")
    assert "LlamaIndex\n  " in printed.getvalue()
    assert "\nnodekin\n  " in printed.getvalue()
    return names["before"](), names["after"]()


def test_there_are_ten_programs() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_RESULTS])
def test_both_forms_have_the_same_results(name: str) -> None:
    before, after = program(name)
    assert before
    assert after == before


@pytest.mark.parametrize(
    "name", ["auto_merging", "recursive", "sentence_window", "ingestion", "hybrid_fusion"]
)
def test_three_lines_are_new_at_most(name: str) -> None:
    """The others call the function that both forms share with another class."""
    tree = ast.parse((PROGRAMS / f"llama_index_{name}.py").read_text(encoding="utf-8"))
    forms = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    before, after = (
        [line for part in forms[form].body[1:] for line in ast.unparse(part).splitlines()]
        for form in ("before", "after")
    )
    assert len({line.strip() for line in after} - {line.strip() for line in before}) <= 3


def test_evaluation_gives_the_figures_of_each_retriever() -> None:
    before, after = program("evaluation")
    hits = {"hit_rate": 8, "mrr": 8, "precision": 4, "recall": 8, "ap": 8, "ndcg": 8}
    assert before == {name: round(hit / 11, 3) for name, hit in hits.items()}
    hits = {"hit_rate": 11, "mrr": 11, "precision": 5.5, "recall": 11, "ap": 11, "ndcg": 11}
    assert after == {name: round(hit / 11, 3) for name, hit in hits.items()}


@pytest.mark.parametrize("name", ["recursive", "auto_merging", "hybrid_fusion"])
def test_chunks_read_as_their_documents_do(name: str) -> None:
    """LlamaIndex joins sentences as they are split: without their spaces no sentence is found."""
    texts = runpy.run_path(str(PROGRAMS / "llama_index_offline.py"))["TEXTS"].values()
    for result in itertools.chain(*program(name)):
        assert any(result in text for text in texts)


EXAMPLE = Path(__file__).parents[3] / "examples" / "llama_index_recursive.py"


def test_it_finds_by_all_ways_and_makes_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    built, loaded = capsys.readouterr().out.split("built: 48 base nodes, 96 texts told by models\n")
    assert loaded.endswith("loaded: 48 base nodes, 0 texts told by models\n")
    assert loaded.rpartition("loaded:")[0] == built  # the same answers by the same ways
    tea, panda = built.split("国宝一天到晚都在吃什么？\n")
    assert "各种真正的茶都来自… by chunk 32: 红茶则属于全发酵茶。青茶又叫乌龙茶" in tea
    assert tea.count("青茶又叫乌龙茶，是半发酵茶，代表品种有福建的安溪铁观音和武夷岩茶。[1]") == 3
    plain, metadata = panda.split("  metadata references: ")
    assert "大熊猫" not in plain  # no chunk has the words of the question
    assert metadata.startswith("大熊猫的学名是Ai… by questions: 国宝大熊猫一天")
    assert "食物却有99%左右是竹子" in metadata
