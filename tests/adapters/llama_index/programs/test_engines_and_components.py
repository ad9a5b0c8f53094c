"""LlamaIndex's engines, postprocessors and readers of nodes, with one class exchanged."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    QueryBundle,
    SimpleDirectoryReader,
    SimpleKeywordTableIndex,
    StorageContext,
    load_indices_from_storage,
)
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.indices.query.query_transform import (
    HyDEQueryTransform,
    StepDecomposeQueryTransform,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.objects import ObjectIndex
from llama_index.core.postprocessor import (
    LLMRerank,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.retrievers import AutoMergingRetriever, BaseRetriever, RouterRetriever
from llama_index.core.schema import NodeWithScore, TransformComponent
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from support.llama_index_models import Words
from support.llama_index_programs import (
    QUESTION,
    Kit,
    Program,
    answering,
    check,
    described,
    documents,
    outcomes,
)

from nodekin.adapters.llama_index import NodeGraphIndex


def custom_retriever(kit: Kit) -> Any:
    """A retriever of a user that intersects vectors with a keyword table."""
    index = kit.from_documents()
    nodes = list(index.docstore.docs.values())
    table = SimpleKeywordTableIndex(nodes, llm=answering())

    class Both(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            by_vector = index.as_retriever(similarity_top_k=4).retrieve(query_bundle)
            by_word = table.as_retriever(retriever_mode="simple").retrieve(query_bundle)
            ids = {result.node_id for result in by_word}
            return [result for result in by_vector if result.node_id in ids]

    engine = RetrieverQueryEngine.from_args(Both(), llm=answering())
    response = engine.query(QUESTION)
    return str(response), described(response.source_nodes)


def routed(kit: Kit) -> Any:
    drinks = kit.from_documents(documents()[:4])
    waters = kit.from_documents(documents()[4:])
    tools = [
        RetrieverTool.from_defaults(drinks.as_retriever(), description="drinks"),
        RetrieverTool.from_defaults(waters.as_retriever(), description="rivers"),
    ]
    chosen = '[{"choice": 1, "reason": "drinks"}]'
    selector = LLMSingleSelector.from_defaults(llm=answering(chosen))
    router = RouterRetriever(selector, tools, llm=answering())
    other = asyncio.run(router.aretrieve("What is brewed?"))
    return described(router.retrieve(QUESTION)), described(other)


def cited(kit: Kit) -> Any:
    engine = CitationQueryEngine.from_args(
        kit.from_documents(), llm=answering("Black tea [1]."), citation_chunk_size=30
    )
    response = engine.query(QUESTION)
    return str(response), [(n.get_content(), round(n.score or 0, 4)) for n in response.source_nodes]


def multi_step(kit: Kit) -> Any:
    engine = MultiStepQueryEngine(
        kit.from_documents().as_query_engine(llm=answering()),
        StepDecomposeQueryTransform(answering("Which tea keeps for years?")),
        response_synthesizer=TreeSummarize(llm=answering()),
        index_summary="drinks",
        num_steps=2,
    )
    response = engine.query(QUESTION)
    found = [result for result in response.source_nodes if result.node.ref_doc_id]  # not answers
    return str(response), described(found)


def hypothetical(kit: Kit) -> Any:
    hyde = HyDEQueryTransform(llm=answering("Coffee is roasted."), include_original=False)
    engine = TransformQueryEngine(kit.from_documents().as_query_engine(llm=answering()), hyde)
    response = engine.query("Which one is brown?")
    return str(response), described(response.source_nodes)


def corrected(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering())
    retried = RetryQueryEngine(engine, FaithfulnessEvaluator(llm=answering("YES")))
    response = retried.query(QUESTION)
    return str(response), described(response.source_nodes)


def tools_by_meaning(kit: Kit) -> Any:
    """An index of tools, made by the exchanged class."""
    tools = [
        FunctionTool.from_defaults(lambda: "1", name=name, description=text)
        for name, text in (("brew", "brew tea with water"), ("roast", "roast coffee"))
    ]
    index = ObjectIndex.from_objects(
        tools, index_cls=kit.cls, embed_model=Words(texts=[]), **kit.options
    )
    retriever = index.as_retriever(similarity_top_k=1)
    names = [retriever.retrieve(query)[0].metadata.name for query in ("tea water", "coffee")]
    return names, len(index.as_retriever(similarity_top_k=2).retrieve("tea"))


def tool_router(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering())
    tools = [QueryEngineTool.from_defaults(engine, name="drinks", description="tea and coffee")]
    index = ObjectIndex.from_objects(
        tools, index_cls=kit.cls, embed_model=Words(texts=[]), **kit.options
    )
    router = ToolRetrieverRouterQueryEngine(index.as_retriever(), llm=answering())
    response = router.query(QUESTION)
    return str(response), described(response.source_nodes)


def neighbors(kit: Kit) -> Any:
    index = kit.from_documents()
    engine = index.as_query_engine(
        llm=answering(),
        similarity_top_k=1,
        node_postprocessors=[PrevNextNodePostprocessor(docstore=index.docstore, mode="both")],
    )
    return described(engine.query(QUESTION).source_nodes)


def shortened(kit: Kit) -> Any:
    optimizer = SentenceEmbeddingOptimizer(
        embed_model=Words(texts=[]), percentile_cutoff=0.5, tokenizer_fn=lambda t: t.split(". ")
    )
    engine = kit.from_documents().as_query_engine(llm=answering(), node_postprocessors=[optimizer])
    return described(engine.query(QUESTION).source_nodes)


def reranked(kit: Kit) -> Any:
    rerank = LLMRerank(llm=answering("Doc: 2, Relevance: 9\nDoc: 1, Relevance: 5"), top_n=1)
    engine = kit.from_documents().as_query_engine(
        llm=answering(), similarity_top_k=3, node_postprocessors=[rerank]
    )
    return described(engine.query(QUESTION).source_nodes)


def hierarchical(kit: Kit) -> Any:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={
            "large": SentenceSplitter(chunk_size=60, chunk_overlap=0),
            "small": SentenceSplitter(chunk_size=20, chunk_overlap=0),
        },
    )
    nodes = parser.get_nodes_from_documents(documents())
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index = kit.of_nodes(get_leaf_nodes(nodes), storage_context=context)
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=4), context)
    found = [(n.get_content(), round(n.score or 0, 4)) for n in retriever.retrieve(QUESTION)]
    return sorted(found)


class Found(Event):
    """The nodes of a step."""

    nodes: list[Any]


def workflow(kit: Kit) -> Any:
    index = kit.from_documents()

    class Rag(Workflow):
        @step
        async def retrieve(self, ctx: Context, event: StartEvent) -> Found:
            return Found(nodes=await index.as_retriever().aretrieve(event.query))

        @step
        async def answer(self, event: Found) -> StopEvent:
            return StopEvent(result=described(event.nodes))

    async def ask() -> Any:
        return await Rag(timeout=60).run(query=QUESTION)

    return asyncio.run(ask())


def several_indices(kit: Kit) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        index = kit.from_documents()
        index.set_index_id("drinks")
        index.storage_context.persist(folder)
        context = StorageContext.from_defaults(persist_dir=folder)
        (loaded,) = load_indices_from_storage(context, embed_model=Words(texts=[]))
        return loaded.index_id, described(loaded.as_retriever().retrieve(QUESTION))


def folder(kit: Kit) -> Any:
    with tempfile.TemporaryDirectory() as name:
        for document in documents():
            Path(name, f"{document.id_}.txt").write_text(document.text)
        read = SimpleDirectoryReader(name, filename_as_id=True).load_data()
        for document in read:
            document.id_ = Path(document.id_).name
            document.metadata = {"file_name": document.metadata["file_name"]}
        index = kit.from_documents(read)
        read[0].set_content("Black tea is stored in tins.")
        flags = index.refresh_ref_docs(read)
        found = index.as_retriever(similarity_top_k=4).retrieve("tins of tea")
        return flags, [(result.node_id, result.text) for result in found]


def own_texts(kit: Kit) -> Any:
    """A query whose vector is that of another text."""
    bundle = QueryBundle(QUESTION, custom_embedding_strs=["roasted coffee"])
    return described(kit.from_documents().as_retriever().retrieve(bundle))


class Upper(TransformComponent):
    """A component that changes texts and metadata."""

    def __call__(self, nodes: Sequence[Any], **kwargs: Any) -> Sequence[Any]:
        for node in nodes:
            node.set_content(node.get_content().upper())
            node.metadata["length"] = len(node.get_content())
        return nodes


def transformed(kit: Kit) -> Any:
    index = kit.from_documents(transformations=[Upper()])
    index.insert(Document(text="Milk is white.", id_="milk"))
    index.delete_ref_doc("beer", delete_from_docstore=True)
    return described(index.as_retriever(similarity_top_k=5).retrieve(QUESTION)), sorted(
        index.ref_doc_info
    )


PROGRAMS = [
    custom_retriever,
    routed,
    cited,
    multi_step,
    hypothetical,
    corrected,
    tools_by_meaning,
    tool_router,
    neighbors,
    shortened,
    reranked,
    hierarchical,
    workflow,
    several_indices,
    folder,
    own_texts,
    transformed,
]


# LlamaIndex keeps the vector of a query in the caller's object, where later steps find it. nodekin
# caches the vectors of queries instead.
EMBEDS_OTHERWISE = (multi_step, shortened, tool_router)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own parts
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_has_equal_results_and_events(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program in EMBEDS_OTHERWISE:
        theirs, ours = outcomes(program, monkeypatch)
        assert ours.value == theirs.value
        return
    check(program, monkeypatch, counts=program is not folder)  # which embeds changes together


def test_vector_store_serves_as_memory() -> None:
    block = VectorMemoryBlock(
        vector_store=NodeGraphIndex([], embed_model=Words(texts=[])).vector_store,
        embed_model=Words(texts=[]),
        similarity_top_k=1,
        retrieval_context_window=1,
    )

    async def talk() -> str:
        for text in ("I like black tea.", "It rains."):
            said = [ChatMessage(role="user", content=text)]
            await block.aput(said, from_short_term_memory=True, session_id="s")
        asked = [ChatMessage(role="user", content="Which tea do I like?")]
        return str(await block.aget(asked, session_id="s"))

    assert "I like black tea." in asyncio.run(talk())
