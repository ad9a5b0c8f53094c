"""The words of a group in an engine beside the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ...nodegraph.vector_table import ValueMatch
from ...nodegraph.word_table import (
    NodeTerms,
    QueryTerm,
    TermFrequency,
    WordCandidates,
    WordedNode,
    WordTotals,
)
from .engine_table import BATCH, EngineCollection, EngineTable, key_of
from .index_engine import WordEngine, WordRow
from .word_statistics import WordStatistics

if TYPE_CHECKING:
    from ...nodegraph.word_table import Impacts, Numbers

_MAX_TERMS = 300_000  # that are written at once

_K1, _B = 1.5, 0.75  # BM25's, for the impacts in an engine


class EngineWords(EngineTable[WordedNode, WordEngine]):
    """Search the words of one group in an engine beside the store; see ``EngineTable``.

    The store has the terms of each node, and of each term in how many nodes it is, written in one
    transaction with the record of what the engine has. The engine finds candidates.
    """

    what: ClassVar[str] = "words"

    # Reading, of what this thread's state of the graph has; after ``state``

    def totals(self) -> WordTotals:
        """Return what the nodes have together."""
        collection = self._seen.record.collection
        return WordTotals() if collection is None else _totals(collection)

    def written(self) -> object:
        """Return what differs from one update to the next."""
        return self._seen.record.collection

    def reference_impacts(self, counts: Numbers, lengths: Numbers) -> Impacts:
        """Return the impacts that rows have in the engine, whatever a search asks for."""
        return _impacts(counts, lengths, self._searched().average)

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return of each term its number, and in how many nodes it is.

        Raises:
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        statistics = self._statistics_of(self._searched())
        return self._read(partial(statistics.frequencies, terms))

    def nodes(self, ids: Collection[str]) -> list[NodeTerms]:
        """Return the terms of those nodes that are there.

        Raises:
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        statistics = self._statistics_of(self._searched())
        return [*self._read(partial(statistics.nodes, [*map(key_of, ids)])).values()]

    def search(
        self,
        query: Sequence[QueryTerm],
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
    ) -> WordCandidates:
        """Return the nodes with the highest sums of weight times impact.

        Args:
            query: The terms, each once, at least one.
            limit: How many; None, or more than the engine returns, for all that share a term.
            match: Which count.
            without: Ids of nodes that don't count.

        Raises:
            EngineUnavailableError: If the engine can't be reached.
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        collection, engine = self._searched(), self._engine
        gone = [*map(key_of, without)]
        maximum = None if limit is None or limit > engine.max_results else limit

        def search() -> WordCandidates:
            hits = engine.search_words(
                collection.name, query, maximum, match, gone, collection.position
            )
            nodes = self._statistics_of(collection).nodes(hits.keys)
            complete = maximum is None or len(hits.keys) < maximum
            return WordCandidates([*nodes.values()], min(hits.scores, default=0.0), complete)

        return self._read(search)

    @property
    def max_results(self) -> int:
        """How many candidates can be read at once."""
        return self._engine.max_results

    @property
    def score_slack(self) -> float | None:
        """By which factor a sum may exceed the engine's; None where none is known."""
        return self._engine.word_slack

    def _statistics_of(self, collection: EngineCollection) -> WordStatistics:
        return WordStatistics(self._store, collection.name, _totals(collection))

    # Writing

    _average = 0.0
    _statistics: WordStatistics | None = None  # of the collection that is written now

    @contextmanager
    def updating(self, *, wait: bool = True) -> Iterator[bool]:
        """Keep others from updating the table, by a lock of the store."""
        with super().updating(wait=wait) as free:
            if free:
                self._statistics = None
            yield free

    def start(self, average: float) -> None:
        """Begin a whole group anew, within ``updating``.

        Args:
            average: About how many terms a node has: by that impacts are computed, for as long
                as the collection is there.
        """
        record = self._own_record()
        self._put(replace(record, building=None))
        self._drop(record.building)
        self._average = average

    def _created(self, rows: Sequence[WordedNode]) -> EngineCollection:
        name = self._new_name()
        self._call(partial(self._engine.create_words, name))
        return EngineCollection(name, 1, False, average=self._average)

    def _change(
        self, collection: EngineCollection, removed: Collection[str], rows: Sequence[WordedNode]
    ) -> None:
        statistics = self._statistics if self._filling else None
        if statistics is None:
            statistics = self._statistics = self._statistics_of(collection)
        added = {key_of(row.id): row for row in rows}
        value_ids = {
            key: of_row
            for key, of_row in zip(added, self._numbers.assign([*added.values()]), strict=True)
        }
        gone = {*map(key_of, removed)}
        new: list[WordRow] = []
        for key, node in statistics.change(gone, added).items():
            numbers, counts = node.term_ids, node.counts
            if len(numbers):
                impacts = _impacts(counts, node.length, collection.average)
                new.append(WordRow(key, value_ids[key], numbers, counts, impacts))
            else:
                gone.add(key)
        self._delete(collection, [*gone.difference(row.key for row in new)])
        for part in _batches(new):
            self._call(partial(self._engine.put_words, collection.name, part))
        if self._filling:
            statistics.flush(frequencies=False)

    def _completed(self, collection: EngineCollection, token: str) -> EngineCollection:
        position = self._call(lambda: self._engine.set_version_token(collection.name, token))
        totals = WordTotals() if self._statistics is None else self._statistics.totals
        return replace(
            collection,
            version_token=token,
            position=position,
            size=totals.nodes,
            length=totals.length,
            longest=totals.longest,
            terms=totals.terms,
        )

    def _save(self) -> None:
        if self._statistics is not None:
            self._statistics.flush()
        self._statistics = None

    def _drop(self, collection: EngineCollection | None) -> None:
        if collection is not None:
            self._statistics_of(collection).delete()
        super()._drop(collection)


def _batches(rows: Sequence[WordRow]) -> Iterator[list[WordRow]]:
    """Yield rows that are written at once."""
    part: list[WordRow] = []
    terms = 0
    for row in rows:
        if part and (len(part) == BATCH or terms + len(row.terms) > _MAX_TERMS):
            yield part
            part, terms = [], 0
        part.append(row)
        terms += len(row.terms)
    if part:
        yield part


def _impacts(counts: Numbers, lengths: Numbers | int, average: float) -> Impacts:
    """Return what the terms of nodes add to their BM25 scores, for a weight of 1."""
    relative = lengths / (average or 1.0)
    impacts: Impacts = counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * relative))
    return impacts


def _totals(collection: EngineCollection) -> WordTotals:
    return WordTotals(collection.size, collection.length, collection.longest, collection.terms)
