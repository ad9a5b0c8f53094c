"""All strategies read the usual forms of model output. Other forms are errors, never queries."""

import asyncio

import pytest
from support.answer_forms import (
    LIST_FORMS,
    QUERY_FORMS,
    REWRITE_FORMS,
    TOOL_FORMS,
    Scripted,
    filled,
)

from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import (
    MultiStepRetriever,
    QueryDecomposition,
    QueryExpansion,
    QueryRewrite,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.strategies.router import QueryRouter

LANGUAGES = [
    ("Who wrote and painted it?", "Who wrote it?", "Who painted it?"),
    ("这几件事是谁做的？", "谁写的？", "谁画的？"),
]


def check_share(found: list[tuple[str, object, object]]) -> None:
    """Check that 95 % of the forms give their items, and that the others are errors."""
    wrong = [row for row in found if row[1] != row[2]]
    searched = [row for row in wrong if row[1] is not None]
    assert searched == []
    assert len(wrong) <= 0.05 * len(found), wrong


@pytest.mark.parametrize(("question", "first", "second"), LANGUAGES)
def test_rewrite_reads_all_forms(question: str, first: str, second: str) -> None:
    found: list[tuple[str, object, object]] = []
    for form in QUERY_FORMS:
        model = Scripted(filled(form, first))
        try:
            queries = QueryRewrite(model, on_error="raise")("wher did ibsn live")
        except ModelError:
            queries = None
        found.append((form, queries, [first]))
    assert len(found) >= 150
    check_share(found)


@pytest.mark.parametrize("form", REWRITE_FORMS)
@pytest.mark.parametrize(
    ("question", "query"),
    [("wher did ibsn live", "Where did Ibsen live?"), ("他住哪", "他住在哪里？")],
)
def test_rewrite_that_shares_words_is_read(form: str, question: str, query: str) -> None:
    assert QueryRewrite(Scripted(filled(form, query)), on_error="raise")(question) == [query]


@pytest.mark.parametrize(("question", "first", "second"), LANGUAGES)
@pytest.mark.parametrize("transform", [QueryDecomposition, QueryExpansion])
def test_lists_of_all_forms_are_read(transform, question, first, second) -> None:
    found: list[tuple[str, object, object]] = []
    for form in LIST_FORMS:
        model = Scripted(filled(form, first, second))
        try:
            queries = transform(model, on_error="raise", include_query=False)(question)
        except ModelError:
            queries = None
        found.append((form, queries, [first, second]))
    assert len(found) >= 150
    check_share(found)


@pytest.mark.parametrize(("question", "first", "second"), LANGUAGES)
def test_tool_questions_of_all_forms_are_read(question: str, first: str, second: str) -> None:
    graph = NodeGraph()
    graph.add(["He wrote it.", "She painted it."])
    plain = Retriever(graph, "ROOT")
    tools = {"plays": ("Plays", plain), "people": ("People", plain)}
    found: list[tuple[str, object, object]] = []
    for form in TOOL_FORMS:
        model = Scripted(filled(form, first, second))
        try:
            parts = SubQuestionRetriever(tools, model, on_error="raise").grouped(question)
            pairs = [(part.tool, part.question) for part in parts]
        except ModelError:
            pairs = None
        found.append((form, pairs, [("plays", first), ("people", second)]))
    assert len(found) >= 150
    check_share(found)


def test_async_rewrite_reads_forms() -> None:
    async def rewritten() -> list[list[str]]:
        models = [Scripted(filled(form, "Where did Ibsen live?")) for form in QUERY_FORMS[:40]]
        return [await QueryRewrite(model).acall("wher did ibsn live") for model in models]

    assert asyncio.run(rewritten()) == [["Where did Ibsen live?"]] * 40


@pytest.mark.parametrize(
    "form",
    [
        "The next question should be: {}",
        "Next question: {}",
        "<question>{}</question>",
        "<think>Hm?</think>Next question: {}",
        '{{"answered": "no", "question": "{}"}}',
        "I know this. The next question is: {}",
        "Answer: unknown\nAnswered: no\nNext question: {}",
        "<answer>unknown</answer><answered>no</answered><question>{}</question>",
        "<known>x</known>\n<missing>y</missing>\n<question>{}</question>\n<answered>no</answered>",
        "Here is the next question: {}",
        "answer: Ibsen\nanswered: false\nnext_question: {}",
        "Answer — Ibsen\nAnswered — no\nNext question — {}",
        "Answer: Ibsen; Answered: no; Next question: {}",
        "### Answer\nIbsen\n### Answered\nno\n### Next question\n{}",
        "| Answer | Answered | Next question |\n|---|---|---|\n| Ibsen | no | {} |",
        "| Field | Value |\n|---|---|\n| Answer | Ibsen |\n| Next question | {} |",
        '{{"answer": null, "is_answered": false, "follow_up_question": "{}"}}',
        "下一个问题应该是：{}",
        "[Search: {}]",
        "{} NO_ANSWER",
        "{}",
    ],
)
def test_next_question_of_all_forms_is_searched(form: str) -> None:
    graph = NodeGraph()
    graph.add(["Brand is a play by Henrik Ibsen.", "Henrik Ibsen lived in Skien."])
    replies = iter([form.format("Where did Henrik Ibsen live?"), "Answered: yes\nAnswer: Skien"])
    retriever = MultiStepRetriever(Retriever(graph, "ROOT"), lambda prompt: next(replies))
    done = retriever.steps("In which town did the author of Brand live?")
    assert [step.question for step in done.steps] == ["Where did Henrik Ibsen live?"]


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "**{}**",
        "<name>{}</name>",
        "<think>docs?</think>{}",
        '{{"name": "{}"}}',
        '{{"tool": "{}", "reason": "not docs"}}',
        "Route: {}",
        "I would choose {}.",
        "```\n{}\n```",
        "[THINK]docs?[/THINK]{}",
        "2",
        "选择：{}",
    ],
)
def test_route_of_all_forms_is_taken(form: str) -> None:
    routes = {"docs": "Manuals", "web": "News"}
    found = QueryRouter(lambda prompt: form.format("web"), routes=routes)("What is new?")
    assert found == ["web"]
