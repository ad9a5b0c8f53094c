"""How a query is scored against nodes: by words, by vectors, by rules of your own."""

from .bm25 import Bm25
from .cosine import Cosine
from .custom import CustomSimilarity
from .registry import (
    DEFAULT,
    MakeIndex,
    get_similarity,
    register_index,
    register_similarity,
    with_index,
)
from .unranked import Unranked

__all__ = [
    "DEFAULT",
    "Bm25",
    "Cosine",
    "CustomSimilarity",
    "MakeIndex",
    "Unranked",
    "get_similarity",
    "register_index",
    "register_similarity",
    "with_index",
]
