"""The words of a query in passages, where those of a name count together or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.extractors.entity_names import has_name
from ...nodegraph.graph import NodeGraph
from ..indexes.bm25_scores import Floats
from ..indexes.word_search import Passages, WordSearch
from ..results import Results, ScoredNode
from ..similarities.bm25 import Bm25
from .link_scores import score_scale
from .title_index import NamedTitle


class QueryWords:
    """Score passages by each term of a query; for a graph whose lock is held.

    The words of a title that the query names count in the passages that mention it: "Dodge City
    Regional Airport" does not ask for what else is in a Dodge or regional. A passage mentions what
    it is linked to, and what it has the same words for in a row: "breast cancer", which is no name
    in most texts, is the title of a passage. Titles of one word are left to their weight.

    Args:
        query: The query.
        bm25: Weighs its words.
        index: The words of the passages, in step with the graph.
        passages: The passages.
        graph: Where names are linked to passages.
        titles: The titles that the query names.
    """

    def __init__(
        self,
        query: str,
        bm25: Bm25,
        index: WordSearch,
        passages: Passages,
        graph: NodeGraph,
        titles: Sequence[NamedTitle] = (),
    ) -> None:
        self._passages = passages
        self._graph = graph
        self._weights = bm25.prepare(query, [index])
        self._names: list[_NameInQuery] = []
        terms = list(self._weights.weights)
        for title in titles:
            if " " not in title.name:
                continue
            links = (link for some in graph.reader.links_of(title.entities) for link in some)
            mentions = {link.target for link in links}
            of_name = bm25.prepare(title.name, [index]).weights
            columns = np.array([i for i, term in enumerate(terms) if term in of_name], np.int64)
            if len(columns):
                self._names.append(_NameInQuery(title.name, columns, mentions, set()))

    def scores(self, ids: Sequence[str]) -> Floats:
        """Return what each term adds to the score of passages: an array (passages, terms)."""
        scores = self._passages.term_scores(ids, self._weights)
        for name in self._names:
            have_all = np.flatnonzero((scores[:, name.columns] > 0).all(axis=1))
            self._look_up(name, [ids[place] for place in have_all.tolist()])
            without = [passage not in name.mentions for passage in ids]
            scores[np.ix_(np.array(without, np.bool_), name.columns)] = 0.0
        return scores

    def _look_up(self, name: _NameInQuery, ids: Sequence[str]) -> None:
        """Find out which of some passages, that have all words of a name, have them in a row."""
        new = [i for i in ids if i not in name.mentions and i not in name.without]
        if not new:
            return
        texts = self._graph.reader.searched_texts(self._graph.reader.nodes_by_id(new))
        for passage, text in zip(new, texts, strict=True):
            (name.mentions if has_name(text, name.name) else name.without).add(passage)

    def without_parts_of_names(self, hits: Results, lowest: float) -> Results:
        """Take from hits what they score by single words of a name, and order them again.

        Args:
            hits: The hits; what is no passage stays as it is.
            lowest: Scores get no lower.
        """
        known = self._passages.known([hit.node.id for hit in hits]) if self._names else ()
        ours = [hit for hit in hits if hit.node.id in known]
        if not ours:
            return hits
        ids = [hit.node.id for hit in ours]
        all_words = self._passages.term_scores(ids, self._weights).sum(axis=1)
        scale = score_scale([hit.score - lowest for hit in ours], all_words)
        parts = scale * (all_words - self.scores(ids).sum(axis=1))
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
        mentions: The ids of the passages that mention it, as far as it is known.
        without: The ids of those of which it is known that they don't.
    """

    name: str
    columns: npt.NDArray[np.int64]
    mentions: set[str]
    without: set[str]
