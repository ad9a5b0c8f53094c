"""A sentence window retriever, which searches single sentences and adds the text around them."""

from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read

from nodekin.nodegraph import split_sentences

QUESTION = "Which tea is fermented, the black one?"


def program(index_class: Index) -> list[str]:
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1, sentence_splitter=split_sentences
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


if __name__ == "__main__":
    compare(program)
