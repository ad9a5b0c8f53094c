"""No text of another tenant is returned, shown, cited, traced or sent to a model.

Engines, adapters and tools of both frameworks hold random retrievers, one to three levels deep,
with restrictions at random levels on random fields. Random calls try to evade the restrictions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from support.stress import LONG, amount

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, EntityExtractor, Node, NodeGraph
from nodekin.retrievers import (
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


@dataclass
class Seen:
    """What came to light: texts of results, evidence, prompts, traces, callbacks."""

    texts: list[str] = field(default_factory=list)

    def model(self, prompt: str) -> str:
        self.texts.append(prompt)
        if "Next question" in prompt:
            return "Answer: milk\nAnswered: no\nNext question: Who has green milk?"
        return "Which tea has milk?\nWho is Henrik Ibsen?"

    def scores(self, query: str, passages: list[str]) -> list[float]:
        self.texts += passages
        return [float(len(passage)) for passage in passages]

    def results(self, results: list[ScoredNode]) -> None:
        for result in results:
            self.texts.append(result.explain())
            for item in (result, *result.evidence):
                node = item.node
                self.texts += [node.text, str(node.content), repr(node.metadata), node.id]

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


OWNERS = ("restriction", "retriever", "call", "langchain", "llama_index")

WAYS = (
    *("retrieve", "aretrieve", "batch", "query", "stream", "aquery", "conversation"),
    *("langchain", "langchain engine", "langchain tool"),
    *("llama_index", "llama_index engine", "llama_index tools"),
)


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


@dataclass
class Tried:
    """One try to get at another tenant's texts."""

    key: str
    owner: str | None
    way: str
    leaf: str
    wraps: tuple[str, ...]
    filters: Any
    seen: Seen = field(default_factory=Seen)

    def run(self) -> Seen:
        condition = {metadata_key(self.key): "A"}
        graph = corpus(self.key, self.owner in ("restriction", None))
        own = condition if self.owner == "retriever" else None
        retriever = LEAVES[self.leaf](graph, own, self.seen)
        for name in self.wraps:
            retriever = WRAPS[name](retriever, graph, own, self.seen)
        qa = QaRetriever(graph, "question", filters=own)
        engine = QueryEngine(retriever, self.seen.model, qa=qa if "q" in self.leaf else None)
        if self.owner == "restriction":
            retriever, engine = restrict(retriever, condition), restrict(engine, condition)
        if self.owner == "call":
            self.filters = condition
        face = condition if self.owner in ("langchain", "llama_index") else None
        with trace() as traced:
            getattr(self, "_" + self.way.replace(" ", "_"))(retriever, engine, face)
        for span in spans(traced):
            self.seen.texts.append(repr(span.attributes))
        return self.seen

    # Of the package itself

    def _retrieve(self, retriever: Any, engine: Any, face: Any) -> None:
        self.seen.results(retriever.retrieve(QUERY, filters=self.filters))

    def _aretrieve(self, retriever: Any, engine: Any, face: Any) -> None:
        self.seen.results(asyncio.run(retriever.aretrieve(QUERY, filters=self.filters)))

    def _batch(self, retriever: Any, engine: Any, face: Any) -> None:
        for results in retriever.batch([QUERY, "milk", " "], filters=self.filters):
            self.seen.results(results)

    def _query(self, retriever: Any, engine: Any, face: Any) -> None:
        self._answer(engine.query(QUERY, filters=self.filters))

    def _aquery(self, retriever: Any, engine: Any, face: Any) -> None:
        self._answer(asyncio.run(engine.aquery(QUERY, filters=self.filters)))

    def _stream(self, retriever: Any, engine: Any, face: Any) -> None:
        self._answer(engine.stream(QUERY, filters=self.filters).finish())

    def _conversation(self, retriever: Any, engine: Any, face: Any) -> None:
        talk = engine.conversation([("Who has tea?", "Some do.")])
        self._answer(talk.query("And milk?", filters=self.filters))
        self.seen.texts.append(repr(talk.history))

    def _answer(self, answer: Any) -> None:
        self.seen.texts += [answer.text, repr(answer.notes), str(answer.searched)]
        self.seen.texts += [source.text + source.title for source in answer.sources]
        self.seen.results([source.result for source in answer.sources])
        self.seen.results([merged for source in answer.sources for merged in source.merged])
        self.seen.results([omitted.result for omitted in answer.omitted])

    # LangChain

    def _options(self, face: Any) -> dict[str, Any]:
        options = {} if self.filters is None else {"filter": self.filters}
        return options if face is None or self.filters is not None else {"filter": None}

    def _langchain(self, retriever: Any, engine: Any, face: Any) -> None:
        lc = langchain.NodeGraphRetriever(retriever, filter=face, evidence=True)
        config: Any = {"callbacks": [Listening(self.seen)]}
        for documents in (
            lc.invoke(QUERY, config, **self._options(face)),
            asyncio.run(lc.ainvoke(QUERY, config, **self._options(face))),
        ):
            self.seen.texts.append(repr(documents))

    def _langchain_engine(self, retriever: Any, engine: Any, face: Any) -> None:
        engine = engine if face is None else restrict(engine, face)
        lc = langchain.engine_runnable(engine, output="dict")
        config: Any = {"callbacks": [Listening(self.seen)]}
        self.seen.texts.append(repr(lc.invoke(QUERY, config, **self._options(face))))
        self.seen.texts.append(repr([*lc.stream(QUERY, config, **self._options(face))]))

    def _langchain_tool(self, retriever: Any, engine: Any, face: Any) -> None:
        own = all_conditions(face, self.filters if self.owner == "call" else None)
        lc = langchain.NodeGraphRetriever(retriever, filter=own, evidence=True)
        conditions = (lambda config: self.filters) if self.filters else None
        tool = langchain.retriever_tool(lc, "t", "d", conditions=conditions, show=[self.key])
        message = tool.invoke(
            {"type": "tool_call", "id": "1", "name": "t", "args": {"query": QUERY}}
        )
        self.seen.texts += [str(message.content), repr(message.artifact)]

    # LlamaIndex

    def _llama_index(self, retriever: Any, engine: Any, face: Any) -> None:
        li = llama_index.NodeGraphRetriever(retriever, filters=face)
        self._nodes(li.retrieve(QUERY, filters=self.filters))
        self._nodes(asyncio.run(li.aretrieve(QUERY, filters=self.filters)))

    def _llama_index_engine(self, retriever: Any, engine: Any, face: Any) -> None:
        filters = all_conditions(face, self.filters)
        li = llama_index.NodeGraphQueryEngine(retriever, MockLLM(), filters=filters)
        response = li.query(QUERY)
        self.seen.texts += [str(response), repr(response.metadata)]
        self._nodes(response.source_nodes)

    def _llama_index_tools(self, retriever: Any, engine: Any, face: Any) -> None:
        filters = all_conditions(face, self.filters)
        li = llama_index.NodeGraphRetriever(retriever, filters=filters)
        output = RetrieverTool.from_defaults(li).call(QUERY, filters={self.key: "B"})
        self.seen.texts += [output.content, repr(output.raw_output)]
        answers = llama_index.NodeGraphQueryEngine(retriever, MockLLM(), filters=filters)
        output = QueryEngineTool.from_defaults(answers).call(QUERY)
        self.seen.texts += [output.content, repr(output.raw_output)]

    def _nodes(self, nodes: list[NodeWithScore]) -> None:
        for item in nodes:
            self.seen.texts += [item.text, repr(item.metadata), repr(item.to_dict())]
            self.seen.texts.append(repr(getattr(item, "evidence", None)))


def all_conditions(*filters: Any) -> Any:
    given_filters = [one for one in filters if one]
    return {"and": given_filters} if given_filters else None


def spans(span: Any) -> Iterator[Any]:
    yield span
    for child in span.children:
        yield from spans(child)


class Listening(BaseCallbackHandler):
    """A callback handler that records all texts."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.texts.append(repr(documents))

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.seen.texts.append(repr(inputs))

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.seen.texts.append(repr(outputs))


@st.composite
def tries(draw: Any) -> Tried:
    key = draw(st.sampled_from(FIELDS))
    owner = draw(st.sampled_from(OWNERS))
    ways = [way for way in WAYS if owner not in ("langchain", "llama_index") or owner in way]
    return Tried(
        key,
        owner,
        draw(st.sampled_from(ways)),
        draw(st.sampled_from(sorted(LEAVES))),
        tuple(draw(st.lists(st.sampled_from(sorted(WRAPS)), max_size=2))),
        draw(asked_for(key)),
    )


@settings(
    max_examples=amount(200, 20_000),
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(tries())
def test_nothing_of_another_tenant_comes_to_light(tried: Tried) -> None:
    seen = tried.run()
    assert not seen.shows(THEIRS), [text for text in seen.texts if THEIRS in text][:3]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", WRAPS)
def test_unrestricted_retrievers_return_texts_of_all_tenants(way: str, wrap: str) -> None:
    """Without a restriction, every way and every retriever returns texts of all tenants."""
    seen = Tried("tenant", None, way, "lifted", (wrap,), None).run()
    assert seen.shows(THEIRS)
    ours = Tried("tenant", "restriction", way, "lifted", (wrap,), None).run()
    assert ours.shows(OURS)
    assert not ours.shows(THEIRS)
