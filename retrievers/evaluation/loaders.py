"""Read questions from JSON lines and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from ...nodegraph.errors import nearest_names
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question

Row: TypeAlias = Mapping[str, Any]

FIELDS = ("id", "question", "passages", "document_ids", "spans", "answers", "answerable")
"""What a question is read from."""


def load_jsonl(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file with a JSON object in each line.

    An object has ``question``, and may have ``id`` (the number of the line without), ``passages``
    (texts, or grades by text), ``document_ids`` (a list, or grades by id), ``spans`` (objects with
    ``document_id``, ``start``, ``end`` and perhaps ``text`` and ``grade``), ``answers`` and
    ``answerable`` (true without). A single text may stand instead of a list. Other fields are not
    read.

    Args:
        path: The file, in UTF-8.
        fields: What these are called in the file: ``{"passages": "context"}``.

    Raises:
        ValueError: If a line is no such object, no line has a question, or an id is there twice.
    """
    path = Path(path)
    names = _field_names(fields, FIELDS)
    questions = [_question(row, names, where) for where, row in read_json_lines(path)]
    return Dataset(questions, name=path.name)


def save_jsonl(dataset: Dataset, path: str | Path) -> None:
    """Write questions to a file that ``load_jsonl`` reads. Documents are not written.

    Args:
        dataset: The questions.
        path: The file. One that is there is replaced.
    """
    with Path(path).open("w", encoding="utf-8") as file:
        for question in dataset.questions:
            file.write(json.dumps(_row(question), ensure_ascii=False) + "\n")


def _row(question: Question) -> dict[str, Any]:
    passages = {item.text: item.grade for item in question.gold if isinstance(item, GoldPassage)}
    documents = {o.document_id: o.grade for o in question.gold if isinstance(o, GoldDocument)}
    spans = [asdict(item) for item in question.gold if isinstance(item, GoldSpan)]
    row = {
        "id": question.id,
        "question": question.text,
        "passages": list(passages) if {*passages.values()} <= {1.0} else passages,
        "document_ids": documents,
        "spans": spans,
        "answers": list(question.answers),
    }
    row = {field: value for field, value in row.items() if value}
    return {**row, "question": question.text} | (
        {} if question.answerable else {"answerable": False}
    )


def load_csv(
    path: str | Path, fields: Mapping[str, str] | None = None, *, separator: str = "|"
) -> Dataset:
    """Read questions from a CSV file with a header.

    Columns are those of ``load_jsonl``. A span is written ``document:start-end``. Several
    passages, ids, spans or answers stand in one cell with the separator between them, or in rows
    with the same ``id`` and question.

    Args:
        path: The file, in UTF-8.
        fields: What the columns are called in the file: ``{"question": "Frage"}``.
        separator: What stands between several values in a cell.

    Raises:
        ValueError: If there is no column with questions, or one id has two questions.
    """
    path = Path(path)
    names = _field_names(fields, FIELDS)
    columns, rows = read_csv(path)
    for name in [names[field] for field in names if field in {"question", *(fields or ())}]:
        if name not in columns:
            raise ValueError(
                f"{path} has no column {name!r}, but {nearest_names(name, columns)}; say by "
                "fields= what its columns are called"
            )
    merged: dict[str, Question] = {}
    for where, row in rows:
        values: dict[str, Any] = {}
        for field, name in names.items():
            cell = (row.get(name) or "").strip()
            if field in ("id", "question", "answerable"):
                values[name] = cell or None
            else:
                parts = [part.strip() for part in cell.split(separator) if part.strip()]
                values[name] = [_span(p) for p in parts] if field == "spans" else parts
        question = _question(values, names, where)
        first = merged.setdefault(question.id, question)
        if first.text != question.text:
            raise ValueError(
                f"{where}: question id {question.id!r} is there with another question; give each "
                "question an id of its own"
            )
        if first is not question:
            merged[question.id] = Question(
                *(question.id, question.text),
                tuple(dict.fromkeys(first.gold + question.gold)),
                tuple(dict.fromkeys(first.answers + question.answers)),
                first.answerable and question.answerable,
            )
    return Dataset(merged.values(), name=path.name)


def _field_names(fields: Mapping[str, str] | None, existing: Sequence[str]) -> dict[str, str]:
    """Return what each known field is called in a file.

    Raises:
        ValueError: If a field is unknown.
    """
    for field in fields or ():
        if field not in existing:
            raise ValueError(
                f"there is no field {field!r}; there are {nearest_names(field, existing)}"
            )
    return {field: (fields or {}).get(field, field) for field in existing}


def _question(row: Row, names: Mapping[str, str], where: str) -> Question:
    """Return the question of a row. Without an id it has the number of its line."""
    text, identity = get_text(row, names["question"], where), row.get(names["id"])
    gold: list[Gold] = [GoldPassage(*item) for item in _graded(row, names["passages"], where)]
    gold += [GoldDocument(*item) for item in _graded(row, names["document_ids"], where)]
    for span in row.get(names["spans"]) or ():
        try:
            position = (span["document_id"], span["start"], span["end"], span.get("text") or "")
            gold.append(GoldSpan(*position, float(span.get("grade", 1))))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{where}: a span is an object with document_id, start and end, not {span!r:.80}"
            ) from error
    answerable = row.get(names["answerable"])
    if isinstance(answerable, str):
        words = {"true": True, "1": True, "false": False, "0": False}
        answerable = words.get(answerable.casefold(), answerable)
    if not (answerable is None or isinstance(answerable, bool)):
        raise ValueError(f"{where}: {names['answerable']!r} is true or false, not {answerable!r}")
    return Question(
        where.rpartition(" ")[2] if identity is None else str(identity),
        *(text, tuple(gold), tuple(_texts(row, names["answers"], where)), answerable is not False),
    )


def _graded(row: Row, name: str, where: str) -> list[tuple[str, float]]:
    """Return texts with their grades: a list of texts, or grades by text."""
    value = row.get(name)
    if isinstance(value, Mapping):
        return [(str(text), float(grade)) for text, grade in value.items()]
    return [(text, 1.0) for text in _texts(row, name, where)]


def _texts(row: Row, name: str, where: str) -> Sequence[str]:
    value = row.get(name)
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ValueError(f"{where}: {name!r} is a text or a list of texts, not {value!r:.80}")
    return values


def _span(text: str) -> dict[str, Any]:
    document, _, position = text.rpartition(":")
    start, _, stop = position.partition("-")
    if not (document and start.isdigit() and stop.isdigit()):
        return {"text": text}  # refused with the line's number
    return {"document_id": document, "start": int(start), "end": int(stop)}


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        ValueError: If it is not JSON.
    """
    return _parse_json(path.read_text(encoding="utf-8-sig"), path)


def read_json_lines(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the objects of a file that has one in each line, each with its path and line.

    Raises:
        ValueError: If a line is not an object.
    """
    for index, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            where = f"{path}, line {index}"
            yield where, check_row(_parse_json(line, where), where)


def read_csv(path: Path) -> tuple[list[str], list[tuple[str, Row]]]:
    """Return the columns of a CSV file, and its rows, each with its path and line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = list(reader.fieldnames or ())
        return columns, [(f"{path}, line {reader.line_num}", row) for row in reader]


def is_csv(path: Path) -> bool:
    """Return whether a file is CSV, by its name."""
    return path.suffix.casefold() == ".csv"


def _parse_json(text: str, where: object) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON: {error}") from error


def check_row(value: object, where: str) -> Row:
    """Return a row that is an object.

    Raises:
        ValueError: If it is something else.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is no JSON object but {value!r:.80}")
    return value


def get_text(row: Row, name: str, where: str) -> str:
    """Return a text of a row. A whole number is taken as one, since ids often are.

    Raises:
        ValueError: If there is none, or it is something else.
    """
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        return value
    if name in row:
        raise ValueError(f"{where}: {name!r} is no text but {value!r:.80}")
    raise ValueError(
        f"{where} has no text {name!r}, but {nearest_names(name, row)}; say by fields= what it is "
        "called"
    )
