"""Built-in indexes and registered functions return the same results after every change."""

from collections.abc import Sequence
from typing import Any

import pytest
from support.index_checks import check_index, check_retriever

from nodekin.nodegraph import Node
from nodekin.retrievers import AutoMergeRetriever, FusionRetriever, Retriever, register_similarity
from nodekin.retrievers.similarities import registry
from nodekin.retrievers.similarities.bm25 import Bm25


@pytest.mark.slow
@pytest.mark.parametrize(
    "similarity", ["bm25", Bm25(analyzer=str.split), "cosine", "exact"], ids=str
)
def test_built_in_similarity_passes(similarity: Any) -> None:
    check_index(similarity, steps=25)


def test_map_index_passes(capsys: pytest.CaptureFixture[str]) -> None:
    check_index(index="map")
    assert capsys.readouterr() == ("", "")  # no bar


@pytest.mark.parametrize("batch", [False, True])
def test_registered_function_passes(monkeypatch: pytest.MonkeyPatch, batch: bool) -> None:
    monkeypatch.setattr(registry, "REGISTERED", {})

    def common(query: str, node: Node) -> float | None:
        return float(len(set(query) & set(node.text))) or None

    def common_of_all(query: str, nodes: Sequence[Node]) -> list[float | None]:
        return [common(query, node) for node in nodes]

    if batch:
        check_index(register_similarity(batch=True)(common_of_all))
    else:
        check_index(register_similarity(common))


def test_retrievers_pass() -> None:
    check_retriever(lambda graph: Retriever(graph, "line", "cosine"))
    check_retriever(lambda graph: AutoMergeRetriever(Retriever(graph, "line"), target="ROOT"))
    check_retriever(
        lambda graph: FusionRetriever(
            [Retriever(graph, "line"), Retriever(graph, "line", "cosine")]
        )
    )
