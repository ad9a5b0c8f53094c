"""The contract of an engine that searches words, too: it finds the nodes that may score highest.

Terms, document frequencies and scores are ours, so that they are the same everywhere: a text is
analysed here, its terms have numbers, and the store knows which node has which term how often
(``WordStatistics``). The engine has an inverted file of the numbers, finds candidates under a
condition, and returns their keys; their scores are computed anew from what the store has. So what
an engine says of scores decides only which candidates there are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard

from ..vector_table import ValueMatch
from .index_engine import IndexEngine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    TermNumbers = npt.NDArray[np.int64]

    Impacts = npt.NDArray[np.float64]


REFERENCE_K1 = 1.5
"""BM25's k1 by which the impacts in an engine are computed, whatever a search asks for."""

REFERENCE_B = 0.75
"""Its b."""


def reference_impacts(counts: TermNumbers, length: int, average: float) -> Impacts:
    """Return what the terms of a node add to its BM25 score, for a weight of 1.

    Args:
        counts: How often it has each, (terms,).
        length: How many terms it has.
        average: How many a node has, about: the same for all rows of a collection.
    """
    relative = length / (average or 1.0)
    k1 = REFERENCE_K1
    impacts: Impacts = (
        counts * (k1 + 1) / (counts + k1 * (1 - REFERENCE_B + REFERENCE_B * relative))
    )
    return impacts


class WordRow(NamedTuple):
    """A node as an engine that searches words has it. Nodes without a term are not written.

    An engine that adds up products has ``terms`` and ``impacts`` as a sparse vector, one with a
    BM25 of its own has a text of ``terms``, cut at spaces, each as often as ``counts`` says.

    Attributes:
        key: Tells it from all others: 32 hexadecimal digits, a hash of the node's id.
        tags: The numbers of the values of its metadata, ascending.
        terms: The numbers of its terms, (terms,), ascending, from 1 to below 2**32 - 1.
        counts: How often it has each, (terms,).
        impacts: What each adds to its score for a weight of 1, (terms,), above 0; see
            ``reference_impacts``.
    """

    key: str
    tags: Sequence[int]
    terms: TermNumbers
    counts: TermNumbers
    impacts: Impacts


class QueryTerm(NamedTuple):
    """A term of a query.

    Attributes:
        number: The term's.
        weight: What an impact is multiplied with: inverse document frequency included.
        occurrences: What it counts in the query, without that: the boost for an engine that
            multiplies with an inverse document frequency of its own.
    """

    number: int
    weight: float
    occurrences: float


class WordHits(NamedTuple):
    """Rows that share a term with a query, those with the highest sums first.

    Attributes:
        keys: Their keys.
        scores: The sums of weight times impact, as the engine has them.
    """

    keys: Sequence[str]
    scores: Sequence[float]


class WordEngine(IndexEngine, Protocol):
    """An ``IndexEngine`` with collections of words beside those of vectors.

    What is said there holds here: errors, positions, repetition, threads. ``drop``, ``mark``,
    ``set_mark`` and ``delete`` take collections of both kinds; the other methods one of vectors.
    """

    @property
    def searches_words(self) -> bool:
        """Whether words are searched here; else, and without this property, in each process.

        It may connect, to see which version a server has.

        Raises:
            EngineUnavailableError: If it can't be reached.
        """
        ...

    @property
    def word_slack(self) -> float | None:
        """By which factor the sum of weight times impact of a row may exceed what is returned.

        More candidates are read until no other row can be among the best. It is 1.0 for sums of
        32-bit numbers (which may differ by a hundred-thousandth); None where no factor is known,
        as for a BM25 of the engine's own: then a fixed number more is read than is asked for.
        """
        ...

    def create_words(self, collection: str) -> None:
        """Make a collection of words where there is none; see ``IndexEngine.create``."""
        ...

    def put_words(self, collection: str, rows: Sequence[WordRow]) -> None:
        """Insert or replace rows by their keys, some thousand at most."""
        ...

    def search_words(
        self,
        collection: str,
        query: Sequence[QueryTerm],
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        position: int,
    ) -> WordHits:
        """Return the rows with the highest sums of weight times impact over the terms they share.

        Where there are fewer than ``limit``, they are all that share a term.

        Args:
            collection: The collection.
            query: The terms, each once, at least one; numbers that no row has are possible.
            limit: How many, ``most`` at most; None for all that share a term, in any order.
            match: Which rows count; see ``IndexEngine.nearest``.
            without: Keys of rows that don't count.
            position: Which writes must be seen.
        """
        ...


def searches_words(engine: object) -> TypeGuard[WordEngine]:
    """Return whether an engine searches words."""
    return bool(getattr(engine, "searches_words", False))
