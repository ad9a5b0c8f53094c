"""Keep an index in a file beside the store, and trust it only when it is whole and current."""

from __future__ import annotations

import json
import logging
import os
import threading
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)
_FORMAT = 1

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
    text = json.dumps({"format": _FORMAT, **header}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, **members)
        draft.replace(path)
    except OSError as error:
        logger.warning("the index was not kept in %s, and will be made again: %s", path, error)
        draft.unlink(missing_ok=True)


def load(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header and its arrays; None where there is no file, or it is damaged.

    The archive's checksums are checked while it is read.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        logger.warning("the index in %s is damaged and will be made again: %s", path, error)
        return None
    return (header, arrays) if header.get("format") == _FORMAT else None
