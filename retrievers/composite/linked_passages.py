"""The passages that links lead to, and their words: of an index in this process, or an engine's."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..filters import Filter
from ..indexes.bm25_scores import TermWeights
from ..indexes.text_index import TextIndex
from ..indexes.word_index import WordIndex

Floats = npt.NDArray[np.float64]

Meets = Callable[[str], bool]
"""Says of a passage, by its id, whether it meets conditions."""


class Passages(Protocol):
    """Tell what is looked up of passages for one query, while the graph is held."""

    def known(self, ids: Iterable[str]) -> Container[str]:
        """Return which of some nodes are passages, by their ids; what it has of others is open."""
        ...

    def meeting(self, filter: Filter) -> Meets | None:
        """Return what says whether a known passage meets a filter; None where all do."""
        ...

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        """Return what each term of a query adds to the BM25 score of known passages.

        Args:
            ids: The passages.
            query: From ``Bm25.prepare``, for their index.

        Returns:
            An array (passages, terms); the sums of its rows are the scores.
        """
        ...


def linked_passages(graph: NodeGraph, group: str, index: TextIndex | WordIndex) -> Passages:
    """Return the passages of a group, for one query.

    Args:
        graph: The graph, which is held.
        group: The group.
        index: Its words, in step with the graph.
    """
    if isinstance(index, WordIndex):
        return _PassagesOfEngine(graph, group, index)
    return _PassagesHere(index)


class _PassagesHere:
    """Passages in an index of this process."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index
        self._rows = index.table.rows()

    def known(self, ids: Iterable[str]) -> Container[str]:
        return self._rows

    def meeting(self, filter: Filter) -> Meets | None:
        mask, rows = self._index.table.matching(filter), self._rows
        return None if mask is None else lambda passage: mask.item(rows[passage])

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        rows = np.fromiter(map(self._rows.__getitem__, ids), np.int64, len(ids))
        scores = np.zeros((len(rows), len(query.weights)))
        for column, (term, weight) in enumerate(query.weights.items()):
            rows_of_term, impacts = self._index.impacts(term, query.saturation)
            if len(rows_of_term):
                places = np.searchsorted(rows_of_term, rows).clip(max=len(rows_of_term) - 1)
                matches = rows_of_term[places] == rows
                scores[matches, column] = weight * impacts[places[matches]]
        return scores


class _PassagesOfEngine:
    """Passages whose words an engine searches: their nodes and terms are read from the store."""

    def __init__(self, graph: NodeGraph, group: str, index: WordIndex) -> None:
        self._graph = graph
        self._group = group
        self._index = index
        self._nodes: dict[str, Node | None] = {}  # those that were asked for; None of no passage
        self._scores: dict[str, Floats] = {}  # by the terms of the query
        self._query: TermWeights | None = None

    def known(self, ids: Iterable[str]) -> Container[str]:
        wanted = dict.fromkeys(ids)
        if new := [node_id for node_id in wanted if node_id not in self._nodes]:
            self._nodes.update(dict.fromkeys(new))
            for node in self._graph.reader.existing_nodes(new):
                if node.group == self._group:
                    self._nodes[node.id] = node
        return {node_id for node_id in wanted if self._nodes[node_id] is not None}

    def meeting(self, filter: Filter) -> Meets | None:
        return (lambda passage: self._matches(filter, passage)) if filter else None

    def _matches(self, filter: Filter, passage: str) -> bool:
        node = self._nodes[passage]
        return node is not None and filter.matches(node)

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        if query is not self._query:
            self._query, self._scores = query, {}
        if new := [passage for passage in dict.fromkeys(ids) if passage not in self._scores]:
            scores = self._index.term_scores(new, query)
            self._scores.update(zip(new, scores, strict=True))
        if not ids:
            return np.zeros((0, len(query.weights)))
        return np.array([self._scores[passage] for passage in ids])
