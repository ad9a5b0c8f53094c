"""Agents and LangGraph: a tool of a retriever, and a graph whose state keeps documents."""

from typing import TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from support.langchain_programs import QUESTIONS, RETRIEVERS, THEIRS, check, joined, model

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str


def agent(make, config):
    tool = create_retriever_tool(
        make(), "search", "Texts on tea.", response_format="content_and_artifact"
    )
    calls = [
        AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": str(n)}])
        for n, query in enumerate(QUESTIONS)
    ]
    scripted = Scripted(responses=[*calls, AIMessage("It is steamed.")])
    question = {"messages": [("user", QUESTIONS[0])]}
    return create_agent(scripted, [tool]).invoke(question, config)["messages"]


def state_graph(make, config):
    retriever = make()
    llm = model("It is steamed.")

    def retrieve(state, config):
        return {"documents": retriever.invoke(state["question"], config)}

    def answer(state, config):
        return {"answer": llm.invoke(joined(state["documents"]), config).content}

    builder = StateGraph(State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("answer", answer)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "1"}}
    result = graph.invoke({"question": QUESTIONS[2]}, thread)
    saved = graph.get_state({"configurable": {"thread_id": "1"}}).values
    assert saved == result
    return result


@ours
@pytest.mark.parametrize("program", [agent, state_graph])
def test_agent_runs_as_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
