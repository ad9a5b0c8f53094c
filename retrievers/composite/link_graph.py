"""Links between passages, direct or through entities."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Link
from ..indexes.bm25_scores import Floats, Meets, Passages
from ..validation import number, whole

UNTITLED = 2 / 3
"""The share of its rarity that an entity counts if it is the title of neither passage."""

IN_TITLE = 3 / 4
"""The same if its name stands in a title among other words."""

_MAX_CACHED_ENTITIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """Set how far links are followed and how pairs score; see ``LinkRetriever``.

    Args:
        seeds: From how many of the first hits links are followed.
        strength_exponent: How much a weak connection lowers a pair's score: 0 not at all, 1 in
            proportion.
        pair_weight: The weight of a pair beside a single passage; below 1, so that a passage that
            answers the question itself is not overtaken by pairs that are hardly better.
        path_weight: The weight of what a second link adds, see ``LinkRetriever``; 0 for none.
        named: How many of the passages whose title the query names count as much as the first
            hit, for each name; 0 for none, and words of a name then count one by one.
        repetition: How much the words of the query that a passage shares with those before it
            lower its score, and, of the first score, that two of the same title are before it; 0
            not at all. So what says something else comes sooner.
        max_passages_per_entity: Entities that are linked to more passages are not followed.
        max_passages: How many passages are scored for a query at most, those of rare entities
            first.

    Raises:
        TypeError: If a number is none.
        ValueError: If it is out of range.
    """

    seeds: int = 10
    strength_exponent: float = 0.5
    pair_weight: float = 0.9
    path_weight: float = 0.75
    named: int = 2
    repetition: float = 0.15
    max_passages_per_entity: int = 100
    max_passages: int = 500

    def __post_init__(self) -> None:
        for name in ("seeds", "max_passages_per_entity", "max_passages"):
            whole(getattr(self, name), name, 1)
        whole(self.named, "named", 0)
        for name in ("strength_exponent", "pair_weight", "path_weight", "repetition"):
            number(getattr(self, name), name)


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
        passages: Which nodes are passages.
        allowed: Says whether a passage may be a result; None if all may.
        size: The number of passages.
        via: The group of the entities, None to follow links between passages only.
        types: The types of links to follow, None for all.
        options: How far links are followed.
    """

    graph: NodeGraph
    group: str
    passages: Passages
    allowed: Meets | None
    size: int
    via: str | None
    types: tuple[str, ...] | None
    options: LinkOptions

    def connections(self, seeds: Sequence[str]) -> LinkMatrix:
        """Return the strongest connections of passages; of equal ones, the first."""
        links: list[tuple[int, str, Link]] = []
        mentions: defaultdict[str, dict[int, None]] = defaultdict(dict)  # seeds by entity
        of_seeds = [*self._links(seeds)]
        existing = self.passages.known(other for seed_links in of_seeds for other, _ in seed_links)
        for row, seed_links in enumerate(of_seeds):
            for other, link in seed_links:
                if other in existing:
                    links.append((row, other, link))
                else:
                    mentions[other][row] = None
        entities = [] if self.via is None else self._entities(mentions)
        of_entities = [*chain.from_iterable(entity.shares for entity in entities)]
        columns = self._columns(seeds, [*(other for _, other, _ in links), *of_entities])
        strengths = np.zeros((len(seeds), len(columns)))
        strongest = np.zeros_like(strengths, np.int32)
        connections: list[PassageLink] = []
        for row, other, link in links:
            weight, column = min(link.weight, 1.0), columns[other]
            if column >= 0 and weight > strengths[row, column]:
                strengths[row, column], strongest[row, column] = weight, len(connections)
                connections.append(PassageLink(link.type))
        at_entities = np.fromiter(map(columns.__getitem__, of_entities), np.int64)
        pairs = [
            (at, row, entity.shares.get(seeds[row], UNTITLED))
            for at, entity in enumerate(entities)
            for row in mentions[entity.id]
        ]
        if pairs:
            highest, rarest = _strongest(entities, at_entities, pairs, strengths.shape)
            stronger = highest > strengths
            strengths[stronger] = highest[stronger]
            strongest[stronger] = len(connections) + rarest[stronger]
        connections += [PassageLink(entity.type, entity.id) for entity in entities]
        np.fill_diagonal(strengths, 0.0)  # no passage is connected to itself
        return LinkMatrix(list(columns), strengths, strongest, connections)

    def _columns(self, seeds: Sequence[str], others: Sequence[str]) -> _PassageColumns:
        """Number the seeds and the others that may be results, up to ``max_passages``."""
        passages: Iterable[str] = dict.fromkeys(chain(seeds, others))
        if self.allowed is not None:
            self.passages.known(passages)  # all at once
            of_seeds = {*seeds}
            passages = (i for i in passages if i in of_seeds or self.allowed(i))
        maximum = max(len(seeds), self.options.max_passages)
        return _PassageColumns(zip(islice(passages, maximum), count(), strict=False))

    def _entities(self, mentions: Collection[str]) -> list[_Entity]:
        """Return the entities, the rarest first."""
        key = ("link graph", self.group, self.via, self.types, self.options.max_passages_per_entity)
        by_state: dict[int, dict[str, _Entity | None]] = self.graph.reader.shared(key, dict)
        cache = by_state.get(self.graph.reader.state())
        if cache is None or len(cache) > _MAX_CACHED_ENTITIES:
            by_state.clear()
            cache = by_state[self.graph.reader.state()] = {}
        self._read_entities([i for i in mentions if i not in cache], cache)
        entities = [entity for i in mentions if (entity := cache[i]) is not None]
        return sorted(entities, key=lambda entity: (-entity.rarity, entity.order))

    def _read_entities(self, ids: Sequence[str], cache: dict[str, _Entity | None]) -> None:
        """Put entities into the cache; None for other nodes, and for entities not to follow."""
        nodes = self.graph.reader.nodes_by_id(ids)
        entities: dict[str, _Entity | None] = dict.fromkeys([node.id for node in nodes])
        nodes = [node for node in nodes if node.group == self.via]
        of_nodes = [*self._links([node.id for node in nodes])]
        for node, links, passages in zip(nodes, of_nodes, self._ends(of_nodes), strict=True):
            if 1 < len(passages) <= self.options.max_passages_per_entity:
                rarity = math.log((self.size + 1) / len(passages)) / math.log(self.size + 1)
                about, within = map(node.own_metadata.get, ("about", "in_titles"))
                title_of = about if isinstance(about, list | tuple) else passages
                shares = dict.fromkeys(within if isinstance(within, list | tuple) else (), IN_TITLE)
                shares |= dict.fromkeys(title_of, 1.0)
                of_passages = {passage: shares.get(passage, UNTITLED) for passage in passages}
                link = links[0][1].type
                entities[node.id] = _Entity(node.id, link, rarity, node.order, of_passages)
        cache.update(entities)  # other threads read it meanwhile

    def _ends(self, of_nodes: Sequence[list[tuple[str, Link]]]) -> list[list[str]]:
        """Return the passages at the ends of each node's links: all, or more than are followed."""
        step = self.options.max_passages_per_entity + 1
        ends = [list(dict.fromkeys(other for other, _ in links)) for links in of_nodes]
        passages: list[list[str]] = [[] for _ in ends]
        for start in range(0, max(map(len, ends), default=0), step):
            parts = [
                others[start : start + step] if len(of_node) < step else []
                for others, of_node in zip(ends, passages, strict=True)
            ]
            existing = self.passages.known(other for part in parts for other in part)
            for of_node, part in zip(passages, parts, strict=True):
                of_node += [other for other in part if other in existing]
        return passages

    def _links(self, ids: Sequence[str]) -> Iterator[list[tuple[str, Link]]]:
        """Return for each node the nodes at the other ends of its links, and the links."""
        outgoing = self.graph.reader.links_of(ids)
        incoming = self.graph.reader.links_of(ids, incoming=True)
        for links_out, links_in in zip(outgoing, incoming, strict=True):
            ends = [(link.target, link) for link in links_out]
            ends += [(link.source, link) for link in links_in]
            yield [
                (other, link)
                for other, link in ends
                if link.weight > 0 and (self.types is None or link.type in self.types)
            ]


class _Entity(NamedTuple):
    """An entity between passages."""

    id: str
    type: str
    rarity: float
    order: int
    shares: Mapping[str, float]  # of its rarity that it counts, by passage


class _PassageColumns(dict[str, int]):
    """The columns of passages, -1 for those that have none."""

    def __missing__(self, passage: str) -> int:
        return -1


def _strongest(
    entities: Sequence[_Entity],
    columns: npt.NDArray[np.int64],
    pairs: Sequence[tuple[int, int, float]],
    shape: tuple[int, ...],
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return how strongest entities connect rows and columns, and by which entity, the first one.

    Args:
        entities: The entities.
        columns: Those of the passages of all entities, one entity after the other.
        pairs: An entity, a row that it is linked to, and what it counts there, the first one first.
        shape: Rows and columns.
    """
    sizes = np.array([len(entity.shares) for entity in entities])
    shares = np.fromiter(chain.from_iterable(e.shares.values() for e in entities), np.float64)
    rarities = np.array([entity.rarity for entity in entities])
    of_pairs, rows, own = (np.array(values) for values in zip(*pairs, strict=True))
    count_of = sizes[of_pairs]
    # Of each pair the places of its entity's passages.
    first = (np.cumsum(sizes) - sizes)[of_pairs] - (np.cumsum(count_of) - count_of)
    at = np.arange(count_of.sum()) + first.repeat(count_of)
    strengths = np.maximum(shares[at], own.repeat(count_of))
    strengths *= rarities[of_pairs].repeat(count_of)
    cells = rows.repeat(count_of) * shape[1] + columns[at]
    has_column = columns[at] >= 0
    cells, strengths = cells[has_column], strengths[has_column]
    of_cells = of_pairs.repeat(count_of)[has_column]
    highest = np.zeros(shape[0] * shape[1])
    np.maximum.at(highest, cells, strengths)
    strongest = np.zeros(len(highest), np.int32)
    best = (strengths == highest[cells]).nonzero()[0][::-1]  # the first one is written last
    strongest[cells[best]] = of_cells[best]
    return highest.reshape(shape), strongest.reshape(shape)
