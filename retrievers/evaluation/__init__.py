"""Measure retrievers of any framework on questions with gold, and compare them honestly."""

from .dataset import Dataset, GoldDocument, GoldPassage, GoldSpan, MissingGold, Question
from .dataset_files import load_dataset
from .framework_datasets import load_langchain, load_llama_index, load_ragas
from .generated_questions import GeneratedQuestions, NoQuestionsError, RejectedQuestion
from .generation import generate_questions
from .intervals import Difference, Figure
from .judges import JUDGED_METRICS, Judge
from .loaders import load_beir, load_csv, load_jsonl, load_squad, save_jsonl
from .matching import Matching, RetrievalCase, RetrievedItem, edit_similarity
from .metrics import METRICS, Judgement, Metric, get_metric
from .question_log import load_log
from .report import Evaluation
from .runner import default_metrics, evaluate

__all__ = [
    "JUDGED_METRICS",
    "METRICS",
    "Dataset",
    "Difference",
    "Evaluation",
    "Figure",
    "GeneratedQuestions",
    "GoldDocument",
    "GoldPassage",
    "GoldSpan",
    "Judge",
    "Judgement",
    "Matching",
    "Metric",
    "MissingGold",
    "NoQuestionsError",
    "Question",
    "RejectedQuestion",
    "RetrievalCase",
    "RetrievedItem",
    "default_metrics",
    "edit_similarity",
    "evaluate",
    "generate_questions",
    "get_metric",
    "load_beir",
    "load_csv",
    "load_dataset",
    "load_jsonl",
    "load_langchain",
    "load_llama_index",
    "load_log",
    "load_ragas",
    "load_squad",
    "save_jsonl",
]
