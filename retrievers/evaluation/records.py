"""What set-ups returned for questions, in a file with a JSON object in each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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


class JsonLines:
    """Append JSON objects to a file, one in each line, and read those that it has.

    Each line is on the disk before the next one is written: a killed process loses the line that
    it was at. A last line that was cut off is removed when the file is read.

    Args:
        path: The file. None to write nothing.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)

    def read(self) -> Iterator[Any]:
        """Yield the value of each line. Nothing if there is no file.

        Raises:
            ValueError: If a line is not JSON.
        """
        if self.path is None or not self.path.exists():
            return
        data = self.path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        for line in complete.decode("utf-8").split("\n")[:-1]:
            yield json.loads(line)
        if len(complete) < len(data):  # only now is it known to be a file of ours
            with self.path.open("r+b") as file:
                file.truncate(len(complete))

    def append(self, value: object) -> None:
        """Write a value in a line of its own."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(value, ensure_ascii=False) + "\n")


class RecordFile:
    """Append records to a file, and read those that it has.

    The file notes what each set-up is, and refuses another one by its name.

    Args:
        path: The file. None for none.
        setups: What each set-up is, in words, by name.

    Raises:
        ValueError: If the file has something else in it, or another set-up by one of these names.
    """

    def __init__(self, path: str | Path | None, setups: Mapping[str, str]) -> None:
        self.setups = {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in setups.items()}
        self.records: dict[tuple[str, str], Record] = {}
        self._file = JsonLines(path)
        self._described: set[str] = set()
        try:
            for row in self._file.read():
                self._load(row)
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(
                f"{path} is no file of an evaluation ({type(e).__name__}: {e}); give another path"
            ) from e

    def add(self, record: Record) -> None:
        """Append a record."""
        name = record.setup
        self.records[name, record.question_id] = record
        if name not in self._described:
            self._described.add(name)
            self._file.append({"setup": name, "is": self.setups[name]})
        self._file.append(asdict(record))

    def done(self, setup: str, question_id: str, question: str, top_k: int) -> bool:
        """Return whether a question has been searched, for so many results and without failure."""
        record = self.records.get((setup, question_id))
        return (
            record is not None
            and not record.error
            and record.question == question
            and record.top_k >= top_k
        )

    def _load(self, row: dict[str, Any]) -> None:
        name = row["setup"]
        if "is" in row:
            if name in self.setups and row["is"] != self.setups[name]:
                raise ValueError(
                    f"{self._file.path} has results of {name!r} when it was {row['is']:.200}; now "
                    f"it is {self.setups[name]:.200}: give the set-up another name, or another path"
                )
            self._described.add(name)
            return
        items = tuple(RetrievedItem(**item) for item in row.pop("items"))
        self.records[name, row["question_id"]] = Record(items=items, **row)
