"""The scores of passages by the words of a query, alone, in linked pairs, and after others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.extractors.entity_names import has_name, name_key, names_in
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..indexes.bm25_scores import Floats, Passages, WordSearch
from ..indexes.synced_index import SyncedIndex
from ..results import Results, ScoredNode
from ..similarities.bm25 import Bm25
from .link_graph import LinkMatrix, PassageLink

SAME_TITLE = 2
"""How many passages of one title count as they are."""


class Pair(NamedTuple):
    """The best pair of a passage, or its best path from a seed over a second passage.

    Attributes:
        score: The pair's score.
        own_score: The score of the passage's own words, on the scale of the seeds' scores.
        partner: Id of the other passage; on a path, of the one before it.
        connection: What connects them.
    """

    score: float
    own_score: float
    partner: str
    connection: PassageLink

    @property
    def ends(self) -> list[str]:
        """The ids of the other passage, and of the entity if there is one."""
        entity = self.connection.entity
        return [self.partner] if entity is None else [self.partner, entity]


def score_scale(scores: Sequence[float], word_scores: Floats) -> float:
    """Return by what BM25 scores are to be multiplied to be on the scale of other scores."""
    highest = float(word_scores.max()) if len(word_scores) else 0.0
    return max(scores) / highest if highest else 0.0


def best_pairs(
    matrix: LinkMatrix,
    seed_scores: Sequence[float],
    terms: Floats,
    damping: float,
    pair_weight: float,
    limit: int | None = None,
) -> dict[str, Pair]:
    """Return the best pair of each passage that is in one, by its id.

    Args:
        matrix: The connections of the seeds to passages.
        seed_scores: The seeds' scores, 0 or more.
        terms: The score of each term in each passage, in the order of ``matrix.passages``.
        damping: The exponent of a connection's strength.
        pair_weight: What a pair counts beside a single passage.
        limit: How many passages beside the seeds have to be there, those with the best pairs;
            None for all.
    """
    seeds = len(seed_scores)
    if not seeds:
        return {}
    word_scores = terms.sum(axis=1)
    scale = score_scale(seed_scores, word_scores[:seeds])
    rows, linked = matrix.strengths.nonzero()
    gains = np.maximum(terms[linked] - terms[rows], 0.0).sum(axis=1)
    strengths = matrix.strengths[rows, linked] ** damping
    scores = np.full_like(matrix.strengths, -1.0)
    scores[rows, linked] = pair_weight * strengths * (np.array(seed_scores)[rows] + scale * gains)
    own_scores = [*seed_scores, *(scale * word_scores[seeds:]).tolist()]
    partners = scores.argmax(axis=0)
    best = scores.max(axis=0)
    connections = matrix.strongest[partners, np.arange(len(partners))]
    for seed in range(seeds):  # a seed is also the first of its own pairs
        other = int(scores[seed].argmax())
        if scores[seed, other] > best[seed]:
            best[seed], partners[seed] = scores[seed, other], other
            connections[seed] = matrix.strongest[seed, other]
    return {
        matrix.passages[column]: Pair(
            float(best[column]),
            own_scores[column],
            matrix.passages[partners[column]],
            matrix.connections[connections[column]],
        )
        for column in _best_columns(best, seeds, limit)
    }


def _best_columns(scores: Floats, seeds: int, limit: int | None) -> list[int]:
    """Return the columns of the seeds and of the best other scores, of those that are 0 or more."""
    others = scores[seeds:]
    lowest = 0.0
    if limit is not None and len(others) > limit:
        lowest = max(0.0, float(np.partition(others, -limit)[-limit]))
    others_kept = seeds + (others >= lowest).nonzero()[0]
    return [*(scores[:seeds] >= 0).nonzero()[0].tolist(), *others_kept.tolist()]


def best_paths(
    matrix: LinkMatrix,
    scores: Sequence[float],
    terms: Floats,
    covered: Floats,
    damping: float,
    path_weight: float,
    limit: int | None = None,
) -> dict[str, Pair]:
    """Return the best path of each passage that adds to what pairs have of the query, by its id.

    Args:
        matrix: The connections of the second passages of some pairs.
        scores: The pairs' scores.
        terms: The score of each term in each passage, in the order of ``matrix.passages``, on the
            scale of the scores.
        covered: The score of each term in each pair.
        damping: The exponent of a connection's strength.
        path_weight: What a path counts beside the pair that it goes on from.
        limit: How many of the best paths have to be there; None for all.
    """
    rows, linked = matrix.strengths.nonzero()
    gains = np.maximum(terms[linked] - covered[rows], 0.0).sum(axis=1)
    strengths = matrix.strengths[rows, linked] ** damping
    of_paths = path_weight * strengths * (np.array(scores)[rows] + gains)
    paths = np.full_like(matrix.strengths, -1.0)
    paths[rows, linked] = np.where(gains > 0, of_paths, -1.0)
    best, highest = paths.argmax(axis=0), paths.max(axis=0)
    own_scores = terms.sum(axis=1)
    return {
        matrix.passages[column]: Pair(
            float(highest[column]),
            float(own_scores[column]),
            matrix.passages[best[column]],
            matrix.connections[matrix.strongest[best[column], column]],
        )
        for column in _best_columns(highest, 0, limit)
        if highest[column] > 0
    }


def least_repeating(
    scores: Sequence[float],
    terms: Floats,
    weight: float,
    exempt: Sequence[bool],
    titles: Sequence[str | None] = (),
) -> list[tuple[int, float]]:
    """Return places and scores in an order in which what repeats those before it comes later.

    The next is always the one with the best score that is left, less ``weight`` times the score of
    the words that it shares with those that were taken (maximal marginal relevance, Carbonell and
    Goldstein 1998, by the terms of the query), and of the first score where two of the same title
    were taken.

    Args:
        scores: The scores, best first.
        terms: The score of each term in each passage, on the scale of the scores.
        weight: How much repetition lowers a score.
        exempt: Whether a passage counts as it is.
        titles: What passages with the same title have in common; None for those without one.
    """
    remaining = list(range(len(scores)))
    used: Counter[str | None] = Counter()
    covered = np.zeros(terms.shape[1])
    order: list[tuple[int, float]] = []
    while remaining:
        repeated = weight * np.minimum(terms[remaining], covered).sum(axis=1)
        if titles:
            often = [
                titles[position] is not None and used[titles[position]] >= SAME_TITLE
                for position in remaining
            ]
            repeated = repeated + weight * scores[0] * np.array(often)
        lowered = [
            scores[position] - (0.0 if exempt[position] else float(less))
            for position, less in zip(remaining, repeated, strict=True)
        ]
        best = int(np.argmax(lowered))
        order.append((remaining.pop(best), lowered[best]))
        if titles:
            used[titles[order[-1][0]]] += 1
        covered = np.maximum(covered, terms[order[-1][0]])
    return order


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
            links = (link for batch in graph.reader.links_of(title.entities) for link in batch)
            mentions = {link.target for link in links}
            of_name = bm25.prepare(title.name, [index]).weights
            columns = np.array([i for i, term in enumerate(terms) if term in of_name], np.int64)
            if len(columns):
                self._names.append(_NameInQuery(title.name, columns, mentions, set()))

    def scores(self, ids: Sequence[str]) -> Floats:
        """Return what each term adds to the score of passages: an array (passages, terms)."""
        return self._of_names(ids, self._passages.term_scores(ids, self._weights))

    def _of_names(self, ids: Sequence[str], scores: Floats) -> Floats:
        """Take from the scores of passages those of single words of a name."""
        for name in self._names:
            have_all = np.flatnonzero((scores[:, name.columns] > 0).all(axis=1))
            self._look_up(name, [ids[position] for position in have_all.tolist()])
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
        existing = self._passages.known([hit.node.id for hit in hits]) if self._names else ()
        native = [hit for hit in hits if hit.node.id in existing]
        if not native:
            return hits
        ids = [hit.node.id for hit in native]
        scores = self._passages.term_scores(ids, self._weights)
        all_words = scores.sum(axis=1)
        scale = score_scale([hit.score - lowest for hit in native], all_words)
        parts = scale * (all_words - self._of_names(ids, scores).sum(axis=1))
        less = {hit.node.id: float(part) for hit, part in zip(native, parts, strict=True) if part}
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


class TitleIndex(SyncedIndex):
    """Look up the passages that an entity named in a text is the title of.

    Entities say so in their metadata, ``about``; others are not kept.
    """

    @classmethod
    def open(cls, graph: NodeGraph, group: str) -> TitleIndex:
        """Return the index of a group of entities, shared by all who use it."""
        return graph.reader.shared(("title index", group), lambda: cls(graph, group))

    def clear(self) -> None:
        """Remove everything."""
        self._keys: dict[str, str] = {}  # by entity
        self._passages: dict[str, dict[str, list[str]]] = {}  # by key and entity
        self._titles: dict[str, str] = {}  # keys by passage

    def remove(self, ids: Sequence[str]) -> None:
        """Remove entities."""
        for entity in ids:
            if (key := self._keys.pop(entity, None)) is not None:
                for passage in self._passages[key].pop(entity):
                    self._titles.pop(passage, None)
                if not self._passages[key]:
                    del self._passages[key]

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Add entities."""
        for node in nodes:
            about = node.own_metadata.get("about")
            if isinstance(about, list | tuple) and about and (key := name_key(node.text)):
                self._keys[node.id] = key
                self._passages.setdefault(key, {})[node.id] = list(about)
                self._titles.update(dict.fromkeys(about, key))

    def title(self, passage: str) -> str | None:
        """Return a passage's title, as names are compared; None if it has none."""
        return self._titles.get(passage)

    def named(self, text: str) -> list[NamedTitle]:
        """Return the titles that a text names, the longest first."""
        names = names_in(text, self._passages.__contains__)
        return [
            NamedTitle(
                name,
                list(self._passages[name]),
                [passage for about in self._passages[name].values() for passage in about],
            )
            for name in names
        ]


class NamedTitle(NamedTuple):
    """A title that a query names.

    Attributes:
        name: The title, as names are compared.
        entities: The ids of the entities of this name.
        about: The ids of the passages that it is the title of.
    """

    name: str
    entities: list[str]
    about: list[str]
