"""What models make of texts, kept in a file: they are asked once, in whichever script it is."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
BATCH = 128


class Kept:
    """Call a model for texts that it has not seen, and remember what it made of the others.

    Args:
        folder: Where the file is, or is made.
        model: The model's name; what another one made is kept apart.
        call: Takes texts and returns an array (texts, numbers).
    """

    def __init__(self, folder: Path, model: str, call: Callable[[list[str]], Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(folder / "kept.db", timeout=600, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, made BLOB)")
        self._model = model
        self._call = call
        self._lock = threading.Lock()
        self._here: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return what the model makes of each (texts, numbers)."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if not self._known(text)]
            for at in range(0, len(missing), BATCH):
                some = missing[at : at + BATCH]
                rows = np.asarray(self._call(some), np.float32).reshape(len(some), -1)
                with self._file:
                    self._file.executemany(
                        "INSERT OR REPLACE INTO kept VALUES (?, ?)",
                        [(self._key(t), r.tobytes()) for t, r in zip(some, rows, strict=True)],
                    )
                self._here.update(zip(some, rows, strict=True))
            return np.stack([self._here[text] for text in texts])

    def _known(self, text: str) -> bool:
        if text not in self._here:
            row = self._file.execute("SELECT made FROM kept WHERE key = ?", [self._key(text)])
            found = row.fetchone()
            if found is None:
                return False
            self._here[text] = np.frombuffer(found[0], np.float32)
        return True

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self._model}\0{text}".encode(), digest_size=16).digest()
