"""Read text files that are not UTF-8, as the user says they are."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NOT_TEXT = frozenset({".jsonl", ".ndjson"})  # JSON is UTF-8 by its definition


def check_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises:
        ValueError: If there is none of that name.
    """
    try:
        codecs.lookup(name)
    except LookupError as error:
        raise ValueError(
            f"no encoding {name!r}; for Chinese there is gb18030 and big5, for others such as "
            "latin-1, cp1252, shift_jis, utf-16"
        ) from error
    return name


@contextmanager
def reading_also(encoding: str) -> Iterator[None]:
    """Read files that are not UTF-8 by an encoding, until the block ends; empty for none.

    Raises:
        ValueError: If there is no such encoding.
    """
    if not encoding:
        yield
        return
    from ...nodegraph import register_reader
    from ...nodegraph.readers import known_suffixes, read_text

    check_encoding(encoding)
    suffixes = [each for each in known_suffixes() if each not in _NOT_TEXT]

    def read(path: Path) -> Any:
        data = path.read_bytes()
        try:
            data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        return read_text(path)

    register_reader(*suffixes)(read)
    try:
        yield
    finally:
        register_reader(*suffixes)(read_text)
