"""Read questions from whatever form a file or folder has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from .dataset import Dataset
from .loaders import load_beir, load_csv, load_jsonl, load_squad


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file or folder, by its form.

    A folder is read by ``load_beir``, ``.jsonl`` by ``load_jsonl``, ``.csv`` by ``load_csv``,
    ``.json`` by ``load_squad``. Take these where you want their options.

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
    if suffix in (".jsonl", ".ndjson"):
        return load_jsonl(path, fields)
    if suffix == ".csv":
        return load_csv(path, fields)
    if suffix == ".json" and _is_squad(path):
        return load_squad(path)
    raise ValueError(
        f"{path} is no form of questions that is known: a folder of BEIR, .jsonl, .csv, or .json "
        "in the form of SQuAD"
    )


def _is_squad(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    return isinstance(content, dict) and "data" in content
