"""Run a function as an unprivileged user, because file permissions do not restrict root."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_NOBODY = 65534


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Create a temporary folder that all users can read."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        thaw(folder)
        shutil.rmtree(folder)


def freeze(folder: Path) -> None:
    """Remove the write permissions for a folder and everything in it."""
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def thaw(folder: Path) -> None:
    """Give the owner write permissions for a folder and everything in it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def as_other_user(work: Callable[[], T]) -> T:
    """Call a function in a forked process as an unprivileged user, and return its result.

    Raises:
        AssertionError: If the function raises an exception. The message contains the traceback.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        outcome: tuple[Any, str] = (None, "the process has ended")
        try:
            if os.getuid() == 0:
                os.setuid(_NOBODY)
            outcome = (work(), "")
        except BaseException:
            outcome = (None, traceback.format_exc())
        finally:
            with os.fdopen(write, "wb") as file:
                file.write(pickle.dumps(outcome))
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        result, error = pickle.loads(file.read())
    os.waitpid(child, 0)
    assert not error, error
    return result  # type: ignore[no-any-return]
