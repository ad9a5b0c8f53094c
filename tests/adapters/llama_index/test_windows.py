"""Windows within a token budget in LlamaIndex programs."""

import asyncio
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    MockEmbedding,
    StorageContext,
    load_index_from_storage,
)
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode, TransformComponent
from support.llama_index_models import Words
from support.real_windows import native_windows

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.splitters.chunking import count_tokens
from nodekin.retrievers import as_retriever
from nodekin.retrievers.filters import Filters

GREEN = "Green tea is steamed. It stays green. " * 30
COFFEE = "Coffee is roasted. It is brown. " * 30
LONG = f"{GREEN}Black tea is fermented. It keeps long. {COFFEE}"
TEXTS = [LONG, "Rivers run. Tea is fermented in China. Lakes rest.", "Beer is fermented as well."]
QUERY = "What is fermented?"
BUDGET = 40


@pytest.fixture
def index() -> NodeGraphIndex:
    documents = [
        Document(text=text, id_=str(at), metadata={"n": at}) for at, text in enumerate(TEXTS)
    ]
    for document in documents:
        document.excluded_embed_metadata_keys = ["n"]
    return NodeGraphIndex.from_documents(documents)


@pytest.fixture
def native() -> list[str]:
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return [result.text for result in as_retriever(graph).retrieve(QUERY, max_tokens=BUDGET)]


def _texts(nodes: list[NodeWithScore]) -> list[str]:
    return [node.text for node in nodes]


def _own_engine(index: NodeGraphIndex) -> list[NodeWithScore]:
    return index.as_query_engine(MockLLM(), max_tokens=BUDGET).query(QUERY).source_nodes


def _their_engine(index: NodeGraphIndex) -> list[NodeWithScore]:
    processors = [SimilarityPostprocessor(similarity_cutoff=0.0)]
    retriever = index.as_retriever(max_tokens=BUDGET)
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=processors
    )
    return asyncio.run(engine.aquery(QUERY)).source_nodes


WAYS: dict[str, Callable[[NodeGraphIndex], list[NodeWithScore]]] = {
    "as_retriever": lambda i: i.as_retriever(max_tokens=BUDGET).retrieve(QUERY),
    "call": lambda i: i.as_retriever().retrieve(QUERY, max_tokens=BUDGET),
    "acall": lambda i: asyncio.run(i.as_retriever().aretrieve(QUERY, max_tokens=BUDGET)),
    "as_query_engine": _own_engine,
    "RetrieverQueryEngine": _their_engine,
    "around an adapter": lambda i: NodeGraphRetriever(i.as_retriever(), max_tokens=BUDGET).retrieve(
        QUERY
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_windows_of_each_call_equal_native_windows(
    index: NodeGraphIndex, native: list[str], way: str
) -> None:
    assert len(native) > 1
    assert _texts(WAYS[way](index)) == native


def _own_sources(index: NodeGraphIndex, query: str) -> list[NodeWithScore]:
    return index.as_query_engine(MockLLM(), max_tokens=400).query(query).source_nodes


async def _async_sources(index: NodeGraphIndex, query: str) -> list[NodeWithScore]:
    return (await index.as_query_engine(MockLLM(), max_tokens=400).aquery(query)).source_nodes


async def _streamed_sources(index: NodeGraphIndex, query: str) -> list[NodeWithScore]:
    engine = index.as_query_engine(MockLLM(), max_tokens=400, streaming=True)
    return (await engine.aquery(query)).source_nodes


REAL_WAYS: dict[str, Callable[[NodeGraphIndex, str], list[NodeWithScore]]] = {
    "as_retriever": lambda i, q: i.as_retriever(max_tokens=400).retrieve(q),
    "call": lambda i, q: i.as_retriever().retrieve(q, max_tokens=400),
    "acall": lambda i, q: asyncio.run(i.as_retriever().aretrieve(q, max_tokens=400)),
    "query": _own_sources,
    "aquery": lambda i, q: asyncio.run(_async_sources(i, q)),
    "stream": lambda i, q: asyncio.run(_streamed_sources(i, q)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cmrc", "xquad.de"])
def test_windows_of_real_questions_equal_native_windows(data: Path, name: str) -> None:
    texts, windows = native_windows(data, name, 400)
    of_nodes = NodeGraphIndex([TextNode(text=text) for text in texts])
    split = NodeGraphIndex.from_documents([Document(text=text) for text in texts])
    assert len(split.docstore.docs) > len(texts)
    for number, (question, expected) in enumerate(windows.items()):
        ways = REAL_WAYS if number % 20 == 0 else ["as_retriever"]  # engines are slow
        for way in ways:
            assert (way, _texts(REAL_WAYS[way](of_nodes, question))) == (way, expected)
            assert (way, _texts(REAL_WAYS[way](split, question))) == (way, expected)


def _sentences(subject: str, count: int) -> str:
    return " ".join(f"{subject} number {n} is kept in house {n}." for n in range(count))


CUPS = f"{_sentences('Cup', 400)}\n\nThe blue cup is broken.\n \n{_sentences('Plate', 400)}\n"
SPOONS = f"{_sentences('Spoon', 300)} The silver spoon is lost. {_sentences('Fork', 300)}"
SPLIT_QUERIES = ("What is broken?", "Which spoon is lost?", "cup number 77", "house 399")


def _split_documents() -> list[Document]:
    documents = [
        Document(text=CUPS, id_="cups", metadata={"shelf": 1}),
        Document(text=SPOONS, id_="spoons", metadata={"shelf": 2}),
        Document(text="Knives are sharp.", id_="knives", metadata={"shelf": 2}),
    ]
    for document in documents:
        document.excluded_embed_metadata_keys = ["shelf"]
    return documents


def _split_index(**options: Any) -> NodeGraphIndex:
    return NodeGraphIndex.from_documents(_split_documents(), **options)


def _native(embed: object = None) -> NodeGraph:
    graph = NodeGraph(embed=embed, progress=False)
    graph.add(_split_documents())
    return graph


def _native_windows(graph: NodeGraph, filters: Filters | None = None) -> list[list[str]]:
    search = as_retriever(graph)
    return [
        [result.text for result in search.retrieve(query, max_tokens=BUDGET, filters=filters)]
        for query in SPLIT_QUERIES
    ]


def _windows(index: BaseIndex[Any]) -> list[list[str]]:
    retriever = index.as_retriever(max_tokens=BUDGET)
    return [_texts(retriever.retrieve(query)) for query in SPLIT_QUERIES]


def test_windows_of_split_documents_follow_changes() -> None:
    index = _split_index()
    graph = _native()
    pots = Document(text=f"{_sentences('Pot', 500)} The lost pot is broken.", id_="pots")
    spoons = Document(text="No spoon is lost.", id_="spoons")
    cups = _split_documents()[0]

    def add_cups() -> None:
        asyncio.run(index.ainsert(cups))

    changes: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: index.insert(pots), lambda: graph.add(pots)),
        (lambda: index.delete_ref_doc("cups"), lambda: graph.remove("cups")),
        (lambda: index.update_ref_doc(spoons), lambda: graph.add(spoons)),
        (lambda: index.delete_ref_doc("pots"), lambda: graph.remove("pots")),
        (add_cups, lambda: graph.add(cups)),
    ]
    for change_index, change_graph in changes:
        change_index()
        change_graph()
        assert _windows(index) == _native_windows(graph)


def test_windows_of_split_documents_survive_storage(tmp_path: Path) -> None:
    expected = _native_windows(_native())
    index = _split_index(store=tmp_path / "cups.nodekin")
    assert _windows(index) == expected
    assert _windows(pickle.loads(pickle.dumps(index))) == expected
    index.storage_context.persist(str(tmp_path / "persisted"))
    index.graph.close()
    assert _windows(NodeGraphIndex([], store=tmp_path / "cups.nodekin")) == expected
    context = StorageContext.from_defaults(persist_dir=str(tmp_path / "persisted"))
    assert _windows(load_index_from_storage(context)) == expected


def test_windows_of_split_documents_compare_vectors() -> None:
    model = Words(texts=[])
    index = _split_index(embed_model=model)
    assert _windows(index) == _native_windows(_native(Words(texts=[])))
    assert "The blue cup is broken." in model.texts


def test_window_has_metadata_and_span_of_split_document() -> None:
    texts = {document.id_: document.text for document in _split_documents()}
    for query in SPLIT_QUERIES:
        for result in _split_index().as_retriever(max_tokens=BUDGET).retrieve(query):
            node = result.node
            assert isinstance(node, TextNode)
            assert node.metadata["shelf"] == (1 if node.ref_doc_id == "cups" else 2)
            text = texts[str(node.ref_doc_id)]
            assert text[node.start_char_idx : node.end_char_idx] == node.text


@pytest.mark.parametrize("is_split", [False, True])
def test_window_of_inserted_document_names_it(is_split: bool) -> None:
    text = f"\n\n{LONG if is_split else TEXTS[1]}"
    index = NodeGraphIndex.from_documents([Document(text=text, id_="drinks")])
    for window in index.as_retriever(max_tokens=BUDGET).retrieve(QUERY):
        node = window.node
        assert isinstance(node, TextNode)
        assert node.ref_doc_id == "drinks"
        assert text[node.start_char_idx : node.end_char_idx] == node.text


def test_window_of_given_node_names_its_document() -> None:
    nodes = SentenceSplitter(chunk_size=200).get_nodes_from_documents(
        [Document(text=LONG, id_="d")]
    )
    for window in NodeGraphIndex(nodes).as_retriever(max_tokens=BUDGET).retrieve(QUERY):
        node = window.node
        assert isinstance(node, TextNode)
        assert node.ref_doc_id == "d"
        assert LONG[node.start_char_idx : node.end_char_idx] == node.text


def test_filters_select_windows_of_split_documents() -> None:
    index = _split_index()
    for options in ({"filters": {"shelf": 2}}, {"doc_ids": ["spoons", "knives"]}):
        results = index.as_retriever(max_tokens=BUDGET, **options).retrieve("Which cup is lost?")
        assert results
        assert {result.metadata["shelf"] for result in results} == {2}
    by_metadata = index.as_retriever(max_tokens=BUDGET, filters={"shelf": 2})
    found = [_texts(by_metadata.retrieve(query)) for query in SPLIT_QUERIES]
    assert found == _native_windows(_native(), {"shelf": 2})
    excluded = {"not": {"document.id": {"in": index.nodes_of("cups")}}}
    (text, *_) = _texts(by_metadata.retrieve("Which spoon is lost?", filters=excluded))
    assert "The silver spoon is lost." in text
    nodes = index.docstore.get_nodes(index.nodes_of("cups"))
    whole = [node.node_id for node in nodes if "broken" not in node.get_content()]
    selected = index.as_retriever(max_tokens=BUDGET, node_ids=whole)
    found = _texts(selected.retrieve("What is broken?"))
    assert not any("broken" in text for text in found)


def test_windows_omit_text_of_deleted_node() -> None:
    index = _split_index()
    assert any("The blue cup is broken." in text for text in _windows(index)[0])
    nodes = index.docstore.get_nodes(index.nodes_of("cups"))
    broken = [node.node_id for node in nodes if "broken" in node.get_content()]
    assert 0 < len(broken) < len(nodes)
    index.delete_nodes(broken)
    assert not any("broken" in text for text in _windows(index)[0])
    assert any("Cup number 77 " in text for text in _windows(index)[2])


def test_windows_of_nodes_with_own_metadata_keep_it() -> None:
    class Numbered(TransformComponent):
        def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
            for number, node in enumerate(nodes):
                node.metadata["part"] = number
            return nodes

    index = _split_index(transformations=[SentenceSplitter(), Numbered()])
    results = index.as_retriever(max_tokens=BUDGET).retrieve("What is broken?")
    assert "part" in results[0].metadata
    filtered = index.as_retriever(max_tokens=BUDGET, filters={"part": 0})
    assert not any("broken" in text for text in _texts(filtered.retrieve("What is broken?")))


def test_window_has_metadata_and_span_of_node(index: NodeGraphIndex) -> None:
    for result in index.as_retriever(max_tokens=BUDGET).retrieve(QUERY):
        node = result.node
        assert isinstance(node, TextNode)
        text = TEXTS[node.metadata["n"]]
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.node_id


def test_nodes_without_budget_return_as_given(index: NodeGraphIndex) -> None:
    retriever = index.as_retriever(similarity_top_k=3)
    retriever.retrieve(QUERY, max_tokens=BUDGET)
    assert sorted(_texts(retriever.retrieve(QUERY))) == sorted(text.strip() for text in TEXTS)


def test_top_k_limits_windows_only_if_given(index: NodeGraphIndex, native: list[str]) -> None:
    retriever = index.as_retriever(max_tokens=BUDGET, similarity_top_k=1)
    assert _texts(retriever.retrieve(QUERY)) == native[:1]


def test_windows_of_index_of_nodes_fit_budget() -> None:
    nodes = [TextNode(text=text, id_=str(at)) for at, text in enumerate(TEXTS)]
    index = NodeGraphIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    found = _texts(index.as_retriever(max_tokens=BUDGET).retrieve(QUERY))
    assert any("Black tea is fermented." in text for text in found)
    assert sum(count_tokens(text) for text in found) <= BUDGET


@pytest.mark.parametrize("strategy", ["rewrite", "multi_query"])
def test_budget_holds_for_results_of_strategy(index: NodeGraphIndex, strategy: str) -> None:
    engine = index.as_query_engine(
        MockLLM(),
        strategy=strategy,
        max_tokens=BUDGET,
        node_postprocessors=[LongContextReorder()],
    )
    found = _texts(engine.query(QUERY).source_nodes)
    assert 0 < sum(count_tokens(text) for text in found) <= BUDGET


def test_engine_keeps_budget_of_its_retriever(index: NodeGraphIndex, native: list[str]) -> None:
    engine = NodeGraphQueryEngine(index.as_retriever(max_tokens=BUDGET), MockLLM())
    assert _texts(engine.query(QUERY).source_nodes) == native


def test_required_phrases_and_minimum_score_apply(index: NodeGraphIndex) -> None:
    query = 'fermented "in china"'
    (window,) = index.as_retriever(max_tokens=14, phrases="required").retrieve(query)
    assert "in China" in window.text
    assert len(index.as_retriever().retrieve(query, phrases="required")) == 1
    assert index.as_retriever(min_score=0.5).retrieve("glaciers") == []


@pytest.mark.parametrize(
    "options", [{"max_tokens": 0}, {"max_tokens": "9"}, {"min_score": 2}, {"phrases": "all"}]
)
def test_wrong_option_raises(index: NodeGraphIndex, options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        index.as_retriever(**options)
