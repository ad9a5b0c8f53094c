"""An agent that uses a retriever as a tool. Its passages are numbered so that they can be cited."""

from langchain.agents import create_agent
from langchain_common import Letters, ScriptedChat, load, read, show
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever, retriever_tool

TOOL = "search_pages", "Searches the pages."


def reply(messages):
    """Call the search tool with the question, and then answer from the passages."""
    if isinstance(messages[-1], HumanMessage):
        call = {"name": TOOL[0], "args": {"query": messages[-1].content}, "id": "1"}
        return AIMessage("", tool_calls=[call])
    return read([messages[-1], HumanMessage(f"Question: {messages[-3].content}")])


def run(tool):
    agent = create_agent(ScriptedChat(reply=reply), [tool], system_prompt="You know the pages.")
    messages = agent.invoke({"messages": [("user", "How long is the Nile?")]})["messages"]
    return [message.type for message in messages], messages[-1].content


def before():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    return run(create_retriever_tool(store.as_retriever(), *TOOL))


def after():
    return run(retriever_tool(NodeGraphRetriever.from_documents(load(), Letters()), *TOOL))


if __name__ == "__main__":
    show(before, after)
