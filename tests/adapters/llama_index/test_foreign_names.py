"""Argument names of LlamaIndex's classes work, or the error says what to write."""

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.postprocessor import LLMRerank, SentenceTransformerRerank
from llama_index.core.query_engine import (
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    VectorIndexAutoRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import TextNode
from support.foreign_names import names_of, unanswered
from support.llama_index_models import Words

from nodekin.adapters.llama_index import (
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphReranker,
    NodeGraphRetriever,
)
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    SubQuestionRetriever,
)

# The package llama-index-retrievers-bm25 0.6 is not among the test requirements.
BM25_RETRIEVER = (
    "nodes stemmer language existing_bm25 similarity_top_k callback_manager objects object_map "
    "verbose skip_stemming token_pattern filters corpus_weight_mask index docstore tokenizer"
).split()

INDEXES = names_of(VectorStoreIndex, VectorStoreIndex.from_documents)
RETRIEVERS = names_of(
    *(VectorIndexRetriever, VectorIndexAutoRetriever, AutoMergingRetriever, RecursiveRetriever),
    QueryFusionRetriever,
)
RETRIEVERS += BM25_RETRIEVER
ENGINES = names_of(
    *(RetrieverQueryEngine, RetrieverQueryEngine.from_args, SubQuestionQueryEngine),
    *(SubQuestionQueryEngine.from_defaults, RouterQueryEngine, RouterQueryEngine.from_defaults),
    *(TransformQueryEngine, MultiStepQueryEngine),
)
GRAPH = NodeGraph(progress=False)
INDEX = NodeGraphIndex([TextNode(text="Tea.")], embed_model=Words(texts=[]))
LLM = str

CALLS = {
    "index": (lambda **o: NodeGraphIndex(**{"nodes": [], **o}), INDEXES),
    "from_documents": (
        lambda **o: NodeGraphIndex.from_documents(**{"documents": [], **o}),
        INDEXES,
    ),
    "as_retriever": (INDEX.as_retriever, RETRIEVERS),
    "as_query_engine": (lambda **o: INDEX.as_query_engine(**{"llm": LLM, **o}), ENGINES),
    "as_query_engine of retriever": (
        lambda **o: INDEX.as_query_engine(**{"llm": LLM, **o}),
        RETRIEVERS,
    ),
    "engine": (lambda **o: NodeGraphQueryEngine(**{"source": GRAPH, "llm": LLM, **o}), ENGINES),
    "from_args": (
        lambda **o: NodeGraphQueryEngine.from_args(**{"retriever": GRAPH, "llm": LLM, **o}),
        ENGINES,
    ),
    "from_defaults": (
        lambda **o: NodeGraphQueryEngine.from_defaults(
            **{"query_engine_tools": [], "llm": LLM, **o}
        ),
        ENGINES,
    ),
    "retriever": (lambda **o: NodeGraphRetriever(**{"retriever": GRAPH, **o}), RETRIEVERS),
    "fusion": (
        lambda **o: FusionRetriever(**{"retrievers": [GRAPH], **o}),
        names_of(QueryFusionRetriever),
    ),
    "multi query": (
        lambda **o: MultiQueryRetriever(**{"inner": GRAPH, "llm": LLM, **o}),
        names_of(QueryFusionRetriever),
    ),
    "auto merge": (
        lambda **o: AutoMergeRetriever(**{"inner": GRAPH, **o}),
        names_of(AutoMergingRetriever),
    ),
    "sub question": (
        lambda **o: SubQuestionRetriever(**{"inner": GRAPH, "llm": LLM, **o}),
        names_of(SubQuestionQueryEngine, SubQuestionQueryEngine.from_defaults),
    ),
    "multi step": (
        lambda **o: MultiStepRetriever(**{"inner": GRAPH, "llm": LLM, **o}),
        names_of(MultiStepQueryEngine),
    ),
    "reranker": (
        lambda **o: NodeGraphReranker(**{"reranker": "KeywordFilter", "required": "tea", **o}),
        names_of(LLMRerank, SentenceTransformerRerank),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_name_is_answered(name):
    call, names = CALLS[name]
    assert unanswered(call, names) == {}


@pytest.mark.parametrize("call", ["index", "from_documents", "as_retriever", "as_query_engine"])
def test_message_shows_no_inner_class(call):
    with pytest.raises(TypeError) as raised:
        CALLS[call][0](no_such_argument=1)
    assert "NodeGraphIndex" in str(raised.value)
    assert "BaseRetriever" not in str(raised.value)
