"""A code that no passage has is not found by its digits, and the results say so."""

import pytest

from nodekin import NodeGraph, as_retriever
from nodekin.retrievers.results import Results

DOCUMENTS = [
    "Add 3 cups of sugar.",
    "Boil 2 eggs.",
    "Add 106 grams.",
    "Error zq3x means a lost key.",
    "Error E105 means no paper.",
    "Error E107 means no ink.",
    "Press AK 47 to stop.",
]


def _search(query: str) -> Results:
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    return as_retriever(graph)(query, top_k=9)


def _notes(results: Results) -> set[str | None]:
    return {variant.note for result in results for variant in result.evidence[0].variants}


@pytest.mark.parametrize(
    ("query", "code", "texts"),
    [
        ("zq2x", "zq2x", {"Error zq3x means a lost key."}),
        ("what is zq2x?", "zq2x", {"Error zq3x means a lost key."}),
        ("error E106", "E106", set(DOCUMENTS[3:6])),
        ("error E-106", "E-106", set(DOCUMENTS[3:6])),
        ("E106", "E106", set()),
        ("x3", "x3", set()),
    ],
)
def test_unknown_code_finds_only_similar_codes(query: str, code: str, texts: set[str]) -> None:
    results = _search(query)
    assert {result.text for result in results} == texts
    assert all(result.score < 0.35 for result in results)
    assert _notes(results) == ({f"no passage has {code}"} if texts else set())


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("E105", "Error E105 means no paper."),
        ("E-105", "Error E105 means no paper."),
        ("E 105", "Error E105 means no paper."),
        ("zq3x", "Error zq3x means a lost key."),
        ("AK47", "Press AK 47 to stop."),
        ("AK-47", "Press AK 47 to stop."),
        ("106 grams", "Add 106 grams."),
    ],
)
def test_known_code_is_found_without_note(query: str, text: str) -> None:
    results = _search(query)
    assert results[0].text == text
    assert results[0].score > 0.35
    assert not any("no passage" in str(note) for note in _notes(results))
