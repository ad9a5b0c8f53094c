"""The token budget of the passages of an answer."""

import pytest

from nodekin.nodegraph import Document, NodeGraph, count_tokens
from nodekin.retrievers import QueryEngine, as_retriever, restrict

TOWN = " ".join(
    f"House number {number} was built by Anna Lind. The harbour was busy in those years."
    for number in range(300)
)

QUESTION = "Which houses did Anna Lind build?"


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document(TOWN, {"tenant": "a"}), "Rivers run to the sea."])
    return graph


def read(engine: QueryEngine, **options) -> list[str]:
    return [source.text for source in engine.query(QUESTION, **options).sources]


def tokens(texts: list[str]) -> int:
    return sum(map(count_tokens, texts))


def model(prompt: str) -> str:
    return "All [1]."


def test_default_search_returns_1600_tokens(graph) -> None:
    assert 1_500 < tokens(read(QueryEngine(graph, model))) <= 1_600
    assert 190 < tokens(read(QueryEngine(graph, model, max_tokens=200))) <= 200
    restricted = restrict(as_retriever(graph), {"tenant": "a"})
    assert 1_500 < tokens(read(QueryEngine(restricted, model))) <= 1_600


def test_top_k_returns_passages(graph) -> None:
    passages = {node.text for node in graph.nodes("passage")}
    engine = QueryEngine(graph, model, top_k=2)
    for texts in (read(engine), read(QueryEngine(graph, model), top_k=2)):
        assert len(texts) == 2
        assert set(texts) <= passages
    texts = read(QueryEngine(graph, model, top_k=1, max_tokens=100))
    assert len(texts) == 1
    assert tokens(texts) <= 100


def test_max_tokens_above_the_space_is_noted(graph) -> None:
    window = {"context_window": 900, "num_output": 100}
    answer = QueryEngine(graph, model, max_tokens=2_000, **window).query(QUESTION)
    assert answer.notes[0].startswith("max_tokens=2000 exceeds the space in a prompt (")
    assert answer.notes[0].endswith("); raise context_window")
    assert answer.sources
    fitting = QueryEngine(graph, model, **window).query(QUESTION)
    assert fitting.sources
    assert not any("max_tokens" in note for note in fitting.notes)
    answer = QueryEngine(graph, model, max_tokens=3).query(QUESTION)
    assert [count_tokens(source.text) for source in answer.sources] == [3]
    assert any("was cut to fit max_tokens=3" in note for note in answer.notes)
    with pytest.raises(ValueError, match="max_tokens"):
        QueryEngine(graph, model, max_tokens=0)
