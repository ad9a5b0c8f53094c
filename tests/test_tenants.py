"""No text of another tenant is returned, shown, cited, traced or sent to a model.

Engines, adapters and tools of both frameworks hold random retrievers, one to three levels deep,
with restrictions at random levels on random fields. Random calls try to evade the restrictions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from support.streams import finish
from support.stress import LONG, amount

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, EntityExtractor, Node, NodeGraph
from nodekin.retrievers import (
    Answer,
    AutoMergeRetriever,
    FusionRetriever,
    HyDERetriever,
    LinkRetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QaRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    ScoredNode,
    SelfQueryRetriever,
    SubQuestionRetriever,
    WindowRetriever,
    metadata_key,
    register_reranker,
    restrict,
    trace,
)

FIELDS = ("tenant", "and", "or", "not", "$or", "id", "text", "a.b", "主题", "document.id")
QUERY = "Which green tea has Henrik Ibsen?"
OURS, THEIRS = "alphasecret", "betasecret"
MARKS = {"A": OURS, "B": THEIRS}


@cache
def corpus(key: str, mixed: bool) -> NodeGraph:
    """Return linked texts of two tenants, optionally with a shared text."""
    graph = NodeGraph(progress=False, embed=letters)

    def lines(node: Node) -> list[Node]:
        shared = key not in node.metadata
        parts = node.text.split("\n")
        starts = [node.text.index(part) for part in parts]
        return [
            Node(
                part,
                {key: "A" if OURS in part else "B"} if shared else {},
                start=start,
                end=start + len(part),
            )
            for part, start in zip(parts, starts, strict=True)
        ]

    graph.create_node_group("line", lines, trans_node=True)
    graph.create_node_group("question", questions, parent="line", trans_node=True)
    for tenant, mark in MARKS.items():
        for number in range(3):
            text = (
                f"Green tea of Henrik Ibsen, {mark} {number}.\n"
                f"Henrik Ibsen has milk, {mark} m{number}."
            )
            graph.add(Document(text, {key: tenant}, id=f"{tenant}{number}"))
    if mixed:
        graph.add(Document(f"Green tea, {OURS} x.\nGreen tea, {THEIRS} x.", id="mixed"))
    graph.create_node_group("entity", EntityExtractor())
    ids = [node.id for node in graph.nodes("ROOT")]
    for source in ids:
        for target in ids:
            if source != target:
                graph.link(source, target)
    return graph


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.lower().count(letter) + 0.1 for letter in "aegkrt"] for text in texts]


def questions(node: Node) -> list[Node]:
    return [Node(QUERY, {"answer": node.text})]


class Seen(BaseCallbackHandler):
    """The texts of results, answers, prompts, traces and callbacks."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, *values: Any) -> None:
        for value in values:
            if isinstance(value, ScoredNode):
                self.texts.append(value.explain())
                for node in (value.node, *(evidence.node for evidence in value.evidence)):
                    self.texts += [node.text, str(node.content), repr(node.metadata), node.id]
            elif isinstance(value, Answer):
                self.add(value.text, value.notes, value.searched)
                for source in value.sources:
                    self.add(source.text, source.title, source.result, *source.merged)
                self.add(*(omitted.result for omitted in value.omitted))
            elif isinstance(value, NodeWithScore):
                self.add(value.text, value.to_dict(), getattr(value, "evidence", None))
            elif isinstance(value, list | tuple):
                self.add(*value)
            else:
                self.texts.append(value if isinstance(value, str) else repr(value))

    def model(self, prompt: str) -> str:
        self.add(prompt)
        if "Next question" in prompt:
            return "Answer: milk\nAnswered: no\nNext question: Who has green milk?"
        return "Which tea has milk?\nWho is Henrik Ibsen?"

    def scores(self, query: str, passages: list[str]) -> list[float]:
        self.add(passages)
        return [float(len(passage)) for passage in passages]

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.add(documents)

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.add(inputs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.add(outputs)

    def shows(self, mark: str) -> bool:
        return any(mark in text for text in self.texts)


Make = Callable[[NodeGraph, Any, Seen], Any]

LEAVES: dict[str, Make] = {
    "words": lambda g, own, seen: Retriever(g, "line", filters=own),
    "vectors": lambda g, own, seen: Retriever(g, "line", "cosine", filters=own),
    "documents": lambda g, own, seen: Retriever(g, "ROOT", filters=own),
    "lifted": lambda g, own, seen: Retriever(g, "line", target="ROOT", filters=own),
    "summed": lambda g, own, seen: Retriever(g, "line", target="ROOT", lift="sum", filters=own),
    "down": lambda g, own, seen: Retriever(g, "ROOT", target="line", filters=own),
    "pool": lambda g, own, seen: RecursiveRetriever(g, ["line", "ROOT"], filters=own),
    "pairs": lambda g, own, seen: QaRetriever(g, "question", filters=own),
}

Wrap = Callable[[Any, NodeGraph, Any, Seen], Any]

WRAPS: dict[str, Wrap] = {
    "window": lambda r, g, own, seen: WindowRetriever(r, 2, 2),
    "merge": lambda r, g, own, seen: AutoMergeRetriever(r, ratio=0.2),
    "fuse": lambda r, g, own, seen: FusionRetriever([r, LEAVES["lifted"](g, own, seen)]),
    "rerank": lambda r, g, own, seen: RerankRetriever(r, "ModuleReranker", model=seen.scores),
    "links": lambda r, g, own, seen: LinkRetriever(documents_of(r, g, own), g, filters=own),
    "entities": lambda r, g, own, seen: LinkRetriever(documents_of(r, g, own), g, via="entity"),
    "rewrite": lambda r, g, own, seen: QueryRewriteRetriever(r, seen.model),
    "queries": lambda r, g, own, seen: MultiQueryRetriever(r, seen.model),
    "hyde": lambda r, g, own, seen: HyDERetriever(r, seen.model),
    "parts": lambda r, g, own, seen: SubQuestionRetriever(r, seen.model, answers=True),
    "steps": lambda r, g, own, seen: MultiStepRetriever(r, seen.model, max_steps=2),
    "conditions": lambda r, g, own, seen: SelfQueryRetriever(r, seen.model),
    "route": lambda r, g, own, seen: RouterRetriever({"r": r}, lambda prompt: "r"),
    "refer": lambda r, g, own, seen: RecursiveRetriever(
        entries(g), ["ROOT"], references={"r": r}, filters=own
    ),
}


def documents_of(retriever: Any, graph: NodeGraph, own: Any) -> Any:
    """Return a retriever whose hits are documents, the ends of the links."""
    documents = Retriever(graph, "ROOT", filters=own)
    return FusionRetriever([documents, RerankRetriever(retriever, only_documents)])


@register_reranker(batch=True)
def only_documents(nodes: list[Node], query: str) -> list[Node]:
    return [node for node in nodes if node.group == "ROOT"]


@cache
def entries(graph: NodeGraph) -> NodeGraph:
    """Return a table of contents with an entry of each tenant."""
    (key,) = graph.node("A0").own_metadata
    contents = NodeGraph(progress=False)
    for tenant in MARKS:
        fields = {"retriever": "r", key: tenant}
        contents.add(Document(f"Green tea has Henrik Ibsen, all {MARKS[tenant]}", fields))
    return contents


Way = Callable[[Any, Any, Any, Any, Seen], Any]


def converse(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    return engine.query("And milk?", history=[("Who has tea?", "Some do.")], filters=filters)


def invoke_langchain(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    retriever = langchain.NodeGraphRetriever(r, filter=own, evidence=True)
    config: Any = {"callbacks": [seen]}
    return [
        retriever.invoke(QUERY, config, filter=filters),
        asyncio.run(retriever.ainvoke(QUERY, config, filter=filters)),
    ]


def answer_in_langchain(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    runnable = langchain.engine_runnable(restrict(engine, own) if own else engine, output="dict")
    config: Any = {"callbacks": [seen]}
    answer = runnable.invoke(QUERY, config, filter=filters)
    return [answer, *runnable.stream(QUERY, config, filter=filters)]


def call_langchain_tool(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    retriever = langchain.NodeGraphRetriever(r, filter=own, evidence=True)
    conditions = (lambda config: filters) if filters else None
    tool = langchain.retriever_tool(retriever, "t", "d", conditions=conditions, show=FIELDS)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "t", "args": {"query": QUERY}})
    return [message.content, message.artifact]


def retrieve_in_llama_index(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    retriever = llama_index.NodeGraphRetriever(r, filters=own)
    return [
        retriever.retrieve(QUERY, filters=filters),
        asyncio.run(retriever.aretrieve(QUERY, filters=filters)),
    ]


def answer_in_llama_index(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    both = all_conditions(own, filters)
    response = llama_index.NodeGraphQueryEngine(r, MockLLM(), filters=both).query(QUERY)
    return [str(response), response.metadata, response.source_nodes]


def call_llama_index_tools(r: Any, engine: Any, own: Any, filters: Any, seen: Seen) -> Any:
    both = all_conditions(own, filters)
    retriever = llama_index.NodeGraphRetriever(r, filters=both)
    answers = llama_index.NodeGraphQueryEngine(r, MockLLM(), filters=both)
    outputs = [
        RetrieverTool.from_defaults(retriever).call(QUERY, filters={"tenant": "B"}),
        QueryEngineTool.from_defaults(answers).call(QUERY),
    ]
    return [(output.content, output.raw_output) for output in outputs]


WAYS: dict[str, Way] = {
    "retrieve": lambda r, e, own, filters, seen: r.retrieve(QUERY, filters=filters),
    "aretrieve": lambda r, e, own, filters, seen: asyncio.run(r.aretrieve(QUERY, filters=filters)),
    "batch": lambda r, e, own, filters, seen: r.batch([QUERY, "milk", " "], filters=filters),
    "query": lambda r, e, own, filters, seen: e.query(QUERY, filters=filters),
    "aquery": lambda r, e, own, filters, seen: asyncio.run(e.aquery(QUERY, filters=filters)),
    "stream": lambda r, e, own, filters, seen: finish(e.stream(QUERY, filters=filters)),
    "conversation": converse,
    "langchain retriever": invoke_langchain,
    "langchain engine": answer_in_langchain,
    "langchain tool": call_langchain_tool,
    "llama_index retriever": retrieve_in_llama_index,
    "llama_index engine": answer_in_llama_index,
    "llama_index tools": call_llama_index_tools,
}

OWNERS = ("restriction", "retriever", "call", "adapter")
"""The place of the condition on the tenant."""


def all_conditions(*filters: Any) -> Any:
    given_filters = [one for one in filters if one]
    return {"and": given_filters} if given_filters else None


def attempt(
    key: str, owner: str | None, way: str, leaf: str, wraps: tuple[str, ...], filters: Any
) -> Seen:
    """Search for another tenant's texts in one way."""
    seen, condition = Seen(), {metadata_key(key): "A"}
    graph = corpus(key, owner in ("restriction", None))
    own = condition if owner == "retriever" else None
    retriever = LEAVES[leaf](graph, own, seen)
    for name in wraps:
        retriever = WRAPS[name](retriever, graph, own, seen)
    qa = QaRetriever(graph, "question", filters=own) if "q" in leaf else None
    engine = QueryEngine(retriever, seen.model, qa=qa)
    if owner == "restriction":
        retriever, engine = restrict(retriever, condition), restrict(engine, condition)
    of_adapter = condition if owner == "adapter" else None
    call_filters = condition if owner == "call" else filters
    with trace() as traced:
        found = WAYS[way](retriever, engine, of_adapter, call_filters, seen)
    seen.add(found if isinstance(found, list) else [found])
    for span in spans(traced):
        seen.add(repr(span.attributes))
    return seen


def asked_for(key: str) -> st.SearchStrategy[Any]:
    name = metadata_key(key)
    ours, theirs = {name: "A"}, {name: "B"}
    return st.sampled_from(
        [
            None,
            {},
            theirs,
            {name: ["A", "B"]},
            {name: {"ne": "A"}},
            {"or": [ours, theirs]},
            {"not": ours},
            {"or": [{"not": theirs}, theirs]},
            {name: {"exists": True}},
        ]
    )


def spans(span: Any) -> Iterator[Any]:
    yield span
    for child in span.children:
        yield from spans(child)


@st.composite
def attempts(draw: Any) -> tuple[Any, ...]:
    key, owner = draw(st.sampled_from(FIELDS)), draw(st.sampled_from(OWNERS))
    ways = [way for way in WAYS if owner != "adapter" or way.startswith(("langchain", "llama"))]
    return (
        key,
        owner,
        draw(st.sampled_from(ways)),
        draw(st.sampled_from(sorted(LEAVES))),
        tuple(draw(st.lists(st.sampled_from(sorted(WRAPS)), max_size=2))),
        draw(asked_for(key)),
    )


@settings(
    max_examples=amount(120, 20_000),
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(attempts())
def test_nothing_of_another_tenant_comes_to_light(given_attempt: tuple[Any, ...]) -> None:
    seen = attempt(*given_attempt)
    assert not seen.shows(THEIRS), [text for text in seen.texts if THEIRS in text][:3]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", WRAPS)
def test_unrestricted_retrievers_return_texts_of_all_tenants(way: str, wrap: str) -> None:
    assert attempt("tenant", None, way, "lifted", (wrap,), None).shows(THEIRS)
    ours = attempt("tenant", "restriction", way, "lifted", (wrap,), None)
    assert ours.shows(OURS)
    assert not ours.shows(THEIRS)
