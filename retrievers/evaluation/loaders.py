"""Read questions from JSON lines, CSV, SQuAD and BEIR. Write JSON lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question

FIELDS = ("id", "question", "passages", "document_ids", "spans", "answers", "answerable")
"""The fields of a question."""


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


def load_jsonl(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Load questions from a file with a JSON object in each line.

    Fields: ``question`` (required), ``id`` (default: the line number), ``passages`` (a list of
    texts, or grades by text), ``document_ids`` (a list, or grades by id), ``spans`` (objects with
    ``document_id``, ``start``, ``end`` and optionally ``text`` and ``grade``), ``answers`` and
    ``answerable`` (default: true). A single text counts as a list. Other fields are ignored.

    Args:
        path: The file, in UTF-8.
        fields: Other names of these fields in the file: ``{"passages": "context"}``.

    Raises:
        ValueError: If a line is not such an object, or an id is repeated.
    """
    path = Path(path)
    names = _names(fields)
    questions = []
    for where, row in read_json_lines(path):
        check_has(row, names["question"], where)
        values = {field: row.get(name) for field, name in names.items()}
        questions.append(_question(values, where))
    return Dataset(questions, name=path.name)


def load_csv(
    path: str | Path, fields: Mapping[str, str] | None = None, *, separator: str = "|"
) -> Dataset:
    """Load questions from a CSV file with a header.

    The columns are the fields of ``load_jsonl``. A span has the form ``document:start-end``.

    Args:
        path: The file, in UTF-8.
        fields: Other names of the columns in the file: ``{"question": "Frage"}``.
        separator: The separator of several values in a cell.

    Raises:
        ValueError: If a column is missing, a value is invalid, or an id is repeated.
    """
    path = Path(path)
    names = _names(fields)
    questions = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        for field in ("question", *(fields or ())):
            check_has(dict.fromkeys(reader.fieldnames or ()), names[field], str(path))
        for row in reader:
            values: dict[str, Any] = {
                field: (row.get(name) or "").strip() or None for field, name in names.items()
            }
            for field in ("passages", "document_ids", "spans", "answers"):
                parts = map(str.strip, (values[field] or "").split(separator))
                values[field] = [*filter(None, parts)]
            values["spans"] = [*map(_parse_span, values["spans"])]
            questions.append(_question(values, f"{path}, line {reader.line_num}"))
    return Dataset(questions, name=path.name)


def save_jsonl(dataset: Dataset, path: str | Path) -> None:
    """Write questions to a file that ``load_jsonl`` reads. An existing file is replaced."""
    with Path(path).open("w", encoding="utf-8") as file:
        for question in dataset.questions:
            gold = question.gold
            passages = {item.text: item.grade for item in gold if isinstance(item, GoldPassage)}
            fields = {
                "id": question.id,
                "question": question.text,
                "passages": list(passages) if {*passages.values()} <= {1.0} else passages,
                "document_ids": {
                    item.document_id: item.grade for item in gold if isinstance(item, GoldDocument)
                },
                "spans": [asdict(item) for item in gold if isinstance(item, GoldSpan)],
                "answers": list(question.answers),
                "answerable": None if question.answerable else "false",
            }
            row = {name: value for name, value in fields.items() if value or name == "question"}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _names(fields: Mapping[str, str] | None) -> dict[str, str]:
    """Return the name of each field in a file."""
    for field in fields or ():
        if field not in FIELDS:
            raise ValueError(f"a field must be {nearest_names(field, FIELDS)}, got {field!r}")
    return {field: (fields or {}).get(field, field) for field in FIELDS}


def _question(row: Mapping[str, Any], where: str) -> Question:
    """Return the question of a row."""
    gold: list[Gold] = [GoldPassage(*item) for item in _graded(row, "passages", where)]
    gold += [GoldDocument(*item) for item in _graded(row, "document_ids", where)]
    for span in row["spans"] or ():
        try:
            place = (span["document_id"], span["start"], span["end"], span.get("text") or "")
            gold.append(GoldSpan(*place, float(span.get("grade", 1))))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{where}: a span must have document_id, start and end, got {span!r:.80}"
            ) from error
    answerable = row["answerable"]
    if isinstance(answerable, str):
        words = {"true": True, "1": True, "false": False, "0": False}
        answerable = words.get(answerable.casefold(), answerable)
    if not (answerable is None or isinstance(answerable, bool)):
        raise ValueError(f"{where}: answerable must be true or false, got {answerable!r}")
    identity = where.rpartition(" ")[2] if row["id"] is None else str(row["id"])
    text = get_text(row, "question", where)
    answers = tuple(text for text, _ in _graded(row, "answers", where))
    return Question(identity, text, tuple(gold), answers, answerable is not False)


def _graded(row: Mapping[str, Any], field: str, where: str) -> list[tuple[str, float]]:
    """Return texts with grades, from a text, a list of texts, or grades by text."""
    value = row[field]
    if isinstance(value, Mapping):
        return [(str(text), float(grade)) for text, grade in value.items()]
    texts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where}: {field} must be a text or a list of texts, got {value!r:.80}")
    return [(text, 1.0) for text in texts]


def _parse_span(text: str) -> Any:
    """Parse ``document:start-end``. Other texts are returned, and rejected with their line."""
    document, _, position = text.rpartition(":")
    start, _, end = position.partition("-")
    if not (document and start.isdigit() and end.isdigit()):
        return text
    return {"document_id": document, "start": int(start), "end": int(end)}


def read_json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the JSON object of each line, with its path and line number.

    Raises:
        ValueError: If a line is not an object.
    """
    for index, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            where = f"{path}, line {index}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where} must be JSON: {error}") from error
            if not isinstance(row, Mapping):
                raise ValueError(f"{where} must be a JSON object, got {row!r:.80}")
            yield where, row


def check_has(row: Mapping[str, Any], name: str, where: str) -> None:
    """Raise a ValueError that lists the existing fields if a field is missing."""
    if name not in row:
        raise ValueError(
            f"{where} has no {name!r}, but {nearest_names(name, row)}; give its name with fields="
        )


def get_text(row: Mapping[str, Any], name: str, where: str) -> str:
    """Return a text or whole number of a row, as a text.

    Raises:
        ValueError: If the value is missing or of another type.
    """
    check_has(row, name, where)
    value = row[name]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"{where}: {name!r} must be a text, got {value!r:.80}")
    return str(value)


def load_squad(path: str | Path) -> Dataset:
    """Load a file in the form of SQuAD, also CMRC, DRCD and XQuAD.

    Each paragraph is a document of the data set, with the title of its article as metadata, and
    the gold passage of its questions. Unanswerable questions have no gold.

    Args:
        path: The file, in UTF-8.

    Raises:
        ValueError: If the file has another form, or a question id is repeated.
    """
    path = Path(path)
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
                    gold = (GoldPassage(document.text),) if answers else ()
                    identity = str(item["id"])
                    questions.append(Question(identity, item["question"], gold, texts, answerable))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must have the form of SQuAD (data, paragraphs, context, qas, id, question, "
            f"answers), got {type(error).__name__}: {error}"
        ) from error
    return Dataset(questions, list(documents.values()), path.name)


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
