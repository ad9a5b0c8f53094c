"""Data sets of questions with relevant passages, and their files: JSON Lines, CSV, SQuAD, BEIR."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """The text of a relevant passage, which a retriever should return.

    Attributes:
        text: The text of the passage.
        grade: The grade of relevance, greater than 0. It is the weight of the passage in nDCG.

    Example:
        >>> gold = GoldPassage("Green tea is not fermented.", grade=2)
        >>> Question("1", "Which tea is not fermented?", (gold,)).gold[0].grade
        2
    """

    text: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """The id of a relevant document. Every result from this document counts as relevant.

    Attributes:
        document_id: The id of the document.
        grade: The grade of relevance, greater than 0. It is the weight of the document in nDCG.

    Example:
        >>> question = Question("1", "Which tea is not fermented?", (GoldDocument("tea.md"),))
        >>> question.gold
        (GoldDocument(document_id='tea.md', grade=1.0),)
    """

    document_id: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """A relevant span of a document. Results that overlap it by a token or more are relevant.

    Attributes:
        document_id: The id of the document.
        start: The start of the span in the document's text, in characters.
        end: The end of the span (exclusive), in characters.
        text: The text of the span, which is used to find the span again after the document was
            edited. If the text is empty, the span cannot be found again, and an overlap by one
            character is sufficient.
        grade: The grade of relevance, greater than 0. It is the weight of the span in nDCG.

    Raises:
        ValueError: If ``start`` is negative, or ``end`` is not greater than ``start``.

    Example:
        >>> text = "Rivers run. Green tea is not fermented."
        >>> span = GoldSpan("tea.md", 12, 39, text[12:39])
        >>> span.text
        'Green tea is not fermented.'
    """

    document_id: str
    start: int
    end: int
    text: str = ""
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"a gold span must have 0 <= start < end, got {self.start} to {self.end} in "
                f"document {self.document_id!r}"
            )


Gold: TypeAlias = GoldPassage | GoldDocument | GoldSpan


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its relevant passages and its correct answers.

    Attributes:
        id: The id, which must be unique in a data set.
        text: The text of the question, which is used as the query.
        gold: The relevant passages, documents and spans. If this is empty, ranking metrics do not
            judge the question.
        answers: The correct answers, which are alternatives.
        answerable: Whether the documents answer the question. If not, the correct answer is
            "unknown".

    Example:
        >>> gold = (GoldDocument("nile.md"),)
        >>> question = Question("1", "How long is the Nile?", gold, answers=("6,650 km",))
        >>> question.answers, question.answerable
        (('6,650 km',), True)
    """

    id: str
    text: str
    gold: tuple[Gold, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set of questions, and the documents to search if the source of the data set includes them.

    Args:
        questions: The questions. At least one is required, and each must have a unique id.
        documents: The documents to search. They are empty if the source contains questions only.
        name: The name of the data set in reports.

    Raises:
        ValueError: If the data set has no questions, an id is repeated, or a grade is not greater
            than 0.

    Example:
        >>> data = Dataset([Question("1", "Which tea is green?", (GoldDocument("tea"),))])
        >>> len(data)
        1
    """

    questions: Sequence[Question]
    documents: Sequence[Document] = ()
    name: str = "questions"

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "documents", tuple(self.documents))
        if not self.questions:
            raise ValueError(f"{self.name} has no questions; a data set needs at least one")
        counts = Counter(question.id for question in self.questions)
        if repeated := [repr(key) for key, count in counts.items() if count > 1]:
            raise ValueError(
                f"question ids of {self.name} must be unique, got {', '.join(repeated[:5])} "
                "repeatedly"
            )
        for question in self.questions:
            if any(not gold.grade > 0 for gold in question.gold):
                raise ValueError(
                    f"grades must be above 0, got {min(g.grade for g in question.gold)!r} in "
                    f"question {question.id!r} of {self.name}; leave out irrelevant passages"
                )

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} questions, {len(self.documents)} documents)"


FIELDS = ("id", "question", "passages", "document_ids", "spans", "answers", "answerable")
"""The names of the fields of a question in a file."""

_ANSWERABLE = {"true": True, "1": True, "none": True, "false": False, "0": False}


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Load questions from a BEIR folder, or from a ``.jsonl``, ``.csv`` or ``.json`` (SQuAD) file.

    Args:
        path: The path of the file or folder.
        fields: The names of fields or columns in ``.jsonl`` and ``.csv`` files that differ from the
            default names.

    Raises:
        FileNotFoundError: If the file or folder does not exist.
        ValueError: If the format is unknown or the file contains no questions.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r} with questions")
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".csv"):
        load = load_csv if suffix == ".csv" else load_jsonl
        return load(path, fields)
    if fields:
        raise ValueError(f"only .jsonl and .csv files have other field names, got {str(path)!r}")
    if not path.is_dir() and suffix != ".json":
        raise ValueError(f"questions must be a BEIR folder, .jsonl, .csv or .json, got {path}")
    if path.is_dir():
        return load_beir(path)
    return load_squad(path)


def load_jsonl(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Load questions from a file that contains one JSON object per line.

    The fields of an object are ``question`` (required), ``id`` (the line number by default),
    ``passages`` (a list of texts, or a mapping from texts to grades), ``document_ids`` (a list, or
    a mapping from ids to grades), ``spans`` (objects with ``document_id``, ``start``, ``end``, and
    optionally ``text`` and ``grade``), ``answers`` and ``answerable`` (true by default). A single
    text is treated as a list with one item. Other fields are ignored.

    Args:
        path: The path of the file, which must be encoded in UTF-8.
        fields: The names of fields in the file that differ from the default names, such as
            ``{"passages": "context"}``.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line is not a valid object, an id is repeated, the file contains no
            questions, or ``fields`` contains an unknown field.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> row = {"question": "How long is the Nile?", "answers": "6,650 km"}
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "questions.jsonl")
        ...     _ = path.write_text(json.dumps(row))
        ...     data = load_jsonl(path)
        >>> data, data.questions[0].answers
        (Dataset('questions.jsonl', 1 questions, 0 documents), ('6,650 km',))
    """
    path = Path(path)
    names = _names(fields)
    questions = [_question(row, names, where) for where, row in _json_lines(path)]
    return Dataset(questions, name=path.name)


def load_csv(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Load questions from a CSV file with a header.

    The columns correspond to the fields of ``load_jsonl``. Several values in a cell are separated
    by ``|``. A span is written as ``document:start-end``.

    Args:
        path: The path of the file, which must be encoded in UTF-8.
        fields: The names of columns in the file that differ from the default names, such as
            ``{"question": "Frage"}``.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the column of questions is missing, a value is invalid, an id is repeated, a
            row cannot be read, the file contains no questions, or ``fields`` contains an unknown
            field.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "questions.csv")
        ...     _ = path.write_text("Frage,spans\\nWie lang ist der Nil?,nile.md:0-26")
        ...     data = load_csv(path, {"question": "Frage"})
        >>> data.questions[0].text, data.questions[0].gold[0].end
        ('Wie lang ist der Nil?', 26)
    """
    path = Path(path)
    names = _names(fields)
    questions = []
    for where, row in _csv_lines(path):
        for field in ("passages", "document_ids", "spans", "answers"):
            if cell := row.get(name := names[field]):
                row[name] = [part.strip() for part in cell.split("|")]
        if spans := row.get(names["spans"]):
            row[names["spans"]] = [_span(text) for text in spans]
        questions.append(_question(row, names, where))
    return Dataset(questions, name=path.name)


def _span(text: str) -> dict[str, str] | None:
    """Parse a span that is written as ``document:start-end``.

    If it is invalid, None is returned.
    """
    match = re.fullmatch(r"(.+):(\d+)-(\d+)", text)
    return match and {"document_id": match[1], "start": match[2], "end": match[3]}


def _csv_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the non-empty cells of each row, together with the path and the line number.

    Raises:
        ValueError: If a row cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = (line.replace("\0", "") for line in file)  # Python 3.10 cannot read NUL characters
        reader = csv.DictReader(lines)
        try:
            for cells in reader:
                where = f"{path}, line {reader.line_num}"
                yield where, {n: c.strip() for n, c in cells.items() if n and c and c.strip()}
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num + 1}: {error}") from error


def _names(fields: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping from the default names of the fields to their names in a file."""
    for field in fields or ():
        if field not in FIELDS:
            raise ValueError(f"a field must be {nearest_names(field, FIELDS)}, got {field!r}")
    return {field: (fields or {}).get(field, field) for field in FIELDS}


def _question(row: Mapping[str, Any], names: Mapping[str, str], where: str) -> Question:
    """Convert a row of a file to a question.

    Raises:
        ValueError: If a field is missing or invalid.
    """
    if (name := names["question"]) not in row:
        raise ValueError(
            f"{where} has no field {name!r}, only {nearest_names(name, row)}; rename it by fields="
        )
    values = {field: row.get(name) for field, name in names.items()}
    answerable = _ANSWERABLE.get(str(values["answerable"]).casefold())
    if answerable is None:
        raise ValueError(f"{where}: answerable must be true or false, got {values['answerable']!r}")
    try:
        gold = _gold(values)
        answers = tuple(text for text, _ in _graded(values["answers"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{where} has invalid gold ({type(error).__name__}: {error}): passages, document_ids "
            "and answers must be a text or a list of texts, and a span must have document_id, "
            "start and end"
        ) from error
    identity = where.rpartition(" ")[2] if values["id"] is None else str(values["id"])
    return Question(identity, str(values["question"]), tuple(gold), answers, answerable)


def _gold(values: Mapping[str, Any]) -> list[Gold]:
    """Return the relevant passages, documents and spans of a row."""
    gold: list[Gold] = [GoldPassage(text, grade) for text, grade in _graded(values["passages"])]
    for document_id, grade in _graded(values["document_ids"]):
        gold.append(GoldDocument(document_id, grade))
    for span in values["spans"] or ():
        gold.append(
            GoldSpan(
                span["document_id"],
                int(span["start"]),
                int(span["end"]),
                span.get("text") or "",
                float(span.get("grade", 1)),
            )
        )
    return gold


def _graded(value: Any) -> list[tuple[str, float]]:
    """Return pairs of a text and its grade.

    The value is a single text, a list of texts, or a mapping from texts to grades.
    """
    if isinstance(value, Mapping):
        return [(str(text), float(grade)) for text, grade in value.items()]
    if isinstance(value, str):
        return [(value, 1.0)]
    texts = value or []
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"got {value!r:.80}")
    return [(text, 1.0) for text in texts]


def _json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the JSON object of each line, together with the path and the line number.

    Raises:
        ValueError: If a line does not contain a JSON object.
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


def load_squad(path: str | Path) -> Dataset:
    """Load a file in the format of SQuAD, which CMRC, DRCD and XQuAD also use.

    Each paragraph becomes a document, with the title of its article as metadata. The paragraph is
    the relevant passage for its questions. Unanswerable questions have no relevant passages.

    Args:
        path: The path of the file, which must be encoded in UTF-8.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file has a different format, or a question id is repeated.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> item = {"id": "1", "question": "How long?", "answers": [{"text": "6,650 km"}]}
        >>> paragraph = {"context": "The Nile is 6,650 km long.", "qas": [item]}
        >>> articles = [{"title": "Nile", "paragraphs": [paragraph]}]
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "squad.json")
        ...     _ = path.write_text(json.dumps({"data": articles}))
        ...     data = load_squad(path)
        >>> data.documents[0].metadata, data.questions[0].answers
        ({'title': 'Nile'}, ('6,650 km',))
    """
    path = Path(path)
    documents: dict[str, Document] = {}
    questions = []
    try:
        for article in json.loads(path.read_text(encoding="utf-8-sig"))["data"]:
            metadata = _title(article)
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                document = documents.setdefault(text, Document(text, metadata))
                for item in paragraph["qas"]:
                    questions.append(_squad_question(item, GoldPassage(document.text)))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must have the form of SQuAD (data, paragraphs, context, qas, id, question, "
            f"answers), got {type(error).__name__}: {error}"
        ) from error
    return Dataset(questions, list(documents.values()), path.name)


def _squad_question(item: Mapping[str, Any], passage: GoldPassage) -> Question:
    """Convert a question of a paragraph. A question without answers has no relevant passage."""
    answerable = not item.get("is_impossible")
    answers = item.get("answers", []) if answerable else []
    texts = tuple(dict.fromkeys(answer["text"] for answer in answers))
    gold = (passage,) if answers else ()
    return Question(str(item["id"]), item["question"], gold, texts, answerable)


def _title(row: Mapping[str, Any]) -> dict[str, Any]:
    if not row.get("title"):
        return {}
    return {"title": row["title"]}


def load_beir(folder: str | Path, split: str = "test") -> Dataset:
    """Load a folder in the format of BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    Only queries that occur in the selected split are loaded. Documents with a score of 0 are not
    relevant. All other scores are used as grades of relevance.

    Args:
        folder: The path of the folder.
        split: The name of the file in ``qrels``, without its suffix.

    Raises:
        FileNotFoundError: If ``corpus.jsonl`` or ``queries.jsonl`` does not exist.
        ValueError: If the file of the split does not exist, or a file has a different format.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> files = {
        ...     "corpus.jsonl": '{"_id": "nile", "text": "The Nile is 6,650 km long."}',
        ...     "queries.jsonl": '{"_id": "1", "text": "How long is the Nile?"}',
        ...     "qrels/test.tsv": "query-id\\tcorpus-id\\tscore\\n1\\tnile\\t1",
        ... }
        >>> with TemporaryDirectory() as folder:
        ...     Path(folder, "qrels").mkdir()
        ...     for name, text in files.items():
        ...         _ = Path(folder, name).write_text(text)
        ...     data = load_beir(folder)
        >>> data.questions[0].gold
        (GoldDocument(document_id='nile', grade=1.0),)
    """
    folder = Path(folder)
    qrels = folder / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        splits = sorted(path.stem for path in qrels.parent.glob("*.tsv"))
        raise ValueError(f"a BEIR folder must have {qrels}; splits: {nearest_names(split, splits)}")
    try:
        documents = [
            Document(row["text"], _title(row), id=row["_id"])
            for _, row in _json_lines(folder / "corpus.jsonl")
        ]
        texts = {row["_id"]: row["text"] for _, row in _json_lines(folder / "queries.jsonl")}
        gold: dict[str, list[GoldDocument]] = {}
        for index, line in enumerate(qrels.read_text(encoding="utf-8-sig").splitlines()):
            query, document, score = line.split("\t")
            if index or score.isdecimal():  # the first line may be a header
                of_query = gold.setdefault(query, [])
                if float(score) > 0:
                    of_query.append(GoldDocument(document, float(score)))
        questions = [Question(query, texts[query], tuple(of)) for query, of in gold.items()]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder} must have the form of BEIR: documents and queries with _id and text, and "
            f"qrels with query id, document id and score, got {type(error).__name__}: {error}"
        ) from error
    return Dataset(questions, documents, folder.name)
