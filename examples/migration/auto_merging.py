"""Merge small nodes into their parents: first with LlamaIndex, then with nodekin."""

from itertools import pairwise

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever

from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import AutoMergeRetriever, Retriever

PAGES = {
    "tea": "Green tea is steamed soon after the harvest, and its leaves stay green. Black tea is "
    "fermented for days, and it keeps for years. Oolong tea is half fermented. White tea is dried "
    "in the sun. All teas are leaves of one plant, which grows on hills in Asia and in Africa. "
    "The leaves are plucked by hand, and the best teas are plucked in spring.\n\n"
    "Ships brought tea to Amsterdam in 1610. In London it was sold in coffee houses, and taxed by "
    "the gallon. Clippers raced each other home with the first leaves of the season.",
    "river": "Rivers run to the sea. The Nile is 6,650 km long and crosses eleven countries. Its "
    "floods made the fields of Egypt fertile. The Amazon carries more water than any other river.",
}


def load():
    return [Document(text=text, id_=name) for name, text in PAGES.items()]


class Letters(BaseEmbedding):
    """An embedding model that counts pairs of letters. Any embedding model can be used instead."""

    def _get_text_embedding(self, text):
        counts = [0.001] * 1024
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


QUESTION = "Is black tea fermented, and are all teas leaves of one plant?"


def before():
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[100, 51], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents(load())
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    leaves = get_leaf_nodes(nodes)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=Letters())
    merging = AutoMergingRetriever(index.as_retriever(similarity_top_k=3), context)
    return [result.text for result in merging.retrieve(QUESTION)]


def after():
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(load())
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    sentences = Retriever(graph, "sentence", "cosine", top_k=3)
    merging = AutoMergeRetriever(sentences, target="paragraph", ratio=0.4)
    return [result.text for result in NodeGraphRetriever(merging).retrieve(QUESTION)]


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
