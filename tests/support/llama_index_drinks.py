"""Six nodes with metadata, and LlamaIndex and nodekin indexes that contain them."""

from __future__ import annotations

from typing import Any, TypeAlias

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from nodekin.adapters.llama_index import NodeGraphIndex
from support.llama_index_models import Words

Indexes: TypeAlias = tuple[VectorStoreIndex, NodeGraphIndex]

ROWS: list[tuple[str, dict[str, Any]]] = [
    ("Green tea is steamed in China.", {"kind": "tea", "year": 1999, "tags": ["green", "leaf"]}),
    ("Black tea is fermented for days.", {"kind": "tea", "year": 2005, "tags": ["black"]}),
    ("Oolong tea is half fermented.", {"kind": "Tea", "year": 2010, "tags": []}),
    ("Coffee is roasted and ground.", {"kind": "coffee", "year": 2005}),
    ("Beer is fermented from malt.", {"kind": "beer", "year": 2021, "tags": ["black", "leaf"]}),
    ("Rivers run to the sea.", {"kind": None, "year": 1950, "tags": ["water"]}),
]
QUERY = "Which tea is fermented?"


def nodes() -> list[TextNode]:
    made = []
    for number, (text, metadata) in enumerate(ROWS):
        node = TextNode(text=text, id_=f"n{number}", metadata=metadata)
        node.excluded_embed_metadata_keys = [*metadata]
        document = Document(text="", id_=f"d{number // 2}")
        node.relationships = {"1": document.as_related_node_info()}  # type: ignore[dict-item]
        made.append(node)
    return made


def both_indexes() -> Indexes:
    theirs = VectorStoreIndex(nodes(), embed_model=Words(texts=[]))
    return theirs, NodeGraphIndex(nodes(), embed_model=Words(texts=[]))


def found(retriever: Any, query: str = QUERY) -> list[tuple[str, float, dict[str, Any], str]]:
    return [
        (result.node_id, round(result.score, 4), result.metadata, type(result.node).__name__)
        for result in retriever.retrieve(query)
    ]


def filters(*conditions: tuple[str, str, Any], how: str = "and") -> MetadataFilters:
    made = [
        MetadataFilter(key=key, operator=operator, value=value)
        for key, operator, value in conditions
    ]
    return MetadataFilters(filters=made, condition=how)
