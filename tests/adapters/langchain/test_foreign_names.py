"""Argument names of LangChain's classes work, or the error says what to write."""

import pytest
from langchain_classic import retrievers as classic
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, EmbeddingsFilter
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from support.foreign_names import names_of, unanswered

from nodekin.adapters.langchain import (
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    retriever_tool,
)
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    MultiQueryRetriever,
    QueryRewriteRetriever,
    RerankRetriever,
    Retriever,
)

try:
    from langchain_chroma import Chroma
except ImportError:  # not in every environment
    Chroma = InMemoryVectorStore

VECTOR_STORES = names_of(
    *(InMemoryVectorStore, InMemoryVectorStore.from_documents, InMemoryVectorStore.from_texts),
    *(FAISS, FAISS.from_documents, FAISS.from_texts, FAISS.load_local),
    *(Chroma, Chroma.from_documents, Chroma.from_texts, VectorStoreRetriever),
)
RETRIEVERS = names_of(
    *(BM25Retriever, BM25Retriever.from_documents, BM25Retriever.from_texts),
    *(classic.ParentDocumentRetriever, classic.ParentDocumentRetriever.add_documents),
    *(classic.MultiVectorRetriever, classic.TimeWeightedVectorStoreRetriever),
    *(classic.MultiQueryRetriever, classic.MultiQueryRetriever.from_llm),
    *(classic.RePhraseQueryRetriever, classic.RePhraseQueryRetriever.from_llm),
    *(classic.SelfQueryRetriever, classic.SelfQueryRetriever.from_llm),
    *(classic.EnsembleRetriever, classic.ContextualCompressionRetriever, VectorStoreRetriever),
)
SEARCHES = names_of(
    *(InMemoryVectorStore.similarity_search, FAISS.similarity_search, Chroma.similarity_search),
    *(FAISS.max_marginal_relevance_search, Chroma.max_marginal_relevance_search),
)
GRAPH = NodeGraph(progress=False)
STORE = NodeGraphVectorStore()
WORDS = Retriever(GRAPH, "ROOT")

CALLS = [
    ("from_documents", lambda **o: NodeGraphRetriever.from_documents(**{"documents": [], **o})),
    ("from_texts", lambda **o: NodeGraphRetriever.from_texts(**{"texts": [], **o})),
    ("from_graph", lambda **o: NodeGraphRetriever.from_graph(GRAPH, **o)),
    ("retriever", lambda **o: NodeGraphRetriever(**{"retriever": WORDS, **o})),
    ("invoke", lambda **o: NodeGraphRetriever(WORDS).invoke(**{"input": "tea", **o})),
    ("store", NodeGraphVectorStore),
    ("store from_documents", lambda **o: NodeGraphVectorStore.from_documents([], **o)),
    ("store from_texts", lambda **o: NodeGraphVectorStore.from_texts([], **o)),
    ("load_local", lambda **o: NodeGraphVectorStore.load_local("none", **o)),
    ("as_retriever", STORE.as_retriever),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_every_name_of_a_retriever_is_answered(name, call):
    assert unanswered(call, RETRIEVERS) == {}


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_every_name_of_a_vector_store_is_answered(name, call):
    assert unanswered(call, VECTOR_STORES) == {}


@pytest.mark.parametrize(
    "search",
    [
        STORE.similarity_search,
        STORE.similarity_search_with_score,
        STORE.max_marginal_relevance_search,
    ],
)
def test_every_name_of_a_search_is_answered(search):
    assert unanswered(lambda **o: search(**{"query": "tea", **o}), SEARCHES) == {}


@pytest.mark.parametrize(
    ("call", "theirs"),
    [
        (
            lambda **o: FusionRetriever(**{"retrievers": [WORDS], **o}),
            [classic.EnsembleRetriever],
        ),
        (
            lambda **o: MultiQueryRetriever(**{"inner": WORDS, "llm": str, **o}),
            [classic.MultiQueryRetriever, classic.MultiQueryRetriever.from_llm],
        ),
        (
            lambda **o: QueryRewriteRetriever(**{"inner": WORDS, "llm": str, **o}),
            [classic.RePhraseQueryRetriever, classic.RePhraseQueryRetriever.from_llm],
        ),
        (
            lambda **o: RerankRetriever(**{"inner": WORDS, "reranker": "KeywordFilter", **o}),
            [classic.ContextualCompressionRetriever],
        ),
        (
            lambda **o: NodeGraphReranker(**{"reranker": "KeywordFilter", **o}),
            [CrossEncoderReranker, EmbeddingsFilter],
        ),
        (
            lambda **o: retriever_tool(**{"retriever": None, "name": "x", "description": "x", **o}),
            [create_retriever_tool],
        ),
    ],
    ids=["fusion", "multi query", "rewrite", "rerank", "reranker", "tool"],
)
def test_every_name_of_a_component_is_answered(call, theirs):
    assert unanswered(call, names_of(*theirs)) == {}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: NodeGraphRetriever(WORDS, search_type="mmr"), r'as_retriever\(search_type="mmr"'),
        (lambda: NodeGraphRetriever(WORDS, vectorstore=STORE), r"index=as_index\(vector_store\)"),
        (lambda: NodeGraphRetriever(WORDS, top_k=3), "use k=$"),
        (lambda: NodeGraphReranker("KeywordFilter", top_k=3), "use top_n=$"),
        (lambda: NodeGraphRetriever.from_texts([], words="bm25"), r"\(DefaultRetriever\(graph"),
        (lambda: NodeGraphRetriever.from_documents([], bm25_params={}), r"similarity=Bm25\(k1="),
        (lambda: NodeGraphVectorStore.from_texts([], host="x"), "runs in this process"),
        (lambda: NodeGraphVectorStore.from_texts([], client=1), r"index=as_index\(vector_store\)"),
        (lambda: STORE.similarity_search("tea", fetch_k=9), "checked before ranking"),
    ],
)
def test_name_without_counterpart_gets_a_remedy(call, says):
    with pytest.raises(TypeError, match=says):
        call()
