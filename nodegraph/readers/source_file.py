"""What the reader of a format is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError
from .read_options import ReadOptions


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Name a file to be read, and how.

    Attributes:
        path: The file.
        options: How files are read.
        ocr: Reads the image of a page, which it takes as the bytes of a PNG; None without one.
    """

    path: Path
    options: ReadOptions
    ocr: Callable[[bytes], str] | None = None

    def document(self, text: str, metadata: Mapping[str, Any] | None = None) -> Document:
        """Return what the file holds as one document, whose id is made by whoever reads it."""
        return Document(text, metadata, id=self.path.name)  # the digest of a text takes a while

    def damaged(self, what: object) -> ReadError:
        """Return the error of a file that is not what it seems to be."""
        return ReadError(f"can't read {self.path}: {what}")

    def encrypted(self, what: str) -> ReadError:
        """Return the error of a file that takes a password."""
        return ReadError(
            f"{self.path} is encrypted: save it without a password, or leave it out",
            f"encrypted {what}",
            skippable=True,
        )
