"""Vector stores, pipelines, persistence, tracing and evaluators with one class exchanged."""

import asyncio
import pickle
import tempfile
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.evaluation import FaithfulnessEvaluator, RetrieverEvaluator
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever, VectorIndexAutoRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    ExactMatchFilter,
    MetadataFilter,
    MetadataFilters,
    MetadataInfo,
    VectorStoreInfo,
)
from support.llama_index_models import Words
from support.llama_index_programs import (
    QUESTION,
    Kit,
    answering,
    check,
    described,
    documents,
    splitter,
    storage,
)


def filtered(kit: Kit) -> Any:
    index = kit.from_documents()
    conditions = [
        ExactMatchFilter(key="name", value="beer"),
        MetadataFilter(key="year", value=2002, operator="<="),
        MetadataFilter(key="doc_id", value=["green", "river"], operator="in"),
    ]
    found = []
    for condition in conditions:
        filters = MetadataFilters(filters=[condition])
        retriever = index.as_retriever(similarity_top_k=9, filters=filters)
        # nodekin embeds a repeated query once, so each query differs.
        found.append(described(retriever.retrieve(f"{QUESTION} {condition.key}")))
    return found


def diverse(kit: Kit) -> Any:
    retriever = kit.from_documents().as_retriever(
        vector_store_query_mode="mmr",
        similarity_top_k=4,
        vector_store_kwargs={"mmr_threshold": 0.4},
    )
    return described(retriever.retrieve(QUESTION))


def filters_from_question(kit: Kit) -> Any:
    info = VectorStoreInfo(
        content_info="drinks",
        metadata_info=[MetadataInfo(name="name", type="str", description="the drink")],
    )
    spec = '{"query": "fermented", "filters": [{"key": "name", "value": "beer", "operator": "=="}]}'
    retriever = VectorIndexAutoRetriever(
        kit.from_documents(), vector_store_info=info, llm=answering(spec)
    )
    return described(retriever.retrieve(QUESTION))


def pipeline(kit: Kit) -> Any:
    made = IngestionPipeline(
        transformations=[splitter()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    index = kit.of_nodes(made.run(documents=documents()))
    index.insert_nodes(made.run(documents=[*documents(), Document(text="Mate tea.", id_="mate")]))
    return described(index.as_retriever(similarity_top_k=9).retrieve(QUESTION))


def written_to_store(kit: Kit) -> Any:
    index = kit.of_nodes([])
    made = IngestionPipeline(
        transformations=[splitter(), Words(texts=[])], vector_store=index.vector_store
    )
    return [node.node_id for node in made.run(documents=documents())]


def refreshed(kit: Kit) -> Any:
    index = kit.from_documents()
    changed = documents()
    changed[1].set_content("Black tea is oxidized.")
    told = index.refresh_ref_docs([*changed, Document(text="Mate tea is green.", id_="mate")])
    index.delete_ref_doc("beer", delete_from_docstore=True)
    index.update_ref_doc(Document(text="Rivers are long.", id_="river"))
    results = index.as_retriever(similarity_top_k=9).retrieve(QUESTION)
    return told, sorted(index.ref_doc_info), described(results)


def loaded(kit: Kit) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        index = kit.from_documents()
        index.set_index_id("drinks")
        index.storage_context.persist(folder)
        again = load_index_from_storage(
            storage(folder),
            index_id="drinks",
            embed_model=Words(texts=[]),
            transformations=[splitter()],
        )
        again.insert(Document(text="Mate tea.", id_="mate"))
        return again.index_id, described(again.as_retriever(similarity_top_k=9).retrieve(QUESTION))


def merged(kit: Kit) -> Any:
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[64, 24], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents(
        [Document(text=" ".join(each.text for each in documents()), id_="all")]
    )
    names = {node.node_id: f"n{at}" for at, node in enumerate(nodes)}
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index = kit.of_nodes(get_leaf_nodes(nodes), storage_context=context)
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=4), context)
    return [(names[result.node_id], result.text) for result in retriever.retrieve(QUESTION)]


def copied_results(kit: Kit) -> Any:
    results = kit.from_documents().as_retriever(similarity_top_k=3).retrieve(QUESTION)
    again = pickle.loads(pickle.dumps(results))
    kinds = [type(result.node).from_json(result.node.to_json()) for result in again]
    return described(again), [node.hash for node in kinds]


def debugged(kit: Kit) -> Any:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    index = kit.from_documents(callback_manager=CallbackManager([handler]))
    index.as_retriever().retrieve(QUESTION)
    pairs = handler.get_event_pairs(CBEventType.RETRIEVE)
    return [described(end.payload["nodes"]) for _, end in pairs]


def given_manager(kit: Kit) -> Any:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    engine = RetrieverQueryEngine.from_args(
        kit.from_documents().as_retriever(),
        llm=answering(),
        callback_manager=CallbackManager([handler]),
    )
    engine.query(QUESTION)
    return [
        (start.event_type.value, sorted(map(str, end.payload)))
        for start, end in handler.get_event_pairs()
    ]


def measured(kit: Kit) -> Any:
    retriever = kit.from_documents().as_retriever(similarity_top_k=2)
    evaluator = RetrieverEvaluator.from_metric_names(["mrr", "hit_rate"], retriever=retriever)
    result = asyncio.run(evaluator.aevaluate(QUESTION, ["black-0"]))
    return result.retrieved_ids, result.retrieved_texts, result.metric_vals_dict


def judged(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering())
    evaluator = FaithfulnessEvaluator(llm=answering("YES"))
    result = evaluator.evaluate_response(query=QUESTION, response=engine.query(QUESTION))
    return result.passing, result.score, result.contexts


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "program",
    [
        filtered,
        diverse,
        filters_from_question,
        pipeline,
        written_to_store,
        refreshed,
        loaded,
        merged,
        copied_results,
        debugged,
        given_manager,
        measured,
        judged,
    ],
    ids=lambda program: program.__name__,
)
def test_program_has_equal_results_and_events(program: Any, monkeypatch: Any) -> None:
    # `refresh_ref_docs` parses and embeds all changed documents together.
    check(program, monkeypatch, counts=program is not refreshed)
