"""Models of a graph as models of LlamaIndex."""

import asyncio

from llama_index.core.embeddings import MockEmbedding
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import TextNode

from nodekin.adapters.llama_index import NodeGraphIndex


def letters(texts: list[str]) -> list[list[int]]:
    return [[text.count(letter) for letter in "aeiou"] for text in texts]


def test_function_of_texts_embeds_queries_of_vector_retriever() -> None:
    nodes = [TextNode(text=text, id_=text) for text in ("banana", "lemon tree", "kiwi")]
    index = NodeGraphIndex(nodes, embed_model=letters)
    retriever = VectorIndexRetriever(index, similarity_top_k=1)
    for results in (retriever.retrieve("papaya"), asyncio.run(retriever.aretrieve("papaya"))):
        assert [result.node_id for result in results] == ["banana"]
    model = retriever._embed_model
    assert model.get_text_embedding("papaya") == [3.0, 0.0, 0.0, 0.0, 0.0]


def test_model_of_llama_index_stays_itself() -> None:
    model = MockEmbedding(embed_dim=8)
    assert NodeGraphIndex([], embed_model=model)._embed_model is model
