"""Words and vectors of the default search count by their evidence in each question."""

import numpy as np
import pytest
from support.other_words import ANSWERS, CHANCE, by_meaning

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, Evidence, ScoredNode, as_retriever, trace
from nodekin.retrievers.hits import Matches


def graph_of(count: int) -> NodeGraph:
    """Return a graph of answers, of chance matches, and of a number of other texts."""
    graph = NodeGraph(embed=by_meaning, progress=False)
    graph.add([Document(text, id=meaning) for meaning, text, _ in ANSWERS])
    graph.add(CHANCE)
    places = "north south east west hill lake shore plain".split()
    others = [f"Section {n} of the {places[n % 8]} wing is grey {n}." for n in range(count)]
    graph.add(others)
    as_retriever(graph).build()  # type: ignore[attr-defined]
    return graph


def first(graph: NodeGraph, question: str) -> ScoredNode:
    return as_retriever(graph).retrieve(question)[0]


@pytest.mark.parametrize("count", [30, 300])
def test_default_search_finds_answers_in_other_words(count: int) -> None:
    graph = graph_of(count)
    found = {meaning: first(graph, question) for meaning, _, question in ANSWERS}
    assert {meaning: result.node.document_id for meaning, result in found.items()} == {
        meaning: meaning for meaning, *_ in ANSWERS
    }
    assert min(result.score for result in found.values()) > 0.4


@pytest.mark.parametrize("question", ["section 17", "grey 23", '"wing is grey 23"'])
def test_names_and_phrases_keep_trusting_words(question: str) -> None:
    graph = graph_of(40)
    words = DefaultRetriever(graph, embed_keys=[]).retrieve(question)
    assert first(graph, question).node == words[0].node


def test_explanation_tells_what_decided() -> None:
    graph = graph_of(30)
    with trace() as spans:
        by_vectors = first(graph, ANSWERS[0][2]).explain()
    assert "vectors decide" in by_vectors
    assert "vectors decide" in str(spans.children[0].attributes["decided"])
    assert "words decide" in first(graph, "Section 17 of the south wing is grey 17").explain()
    by_words = DefaultRetriever(graph, embed_keys=[]).retrieve("section 17")[0].explain()
    assert "decide" not in by_words


@pytest.mark.parametrize("vectors", ["both", "sentences", "passages"])
def test_vectors_select_searched_texts(vectors: str) -> None:
    graph = graph_of(30)
    retriever = DefaultRetriever(graph, vectors=vectors)  # type: ignore[arg-type]
    results = retriever.retrieve(ANSWERS[1][2])
    assert results[0].node.document_id == "dog"
    groups = {m.group for m in results[0].evidence if m.embed_key}
    expected = {
        "both": {"passage", "passage sentence"},
        "sentences": {"passage sentence"},
        "passages": {"passage"},
    }
    assert groups == expected[vectors]


def test_unknown_vectors_raise() -> None:
    with pytest.raises(ValueError, match="vectors must be"):
        DefaultRetriever(NodeGraph(), vectors="words")  # type: ignore[arg-type]


def test_batch_and_single_searches_agree() -> None:
    retriever = as_retriever(graph_of(30))
    questions = [question for *_, question in ANSWERS]
    single = [retriever.retrieve(question) for question in questions]
    assert retriever.batch(questions) == single


def test_many_sentences_do_not_outweigh_a_near_document() -> None:
    answer = "It costs nothing to send things back."
    notes = [f"Note {number} of the archive." for number in range(100)]
    cosines = dict.fromkeys([answer], 0.60)
    cosines.update(zip(notes, np.random.default_rng(7).normal(0, 0.1, 100), strict=True))
    cosines[notes[0]] = 0.61  # by chance, since its document has 50 sentences

    def embed(texts: list[str]) -> list[list[float]]:
        found = [cosines.get(text, 1.0) for text in texts]
        return [[cosine, float(np.sqrt(1 - cosine**2))] for cosine in found]

    graph = NodeGraph(embed=embed, progress=False)
    graph.add([" ".join(notes[:50]), answer, *notes[50:]])
    retriever = DefaultRetriever(graph, "ROOT", vectors="sentences")
    assert retriever.retrieve("Are returns free?")[0].node.text == answer


def test_evidence_with_note_is_created_when_it_is_accessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = graph_of(30)
    created: list[tuple[int, str]] = []
    create = Matches.evidence

    def counted(self: Matches, target: tuple[int, str], score: float) -> tuple[Evidence, ...]:
        created.append(target)
        return create(self, target, score)

    monkeypatch.setattr(Matches, "evidence", counted)
    results = as_retriever(graph).retrieve(ANSWERS[0][2])
    assert len(results) > 1
    assert not created
    assert "vectors decide" in results[0].explain()
    assert [node_id for _, node_id in created] == [results[0].node.id]
