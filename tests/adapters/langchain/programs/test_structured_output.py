"""Structured output: a parsed answer with sources, and tool calls that carry a query."""

import json

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser
from langchain_core.runnables import RunnablePassthrough
from pydantic import BaseModel
from support.langchain_programs import PROMPT, QUESTIONS, RETRIEVERS, THEIRS, check, joined, model

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


class Cited(BaseModel):
    answer: str
    sources: list[int]


def cited_answer(make, config):
    reply = json.dumps({"answer": "Green tea.", "sources": [0]})
    retriever = make()
    step = RunnablePassthrough.assign(documents=lambda x: retriever.invoke(x["input"], config))
    numbered = RunnablePassthrough.assign(context=lambda x: joined(x["documents"]))
    parser = PydanticOutputParser(pydantic_object=Cited)
    answer = RunnablePassthrough.assign(answer=PROMPT | model(reply) | parser)
    result = (step | numbered | answer).invoke({"input": QUESTIONS[0]}, config)
    return {**result, "answer": result["answer"].model_dump()}


def planned_queries(make, config):
    calls = [
        {"name": "search", "args": {"query": question}, "id": str(n)}
        for n, question in enumerate(QUESTIONS)
    ]
    planner = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=calls)])
    plan = planner | JsonOutputToolsParser() | (lambda found: [c["args"]["query"] for c in found])
    return (plan | make().map()).invoke("How is tea made?", config)


def streamed_json(make, config):
    reply = json.dumps({"answer": "Green tea.", "sources": [0]})
    step = {"context": make() | joined, "input": RunnablePassthrough()}
    return list((step | PROMPT | model(reply) | JsonOutputParser()).stream(QUESTIONS[0], config))


@ours
@pytest.mark.parametrize("program", [cited_answer, planned_queries, streamed_json])
def test_structured_answer_equals_that_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
