"""Positions of nodes in files of rich formats."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, PassageSplitter, split_sentences
from nodekin.retrievers import Retriever

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    graph = NodeGraph(SAMPLES, progress=False)
    graph.create_node_group("passage", PassageSplitter(80))
    graph.create_node_group("sentence", split_sentences, "passage")
    return graph


def test_result_has_page_and_section(graph: NodeGraph) -> None:
    (result,) = Retriever(graph, "sentence", "bm25", top_k=1)("kettle vinegar Mondays")
    assert result.place == "handbook.pdf, page 2, 2.1 Water"
    assert result.to_dict()["place"] == result.place
    assert result.node.pages == (2, 2)
    (result,) = Retriever(graph, "sentence", "bm25", target="passage", top_k=1)("水壶 醋 清洗")
    assert result.place.startswith("手册.docx, 第二章 供应") or "2.1 用水" in result.place
    assert result.node.pages is None


def test_node_over_several_pages_names_all_pages(graph: NodeGraph) -> None:
    (node,) = [n for n in graph.nodes("CoarseChunk") if n.document_id == "files/handbook.pdf"]
    assert node.place == "handbook.pdf, pages 1-2, 1 The tea handbook"
    assert node.root.place == "handbook.pdf"


def test_passages_have_page_numbers(graph: NodeGraph) -> None:
    passages = [n for n in graph.nodes("passage") if n.document_id == "files/handbook.pdf"]
    assert [n.own_metadata["page"] for n in passages] == sorted(n.pages[0] for n in passages)
    assert {n.own_metadata["page"] for n in passages} == {1, 2}


def test_program_comments_are_not_headings(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# Tea\ndef pour():\n    return 1  # so\n")
    graph = NodeGraph(tmp_path / "a.py", progress=False)
    graph.create_node_group("line", lambda text: text.splitlines())
    graph.create_node_group("passage", PassageSplitter())
    places = ["a.py, line 1", "a.py, line 2, pour", "a.py, line 3, pour"]
    assert [node.place for node in graph.nodes("line")] == places
    assert graph.nodes("passage")[0].own_metadata["headings"] == []
    assert len(graph.nodes("section")) == 1
