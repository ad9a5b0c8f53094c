"""Build a LangGraph agent that reads a folder with six corpus tools.

The chat model is scripted, so that no API key is required. Replace it with any chat model that
supports tool calls. Requirements: pip install langgraph "nodekin[langchain]"
"""

import re
from pathlib import Path

try:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition
except ImportError:
    raise SystemExit('This example needs: pip install langgraph "nodekin[langchain]"') from None

from nodekin.adapters.langchain import corpus_toolkit
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import CorpusTools


class ScriptedModel(BaseChatModel):
    """A scripted model that searches, reads the text around the best passage, and quotes it."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: list, **kwargs: object) -> "ScriptedModel":
        """Ignore the tools, because the tool calls are scripted."""
        return self

    def _generate(self, messages: list, *args: object, **kwargs: object) -> ChatResult:
        last = messages[-1]
        if isinstance(last, HumanMessage):
            answer = AIMessage("", tool_calls=[_call("search", query=last.content)])
        elif last.name == "search":
            document, start, end = re.findall(r"^(\S+) \[(\d+):(\d+)\]", last.content)[0]
            place = {"document": document, "start": int(start), "end": int(end)}
            answer = AIMessage("", tool_calls=[_call("read", **place)])
        else:
            question, found = messages[0].content, messages[-3].content
            sentences = re.split(r"(?<=[。！？])|\n", found)
            best = max(sentences, key=lambda sentence: len(set(sentence) & set(question)))
            answer = AIMessage(f"My notes say: {best} ({found.split(']')[0]}])")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _call(name: str, **arguments: object) -> dict:
    return {"name": name, "args": arguments, "id": name}


tools = CorpusTools(
    NodeGraph(Path(__file__).parent / "data" / "zh", progress=False), max_tokens=200
)

for question in ("大熊猫每天要花多少时间吃东西？", "《茶经》是谁写的？"):
    toolkit = corpus_toolkit(tools)
    model = ScriptedModel().bind_tools(toolkit)
    steps = StateGraph(MessagesState)
    steps.add_node(
        "model", lambda state, model=model: {"messages": [model.invoke(state["messages"])]}
    )
    steps.add_node("tools", ToolNode(toolkit))
    steps.add_edge(START, "model")
    steps.add_conditional_edges("model", tools_condition)
    steps.add_edge("tools", "model")
    for message in steps.compile().invoke({"messages": [("user", question)]})["messages"]:
        told = message.content or message.tool_calls[0]["args"]
        for line in filter(None, str(told).splitlines()[:4]):
            print(f"{message.type:<6} {line}"[:100])
        # the results are available as data, with exact positions
        if isinstance(message, ToolMessage):
            for entry in message.artifact["entries"]:
                print(f"       {entry['document']} {entry['start']}-{entry['end']}")
    print()
