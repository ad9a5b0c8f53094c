"""The retriever inside LlamaIndex's own components."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.node_parser import SentenceSplitter, get_leaf_nodes
from llama_index.core.postprocessor import (
    LongContextReorder,
    MetadataReplacementPostProcessor,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever, TransformRetriever
from llama_index.core.schema import Document, QueryBundle
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphRetriever,
    NodeWithEvidence,
    as_transform,
    export_nodes,
    from_text_node,
)
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever

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


def ids(results: Sequence[Any]) -> list[str]:
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


def test_query_engine_with_streaming_and_prompts(retriever: NodeGraphRetriever) -> None:
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), streaming=True)
    answer = engine.query(QUERY)
    assert "红茶" in "".join(answer.response_gen)
    assert isinstance(answer.source_nodes[0], NodeWithEvidence)
    prompts = engine.get_prompts()
    assert "response_synthesizer:text_qa_template" in prompts
    engine.update_prompts(prompts)


def test_spans_inside_a_query_engine(engine: RetrieverQueryEngine, watched: Any) -> None:
    engine.query(QUERY)
    asyncio.run(engine.aquery(QUERY))
    spans = watched.spans.completed_spans
    names = {span.id_: span.id_.split("-")[0] for span in spans}
    parents = {names[span.id_]: names.get(span.parent_id) for span in spans}
    for a in ("", "a"):
        chain = [f"NodeGraphRetriever._{a}retrieve"]
        while parents[chain[-1]]:
            chain.append(parents[chain[-1]])
        assert chain[1] == f"NodeGraphRetriever.{a}retrieve"
        assert chain[-1] == f"RetrieverQueryEngine.{a}query"


async def test_async_query_engine_leaves_the_loop_free(
    engine: RetrieverQueryEngine, unblocked: None
) -> None:
    answers = await asyncio.gather(*(engine.aquery(QUERY) for _ in range(4)))
    assert {str(answer) for answer in answers} == {"Black tea."}


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


async def test_async_fusion(retriever: NodeGraphRetriever) -> None:
    fusion = QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1)
    assert ids(await fusion.aretrieve(QUERY)) == ids(retriever.retrieve(QUERY))[:2]


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


def test_retriever_tool(retriever: NodeGraphRetriever) -> None:
    tool = RetrieverTool.from_defaults(retriever, name="teas", description="About tea.")
    for output in (tool.call(QUERY), asyncio.run(tool.acall(QUERY))):
        assert ids(output.raw_output) == ids(retriever.retrieve(QUERY))
        assert "红茶是全发酵茶。" in output.content
        assert "nodekin" not in output.content


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


def test_metadata_replacement_over_sentence_windows(llm: Scripted) -> None:
    from llama_index.core.node_parser import SentenceWindowNodeParser

    parser = SentenceWindowNodeParser.from_defaults(
        sentence_splitter=split_sentences, window_size=1
    )
    graph = NodeGraph()
    graph.add("One comes first. Two is next. Three is last.")
    graph.create_node_group("sentence", as_transform(parser))
    retriever = NodeGraphRetriever(Retriever(graph, "sentence", top_k=1))
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=llm,
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    for _ in range(2):
        (source,) = engine.query("two").source_nodes
        assert source.text == "One comes first. Two is next. Three is last."
        assert source.evidence[0]["text"] == "Two is next."
    assert retriever.retrieve("two")[0].text == "Two is next."


class Translate(BaseQueryTransform):
    """A query transform that asks for something else, with an embedding of another model."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None: ...

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle("大熊猫", custom_embedding_strs=["tea"], embedding=[0.5])


def test_query_transforms(engine: RetrieverQueryEngine, retriever: NodeGraphRetriever) -> None:
    answer = TransformQueryEngine(engine, Translate()).query(QUERY)
    found = TransformRetriever(retriever, Translate()).retrieve(QUERY)
    assert ids(answer.source_nodes) == ids(found) == ids(retriever.retrieve("大熊猫"))
    assert found[0].metadata["topic"] == "panda"


class Two(BaseQuestionGenerator):
    """A question generator that asks one tool twice."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None: ...

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=q, tool_name="teas") for q in (QUERY, "大熊猫")]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


@pytest.mark.parametrize("use_async", [True, False])
def test_sub_questions(engine: RetrieverQueryEngine, llm: Scripted, use_async: bool) -> None:
    outer = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(engine, name="teas", description="teas")],
        question_gen=Two(),
        response_synthesizer=get_response_synthesizer(llm=llm),
        llm=llm,
        use_async=use_async,
        verbose=False,
    )
    topics = {n.metadata.get("topic") for n in outer.query("both?").source_nodes}
    assert topics == {None, "tea", "panda"}


def test_ingestion_pipeline_into_a_graph() -> None:
    splitter = SentenceSplitter(
        chunk_size=16, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
    )
    pipeline = IngestionPipeline(transformations=[splitter])
    document = Document(
        id_="d", text="".join(f"Tea {n} is a drink. " for n in range(9)), metadata={"year": 1}
    )
    nodes = pipeline.run(documents=[document])
    assert len(nodes) > 1
    graph = NodeGraph()
    assert graph.add(nodes) == [n.node_id for n in nodes]
    graph.create_node_group("sentence", split_sentences)
    found = NodeGraphRetriever(Retriever(graph, "sentence", target="ROOT", top_k=99)).retrieve(
        "tea"
    )
    assert set(ids(found)) == {n.node_id for n in nodes}
    assert found[0].metadata["year"] == 1


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


def test_query_engine_tool(engine: RetrieverQueryEngine, retriever: NodeGraphRetriever) -> None:
    tool = QueryEngineTool.from_defaults(engine, name="teas", description="About tea.")
    for output in (tool.call(QUERY), asyncio.run(tool.acall(QUERY))):
        assert output.content == "Black tea."
        assert ids(output.raw_output.source_nodes) == ids(retriever.retrieve(QUERY))


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
