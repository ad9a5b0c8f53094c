"""What a LlamaIndex user types first, beside LlamaIndex's own index over the same documents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import PromptTemplate, Settings, VectorStoreIndex
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import (
    NodeParser,
    TokenTextSplitter,
)
from llama_index.core.schema import BaseNode, Document, NodeRelationship, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)

from nodekin.adapters.llama_index import (
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphRetriever,
    as_retriever,
    import_nodes,
)
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever

_SOURCE = NodeRelationship.SOURCE

Scripted = Callable[[Any], Any]

TEXTS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented. It keeps long.",
    "rivers": "The Nile is 6,650 km long. It runs north. The Amazon is 6,400 km long.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}
QUESTIONS = ["Which tea is fermented?", "How long is the Amazon?", "When was the bridge opened?"]


class Words(BaseEmbedding):
    """Count words; record what was embedded."""

    texts: list[str] = []  # noqa: RUF012

    def _get_text_embedding(self, text: str) -> list[float]:
        self.texts.append(text)
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        counts = np.full(64, 0.01)
        for word in re.findall(r"[a-z0-9]+", query.lower()):
            counts[sum(map(ord, word)) % 61] += 1
        return [float(value) for value in counts / np.linalg.norm(counts)]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


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


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Close the event loop that LlamaIndex's sync methods run async ones in."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


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


@pytest.mark.usefixtures("own_loop")
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
    with pytest.raises(TypeError, match=r"graph is a NodeGraph.*from_documents"):
        NodeGraphIndex(documents, both)
    with pytest.raises(TypeError, match=r"\['similarity'\] are for nodes"):
        NodeGraphIndex(graph, both, similarity="bm25")
    with pytest.raises(TypeError, match=r"graph is a NodeGraph, or a list of nodes.*not 'tea'"):
        NodeGraphIndex("tea")  # type: ignore[arg-type]
    assert texts(NodeGraphIndex(graph).as_retriever(similarity_top_k=1).retrieve("fermented"))


def test_tools_of_an_index(documents: list[Document], scripted: Scripted) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    tool = RetrieverTool.from_defaults(index.as_retriever(similarity_top_k=1), name="search")
    output = asyncio.run(tool.acall("orange bridge"))
    assert "painted in orange" in str(output)
