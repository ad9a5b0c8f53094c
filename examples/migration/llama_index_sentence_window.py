"""Sentence windows: search single sentences, answer with those around them.

The program stays, its index is another one. nodekin's ``WindowRetriever`` needs no parser for it:
windows are spans of the document, and not stored.
"""

from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index_offline import ScriptedLLM, WordVectors, documents, read

from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.nodegraph import split_sentences

QUESTION = "Which tea is fermented, the black one?"


def program(index_class: type[VectorStoreIndex] | type[NodeGraphIndex]) -> list[str]:
    """Answer with an index of LlamaIndex or of nodekin."""
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1,
        window_metadata_key="window",
        original_text_metadata_key="original_text",
        sentence_splitter=split_sentences,
    )
    nodes = parser.get_nodes_from_documents(documents())
    index = index_class(nodes, embed_model=WordVectors())
    engine = index.as_query_engine(
        llm=ScriptedLLM(reply=read),
        similarity_top_k=1,
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    response = engine.query(QUESTION)
    return [str(response), *(" ".join(node.text.split()) for node in response.source_nodes)]


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    return program(VectorStoreIndex)


def after() -> list[str]:
    """Answer with nodekin's index in its place."""
    return program(NodeGraphIndex)


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
