"""nodekin inside LlamaIndex's components, and beside them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, ReActAgent
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.evaluation import EvaluationResult
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.node_parser import (
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.objects import ObjectIndex
from llama_index.core.postprocessor import (
    LLMRerank,
    LongContextReorder,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    FLAREInstructQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    ToolRetrieverRouterQueryEngine,
)
from llama_index.core.retrievers import (
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
)
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
)
from llama_index_models import Words

from nodekin import retrievers
from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphIndex,
    NodeGraphReranker,
    NodeGraphRetriever,
    export_nodes,
    import_nodes,
)
from nodekin.adapters.llama_index.import_export import dump_nodes, load_nodes
from nodekin.adapters.llama_index.nodes import NodeWithEvidence, from_text_node
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import (
    FusionRetriever,
    Retriever,
    as_retriever,
    restrict,
)

QUERY = "Which tea is fermented? 红茶"


class Scripted(CustomLLM):
    """A model with a fixed answer that records its prompts."""

    answer: str = "Black tea."
    prompts: list[str] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield self.complete(prompt)


@pytest.fixture
def llm() -> Scripted:
    return Scripted()


@pytest.fixture
def engine(retriever: NodeGraphRetriever, llm: Scripted) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(retriever, llm=llm)


def ids(results: Any) -> list[str]:
    return [result.node_id for result in results]


def test_query_engine(
    engine: RetrieverQueryEngine, retriever: NodeGraphRetriever, llm: Scripted
) -> None:
    found = retriever.retrieve(QUERY)
    for answer in (engine.query(QUERY), asyncio.run(engine.aquery(QUERY))):
        assert str(answer) == "Black tea."
        assert ids(answer.source_nodes) == ids(found)
        assert [n.evidence for n in answer.source_nodes] == [n.evidence for n in found]
    assert "红茶是全发酵茶。" in llm.prompts[0]
    assert "topic: tea" in llm.prompts[0]
    assert "nodekin" not in llm.prompts[0]
    assert "file_size" not in llm.prompts[0]
    assert str(engine.query("nothing of the kind")) == "Empty Response"


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "simple"])
@pytest.mark.parametrize("use_async", [True, False])
def test_fusion_merges_the_same_nodes(
    graph: NodeGraph, retriever: NodeGraphRetriever, llm: Scripted, mode: str, use_async: bool
) -> None:
    other = NodeGraphRetriever(Retriever(graph, "paragraph"))
    llm.answer = "红茶\nEurope"
    fusion = QueryFusionRetriever(
        [retriever, other],
        llm=llm,
        mode=mode,
        num_queries=3,
        similarity_top_k=9,
        use_async=use_async,
    )
    for _ in range(2):  # the second time over nodes that the first changed
        found = fusion.retrieve(QUERY)
        assert len(ids(found)) == len(set(ids(found))) >= 3
        assert all(isinstance(result, NodeWithEvidence) and result.evidence for result in found)
        scores = [result.score for result in found]
        assert scores == sorted(scores, reverse=True)


def test_fusion_merges_equal_nodes_as_it_does_those_of_llama_index(llm: Scripted) -> None:
    graph = NodeGraph()
    graph.add(
        [
            Document(text="Tea. Leaves. Tea.", metadata={"file_path": "a.txt"}),
            Document(text="Tea. Water.", metadata={"file_path": "b.txt"}),
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    retriever = NodeGraphRetriever(Retriever(graph, "sentence"))
    fusion = QueryFusionRetriever([retriever, retriever], llm=llm, num_queries=1)
    fusion.similarity_top_k = 9
    assert len(retriever.retriever.retrieve("tea")) == 3
    merged = fusion.retrieve("tea")
    assert [(r.text, r.metadata) for r in merged] == [
        ("Tea.", {"file_path": "a.txt"}),
        ("Tea.", {"file_path": "b.txt"}),
    ]


class Choose(BaseSelector):
    """A selector that takes the tools it was told to."""

    def __init__(self, *indexes: int) -> None:
        self.indexes = indexes

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None: ...

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return SelectorResult(
            selections=[SingleSelection(index=i, reason="told to") for i in self.indexes]
        )

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


def test_router(graph: NodeGraph, retriever: NodeGraphRetriever) -> None:
    other = NodeGraphRetriever(Retriever(graph, "ROOT"))
    tools = [RetrieverTool.from_defaults(r, description="teas") for r in (other, retriever)]
    router = RouterRetriever(Choose(1), tools, llm=MockLLM())
    assert ids(router.retrieve(QUERY)) == ids(retriever.retrieve(QUERY))
    assert ids(asyncio.run(router.aretrieve(QUERY))) == ids(retriever.retrieve(QUERY))
    both = RouterRetriever(Choose(0, 1), tools, llm=MockLLM()).retrieve(QUERY)
    assert {from_text_node(r.node).group for r in both} == {"ROOT", "paragraph"}


def test_postprocessors(search: Retriever, llm: Scripted) -> None:
    retriever = NodeGraphRetriever(search)
    found = retriever.retrieve(QUERY)
    best = found[0].score
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=llm,
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=best), LongContextReorder()],
    )
    (kept,) = engine.query(QUERY).source_nodes
    assert (kept.node_id, kept.evidence) == (found[0].node_id, found[0].evidence)
    reordered = LongContextReorder().postprocess_nodes(retriever.retrieve(QUERY))
    assert sorted(ids(reordered)) == sorted(ids(found))


def test_citations(retriever: NodeGraphRetriever, llm: Scripted) -> None:
    splitter = SentenceSplitter(
        chunk_size=64, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
    )
    engine = CitationQueryEngine.from_args(
        None, retriever=retriever, llm=llm, text_splitter=splitter, citation_chunk_size=64
    )
    llm.answer = "Black tea is fermented [1]."
    for answer in (engine.query(QUERY), asyncio.run(engine.aquery(QUERY))):
        assert str(answer) == "Black tea is fermented [1]."
        texts = [source.node.get_content() for source in answer.source_nodes]
        assert texts[0].startswith("Source 1:\n")
        assert any("红茶是全发酵茶。" in text for text in texts)
        assert {source.node.metadata["topic"] for source in answer.source_nodes} <= {"tea", "panda"}
    assert "nodekin" not in llm.prompts[-1]


class Conversation(CustomLLM):
    """A model that says one thing after the other."""

    lines: list[str]
    prompts: list[str] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.lines.pop(0))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        def told() -> Any:
            answer = self.complete(prompt)
            yield CompletionResponse(text=answer.text, delta=answer.text)

        return told()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
@pytest.mark.parametrize("kind", ["retriever", "query engine"])
async def test_an_agent_uses_the_tool(
    retriever: NodeGraphRetriever, engine: RetrieverQueryEngine, watched: Any, kind: str
) -> None:
    tool: Any = RetrieverTool.from_defaults(retriever, name="teas", description="About tea.")
    if kind == "query engine":
        tool = QueryEngineTool.from_defaults(engine, name="teas", description="About tea.")
    llm = Conversation(
        prompts=[],
        lines=[
            'Thought: I look.\nAction: teas\nAction Input: {"input": "红茶 fermented"}',
            "Thought: I can answer without using any more tools.\nAnswer: 红茶是全发酵的。",
        ],
    )
    agent = ReActAgent(tools=[tool], llm=llm, streaming=False)
    answer = await agent.run(user_msg="Is 红茶 fermented?")
    assert str(answer) == "红茶是全发酵的。"
    (call,) = answer.tool_calls
    assert call.tool_name == "teas"
    seen = llm.prompts[1]
    assert ("红茶是全发酵茶。" if kind == "retriever" else "Black tea.") in seen
    names = [span.id_.rsplit("-", 5)[0] for span in watched.spans.completed_spans]
    assert "nodekin.search" in names


def test_a_pipeline_into_a_vector_index_and_up_again(graph: NodeGraph) -> None:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding

    index = VectorStoreIndex(
        get_leaf_nodes(export_nodes(graph, "sentence")),
        embed_model=MockEmbedding(3),
    )
    found = index.as_retriever(similarity_top_k=9).retrieve("tea")
    lifted = LiftPostprocessor(graph, "ROOT").postprocess_nodes(found)
    assert sorted(ids(lifted)) == ["panda", "tea"]


TEXTS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented, and keeps for "
    "years. Oolong is half fermented. Tea came to Europe by sea.",
    "rivers": "The Nile is 6,650 km long. It runs to the Mediterranean. The Amazon is 6,400 km "
    "long. It carries more water than any other river.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange. The Humber "
    "Bridge was the longest for sixteen years.",
}
QUESTIONS = ["Which tea is fermented?", "How long is the Nile?", "When was the bridge opened?"]


class Listed(BaseRetriever):
    """Returns nodes with their scores, as a retriever of a user's own."""

    def __init__(self, *results: tuple[BaseNode, float]) -> None:
        super().__init__()
        self.results = results

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=score) for node, score in self.results]


def documents() -> list[Document]:
    """Return documents as programs have them: with a title, which is embedded, and more."""
    return [
        Document(
            text=text,
            id_=name,
            metadata={"title": f"All on {name}", "url": f"https://example.com/{name}", "year": at},
            excluded_embed_metadata_keys=["url", "year"],
            excluded_llm_metadata_keys=["url", "year"],
        )
        for at, (name, text) in enumerate(TEXTS.items(), start=2000)
    ]


def splitter(size: int) -> SentenceSplitter:
    def sentences(text: str) -> list[str]:  # the default one may download
        return re.split(r"(?<=\.\s)", text)

    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=sentences)


def chunks() -> list[TextNode]:
    """Return one chunk for each sentence, with LlamaIndex's metadata and neighbours."""
    parser, numbers = splitter(20), iter(range(999, 0, -1))
    parser.id_func = lambda *_: f"{next(numbers)}"  # of equal scores it takes the greater id
    nodes: list[Any] = parser.get_nodes_from_documents(documents())
    assert len(nodes) > 8
    return nodes


def both_indexes(nodes: Sequence[BaseNode]) -> tuple[VectorStoreIndex, NodeGraphIndex]:
    """Return LlamaIndex's index and ours of the same nodes and vectors."""
    theirs = VectorStoreIndex([*nodes], embed_model=Words())
    ours = NodeGraphIndex.from_nodes(nodes, embed_model=Words(), similarity="cosine")
    return theirs, ours


def scores(results: Any) -> dict[str, Any]:
    return {result.node_id: pytest.approx(result.score, abs=1e-5) for result in results}


# Parents and children


def test_a_parent_is_there_once_and_equal_texts_of_different_documents_stay() -> None:
    twins = [
        Document(text="Prices went up.", id_=name, metadata={"language": "en"}) for name in "ab"
    ]
    theirs, ours = both_indexes(twins)
    fusion: dict[str, Any] = {"num_queries": 1, "use_async": False, "llm": MockLLM()}
    merged = QueryFusionRetriever([theirs.as_retriever()] * 2, **fusion).retrieve("prices")
    assert len(merged) == 1  # equal hashes, so that one document is lost
    both = FusionRetriever([ours, theirs.as_retriever()])
    assert sorted(ids(NodeGraphRetriever(both).retrieve("prices"))) == ["a", "b"]
    again = [
        VectorStoreIndex(splitter(99).get_nodes_from_documents([twin]), embed_model=Words())
        for twin in twins
    ]
    parts = FusionRetriever([i.as_retriever() for i in again]).retrieve(
        "prices"
    )  # chunks with random ids
    assert sorted(result.node.document_id for result in parts) == ["a", "b"]


def test_a_score_of_zero_stays_zero() -> None:
    first, second = (TextNode(text=t, metadata={"n": n}) for n, t in enumerate(("Tea", "Milk")))
    listed = Listed((first, 0.5), (second, 0.0))
    expected = {first.node_id: 0.5, second.node_id: 0.0}
    for source in (listed, FusionRetriever([listed], mode="concat")):
        results = NodeGraphRetriever(source).retrieve("tea")
        assert {result.node_id: result.score for result in results} == expected
        again = load_nodes(dump_nodes(results))
        assert {result.node_id: result.score for result in again} == expected
    zero = NodeGraphReranker("ModuleReranker", model=lambda query, texts: [0.0] * len(texts))
    reranked = zero.postprocess_nodes(listed.retrieve("tea"), query_str="tea")
    assert [result.score for result in reranked] == [0.0, 0.0]
    kept = SimilarityPostprocessor(similarity_cutoff=0.0).postprocess_nodes(reranked)
    assert ids(kept) == ids(reranked)


@pytest.mark.parametrize("mode", ["both", "next", "previous"])
def test_neighbours_of_hits_are_those_of_llama_indexs_index_and_docstore(mode: Any) -> None:
    nodes = chunks()
    old = SimpleDocumentStore()
    old.add_documents(nodes)
    index, ours = both_indexes(nodes)
    docstore = ours.storage_context.docstore
    found = []
    for retriever, store in ((index.as_retriever, old), (ours.as_retriever, docstore)):
        hits = retriever(similarity_top_k=1).retrieve("Oolong is half fermented")
        widen = PrevNextNodePostprocessor(docstore=store, num_nodes=2, mode=mode)
        found.append(ids(widen.postprocess_nodes(hits)))
    assert found[0] == found[1]
    assert len(found[0]) > 2 or mode == "next"


# Words, vectors and both


class AsyncOnly(Words):
    """A model whose client has async methods only."""

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("use the async method")

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [Words._get_text_embedding(self, text) for text in texts]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return Words._get_text_embedding(self, query)


async def test_passages_are_embedded_by_async_models_in_async_code() -> None:
    nodes = chunks()
    theirs = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=3)
    graph = NodeGraph(embed=AsyncOnly(), progress=False)
    (group,) = import_nodes(graph, nodes, documents=documents()).groups
    ours = NodeGraphRetriever(Retriever(graph, group, "cosine", top_k=3))
    for question in QUESTIONS:
        results = await ours.aretrieve(question)
        assert scores(await theirs.aretrieve(question)) == scores(results)


# Conditions at the time of the query


async def test_one_engine_serves_users_with_conditions_of_their_own(
    scripted: Callable[[Any], Any],
) -> None:
    """LlamaIndex's engine is made anew for each; ours is shared, also at the same time."""
    given = documents()
    theirs = VectorStoreIndex.from_documents(given, embed_model=Words())
    ours = NodeGraphIndex.from_documents(given, embed_model=Words())
    engine = ours.as_query_engine(llm=scripted("It is."), filters={"year": {"lt": 2002}})
    retriever = ours.as_retriever(similarity_top_k=3, filters={"year": {"lt": 2002}})

    def of(year: int) -> MetadataFilters:
        return MetadataFilters(filters=[MetadataFilter(key="year", value=year)])

    years = [2000, 2001, 2002] * 3
    responses = await asyncio.gather(*(engine.aquery("It is", filters=of(y)) for y in years))
    results = await asyncio.gather(*(retriever.aretrieve("It is", filters=of(y)) for y in years))
    for year, response, found in zip(years, responses, results, strict=True):
        expected = theirs.as_query_engine(llm=scripted("It is."), filters=of(year)).query("It is")
        want = {r.node.ref_doc_id for r in expected.source_nodes}
        want = want if year < 2002 else set()  # the owner's condition holds, too
        assert {r.node.ref_doc_id for r in response.source_nodes} == want
        assert {r.node.ref_doc_id for r in found} == want
        assert [*response.source_nodes] == [] or str(response) == "It is."
    blocking = engine.query("It is", filters={"title": "All on rivers"}).source_nodes
    assert {r.node.ref_doc_id for r in blocking} == {"rivers"}
    assert ids(retriever.retrieve("It is", of(2000))) == ids(results[0])
    assert len({r.node.ref_doc_id for r in retriever.retrieve("It is")}) == 2
    assert (engine.retriever.filters, retriever.filters) == ({"year": {"lt": 2002}},) * 2
    held = as_retriever(engine)  # an engine as a tool, with the conditions of a call
    (answer,) = await held.aretrieve("It is", filters={"year": 2001})
    assert {match.node.document_id for match in answer.evidence if match.node.document_id} == {
        "rivers"
    }
    with pytest.raises(ValueError, match="operators"):
        engine.query("It is", filters={"year": {"over": 5}})


# Sub-questions


def tools(**engines: Any) -> list[QueryEngineTool]:
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"All on {name}")
        for name, engine in engines.items()
    ]


# LlamaIndex's own components around a retriever of ours


def _postprocessed(processor: Any) -> Callable[[Any, Callable[[Any], Any]], Any]:
    def run(index: Any, scripted: Callable[[Any], Any]) -> Any:
        engine = RetrieverQueryEngine.from_args(
            index.as_retriever(similarity_top_k=4),
            llm=scripted("It is."),
            node_postprocessors=[processor(scripted)],
        )
        return engine.query(QUESTIONS[0])

    return run


def _choose(answer: str) -> Callable[[str], str]:
    def says(prompt: str) -> str:
        return answer if "choices" in prompt.lower() else "It is."

    return says


def _routed(selector: Any, answer: str) -> Callable[[Any, Callable[[Any], Any]], Any]:
    def run(index: Any, scripted: Callable[[Any], Any]) -> Any:
        llm = scripted(_choose(answer))
        engine = index.as_query_engine(llm=llm, similarity_top_k=2)
        other = index.as_query_engine(llm=llm, similarity_top_k=1)
        router = RouterQueryEngine(
            selector.from_defaults(llm=llm),
            [*tools(one=engine), *tools(two=other)],
            llm=llm,
        )
        return router.query(QUESTIONS[0])

    return run


def _tools_by_search(index: Any, scripted: Callable[[Any], Any]) -> Any:
    given = tools(tea=index.as_query_engine(llm=scripted("It is."), similarity_top_k=2))
    found = ObjectIndex.from_objects(given, index_cls=VectorStoreIndex, embed_model=Words())
    return ToolRetrieverRouterQueryEngine(found.as_retriever(similarity_top_k=1)).query(
        QUESTIONS[0]
    )


class FailsOnce:
    """An evaluator that fails the first answer."""

    def __init__(self) -> None:
        self.answers = 0

    def evaluate_response(self, query: str, response: Any) -> Any:
        self.answers += 1
        return EvaluationResult(
            query=query, response=str(response), passing=self.answers > 1, feedback="Think again."
        )


def _retried(index: Any, scripted: Callable[[Any], Any]) -> Any:
    engine = index.as_query_engine(llm=scripted("It is."), similarity_top_k=2)
    evaluator: Any = FailsOnce()
    return RetryQueryEngine(engine, evaluator).query(QUESTIONS[0])


def _flare(index: Any, scripted: Callable[[Any], Any]) -> Any:
    engine = index.as_query_engine(llm=scripted("6,650 km"), similarity_top_k=2)
    replies = iter(["It is [Search(How long is the Nile?)].", "It is 6,650 km long.", "done"])
    llm = scripted(lambda prompt: next(replies))
    return FLAREInstructQueryEngine(engine, llm=llm).query("How long is the Nile?")


AROUND: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "RouterQueryEngine": _routed(LLMSingleSelector, '[{"choice": 2, "reason": "so"}]'),
    "RouterQueryEngine, several": _routed(
        LLMMultiSelector, '[{"choice": 1, "reason": "a"}, {"choice": 2, "reason": "b"}]'
    ),
    "ToolRetrieverRouterQueryEngine": _tools_by_search,
    "RetryQueryEngine": _retried,
    "FLAREInstructQueryEngine": _flare,
    "LLMRerank": _postprocessed(
        lambda scripted: LLMRerank(llm=scripted("Doc: 2, Relevance: 7\nDoc: 1, Relevance: 3"))
    ),
    "SentenceEmbeddingOptimizer": _postprocessed(
        lambda scripted: SentenceEmbeddingOptimizer(
            embed_model=Words(), percentile_cutoff=0.5, tokenizer_fn=split_sentences
        )
    ),
    "SimilarityPostprocessor": _postprocessed(
        lambda scripted: SimilarityPostprocessor(similarity_cutoff=0.2)
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_llama_indexs_components_do_the_same_around_it(
    name: str, scripted: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", scripted("It is."))  # which some of them read
    theirs, ours = (AROUND[name](index, scripted) for index in both_indexes(chunks()))
    assert str(ours) == str(theirs) != "Empty Response"
    assert [result.text for result in ours.source_nodes] == [r.text for r in theirs.source_nodes]
    assert ids(ours.source_nodes) == ids(theirs.source_nodes)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
async def test_a_workflow_of_agents_uses_the_tool(scripted: Callable[[Any], Any]) -> None:
    index = NodeGraphIndex.from_documents(documents(), similarity="bm25")
    tool = RetrieverTool.from_defaults(
        index.as_retriever(similarity_top_k=1), name="search", description="All there is"
    )
    replies = iter(
        [
            'Thought: I look.\nAction: search\nAction Input: {"input": "fermented tea"}',
            "Thought: I can answer without using any more tools.\nAnswer: Black tea.",
        ]
    )
    llm = scripted(lambda prompt: next(replies))
    agent = ReActAgent(tools=[tool], llm=llm, streaming=False, name="a", description="a")
    assert str(await AgentWorkflow(agents=[agent]).run("Which is fermented?")) == "Black tea."
    assert "Black tea is fermented" in llm.prompts[1]


USER: ContextVar[str] = ContextVar("user")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
@pytest.mark.parametrize("kind", ["retriever", "query engine"])
async def test_one_agent_serves_many_users(scripted: Callable[[Any], Any], kind: str) -> None:
    """The conditions are those of the user who asks; without a user the model reads an error."""
    notes = [
        Document(text=f"The tea of {user} is {color}.", metadata={"user": user})
        for user, color in (("anna", "green"), ("ben", "black"))
    ]
    index = NodeGraphIndex.from_documents(notes, similarity="bm25")
    mine = NodeGraphIndex(index.graph, restrict(index, lambda: {"user": USER.get()}))
    tool: Any = RetrieverTool.from_defaults(mine.as_retriever(), name="notes", description="Notes")
    if kind == "query engine":
        engine = mine.as_query_engine(scripted(lambda prompt: prompt))
        tool = QueryEngineTool.from_defaults(engine, name="notes", description="Notes")

    async def ask(user: str | None) -> Any:
        def reply(prompt: str) -> str:
            if "Observation:" in prompt.split("What is mine?")[-1]:
                return "Thought: I can answer without using any more tools.\nAnswer: That."
            return 'Thought: I look.\nAction: notes\nAction Input: {"input": "tea"}'

        if user is not None:
            USER.set(user)
        agent = ReActAgent(tools=[tool], llm=scripted(reply), streaming=False)
        (call,) = (await agent.run(user_msg="What is mine?")).tool_calls
        return call.tool_output

    anna, ben, nobody = await asyncio.gather(*map(ask, ("anna", "ben", None)))
    assert "green" in anna.content
    assert "black" not in anna.content
    assert "black" in ben.content
    assert "green" not in ben.content
    assert nobody.is_error
    assert "tea of" not in nobody.content


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_agent_reads_that_an_embedder_is_down(scripted: Callable[[Any], Any]) -> None:
    class Down(Words):
        def _get_query_embedding(self, query: str) -> list[float]:
            raise ConnectionError("no server")

    index = NodeGraphIndex.from_documents(documents(), embed_model=Down(), similarity="cosine")
    tool = RetrieverTool.from_defaults(index.as_retriever(), name="search", description="All")
    replies = iter(
        [
            'Thought: I look.\nAction: search\nAction Input: {"input": "tea"}',
            "Thought: I can answer without using any more tools.\nAnswer: I can't.",
        ]
    )
    llm = scripted(lambda prompt: next(replies))
    agent = ReActAgent(tools=[tool], llm=llm, streaming=False)
    assert str(await agent.run(user_msg="Which tea?")) == "I can't."
    assert "no server" in llm.prompts[1]


async def test_sync_calls_inside_a_running_loop(scripted: Callable[[Any], Any]) -> None:
    """As in a notebook."""
    theirs, ours = both_indexes(chunks())
    expected = theirs.as_retriever(similarity_top_k=2).retrieve(QUESTIONS[0])
    assert ids(ours.as_retriever(similarity_top_k=2).retrieve(QUESTIONS[0])) == ids(expected)
    llm = scripted(lambda prompt: QUESTIONS[1] if "simpler questions" in prompt else "It is.")
    engine = ours.as_query_engine(llm=llm, strategy="sub_question")
    assert str(engine.query(QUESTIONS[0])) == "It is."


# The guide of recursive retrieval


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_nodes_of_the_guide_are_imported_as_they_are(question: str) -> None:
    """Small chunks that lead to their base chunk, and the base chunks that lead to themselves."""
    base: list[Any] = splitter(40).get_nodes_from_documents(documents())
    for at, node in enumerate(base):
        node.id_ = f"node-{at}"
    everything: list[Any] = []
    for node in base:
        for size in (20, 30):
            parts = splitter(size).get_nodes_from_documents([node])
            everything += [IndexNode.from_text_node(part, node.node_id) for part in parts]
        everything.append(IndexNode.from_text_node(node, node.node_id))
    recursive = RecursiveRetriever(
        "vector",
        retriever_dict={
            "vector": VectorStoreIndex(everything, embed_model=Words()).as_retriever(
                similarity_top_k=len(everything)
            )
        },
        node_dict={node.node_id: node for node in everything},
    )
    expected = [*dict.fromkeys(ids(recursive.retrieve(question)))]
    graph = NodeGraph(embed=Words(), progress=False)
    import_nodes(
        graph,
        everything,
        documents=documents(),
        groups=lambda node: "base" if node.index_id == node.node_id else "small",
    )
    search = retrievers.RecursiveRetriever(graph, ["small", "base"], "base", "cosine", top_k=2)
    assert ids(NodeGraphRetriever(search).retrieve(question)) == expected[:2]


# Which test shows what
