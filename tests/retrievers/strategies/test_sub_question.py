"""Sub-questions: groups, partial answers, failures."""

import asyncio
from typing import Any

import pytest
from support.fixed_retriever import FailingRetriever

from nodekin.nodegraph import ModelError
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.strategies.sub_question import SubQuestionRetriever, without_answers

QUERY, NILE, AMAZON = "Which is longer?", "How long is the Nile?", "How long is the Amazon?"
PARTS = f"1. {NILE}\n2. {AMAZON}"
PASSAGE = "Passages:\n<passages>\n[1] The "
ANSWERS = {f"{PASSAGE}Nile": "6,650 km", f"{PASSAGE}Amazon": "NONE"}


def test_grouped_returns_results_per_part(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(plain, scripted(PARTS))
    for groups in (
        retriever.grouped(QUERY, top_k=1),
        asyncio.run(retriever.agrouped(QUERY, top_k=1)),
    ):
        found = [(group.question, [r.node.id for r in group.results]) for group in groups]
        assert found == [(QUERY, []), (NILE, ["nile"]), (AMAZON, ["amazon"])]
        assert {(group.answer, group.error) for group in groups} == {(None, None)}
    alone = SubQuestionRetriever(plain, scripted(PARTS), include_query=False)
    assert [group.question for group in alone.grouped(QUERY)] == [NILE, AMAZON]
    chinese = alone.grouped(QUERY, filters={"lang": "zh"})
    assert not any(group.results for group in chinese)


def test_simple_question_is_searched_unchanged(plain: Retriever, scripted: Any) -> None:
    for include_query in (True, False):
        retriever = SubQuestionRetriever(plain, scripted("NONE"), include_query=include_query)
        assert retriever.retrieve(NILE) == plain.retrieve(NILE)
        (group,) = retriever.grouped(NILE)
        assert (group.question, group.error) == (NILE, None)
        assert list(group.results) == plain.retrieve(NILE)


def test_answers_come_from_the_parts_results(plain: Retriever, scripted: Any) -> None:
    model = scripted({**ANSWERS, "Simpler": PARTS})
    retriever = SubQuestionRetriever(plain, model, answers=True)
    groups = retriever.grouped(QUERY, top_k=1)
    assert [(g.question, g.answer, g.error) for g in groups] == [
        (QUERY, None, None),
        (NILE, "6,650 km", None),
        (AMAZON, None, None),
    ]
    notes = {r.node.id: r.evidence[0].variants[0].note for r in retriever.retrieve(QUERY)}
    assert notes["nile"] == "answer: 6,650 km"
    batch = asyncio.run(retriever.abatch([QUERY, QUERY]))
    assert batch == [retriever.retrieve(QUERY)] * 2


def test_without_answers_reaches_nested_strategies(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(plain, scripted({**ANSWERS, "Simpler": PARTS}), answers=True)
    silent = without_answers(FusionRetriever([plain, retriever])).retrievers[1]
    assert {group.answer for group in silent.grouped(QUERY, top_k=1)} == {None}
    assert [group.answer for group in retriever.grouped(QUERY, top_k=1)][1] == "6,650 km"


def test_failed_answer_is_reported(plain: Retriever, scripted: Any) -> None:
    broken = {f"{PASSAGE}Nile": RuntimeError("down"), "Passages:": "6,400 km"}
    model = scripted({**broken, "Simpler": PARTS})
    retriever = SubQuestionRetriever(plain, model, answers=True)
    _, nile, amazon = retriever.grouped(QUERY, top_k=1)
    assert nile.answer is None
    assert nile.results
    assert nile.error is not None
    assert nile.error.startswith("partial answer failed: ModelError")
    assert (amazon.answer, amazon.error) == ("6,400 km", None)
    with pytest.raises(ModelError, match="down"):
        SubQuestionRetriever(plain, model, answers=True, on_error="raise").grouped(QUERY)


def test_failed_part_is_reported_and_others_found(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(FailingRetriever(plain, "Amazon"), scripted(PARTS))
    _, nile, amazon = retriever.grouped(QUERY)
    assert nile.results
    assert nile.error is None
    assert (amazon.results, amazon.error) == ((), "RuntimeError: unreachable")
    (result, *_) = retriever.retrieve(QUERY)
    note = result.evidence[0].variants[0].note
    assert note == f"1 of 3 searches failed: '{AMAZON}': RuntimeError: unreachable"
    for call in (retriever.retrieve, retriever.grouped):
        retriever.inner = FailingRetriever(plain)
        with pytest.raises(RuntimeError, match="unreachable"):
            call(QUERY)


def test_only_an_explicit_top_k_limits_the_union(plain: Retriever, scripted: Any) -> None:
    inner = Retriever(plain.graphs, "ROOT", top_k=1)
    retriever = SubQuestionRetriever(inner, scripted(PARTS))
    assert {result.node.id for result in retriever.retrieve(QUERY)} == {"nile", "amazon"}
    assert len(retriever.retrieve(QUERY, top_k=1)) == 1


def test_copy_of_the_question_is_left_out(plain: Retriever, scripted: Any) -> None:
    query = "Which of the rivers is longer?"
    copy = "The rivers: which of rivers is longer??"
    retriever = SubQuestionRetriever(plain, scripted(f"{copy}\n{NILE}"))
    assert [part.question for part in retriever.grouped(query)] == [query, NILE]
    copies = SubQuestionRetriever(plain, scripted(f"{copy}\n{copy}?"))
    assert [part.question for part in copies.grouped(query)] == [query]
