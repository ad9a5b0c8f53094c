"""The numbers of an index's terms."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from .kept_terms import KeptTerms

# Terms that were looked up one by one, and what share of the kept ones beside, after which all
# are taken in: that costs about as much as having looked up a tenth of them.
_MANY = 1_000
_SHARE = 16


class Vocabulary(dict[str, int]):
    """Number terms upwards in the order in which they are first asked for by ``[]``.

    A dictionary, so that a term it knows costs no call. Terms that came from a file are taken
    into it when they are asked for by ``[]``, or all at once when many have been; until then
    only ``find`` and ``words`` know them.

    Args:
        words: The first terms, by number.
        kept: Terms of a file, in place of ``words``.

    Attributes:
        size: How many terms are numbered.

    Example:
        >>> vocabulary = Vocabulary(["tea"])
        >>> vocabulary["river"], vocabulary["tea"], vocabulary.find("sea"), vocabulary.size
        (1, 0, -1, 2)
    """

    def __init__(self, words: Iterable[str] = (), kept: KeptTerms | None = None) -> None:
        super().__init__(zip(words, count()))
        self._kept = kept
        self._missed = 0
        self.size = len(self) if kept is None else len(kept)

    def __missing__(self, term: str) -> int:
        number = -1 if self._kept is None else self._take_in(term, self._kept)
        if number < 0:
            number = self.size
            self.size += 1
        self[term] = number
        return number

    def _take_in(self, term: str, kept: KeptTerms) -> int:
        """Return a kept term's number, -1 where it is unknown."""
        self._missed += 1
        if self._missed > _MANY + len(kept) // _SHARE:
            words, self._kept = self.words(), None
            self.clear()
            self.update(zip(words, count()))
            return self.get(term, -1)
        return kept.find(term)

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it has none; leave everything as it is."""
        number = self.get(term)
        if number is None:
            number = -1 if self._kept is None else self._kept.find(term)
        return number

    def words(self) -> list[str]:
        """Return all terms, by number."""
        if self._kept is None:
            return list(self)
        known = len(self._kept)
        return self._kept.words() + [term for term, number in self.items() if number >= known]
