"""The cosine similarity through the retriever: sync, async, batch, lifted, over several graphs."""

import asyncio
import threading
from functools import partial

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.models.embedder import Embedder
from nodekin.retrievers import Retriever
from nodekin.retrievers.ranking import lifted_score

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def count_letters(texts: list[str]) -> np.ndarray:
    return np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float32)


DOCUMENTS = [
    Document("green tea; black tea\nriver water; tea water", {"topic": "tea"}, id="tea"),
    Document("river bank; river bed\nsea", {"topic": "river"}, id="river"),
    Document("bank money", {"topic": "money"}, id="bank"),
]


def lines(text: str) -> list[str]:
    return text.splitlines()


def parts(text: str) -> list[str]:
    return text.split("; ")


def new_graph(documents=DOCUMENTS, embed=count_letters) -> NodeGraph:
    graph = NodeGraph(progress=False, embed=embed)
    graph.create_node_group("line", lines)
    graph.create_node_group("part", parts, parent="line")
    graph.add(documents)
    return graph


def cosine(one: str, other: str) -> float:
    a, b = count_letters([one, other]).astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def seen(results) -> list[tuple[str, float]]:
    return [(result.node.text, result.score) for result in results]


def test_cosine_results_are_sorted_with_evidence() -> None:
    graph = new_graph()
    results = Retriever(graph, "part", "cosine", top_k=3).retrieve("tea green")
    assert results[0].node.text == "green tea"
    for result in results:
        assert result.score == pytest.approx(cosine("tea green", result.node.text), abs=1e-6)
        (match,) = result.evidence
        assert (match.similarity, match.query, match.embed_key) == (
            "cosine",
            "tea green",
            "default",
        )
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)


@pytest.mark.parametrize("how", ["max", "sum", "mean"])
def test_lifted_cosine_equals_manual_scores(how: str) -> None:
    graph = new_graph()
    retriever = Retriever(graph, "part", "cosine", target="ROOT", top_k=2, lift=how)
    results = retriever.retrieve("bank")
    combine = partial(lifted_score, how=how)
    expected = {
        d.id: combine([cosine("bank", p) for line in lines(d.text) for p in parts(line)])
        for d in DOCUMENTS
    }
    best = sorted(expected, key=lambda i: -expected[i])[:2]
    assert [r.node.id for r in results] == best
    assert [r.score for r in results] == pytest.approx([expected[i] for i in best], abs=1e-5)


def test_cosine_min_score_limits_results() -> None:
    graph = new_graph()
    scores = [r.score for r in Retriever(graph, "part", "cosine", top_k=9)("tea")]
    for min_score in (scores[2], 1, 0, -1):
        retriever = Retriever(graph, "part", "cosine", min_score=min_score, top_k=9)
        assert [r.score for r in retriever("tea")] == [s for s in scores if s >= min_score]
    text = Retriever(graph, "line", "cosine", top_k=2, output_format="content", join="|")("sea")
    assert text == "sea|" + text.split("|")[1]


async def test_batch_and_async_embed_queries_once() -> None:
    calls: list[list[str]] = []

    def embed_queries(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return count_letters(texts)

    model = Embedder(count_letters, "letters", embed_queries=embed_queries)
    queries = ["tea", "bank", "", "sea", "tea"]
    retriever = Retriever(new_graph(embed=model), "part", "cosine", target="line", top_k=2)
    batch = retriever.batch(queries)
    assert calls == [["tea", "bank", "sea"]]
    assert await retriever.abatch(queries) == batch
    assert [retriever.retrieve(query) for query in queries] == batch
    assert await asyncio.gather(*map(retriever.aretrieve, queries)) == batch
    assert len(calls) == 1


async def test_async_model_runs_in_event_loop() -> None:
    loop_thread, asked = threading.get_ident(), []

    async def aembed_queries(texts: list[str]) -> np.ndarray:
        assert threading.get_ident() == loop_thread
        asked.extend(texts)
        await asyncio.sleep(0)
        return count_letters(texts)

    model = Embedder(count_letters, "letters", aembed_queries=aembed_queries)
    retriever = Retriever(new_graph(embed=model), "part", "cosine", top_k=1)
    assert seen(await retriever.aretrieve("black tea")) == [("black tea", 1.0)]
    assert asked == ["black tea"]


def test_models_run_without_graph_lock() -> None:
    def embed(texts: list[str]) -> np.ndarray:
        graph.add(Document("tea", id="added by the model"))  # an error while the graph is held
        return count_letters(texts)

    graph = NodeGraph(progress=False, embed=Embedder(count_letters, "l", embed_queries=embed))
    graph.add(Document("sea", id="1"))
    results = Retriever(graph, "ROOT", "cosine", top_k=1)("tea")
    assert [r.node.id for r in results] == ["added by the model"]
