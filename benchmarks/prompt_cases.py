"""Questions with correct results, for the comparison of prompts in ``prompts.py``."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import cmrc_texts
from model_strategies import gold_ids
from strategies import musique_steps

from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation import Dataset


class Case(NamedTuple):
    """A question with its correct results.

    Attributes:
        question: The question.
        gold: The ids of the correct documents, or the names of the correct routes.
        answers: The correct answers. For a conversation, the name that the question refers to.
        routes: The descriptions of the routes or tools, by name.
        history: The conversation before the question.
    """

    question: str
    gold: frozenset[str] = frozenset()
    answers: Sequence[str] = ()
    routes: Mapping[str, str] = {}
    history: Sequence[tuple[str, str]] = ()


def cases_of(dataset: Dataset, count: int) -> list[Case]:
    """Return the questions of a data set, with the documents that they need."""
    by_text = {document.text.strip(): document.id for document in dataset.documents}
    return [
        Case(question.text, frozenset(gold_ids(question, by_text)), question.answers)
        for question in dataset.questions[:count]
    ]


def musique_facts(data: Path, dataset: Dataset, count: int) -> list[Case]:
    """Return the steps of MuSiQue that are questions. Each of them needs one passage."""
    by_text = {document.text.strip(): document.id for document in dataset.documents}
    cases = []
    for steps in musique_steps(data).values():
        for step in steps:
            if step.question.endswith("?") and ">>" not in step.question:
                gold = frozenset([by_text[step.passage.strip()]])
                cases.append(Case(step.question, gold, [step.answer]))
    return cases[:: max(1, len(cases) // count)][:count]


def routed(dataset: Dataset, cases: Sequence[Case]) -> list[Case]:
    """Add routes to cases. The routes are the right passages and random passages."""
    chance = random.Random(2018)
    titles = {document.id: _title(document) for document in dataset.documents}
    texts = {document.id: document.text.strip()[:80] for document in dataset.documents}
    found = []
    for case in cases:
        ids = [*sorted(case.gold), *chance.sample([*texts], 6 - len(case.gold))]
        chance.shuffle(ids)
        routes = {titles[key]: texts[key] for key in ids}
        gold = frozenset(titles[key] for key in case.gold)
        found.append(case._replace(routes=routes, gold=gold))
    return found


def _title(document: Document) -> str:
    return str(document.metadata.get("title") or f"文章{document.id}")


def chains(data: Path, count: int) -> list[Case]:
    """Return follow-up questions of MuSiQue, with a pronoun for the answer before."""
    cases = []
    for steps in musique_steps(data).values():
        for first, second in itertools.pairwise(steps):
            if ">>" in first.question + second.question or first.answer not in second.question:
                continue
            question = second.question.replace(first.answer, "it")
            history = [(first.question, f"{first.answer}.")]
            cases.append(Case(question, answers=[first.answer], history=history))
    return cases[:count]


def title_chains(data: Path, count: int) -> list[Case]:
    """Return follow-up questions of CMRC 2018, with a pronoun for a title in them."""
    by_title: dict[str, list[str]] = {}
    for question in cmrc_texts(data)[1]:
        for title in re.findall("《[^《》]+》", question):
            by_title.setdefault(title, []).append(question)
    cases = []
    for title, questions in by_title.items():
        if len(questions) > 1:
            history = [(questions[0], f"关于{title}，资料中有说明。")]
            question = questions[1].replace(title, "它")
            cases.append(Case(question, answers=[title.strip("《》")], history=history))
    return cases[:count]


def records() -> list[Document]:
    """Return records about tea in two languages, with a kind and a year."""
    found = []
    for number in range(80):
        kind = ("report", "letter", "报告", "书信")[number % 4]
        is_chinese = number % 4 > 1
        text = f"关于茶叶的{kind} {number}" if is_chinese else f"A {kind} on tea, number {number}"
        found.append(Document(text, {"kind": kind, "year": 2000 + number // 4}, id=str(number)))
    return found


FILTERS: Mapping[str, Sequence[tuple[str, str | None, Callable[[int, int], bool]]]] = {
    "en": (
        ("letters about tea since {year}", "letter", lambda year, limit: year >= limit),
        ("Which reports on tea are older than {year}?", "report", lambda year, limit: year < limit),
        ("What was written about tea in {year}?", None, lambda year, limit: year == limit),
    ),
    "zh": (
        ("{year}年以来关于茶叶的书信", "书信", lambda year, limit: year >= limit),
        ("{year}年以前的茶叶报告有哪些？", "报告", lambda year, limit: year < limit),
        ("{year}年写的关于茶叶的资料", None, lambda year, limit: year == limit),
    ),
}


def conditions(language: str, count: int) -> list[Case]:
    """Return questions with conditions, and the ids of the records that meet them."""
    cases = []
    for limit in range(2004, 2016):
        for text, kind, holds in FILTERS[language]:
            gold = frozenset(
                str(record.id)
                for record in records()
                if kind in (None, record.metadata["kind"]) and holds(record.metadata["year"], limit)
            )
            cases.append(Case(text.format(year=limit), gold))
    return cases[:count]
