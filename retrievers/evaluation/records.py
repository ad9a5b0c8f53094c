"""The results of evaluated systems, and their file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from ...nodegraph.concurrency import ProgressBar, run_in_threads
from .metrics import RetrievedItem

T = TypeVar("T")


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


@dataclass(slots=True)
class RecordFile:
    """The records of systems, and what is needed to compare or resume them.

    Attributes:
        setups: The description of each system by name.
        documents: The hashes of the documents. Empty: unknown.
        missing_gold: The number of missing gold items by question id.
        records: The records by system and question id.
    """

    setups: Mapping[str, str]
    documents: Mapping[str, str]
    missing_gold: Mapping[str, int]
    records: dict[tuple[str, str], Record] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> RecordFile:
        """Read a file. An incomplete last line, of a killed process, is ignored.

        Raises:
            ValueError: If the file has another format.
        """
        try:
            lines = Path(path).read_bytes().rpartition(b"\n")[0].decode("utf-8").split("\n")
            header, *rows = map(json.loads, lines)
            file = cls(header["setups"], header["documents"], header["missing_gold"])
            for row in rows:
                items = tuple(RetrievedItem(**item) for item in row["items"])
                record = Record(**{**row, "items": items})
                file.records[record.setup, record.question_id] = record
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{path} must be a file of an evaluation, got {type(error).__name__}: {error}"
            ) from error
        return file

    def resume(self, path: str | Path) -> None:
        """Take over the records of a file.

        Raises:
            ValueError: If the file has results of other systems or documents, or another format.
        """
        before = RecordFile.load(path)
        other = [f"another {n!r}" for n, d in before.setups.items() if self.setups.get(n, d) != d]
        if before.documents and self.documents:
            changes = document_changes(before.documents, self.documents)
            other += [f"other documents: {changes}"] if changes else []
        if other:
            raise ValueError(f"{path} has results of {other[0]}; choose another name or file")
        self.setups = {**before.setups, **self.setups}
        self.records = before.records

    def save(self, path: str | Path) -> None:
        """Write a file. An existing file is replaced."""
        new = Path(f"{path}.new")
        header = {"setups": self.setups, "documents": self.documents}
        rows = [{**header, "missing_gold": self.missing_gold}, *map(asdict, self.records.values())]
        new.write_text("".join(map(json_line, rows)), encoding="utf-8", newline="\n")
        new.replace(path)


def json_line(row: object) -> str:
    """Return a line of JSON."""
    return json.dumps(row, ensure_ascii=False) + "\n"


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


def run_all(
    work: Sequence[Callable[[], T]], name: str, num_workers: int, progress: bool | None
) -> list[T]:
    """Return the results of functions, in threads, with a bar. An exception ends all.

    Args:
        work: The functions.
        name: The label of the bar.
        num_workers: Number of threads.
        progress: Whether to draw the bar. None: only in a terminal.
    """
    with ProgressBar(" questions", progress) as bar:
        bar.start(len(work), name)

        def run_one(task: Callable[[], T]) -> T:
            result = task()
            bar.advance(1)
            return result

        return run_in_threads([partial(run_one, task) for task in work], num_workers)
