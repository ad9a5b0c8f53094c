"""The vocabulary of an index, which maps terms to numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from .array_files import Arrays
from .stored_texts import StoredTexts, TextLookup, hashes_of, pack_lookup, pack_texts

_NAME = "terms"


class Vocabulary(dict[str, int]):
    """A dictionary that maps terms to numbers, in the order in which they were first looked up.

    ``vocabulary[term]`` assigns a number to a new term. The first terms can be in a file, which is
    read on demand. The dictionary contains all other terms, and the terms that were looked up.

    Attributes:
        size: The number of terms.
    """

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self._first = 0  # the number of terms in the file
        self._stored: StoredTexts | None = None
        self._lookup: TextLookup | None = None
        self._other: Mapping[str, int] = {}  # another vocabulary, whose strings are used
        self._other_terms: list[str] = []

    def __missing__(self, term: str) -> int:
        number = self.find(term)
        if number < 0:
            number = self.size
            self.size += 1
            self[self._shared(term) if self._other else term] = number
        return number

    def _shared(self, term: str) -> str:
        """Return the string for a term from another vocabulary if it contains the term."""
        number = self._other.get(term)
        return term if number is None else self._other_terms[number]

    @contextmanager
    def sharing(self, other: Vocabulary | None) -> Iterator[None]:
        """Use the strings of another vocabulary for new terms in a block, which saves memory."""
        # If the other vocabulary is in a file, its dictionary is not in the order of the numbers.
        if other is not None and other._stored is None:
            self._other_terms = [*other]
            self._other = other
        try:
            yield
        finally:
            self._other_terms = []
            self._other = {}

    def find(self, term: str) -> int:
        """Return the number of a term, or -1 if the term is not in the vocabulary.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        number = self.get(term, -1)
        if number < 0 and self._lookup is not None:
            number = self._lookup.find_one(term)
            if number >= 0:
                self[term] = number
        return number

    def load(self) -> None:
        """Read all terms of the file, before many terms are looked up.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        if self._stored is not None and len(self) < self.size:
            self.update({term: number for number, term in enumerate(self.terms())})

    def terms(self) -> list[str]:
        """Return the terms in the order of their numbers.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        later = self._later()
        return later if self._stored is None else [*self._stored.all(), *later]

    def _later(self) -> list[str]:
        """Return the terms that are not in the file, in the order of their numbers."""
        return [term for term, number in self.items() if number >= self._first]

    def arrays(self) -> Arrays:
        """Return the vocabulary as arrays for a file.

        Raises:
            AttributeError: If a term is not a string.
            MissingNodeError: If the previous file is damaged.
        """
        later = self._later()
        hashes = hashes_of(later)
        numbers = np.arange(self._first, self.size)
        if self._stored is None or self._lookup is None:
            return {**pack_texts(_NAME, later), **pack_lookup(_NAME, hashes, numbers)}
        former_hashes, former_numbers = self._lookup.pairs()
        hashes = np.concatenate([former_hashes, hashes])
        numbers = np.concatenate([former_numbers, numbers])
        return {**self._stored.arrays(_NAME, later), **pack_lookup(_NAME, hashes, numbers)}

    @classmethod
    def of(cls, terms: Sequence[str]) -> Vocabulary:
        """Create a vocabulary of distinct terms, which are numbered in order."""
        vocabulary = cls()
        vocabulary.update({term: number for number, term in enumerate(terms)})
        vocabulary.size = len(terms)
        return vocabulary

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Vocabulary:
        """Restore a vocabulary from the result of ``arrays``.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        vocabulary = cls()
        vocabulary._stored = StoredTexts.from_arrays(arrays, _NAME)
        vocabulary._lookup = TextLookup.from_arrays(arrays, _NAME, vocabulary._stored)
        vocabulary.size = vocabulary._first = len(vocabulary._stored)
        return vocabulary
