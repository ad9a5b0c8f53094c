"""What a LlamaIndex user types first, beside LlamaIndex's own index over the same documents."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    PromptTemplate,
    Settings,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    NodeParser,
    SentenceSplitter,
    TokenTextSplitter,
    get_leaf_nodes,
)
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import BaseNode, Document, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index_models import Words

from nodekin.adapters.llama_index import (
    NodeGraphDocstore,
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphRetriever,
    import_nodes,
)
from nodekin.adapters.llama_index.nodes import from_text_node
from nodekin.nodegraph import EmbeddingError, NodeGraph, split_sentences
from nodekin.retrievers import DefaultRetriever, FusionRetriever, Retriever, as_retriever

Scripted = Callable[[Any], Any]

TEXTS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented. It keeps long.",
    "rivers": "The Nile is 6,650 km long. It runs north. The Amazon is 6,400 km long.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}
QUESTIONS = ["Which tea is fermented?", "How long is the Amazon?", "When was the bridge opened?"]


class Halves(NodeParser):
    """Split a document at its second full stop."""

    def _parse_nodes(self, nodes: Any, show_progress: bool = False, **kwargs: Any) -> list[Any]:
        return [
            TextNode(
                text=part, relationships={NodeRelationship.SOURCE: node.as_related_node_info()}
            )
            for node in nodes
            for part in re.findall(r"(?:[^.]*\.){1,2}", node.text)
        ]


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(text=text, id_=name, metadata={"topic": name, "year": 2000 + n})
        for n, (name, text) in enumerate(TEXTS.items())
    ]


@pytest.fixture
def words() -> Words:
    return Words(texts=[])


@pytest.fixture(autouse=True)
def settings() -> Iterator[Any]:
    """Leave LlamaIndex's settings as they were."""
    names = ("_llm", "_embed_model", "_node_parser", "_transformations")
    before = {name: getattr(Settings, name) for name in names}
    for name in names:
        setattr(Settings, name, None)
    yield Settings
    for name, value in before.items():
        setattr(Settings, name, value)


def texts(results: Any) -> list[str]:
    return [result.text for result in results]


def test_the_first_line_is_that_of_llama_index(documents: list[Document], words: Words) -> None:
    theirs = VectorStoreIndex.from_documents(documents, embed_model=words)
    ours = NodeGraphIndex.from_documents(documents, embed_model=words)
    for question in QUESTIONS:
        (expected,) = theirs.as_retriever(similarity_top_k=1).retrieve(question)
        (result,) = ours.as_retriever(similarity_top_k=1).retrieve(question)
        assert (result.text, result.node.metadata) == (expected.text, expected.node.metadata)
        assert result.node.ref_doc_id == expected.node.ref_doc_id
        matches = [m for m in result.evidence if m["group"] == "chunk sentence"]
        assert {match["similarity"] for match in matches} == {"bm25", "cosine"}
        assert all(match["text"] in result.text for match in matches)
        assert all(match["searched_with"] == ["topic", "year"] for match in matches)
    default = ours.as_retriever().retrieve(QUESTIONS[0])
    assert len(default) == len(theirs.as_retriever().retrieve(QUESTIONS[0])) == 2
    by_words = NodeGraphIndex.from_documents(documents, similarity="bm25")
    assert len(by_words.as_retriever().retrieve("The tea, the Nile, the bridge")) == 2


def test_results_are_chunks_of_the_settings_parser_and_sentences_are_embedded(
    documents: list[Document], words: Words, settings: Any
) -> None:
    settings.node_parser, settings.embed_model = Halves(), words
    index = NodeGraphIndex.from_documents(documents)
    assert words.texts == []  # nothing is embedded before it is needed
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("Which tea is fermented?")
    assert result.text == " Black tea is fermented. It keeps long."
    assert len(words.texts) == len(index.graph.nodes("chunk sentence")) == 9
    assert all(text.startswith("topic: ") for text in words.texts)


@pytest.mark.parametrize("options", [{"similarity": "bm25"}, {"embed_model": Words()}])
def test_an_index_with_a_parser_of_ones_own_is_pickled(
    documents: list[Document], options: Any
) -> None:
    index = NodeGraphIndex.from_documents(documents, transformations=[Halves()], **options)
    for again in (index, pickle.loads(pickle.dumps(index))):
        (result,) = again.as_retriever(similarity_top_k=1).retrieve("orange")
        assert result.text == TEXTS["bridges"]


def test_transformations_run_one_after_the_other(documents: list[Document]) -> None:
    class Shout(TokenTextSplitter):
        def __call__(self, nodes: Any, **kwargs: Any) -> list[BaseNode]:
            for node in nodes:
                node.metadata["shout"] = node.text.upper()
            return list(nodes)

    index = NodeGraphIndex.from_documents(
        documents, similarity="bm25", transformations=[Halves(), Shout()]
    )
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("orange")
    assert result.node.metadata["shout"].startswith("THE GOLDEN GATE")
    assert result.node.metadata["topic"] == "bridges"
    with pytest.raises(TypeError, match=r"a list of node parsers .*, not \[\]"):
        NodeGraphIndex.from_documents(documents, similarity="bm25", transformations=[])


def test_an_explicit_model_comes_before_the_settings(documents: Any, settings: Any) -> None:
    first, second = Words(texts=[]), Words(texts=[])
    settings.embed_model = first
    index = NodeGraphIndex.from_documents(documents, embed_model=second)
    assert index.as_retriever().retrieve("tea")
    assert first.texts == []
    assert second.texts


def test_without_any_model_the_error_says_what_to_give(
    documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError("`llama-index-embeddings-openai` package not found")

    monkeypatch.setattr("llama_index.core.settings.resolve_embed_model", missing)
    with pytest.raises(ImportError, match=r"embed_model=.*Settings\.embed_model.*'bm25'"):
        NodeGraphIndex.from_documents(documents)
    assert NodeGraphIndex.from_documents(documents, similarity="bm25")  # reads none


def test_where_embeddings_are_disabled_words_are_searched_by_default(
    documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_embed_model", None)
    Settings.embed_model = None  # LlamaIndex makes a mock of it
    for index in (
        NodeGraphIndex.from_documents(documents, storage_context=StorageContext.from_defaults()),
        NodeGraphIndex.from_nodes([*map(to_text_node, documents)]),
    ):
        assert isinstance(index.as_retriever().native_retriever, DefaultRetriever)
        assert not index.graph.embeddings.embedders
        (first, *_) = index.as_retriever().retrieve("tea?")
        assert 0 < first.score <= 1
    with pytest.raises(ValueError, match=r"Settings\.embed_model is None.*similarity='bm25'"):
        NodeGraphIndex.from_documents(documents, similarity="cosine")
    with pytest.raises(ValueError, match="no vector store is used"):
        NodeGraphIndex.from_documents(documents, vector_store=SimpleVectorStore())
    mock = MockEmbedding(1)  # that of the program
    assert NodeGraphIndex.from_documents(documents, embed_model=mock).graph.embeddings.embedders


def to_text_node(document: Document) -> TextNode:
    return TextNode(text=document.text)


def test_filters_and_top_k_of_a_retriever(documents: list[Document], words: Words) -> None:
    index = NodeGraphIndex.from_documents(documents, embed_model=words)
    filters = MetadataFilters(
        filters=[MetadataFilter(key="year", value=2000, operator=FilterOperator.GT)]
    )
    results = index.as_retriever(similarity_top_k=5, filters=filters).retrieve("tea?")
    assert {result.node.metadata["topic"] for result in results} == {"rivers", "bridges"}
    results = index.as_retriever(filters={"document.id": {"in": ["tea"]}}).retrieve("the bridge?")
    assert {result.node.ref_doc_id for result in results} == {"tea"}
    for name, message in {
        "vector_store_query_mode": "similarity='bm25'",
        "doc_ids": "'document.id'",
        "node_ids": "'llama_index_id'",
        "top_k": "it has similarity_top_k",
    }.items():
        with pytest.raises(TypeError, match=f"no argument '{name}'; .*{message}"):
            index.as_retriever(**{name: ["tea"]})


def test_a_cut_off_means_the_same_for_all_questions(
    documents: list[Document], words: Words
) -> None:
    index = NodeGraphIndex.from_documents(documents, embed_model=words)
    processor = SimilarityPostprocessor(similarity_cutoff=0.5)
    engine = index.as_query_engine(llm=MockLLM(), node_postprocessors=[processor])
    assert engine.query("Which tea is fermented?").source_nodes
    assert not engine.query("Where do penguins sleep in winter?").source_nodes


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize"])
def test_query_engines_take_the_settings_of_llama_index(
    documents: list[Document], words: Words, scripted: Scripted, mode: str
) -> None:
    template = PromptTemplate("Read {context_str} and tell: {query_str}")
    options = {
        "similarity_top_k": 1,
        "response_mode": mode,
        "text_qa_template": template,
        "summary_template": template,
    }
    prompts = []
    for kind in (VectorStoreIndex, NodeGraphIndex):
        model = scripted("Black tea.")
        index = kind.from_documents(documents, embed_model=words)
        response = index.as_query_engine(llm=model, **options).query(QUESTIONS[0])
        assert str(response) == "Black tea."
        assert texts(response.source_nodes) == [TEXTS["tea"]]
        prompts.append(model.prompts)
    assert prompts[0] == prompts[1]
    assert "and tell: Which tea is fermented?" in prompts[0][0]


def test_engines_stream_rewrite_and_answer_without_a_model(
    documents: list[Document], scripted: Scripted, settings: Any
) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    engine = index.as_query_engine(llm=scripted("Black tea."), streaming=True)
    assert [*engine.query("fermented?").response_gen] == ["Black", " tea."]
    engine = index.as_query_engine(llm=scripted("fermented tea"), strategy="rewrite")
    assert texts(engine.query("which one keeps??").source_nodes)[0] == TEXTS["tea"]
    response = index.as_query_engine(response_mode="no_text").query("orange?")
    assert texts(response.source_nodes) == [TEXTS["bridges"]]
    assert settings._llm is None
    settings.llm = scripted("Orange.")
    assert str(index.as_query_engine().query("orange?")) == "Orange."
    with pytest.raises(ValueError, match=r"response_mode is one of .*'compact'.*not 'short'"):
        index.as_query_engine(response_mode="short")


def test_the_classes_names_for_engines(documents: list[Document], scripted: Scripted) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    engine = NodeGraphQueryEngine.from_args(
        index.as_retriever(similarity_top_k=1), llm=scripted("Orange."), response_mode="refine"
    )
    assert str(engine.query("Which bridge is orange?")) == "Orange."

    def answer(prompt: str) -> str:
        return "Orange." if "Context information" in prompt else "Which is orange?"

    tool = QueryEngineTool.from_defaults(engine, name="bridges", description="All on bridges")
    over_tools = NodeGraphQueryEngine.from_defaults([tool], llm=scripted(answer))
    response = over_tools.query("What colour has it?")
    assert [(q, str(a)) for q, a in response.metadata["sub_qa"]] == [
        ("Which is orange?", "Orange.")
    ]


@pytest.mark.parametrize("mode", ["best", "condense_plus_context", "context", "condense_question"])
def test_chat_engines_are_llama_indexes(
    documents: list[Document], words: Words, scripted: Scripted, mode: str
) -> None:
    said = []
    for kind in (VectorStoreIndex, NodeGraphIndex):
        model = scripted("Black tea is fermented.")
        index = kind.from_documents(documents, embed_model=words)
        memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
        chat: BaseChatEngine = index.as_chat_engine(
            chat_mode=mode, llm=model, similarity_top_k=1, memory=memory
        )
        first, second = chat.chat(QUESTIONS[0]), chat.chat("Which tea is green?")
        assert texts(first.source_nodes) == [TEXTS["tea"]]
        said.append((type(chat), str(second), model.prompts))
    assert said[0] == said[1]
    with pytest.raises(ValueError, match=r"chat_mode is one of .*'context'.*not 'react'"):
        index.as_chat_engine(chat_mode="react", llm=model)


@pytest.mark.filterwarnings(
    "ignore:Call to deprecated method get_doc_id:DeprecationWarning"
)  # 0.13
def test_documents_come_change_and_go(documents: list[Document], words: Words) -> None:
    theirs = VectorStoreIndex.from_documents(documents, embed_model=words)
    ours = NodeGraphIndex.from_documents(documents, embed_model=words)
    assert ours.as_retriever().retrieve("tea")
    words.texts.clear()
    milk = Document(text="Milk is white.", id_="milk")
    for index in (theirs, ours):
        index.insert(milk)
        index.delete_ref_doc("rivers", delete_from_docstore=True)
        assert texts(index.as_retriever(similarity_top_k=1).retrieve("milk")) == ["Milk is white."]
        assert {*index.ref_doc_info} == {"tea", "bridges", "milk"}
    changed = documents[2].model_copy()
    changed.set_content("Bridges of stone are Roman.")
    again = [documents[0], changed, Document(text="Coffee is roasted.", id_="coffee")]
    words.texts.clear()
    assert theirs.refresh_ref_docs(again) == [False, True, True]
    assert ours.refresh_ref_docs(again) == [False, True, True]
    assert ours.refresh_ref_docs(again) == [False, False, False]
    words.texts.clear()
    assert texts(ours.as_retriever(similarity_top_k=1).retrieve("Roman")) == [
        "Bridges of stone are Roman."
    ]
    assert len(words.texts) == 2  # only what is new


async def test_the_same_in_async_code(documents: list[Document], scripted: Scripted) -> None:
    index = NodeGraphIndex.from_documents(documents[:1], similarity="bm25")
    await index.ainsert(documents[1])
    assert await index.arefresh_ref_docs(documents) == [False, False, True]
    await index.adelete_ref_doc("tea")
    assert {*index.ref_doc_info} == {"rivers", "bridges"}
    engine = index.as_query_engine(llm=scripted("Orange."))
    assert str(await engine.aquery("orange?")) == "Orange."


def test_an_unknown_document_is_a_warning(
    documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    index.delete_ref_doc("coffee")
    assert "there is no document 'coffee'" in caplog.text
    assert len(index.ref_doc_info) == 3


def test_it_is_opened_again_and_nothing_is_embedded_twice(
    documents: list[Document], words: Words, tmp_path: Path
) -> None:
    file = tmp_path / "tea.nodekin"
    index = NodeGraphIndex.from_documents(documents, embed_model=words, store=file)
    found = texts(index.as_retriever().retrieve(QUESTIONS[0]))
    index.graph.close()
    words.texts.clear()
    index = NodeGraphIndex.from_documents([], embed_model=words, store=file)
    assert texts(index.as_retriever().retrieve(QUESTIONS[0])) == found
    assert words.texts == []


def test_nodes_are_results_as_they_are(documents: list[Document], words: Words) -> None:
    nodes = Halves().get_nodes_from_documents(documents)
    theirs = VectorStoreIndex(nodes, embed_model=words)
    ours = NodeGraphIndex.from_nodes(nodes, embed_model=words)
    for question in QUESTIONS:
        (expected,) = theirs.as_retriever(similarity_top_k=1).retrieve(question)
        (result,) = ours.as_retriever(similarity_top_k=1).retrieve(question)
        assert (result.node.node_id, result.node.hash) == (expected.node_id, expected.node.hash)
    with pytest.raises(TypeError, match=r"imported nodes.*import_nodes\(index\.graph, nodes\)"):
        ours.insert(documents[0])
    import_nodes(ours.graph, [TextNode(text="Milk is white.", id_="milk")])


def test_vectors_can_be_held_by_a_vector_store(documents: list[Document], words: Words) -> None:
    held = SimpleVectorStore()
    index = NodeGraphIndex.from_documents(documents, embed_model=words, vector_store=held)
    assert texts(index.as_retriever(similarity_top_k=1).retrieve("orange")) == [TEXTS["bridges"]]
    assert len(held.data.embedding_dict) == 9


def test_any_graph_and_retriever_are_an_index(documents: list[Document], words: Words) -> None:
    graph = NodeGraph(embed=words)
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    both = FusionRetriever([Retriever(graph, "sentence", how) for how in ("cosine", "bm25")])
    index = NodeGraphIndex(graph, both)
    assert texts(index.as_retriever(similarity_top_k=1).retrieve("fermented?")) == [
        "Black tea is fermented."
    ]
    assert as_retriever(index) is both
    assert isinstance(index.as_retriever(), NodeGraphRetriever)
    with pytest.raises(TypeError, match=r"nodes is a list of nodes.*from_documents"):
        NodeGraphIndex(documents, both)
    with pytest.raises(TypeError, match=r"\['similarity'\] are for nodes"):
        NodeGraphIndex(graph, both, similarity="bm25")
    with pytest.raises(TypeError, match=r"nodes is a list of nodes.*a NodeGraph, not 'tea'"):
        NodeGraphIndex("tea")  # type: ignore[arg-type]
    assert texts(NodeGraphIndex(graph).as_retriever(similarity_top_k=1).retrieve("fermented"))


def test_tools_of_an_index(documents: list[Document], scripted: Scripted) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    tool = RetrieverTool.from_defaults(index.as_retriever(similarity_top_k=1), name="search")
    output = asyncio.run(tool.acall("orange bridge"))
    assert "painted in orange" in str(output)


DRINKS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented.",
    "rivers": "The Nile is 6,650 km long. It runs north.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}


class Letters(BaseEmbedding):
    """Count letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return [0.1 + query.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


@pytest.fixture
def drinks() -> list[Document]:
    return [Document(text=text, id_=name, metadata={"of": name}) for name, text in DRINKS.items()]


def test_every_first_line_of_llama_index_has_its_own_here() -> None:
    ours = {
        VectorStoreIndex: NodeGraphIndex,
        BaseRetriever: NodeGraphRetriever,
    }
    first = ("from_documents", "as_retriever", "as_query_engine", "as_chat_engine", "insert")
    more = ("insert_nodes", "refresh_ref_docs", "delete_ref_doc", "ref_doc_info", "docstore")
    for name in (*first, *more, "storage_context"):
        assert hasattr(VectorStoreIndex, name), name
        assert hasattr(ours[VectorStoreIndex], name), name
    for name in ("from_documents", "from_defaults"):  # BM25Retriever has the second
        assert callable(getattr(NodeGraphRetriever, name))
    for name in ("from_args", "from_defaults"):  # RetrieverQueryEngine, SubQuestionQueryEngine
        assert callable(getattr(NodeGraphQueryEngine, name))


def test_the_default_is_that_of_every_graph(drinks: list[Document]) -> None:
    index = NodeGraphIndex.from_documents(drinks, embed_model=Letters())
    search = as_retriever(index)
    assert isinstance(search, DefaultRetriever)
    assert [name for name, _ in search.inner_retrievers] == ["sentences", "words", "default"]
    of_words = as_retriever(NodeGraphIndex.from_documents(drinks, similarity="bm25"))
    assert isinstance(of_words, Retriever)
    assert (of_words.group_name, of_words.similarity.name) == ("chunk", "bm25")
    of_vectors = as_retriever(
        NodeGraphIndex.from_documents(drinks, similarity="cosine", embed_model=Letters())
    )
    assert isinstance(of_vectors, Retriever)
    assert of_vectors.similarity.name == "cosine"


def test_a_retriever_of_documents_in_one_line(drinks: list[Document]) -> None:
    retriever = NodeGraphRetriever.from_documents(
        drinks, similarity="bm25", similarity_top_k=1, filters={"of": {"ne": "tea"}}
    )
    (result,) = retriever.retrieve("Is the orange bridge green?")
    assert result.node.metadata["of"] == "bridges"
    fused = QueryFusionRetriever([retriever], num_queries=1, use_async=False, llm=MockLLM())
    assert texts(fused.retrieve("orange")) == [DRINKS["bridges"]]


def test_from_defaults_takes_nodes_an_index_or_a_docstore(
    drinks: list[Document],
) -> None:
    nodes = SentenceSplitter(
        chunk_size=24, chunk_overlap=0, paragraph_separator="\n", chunking_tokenizer_fn=str.split
    ).get_nodes_from_documents(drinks)
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    index = VectorStoreIndex(nodes, embed_model=Letters())
    sources: list[dict[str, Any]] = [{"nodes": nodes}, {"docstore": store}, {"index": index}]
    for source in sources:
        retriever = NodeGraphRetriever.from_defaults(
            **source, similarity="bm25", similarity_top_k=1
        )
        (result,) = retriever.retrieve("Who is painted in orange?")
        assert result.node.node_id in {node.node_id for node in nodes}
        assert "orange" in result.text
    for wrong in ({}, {"nodes": nodes, "docstore": store}):
        with pytest.raises(ValueError, match="one of index, nodes and docstore"):
            NodeGraphRetriever.from_defaults(**wrong, similarity="bm25")
    with pytest.raises(ValueError, match=r"no nodes.*NodeGraphRetriever\(index.as_retriever\(\)\)"):
        NodeGraphRetriever.from_defaults(docstore=SimpleDocumentStore(), similarity="bm25")
    with pytest.raises(ImportError, match="similarity='bm25'"):
        NodeGraphRetriever.from_defaults(nodes=nodes)


def test_a_storage_context_is_used_as_in_llama_index(
    drinks: list[Document], tmp_path: Path
) -> None:
    for kind in (VectorStoreIndex, NodeGraphIndex):
        vectors = SimpleVectorStore()
        context = StorageContext.from_defaults(vector_store=vectors)
        index = kind.from_documents(
            drinks,
            storage_context=context,
            embed_model=Letters(),
            similarity="cosine",
        )
        assert texts(index.as_retriever(similarity_top_k=1).retrieve("painted in orange")) == [
            DRINKS["bridges"]
        ]
        assert vectors.data.embedding_dict  # the store has the vectors
        assert len(context.docstore.docs) == 3  # the docstore has the nodes
        assert index.storage_context is context
        folder = tmp_path / kind.__name__
        context.persist(str(folder))
        kept = StorageContext.from_defaults(persist_dir=str(folder))
        assert sorted(texts(kept.docstore.docs.values())) == sorted(DRINKS.values())
    again = NodeGraphIndex.from_nodes([*kept.docstore.docs.values()], similarity="bm25")
    assert texts(again.as_retriever(similarity_top_k=1).retrieve("Nile")) == [DRINKS["rivers"]]


def load(folder: Path, **options: Any) -> Any:
    return load_index_from_storage(StorageContext.from_defaults(persist_dir=str(folder)), **options)


def test_an_index_of_documents_is_loaded_from_its_storage(
    drinks: list[Document], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index: Any = NodeGraphIndex.from_documents(drinks, similarity="bm25")
    assert index.storage_context is index.storage_context
    for _ in range(2):
        assert texts(index.as_retriever(similarity_top_k=1).retrieve("Nile")) == [DRINKS["rivers"]]
        index.storage_context.persist(str(tmp_path))
        index = load(tmp_path)
        assert index.refresh_ref_docs(drinks) == [False] * 3
    index.insert(Document(text="Cocoa is ground.", id_="cocoa"))
    index.delete_ref_doc("tea")
    index.storage_context.persist(str(tmp_path))
    assert {*load(tmp_path).ref_doc_info} == {"rivers", "bridges", "cocoa"}
    assert not caplog.text
    vectors = NodeGraphIndex.from_documents(drinks, embed_model=Letters())
    vectors.storage_context.persist(str(tmp_path))
    assert "docstore.json has no vectors: an index that is loaded from it embeds" in caplog.text
    loaded = load(tmp_path, embed_model=Letters())
    assert texts(loaded.as_retriever().retrieve("Nile")) == texts(
        vectors.as_retriever().retrieve("Nile")
    )
    assert NodeGraphIndex(index.graph).storage_context.docstore.docs
    assert "and not how it is searched" in caplog.text


def test_an_index_of_nodes_is_loaded_from_its_storage(tmp_path: Path) -> None:
    nodes = [TextNode(text=text, id_=name) for name, text in DRINKS.items()]
    more, alone = TextNode(text="Cocoa is ground.", id_="cocoa"), TextNode(text="A parent.")
    for theirs in (False, True):
        context = StorageContext.from_defaults()
        if theirs:  # which has nodes that are not found
            context.docstore.add_documents([alone])
        index = NodeGraphIndex(nodes, similarity="bm25", storage_context=context)
        index.insert_nodes([more])
        index.delete_ref_doc("tea")
        context.persist(str(tmp_path / str(theirs)))
        loaded = load(tmp_path / str(theirs))
        found = loaded.as_retriever(similarity_top_k=9).retrieve("Nile bridge cocoa tea parent")
        assert {result.node_id for result in found} == {"rivers", "bridges", "cocoa"}


@pytest.mark.parametrize("of_documents", [True, False])
def test_a_context_is_loaded_twice_and_after_an_error(
    drinks: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_documents: bool
) -> None:
    def missing(name: str) -> None:
        raise ImportError("`llama-index-embeddings-openai` package not found")

    monkeypatch.setattr("llama_index.core.settings.resolve_embed_model", missing)
    nodes = [TextNode(text=text, id_=name) for name, text in DRINKS.items()]
    context = StorageContext.from_defaults()
    if of_documents:
        NodeGraphIndex.from_documents(drinks, storage_context=context, similarity="bm25")
    else:
        NodeGraphIndex.from_nodes(nodes, storage_context=context, similarity="bm25")
    (struct,) = context.index_store.index_structs()
    for stored in (True, False):
        if stored:
            context.persist(str(tmp_path))
            context = StorageContext.from_defaults(persist_dir=str(tmp_path))
        with pytest.raises(TypeError, match="no argument 'unknown'"):
            load_index_from_storage(context, unknown=1)
        with pytest.raises(ImportError, match="give one, embed_model="):
            load_index_from_storage(context, similarity=None)
        index: Any = load_index_from_storage(context)
        assert texts(index.as_retriever(similarity_top_k=1).retrieve("Nile")) == [DRINKS["rivers"]]
    cocoa = "Cocoa is ground."
    if of_documents:
        index.insert(Document(text=cocoa, id_="cocoa"))
    else:
        index.insert_nodes([TextNode(text=cocoa, id_="cocoa")])
    context.persist(str(tmp_path))
    loaded = load(tmp_path, index_id=struct.index_id)
    found = loaded.as_retriever(similarity_top_k=9).retrieve("Nile bridge cocoa tea")
    assert {*texts(found)} == {*DRINKS.values(), cocoa}


def test_indexes_of_one_context_do_not_write_over_each_other(
    drinks: list[Document], tmp_path: Path
) -> None:
    nodes = [TextNode(text=text, id_=name) for name, text in DRINKS.items()]
    context = StorageContext.from_defaults()
    every = NodeGraphIndex(nodes, storage_context=context, similarity="bm25")
    one = NodeGraphIndex(nodes[:1], storage_context=context, similarity="bm25")
    context.persist(str(tmp_path))
    loaded = StorageContext.from_defaults(persist_dir=str(tmp_path))
    for index, names in ((every, [*DRINKS]), (one, [*DRINKS][:1])):
        again: Any = load_index_from_storage(loaded, index_id=index._struct.index_id)
        assert [*again.docstore.docs] == names
    context = StorageContext.from_defaults()
    first = NodeGraphIndex.from_documents(drinks, storage_context=context, similarity="bm25")
    second: Any = load_index_from_storage(context)
    first.insert(Document(text="Cocoa is ground.", id_="cocoa"))
    second.delete_ref_doc("tea")
    for shown, names in (
        (first.storage_context, {*DRINKS, "cocoa"}),
        (context, {*DRINKS} - {"tea"}),
    ):
        assert {node.ref_doc_id for node in shown.docstore.docs.values()} == names
    first.storage_context.persist(str(tmp_path / "first"))
    assert {*load(tmp_path / "first").ref_doc_info} == {*DRINKS, "cocoa"}


def test_auto_merging_reads_the_graph_in_the_storage_context() -> None:
    sizes = (64, 16)
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={
            name: SentenceSplitter(
                chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
            )
            for name, size in zip(("large", "small"), sizes, strict=True)
        },
    )
    nodes = parser.get_nodes_from_documents([Document(text=DRINKS["tea"] * 2)])
    context = StorageContext.from_defaults()
    index = NodeGraphIndex.from_nodes(nodes, storage_context=context, similarity="bm25")
    merging = AutoMergingRetriever(index.as_retriever(similarity_top_k=9), context)
    merged = merging.retrieve("green tea steamed leaves black fermented")
    assert {node.node_id for node in merged} < {node.node_id for node in nodes}
    assert len(merged) < len(get_leaf_nodes(nodes))


def test_what_a_storage_context_has_and_would_not_be_used_is_an_error(
    drinks: list[Document],
) -> None:
    filled = SimpleDocumentStore()
    filled.add_documents([TextNode(text="Tea.")])
    with pytest.raises(ValueError, match=r"stores documents and nodes itself.*from_nodes"):
        NodeGraphIndex.from_documents(
            drinks,
            storage_context=StorageContext.from_defaults(docstore=filled),
            similarity="bm25",
        )
    graph = NodeGraphIndex.from_documents(drinks, similarity="bm25").graph
    with pytest.raises(ValueError, match="would not use the NodeGraphDocstore"):
        NodeGraphIndex.from_documents(
            drinks,
            storage_context=StorageContext.from_defaults(docstore=NodeGraphDocstore(graph)),
            similarity="bm25",
        )
    context = StorageContext.from_defaults()
    NodeGraphIndex([TextNode(text="Tea.")], storage_context=context, similarity="bm25")
    with pytest.raises(ValueError, match=r"graph of another index, which the node 'milk' can't"):
        NodeGraphIndex(
            [TextNode(text="Milk.", id_="milk")], storage_context=context, similarity="bm25"
        )
    with pytest.raises(ValueError, match=r"words are compared, .* no vector store is used"):
        NodeGraphIndex.from_documents(drinks, vector_store=SimpleVectorStore(), similarity="bm25")
    one, other = (
        VectorStoreIndex([TextNode(text="Tea.")], embed_model=Letters()).vector_store,
        SimpleVectorStore(),
    )
    with pytest.raises(ValueError, match="different stores"):
        NodeGraphIndex.from_documents(
            drinks,
            vector_store=other,
            storage_context=StorageContext.from_defaults(vector_store=one),
            embed_model=Letters(),
        )


def test_the_likeliest_first_lines_work_or_say_what_to_write(drinks: list[Document]) -> None:
    nodes = [TextNode(text="Tea.")]
    by_name = NodeGraphIndex(nodes=nodes, similarity="bm25")
    assert texts(by_name.as_retriever().retrieve("tea")) == ["Tea."]
    wrong: Any
    for wrong in (drinks[0], "tea"):
        with pytest.raises(TypeError, match=r"documents is a list of documents.*write \["):
            NodeGraphIndex.from_documents(wrong, similarity="bm25")
    for wrong in (nodes, drinks):
        with pytest.raises(
            TypeError, match=r"write NodeGraphRetriever.from_documents\(documents\)"
        ):
            NodeGraphRetriever(wrong)
        with pytest.raises(TypeError, match=r"give nodes by name: nodes=\[...\]"):
            NodeGraphRetriever.from_defaults(wrong)
    for method in (by_name.as_retriever, by_name.as_query_engine):
        wrong = method
        with pytest.raises(TypeError, match=f"{method.__name__} has no argument 'doc_ids'; filter"):
            wrong(doc_ids=["a"])


def test_unknown_options_are_told_what_there_is(drinks: list[Document]) -> None:
    with pytest.raises(TypeError, match="no argument 'service_context'; there is embed_model"):
        NodeGraphIndex.from_documents(drinks, service_context=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="transformations are for documents"):
        NodeGraphIndex.from_nodes(
            [TextNode(text="Tea.")], transformations=[SentenceSplitter()], similarity="bm25"
        )


def test_nodes_are_inserted_into_an_index_of_nodes(drinks: list[Document]) -> None:
    index = NodeGraphIndex.from_nodes([TextNode(text="Tea is green.")], similarity="bm25")
    index.insert_nodes([TextNode(text="Milk is white.", id_="milk")])
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("milk")
    assert (result.node.node_id, from_text_node(result.node).group) == ("milk", "node")
    of_documents = NodeGraphIndex.from_documents(drinks, similarity="bm25")
    with pytest.raises(TypeError, match=r"made of documents.*insert"):
        of_documents.insert_nodes([TextNode(text="Milk is white.")])


def test_words_answer_if_the_embedder_is_down(
    drinks: list[Document], scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    class Down(Words):
        def _get_query_embedding(self, query: str) -> list[float]:
            raise ConnectionError("no server")

    index = NodeGraphIndex.from_documents(drinks, embed_model=Down())
    response = index.as_query_engine(scripted("Black tea.")).query("Which tea is fermented?")
    assert response.source_nodes[0].node.ref_doc_id == "tea"
    assert "no server" in response.source_nodes[0].evidence[0]["variants"][0]["note"]
    assert "no server" in response.metadata["errors"][0]["error"]
    assert "no server" in caplog.text
    strict = NodeGraphIndex.from_documents(drinks, embed_model=Down(), similarity="cosine")
    with pytest.raises(EmbeddingError, match="no server"):
        strict.as_retriever().retrieve("Which tea is fermented?")
