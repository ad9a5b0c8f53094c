"""Scores of linked passages, based on links and on the query words in passages, pairs and paths."""

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
from ..indexes.bm25_weights import Floats
from ..indexes.text_index import Meets, TextIndex
from ..results import Results
from ..search import View
from .link_index import Entity, LinkIndex
from .link_names import has_name

STRENGTH_EXPONENT = 0.5
"""The influence of a connection's strength on the score of a pair, from 0 to 1 (proportional)."""

PAIR_WEIGHT = 0.9
"""The weight of a pair compared with a single passage.

Because the weight is below 1, a passage that answers the question alone is ranked before pairs that
are hardly better.
"""

PATH_WEIGHT = 0.75
"""The weight of the gain of a second link."""

SAME_TITLE = 2
"""The number of passages with the same title whose scores are not reduced."""


UNTITLED = 2 / 3
"""The factor of an entity's rarity if the entity is not the title of either passage."""

IN_TITLE = 3 / 4
"""The factor of an entity's rarity if a title contains the entity among other words."""

MAX_PASSAGES = 500
"""The maximum number of passages that are scored for a query.

Passages of rare entities come first.
"""


Connection = tuple[str, str | None]
"""The type of a link, and the key of the name that connects the passages (None if direct)."""


@dataclass(frozen=True, slots=True)
class LinkMatrix:
    """The connections from seeds, which are the first results of a query, to other passages.

    Attributes:
        passages: The ids of the passages, beginning with the seeds.
        strengths: An array of shape (seeds, passages) that contains the strength of each
            connection, from 0 (no connection) to 1.
        strongest: An array of shape (seeds, passages) that contains indexes of ``connections``.
        connections: The connections.
    """

    passages: list[str]
    strengths: Floats
    strongest: npt.NDArray[np.int64]
    connections: list[Connection]


class Connections(NamedTuple):
    """The links and names of passages.

    Attributes:
        seeds: The ids of the passages from which links are followed.
        links: Tuples of the index of a seed, the linked passage and the link.
        entities: The names in the seeds, beginning with the rarest.
        passages: The ids of the seeds and of all passages that are considered.
        size: The total number of passages.
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
        graph: The graph. Its lock must be held.
        passages: The index of the passages.
        allowed: A function that returns whether a passage may be a result. If None, all passages
            are allowed.
        index: The index of names. If None, only direct links are followed.
        seeds: The ids of the passages from which links are followed.
    """
    links = _direct_links(graph, passages, seeds)
    entities = [] if index is None else index.entities(seeds)
    entities.sort(key=lambda entity: (len(entity.passages), entity.rank))
    considered = _considered(seeds, links, entities, allowed)
    return Connections(seeds, links, entities, considered, passages.size)


def link_matrix(read: Connections) -> LinkMatrix:
    """Determine the strongest connection between each seed and each passage.

    If several connections are equally strong, the first one is used.
    """
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
    np.fill_diagonal(matrix, 0.0)  # passages are not connected to themselves
    return LinkMatrix(ids, matrix, np.array(strongest).reshape(matrix.shape), connections)


def _direct_links(
    graph: NodeGraph, passages: TextIndex, seeds: Sequence[str]
) -> list[tuple[int, str, Link]]:
    """Return the direct links of seeds in both directions.

    Each link is a tuple of the index of the seed, the linked passage and the link.
    """
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
    """Return the ids of the seeds and of linked passages, up to ``MAX_PASSAGES`` in total."""
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
    """Return the strength with which an entity belongs to each of its passages, by column."""
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
    """Update the columns of a row for which a new connection is stronger than the current one."""
    for column, part in parts.items():
        strength = max(part, least)
        if strength > strengths[column]:
            strengths[column] = strength
            strongest[column] = connection


class Pair(NamedTuple):
    """The best pair of a passage, or its best path from a seed through a second passage.

    Attributes:
        score: The score of the pair.
        own_score: The score of the words in the passage itself, on the scale of the seeds' scores.
        partner: The id of the other passage. On a path, this is the preceding passage.
        connection: The connection between the two passages.
    """

    score: float
    own_score: float
    partner: str
    connection: Connection


def score_scale(scores: Sequence[float], word_scores: Floats) -> float:
    """Return the factor that converts BM25 scores to the scale of other scores."""
    highest = float(word_scores.max(initial=0.0))
    return max(scores) / highest if highest else 0.0


def best_pairs(
    matrix: LinkMatrix,
    scores: Sequence[float],
    terms: Floats,
    limit: int,
    covered: Floats | None = None,
) -> dict[str, Pair]:
    """Return the best pair of each passage that has a pair, by the id of the passage.

    If ``covered`` is given, pairs are extended to paths by passages that contain further words of
    the query.

    Args:
        matrix: The connections of the first passages of pairs, or of the second passages of pairs
            that are extended.
        scores: The scores of these passages or pairs, at least 0.
        terms: An array of term scores with shape (passages, terms), in the order of
            ``matrix.passages`` and on the scale of ``scores``.
        limit: The minimum number of passages in addition to the first passages of pairs.
        covered: An array of term scores with shape (pairs, terms) for the pairs that are extended.
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
    """Return the scores of all pairs or paths, or -1 for passages without a connection.

    See ``best_pairs`` for the arguments.
    """
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
    """Rerank passages so that repetitive passages come later. Return their positions and scores.

    The method is maximal marginal relevance (Carbonell and Goldstein, 1998) over the terms of the
    query. A score is reduced by ``weight`` times the score of terms that occur in earlier passages.
    If two earlier passages have the same title, it is also reduced by ``weight`` times the highest
    score.

    Args:
        scores: The scores, best first.
        terms: An array of term scores with shape (passages, terms), on the scale of ``scores``.
        weight: The factor by which repetition reduces a score.
        exempt: For each passage, whether its score is left unchanged.
        titles: For each passage, the key of its title, or None if it has no title.
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
    """The scores of passages for each term of a query.

    If the query contains a title, the words of the title are counted only in passages that mention
    the title. For example, a question about "Dodge City Regional Airport" is not about regions in
    general. A passage mentions a title if it contains the name or the same sequence of words:
    "breast cancer" is the title of a passage, but most texts do not write it as a name. Titles that
    consist of one word are not restricted.

    Args:
        view: The rankings of the query in one snapshot of the graph, whose lock must be held.
        words: The search for words in passages.
        graph: The graph.
        titles: The titles that the query contains.
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
        # Whether a passage mentions a title, by title and passage.
        self._mentions: dict[tuple[str, str], bool] = {}
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
        """Return an array of shape (passages, terms) with the score of each term in each passage.

        Args:
            ids: The ids of the passages.
            parts: Whether the words of titles are counted in all passages.
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
        """Subtract the scores of individual words of names from results, and sort them again.

        Args:
            hits: The results. A result that is not a passage is left unchanged.
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
