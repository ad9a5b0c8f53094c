"""What set-ups scored, in a file with a JSON object in each line: a search goes on from it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

_logger = logging.getLogger("nodekin")

Score: TypeAlias = tuple[float, float] | None
"""Numerator and denominator of a question, None where it is not judged."""


class TrialFile:
    """Append scores to a file as they are measured, and read those that it has.

    The first line says what was measured: other questions, documents or another metric begin the
    file anew. A line that was cut off in the middle is left out.

    Args:
        path: The file; None for none.
        about: What all scores depend on, as JSON has it.

    Raises:
        ValueError: If the file has something else in it.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._scores: dict[str, list[Score]] = {}
        if self.path is None:
            return
        header = json.dumps({"tune": 1, **about}, ensure_ascii=False)
        if not self.path.exists() or not self._read(self.path, header):
            self.path.write_text(header + "\n", encoding="utf-8")

    def scores(self, setup: str) -> Sequence[Score]:
        """Return what a set-up scored before, in the order of the questions."""
        return self._scores.get(setup, ())

    def add(self, setup: str, scores: Sequence[Score]) -> None:
        """Append what a set-up scored on further questions."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(
                    json.dumps({"setup": setup, "scores": scores}, ensure_ascii=False) + "\n"
                )

    def _read(self, path: Path, header: str) -> bool:
        """Read a file; return whether it is about the same."""
        data = path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        try:
            first, *lines = complete.decode("utf-8").split("\n")[:-1] or ["{}"]
            if data and not json.loads(first).get("tune"):
                raise ValueError("its first line says something else")
            if first != header:
                _logger.warning("%s is of another search, and begins anew", path)
                return False
            for row in map(json.loads, lines):
                known = self._scores.setdefault(row["setup"], [])
                known += [
                    None if score is None else (score[0], score[1]) for score in row["scores"]
                ]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{path} is no file of nodekin tune ({error}); give another path"
            ) from error
        if len(complete) < len(data):
            with path.open("r+b") as file:
                file.truncate(len(complete))
        return True
