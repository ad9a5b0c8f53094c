"""What makes similarities fast: the inverted file, the vectors, the look-up; and their names."""

from .exact_index import Exact, QuestionMap, normal_question
from .max_score import Saturation, TermWeights
from .nearest_vectors import unit
from .node_table import Slots
from .scan_index import ScanIndex
from .text_index import TextIndex
from .vector_index import VectorIndex

__all__ = [
    "Exact",
    "QuestionMap",
    "Saturation",
    "ScanIndex",
    "Slots",
    "TermWeights",
    "TextIndex",
    "VectorIndex",
    "normal_question",
    "unit",
]
