"""A router: a model chooses the query engine that can answer a question."""

from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_offline import ScriptedLLM, WordVectors, documents, read

from nodekin import retrievers
from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine

QUESTION = "When was the Golden Gate Bridge opened?"


def reply(prompt: str) -> str:
    """Be a model: choose a route in the form that is requested, or read."""
    if "return the choice" in prompt:
        return '[{"choice": 3, "reason": "It is a bridge."}]'
    if "Context information" not in prompt:
        return "bridges"
    return read(prompt)


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    llm = ScriptedLLM(reply=reply)
    tools = [
        QueryEngineTool.from_defaults(
            VectorStoreIndex.from_documents([document], embed_model=WordVectors()).as_query_engine(
                llm=llm
            ),
            name=document.id_,
            description=f"All about {document.id_}",
        )
        for document in documents()
    ]
    engine = RouterQueryEngine.from_defaults(tools, llm, LLMSingleSelector.from_defaults(llm))
    response = engine.query(QUESTION)
    return [str(response), *(node.node.metadata["topic"] for node in response.source_nodes)]


def after() -> list[str]:
    """Answer with nodekin: routes are retrievers, so that one prompt answers."""
    llm = ScriptedLLM(reply=reply)
    routes = {
        document.id_: (
            f"All about {document.id_}",
            NodeGraphIndex.from_documents([document], embed_model=WordVectors()),
        )
        for document in documents()
    }
    engine = NodeGraphQueryEngine.from_args(retrievers.RouterRetriever(routes, llm), llm)
    response = engine.query(QUESTION)
    return [str(response), *(node.node.metadata["topic"] for node in response.source_nodes)]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
