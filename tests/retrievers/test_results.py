import copy
import gc
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    KeywordFilter,
    Reranker,
    RerankRetriever,
    Retriever,
    ScoredNode,
)
from nodekin.retrievers.results import COPY


def test_call_returns_scored_nodes_by_default(library) -> None:
    results = Retriever(library, "sentence")("milk")
    assert [type(result) for result in results] == [ScoredNode]


@pytest.mark.parametrize(
    ("join", "text"),
    [
        (True, "river water\nriver bank"),
        (" | ", "river water | river bank"),
        ("", "river waterriver bank"),
    ],
)
def test_join_concatenates_contents(library, join, text: str) -> None:
    retriever = Retriever(library, "sentence", output_format="content", join=join, top_k=2)
    assert retriever("river") == text
    assert retriever("nothing at all") == ""


def test_unknown_output_format_raises(library) -> None:
    with pytest.raises(ValueError, match=r"'content', 'dict' or None .*, got 'text'"):
        Retriever(library, "sentence", output_format="text")


def test_to_dict_returns_json_values(library) -> None:
    (result,) = Retriever(library, "sentence", target="ROOT")("milk")
    (match,) = result.evidence
    values = json.loads(json.dumps(result.to_dict()))
    assert values == {
        "id": result.node.id,
        "group": "ROOT",
        "text": result.node.text,
        "content": result.node.content,
        "score": result.score,
        "document_id": "tea",
        "start": result.node.start,
        "end": result.node.end,
        "metadata": result.node.metadata,
        "place": result.node.place,
        "evidence": [
            {
                "node_id": match.node.id,
                "group": "sentence",
                "text": "black tea and milk",
                "score": match.score,
                "similarity": "bm25",
                "query": "milk",
            }
        ],
    }


def test_to_dict_converts_other_values_to_text() -> None:
    values = {
        "when": date(2024, 5, 1),
        "none": None,
        "nan": float("nan"),
        "flag": np.bool_(True),
        "list": (np.int64(3), np.float32(0.5), b"x"),
        "nested": {1: {2.5}},
    }
    node = Node("tea", values)
    written = json.dumps(ScoredNode(node, np.float32(0.25)).to_dict(), allow_nan=False)
    assert json.loads(written)["metadata"] == {
        "when": "2024-05-01",
        "none": None,
        "nan": "nan",
        "flag": True,
        "list": [3, 0.5, "b'x'"],
        "nested": {"1": [2.5]},
    }
    assert json.loads(written)["score"] == 0.25


def test_repr_of_result_leaves_evidence_out(library) -> None:
    (result,) = Retriever(library, "sentence", top_k=1)("river")
    assert result.evidence
    assert repr(result) == f"ScoredNode(node={result.node!r}, score={result.score!r})"


def test_output_format_of_call_overrides_default(library) -> None:
    retriever = Retriever(library, "sentence", top_k=2)
    assert retriever("river", output_format="content") == ["river water", "river bank"]
    assert retriever("river", output_format="content", join=", ") == "river water, river bank"
    assert [d["document_id"] for d in retriever("milk", output_format="dict")] == ["tea"]
    assert retriever("milk", filters={"topic": "tea"}, top_k=1)[0].node.document_id == "tea"
    with pytest.raises(ValueError, match="join=True joins contents"):
        retriever("river", join=True)
    own = Retriever(library, "sentence", top_k=2, output_format="content", join="|")
    assert own("river") == "river water|river bank"
    assert own("river", output_format="content") == ["river water", "river bank"]


PROGRAM = """
from typing_extensions import assert_type
from nodekin.retrievers import FusionRetriever, Retriever, ScoredNode

def program(retriever: Retriever, fusion: FusionRetriever) -> None:
    assert_type(retriever("q"), list[ScoredNode])
    assert_type(fusion("q", top_k=1), list[ScoredNode])
    print(retriever("q")[0].txet)
    number: int = retriever("q")[0].score
"""


@pytest.mark.slow
def test_type_checker_infers_return_type_of_call(tmp_path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        [*command, str(tmp_path / "program.py")],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [
        line.split(": ", 1)[0].rsplit(":", 1)[1]
        for line in done.stdout.splitlines()
        if ": error: " in line
    ]
    assert errors == ["8", "9"], done.stdout + done.stderr


def paged() -> NodeGraph:
    graph = NodeGraph(progress=False)
    text = "Green tea is mild.\fBlack tea is strong."
    graph.add(Document(text, {"page_unit": "page", "file_name": "tea.pdf"}, id="tea"))
    graph.create_node_group("sentence", lambda text: text.split("\f"))
    return graph


def test_place_comes_from_best_evidence() -> None:
    retriever = Retriever(paged(), "sentence", "bm25", target="ROOT")
    (result,) = retriever("black")
    assert result.node.place == "tea.pdf"
    assert result.best_match.text == "Black tea is strong."
    assert result.place == result.to_dict()["place"] == "tea.pdf, page 2"
    assert str(result).startswith("tea.pdf, page 2  0.")
    assert str(result).endswith("Black tea is strong.")
    assert "<b>tea.pdf, page 2" in result._repr_html_()


@pytest.mark.parametrize("max_tokens", [None, 300])
def test_equal_texts_collapse_by_default(max_tokens: int | None) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, {"file_name": f"{n}.md"}) for n, text in enumerate(COPIES)])
    first, *others = DefaultRetriever(graph).retrieve("green tea", max_tokens=max_tokens)
    copies = [
        match.node.metadata["file_name"] for match in first.evidence if match.similarity == COPY
    ]
    assert copies == ["1.md", "2.md"]
    assert str(first).splitlines()[1:] == ["  also in 1.md", "  also in 2.md"]
    assert [result.text for result in others] == ["Black tea."]
    every = DefaultRetriever(graph, collapse=False).retrieve("green tea")
    assert sorted(result.text for result in every) == sorted(COPIES)


COPIES = ["Green tea!", "green tea", "**Green** tea.", "Black tea."]


def test_min_score_without_results_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    retriever = Retriever(paged(), "sentence", "bm25", min_score=70.5)
    for _ in range(2):
        assert retriever("black tea") == []
    assert [record.getMessage() for record in caplog.records] == [
        "no result: the lowest score is 70.5, and the best node of 'sentence' scores 0.8755"
    ]


def test_min_score_is_logged_once_per_graph(caplog: pytest.LogCaptureFixture) -> None:
    first, second = paged(), paged()
    second.add("Black tea grows.")
    for graphs in ([first], [second], [first, second]):
        retriever = Retriever(graphs, "sentence", "bm25", min_score=70.5)
        for _ in range(2):
            assert retriever("black tea") == []
    best = [record.getMessage().rpartition(" ")[2] for record in caplog.records]
    assert len(best) == 3
    assert len({*best}) > 1
    caplog.clear()
    for graph in (first, second):
        reranker = Reranker(KeywordFilter(required=["tea"]), min_score=70.5)
        for _ in range(2):
            assert RerankRetriever(Retriever(graph, "sentence"), reranker)("black tea") == []
    assert len(caplog.records) == 2


def test_evidence_is_unaffected_by_later_changes() -> None:
    def search_both() -> tuple[NodeGraph, ScoredNode, ScoredNode]:
        graph = NodeGraph()
        graph.add([Document("Green tea is steamed. Rivers run.", id="a")])
        (read, later) = (graph.search("green tea")[0] for _ in range(2))
        assert read.evidence
        return graph, read, later

    graph, read, later = search_both()
    graph.add([Document("Other words.", id="a")])
    assert later.evidence == read.evidence
    assert later.explain() == read.explain()
    graph, read, later = search_both()
    graph.remove("a")
    assert later.evidence == read.evidence


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda result: pickle.loads(pickle.dumps(result)),
        lambda result: replace(result),
    ],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_copies_keep_evidence_that_was_not_read(copied: Callable[[ScoredNode], ScoredNode]) -> None:
    graph = NodeGraph()
    graph.add("Green tea is steamed. Rivers run.")
    read, other = (graph.search("green tea")[0] for _ in range(2))
    assert [match.similarity for match in read.evidence] == ["bm25", "bm25"]
    assert [match.share for match in read.evidence] == [m.share for m in copied(other).evidence]
    assert copied(other) == read
    assert hash(other) == hash(read)


def texts_held_by(result: ScoredNode) -> set[str]:
    """Return the texts that a result keeps in memory, except those that its graph holds."""
    seen: dict[int, object] = {}
    found: list[object] = [result]
    while found:
        held = found.pop()
        is_stopped = isinstance(held, (NodeGraph, type, ModuleType, FunctionType))
        if id(held) not in seen and not is_stopped:
            seen[id(held)] = held
            found += gc.get_referents(held)
    return {held for held in seen.values() if isinstance(held, str)}


def test_kept_result_holds_no_other_targets() -> None:
    graph = NodeGraph()
    graph.add([Document(f"Green tea {number}.", id=f"document {number}") for number in range(20)])
    first, second = graph.search("green tea 3", top_k=2)
    ids = {f"document {number}" for number in range(20)}
    assert texts_held_by(first) & ids == {first.node.document_id, second.node.document_id}
    assert first.evidence
    assert texts_held_by(first) & ids == {first.node.document_id}


def test_unknown_attribute_of_result_raises() -> None:
    graph = NodeGraph()
    graph.add("Green tea.")
    with pytest.raises(AttributeError, match="page_contents"):
        _ = graph.search("tea")[0].page_contents
