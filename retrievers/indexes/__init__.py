"""What makes similarities fast: inverted index, vector index, exact look-up, scan."""

from .exact_index import Exact, normal_question
from .filter_index import FilterIndex
from .impact_lists import Saturation
from .max_score import TermWeights
from .nearest_vectors import unit
from .node_table import NodeTable
from .scan_index import ScanIndex
from .synced_index import SyncedIndex
from .table_index import TableIndex
from .text_index import TextIndex
from .vector_index import VectorIndex
from .word_index import WordIndex

__all__ = [
    "Exact",
    "FilterIndex",
    "NodeTable",
    "Saturation",
    "ScanIndex",
    "SyncedIndex",
    "TableIndex",
    "TermWeights",
    "TextIndex",
    "VectorIndex",
    "WordIndex",
    "normal_question",
    "unit",
]
