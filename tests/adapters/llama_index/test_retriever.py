import asyncio
import copy
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool
from support.fixed_retriever import FixedRetriever

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphReranker, NodeGraphRetriever
from nodekin.adapters.llama_index.nodes import NodeWithEvidence
from nodekin.nodegraph import Node, NodeGraph, split_sentences
from nodekin.retrievers import Bm25, Retriever, ScoredNode, as_retriever, restrict

QUERY = "Which tea is fermented? 红茶"


def node(id: str) -> Node:
    return Node(f"Tea {id}.", id=id, group="line", document_id="d")


async def test_results_equal_results_of_native_retriever(
    retriever: NodeGraphRetriever, search: Retriever, graph: NodeGraph
) -> None:
    for query in (QUERY, "大熊猫吃什么", "nothing of the kind in it"):
        alone = search.retrieve(query)
        for found in (retriever.retrieve(query), await retriever.aretrieve(query)):
            assert [(r.node_id, r.score) for r in found] == [(r.node.id, r.score) for r in alone]
            assert [r.text for r in found] == [r.node.text for r in alone]


def test_results_are_text_nodes_with_evidence(retriever: NodeGraphRetriever) -> None:
    found = retriever.retrieve(QUERY)
    assert {type(r) for r in found} == {NodeWithEvidence}
    assert {r.node.class_name() for r in found} == {"TextNode"}
    best = found[0]
    assert {match["group"] for match in best.evidence} == {"sentence"}
    assert best.evidence[0]["score"] == best.score
    assert best.evidence[0]["query"] == QUERY
    assert all(match["text"] in best.text for match in best.evidence)


def test_node_does_not_depend_on_the_query(retriever: NodeGraphRetriever) -> None:
    one = {r.node_id: r.node for r in retriever.retrieve(QUERY)}
    other = {r.node_id: r.node for r in retriever.retrieve("green tea came to Europe")}
    assert one.keys() & other.keys()
    for id in one.keys() & other.keys():
        assert one[id] == other[id]
        assert one[id].hash == other[id].hash


async def test_results_are_sorted_and_deduplicated_by_score() -> None:
    pairs = [("a", 0.0), ("b", 2.0), ("a", 1.0), ("c", -3.0), ("d", 0.0)]
    retriever = NodeGraphRetriever(
        FixedRetriever([ScoredNode(node(id), score) for id, score in pairs])
    )
    for found in (retriever.retrieve("tea"), await retriever.aretrieve("tea")):
        assert [(r.node_id, r.score) for r in found] == [
            ("b", 2.0),
            ("a", 1.0),
            ("d", 0.0),
            ("c", -3.0),
        ]


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_blank_query_without_filters_finds_nothing(query: str) -> None:
    inner = FixedRetriever([ScoredNode(node("a"), 1.0)])
    retriever = NodeGraphRetriever(inner)
    assert retriever.retrieve(query) == []
    assert await retriever.aretrieve(query) == []


async def test_query_bundle_is_not_changed() -> None:
    inner = FixedRetriever([])
    retriever = NodeGraphRetriever(inner)
    bundle = QueryBundle("tea?", custom_embedding_strs=["a made-up answer"], embedding=[1.0, 2.0])
    before = copy.deepcopy(bundle)
    retriever.retrieve(bundle)
    await retriever.aretrieve(bundle)
    assert bundle == before
    assert [query for query, *_ in inner.calls] == ["tea?", "tea?"]


async def test_top_k_counts_lifted_nodes(search: Retriever) -> None:
    retriever = NodeGraphRetriever(search, similarity_top_k=1)
    assert len(retriever.retrieve(QUERY)) == 1
    retriever.similarity_top_k = 2
    assert len(await retriever.aretrieve(QUERY)) == 2
    inner = FixedRetriever([])
    NodeGraphRetriever(inner, similarity_top_k=4, filters={"a": 1}).retrieve("tea")
    NodeGraphRetriever(inner).retrieve("tea")
    assert inner.calls == [("tea", 4, {"a": 1}), ("tea", None, None)]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"similarity_top_k": 0}, ValueError, "1 or more, got 0"),
        ({"similarity_top_k": True}, TypeError, "integer, got True"),
        ({"similarity_top_k": "3"}, TypeError, "integer, got '3'"),
        ({"filters": {"a": []}}, ValueError, "allows no value"),
        ({"top_k": 3}, TypeError, "unexpected keyword argument 'top_k'"),
    ],
)
def test_wrong_arguments_raise(
    search: Retriever, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        NodeGraphRetriever(search, **settings)


def test_invalid_retriever_raises() -> None:
    for wrong in (None, 3, "bm25"):
        with pytest.raises(
            TypeError, match=r"retriever must be an object with retrieve\(\).*, got"
        ):
            NodeGraphRetriever(wrong)


def test_failed_search_drops_its_span(graph: NodeGraph, watched: Any) -> None:
    graph.create_node_group("bad", lambda text: 1 / 0)
    with pytest.raises(RuntimeError):
        NodeGraphRetriever(Retriever(graph, "bad")).retrieve("tea")
    dropped = {span.id_.split("-")[0] for span in watched.spans.dropped_spans}
    assert dropped == {"NodeGraphRetriever.retrieve", "NodeGraphRetriever._retrieve"}


place = ContextVar("place", default="nowhere")


async def test_context_variables_reach_the_search(graph: NodeGraph) -> None:
    seen = []

    def analyze(text: str) -> list[str]:
        seen.append(place.get())
        return text.split()

    retriever = NodeGraphRetriever(Retriever(graph, "sentence", Bm25(analyzer=analyze)))
    place.set("here")
    retriever.retrieve("tea")
    await retriever.aretrieve("tea")
    assert set(seen) == {"here"}


async def test_async_search_does_not_block_the_loop(
    retriever: NodeGraphRetriever, unblocked: None
) -> None:
    assert await retriever.aretrieve(QUERY)  # also builds the groups and the index
    found = await asyncio.gather(*(retriever.aretrieve(QUERY) for _ in range(8)))
    assert len({tuple(r.node_id for r in results) for results in found}) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_equal_texts_are_separate_results(is_async: bool) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text="Tea. Milk. Tea.", id_=name) for name in "ab"])
    graph.create_node_group("sentence", split_sentences)
    retriever = NodeGraphRetriever(Retriever(graph, "sentence", top_k=9))
    found = asyncio.run(retriever.aretrieve("tea")) if is_async else retriever.retrieve("tea")
    assert [result.text for result in found] == ["Tea."] * 4


# Components of LlamaIndex

Scripted = Callable[[Any], Any]


def ids(results: Any) -> list[str]:
    return [result.node_id for result in results]


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "simple"])
def test_fusion_merges_equal_nodes_with_evidence(
    retriever: NodeGraphRetriever, search: Retriever, mode: Any
) -> None:
    whole = NodeGraphRetriever(Retriever(search.graphs[0], "paragraph", "bm25", top_k=3))
    fusion = QueryFusionRetriever(
        [retriever, whole], llm=MockLLM(), num_queries=1, use_async=False, mode=mode
    )
    results = fusion.retrieve(QUERY)
    assert len({*ids(results)}) == len(results)
    assert ids(results)[0] == ids(retriever.retrieve(QUERY))[0]
    assert all(isinstance(result, NodeWithEvidence) and result.evidence for result in results)


def test_postprocessors_keep_the_evidence(search: Retriever, scripted: Scripted) -> None:
    engine = RetrieverQueryEngine.from_args(
        NodeGraphRetriever(search),
        llm=scripted("Black tea."),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.1), LongContextReorder()],
    )
    sources = engine.query(QUERY).source_nodes
    assert {*ids(sources)} == {*ids(NodeGraphRetriever(search).retrieve(QUERY))}
    assert all(source.evidence for source in sources)


def test_score_of_zero_stays_zero() -> None:
    class Listed:
        def retrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            index = NodeGraphIndex([TextNode(text="Tea", id_="t")], similarity="bm25")
            return [ScoredNode(index.graph.nodes("ROOT")[0], 0.0)]

        async def aretrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            return self.retrieve(query)

    results = NodeGraphRetriever(Listed()).retrieve("tea")
    assert [result.score for result in results] == [0.0]
    zero = NodeGraphReranker("ModuleReranker", model=lambda query, texts: [0.0] * len(texts))
    assert zero.postprocess_nodes(results, query_str="tea")[0].score == 0.0


USER: ContextVar[str] = ContextVar("user")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LlamaIndex's workflows
async def test_agent_reads_only_notes_of_its_user(scripted: Scripted) -> None:
    notes = [
        Document(text=f"The tea of {user} is {color}.", metadata={"user": user})
        for user, color in (("anna", "green"), ("ben", "black"))
    ]
    index = NodeGraphIndex.from_documents(notes, similarity="bm25")
    own = NodeGraphRetriever(restrict(index, lambda: {"user": USER.get()}))
    tool: Any = RetrieverTool.from_defaults(own, name="notes", description="Notes")

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


async def test_async_search_runs_replaced_sync_search(search: Retriever) -> None:
    class First(NodeGraphRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
            return super()._retrieve(query_bundle)[:1]

    first = First(search)
    assert len(NodeGraphRetriever(search).retrieve(QUERY)) > 1
    assert len(first.retrieve(QUERY)) == 1
    assert len(await first.aretrieve(QUERY)) == 1
    assert len(await as_retriever(first).aretrieve(QUERY)) == 1
