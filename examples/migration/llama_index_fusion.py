"""A fusion retriever that merges the results of two indexes by reciprocal rank.

The indexes contain chunks of different sizes.
"""

from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index_offline import Index, WordVectors, compare, documents, splitter

QUESTION = "Which river runs to the Mediterranean?"


def program(index_class: Index) -> list[str]:
    indexes = [
        index_class(splitter(size).get_nodes_from_documents(documents()), embed_model=WordVectors())
        for size in (60, 120)
    ]
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=1) for index in indexes],
        llm=MockLLM(),  # a model is required even if no queries are generated
        num_queries=1,
        mode="reciprocal_rerank",
        similarity_top_k=2,
        use_async=False,
    )
    return sorted(result.text for result in retriever.retrieve(QUESTION))


if __name__ == "__main__":
    compare(program)
