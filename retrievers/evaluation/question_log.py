"""Read questions that people asked, with what they clicked, from a log."""

from __future__ import annotations

import csv
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.lines import normalize
from ..validation import whole
from .dataset import Dataset, GoldDocument, Question

_logger = logging.getLogger("nodekin")

LOG_FIELDS = ("question", "clicked", "count")
"""What a line of a log is read from."""


def load_log(
    path: str | Path,
    fields: Mapping[str, str] | None = None,
    *,
    min_clicks: int = 1,
    limit: int | None = None,
    separator: str = "|",
) -> Dataset:
    """Read a log of questions with clicks, the most asked first.

    A line has ``question``, ``clicked`` (the ids of documents, none, one or several) and perhaps
    ``count`` (how often that was, 1 without). Lines with the same question, letter case and space
    apart, are one question; its gold are the documents that were clicked, graded by the clicks.

    People click what they are shown, and the first more than the others (Joachims et al., 2005):
    such gold favours the search that the log is of.

    Args:
        path: A file of JSON lines, or a CSV file with a header, in UTF-8.
        fields: What these are called in the file: ``{"question": "query"}``.
        min_clicks: With fewer clicks a document is not gold.
        limit: How many questions, those most asked; None for all.
        separator: What stands between several ids in a cell of a CSV file.

    Raises:
        ValueError: If a line has another form, or there are none.
    """
    path = Path(path)
    whole(min_clicks, "min_clicks", 1)
    if limit is not None:
        whole(limit, "limit", 1)
    for field in fields or ():
        if field not in LOG_FIELDS:
            raise ValueError(
                f"there is no field {field!r}; there are {nearest_names(field, LOG_FIELDS)}"
            )
    names = {field: (fields or {}).get(field, field) for field in LOG_FIELDS}
    texts: dict[str, str] = {}
    asks: Counter[str] = Counter()
    clicks: dict[str, Counter[str]] = {}
    for where, row in _lines(path):
        text = row.get(names["question"])
        if not isinstance(text, str):
            raise ValueError(
                f"{where} has no text {names['question']!r}, but "
                f"{nearest_names(names['question'], row)}; say by fields= what it is called"
            )
        if not text.strip():
            continue  # nobody asked anything
        key = normalize(text)
        count = _count(row.get(names["count"]), where)
        texts.setdefault(key, text.strip())
        asks[key] += count
        for identity in dict.fromkeys(_ids(row.get(names["clicked"]), separator, where)):
            clicks.setdefault(key, Counter())[identity] += count
    chosen = [key for key, _ in asks.most_common(limit)]  # of equals the first in the file
    questions = [
        Question(
            str(number),
            texts[key],
            tuple(
                GoldDocument(identity, float(n))
                for identity, n in clicks.get(key, Counter()).most_common()
                if n >= min_clicks
            ),
        )
        for number, key in enumerate(chosen, 1)
    ]
    if without := sum(not question.gold for question in questions):
        _logger.warning(
            "%d of %d questions of %s have no document with %d clicks or more, and so no gold",
            *(without, len(questions), path, min_clicks),
        )
    return Dataset(questions, name=path.name)


def _lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        if path.suffix.casefold() == ".csv":
            reader = csv.DictReader(file)
            for row in reader:
                yield f"{path}, line {reader.line_num}", row
            return
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where} is no JSON: {error}") from error
            if not isinstance(value, dict):
                raise ValueError(f"{where} is no JSON object but {line!r:.80}")
            yield where, value


def _count(value: object, where: str) -> int:
    if value is None or value == "":
        return 1
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{where}: a count is a whole number of 1 or more, not {value!r:.40}")
    return value


def _ids(value: object, separator: str, where: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        value = value.split(separator)
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(one, str | int) for one in value):
        raise ValueError(f"{where}: what was clicked is a list of ids, not {value!r:.80}")
    return [str(one).strip() for one in value if str(one).strip()]
