"""How files are read: limits, encodings, what is passed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import check_integer

_EDITION = 2  # of the readers; another one reads again what an interrupted run has read

Ocr = Callable[[Any], str]
"""Takes the image of a page (``PIL.Image.Image``), returns its text."""

INSTALLED = ("node_modules", "bower_components", "site-packages", "__pycache__")
"""Folders of packages that were installed, and of what is compiled."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files and folders are read.

    Args:
        strict: Whether a file that is passed over otherwise (encrypted, too large, without a
            reader, of which parts can't be read) is an error.
        encoding: What text files are that are not UTF-8, such as ``"gb18030"``. None to detect it.
        ocr: Reads the pages of a PDF that have no text, or one that is no text: a function from
            an image (``PIL.Image.Image``) to its text, such as ``pytesseract.image_to_string``.
            It is called in this process, from several threads.
        ignore_files: Names of files with patterns of what is passed over, in the manner of git.
        skip_folders: Names of folders that are passed over, wherever they are below the folder
            that is read: packages that were installed there.
        hidden: Whether files and folders are read whose names begin with a dot.
        links: Whether symbolic links are followed, to folders and out of the folder, too.
        max_bytes: Larger files are passed over.
        max_unpacked_bytes: How large the parts of a file may be that is packed (DOCX, EPUB, ...).
        seconds: How much processor time a parser may take for one file. In any case it ends after
            twelve times as long, as on Windows.
        memory_bytes: How much memory a parser may take (not on Windows). None for 512 MB, and less
            where all parsers together would take more than half of the machine's.
        workers: How many files are parsed at once, each in its own process. None for as many as
            there are cores.

    Raises:
        ValueError: If a number is below 1, or there is no such encoding.
        TypeError: If a number has another type.
    """

    strict: bool = False
    encoding: str | None = None
    ocr: Ocr | None = None
    ignore_files: tuple[str, ...] = (".gitignore", ".nodekinignore")
    skip_folders: tuple[str, ...] = INSTALLED
    hidden: bool = False
    links: bool = False
    max_bytes: int = 200_000_000
    max_unpacked_bytes: int = 500_000_000
    seconds: float = 10
    memory_bytes: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_unpacked_bytes", "memory_bytes", "workers"):
            if (number := getattr(self, name)) is not None:
                check_integer(number, name, 1)
        if not self.seconds > 0:
            raise ValueError(f"seconds must be more than 0, not {self.seconds!r}")
        if self.encoding is not None:
            check_encoding(self.encoding)

    @property
    def signature(self) -> str:
        """What the content of a file depends on besides the file."""
        return f"{_EDITION} {self.encoding} {self.ocr is not None}"


def check_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises:
        ValueError: If there is none of that name.
    """
    try:
        "".encode(name)
    except LookupError as error:
        raise ValueError(
            f"no encoding {name!r}; for Chinese there is gb18030 and big5, for others such as "
            "latin-1, cp1252, shift_jis, utf-16"
        ) from error
    return name
