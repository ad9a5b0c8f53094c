"""The words of a query in passages, where those of a name count together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph import NodeGraph
from ...nodegraph.extractors import has_name
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
    Regional Airport" does not ask for what else is in a Dodge or regional. A passage mentions what
    it is linked to, and what it has the same words for in a row: "breast cancer", which is no name
    in most texts, is the title of a passage. Titles of one word are left to their weight.

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
        self._graph = graph
        self._weights = bm25.prepare(query, [index])
        self._names: list[_NameInQuery] = []
        rows, terms = index.table.rows(), list(self._weights.weights)
        for title in titles:
            if " " not in title.name:
                continue
            links = (link for some in graph.links_of(title.entities) for link in some)
            mentions = [rows[link.target] for link in links if link.target in rows]
            of_name = bm25.prepare(title.name, [index]).weights
            columns = np.array([i for i, term in enumerate(terms) if term in of_name], np.int64)
            if len(columns):
                self._names.append(_NameInQuery(title.name, columns, set(mentions), set()))

    def scores(self, rows: Rows) -> Floats:
        """Return what each term adds to the score of passages: an array (passages, terms)."""
        scores = term_scores(self._index, self._weights, rows)
        for name in self._names:
            self._look_up(name, rows[(scores[:, name.columns] > 0).all(axis=1)].tolist())
            without = [row not in name.mentions for row in rows.tolist()]
            scores[np.ix_(np.array(without, np.bool_), name.columns)] = 0.0
        return scores

    def _look_up(self, name: _NameInQuery, rows: Sequence[int]) -> None:
        """Find out which of some rows, that have all words of a name, have them in a row."""
        new = [row for row in rows if row not in name.mentions and row not in name.without]
        if not new:
            return
        ids = self._index.table.ids.take(np.array(new, np.int64))
        texts = self._graph.searched_texts(self._graph.nodes_by_id(ids))
        for row, text in zip(new, texts, strict=True):
            (name.mentions if has_name(text, name.name) else name.without).add(row)

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


class _NameInQuery(NamedTuple):
    """Hold a title that the query names.

    Attributes:
        name: Its key.
        columns: Which of the query's terms are its words.
        mentions: The rows of the passages that mention it, as far as it is known.
        without: The rows of those of which it is known that they don't.
    """

    name: str
    columns: npt.NDArray[np.int64]
    mentions: set[int]
    without: set[int]


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
