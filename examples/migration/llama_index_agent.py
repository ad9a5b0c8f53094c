"""An agent that uses a query engine as a tool."""

import asyncio
import re

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.tools import QueryEngineTool
from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read, splitter

QUESTION = "Which river runs to the Mediterranean?"


def reply(prompt: str) -> str:
    if observed := re.findall("Observation: (.*)", prompt.split(QUESTION)[-1]):
        return f"Thought: I can answer without using any more tools.\nAnswer: {observed[-1]}"
    return f'Thought: I search.\nAction: search\nAction Input: {{"input": "{QUESTION}"}}'


def program(index_class: Index) -> list[str]:
    nodes = splitter(60).get_nodes_from_documents(documents())
    index = index_class(nodes, embed_model=WordVectors())
    engine = index.as_query_engine(llm=ScriptedLLM(reply=read), similarity_top_k=1)
    tool = QueryEngineTool.from_defaults(engine, name="search", description="All documents")

    async def ask() -> str:
        agent = ReActAgent(tools=[tool], llm=ScriptedLLM(reply=reply), streaming=False)
        return str(await agent.run(QUESTION))

    return [asyncio.run(ask())]


if __name__ == "__main__":
    compare(program)
