"""Histories: a question that needs the conversation, and a chain with a message history."""

import pytest
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from support.langchain_programs import PROMPT, QUESTIONS, RETRIEVERS, THEIRS, check, model

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)
REPHRASE = ChatPromptTemplate([MessagesPlaceholder("chat_history"), ("human", "{input}")])


class History(BaseChatMessageHistory):
    def __init__(self):
        self.messages = []

    def add_messages(self, messages):
        self.messages = [*self.messages, *messages]

    def clear(self):
        self.messages = []


def conversation(make):
    rephrased = model("Which tea is fermented?")
    retriever = create_history_aware_retriever(rephrased, make(), REPHRASE)
    return create_retrieval_chain(
        retriever, create_stuff_documents_chain(model("Black tea."), PROMPT)
    )


def follow_up(make, config):
    history = [HumanMessage("Which tea is steamed?"), AIMessage("Green tea.")]
    chain = conversation(make)
    return [
        chain.invoke({"input": "And which is fermented?", "chat_history": past}, config)
        for past in ([], history)
    ]


def message_history(make, config):
    history = History()
    chain = RunnableWithMessageHistory(
        conversation(make),
        lambda session_id: history,
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    session = {**config, "configurable": {"session_id": "1"}}
    answers = [chain.invoke({"input": question}, session) for question in QUESTIONS]
    return answers, history.messages


@ours
@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
@pytest.mark.parametrize("program", [follow_up, message_history])
def test_conversation_runs_as_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
