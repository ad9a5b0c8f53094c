"""An agent that searches by itself: ``create_agent``, and a retriever as its tool.

After: the tool gives numbered passages, which the answer can cite, and keeps the retriever's
conditions whatever the model asks. Needs langchain: pip install langchain
"""

from langchain.agents import create_agent
from langchain_common import Letters, ScriptedChat, load, read, show
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever, retriever_tool

QUESTIONS = ["Which tea is fermented?", "How long is the Nile?"]


def reply(messages):
    """Search for what the user asks, then answer from what came back."""
    if isinstance(messages[-1], HumanMessage):
        call = {"name": "search_pages", "args": {"query": messages[-1].content}, "id": "1"}
        return AIMessage("", tool_calls=[call])
    asked = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
    return read([messages[-1], HumanMessage(f"Question: {asked.content}")])


def run(tool):
    agent = create_agent(ScriptedChat(reply=reply), [tool], system_prompt="You know the pages.")
    answers = []
    for question in QUESTIONS:
        messages = agent.invoke({"messages": [("user", question)]})["messages"]
        answers.append(([message.type for message in messages], messages[-1].content))
    return answers


def before():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    retriever = store.as_retriever(search_kwargs={"k": 2})
    return run(create_retriever_tool(retriever, "search_pages", "Searches the pages."))


def after():
    retriever = NodeGraphRetriever.from_documents(load(), Letters(), k=2)
    return run(retriever_tool(retriever, "search_pages", "Searches the pages."))


if __name__ == "__main__":
    show(before, after)
