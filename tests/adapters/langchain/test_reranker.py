"""Any nodekin reranker is a document compressor."""

import asyncio
import time

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from pydantic import ValidationError
from support.langchain_runs import FinishedRuns, tree

from nodekin.adapters.langchain import NodeGraphReranker
from nodekin.retrievers import (
    Reranker,
)
from nodekin.retrievers.protocols import RerankError

TEXTS = ["black tea", "green tea", "红茶和绿茶", "rivers"]


def green(query, texts):
    return [float(("green" in text) + 2 * ("绿" in text)) - 5 for text in texts]


@pytest.fixture
def documents():
    return [
        Document(text, metadata={"n": n, "tags": ["a"]}, id=f"d{n}") for n, text in enumerate(TEXTS)
    ]


@pytest.fixture
def reranker():
    return NodeGraphReranker(
        reranker=Reranker("ModuleReranker", model=green), score_key="relevance_score"
    )


async def rerank(reranker, mode, documents, query="Which tea is green?", **kwargs):
    if mode == "sync":
        return reranker.compress_documents(documents, query, **kwargs)
    return await reranker.acompress_documents(documents, query, **kwargs)


async def test_best_documents_come_first(reranker, documents, mode):
    found = await rerank(reranker, mode, documents)
    assert [d.id for d in found] == ["d2", "d1", "d0", "d3"]
    assert [d.metadata["relevance_score"] for d in found] == [-3.0, -4.0, -5.0, -5.0]
    assert [d.page_content for d in found] == [TEXTS[n] for n in (2, 1, 0, 3)]
    assert [d.metadata["n"] for d in found] == [2, 1, 0, 3]


async def test_top_n_and_score_key_apply(documents, mode):
    def never(query, texts):
        raise AssertionError

    nothing = NodeGraphReranker(reranker=Reranker("ModuleReranker", model=never))
    assert await rerank(nothing, mode, []) == []
    own = Reranker("ModuleReranker", model=green, top_k=3)
    assert len(await rerank(NodeGraphReranker(reranker=own), mode, documents)) == 3
    named = NodeGraphReranker(reranker=own, top_n=1, score_key="score")
    assert [d.metadata["score"] for d in await rerank(named, mode, documents)] == [-3.0]
    plain = await rerank(NodeGraphReranker(own, score_key=None), mode, documents)
    assert plain[0].metadata == documents[2].metadata


async def test_documents_are_copies(reranker, documents, mode):
    before = [document.model_copy(deep=True) for document in documents]
    found = await rerank(reranker, mode, documents)
    found[0].metadata["tags"].append("b")
    found[0].metadata["new"] = 1
    assert documents == before


async def test_missing_and_equal_ids_are_kept(reranker, mode):
    documents = [
        Document("black tea"),
        Document("green tea"),
        Document("black tea", id="x"),
        Document("绿茶", id="x"),
        Document("green", id="1.0"),
    ]
    found = await rerank(reranker, mode, documents)
    assert [(d.id, d.page_content) for d in found] == [
        ("x", "绿茶"),
        (None, "green tea"),
        ("1.0", "green"),
        (None, "black tea"),
        ("x", "black tea"),
    ]


async def test_filter_keeps_scores(documents, mode):
    documents[1].metadata["relevance_score"] = 7.5
    reranker = NodeGraphReranker(reranker=Reranker("KeywordFilter", required=["tea"]))
    found = await rerank(reranker, mode, documents)
    assert [(d.id, d.metadata.get("relevance_score")) for d in found] == [("d0", None), ("d1", 7.5)]


def test_arguments_of_reranker_are_accepted(documents):
    class Backwards:
        name = "backwards"

        def rerank(self, results, query):
            return list(reversed(results))

    reranker = NodeGraphReranker(reranker=Backwards())
    assert [d.id for d in reranker.compress_documents(documents, "q")] == ["d3", "d2", "d1", "d0"]
    assert NodeGraphReranker("KeywordFilter").reranker.name == "KeywordFilter"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"reranker": 5}, TypeError),
        ({"reranker": "Module"}, ValueError),
        ({"reranker": "KeywordFilter", "top_n": 0}, ValidationError),
        ({"reranker": "KeywordFilter", "topn": 1}, TypeError),
        ({"reranker": "KeywordFilter", "score_key": ""}, ValidationError),
    ],
)
def test_wrong_arguments_raise(arguments, error):
    with pytest.raises(error):
        NodeGraphReranker(**arguments)


async def test_reranker_has_a_run(reranker, documents, mode):
    tracer = FinishedRuns()
    await rerank(reranker, mode, documents, callbacks=[tracer])
    (run,) = tracer.roots
    assert (run.name, run.run_type) == ("NodeGraphReranker", "chain")
    assert run.inputs == {"query": "Which tea is green?", "documents": documents}
    assert [d.id for d in run.outputs["output"]] == ["d2", "d1", "d0", "d3"]
    stages = [("rerank", [("model", [])])] if mode == "sync" else []
    assert tree(run) == ("NodeGraphReranker", stages)


async def test_failing_model_raises(documents, mode):
    def failing(query, texts):
        raise ConnectionError("gone")

    tracer = FinishedRuns()
    reranker = NodeGraphReranker(reranker=Reranker("ModuleReranker", model=failing))
    with pytest.raises(RerankError, match="gone"):
        await rerank(reranker, mode, documents, callbacks=[tracer])
    assert "gone" in tracer.roots[0].error


async def test_acompress_documents_does_not_block_loop(documents):
    def slow(query, texts):
        time.sleep(0.05)
        return [1.0] * len(texts)

    reranker = NodeGraphReranker(reranker=Reranker("ModuleReranker", model=slow))
    with blockbuster_ctx():
        many = (reranker.acompress_documents(documents, "q") for _ in range(5))
        assert [len(each) for each in await asyncio.gather(*many)] == [4] * 5
