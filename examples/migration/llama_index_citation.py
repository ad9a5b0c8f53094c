"""Citations: the answer names its sources by numbers."""

from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import CitationQueryEngine
from llama_index_offline import ScriptedLLM, WordVectors, documents

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine
from nodekin.retrievers import QueryEngine

QUESTION = "How many km long is the Nile, whose floods made the fields of Egypt fertile?"


def reply(prompt: str) -> str:
    """Be a model that cites the first source."""
    return "The Nile is 6,650 km long [1]."


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    index = VectorStoreIndex.from_documents(documents(), embed_model=WordVectors())
    engine = CitationQueryEngine.from_args(
        index, llm=ScriptedLLM(reply=reply), similarity_top_k=1, citation_chunk_size=512
    )
    response = engine.query(QUESTION)
    cited = response.source_nodes[0]
    return [str(response), cited.node.metadata["topic"]]


def after() -> list[str]:
    """Answer with nodekin: which sources are cited is checked, and told."""
    index = NodeGraphIndex.from_documents(documents(), embed_model=WordVectors())
    engine = NodeGraphQueryEngine(
        QueryEngine(index.as_retriever(similarity_top_k=1), ScriptedLLM(reply=reply))
    )
    response = engine.query(QUESTION)
    (number,) = response.metadata["cited"]
    cited = response.source_nodes[number - 1]
    return [str(response), cited.node.metadata["topic"]]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
