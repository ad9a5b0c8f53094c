"""Read the rows of files: JSON lines, JSON and CSV, each row with where it stands."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ...nodegraph.errors import nearest_names

Row: TypeAlias = Mapping[str, Any]


def parse_json(text: str, where: object) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: If it is not JSON. It says where.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON: {error}") from error


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        ValueError: If it is not JSON.
    """
    return parse_json(path.read_text(encoding="utf-8-sig"), path)


def read_json_lines(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the objects of a file that has one in each line, each with its path and line.

    Raises:
        ValueError: If a line is not an object.
    """
    for index, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            where = f"{path}, line {index}"
            yield where, check_row(parse_json(line, where), where)


def read_csv(path: Path) -> tuple[list[str], list[tuple[str, Row]]]:
    """Return the columns of a CSV file, and its rows, each with its path and line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = list(reader.fieldnames or ())
        return columns, [(f"{path}, line {reader.line_num}", row) for row in reader]


def is_csv(path: Path) -> bool:
    """Return whether a file is CSV, by its name."""
    return path.suffix.casefold() == ".csv"


def line_of(where: str) -> str:
    """Return the number of a row's line."""
    return where.rpartition(" ")[2]


def check_row(value: object, where: str) -> Row:
    """Return a row that is an object.

    Raises:
        ValueError: If it is something else.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is no JSON object but {value!r:.80}")
    return value


def field_names(fields: Mapping[str, str] | None, existing: Iterable[str]) -> dict[str, str]:
    """Return what each known field is called in a file.

    Raises:
        ValueError: If a field is unknown.
    """
    existing = list(existing)
    for field in fields or ():
        if field not in existing:
            raise ValueError(
                f"there is no field {field!r}; there are {nearest_names(field, existing)}"
            )
    return {field: (fields or {}).get(field, field) for field in existing}


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
