"""Links between passages, direct or through entities, and the scores of linked pairs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph import Link, NodeGraph
from ..indexes import TermWeights, TextIndex

Floats = npt.NDArray[np.float64]

UNTITLED = 2 / 3
"""The share of its rarity that an entity counts if it is the title of neither passage."""

_MAX_CACHED_ENTITIES = 100_000


class PassageLink(NamedTuple):
    """What connects two passages.

    Attributes:
        type: The type of the link; of one of the entity's links.
        entity: Id of the entity between them; None for a link from one to the other.
    """

    type: str
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class LinkMatrix:
    """How the seeds, the first hits of a query, are connected to passages.

    Attributes:
        passages: The passages' ids, the seeds first.
        strengths: By seed and passage, from 0, for no connection, to 1.
        strongest: By seed and passage, the place of the strongest connection in ``connections``.
        connections: The connections.
    """

    passages: list[str]
    strengths: Floats
    strongest: npt.NDArray[np.int32]
    connections: list[PassageLink]


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Find the passages that are connected to some; for a graph whose lock is held.

    Attributes:
        graph: The graph.
        group: The group of the passages.
        index_rows: The passages' rows in the index, by id; other nodes are no passages.
        allowed: By row, whether a passage may be a result; None if all may.
        size: The number of passages.
        via: The group of the entities, None to follow links between passages only.
        types: The types of links to follow, None for all.
        max_passages_per_entity: Entities of more passages are not followed.
        max_passages: How many passages are read at most; those of the rarest entities come first.
    """

    graph: NodeGraph
    group: str
    index_rows: Mapping[str, int]
    allowed: npt.NDArray[np.bool_] | None
    size: int
    via: str | None
    types: tuple[str, ...] | None
    max_passages_per_entity: int
    max_passages: int

    def connections(self, seeds: Sequence[str]) -> LinkMatrix:
        """Return the strongest connections of passages; of equal ones, the first."""
        rows = {seed: row for row, seed in enumerate(seeds)}
        links: list[tuple[int, str, Link]] = []
        mentions: defaultdict[str, dict[int, None]] = defaultdict(dict)  # seeds by entity
        for row, seed_links in enumerate(self._links(seeds)):
            for other, link in seed_links:
                if other not in self.index_rows:
                    mentions[other][row] = None
                elif self._add_row(other, rows):
                    links.append((row, other, link))
        entities = [] if self.via is None else self._entities(mentions, rows)
        builder = _MatrixBuilder()
        for row, other, link in links:
            strength = min(link.weight, 1.0)
            builder.add(row, [rows[other]], [strength], PassageLink(link.type))
        for entity_id, entity in entities:
            connection = PassageLink(entity.type, entity_id)
            passages = [passage for passage in entity.passages if passage in rows]
            columns = [rows[passage] for passage in passages]
            titled, untitled = entity.rarity, UNTITLED * entity.rarity
            strengths = [titled if p in entity.title_of else untitled for p in passages]
            for row in mentions[entity_id]:
                is_title = seeds[row] in entity.title_of
                row_strengths = [titled] * len(passages) if is_title else strengths
                builder.add(row, columns, row_strengths, connection)
        return builder.matrix(len(seeds), list(rows))

    def _entities(
        self, mentions: Collection[str], rows: dict[str, int]
    ) -> list[tuple[str, _Entity]]:
        """Return the entities, the rarest first, and add rows for their passages."""
        key = ("link graph", self.group, self.via, self.types, self.max_passages_per_entity)
        cache = self.graph.shared(key, _EntityCache).entities(self.graph.state())
        self._read_entities([i for i in mentions if i not in cache], cache)
        entities = [(i, entity) for i in mentions if (entity := cache[i]) is not None]
        entities.sort(key=lambda item: -item[1].rarity)
        for _, entity in entities:
            for passage in entity.passages:
                self._add_row(passage, rows)
        return entities

    def _read_entities(self, ids: Sequence[str], cache: dict[str, _Entity | None]) -> None:
        """Put entities into the cache; None for other nodes, and for entities not to follow."""
        nodes = self.graph.nodes_by_id(ids)
        cache.update((node.id, None) for node in nodes)
        nodes = [node for node in nodes if node.group == self.via]
        for node, links in zip(nodes, self._links([node.id for node in nodes]), strict=True):
            passages = list(dict.fromkeys(other for other, _ in links if other in self.index_rows))
            if 1 < len(passages) <= self.max_passages_per_entity:
                rarity = math.log((self.size + 1) / len(passages)) / math.log(self.size + 1)
                about = node.own_metadata.get("about")
                title_of = about if isinstance(about, list | tuple) else passages
                cache[node.id] = _Entity(links[0][1].type, rarity, passages, frozenset(title_of))

    def _add_row(self, passage: str, rows: dict[str, int]) -> bool:
        """Add a row for a passage that may be a result, up to ``max_passages``."""
        if passage in rows:
            return True
        if len(rows) >= self.max_passages:
            return False
        if self.allowed is not None and not self.allowed[self.index_rows[passage]]:
            return False
        rows[passage] = len(rows)
        return True

    def _links(self, ids: Sequence[str]) -> Iterator[list[tuple[str, Link]]]:
        """Return for each node the nodes at the other ends of its links, and the links."""
        outgoing = self.graph.links_of(ids)
        incoming = self.graph.links_of(ids, incoming=True)
        for links_out, links_in in zip(outgoing, incoming, strict=True):
            ends = [(link.target, link) for link in links_out]
            ends += [(link.source, link) for link in links_in]
            yield [(other, link) for other, link in ends if self._follows(link)]

    def _follows(self, link: Link) -> bool:
        return link.weight > 0 and (self.types is None or link.type in self.types)


class Pair(NamedTuple):
    """The best pair of a passage.

    Attributes:
        score: The pair's score.
        own_score: The score of the passage's own words, on the scale of the seeds' scores.
        partner: Id of the other passage.
        connection: What connects them.
    """

    score: float
    own_score: float
    partner: str
    connection: PassageLink


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
        postings = index.postings(term)
        if len(postings.rows):
            places = np.searchsorted(postings.rows, rows).clip(max=len(postings.rows) - 1)
            matches = postings.rows[places] == rows
            scores[matches, column] = weight * postings.impacts(query.saturation)[places[matches]]
    return scores


def best_pairs(
    matrix: LinkMatrix,
    seed_scores: Sequence[float],
    terms: Floats,
    damping: float,
    pair_weight: float,
) -> dict[str, Pair]:
    """Return the best pair of each passage that is in one, by its id.

    Args:
        matrix: The connections of the seeds to passages.
        seed_scores: The seeds' scores, 0 or more.
        terms: The score of each term in each passage, in the order of ``matrix.passages``.
        damping: The exponent of a connection's strength.
        pair_weight: What a pair counts beside a single passage.
    """
    seeds = len(seed_scores)
    if not seeds:
        return {}
    word_scores = terms.sum(axis=1)
    highest = float(word_scores[:seeds].max())
    scale = max(seed_scores) / highest if highest else 0.0
    scores = np.zeros_like(matrix.strengths)
    for row, seed_score in enumerate(seed_scores):
        gains = np.maximum(terms - terms[row], 0.0).sum(axis=1)
        strengths = matrix.strengths[row] ** damping
        scores[row] = pair_weight * strengths * (seed_score + scale * gains)
    scores[matrix.strengths == 0] = -1.0
    own_scores = [*seed_scores, *(scale * word_scores[seeds:]).tolist()]
    partners = scores.argmax(axis=0)
    best = scores.max(axis=0)
    connections = matrix.strongest[partners, np.arange(len(partners))]
    for seed in range(seeds):  # a seed is also the first of its own pairs
        other = int(scores[seed].argmax())
        if scores[seed, other] > best[seed]:
            best[seed], partners[seed] = scores[seed, other], other
            connections[seed] = matrix.strongest[seed, other]
    pairs = zip(best.tolist(), own_scores, partners.tolist(), connections.tolist(), strict=True)
    return {
        passage: Pair(score, own, matrix.passages[partner], matrix.connections[connection])
        for passage, (score, own, partner, connection) in zip(matrix.passages, pairs, strict=True)
        if score >= 0
    }


class _Entity(NamedTuple):
    """An entity between passages."""

    type: str
    rarity: float
    passages: list[str]
    title_of: frozenset[str]


class _EntityCache:
    """Cache entities from one query to the next, until the graph changes."""

    def __init__(self) -> None:
        self._cached: tuple[int, dict[str, _Entity | None]] = (-1, {})

    def entities(self, state: int) -> dict[str, _Entity | None]:
        """Return the cache of a state of the graph."""
        cached = self._cached
        if cached[0] != state or len(cached[1]) > _MAX_CACHED_ENTITIES:
            cached = self._cached = (state, {})
        return cached[1]


class _MatrixBuilder:
    """Collect connections; of two passages the strongest, of equal ones the first."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._strengths: list[float] = []
        self._places: list[int] = []
        self._connections: list[PassageLink] = []

    def add(
        self, row: int, columns: list[int], strengths: list[float], connection: PassageLink
    ) -> None:
        """Add a connection of a seed to passages."""
        if not self._connections or self._connections[-1] is not connection:
            self._connections.append(connection)
        self._rows += [row] * len(columns)
        self._columns += columns
        self._strengths += strengths
        self._places += [len(self._connections) - 1] * len(columns)

    def matrix(self, seeds: int, passages: list[str]) -> LinkMatrix:
        """Return the strongest of the connections."""
        shape = (seeds, len(passages))
        strengths, strongest = np.zeros(shape), np.zeros(shape, np.int32)
        if self._rows:  # of several for one place the last stays
            order = np.argsort(-np.array(self._strengths), kind="stable")[::-1]
            at = np.array(self._rows)[order], np.array(self._columns)[order]
            strengths[at] = np.array(self._strengths)[order]
            strongest[at] = np.array(self._places)[order]
        diagonal = np.arange(seeds)
        strengths[diagonal, diagonal] = 0.0  # no passage is connected to itself
        return LinkMatrix(passages, strengths, strongest, self._connections)
