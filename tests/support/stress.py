"""The size and the report of stress tests.

Each test has a short version, and a long version for ``make stress``. To run a part of the long
version, set for example ``NODEKIN_STRESS=0.1``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LONG = float(os.environ.get("NODEKIN_STRESS") or 0)
"""The share of the long version to run, or 0 for the short version."""


def amount(short: int, long: int) -> int:
    """Return the number of attempts for the selected version."""
    return max(short, round(long * LONG))


class Tally:
    """A counter of attempts and failures. A failure does not end the test."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tried = 0
        self.failures: list[str] = []
        self.notes: dict[str, int] = {}

    @contextmanager
    def trying(self, what: object) -> Iterator[None]:
        """Count one attempt, and record whether it fails."""
        self.tried += 1
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what!r:.300}: {type(error).__name__}: {error!s:.500}")

    def note(self, what: str) -> None:
        """Count another kind of event."""
        self.notes[what] = self.notes.get(what, 0) + 1

    def check(self) -> None:
        """Print the counts, and fail if any attempt failed."""
        more = "".join(f", {count:,} {what}" for what, count in sorted(self.notes.items()))
        sys.stdout.write(
            f"\n{self.name}: {self.tried:,} tried, {len(self.failures):,} failed{more}\n"
        )
        assert not self.failures, "\n".join(self.failures[:5])
        assert self.tried
