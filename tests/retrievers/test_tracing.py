"""Traces, observers and explanations of a retrieval."""

import asyncio
import re

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever, trace
from nodekin.retrievers.tracing import Span, observe, start_span


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document("green tea\nblack tea", id="tea"), Document("rivers run", id="river")])
    graph.create_node_group("line", str.splitlines)
    return graph


@pytest.fixture
def fusion(graph: NodeGraph) -> FusionRetriever:
    return FusionRetriever([Retriever(graph, "line", target="ROOT"), Retriever(graph, "ROOT")])


def names(root: Span) -> list[tuple[str, list[str]]]:
    return [(each.name, [inner.name for inner in each.children]) for each in root.children]


def test_trace_returns_tree_of_stages(fusion: FusionRetriever) -> None:
    with trace() as root:
        fusion("green tea")
    assert names(root) == [("fuse", ["search", "search"])]
    (fused,) = root.children
    assert fused.attributes == {"mode": "rrf", "query": "green tea", "results": 1}
    assert fused.children[0].attributes == {
        "query": "green tea",
        "group": "line",
        "similarity": "bm25",
        "target": "ROOT",
        "results": 1,
    }
    shown = re.sub(r"\d+\.\d ms", "0.0 ms", str(root))
    assert shown.splitlines()[1:] == [
        "└─ fuse query='green tea' mode=rrf results=1 (0.0 ms)",
        "   ├─ search query='green tea' group=line similarity=bm25 target=ROOT results=1 (0.0 ms)",
        "   └─ search query='green tea' group=ROOT similarity=bm25 target=ROOT results=1 (0.0 ms)",
    ]


async def test_concurrent_tasks_keep_span_parents(fusion: FusionRetriever) -> None:
    with trace() as root:
        await asyncio.gather(fusion.aretrieve("tea"), fusion.aretrieve("rivers"))
    assert names(root) == [("fuse", ["search", "search"])] * 2
    for fused in root.children:
        assert {inner.attributes["query"] for inner in fused.children} == {
            fused.attributes["query"]
        }


def test_observer_gets_begin_and_end(fusion: FusionRetriever) -> None:
    heard: list[tuple[str, str, str | None]] = []

    class Ear:
        def begin(self, span: Span, parent: Span | None) -> None:
            heard.append(("begin", span.name, parent.name if parent else None))

        def end(self, span: Span) -> None:
            heard.append(("end", span.name, None))
            assert span.seconds is not None

    with observe(Ear()):
        fusion("tea")
    assert (heard[0], heard[-1]) == (("begin", "fuse", None), ("end", "fuse", None))
    within = [("begin", "search", "fuse"), ("end", "search", None)] * 2
    assert sorted(heard[1:-1], key=str) == sorted(within, key=str)  # both searches run concurrently
    fusion("tea")
    assert len(heard) == 6  # the observer is removed


def test_failed_span_contains_error() -> None:
    with trace() as root, pytest.raises(ValueError, match="no"), start_span("work", on="x"):
        raise ValueError("no")
    assert root.children[0].error is not None
    assert "work on=x" in str(root)
    assert "failed: ValueError: no" in str(root)


def test_explain_lists_all_matches(fusion: FusionRetriever) -> None:
    (best, *_) = fusion("green tea")
    lines = best.explain().splitlines()
    assert lines[0] == '0.0328  ROOT  "green tea black tea"'
    assert len(lines) == 1 + len(best.evidence)
    assert re.fullmatch(
        r'  \d\.\d{4}  line  bm25 for "green tea": "green tea", which gave 0\.0164', lines[1]
    )
    assert lines[-1].endswith('bm25 for "green tea": itself, which gave 0.0164')
