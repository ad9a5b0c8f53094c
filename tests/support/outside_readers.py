"""Custom file readers in a module that other processes can import."""

import os
import signal
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument


def read(path: Path) -> str:
    """Read a file with ``read_page``, and return its text and the process id."""
    return f"{read_page(path)} {os.getpid()}"


def read_page(path: Path) -> str:
    """Return the text of a file. Certain words make this reader crash, hang or fail."""
    text = path.read_text(encoding="utf-8")
    if "crash" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hang" in text:
        time.sleep(3600)
    while "spin" in text:
        pass
    if "grow" in text:
        return " " * 10**11
    if "exit" in text:
        raise SystemExit(3)
    if "fail" in text:
        raise RuntimeError("no such luck")
    if "print" in text:
        sys.stdout.write("not a reply\n")
        sys.stdout.flush()
        os.write(1, b"nor this")
    return text


def read_rows(path: Path) -> list[Any]:
    """Return a document with its own id for each line of a file."""
    from nodekin.nodegraph import Document

    return [Document(line, id=line) for line in path.read_text().split()]


class DatedLoader(BaseLoader):
    """A custom LangChain document loader."""

    def __init__(self, file_path: str) -> None:
        self.file_path = file_path

    def lazy_load(self) -> Any:
        yield LangChainDocument(
            str(os.getpid()), metadata={"sent": date(2024, 5, 1), "to": ("a", "b")}
        )


class Unwritable:
    """A metadata value that cannot be saved in a file."""


def read_unwritable(path: Path) -> Any:
    """Return a document whose metadata cannot be saved in a file."""
    from nodekin.nodegraph import Document

    return Document(str(os.getpid()), {"value": Unwritable()})


class OnlyHere:
    """A reader that can be pickled, but that no other process can load."""

    def __call__(self, path: Path) -> str:
        return str(os.getpid())

    def __reduce__(self) -> Any:
        return _loaded, (os.getpid(),)


def _loaded(pid: int) -> OnlyHere:
    if pid != os.getpid():
        raise ImportError("no module named elsewhere")
    return OnlyHere()
