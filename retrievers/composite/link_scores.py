"""Links between passages, and query word scores of passages, linked pairs and paths."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import MEMBER, Link
from ..branch import Branch
from ..indexes.bm25_scores import Floats
from ..indexes.text_index import Meets, TextIndex
from ..results import Results
from ..search import View
from .link_index import Entity, LinkIndex
from .link_names import has_name

STRENGTH_EXPONENT = 0.5
"""The effect of a connection's strength on a pair's score: 0 for none, 1 for proportional."""

PAIR_WEIGHT = 0.9
"""The weight of a pair compared with a single passage.

With a weight below 1, a passage that answers the question alone stays before pairs that are hardly
better.
"""

PATH_WEIGHT = 0.75
"""The weight of the gain of a second link."""

SAME_TITLE = 2
"""The number of passages with the same title whose scores are not lowered."""


UNTITLED = 2 / 3
"""The factor of an entity's rarity if the entity is the title of neither passage."""

IN_TITLE = 3 / 4
"""The factor of an entity's rarity if a title contains the entity among other words."""

MAX_PASSAGES = 500
"""The maximum number of passages that are scored for a query. Those of rare entities come first."""


Connection = tuple[str, str | None]
"""The type of a link, and the key of the name that connects the passages (None if direct)."""


@dataclass(frozen=True, slots=True)
class LinkMatrix:
    """The connections from seeds (the first hits of a query) to passages.

    Attributes:
        passages: The ids of the passages, the seeds first.
        strengths: An array (seeds, passages) of the strengths, from 0 (no connection) to 1.
        strongest: An array (seeds, passages) of positions in ``connections``.
        connections: The connections.
    """

    passages: list[str]
    strengths: Floats
    strongest: npt.NDArray[np.int64]
    connections: list[Connection]


class Connections(NamedTuple):
    """The links and names of passages.

    Attributes:
        seeds: The ids of the passages.
        links: Triples of a seed's position, the linked passage and the link.
        entities: The names in the seeds, the rarest first.
        passages: The ids of the seeds and of the passages that are considered.
        size: The number of all passages.
    """

    seeds: Sequence[str]
    links: Sequence[tuple[int, str, Link]]
    entities: Sequence[Entity]
    passages: Sequence[str]
    size: int


def read_connections(
    graph: NodeGraph,
    passages: TextIndex,
    allowed: Meets | None,
    index: LinkIndex | None,
    seeds: Sequence[str],
) -> Connections:
    """Read the links and names of passages.

    Args:
        graph: The node graph. Its lock must be held.
        passages: The index of the passages.
        allowed: A predicate for passages that may be results. None means all passages.
        index: The index of names. By default, only direct links are followed.
        seeds: The ids of passages.
    """
    links = _direct_links(graph, passages, seeds)
    entities = [] if index is None else index.entities(seeds)
    entities.sort(key=lambda entity: (len(entity.passages), entity.rank))
    considered = _considered(seeds, links, entities, allowed)
    return Connections(seeds, links, entities, considered, passages.size)


def link_matrix(read: Connections) -> LinkMatrix:
    """Return the strongest connections of passages. Among equal connections, the first is used."""
    seeds = read.seeds
    ids = [*read.passages]
    columns = {passage: column for column, passage in enumerate(ids)}
    strengths = [[0.0] * len(ids) for _ in seeds]
    strongest = [[0] * len(ids) for _ in seeds]
    connections: list[Connection] = []
    for row, passage, link in read.links:
        if passage in columns:
            part = {columns[passage]: min(link.weight, 1.0)}
            _strengthen(strengths[row], strongest[row], part, len(connections))
            connections.append((link.type, None))
    for entity in read.entities:
        parts = _entity_parts(entity, columns, read.size)
        for row in [column for column in parts if column < len(seeds)]:
            _strengthen(strengths[row], strongest[row], parts, len(connections), parts[row])
        connections.append((MEMBER, entity.key))
    matrix = np.array(strengths).reshape(len(seeds), len(ids))
    np.fill_diagonal(matrix, 0.0)  # no passage is connected to itself
    return LinkMatrix(ids, matrix, np.array(strongest).reshape(matrix.shape), connections)


def _direct_links(
    graph: NodeGraph, passages: TextIndex, seeds: Sequence[str]
) -> list[tuple[int, str, Link]]:
    """Return triples of a seed's position, the linked passage and the link."""
    row_of = passages.table.row_of
    outgoing = graph.reader.links_of(seeds)
    incoming = graph.reader.links_of(seeds, incoming=True)
    links = []
    for row in range(len(seeds)):
        ends = [(link.target, link) for link in outgoing[row]]
        ends += [(link.source, link) for link in incoming[row]]
        links += [(row, i, link) for i, link in ends if link.weight > 0 and row_of(i) >= 0]
    return links


def _considered(
    seeds: Sequence[str],
    links: Sequence[tuple[int, str, Link]],
    entities: Sequence[Entity],
    allowed: Meets | None,
) -> list[str]:
    """Return the ids of the seeds, and of at most ``MAX_PASSAGES`` passages in all."""
    considered = dict.fromkeys(seeds)
    linked = [passage for _, passage, _ in links]
    for passages in (linked, *(entity.passages for entity in entities)):
        for passage in passages:
            if len(considered) >= MAX_PASSAGES:
                return [*considered]
            if passage in considered:
                continue
            if allowed is None or allowed(passage):
                considered[passage] = None
    return [*considered]


def _entity_parts(entity: Entity, columns: Mapping[str, int], size: int) -> dict[int, float]:
    """Return how strongly an entity belongs to its passages, by column."""
    rarity = math.log((size + 1) / len(entity.passages)) / math.log(size + 1)
    shares = dict.fromkeys(entity.in_titles, IN_TITLE) | dict.fromkeys(entity.about, 1.0)
    return {
        columns[passage]: rarity * shares.get(passage, UNTITLED)
        for passage in entity.passages
        if passage in columns
    }


def _strengthen(
    strengths: list[float],
    strongest: list[int],
    parts: Mapping[int, float],
    connection: int,
    least: float = 0.0,
) -> None:
    """Update the columns of a row in which a new connection is stronger."""
    for column, part in parts.items():
        strength = max(part, least)
        if strength > strengths[column]:
            strengths[column] = strength
            strongest[column] = connection


class Pair(NamedTuple):
    """The best pair of a passage, or its best path from a seed through a second passage.

    Attributes:
        score: The score of the pair.
        own_score: The score of the passage's own words, on the scale of the seeds' scores.
        partner: The id of the other passage. On a path, this is the passage before.
        connection: The connection of the two passages.
    """

    score: float
    own_score: float
    partner: str
    connection: Connection


def score_scale(scores: Sequence[float], word_scores: Floats) -> float:
    """Return the factor from BM25 scores to the scale of other scores."""
    highest = float(word_scores.max(initial=0.0))
    return max(scores) / highest if highest else 0.0


def best_pairs(
    matrix: LinkMatrix,
    scores: Sequence[float],
    terms: Floats,
    limit: int,
    covered: Floats | None = None,
) -> dict[str, Pair]:
    """Return the best pair of each paired passage, by the passage's id.

    With ``covered``, pairs are extended to paths by passages that add words of the query.

    Args:
        matrix: The connections of the first passages of pairs, or of the second passages of
            continued pairs.
        scores: The scores of these passages or pairs, 0 or more.
        terms: An array (passages, terms) of term scores, in the order of ``matrix.passages`` and on
            the scale of ``scores``.
        limit: The minimum number of passages besides the first passages of pairs.
        covered: An array (pairs, terms) of term scores in the continued pairs.
    """
    is_path = covered is not None
    seeds = 0 if is_path else len(scores)
    pairs = _pair_scores(matrix, scores, terms, covered)
    best = pairs.max(axis=0)
    partners = pairs.argmax(axis=0)
    connections = matrix.strongest[partners, np.arange(len(partners))]
    for seed in range(seeds):  # a seed is the first passage of its pairs
        other = int(pairs[seed].argmax())
        if pairs[seed, other] > best[seed]:
            best[seed] = pairs[seed, other]
            partners[seed] = other
            connections[seed] = matrix.strongest[seed, other]
    is_pair = best > 0 if is_path else best >= 0
    others = best[seeds:]
    if len(others) > limit:
        is_pair[seeds:] &= others >= np.partition(others, -limit)[-limit]
    own_scores = [*scores[:seeds], *terms[seeds:].sum(axis=1).tolist()]
    return {
        matrix.passages[at]: Pair(
            float(best[at]),
            float(own_scores[at]),
            matrix.passages[partners[at]],
            matrix.connections[connections[at]],
        )
        for at in is_pair.nonzero()[0].tolist()
    }


def _pair_scores(
    matrix: LinkMatrix, scores: Sequence[float], terms: Floats, covered: Floats | None
) -> Floats:
    """Return the scores of all pairs or paths, or -1 where there is no pair. See ``best_pairs``."""
    rows, linked = matrix.strengths.nonzero()
    known = terms if covered is None else covered
    gains = np.maximum(terms[linked] - known[rows], 0.0).sum(axis=1)
    strengths = matrix.strengths[rows, linked] ** STRENGTH_EXPONENT
    weight = PAIR_WEIGHT if covered is None else PATH_WEIGHT
    scored = weight * strengths * (np.array(scores)[rows] + gains)
    if covered is not None:
        scored[gains <= 0] = -1.0
    pairs = np.full_like(matrix.strengths, -1.0)
    pairs[rows, linked] = scored
    return pairs


def least_repeating(
    scores: Sequence[float],
    terms: Floats,
    weight: float,
    exempt: Sequence[bool],
    titles: Sequence[str | None],
) -> list[tuple[int, float]]:
    """Rank repetitive passages lower. Return positions and scores.

    This is maximal marginal relevance (Carbonell and Goldstein 1998) over the terms of the query. A
    score is lowered by ``weight`` times the score of the terms in earlier passages. It is lowered
    by ``weight`` times the first score if two earlier passages have the same title.

    Args:
        scores: The scores, best first.
        terms: An array (passages, terms) of term scores, on the scale of ``scores``.
        weight: How much repetition lowers a score.
        exempt: Whether a passage keeps its score.
        titles: The key of each passage's title, or None without a title.
    """
    used: Counter[str | None] = Counter()
    covered = np.zeros(terms.shape[1])
    own = np.array(scores)
    is_left = np.ones(len(scores), np.bool_)
    order: list[tuple[int, float]] = []
    while is_left.any():
        repeated = weight * np.minimum(terms, covered).sum(axis=1)
        often = [title is not None and used[title] >= SAME_TITLE for title in titles]
        repeated = repeated + weight * scores[0] * np.array(often)
        lowered = np.where(is_left, own - np.where(exempt, 0.0, repeated), -np.inf)
        best = int(lowered.argmax())
        order.append((best, float(lowered[best])))
        is_left[best] = False
        used[titles[best]] += 1
        covered = np.maximum(covered, terms[best])
    return order


class QueryWords:
    """The scores of passages by each term of a query.

    If the query names a title, the title's words count only in passages that mention the title:
    "Dodge City Regional Airport" does not ask about a Dodge or a region in general. A passage
    mentions a title if it contains the name, or the same words in sequence: "breast cancer" is the
    title of a passage, but not a name in most texts. Titles of one word are not restricted.

    Args:
        view: The view of the query, whose locks must be held.
        words: The branch of the passages' words.
        graph: The graph.
        titles: The titles that the query names.
    """

    def __init__(
        self, view: View, words: Branch, graph: NodeGraph, titles: Sequence[Entity]
    ) -> None:
        self._view = view
        self._branch = words
        self._graph = graph
        self._passages = cast(TextIndex, view.source(words).opened.index)
        bm25 = words.scorings[0].similarity
        terms = [*view.prepared(words).weights]
        self._mentions: dict[tuple[str, str], bool] = {}  # by title and passage
        self._columns: dict[str, list[int]] = {}  # the terms of each title
        for title in titles:
            if " " not in title.key:
                continue
            of_title = bm25.prepare(title.key, [self._passages]).weights
            columns = [at for at, term in enumerate(terms) if term in of_title]
            if columns:
                self._columns[title.key] = columns
                self._mentions |= {(title.key, passage): True for passage in title.passages}

    def scores(self, ids: Sequence[str], parts: bool = False) -> Floats:
        """Return an array (passages, terms) of the scores of each term.

        Args:
            ids: The passages.
            parts: Whether the words of titles count in all passages.
        """
        scores: Floats = self._view.term_scores(self._branch, [(0, i) for i in ids])
        if parts:
            return scores
        for title, columns in self._columns.items():
            has_all = np.all(scores[:, columns] > 0, axis=1).tolist()
            keys = [(title, passage) for passage in ids]
            new = [at for at, key in enumerate(keys) if has_all[at] and key not in self._mentions]
            texts = self._texts([ids[at] for at in new])
            for at, text in zip(new, texts, strict=True):
                self._mentions[keys[at]] = has_name(text, title)
            without = [at for at, key in enumerate(keys) if not self._mentions.get(key, False)]
            for column in columns:
                scores[without, column] = 0.0
        return scores

    def _texts(self, ids: Sequence[str]) -> list[str]:
        if not ids:
            return []
        reader = self._graph.reader
        with self._view.reading():
            return reader.searched_texts(reader.nodes_by_id(ids))

    def without_parts_of_names(self, hits: Results, lowest: float) -> Results:
        """Subtract the scores of a name's single words from hits, and re-sort the hits.

        Args:
            hits: The hits. A hit that is not a passage stays unchanged.
            lowest: The lowest score.
        """
        if not self._columns:
            return hits
        with self._view.reading():
            row_of = self._passages.table.row_of
            own = [hit for hit in hits if hit.node.graph is self._graph]
            native = [hit for hit in own if row_of(hit.node.id) >= 0]
        if not native:
            return hits
        ids = [hit.node.id for hit in native]
        every = self.scores(ids, parts=True).sum(axis=1)
        scale = score_scale([hit.score - lowest for hit in native], every)
        parts = scale * (every - self.scores(ids).sum(axis=1))
        less = {id(hit): part for hit, part in zip(native, parts.tolist(), strict=True) if part}
        lowered = [
            replace(hit, score=max(hit.score - less[id(hit)], lowest)) if id(hit) in less else hit
            for hit in hits
        ]
        return sorted(lowered, key=lambda hit: -hit.score)
