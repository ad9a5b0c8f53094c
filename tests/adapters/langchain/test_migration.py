"""Each row of the migration table in docs/langchain.md, beside what it replaces."""

from itertools import pairwise

import numpy as np
import pytest
from langchain_classic.chains import RetrievalQA
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    RePhraseQueryRetriever,
    SelfQueryRetriever,
)
from langchain_classic.retrievers import MultiQueryRetriever as TheirMultiQueryRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, EmbeddingsFilter
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import (
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    as_transform,
)
from nodekin.adapters.langchain.query_engine import NodeGraphQueryEngine
from nodekin.adapters.langchain.structured_filter import StructuredFilter
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    MultiQueryRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    Reranker,
    RerankRetriever,
    Retriever,
    StrategySettings,
)

DOCUMENTS = [
    Document(
        "Green tea is steamed. Black tea is fermented. Tea comes from leaves.",
        metadata={"topic": "tea", "year": 1999}, id="tea",
    ),
    Document(
        "Rivers run to the sea. The sea is salty. Fish live in both.",
        metadata={"topic": "water", "year": 2005}, id="river",
    ),
    Document(
        "绿茶是蒸青的。红茶是发酵的。茶来自云南的大树。",
        metadata={"topic": "tea", "year": 2010}, id="茶",
    ),
    Document(
        "Coffee is roasted. Coffee comes from beans. It is drunk hot.",
        metadata={"topic": "coffee", "year": 2015}, id="coffee",
    ),
]  # fmt: skip
QUESTIONS = ["Which tea is fermented?", "Where do rivers run?", "红茶: hot or salty?", "hot beans"]


class Pairs(Embeddings):
    """Counts pairs of characters, so that hardly any two cosines are equal."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        counts = np.full(1024, 0.001)
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts.tolist()


def sentences():
    return RecursiveCharacterTextSplitter(
        separators=[". ", "。", ""], chunk_size=26, chunk_overlap=0, keep_separator="end"
    )


@pytest.fixture
def graph():
    graph = NodeGraph(embed=Pairs(), progress=False)
    graph.add(DOCUMENTS)
    graph.create_node_group("child", as_transform(sentences()))
    graph.create_node_group("summary", summary)
    return graph


@pytest.fixture
def vectors():
    store = InMemoryVectorStore(Pairs())
    store.add_documents(DOCUMENTS)
    return store


def summary(text):
    """Return the last sentence, in place of what a model would write."""
    return [text.replace("。", "。|").replace(". ", ".|").strip("|").rpartition("|")[2]]


def ours(retriever, **settings):
    return NodeGraphRetriever(retriever=retriever, **settings)


def ids(documents):
    return [document.id for document in documents]


def texts(documents):
    return [document.page_content for document in documents]


@pytest.mark.parametrize("question", QUESTIONS)
def test_parent_document_retriever(graph, question):
    theirs = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Pairs()),
        docstore=InMemoryStore(),
        child_splitter=sentences(),
        search_kwargs={"k": 100},
    )
    theirs.add_documents(DOCUMENTS, ids=ids(DOCUMENTS))
    retriever = ours(Retriever(graph, "child", "cosine", target="ROOT", top_k=4))
    assert texts(retriever.invoke(question)) == texts(theirs.invoke(question))
    theirs.search_kwargs = {"k": 2}  # counts children: fewer parents than asked for may come
    assert len(retriever.invoke(question, k=2)) == 2
    assert len(theirs.invoke(question)) <= 2
    # Adding again: theirs has all children twice, ours nothing.
    theirs.add_documents(DOCUMENTS, ids=ids(DOCUMENTS))
    graph.add(DOCUMENTS)
    assert len(theirs.vectorstore.store) == 2 * len(graph.nodes("child"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_parent_document_retriever_with_parents_of_its_own(graph, question):
    def parents():
        return RecursiveCharacterTextSplitter(
            separators=[". ", "。", ""], chunk_size=45, chunk_overlap=0, keep_separator="end"
        )

    theirs = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Pairs()),
        docstore=InMemoryStore(),
        child_splitter=sentences(),
        parent_splitter=parents(),
        search_kwargs={"k": 100},
    )
    theirs.add_documents(DOCUMENTS)
    graph.create_node_group("parent", as_transform(parents()))
    graph.create_node_group("small", as_transform(sentences()), parent="parent")
    retriever = ours(Retriever(graph, "small", "cosine", target="parent", top_k=3))
    assert texts(retriever.invoke(question)) == texts(theirs.invoke(question))[:3]


@pytest.mark.parametrize("question", QUESTIONS)
def test_multi_vector_retriever(graph, question):
    theirs = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Pairs()),
        docstore=InMemoryStore(),
        id_key="of",
        search_kwargs={"k": 4},
    )
    made = [Document(summary(d.page_content)[0], metadata={"of": d.id}) for d in DOCUMENTS]
    theirs.vectorstore.add_documents(made)
    theirs.docstore.mset([(document.id, document) for document in DOCUMENTS])
    retriever = ours(Retriever(graph, "summary", "cosine", target="ROOT", top_k=4))
    assert ids(retriever.invoke(question)) == ids(theirs.invoke(question))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.8, 0.2]])
def test_ensemble_retriever(graph, question, weights):
    searches = [
        Retriever(graph, "ROOT", "bm25", top_k=4),
        Retriever(graph, "child", "cosine", target="ROOT", top_k=4),
    ]
    theirs = EnsembleRetriever(retrievers=[ours(s) for s in searches], weights=weights)
    retriever = ours(FusionRetriever(searches, weights=weights, top_k=4))
    assert retriever.invoke(question) == theirs.invoke(question)


def test_bm25_retriever(graph):
    pytest.importorskip("rank_bm25", reason="BM25Retriever needs rank-bm25")
    community = pytest.importorskip(
        "langchain_community.retrievers",
        reason="BM25Retriever is in langchain-community",
        exc_type=ImportError,
    )
    theirs = community.BM25Retriever.from_documents(
        DOCUMENTS, k=4, preprocess_func=lambda text: text.lower().replace(".", "").split()
    )
    retriever = ours(Retriever(graph, "ROOT", "bm25", top_k=4))
    for question in ("fermented tea", "rivers run", "roasted beans"):
        assert ids(retriever.invoke(question))[:1] == ids(theirs.invoke(question))[:1]
    assert ids(retriever.invoke("红茶发酵吗？")) == ["茶"]
    assert ids(theirs.invoke("红茶发酵吗？"))[:1] != ["茶"]  # no word of it is one of theirs
    assert retriever.invoke("zeppelin") == []
    assert len(theirs.invoke("zeppelin")) == 4


def test_multi_query_retriever(graph, vectors):
    answer = "Which tea is fermented?\nWhere do rivers run?"
    model = FakeListChatModel(responses=[answer])
    theirs = TheirMultiQueryRetriever.from_llm(vectors.as_retriever(search_kwargs={"k": 1}), model)
    inner = Retriever(graph, "ROOT", "cosine", top_k=1)
    strategy = MultiQueryRetriever(
        inner, model, settings=StrategySettings(include_query=False), top_k=2
    )
    question = "Tea or rivers?"
    assert set(ids(ours(strategy).invoke(question))) == set(ids(theirs.invoke(question)))
    numbered = FakeListChatModel(responses=["1. " + answer.replace("\n", "\n2. ")])
    strategy = MultiQueryRetriever(inner, numbered, settings=StrategySettings(include_query=False))
    assert strategy.transform(question) == answer.splitlines()
    theirs = TheirMultiQueryRetriever.from_llm(vectors.as_retriever(), numbered)
    assert theirs.llm_chain.invoke({"question": question})[0].startswith("1. ")


async def test_re_phrase_query_retriever(graph, vectors):
    model = FakeListChatModel(responses=["Which tea is fermented?"])
    theirs = RePhraseQueryRetriever.from_llm(vectors.as_retriever(), model)
    search = Retriever(graph, "ROOT", "cosine", top_k=4)
    retriever = ours(QueryRewriteRetriever(search, model))
    assert ids(retriever.invoke("tee?? fermentd")) == ids(theirs.invoke("tee?? fermentd"))
    assert ids(await retriever.ainvoke("tee??")) == ids(retriever.invoke("tee??"))
    with pytest.raises(NotImplementedError):
        await theirs.ainvoke("tee??")


class Words(BaseCrossEncoder):
    """Scores a pair by the characters that both have."""

    def score(self, text_pairs):
        return [float(len({*query} & {*text}) / len({*text})) for query, text in text_pairs]


@pytest.mark.parametrize("question", QUESTIONS)
def test_contextual_compression_retriever(graph, question):
    search = Retriever(graph, "ROOT", "cosine", top_k=4)
    theirs = ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Words(), top_n=2), base_retriever=ours(search)
    )
    reranker = Reranker("ModuleReranker", model=Words())
    retriever = ours(RerankRetriever(search, reranker, top_k=2))
    assert ids(retriever.invoke(question)) == ids(theirs.invoke(question))
    within = ContextualCompressionRetriever(
        base_compressor=NodeGraphReranker(reranker=reranker, top_n=2), base_retriever=ours(search)
    )
    assert ids(within.invoke(question)) == ids(theirs.invoke(question))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_threshold_of_similarity(graph, question):
    pytest.importorskip("langchain_community", reason="EmbeddingsFilter needs it")
    least = 0.3
    theirs = ContextualCompressionRetriever(
        base_compressor=EmbeddingsFilter(embeddings=Pairs(), similarity_threshold=least, k=None),
        base_retriever=ours(Retriever(graph, "ROOT", "cosine", top_k=4)),
    )
    cut = ours(Retriever(graph, "ROOT", "cosine", top_k=4, similarity_cut_off=least))
    whole = ours(Retriever(graph, "ROOT", "cosine", top_k=4))
    kept = texts(theirs.invoke(question))  # their ids are lost
    assert texts(cut.invoke(question)) == kept
    assert texts(whole.invoke(question, score_threshold=least)) == kept
    assert len(kept) < 4


class Reads(BaseChatModel):
    """Answers from what is in its prompt, in the form that it is asked for."""

    @property
    def _llm_type(self):
        return "reads"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        # What the prompts of map_rerank give as examples is before "DO NOT", or has no tea.
        asked = "\n".join(str(message.content) for message in messages)
        known = "Black tea is fermented" in asked
        answer = "Black tea is fermented." if known else "This document does not answer it"
        if "Score:" in asked:
            answer += f"\nScore: {100 if known else 0}"
        elif "Confidence:" in asked:
            answer = f"Answer: {answer}\nConfidence: {100 if known else 0}"
        elif not known:
            answer = "NO_ANSWER" if "NO_ANSWER" in asked else answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore:The apply_and_parse method is deprecated")
@pytest.mark.parametrize("kind", ["stuff", "refine", "map_reduce", "map_rerank"])
def test_retrieval_qa(graph, kind):
    search = Retriever(graph, "ROOT", "cosine", top_k=3)
    theirs = RetrievalQA.from_chain_type(
        Reads(), kind, retriever=ours(search), return_source_documents=True
    )
    if kind == "map_reduce":  # counts tokens with a model that has to be downloaded
        reduce = theirs.combine_documents_chain.reduce_documents_chain
        reduce.combine_documents_chain.llm_chain.llm.custom_get_token_ids = _characters
    engine = NodeGraphQueryEngine(engine=QueryEngine(search, Reads(), kind), output="dict")
    question = "Which tea is fermented?"
    made = engine.invoke({"query": question})
    known = theirs.invoke({"query": question})
    assert made["answer"] == known["result"] == "Black tea is fermented."
    assert ids(made["context"]) == ids(known["source_documents"])


def _characters(text):
    return list(map(ord, text))


FIELD = {
    "eq": (Comparator.EQ, "topic", "tea"),
    "from": (Comparator.GTE, "year", 2000),
    "to": (Comparator.LT, "year", 2012),
    "in": (Comparator.IN, "topic", ["tea", "coffee"]),
}
COMPARED = {name: Comparison(*each) for name, each in FIELD.items()}


def _keeps(*wanted):
    """Return a directive as an in-memory store takes it: a function."""

    def keeps(document):
        checks = {
            Comparator.EQ: lambda value, limit: value == limit,
            Comparator.GTE: lambda value, limit: value >= limit,
            Comparator.LT: lambda value, limit: value < limit,
            Comparator.IN: lambda value, limit: value in limit,
        }
        return all(checks[how](document.metadata[key], limit) for how, key, limit in wanted)

    return keeps


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (["eq"], {"topic": "tea"}),
        (["from", "to"], {"year": {"gte": 2000, "lt": 2012}}),
        (["in", "from"], {"topic": ["tea", "coffee"], "year": {"gte": 2000}}),
    ],
)
async def test_self_query(graph, vectors, names, written):
    directive = Operation(Operator.AND, [COMPARED[name] for name in names])
    asked = StructuredQuery(query="tea", filter=directive, limit=None)
    retriever = SelfQueryRetriever(
        query_constructor=RunnableLambda(lambda given: asked),
        vectorstore=NodeGraphVectorStore(graph, "ROOT", similarity="cosine"),
        structured_query_translator=StructuredFilter(),
    )
    theirs = ids(vectors.similarity_search("tea", filter=_keeps(*(FIELD[n] for n in names))))
    assert ids(retriever.invoke("Tea, please")) == theirs
    assert ids(await retriever.ainvoke("Tea, please")) == theirs
    plain = ours(Retriever(graph, "ROOT", "cosine"))
    assert ids(plain.invoke("tea", filter=written)) == theirs
    assert ids(plain.invoke("tea", filter=directive.accept(StructuredFilter()))) == theirs
