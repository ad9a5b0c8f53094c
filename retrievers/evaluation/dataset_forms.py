"""Read questions from SQuAD files and BEIR folders, or by the suffix of a file."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ..validation import choice
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question
from .loaders import get_text, load_csv, load_jsonl, read_json_lines

_logger = logging.getLogger("nodekin")

SquadGold = Literal["passages", "documents", "spans"]
"""The gold of a SQuAD file: the paragraph, its document, or the position of the answer."""


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Load questions from a BEIR folder, or a file ``.jsonl``, ``.csv`` or ``.json`` (SQuAD).

    Args:
        path: The file or folder.
        fields: Other names of columns or fields in ``.jsonl`` and ``.csv``.

    Raises:
        FileNotFoundError: If the file or folder does not exist.
        ValueError: If the form is unknown or questions are missing.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r} with questions")
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return load_jsonl(path, fields)
    if suffix == ".csv":
        return load_csv(path, fields)
    if fields:
        raise ValueError(f"only .jsonl and .csv files have other field names, got {str(path)!r}")
    if path.is_dir():
        return load_beir(path)
    if suffix == ".json":
        return load_squad(path)
    raise ValueError(f"questions must be a BEIR folder, .jsonl, .csv or .json, got {str(path)!r}")


def load_squad(path: str | Path, gold: SquadGold = "passages") -> Dataset:
    """Load a file in the form of SQuAD, also CMRC, DRCD and XQuAD.

    Each paragraph is a document of the data set, with the title of its article as metadata.
    Unanswerable questions have no gold. A span is the occurrence of the answer that is nearest to
    the given position (some positions in CMRC's development set are -1). Answers that are not in
    their paragraph have no span; their number is logged.

    Args:
        path: The file, in UTF-8.
        gold: The paragraph as a passage, as a document, or the positions of the answers.

    Raises:
        ValueError: If the file has another form, or a question id is repeated.
    """
    path = Path(path)
    choice(gold, "gold", get_args(SquadGold))
    documents: dict[str, Document] = {}
    questions = []
    try:
        for article in json.loads(path.read_text(encoding="utf-8-sig"))["data"]:
            metadata = {"title": article["title"]} if article.get("title") else {}
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                document = documents.setdefault(text, Document(text, metadata))
                for item in paragraph["qas"]:
                    answerable = not item.get("is_impossible")
                    answers = item.get("answers", []) if answerable else []
                    texts = tuple(dict.fromkeys(answer["text"] for answer in answers))
                    found = _squad_gold(gold, document, answers)
                    identity = str(item["id"])
                    questions.append(Question(identity, item["question"], found, texts, answerable))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must have the form of SQuAD (data, paragraphs, context, qas, id, question, "
            f"answers), got {type(error).__name__}: {error}"
        ) from error
    missing = sum(bool(question.answers) and not question.gold for question in questions)
    if missing:
        _logger.warning("%d answers of %s are not in their paragraph: no gold span", missing, path)
    return Dataset(questions, list(documents.values()), path.name)


def _squad_gold(
    kind: SquadGold, document: Document, answers: Sequence[Mapping[str, Any]]
) -> tuple[Gold, ...]:
    """Return the gold of a question on a paragraph."""
    if not answers:
        return ()
    if kind == "passages":
        return (GoldPassage(document.text),)
    if kind == "documents":
        return (GoldDocument(document.id),)
    spans = []
    for answer in answers:
        text, given = answer["text"], answer["answer_start"]
        starts = [match.start() for match in re.finditer(re.escape(text), document.text)]
        if text and starts:
            start = min(starts, key=lambda start: abs(start - given))
            spans.append(GoldSpan(document.id, start, start + len(text), text))
    return tuple(dict.fromkeys(spans))


def load_beir(folder: str | Path, split: str = "test") -> Dataset:
    """Load a folder in the form of BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    Only queries with a line in the split are loaded. Documents with the score 0 are not relevant.

    Args:
        folder: The folder.
        split: The name of the file in ``qrels``.

    Raises:
        ValueError: If a file is missing or has another form.
    """
    folder = Path(folder)
    qrels = folder / "qrels" / f"{split}.tsv"
    for path in (folder / "corpus.jsonl", folder / "queries.jsonl", qrels):
        if not path.is_file():
            splits = sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))
            raise ValueError(
                f"a BEIR folder must have {path}; splits: {nearest_names(split, splits)}"
            )
    documents = []
    for where, row in read_json_lines(folder / "corpus.jsonl"):
        metadata = {"title": row["title"]} if row.get("title") else {}
        text, identity = get_text(row, "text", where), get_text(row, "_id", where)
        documents.append(Document(text, metadata, id=identity))
    grades = _read_qrels(qrels)
    questions = []
    for where, row in read_json_lines(folder / "queries.jsonl"):
        identity = get_text(row, "_id", where)
        if identity in grades:
            gold = [GoldDocument(d, grade) for d, grade in grades.pop(identity).items() if grade]
            questions.append(Question(identity, get_text(row, "text", where), tuple(gold)))
    if grades:
        unknown = ", ".join(map(repr, [*grades][:5]))
        raise ValueError(f"{qrels} has {len(grades)} unknown query ids: {unknown}")
    return Dataset(questions, documents, folder.name)


def _read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Return the grades of documents by query id."""
    grades: dict[str, dict[str, float]] = {}
    for index, row in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if fields := re.fullmatch(r"([^\t]+)\t([^\t]+)\t(-?\d+(?:\.\d+)?)", row):
            grades.setdefault(fields[1], {})[fields[2]] = max(0.0, float(fields[3]))
        elif index > 1:  # the first line may be a header
            raise ValueError(
                f"{path}, line {index} must be query id, document id and score, got {row!r:.80}"
            )
    return grades
