"""The database table that stores the texts of documents, divided into blocks of equal length."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .columns import check_numbers, from_words, to_words
from .database import Database, Row, select

BLOCK = 960
"""The number of characters in a block. A page of SQLite can hold four blocks of English text or two
blocks of Chinese text."""

MAX_BLOCKS = 1 << 20
"""The number of database keys that are reserved for the blocks of a text."""

# maximum number of blocks of a span that are selected by individual keys instead of a range
_FEW = 8


class TextSpan(NamedTuple):
    """A reference to a part of a stored text.

    Attributes:
        text: The database key of the text.
        start: The start of the part, in characters.
        length: The number of characters in the part.
    """

    text: int
    start: int
    length: int

    @property
    def blocks(self) -> range:
        """The database keys of the blocks that contain this part of the text.

        Raises:
            ValueError: If the position is invalid for any text.
        """
        check_numbers(self.text, self.start, self.length)
        first = self.start // BLOCK
        last = (self.start + self.length - 1) // BLOCK
        if last >= MAX_BLOCKS:
            raise ValueError(f"a text must have at most {MAX_BLOCKS} blocks, got {last + 1}")
        key = self.text * MAX_BLOCKS
        return range(key + first, key + last + 1)


class StoredBlocks:
    """Reads and writes the texts of documents in a store. A stored text is never changed.

    Args:
        database: The database of the store.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, spans: Sequence[TextSpan]) -> list[str]:
        """Return the text of each span.

        Raises:
            KeyError: If a block is missing.
            ValueError: If a span or a block is invalid.
        """
        keys = [span.blocks for span in spans]
        blocks = self._read(keys)
        return [_joined(span, of_one, blocks) for span, of_one in zip(spans, keys, strict=True)]

    def _read(self, keys: Iterable[range]) -> dict[int, str]:
        """Read the blocks with the given database keys, and return their texts keyed by block."""
        rows: list[Row] = []
        single: set[int] = set()
        for of_one in keys:
            if len(of_one) <= _FEW:
                single.update(of_one)
            else:
                rows += self._database.rows(
                    "SELECT key, text FROM blocks WHERE key >= ? AND key < ?",
                    [of_one.start, of_one.stop],
                )
        rows += select(self._database, "SELECT key, text FROM blocks WHERE key IN", sorted(single))
        return {key: from_words(text) for key, text in rows}

    def write(self, texts: Mapping[int, str]) -> None:
        """Insert texts, which are keyed by their database keys.

        This must be called inside a transaction.
        """
        rows = [row for key, text in texts.items() for row in self.rows(key, text)]
        self._database.run_many("INSERT INTO blocks VALUES (?, ?)", rows)

    @staticmethod
    def rows(key: int, text: str) -> Iterator[Row]:
        """Divide a text into blocks, and yield the rows to insert.

        Raises:
            ValueError: If the text is too long.
        """
        for number in TextSpan(key, 0, len(text)).blocks:
            start = (number - key * MAX_BLOCKS) * BLOCK
            yield number, to_words(text[start : start + BLOCK])

    def delete(self, texts: Collection[int]) -> None:
        """Delete the texts with the given database keys.

        This must be called inside a transaction.
        """
        first_keys = [key * MAX_BLOCKS for key in texts]
        rows = [(first, first + MAX_BLOCKS) for first in first_keys]
        self._database.run_many("DELETE FROM blocks WHERE key >= ? AND key < ?", rows)


def _joined(span: TextSpan, keys: range, blocks: Mapping[int, str]) -> str:
    """Assemble the text of a span from the blocks that contain it.

    Raises:
        KeyError: If a block is missing.
        ValueError: If the blocks do not contain enough text.
    """
    start = span.start % BLOCK
    if len(keys) == 1:
        text = blocks[keys.start][start : start + span.length]
    else:
        text = "".join([blocks[key] for key in keys])[start : start + span.length]
    if len(text) != span.length:
        raise ValueError(f"a text must have {span.length} characters at {span.start}")
    return text
