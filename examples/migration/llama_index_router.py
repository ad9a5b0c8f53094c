"""A router query engine, in which a model selects the query engine that answers a question."""

from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read

QUESTION = "When was the Golden Gate Bridge opened?"


def reply(prompt: str) -> str:
    if "return the choice" in prompt:
        return '[{"choice": 3, "reason": "It is a bridge."}]'
    return read(prompt)


def program(index_class: Index) -> list[str]:
    llm = ScriptedLLM(reply=reply)
    tools = []
    for document in documents():
        index = index_class.from_documents([document], embed_model=WordVectors())
        tools.append(
            QueryEngineTool.from_defaults(
                index.as_query_engine(llm=llm),
                name=document.id_,
                description=f"All about {document.id_}",
            )
        )
    engine = RouterQueryEngine.from_defaults(tools, llm, LLMSingleSelector.from_defaults(llm))
    response = engine.query(QUESTION)
    return [str(response), *(node.metadata["topic"] for node in response.source_nodes)]


if __name__ == "__main__":
    compare(program)
