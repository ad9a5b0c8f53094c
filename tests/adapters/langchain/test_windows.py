"""Windows within a token budget in LangChain programs."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import ValidationError
from support.real_windows import native_windows

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.splitters.chunking import count_tokens
from nodekin.retrievers import as_retriever

GREEN = "Green tea is steamed. It stays green. " * 30
COFFEE = "Coffee is roasted. It is brown. " * 30
LONG = f"{GREEN}Black tea is fermented. It keeps long. {COFFEE}"
TEXTS = [LONG, "Rivers run. Tea is fermented in China. Lakes rest.", "Beer is fermented as well."]
QUERY = "What is fermented?"
BUDGET = 40


@pytest.fixture
def documents() -> list[Document]:
    return [Document(text, id=str(at), metadata={"n": at}) for at, text in enumerate(TEXTS)]


@pytest.fixture
def native() -> list[str]:
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return [result.text for result in as_retriever(graph).retrieve(QUERY, max_tokens=BUDGET)]


def _texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


async def _stream(retriever: NodeGraphRetriever) -> list[Document]:
    chunks = [chunk async for chunk in retriever.astream(QUERY, max_tokens=BUDGET)]
    return chunks[0]


def _configurable(retriever: NodeGraphRetriever) -> list[Document]:
    field = ConfigurableField(id="budget")
    chain = retriever.configurable_fields(max_tokens=field)
    return chain.invoke(QUERY, {"configurable": {"budget": BUDGET}})


def _chain(retriever: NodeGraphRetriever) -> list[Document]:
    prompt = ChatPromptTemplate.from_template("{context}\n{input}")
    answer = create_stuff_documents_chain(FakeListChatModel(responses=["Tea."]), prompt)
    bound = retriever.model_copy(update={"max_tokens": BUDGET})
    found: list[Document] = create_retrieval_chain(bound, answer).invoke({"input": QUERY})[
        "context"
    ]
    return found


WAYS: dict[str, Callable[[NodeGraphRetriever], list[Document]]] = {
    "invoke": lambda r: r.invoke(QUERY, max_tokens=BUDGET),
    "ainvoke": lambda r: asyncio.run(r.ainvoke(QUERY, max_tokens=BUDGET)),
    "batch": lambda r: r.batch([QUERY, "rivers"], max_tokens=BUDGET)[0],
    "abatch": lambda r: asyncio.run(r.abatch([QUERY], max_tokens=BUDGET))[0],
    "stream": lambda r: next(iter(r.stream(QUERY, max_tokens=BUDGET))),
    "astream": lambda r: asyncio.run(_stream(r)),
    "bind": lambda r: r.bind(max_tokens=BUDGET).invoke(QUERY),
    "pipe": lambda r: (RunnableLambda(str) | r.bind(max_tokens=BUDGET)).invoke(QUERY),
    "configurable": _configurable,
    "chain": _chain,
}


@pytest.mark.parametrize("way", WAYS)
def test_windows_of_each_call_equal_native_windows(
    documents: list[Document], native: list[str], way: str
) -> None:
    retriever = NodeGraphRetriever.from_documents(documents)
    assert _texts(WAYS[way](retriever)) == native


async def _streamed(retriever: NodeGraphRetriever, question: str) -> list[Document]:
    chunks = [chunk async for chunk in retriever.astream(question, max_tokens=400)]
    return chunks[0]


def _with_field(retriever: NodeGraphRetriever, questions: list[str]) -> list[list[Document]]:
    chain = retriever.configurable_fields(max_tokens=ConfigurableField(id="budget"))
    return chain.batch(questions, {"configurable": {"budget": 400}})


REAL_WAYS: dict[str, Callable[[NodeGraphRetriever, list[str]], list[list[Document]]]] = {
    "invoke": lambda r, q: [r.invoke(each, max_tokens=400) for each in q],
    "ainvoke": lambda r, q: [asyncio.run(r.ainvoke(each, max_tokens=400)) for each in q],
    "batch": lambda r, q: r.batch(q, max_tokens=400),
    "abatch": lambda r, q: asyncio.run(r.abatch(q, max_tokens=400)),
    "stream": lambda r, q: [next(iter(r.stream(each, max_tokens=400))) for each in q],
    "astream": lambda r, q: [asyncio.run(_streamed(r, each)) for each in q],
    "bind": lambda r, q: r.bind(max_tokens=400).batch(q),
    "configurable": _with_field,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cmrc", "xquad.de"])
def test_windows_of_real_questions_equal_native_windows(data: Path, name: str) -> None:
    texts, expected = native_windows(data, name, 400)
    retriever = NodeGraphRetriever.from_documents([Document(text) for text in texts])
    for way, retrieve in REAL_WAYS.items():
        found = retrieve(retriever, [*expected])
        assert (way, [_texts(windows) for windows in found]) == (way, [*expected.values()])


@pytest.mark.parametrize("options", [{"max_tokens": BUDGET}, {"search_kwargs": {"max_tokens": 40}}])
def test_windows_of_constructor_equal_native_windows(
    documents: list[Document], native: list[str], options: dict[str, object]
) -> None:
    assert len(native) > 1
    retriever = NodeGraphRetriever.from_documents(documents, **options)
    assert _texts(retriever.invoke(QUERY)) == native
    assert _texts(retriever.invoke(QUERY, k=1)) == native[:1]
    assert [result.text for result in as_retriever(retriever).retrieve(QUERY)] == native


def test_window_has_metadata_and_span_of_document(documents: list[Document]) -> None:
    retriever = NodeGraphRetriever.from_documents(documents)
    windows = retriever.invoke(QUERY, max_tokens=BUDGET)
    for window in windows:
        start = window.metadata["start"]
        end = window.metadata["end"]
        assert TEXTS[window.metadata["n"]][start:end] == window.page_content
        assert window.metadata.keys() >= {"n", "place", "start", "end"}
        assert window.id


def test_documents_without_budget_return_as_added(documents: list[Document]) -> None:
    retriever = NodeGraphRetriever.from_documents(documents)
    retriever.invoke(QUERY, max_tokens=BUDGET)
    found = retriever.invoke(QUERY)
    assert sorted(found, key=lambda document: str(document.id)) == documents


def test_k_of_call_limits_windows() -> None:
    texts = [f"Tea number {number} is fermented in town {number}." for number in range(9)]
    retriever = NodeGraphRetriever.from_texts(texts)
    assert len(retriever.invoke("fermented tea")) == 4
    assert len(retriever.invoke("fermented tea", max_tokens=500)) == 9
    assert len(retriever.invoke("fermented tea", max_tokens=500, k=2)) == 2


def test_budget_holds_for_results_of_strategy(documents: list[Document]) -> None:
    llm = FakeListChatModel(responses=["green tea\ncoffee\nrivers"])
    retriever = NodeGraphRetriever.from_documents(documents, strategy="multi_query", llm=llm)
    windows = retriever.invoke(QUERY, max_tokens=BUDGET)
    assert 0 < sum(count_tokens(text) for text in _texts(windows)) <= BUDGET


def test_required_phrases_and_minimum_score_apply(documents: list[Document]) -> None:
    retriever = NodeGraphRetriever.from_documents(documents)
    query = 'fermented "in china"'
    assert [document.id for document in retriever.invoke(query, phrases="required")] == ["1"]
    (window,) = retriever.invoke(query, phrases="required", max_tokens=14)
    assert "in China" in window.page_content
    assert retriever.invoke("glaciers", max_tokens=9, score_threshold=0.5) == []


@pytest.mark.parametrize("max_tokens", [0, -1, 1.5, "9", True])
def test_wrong_max_tokens_raises(documents: list[Document], max_tokens: object) -> None:
    retriever = NodeGraphRetriever.from_documents(documents)
    with pytest.raises((TypeError, ValueError), match="max_tokens must be"):
        retriever.invoke(QUERY, max_tokens=max_tokens)
    with pytest.raises(ValidationError, match="max_tokens"):
        NodeGraphRetriever.from_documents(documents, max_tokens=max_tokens)
