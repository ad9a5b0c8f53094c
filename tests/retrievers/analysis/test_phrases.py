import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, Retriever, as_retriever
from nodekin.retrievers.analysis.phrases import quoted_phrases
from nodekin.retrievers.similarities.bm25 import Bm25

APART = "Coding is dead. Be gentle with users, say coding teachers; coding style, gentle tone."
TOGETHER = "We teach Gentle-Coding to beginners in long evening classes that last for a whole term."


def graph_of(*texts: str) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=str(number)) for number, text in enumerate(texts)])
    return graph


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('who said "to be or not to be"?', ["to be or not to be"]),
        ("“New York” and „Guten Tag“", ["New York", "Guten Tag"]),
        ("「绿茶」和『红茶』", ["绿茶", "红茶"]),
        ('("green tea")', ["green tea"]),
        ('"C++ code"', ["C++ code"]),
        ('the "Alien" film', []),
        ('5" and 6" pipes', []),
        ('a "b', []),
        ('"" " "', []),
        ("C++ a - b -v don't 'x y'", []),
    ],
)
def test_only_quoted_words_are_phrases(query: str, phrases: list[str]) -> None:
    assert quoted_phrases(query) == phrases


@given(st.text("ab \"“”「」-+'"))
def test_any_query_is_searched(query: str) -> None:
    graph = graph_of("a b", "b a", 'b "')
    for result in as_retriever(graph)(query):
        assert 0 <= result.score <= 1


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ('"gentle coding"', [APART, TOGETHER]),
        ('classes of "gentle coding" for users and teachers', [APART, TOGETHER]),
        ("「绿茶好」", ["好茶是绿色的茶，好绿茶。", "他说绿茶，好喝。"]),
        ('"die grünen Tees"', ["Die Tees sind grün, grüne Tees.", "Wir trinken die grünen Tees."]),
    ],
)
@pytest.mark.parametrize("way", ["default", "bm25", "split words"])
def test_nodes_with_the_phrase_are_first(query: str, texts: list[str], way: str) -> None:
    for order in (texts, texts[::-1]):
        graph = graph_of(*order)
        if way == "default":
            found = as_retriever(graph)(query)
        elif way == "bm25" or not query.isascii():
            found = Retriever(graph, "ROOT")(query)
        else:
            words = Bm25(analyzer=lambda text: text.lower().replace("-", " ").split())
            found = Retriever(graph, "ROOT", words)(query.replace('"', ' " ') + query)
        assert found[0].text == texts[-1]


def test_many_phrases_are_first_and_found_after_changes() -> None:
    graph = graph_of(*(f"{APART} {number}" for number in range(30)))
    search = as_retriever(graph)
    assert not search('"gentle coding"')[0].text.startswith("We")
    graph.add([Document(f"{TOGETHER} {number}", id=f"new {number}") for number in range(4)])
    texts = [result.text for result in search('"gentle coding" teachers', top_k=8)]
    assert [text.startswith("We teach") for text in texts] == [True] * 4 + [False] * 4
    graph.remove("new 1")
    assert sum(r.text.startswith("We") for r in search('"gentle coding"', top_k=8)) == 3


def test_required_phrases_leave_out_other_results() -> None:
    graph = graph_of(APART, TOGETHER, "Tea.")
    search = DefaultRetriever(graph, phrases="required")
    assert [result.text for result in search('"gentle coding" style')] == [TOGETHER]
    assert len(search("gentle coding")) == 2


def test_missing_required_phrase_returns_results_with_note(caplog) -> None:
    search = DefaultRetriever(graph_of(APART, TOGETHER), phrases="required")
    results = search('"coding gentle"')
    assert len(results) == 2
    assert 'no result has "coding gentle"' in str(results[0].evidence[0].variants)
    assert 'no result has "coding gentle"' in caplog.text


def test_unknown_way_of_phrases_is_an_error() -> None:
    with pytest.raises(ValueError, match="'first' or 'required', got 'all'"):
        DefaultRetriever(graph_of("tea"), phrases="all")  # type: ignore[arg-type]


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize("phrase", ["José García", "한국 음식", "がぎ ぐげ", "Việt Nam"])
def test_phrase_ignores_unicode_form(stored: str, asked: str, phrase: str) -> None:
    text = unicodedata.normalize(stored, f"It is called {phrase}.")  # type: ignore[arg-type]
    wanted = unicodedata.normalize(asked, f'who is "{phrase}"')  # type: ignore[arg-type]
    graph = graph_of(text, "It is called differently.")
    assert [r.text for r in graph.search(wanted, phrases="required")] == [text]
