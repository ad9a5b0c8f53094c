"""What a reader of this package is given, and what all of them need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..document import Document
from ..errors import ReadError
from .read_options import ReadOptions

if TYPE_CHECKING:
    import zipfile


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


@contextmanager
def parser(module: str) -> Iterator[None]:
    """Import the library that a format needs inside this.

    Raises:
        ReadError: If it is not installed; it names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module:
            raise
        raise ReadError(
            f"{module} is not installed; get the readers of files with: "
            'pip install "nodekin[files]"',
            'in need of pip install "nodekin[files]"',
            skippable=True,
        ) from error


@contextmanager
def opened_zip(source: SourceFile, what: str) -> Iterator[zipfile.ZipFile]:
    """Open a packed file, of which the parts are of a size that can be read.

    Raises:
        ReadError: If it is damaged, encrypted, or larger unpacked than the options allow.
    """
    import zipfile

    try:
        archive = zipfile.ZipFile(source.path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise source.damaged(f"it is no whole {what}: {error}") from error
    with archive:
        parts = archive.infolist()
        if any(part.flag_bits & 1 for part in parts):
            raise source.encrypted(what)
        size = sum(part.file_size for part in parts)
        if size > source.options.max_unpacked_bytes:
            raise ReadError(
                f"{source.path} unpacks to {size:,} bytes, more than the "
                f"{source.options.max_unpacked_bytes:,} of ReadOptions(max_unpacked_bytes=...)",
                "too large unpacked",
                skippable=True,
            )
        yield archive


def check_zip(source: SourceFile, what: str) -> None:
    """Check a packed file that a library is going to open.

    Raises:
        ReadError: If it is damaged, encrypted, or larger unpacked than the options allow.
    """
    with opened_zip(source, what):
        pass
