"""What set-ups returned for questions, in a file with a JSON object in each line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from .dataset import Question
from .matching import RetrievedItem


@dataclass(frozen=True, slots=True)
class Record:
    """Hold what one set-up returned for one question.

    Attributes:
        setup: The name of the set-up.
        question_id: The id of the question.
        question: Its text.
        top_k: How many results were requested.
        items: The results, best first. Of a query engine the sources of its answer.
        answer: The answer of a query engine, None of a retriever.
        seconds: How long it took.
        model_calls: How many language model calls of this package it took.
        error: What it raised, empty where it did not.
        model_tokens: How many tokens their prompts and answers have, by ``count_tokens``.
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
        """How many tokens its results have together, by ``count_tokens``."""
        return sum(item.tokens for item in self.items)


def document_hashes(documents: Iterable[Document]) -> dict[str, str]:
    """Return a hash of each document's text, by its id."""
    return {
        d.id: hashlib.blake2b(d.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        for d in documents
    }


def document_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say which documents differ between two searches. Empty if none does.

    Example:
        >>> document_changes({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"})
        "1 changed ('b'), 1 new ('c')"
        >>> document_changes({"a": "1"}, {"docs/a": "1"})
        "1 moved ('a' to 'docs/a')"
    """
    changed = [repr(name) for name in before if name in now and now[name] != before[name]]
    new_by_text: dict[str, list[str]] = {}
    for name, text in now.items():
        if name not in before:
            new_by_text.setdefault(text, []).append(name)
    moved, removed = [], []
    for name, text in before.items():
        if name not in now and new_by_text.get(text):
            moved.append(f"{name!r} to {new_by_text[text].pop(0)!r}")
        elif name not in now:
            removed.append(repr(name))
    parts = {
        "changed": changed,
        "moved": moved,
        "new": [repr(name) for names in new_by_text.values() for name in names],
        "removed": removed,
    }
    return ", ".join(
        f"{len(names)} {what} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"
        for what, names in parts.items()
        if names
    )


class ChangedSetupError(ValueError):
    """A file has results of another set-up by the same name.

    Attributes:
        before: What the set-up was.
    """

    def __init__(self, message: str, before: str) -> None:
        super().__init__(message)
        self.before = before


class RecordFile:
    """Append records to a file of JSON lines, and read those that it has.

    The file notes what each set-up is, and refuses another one by its name. Each line is in the
    file before the next one is written: a killed process loses the line that it was at. A last line
    that was cut off is passed over, and removed when a record is added. Reading writes nothing.

    Args:
        path: The file. None for none.
        setups: What each set-up is, in words, by name.
        documents: What is searched, as ``document_hashes`` returns it. Empty if it is not known.
        missing: How much gold of a question is in no document, by the question's id.
        count: How many questions are written at once. None where they come one by one.

    Attributes:
        documents: What is searched, or was, as the file has it.
        missing: How much gold was in no document, as the file has it.
        count: How many questions were written, as the file has it.
        described: What each set-up of the file is, in words, by name.

    Raises:
        ChangedSetupError: If the file has another set-up by one of these names.
        ValueError: If the file has results of other documents, or something else in it.
    """

    def __init__(
        self,
        path: str | Path | None,
        setups: Mapping[str, str],
        documents: Mapping[str, str] | None = None,
        missing: Mapping[str, int] | None = None,
        count: int | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.documents: Mapping[str, str] = documents or {}
        self.missing: Mapping[str, int] = missing or {}
        self.count = count
        self.setups = {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in setups.items()}
        self.records: dict[tuple[str, str], Record] = {}
        self.described: dict[str, str] = {}
        self._has_header = False
        self._cut_at: int | None = None
        if self.path is None or not self.path.exists():
            return
        data = self.path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        try:
            for line in complete.decode("utf-8").split("\n")[:-1]:
                self._load(json.loads(line))
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(
                f"{path} is no file of an evaluation ({type(e).__name__}: {e}); give another path"
            ) from e
        if len(complete) < len(data):
            self._cut_at = len(complete)
        if missing is not None and self._has_header and self.missing != missing:
            self.missing = missing  # the gold was edited since
            self._write([self._header()])

    def add(self, record: Record) -> None:
        """Append a record."""
        name = record.setup
        self.records[name, record.question_id] = record
        rows: list[dict[str, Any]] = [asdict(record)]
        if name not in self.described:
            self.described[name] = self.setups[name]
            rows.insert(0, {"setup": name, "is": self.setups[name]})
        if (self.documents or self.count is not None) and not self._has_header:
            self._has_header = True
            rows.insert(0, self._header())
        self._write(rows)

    def _header(self) -> dict[str, Any]:
        count = {} if self.count is None else {"questions": self.count}
        return {"documents": self.documents, "missing_gold": self.missing, **count}

    def _write(self, rows: Iterable[dict[str, Any]]) -> None:
        if self.path is None:
            return
        if self._cut_at is not None:
            with self.path.open("r+b") as file:
                file.truncate(self._cut_at)
            self._cut_at = None
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        with self.path.open("ab") as file:
            file.write(lines.encode("utf-8"))

    def done(self, setup: str, question: Question, top_k: int) -> bool:
        """Return whether a question has been searched, for so many results and without failure."""
        record = self.records.get((setup, question.id))
        return (
            record is not None
            and not record.error
            and record.question == question.text
            and record.top_k >= top_k
        )

    def of(self, setup: str, questions: Iterable[Question], top_k: int) -> dict[str, Record]:
        """Return the records of a set-up by question id, each with so many results at most."""
        records = (self.records[setup, question.id] for question in questions)
        return {r.question_id: replace(r, items=r.items[:top_k]) for r in records}

    def _load(self, row: dict[str, Any]) -> None:
        if "documents" in row:
            both = row["documents"] and self.documents
            if changes := both and document_changes(row["documents"], self.documents):
                raise ValueError(
                    f"{self.path} has results of other documents: {changes}; give another path, "
                    "or delete it"
                )
            self.documents, self._has_header = row["documents"], True
            self.missing, self.count = row.get("missing_gold", {}), row.get("questions")
            return
        name = row["setup"]
        if "is" in row:
            if name in self.setups and row["is"] != self.setups[name]:
                raise ChangedSetupError(
                    f"{self.path} has results of {name!r} when it was {row['is']:.200}; now it is "
                    f"{self.setups[name]:.200}: give the set-up another name, or another path",
                    row["is"],
                )
            self.described[name] = row["is"]
            return
        items = tuple(RetrievedItem(**item) for item in row.pop("items"))
        self.records[name, row["question_id"]] = Record(items=items, **row)
