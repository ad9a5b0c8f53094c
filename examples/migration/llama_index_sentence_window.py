"""Sentence windows: search single sentences, answer with those around them."""

from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index_offline import ScriptedLLM, WordVectors, documents, read

from nodekin.adapters.llama_index import NodeGraphQueryEngine
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever, WindowRetriever

QUESTION = "Which tea is fermented, the black one?"


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1,
        window_metadata_key="window",
        original_text_metadata_key="original_text",
        sentence_splitter=split_sentences,
    )
    nodes = parser.get_nodes_from_documents(documents())
    index = VectorStoreIndex(nodes, embed_model=WordVectors())
    engine = index.as_query_engine(
        llm=ScriptedLLM(reply=read),
        similarity_top_k=1,
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    response = engine.query(QUESTION)
    return [str(response), *(" ".join(node.text.split()) for node in response.source_nodes)]


def after() -> list[str]:
    """Answer with nodekin: windows are spans of the document, and not stored."""
    graph = NodeGraph(embed=WordVectors())
    graph.add(documents())
    graph.create_node_group("sentence", split_sentences)
    sentences = Retriever(graph, "sentence", "cosine", top_k=1)
    windows = WindowRetriever(sentences, before=1, after=1)
    engine = NodeGraphQueryEngine.from_args(windows, llm=ScriptedLLM(reply=read))
    response = engine.query(QUESTION)
    return [str(response), *(" ".join(node.text.split()) for node in response.source_nodes)]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
