"""Store the results of evaluated systems in a file of JSON lines, so that they can be resumed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from .dataset import Question
from .matching import RetrievedItem


@dataclass(frozen=True, slots=True)
class Record:
    """The results of one system for one question.

    Attributes:
        setup: The name of the system.
        question_id: The id of the question.
        question: The text of the question.
        top_k: The number of requested results.
        items: The results, best first. For a query engine the sources of the answer.
        answer: The answer of a query engine. None: a retriever.
        seconds: The duration.
        model_calls: The number of language model calls of this package.
        error: The exception. Empty: success.
        model_tokens: The number of tokens of these calls, prompts and answers.
    """

    setup: str
    question_id: str
    question: str
    top_k: int
    items: tuple[RetrievedItem, ...] = ()
    answer: str | None = None
    seconds: float = 0.0
    model_calls: int = 0
    error: str = ""
    model_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The number of tokens of the results, see ``count_tokens``."""
        return sum(item.tokens for item in self.items)


def document_hashes(documents: Iterable[Document]) -> dict[str, str]:
    """Return a hash of each document's text by id."""
    return {
        d.id: hashlib.blake2b(d.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        for d in documents
    }


def document_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Describe the changes of documents between two evaluations. May be empty.

    Example:
        >>> document_changes({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"})
        "1 changed ('b'), 1 new ('c')"
    """
    changes = {
        "changed": [name for name in before if name in now and now[name] != before[name]],
        "new": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
    }
    return ", ".join(
        f"{len(n)} {change} ({first_names(n, 3)})" for change, n in changes.items() if n
    )


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first names, with an ellipsis if there are more."""
    return ", ".join(map(repr, names[:count])) + ", ..." * (len(names) > count)


class RecordFile:
    """A file of JSON lines with the records of systems. Reading does not change the file.

    The file stores a description of each system. An incomplete last line, of a killed process, is
    ignored and removed by the next ``add``.

    Args:
        path: The file. None: keep records in memory.
        setups: The description of each system by name.
        documents: The hashes of the documents, see ``document_hashes``. Empty: unknown.
        missing: The number of missing gold items by question id.

    Attributes:
        documents: The hashes of the documents, of the file if it has some.
        missing: The numbers of missing gold items, of the file if it has some.
        described: The description of each system in the file by name.

    Raises:
        ValueError: If the file has results of other systems or documents, or another format.
    """

    def __init__(
        self,
        path: str | Path | None,
        setups: Mapping[str, str],
        documents: Mapping[str, str] | None = None,
        missing: Mapping[str, int] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.documents: Mapping[str, str] = documents or {}
        self.missing: Mapping[str, int] = missing or {}
        self.setups = {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in setups.items()}
        self.records: dict[tuple[str, str], Record] = {}
        self.described: dict[str, str] = {}
        self._size = 0  # bytes of complete lines
        if self.path is None or not self.path.exists():
            return
        data = self.path.read_bytes()
        self._size = data.rfind(b"\n") + 1
        try:
            for line in data[: self._size].decode("utf-8").split("\n")[:-1]:
                self._load(json.loads(line))
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(
                f"{path} must be a file of an evaluation, got {type(e).__name__}: {e}"
            ) from e

    def add(self, record: Record) -> None:
        """Append a record."""
        self.records[record.setup, record.question_id] = record
        if self.path is None:
            return
        rows = [asdict(record)]
        if record.setup not in self.described:
            self.described[record.setup] = self.setups[record.setup]
            header = {"documents": self.documents, "missing_gold": self.missing}
            rows.insert(0, {**header, "setups": self.described})
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with self.path.open("ab") as file:
            file.truncate(self._size)
            file.write(lines)
        self._size += len(lines)

    def is_done(self, setup: str, question: Question, top_k: int) -> bool:
        """Return whether a question has a record with enough results and without error."""
        record = self.records.get((setup, question.id))
        if record is None or record.error:
            return False
        return record.question == question.text and record.top_k >= top_k

    def of(self, setup: str, questions: Iterable[Question], top_k: int) -> dict[str, Record]:
        """Return the records of a system by question id, each with at most ``top_k`` results."""
        records = (self.records[setup, question.id] for question in questions)
        return {r.question_id: replace(r, items=r.items[:top_k]) for r in records}

    def _load(self, row: dict[str, Any]) -> None:
        if "setups" not in row:
            items = tuple(RetrievedItem(**item) for item in row.pop("items"))
            record = Record(items=items, **row)
            self.records[record.setup, record.question_id] = record
            return
        both = row["documents"] and self.documents
        if changes := both and document_changes(row["documents"], self.documents):
            raise ValueError(
                f"{self.path} has results of other documents: {changes}; choose another file"
            )
        self.documents, self.missing = row["documents"], row["missing_gold"]
        for name, description in row["setups"].items():
            if description != (now := self.setups.get(name, description)):
                raise ValueError(
                    f"{self.path} has results of another {name!r}: {description:.200}; now it is "
                    f"{now:.200}; choose another name or file"
                )
        self.described = row["setups"]
