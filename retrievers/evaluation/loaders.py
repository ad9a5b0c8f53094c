"""Read questions from JSON lines, CSV, SQuAD-style files and BEIR-style folders."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ..validation import choice
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question

_logger = logging.getLogger("nodekin")

FIELDS = ("id", "question", "passages", "document_ids", "spans", "answers", "answerable")
"""What a question is read from."""

SquadGold = Literal["passages", "documents", "spans"]
"""What is gold of a SQuAD-style file: the paragraph, its document, or the answer's place in it."""


def load_jsonl(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file with a JSON object in each line.

    An object has ``question``, and may have ``id`` (the number of the line without), ``passages``
    (texts, or grades by text), ``document_ids`` (a list, or grades by id), ``spans`` (objects with
    ``document_id``, ``start``, ``end`` and perhaps ``text`` and ``grade``), ``answers`` and
    ``answerable`` (true without). A single text may stand in place of a list. Other fields are not
    read.

    Args:
        path: The file, in UTF-8.
        fields: What these are called in the file: ``{"passages": "context"}``.

    Raises:
        ValueError: If a line is no such object, no line has a question, or an id is there twice.
    """
    path = Path(path)
    names = _names(fields)
    rows = _json_lines(path)
    questions = [_question(row, names, f"{path}, line {line}", str(line)) for line, row in rows]
    return Dataset(questions, name=path.name)


def save_jsonl(dataset: Dataset, path: str | Path) -> None:
    """Write questions to a file that ``load_jsonl`` reads; documents are not written.

    Args:
        dataset: The questions.
        path: The file; one that is there is replaced.
    """
    with Path(path).open("w", encoding="utf-8") as file:
        for question in dataset.questions:
            file.write(json.dumps(_row(question), ensure_ascii=False) + "\n")


def _row(question: Question) -> dict[str, Any]:
    passages = {one.text: one.grade for one in question.gold if isinstance(one, GoldPassage)}
    documents = {o.document_id: o.grade for o in question.gold if isinstance(o, GoldDocument)}
    spans = [asdict(one) for one in question.gold if isinstance(one, GoldSpan)]
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

    Columns are those of ``load_jsonl``; a span is written ``document:start-end``. Several
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
    names = _names(fields)
    merged: dict[str, Question] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = list(reader.fieldnames or ())
        required = {"question", *(fields or ())}
        for name in [names[field] for field in names if field in required]:
            if name not in columns:
                raise ValueError(
                    f"{path} has no column {name!r}, but {nearest_names(name, columns)}; say by "
                    "fields= what its columns are called"
                )
        for row in reader:
            values: dict[str, Any] = {}
            for field, name in names.items():
                cell = (row.get(name) or "").strip()
                if field in ("id", "question", "answerable"):
                    values[name] = cell or None
                else:
                    parts = [part.strip() for part in cell.split(separator) if part.strip()]
                    values[name] = [_span(p) for p in parts] if field == "spans" else parts
            where = f"{path}, line {reader.line_num}"
            question = _question(values, names, where, str(reader.line_num))
            earlier = merged.get(question.id)
            if earlier is not None:
                if earlier.text != question.text:
                    raise ValueError(
                        f"{where}: question id {question.id!r} is there with another question; "
                        "give each question an id of its own"
                    )
                gold = tuple(dict.fromkeys(earlier.gold + question.gold))
                answers = tuple(dict.fromkeys(earlier.answers + question.answers))
                answerable = earlier.answerable and question.answerable
                question = Question(question.id, question.text, gold, answers, answerable)
            merged[question.id] = question
    return Dataset(merged.values(), name=path.name)


def load_squad(path: str | Path, gold: SquadGold = "passages") -> Dataset:
    """Read a file in the form of SQuAD, also CMRC, DRCD and XQuAD.

    Each paragraph is a document of the data set (once, where paragraphs are equal), with the title
    of its article as metadata. A question that can't be answered has no gold. A span is where the
    answer's text is in the paragraph, nearest to the place that the file says (CMRC's development
    set says -1 of some); a question whose answer is not in its paragraph has none, which is logged.

    Args:
        path: The file, in UTF-8.
        gold: The paragraph as a passage, as a document, or the answers' places in it.

    Raises:
        ValueError: If the file has another form, or a question id is there twice.
    """
    path = Path(path)
    choice(gold, "gold", get_args(SquadGold))
    try:
        articles = json.loads(path.read_text(encoding="utf-8-sig"))["data"]
        documents: dict[str, Document] = {}
        questions = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                title = article.get("title")
                document = documents.setdefault(
                    text, Document(text, {"title": title} if title else {})
                )
                for item in paragraph["qas"]:
                    answerable = not item.get("is_impossible")
                    answers = item.get("answers", []) if answerable else []
                    questions.append(
                        Question(
                            str(item["id"]),
                            item["question"],
                            _squad_gold(gold, document, answers) if answers else (),
                            tuple(dict.fromkeys(answer["text"] for answer in answers)),
                            answerable,
                        )
                    )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} has not the form of SQuAD ({type(error).__name__}: {error}); it is an object "
            "with data, paragraphs, context, qas, id, question and answers"
        ) from error
    placeless = sum(bool(question.answers) and not question.gold for question in questions)
    if placeless:
        _logger.warning(
            "%d questions of %s have an answer that is not in its paragraph, and so no gold span",
            *(placeless, path),
        )
    return Dataset(questions, documents.values(), path.name)


def load_beir(folder: str | Path, split: str = "test") -> Dataset:
    """Read a folder in the form of BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    Documents have their ids and titles. Only queries with a line in the split are read; documents
    with the score 0 are not relevant, and are not gold.

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
            others = sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))
            raise ValueError(
                f"there is no {path}; a folder of BEIR has corpus.jsonl, queries.jsonl and qrels, "
                f"where there are {nearest_names(split, others)}"
            )
    documents = [
        Document(
            _text(row, "text", where),
            {"title": row["title"]} if row.get("title") else {},
            id=_text(row, "_id", where),
        )
        for line, row in _json_lines(folder / "corpus.jsonl")
        for where in [f"{folder / 'corpus.jsonl'}, line {line}"]
    ]
    grades: dict[str, dict[str, float]] = {}
    for number, row in enumerate(qrels.read_text(encoding="utf-8-sig").splitlines(), 1):
        cells = row.split("\t")
        if number == 1 and not _is_number(cells[-1]):
            continue  # the header
        if len(cells) != 3 or not _is_number(cells[2]):
            raise ValueError(
                f"{qrels}, line {number} is no query id, document id and score: {row!r:.80}"
            )
        grades.setdefault(cells[0], {})[cells[1]] = float(cells[2])
    path = folder / "queries.jsonl"
    questions = [
        Question(
            identity,
            _text(row, "text", f"{path}, line {line}"),
            tuple(GoldDocument(d, grade) for d, grade in grades[identity].items() if grade > 0),
        )
        for line, row in _json_lines(path)
        for identity in [_text(row, "_id", f"{path}, line {line}")]
        if identity in grades
    ]
    known = {question.id for question in questions}
    if lost := [identity for identity in grades if identity not in known]:
        raise ValueError(
            f"{qrels} has {len(lost)} query ids that {path.name} lacks: "
            f"{', '.join(map(repr, lost[:5]))}"
        )
    return Dataset(questions, documents, folder.name)


def _names(fields: Mapping[str, str] | None) -> dict[str, str]:
    for field in fields or ():
        if field not in FIELDS:
            raise ValueError(
                f"there is no field {field!r}; there are {nearest_names(field, FIELDS)}"
            )
    return {field: (fields or {}).get(field, field) for field in FIELDS}


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number} is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {number} is no JSON object but {line!r:.80}")
        yield number, row


def _question(
    row: Mapping[str, Any], names: Mapping[str, str], where: str, number: str
) -> Question:
    text = _text(row, names["question"], where)
    identity = row.get(names["id"])
    passages = row.get(names["passages"])
    gold: list[Gold]
    if isinstance(passages, Mapping):
        gold = [GoldPassage(str(text), float(grade)) for text, grade in passages.items()]
    else:
        gold = [GoldPassage(text) for text in _texts(row, names["passages"], where)]
    ids = row.get(names["document_ids"])
    if isinstance(ids, Mapping):
        gold += [GoldDocument(str(key), float(grade)) for key, grade in ids.items()]
    else:
        gold += [GoldDocument(one) for one in _texts(row, names["document_ids"], where)]
    for span in row.get(names["spans"]) or ():
        try:
            gold.append(
                GoldSpan(
                    *(span["document_id"], span["start"], span["end"], span.get("text") or ""),
                    float(span.get("grade", 1)),
                )
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{where}: a span is an object with document_id, start and end, not {span!r:.80}"
            ) from error
    answers = tuple(_texts(row, names["answers"], where))
    answerable = row.get(names["answerable"])
    if isinstance(answerable, str):
        answerable = {"true": True, "1": True, "false": False, "0": False}.get(
            answerable.casefold(), answerable
        )
    if not (answerable is None or isinstance(answerable, bool)):
        raise ValueError(f"{where}: {names['answerable']!r} is true or false, not {answerable!r}")
    identity = number if identity is None else str(identity)
    return Question(identity, text, tuple(gold), answers, answerable is not False)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # an id
    if not isinstance(value, str):
        raise ValueError(
            f"{where} has no text {name!r}, but {nearest_names(name, row)}; say by fields= what it "
            "is called"
            if name not in row
            else f"{where}: {name!r} is no text but {value!r:.80}"
        )
    return value


def _texts(row: Mapping[str, Any], name: str, where: str) -> Sequence[str]:
    value = row.get(name)
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError(f"{where}: {name!r} is a text or a list of texts, not {value!r:.80}")
    return values


def _span(text: str) -> dict[str, Any]:
    document, _, place = text.rpartition(":")
    start, _, end = place.partition("-")
    if not (document and start.isdigit() and end.isdigit()):
        return {"text": text}  # refused with the line's number
    return {"document_id": document, "start": int(start), "end": int(end)}


def _squad_gold(
    kind: SquadGold, document: Document, answers: Iterable[Mapping[str, Any]]
) -> tuple[Gold, ...]:
    if kind == "passages":
        return (GoldPassage(document.text),)
    if kind == "documents":
        return (GoldDocument(document.id),)
    places = ((_place(answer, document.text), answer["text"]) for answer in answers)
    spans = (GoldSpan(document.id, at, at + len(t), t) for at, t in places if at >= 0 and t)
    return tuple(dict.fromkeys(spans))


def _place(answer: Mapping[str, Any], text: str) -> int:
    """Return where an answer is in its paragraph, -1 where it isn't: the nearest to its place."""
    wanted, start = answer["text"], answer["answer_start"]
    places = [match.start() for match in re.finditer(re.escape(wanted), text)]
    return min(places, key=lambda place: abs(place - start), default=-1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
