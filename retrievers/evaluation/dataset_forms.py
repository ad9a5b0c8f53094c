"""Read questions by the form of a file: SQuAD, BEIR, JSON lines, CSV."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ..validation import choice
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question
from .loaders import get_text, is_csv, load_csv, load_jsonl, read_json, read_json_lines

_logger = logging.getLogger("nodekin")

SquadGold = Literal["passages", "documents", "spans"]
"""The gold of a SQuAD file: the paragraph, its document, or the position of the answer."""

_FORMS = (
    "not a known form of questions: give a BEIR folder, .jsonl, .csv, or .json in the form of SQuAD"
)


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file or folder, by its form.

    A folder is read by ``load_beir``, ``.jsonl`` by ``load_jsonl``, ``.csv`` by ``load_csv``,
    ``.json`` by ``load_squad``. Call these functions for their options.

    Args:
        path: The file or folder.
        fields: The names of columns or fields in ``.jsonl`` and ``.csv``.

    Raises:
        FileNotFoundError: If the file or folder does not exist.
        ValueError: If the form is unknown, or there are no questions.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r} with questions")
    suffix = path.suffix.lower()
    if fields and (path.is_dir() or suffix == ".json"):
        raise ValueError(f"{path} has fields of its own; leave fields out, or convert it to .jsonl")
    if path.is_dir():
        return load_beir(path)
    if is_csv(path):
        return load_csv(path, fields)
    if suffix in (".jsonl", ".ndjson"):
        return load_jsonl(path, fields)
    if suffix == ".json":
        content = read_json(path)
        if isinstance(content, Mapping) and "data" in content:
            return load_squad(path)
    raise ValueError(f"{path} is {_FORMS}")


def load_squad(path: str | Path, gold: SquadGold = "passages") -> Dataset:
    """Read a file in the form of SQuAD, also CMRC, DRCD and XQuAD.

    Each paragraph is a document of the data set (once, where paragraphs are equal), with the title
    of its article as metadata. A question that can't be answered has no gold. A span is where the
    answer's text is in the paragraph, nearest to the place that the file says (CMRC's development
    set says -1 of some). A question whose answer is not in its paragraph has none, which is logged.

    Args:
        path: The file, in UTF-8.
        gold: The paragraph as a passage, as a document, or the answers' places in it.

    Raises:
        ValueError: If the file has another form, or a question id is there twice.
    """
    path = Path(path)
    choice(gold, "gold", get_args(SquadGold))
    content = read_json(path)
    try:
        articles = content["data"]
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
    except (KeyError, TypeError, AttributeError) as error:
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

    Documents have their ids and titles. Only queries with a line in the split are read. Documents
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
            get_text(row, "text", where),
            {"title": row["title"]} if row.get("title") else {},
            id=get_text(row, "_id", where),
        )
        for where, row in read_json_lines(folder / "corpus.jsonl")
    ]
    grades: dict[str, dict[str, float]] = {}
    for index, row in enumerate(qrels.read_text(encoding="utf-8-sig").splitlines(), 1):
        cells = row.split("\t")
        if index == 1 and not _is_numeric(cells[-1]):
            continue  # the header
        if len(cells) != 3 or not _is_numeric(cells[2]):
            raise ValueError(
                f"{qrels}, line {index} is no query id, document id and score: {row!r:.80}"
            )
        grades.setdefault(cells[0], {})[cells[1]] = float(cells[2])
    path = folder / "queries.jsonl"
    questions = [
        Question(
            identity,
            get_text(row, "text", where),
            tuple(GoldDocument(d, grade) for d, grade in grades[identity].items() if grade > 0),
        )
        for where, row in read_json_lines(path)
        for identity in [get_text(row, "_id", where)]
        if identity in grades
    ]
    existing = {question.id for question in questions}
    if lost := [identity for identity in grades if identity not in existing]:
        raise ValueError(
            f"{qrels} has {len(lost)} query ids that {path.name} lacks: "
            f"{', '.join(map(repr, lost[:5]))}"
        )
    return Dataset(questions, documents, folder.name)


def _squad_gold(
    kind: SquadGold, document: Document, answers: Iterable[Mapping[str, Any]]
) -> tuple[Gold, ...]:
    if kind == "passages":
        return (GoldPassage(document.text),)
    if kind == "documents":
        return (GoldDocument(document.id),)
    positions = ((_location(answer, document.text), answer["text"]) for answer in answers)
    spans = (GoldSpan(document.id, at, at + len(t), t) for at, t in positions if at >= 0 and t)
    return tuple(dict.fromkeys(spans))


def _location(answer: Mapping[str, Any], text: str) -> int:
    """Return where an answer is in its paragraph, -1 where it isn't: the nearest to its place."""
    expected, start = answer["text"], answer["answer_start"]
    positions = [match.start() for match in re.finditer(re.escape(expected), text)]
    return min(positions, key=lambda position: abs(position - start), default=-1)


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
