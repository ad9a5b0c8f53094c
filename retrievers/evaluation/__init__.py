"""Measure retrievers of any framework on questions with gold, and compare them honestly."""

from .dataset import Dataset, GoldDocument, GoldPassage, GoldSpan, MissingGold, Question
from .intervals import Difference, Figure
from .loaders import load_beir, load_csv, load_jsonl, load_squad
from .matching import Matching, RetrievalCase, edit_similarity
from .metrics import METRICS, Judgement, Metric, get_metric
from .report import Evaluation
from .runner import evaluate

__all__ = [
    "METRICS",
    "Dataset",
    "Difference",
    "Evaluation",
    "Figure",
    "GoldDocument",
    "GoldPassage",
    "GoldSpan",
    "Judgement",
    "Matching",
    "Metric",
    "MissingGold",
    "Question",
    "RetrievalCase",
    "edit_similarity",
    "evaluate",
    "get_metric",
    "load_beir",
    "load_csv",
    "load_jsonl",
    "load_squad",
]
