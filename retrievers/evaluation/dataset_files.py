"""Read questions from whatever form a file or folder has."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from .dataset import Dataset
from .framework_datasets import load_langchain, load_llama_index, load_ragas
from .loaders import load_beir, load_csv, load_jsonl, load_squad


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file or folder, by its form.

    A folder is read by ``load_beir``, ``.jsonl`` by ``load_jsonl``, ``.csv`` by ``load_csv``,
    ``.json`` by ``load_squad``; sets that LangChain, LlamaIndex and Ragas saved, known by their
    fields, by ``load_langchain``, ``load_llama_index`` and ``load_ragas``. Take these where you
    want their options.

    Args:
        path: The file or folder.
        fields: What columns or fields are called in ``.jsonl`` and ``.csv``.

    Raises:
        FileNotFoundError: If there is no such file or folder.
        ValueError: If it is of no known form, or has no questions.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r} with questions")
    suffix = path.suffix.lower()
    if fields and (path.is_dir() or suffix == ".json"):
        raise ValueError(f"{path} has fields of its own; leave fields out, or convert it to .jsonl")
    if path.is_dir():
        return load_beir(path)
    if suffix not in (".jsonl", ".ndjson", ".csv", ".json"):
        raise ValueError(f"{path} is {_FORMS}")
    if not fields and (load := _saved_by(_first(path, suffix))) is not None:
        return load(path)
    if suffix == ".csv":
        return load_csv(path, fields)
    if suffix != ".json":
        return load_jsonl(path, fields)
    if not _is_object(path):
        raise ValueError(f"{path} is {_FORMS}")
    return load_squad(path)


_FORMS = (
    "no form of questions that is known: a folder of BEIR, .jsonl, .csv, .json in the form of "
    "SQuAD, or a set that LangChain, LlamaIndex or Ragas saved"
)


def _saved_by(row: Mapping[str, object]) -> Callable[[Path], Dataset] | None:
    """Return what reads a file whose first row, or only object, has these fields."""
    if "user_input" in row:
        return load_ragas
    if "inputs" in row or any(name.startswith(("inputs.", "input_")) for name in row):
        return load_langchain
    if {"queries", "corpus"} <= row.keys() or {"queries", "responses"} <= row.keys():
        return load_llama_index
    examples = row.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], dict):
        return load_llama_index if "query_by" in examples[0] else load_langchain
    return None


def _first(path: Path, suffix: str) -> Mapping[str, object]:
    """Return the first row of a file, or the object that it is; empty where there is none."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        if suffix == ".csv":
            return dict.fromkeys(csv.DictReader(file).fieldnames or ())
        text = file.read() if suffix == ".json" else next(filter(str.strip, file), "{}")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if suffix == ".json":
            raise ValueError(f"{path} is no JSON: {error}") from error
        return {}  # its reader says which line it is
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}


def _is_object(path: Path) -> bool:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    return isinstance(content, dict) and "data" in content
