"""Filters of a call are added to the retriever's filters, which keeps tenants separate."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    HyDERetriever,
    LinkRetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QaRetriever,
    QueryRewriteRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    SubQuestionRetriever,
    WindowRetriever,
    restrict,
)

OURS = {"tenant": "ours"}
NEW = {"year": 2020}
QUERY = "Which tea is green?"
STEP = "Answer: unknown\nAnswered: no\nNext question: Which tea is black?"
BOTH = {"ours-2020-0", "ours-2020-1"}


def letters(texts: Any) -> list[list[float]]:
    return [[text.lower().count(c) + 0.1 for c in "aegkrt"] for text in texts]


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    """Documents of two tenants and two years: each filter alone leaves more than both do."""
    graph = NodeGraph(embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("question", lambda text: ["Which tea is green?"])
    for tenant in ("theirs", "ours"):
        for year in (1999, 2020):
            for number in range(2):
                name = f"{tenant}-{year}-{number}"
                text = f"Green tea of {name}.\nBlack tea of Anhui.\nA cup of {name}."
                graph.add(Document(text, {"tenant": tenant, "year": year}, id=name))
    ids = [node.id for node in graph.nodes("ROOT")]
    for source in ids:
        for target in ids:
            if source != target:
                graph.link(source, target)
    return graph


def own(graph: NodeGraph, **settings: Any) -> Retriever:
    return Retriever(graph, "line", "bm25", filters=OURS, top_k=20, **settings)


def contents() -> NodeGraph:
    """A table of contents, whose only entry stands for a retriever without filters."""
    graph = NodeGraph(progress=False)
    graph.add(Document("Green tea and a cup.", {"retriever": "all", **OURS, **NEW}, id="entry"))
    return graph


PROMPTS: list[str] = []


def says(text: str) -> Callable[[str], str]:
    return lambda prompt: PROMPTS.append(prompt) or text


MAKE: dict[str, Callable[[NodeGraph], Any]] = {
    "bm25": own,
    "lifted": lambda g: own(g, target="ROOT"),
    "summed": lambda g: own(g, target="ROOT", lift="sum"),
    "cosine": lambda g: Retriever(g, "line", "cosine", filters=OURS, top_k=20),
    "window": lambda g: WindowRetriever(own(g), 1, 1),
    "auto-merge": lambda g: AutoMergeRetriever(own(g)),
    "fusion": lambda g: FusionRetriever([own(g), own(g, target="ROOT")], top_k=20),
    "rerank": lambda g: RerankRetriever(own(g), "KeywordFilter", required=["tea"], top_k=20),
    "recursive": lambda g: RecursiveRetriever(
        g, ["line", "question"], "ROOT", "bm25", filters=OURS, top_k=20
    ),
    "references": lambda g: RecursiveRetriever(
        contents(),
        ["ROOT"],
        similarity="bm25",
        filters=OURS,
        top_k=20,
        references={"all": Retriever(g, "line", "bm25", top_k=20)},
    ),
    "links": lambda g: LinkRetriever(own(g, target="ROOT"), g, top_k=20),
    "links with filters": lambda g: LinkRetriever(
        Retriever(g, "ROOT", "bm25", top_k=20), g, filters=OURS, top_k=20
    ),
    "questions and answers": lambda g: QaRetriever(
        g, "question", "bm25", min_score=0.1, filters=OURS, top_k=20
    ),
    "rewrite": lambda g: QueryRewriteRetriever(own(g), says("green tea")),
    "multi-query": lambda g: MultiQueryRetriever(own(g), says("1. black tea?\n2. a cup?")),
    "HyDE": lambda g: HyDERetriever(own(g), says("Green tea is a tea of Anhui.")),
    "HyDE of vectors": lambda g: HyDERetriever(
        Retriever(g, "line", "cosine", filters=OURS, top_k=20), says("Green tea is of Anhui.")
    ),
    "sub-questions": lambda g: SubQuestionRetriever(own(g), says("Which is green?\nA cup?")),
    "multi-step": lambda g: MultiStepRetriever(own(g), says(STEP)),
    "router": lambda g: RouterRetriever({"all": ("everything", own(g))}, says("all")),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_filters_of_call_join_filters_of_constructor(
    graph: NodeGraph, make: Callable[[NodeGraph], Any]
) -> None:
    retriever = make(graph)

    def documents(results: Any) -> set[str]:
        return {result.node.document_id for result in results}

    ours = documents(retriever.retrieve(QUERY))
    assert ours > BOTH
    assert all(name.startswith("ours") for name in ours)
    assert documents(retriever.retrieve(QUERY, filters=NEW)) == BOTH
    assert documents(asyncio.run(retriever.aretrieve(QUERY, filters=NEW))) == BOTH
    if hasattr(retriever, "batch"):
        for results in retriever.batch([QUERY, "a cup of tea"], filters=NEW):
            assert documents(results) == BOTH
        for results in asyncio.run(retriever.abatch([QUERY, "a cup of tea"], filters=NEW)):
            assert documents(results) == BOTH
    assert documents(retriever.retrieve(QUERY)) == ours  # nothing is left behind


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_call_cannot_replace_condition(graph: NodeGraph, make: Callable[[NodeGraph], Any]) -> None:
    retriever = make(graph)
    theirs = {"tenant": "theirs"}
    assert retriever.retrieve(QUERY, filters=theirs) == []
    assert asyncio.run(retriever.aretrieve(QUERY, filters=theirs)) == []
    assert langchain.NodeGraphRetriever(retriever=retriever).invoke(QUERY, filter=theirs) == []
    assert llama_index.NodeGraphRetriever(retriever, filters=theirs).retrieve(QUERY) == []
    own = langchain.NodeGraphRetriever(retriever=retriever, filter=NEW)
    assert own.invoke(QUERY, filter={"year": 1999}) == []
    assert len(own.invoke(QUERY, filter={"year": {"gte": 2000}})) == len(own.invoke(QUERY)) > 0


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_restricted_retriever_keeps_restriction(
    graph: NodeGraph, make: Callable[[NodeGraph], Any]
) -> None:
    retriever = make(graph)
    restricted = restrict(retriever, NEW)
    expected = retriever.retrieve(QUERY, filters=NEW)
    for results in (
        restricted.retrieve(QUERY),
        asyncio.run(restricted.aretrieve(QUERY)),
        restricted.retrieve(QUERY, filters={"year": {"gte": 2000}}),
        *restricted.batch([QUERY])[:1],
    ):
        assert {r.node.id for r in results} == {r.node.id for r in expected}
    assert restricted.retrieve(QUERY, filters={"year": 1999}) == []


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_blank_query_lists_filtered_nodes_without_model(
    graph: NodeGraph, make: Callable[[NodeGraph], Any]
) -> None:
    PROMPTS.clear()
    retriever = make(graph)
    found = {result.node.document_id for result in retriever.retrieve("", filters=NEW)}
    assert found == BOTH
    assert retriever.retrieve(" ", filters={"year": 1}) == []
    assert PROMPTS == []
