"""The words of a query in passages, where those of a name count together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...nodegraph import NodeGraph
from ..indexes import TermWeights, TextIndex
from ..results import Results, ScoredNode
from ..similarities import Bm25
from .link_graph import Floats
from .link_scores import score_scale
from .title_index import NamedTitle

Rows = npt.NDArray[np.int64]


class QueryWords:
    """Score passages by each term of a query; for a graph whose lock is held.

    The words of a title that the query names count in the passages that mention it: "Dodge City
    Regional Airport" does not ask for what else is in a Dodge or regional. Titles of one word are
    left to their weight.

    Args:
        query: The query.
        bm25: Weighs its words.
        index: The index of the passages, in step with the graph.
        graph: Where names are linked to passages.
        titles: The titles that the query names.
    """

    def __init__(
        self,
        query: str,
        bm25: Bm25,
        index: TextIndex,
        graph: NodeGraph,
        titles: Sequence[NamedTitle] = (),
    ) -> None:
        self._index = index
        self._weights = bm25.prepare(query, [index])
        self._names: list[tuple[npt.NDArray[np.int64], Rows]] = []  # terms, and where they count
        rows, terms = index.table.rows(), list(self._weights.weights)
        for title in titles:
            if " " not in title.name:
                continue
            links = (link for some in graph.links_of(title.entities) for link in some)
            mentions = [rows[link.target] for link in links if link.target in rows]
            of_name = bm25.prepare(title.name, [index]).weights
            columns = np.array([i for i, term in enumerate(terms) if term in of_name], np.int64)
            self._names.append((columns, np.array(mentions, np.int64)))

    def scores(self, rows: Rows) -> Floats:
        """Return what each term adds to the score of passages: an array (passages, terms)."""
        scores = term_scores(self._index, self._weights, rows)
        for columns, mentions in self._names:
            without = np.flatnonzero(~np.isin(rows, mentions))
            scores[np.ix_(without, columns)] = 0.0
        return scores

    def without_parts_of_names(
        self, hits: Results, rows: Mapping[str, int], lowest: float
    ) -> Results:
        """Take from hits what they score by single words of a name, and order them again.

        Args:
            hits: The hits; others than those of ``rows`` stay as they are.
            rows: The rows of the index by the ids of its passages.
            lowest: Scores get no lower.
        """
        ours = [hit for hit in hits if hit.node.id in rows]
        if not self._names or not ours:
            return hits
        at = np.array([rows[hit.node.id] for hit in ours], np.int64)
        all_words = term_scores(self._index, self._weights, at).sum(axis=1)
        scale = score_scale([hit.score - lowest for hit in ours], all_words)
        parts = scale * (all_words - self.scores(at).sum(axis=1))
        less = {hit.node.id: float(part) for hit, part in zip(ours, parts, strict=True) if part}
        lowered = [
            ScoredNode(hit.node, max(hit.score - less[hit.node.id], lowest), hit.evidence)
            if hit.node.id in less
            else hit
            for hit in hits
        ]
        return sorted(lowered, key=lambda hit: -hit.score) if less else hits


def term_scores(index: TextIndex, query: TermWeights, rows: npt.NDArray[np.int64]) -> Floats:
    """Return what each term of a query adds to the BM25 score of some nodes.

    Args:
        index: The index of the nodes, in step with the graph, whose lock is held.
        query: From ``Bm25.prepare``, for this index.
        rows: The nodes' rows in the index.

    Returns:
        An array (nodes, terms); the sums of its rows are the scores.
    """
    scores = np.zeros((len(rows), len(query.weights)))
    for column, (term, weight) in enumerate(query.weights.items()):
        rows_of_term, impacts = index.impacts(term, query.saturation)
        if len(rows_of_term):
            places = np.searchsorted(rows_of_term, rows).clip(max=len(rows_of_term) - 1)
            matches = rows_of_term[places] == rows
            scores[matches, column] = weight * impacts[places[matches]]
    return scores
