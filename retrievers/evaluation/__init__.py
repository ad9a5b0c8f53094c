"""Measure retrievers of any framework on questions with gold, and compare them honestly."""

from .dataset import Dataset, GoldDocument, GoldPassage, GoldSpan, MissingGold, Question
from .dataset_files import load_dataset
from .framework_datasets import load_langchain, load_llama_index, load_ragas
from .intervals import Difference, Figure
from .judges import JUDGED_METRICS, Judge
from .loaders import load_beir, load_csv, load_jsonl, load_squad
from .matching import Matching, RetrievalCase, edit_similarity
from .metrics import METRICS, Judgement, Metric, get_metric
from .report import Evaluation
from .runner import evaluate

__all__ = [
    "JUDGED_METRICS",
    "METRICS",
    "Dataset",
    "Difference",
    "Evaluation",
    "Figure",
    "GoldDocument",
    "GoldPassage",
    "GoldSpan",
    "Judge",
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
    "load_dataset",
    "load_jsonl",
    "load_langchain",
    "load_llama_index",
    "load_ragas",
    "load_squad",
]
