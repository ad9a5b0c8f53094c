"""An agent that searches a folder by itself: LangGraph, and the retriever as its tool.

The model is scripted, so that it runs without a key; put any chat model that calls tools in its
place. Needs langgraph: pip install langgraph "nodekin[langchain]"
"""

from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from nodekin.adapters.langchain import NodeGraphRetriever, retriever_tool
from nodekin.nodegraph import NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import Retriever


class ScriptedModel(BaseChatModel):
    """Search for what the user asks, then quote the best passage."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: list, **kwargs: object) -> "ScriptedModel":
        """Take the tools; the calls of this model are scripted."""
        return self

    def _generate(self, messages: list, *args: object, **kwargs: object) -> ChatResult:
        last = messages[-1]
        if isinstance(last, HumanMessage):
            search = {"name": "search_notes", "args": {"query": last.content}, "id": "1"}
            answer = AIMessage("", tool_calls=[search])
        else:
            best = last.content.splitlines()[1]
            answer = AIMessage(f"My notes say: {best} [1]")
        return ChatResult(generations=[ChatGeneration(message=answer)])


notes = NodeGraph(Path(__file__).parent / "data" / "zh", progress=False)
notes.create_node_group("paragraph", split_paragraphs)
notes.create_node_group("sentence", split_sentences, parent="paragraph")
search = Retriever(notes, "sentence", "bm25", target="paragraph", top_k=3)
retriever = NodeGraphRetriever(retriever=search, details=True)  # scores and what matched, too
tools = [retriever_tool(retriever, "search_notes", "My notes.")]
model = ScriptedModel().bind_tools(tools)

steps = StateGraph(MessagesState)
steps.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
steps.add_node("tools", ToolNode(tools))
steps.add_edge(START, "model")
steps.add_conditional_edges("model", tools_condition)
steps.add_edge("tools", "model")
agent = steps.compile()

for question in ("大熊猫每天要花多少时间吃东西？", "《茶经》是谁写的？"):
    for message in agent.invoke({"messages": [("user", question)]})["messages"]:
        print(f"{message.type:<6} {message.content or message.tool_calls[0]['args']}"[:100])
        if isinstance(message, ToolMessage):
            for number, document in enumerate(message.artifact, 1):  # the tool's documents
                hit = document.metadata
                where = f"{hit['file_name']}[{hit['start']}:{hit['end']}]"
                print(f"       [{number}] {hit['score']:.2f} {where} {hit['evidence']}"[:100])
    print()
