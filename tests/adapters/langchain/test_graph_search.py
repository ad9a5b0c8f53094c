"""The search that the options of ``from_graph`` and ``from_documents`` select."""

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support.langchain_peers import Pairs

from nodekin.adapters.langchain import NodeGraphRetriever, as_index
from nodekin.nodegraph import NodeGraph

TEXTS = ["Green tea is steamed. Black tea is fermented.", "Coffee is roasted. Coffee is hot."]


def ids(documents):
    return [document.page_content.split()[0] for document in documents]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lift": "sum"}, "lift= requires similarity=, group= or a splitter"),
        ({"follow_links": True, "similarity": "bm25"}, "follow_links= requires the default search"),
        ({"follow_links": False, "group": "FineChunk"}, "follow_links= requires the default"),
        ({"strategy": "rewrite"}, "strategy= and llm= must be given together"),
        ({"llm": str}, "strategy= and llm= must be given together"),
    ],
)
def test_option_of_another_search_raises(options, says):
    with pytest.raises(TypeError, match=says):
        NodeGraphRetriever.from_texts(TEXTS, **options)


def test_lift_selects_the_score_of_parents():
    scores = {}
    for lift in ("max", "sum"):
        retriever = NodeGraphRetriever.from_texts(
            TEXTS, group="FineChunk", target="ROOT", lift=lift, score_key="score"
        )
        scores[lift] = retriever.invoke("coffee")[0].metadata["score"]
    assert scores["sum"] >= scores["max"]


def test_index_of_vector_store_is_searched():
    created = []

    def make(embeddings, group):
        created.append(InMemoryVectorStore(embeddings))
        return created[-1]

    retriever = NodeGraphRetriever.from_texts(
        TEXTS, Pairs(), similarity="cosine", index=as_index(make), k=1
    )
    assert ids(retriever.invoke("Coffee is roasted. Coffee is hot.")) == ["Coffee"]
    assert len(created) == 1


def test_embed_keys_select_the_models():
    graph = NodeGraph(embed={"a": Pairs(), "b": Pairs()}, progress=False)
    graph.add([Document(text, id=text[0]) for text in TEXTS])
    retriever = NodeGraphRetriever.from_graph(graph, similarity="cosine", embed_keys=["b"])
    assert retriever.native_retriever.embed_keys == ["b"]


def test_from_texts_passes_every_option_on():
    retriever = NodeGraphRetriever.from_texts(
        TEXTS,
        ids=["tea", "coffee"],
        k=1,
        fetch_k=3,
        filter={"n": 1},
        score_threshold=0.1,
        phrases="first",
        weights={"words": 2},
        score_key="score",
        place=True,
        evidence=True,
        name="tea",
        tags=["a"],
        metadata={"b": 1},
    )
    assert [node.id for node in retriever.graph.nodes("ROOT")] == ["tea", "coffee"]
    fields = retriever.model_dump(exclude={"retriever", "graph", "max_tokens"})
    assert fields == {
        "k": 1,
        "fetch_k": 3,
        "filter": {"n": 1},
        "score_threshold": 0.1,
        "phrases": "first",
        "weights": {"words": 2},
        "score_key": "score",
        "place": True,
        "evidence": True,
        "name": "tea",
        "tags": ["a"],
        "metadata": {"b": 1},
    }
