"""What set-ups returned for questions, in a file with a JSON object in each line."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

from .matching import RetrievedItem


@dataclass(frozen=True, slots=True)
class Record:
    """Hold what one set-up returned for one question.

    Attributes:
        setup: The name of the set-up.
        question_id: The id of the question.
        question: Its text.
        top_k: How many results were requested.
        items: The results, best first; of a query engine the sources of its answer.
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


_to_json = json.JSONEncoder(ensure_ascii=False).encode

_RECORD = [field.name for field in fields(Record) if field.name != "items"]
_ITEM = [field.name for field in fields(RetrievedItem)]


def _row(value: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


class RecordFile:
    """Append records to a file, and read those that it has.

    Lines are written together, and once a second: a killed process loses what it did within one,
    beside the question that it was at. A line that was cut off in the middle is left out and
    written anew. The file notes what each set-up is, and refuses
    another one by its name.

    Args:
        path: The file; None for none.
        setups: What each set-up is, in words, by name.

    Raises:
        ValueError: If the file has something else in it, or another set-up by one of these names.
    """

    def __init__(self, path: str | Path | None, setups: Mapping[str, str]) -> None:
        self.path = None if path is None else Path(path)
        self.setups = {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in setups.items()}
        self.records: dict[tuple[str, str], Record] = {}
        self._noted: set[str] = set()
        self._file: IO[str] | None = None
        self._written = 0.0
        self._waiting: list[Record] = []
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def __enter__(self) -> RecordFile:
        if self.path is not None:
            self._file = self.path.open("a", encoding="utf-8")
            for name in self.setups.keys() - self._noted:
                self._file.write(_to_json({"setup": name, "is": self.setups[name]}) + "\n")
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            try:
                self._write()
            finally:
                self._file.close()

    def add(self, record: Record) -> None:
        """Append a record."""
        self.records[record.setup, record.question_id] = record
        if self._file is not None:
            self._waiting.append(record)
            if time.monotonic() > self._written + 1:
                self._write()

    def done(self, setup: str, question_id: str, question: str, top_k: int) -> bool:
        """Return whether a question has been searched, for so many results and without failure."""
        record = self.records.get((setup, question_id))
        return (
            record is not None
            and not record.error
            and record.question == question
            and record.top_k >= top_k
        )

    def _write(self) -> None:
        """Write what waits; together, which takes half as long as each by itself."""
        if self._file is not None:
            for record in self._waiting:
                items = [_row(item, _ITEM) for item in record.items]
                self._file.write(_to_json(_row(record, _RECORD) | {"items": items}) + "\n")
            self._file.flush()
            self._waiting.clear()
            self._written = time.monotonic()

    def _read(self, path: Path) -> None:
        data = path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        try:
            for line in complete.decode("utf-8").split("\n")[:-1]:
                self._take(json.loads(line))
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(
                f"{path} is no file of an evaluation ({type(e).__name__}: {e}); give another path"
            ) from e
        if len(complete) < len(data):  # only now, when it is known to be ours
            with path.open("r+b") as file:
                file.truncate(len(complete))

    def _take(self, row: dict[str, Any]) -> None:
        name = row["setup"]
        if "is" in row:
            if name in self.setups and row["is"] != self.setups[name]:
                raise ValueError(
                    f"{self.path} has results of {name!r} when it was {row['is']:.200}; now it is "
                    f"{self.setups[name]:.200}: give the set-up another name, or another path"
                )
            self._noted.add(name)
            return
        items = tuple(RetrievedItem(**item) for item in row.pop("items"))
        record = Record(items=items, **row)
        self.records[name, record.question_id] = record
