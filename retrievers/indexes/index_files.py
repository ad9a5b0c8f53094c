"""Keep an index in a file beside the store, and trust it only when it is whole and current."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)
_FORMAT = 1
_ABANDONED = 3600  # seconds after which a draft is one of a process that died

Arrays = dict[str, npt.NDArray[Any]]


def save(path: Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays and a header in one file, whole or not at all.

    What can't be written is logged: an index can be made again.

    Args:
        path: The file; its folder is made where it is missing.
        header: What ``load`` gives back, as JSON has it.
        arrays: By name; of numbers or booleans.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    text = json.dumps({**header, "format": _FORMAT, "arrays": list(arrays)}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, **members)
        draft.replace(path)
        _tidy(path)
    except OSError as error:
        logger.warning("the index was not kept in %s, and will be made again: %s", path, error)
    finally:  # also when it is interrupted
        with suppress(OSError):
            draft.unlink()


def load(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header and its arrays; None where there is no file, or it is damaged.

    The archive's checksums are checked while it is read, and what can't be read is logged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        if header.pop("arrays") != list(arrays):  # the archive's table has no checksum
            raise ValueError("the arrays are not all there")
        return (header, arrays) if header["format"] == _FORMAT else None
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged archive raises anything, NotImplementedError among it
        logger.warning("the index in %s is damaged and will be made again: %s", path, error)
        return None


def _tidy(path: Path) -> None:
    """Remove drafts of the file whose processes died while they wrote them."""
    for draft in path.parent.iterdir():
        if draft.name.startswith(f"{path.name}.") and draft.suffix == ".tmp":
            with suppress(OSError):
                if draft.stat().st_mtime < time.time() - _ABANDONED:
                    draft.unlink()
