"""Fuse the results of two retrievers: first with LlamaIndex, then with nodekin."""

from itertools import pairwise

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphRetriever
from nodekin.retrievers import FusionRetriever

PAGES = {
    "tea": "Green tea is steamed. Black tea is fermented. Both teas are leaves of one plant.\n\n"
    "Tea came to Europe in 1610, on Dutch ships. It was sold by chemists at first.",
    "coffee": "Coffee is roasted. It comes from beans, which are seeds of a cherry.\n\n"
    "Coffee houses opened in Vienna in 1685. Espresso is pressed through fine powder.",
    "river": "Rivers run to the sea. The Nile is 6,650 km long and crosses eleven countries.",
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


QUESTION = "Which tea is fermented?"


def before():
    index = VectorStoreIndex.from_documents(load(), embed_model=Letters())
    fusion = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=2), index.as_retriever(similarity_top_k=1)],
        llm=MockLLM(),  # a model is required even if no queries are written
        num_queries=1,
        mode="relative_score",
        retriever_weights=[0.6, 0.4],
        similarity_top_k=2,
        use_async=False,
    )
    return [result.node.ref_doc_id for result in fusion.retrieve(QUESTION)]


def after():
    index = NodeGraphIndex.from_documents(load(), embed_model=Letters())
    vectors = index.as_retriever(similarity="cosine", similarity_top_k=2)
    words = index.as_retriever(similarity="bm25", similarity_top_k=2)
    fusion = FusionRetriever([vectors, words], "relative", weights=[0.6, 0.4], top_k=2)
    return [result.node.ref_doc_id for result in NodeGraphRetriever(fusion).retrieve(QUESTION)]


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
