"""Results within a token budget: selection, omitted results and merged texts."""

import pytest

from nodekin.nodegraph import (
    Document,
    Node,
    NodeGraph,
    count_tokens,
    split_sentences,
)
from nodekin.retrievers import (
    BudgetResults,
    FusionRetriever,
    Retriever,
    ScoredNode,
    as_retriever,
    restrict,
)
from nodekin.retrievers.token_budget import TokenBudget

TEA = "Tea is a drink. Green tea is not fermented. Black tea is. Rivers run to the sea."


def result(text: str, start: int | None = None, document: str = "a", score: float = 1.0):
    end = None if start is None else start + len(text)
    node = Node(text, start=start, end=end, document_id=document, id=f"{document}{start}{text}")
    return ScoredNode(node, score)


def texts(results) -> list[str]:
    return [item.node.text for item in results]


def test_budget_skips_and_lists_long_results() -> None:
    found = [result("one two"), result("three four five six"), result("seven")]
    fitting = TokenBudget(3).fit(found)
    assert (texts(fitting), fitting.tokens) == (["one two", "seven"], 3)
    assert texts(fitting.omitted) == ["three four five six"]
    assert fitting.notes == ()


def test_budget_applies_top_k_and_max_tokens() -> None:
    found = [result("one two"), result("three"), result("four")]
    assert texts(TokenBudget(10, top_k=2).fit(found)) == ["one two", "three"]
    assert texts(TokenBudget(2, top_k=2).fit(found)) == ["one two"]
    assert texts(TokenBudget(10, top_k=2).fit(found).omitted) == ["four"]


def test_budget_truncates_first_result_at_word() -> None:
    found = [
        result("Understanding misunderstandings", 10),
        result("Misunderstandings are many", 90),
    ]
    fitting = TokenBudget(3).fit(found)
    (cut,) = fitting
    assert cut.node.text == "Understanding"
    assert (cut.node.start, cut.node.end) == (10, 23)
    assert cut.node.id != found[0].node.id
    assert fitting.tokens == count_tokens("Understanding") == 3
    assert fitting.notes == ("the first result, of 6 tokens, was cut to fit max_tokens=3",)
    assert texts(fitting.omitted) == ["Misunderstandings are many"]


def test_budget_merges_overlapping_texts() -> None:
    text = "one two three four five six"
    found = [result(text[4:13], 4), result(text[8:18], 8), result(text[4:7], 4)]
    fitting = TokenBudget(10).fit(found)
    assert texts(fitting) == ["two three four"]
    assert (fitting[0].node.start, fitting[0].node.end, fitting.tokens) == (4, 18, 3)
    assert fitting[0].score == 1.0


def test_budget_merges_neighbors_into_one_span() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document(TEA, {"title": "Tea"}, id="tea"))
    graph.create_node_group("sentence", split_sentences)
    found = Retriever(graph, "sentence").retrieve("green black tea", max_tokens=16)
    assert isinstance(found, BudgetResults)
    assert texts(found) == ["Tea is a drink. Green tea is not fermented. Black tea is."]
    (node,) = (item.node for item in found)
    assert graph.node("tea").text[node.start : node.end] == node.text
    assert node.root.id == node.parent.id == "tea"
    assert node.metadata["title"] == "Tea"
    first, last = graph.nodes("sentence")[0].id, graph.nodes("sentence")[2].id
    assert node.id == f"{first}..{last}"
    assert len({match.node.id for match in found[0].evidence}) == 3


def test_order_document_sorts_by_position() -> None:
    found = [
        result("three", 80, score=0.9), result("x", 0, "b", 0.8), result("one", 0, score=0.7)
    ]  # fmt: skip
    assert texts(TokenBudget(9, "document").fit(found)) == ["one", "three", "x"]
    assert texts(TokenBudget(order="document").fit(found)) == ["one", "three", "x"]
    assert texts(TokenBudget(order="document", top_k=2).fit(found)) == ["three", "x"]


def test_all_retrievers_accept_max_tokens() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea number {n} is green.", {"tenant": "a"}) for n in range(20)])
    plain = Retriever(graph, "ROOT", top_k=2)
    for retriever in (plain, FusionRetriever([plain, plain]), restrict(plain, {"tenant": "a"})):
        found = retriever.retrieve("green tea", max_tokens=60)
        assert isinstance(found, BudgetResults)
        assert len(found) > 2
        assert sum(count_tokens(item.node.text) for item in found) == found.tokens <= 60
        assert retriever("green tea", max_tokens=60) == found
        assert retriever.batch(["green tea"], max_tokens=60) == [found]
    assert len(plain.retrieve("green tea", max_tokens=60)) == 10
    assert len(plain.retrieve("green tea", max_tokens=60, top_k=3)) == 3
    assert len(plain.retrieve("green tea")) == 2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_tokens": 0}, ValueError, "max_tokens must be 1 or more, got 0"),
        ({"max_tokens": 1.5}, TypeError, "max_tokens must be an integer, got 1.5"),
        ({"max_tokens": True}, TypeError, "max_tokens must be an integer, got True"),
        ({"order": "place"}, ValueError, "order must be 'score' or 'document', got 'place'"),
        ({"max_tokens": 9, "top_k": 0}, ValueError, "top_k must be 1 or more, got 0"),
    ],
)
async def test_invalid_budget_raises(options, error, words) -> None:
    graph = NodeGraph(progress=False)
    graph.add("Tea.")
    for retriever in (Retriever(graph, "ROOT"), as_retriever(graph)):
        with pytest.raises(error, match=words):
            retriever.retrieve("tea", **options)
        with pytest.raises(error, match=words):
            await retriever.aretrieve("tea", **options)
        with pytest.raises(error, match=words):
            retriever("tea", **options)
