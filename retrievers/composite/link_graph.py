"""Links between passages, direct or through names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.derivation import CORPUS
from ...nodegraph.extractors.entity_extractor import EntityExtractor, Mentions, names_in
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.node import MEMBER, Link, Node
from ..indexes.array_files import Arrays
from ..indexes.bm25_scores import Floats
from ..indexes.synced_index import SyncedIndex
from ..indexes.text_index import Meets, TextIndex
from .name_index import Entity, NameIndex

UNTITLED = 2 / 3
"""The factor of an entity's rarity if the entity is the title of neither passage."""

IN_TITLE = 3 / 4
"""The factor of an entity's rarity if a title contains the entity among other words."""

MAX_PASSAGES_PER_ENTITY = 100
"""Entities of more passages are not followed."""

MAX_PASSAGES = 500
"""The maximum number of passages scored for a query, those of rare entities first."""

_REMOVED = 1000  # numbers of removed passages, in addition to the number of existing passages


class PassageLink(NamedTuple):
    """The connection of two passages.

    Attributes:
        type: The type of the link.
        entity: The key of the name that connects the passages. None for a direct link.
    """

    type: str
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class LinkMatrix:
    """The connections of seeds, the first hits of a query, to passages.

    Attributes:
        passages: The ids of the passages, the seeds first.
        strengths: Array (seeds, passages): the strengths, from 0 (no connection) to 1.
        strongest: Array (seeds, passages): positions in ``connections``.
        connections: The connections.
    """

    passages: list[str]
    strengths: Floats
    strongest: npt.NDArray[np.int32]
    connections: list[PassageLink]


Numbers = npt.NDArray[np.int64]


class Numbering:
    """A numbering of passages in the order of their first lookup.

    Attributes:
        ids: The ids by number.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}

    def __call__(self, ids: Iterable[str]) -> Numbers:
        """Return the numbers of passages."""
        numbers = []
        for passage in ids:
            number = self._numbers.setdefault(passage, len(self.ids))
            if number == len(self.ids):
                self.ids.append(passage)
            numbers.append(number)
        return np.array(numbers, np.int64)


class LinkedEntity(NamedTuple):
    """An entity between passages.

    Attributes:
        link: The entity as a connection.
        place: The number of its passages, and its rank.
        passages: The numbers of its passages.
        shares: The share of its rarity that counts, by passage.
    """

    link: PassageLink
    place: tuple[object, ...]
    passages: Numbers
    shares: Floats


class LinkIndex(SyncedIndex):
    """An index of the names that passages have in common, made from a group of mentions.

    Args:
        graph: The graph.
        group: The group of the mentions.
        extractor: The transform of the group.
    """

    def __init__(self, graph: NodeGraph, group: str, extractor: EntityExtractor) -> None:
        self._has_finder = extractor.find is not None
        self._rules = graph.reader.lineage(group)[-1].version
        super().__init__(graph, group)

    @classmethod
    def open(cls, graph: NodeGraph, group: str) -> LinkIndex:
        """Return the shared index of a group.

        Raises:
            UnknownGroupError: If the graph has no such group.
            ValueError: If the transform of the group is not an ``EntityExtractor``.
        """
        declared = graph.reader.lineage(group)[-1]
        extractor = getattr(declared.rule, "call", None)
        if not isinstance(extractor, EntityExtractor):
            raise ValueError(
                f"group {group!r} must have the transform EntityExtractor; for your own names, use "
                "EntityExtractor(find)"
            )
        key = ("link index", group, declared.version)
        return graph.reader.shared(key, lambda: cls(graph, group, extractor))

    @property
    def size(self) -> int:
        """The number of passages."""
        return len(self._passages)

    def file_name(self) -> str:
        """Return the name of the file."""
        return "links"

    def header(self) -> dict[str, Any]:
        """Return the rules of the mentions."""
        return {"kind": "links", "rules": self._rules}

    def arrays(self) -> Arrays:
        """Return the index as the bytes of a JSON text."""
        state = json.dumps([self._passages, self._names.state()])
        return {"state": np.frombuffer(state.encode(), np.uint8)}

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to the result of ``arrays``."""
        passages, state = json.loads(arrays["state"].tobytes())
        self._passages.update(passages)
        self._names = NameIndex.from_state(self._has_finder, state)

    def clear(self) -> None:
        """Remove everything."""
        self._names = NameIndex(self._has_finder)
        self._passages: dict[str, str] = {}  # ids of passages by the ids of mentions
        self._entities: dict[str, Entity | None] = {}
        self._links: dict[str, LinkedEntity] = {}
        self.numbering = Numbering()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove mentions."""
        if passages := [self._passages.pop(i) for i in ids if i in self._passages]:
            self._forget(self._names.update(passages, ()))

    def add(self, nodes: Sequence[Node]) -> None:
        """Add mentions."""
        passages = {node.id: node.parent_id or "" for node in nodes}
        self._passages.update(passages)
        if len(self.numbering.ids) > 2 * len(self._passages) + _REMOVED:
            self.numbering = Numbering()
            self._links.clear()
        rows = ((passages[n.id], n.order, Mentions(*n.content)) for n in nodes)
        self._forget(self._names.update((), rows))

    def _forget(self, keys: Iterable[str]) -> None:
        if self._entities:
            for key in keys:
                self._entities.pop(key, None)
                self._links.pop(key, None)

    def entity(self, key: str) -> Entity | None:
        """Return the entity of a name. None if it has too few or too many passages."""
        if key not in self._entities:
            self._entities[key] = self._names.entity(key)
        return self._entities[key]

    def entities(self, passages: Iterable[str], limit: int | None = None) -> list[Entity]:
        """Return the entities of passages that have two passages or more, up to a limit."""
        keys = dict.fromkeys(key for passage in passages for key in self._names.keys_of(passage))
        counts = ((key, self._names.count(key)) for key in keys)
        found = (self.entity(k) for k, n in counts if n > 1 and (limit is None or n <= limit))
        return [entity for entity in found if entity is not None]

    def link(self, entity: Entity) -> LinkedEntity:
        """Return an entity as a connection of its passages."""
        if entity.key not in self._links:
            shares = dict.fromkeys(entity.in_titles, IN_TITLE) | dict.fromkeys(entity.about, 1.0)
            self._links[entity.key] = LinkedEntity(
                PassageLink(MEMBER, entity.key),
                (len(entity.passages), entity.rank),
                self.numbering(entity.passages),
                np.array([shares.get(passage, UNTITLED) for passage in entity.passages]),
            )
        return self._links[entity.key]

    def node(self, key: str) -> Node:
        """Return a node for a name, as the evidence of a result."""
        entity = self.entity(key)
        assert entity is not None
        i = digest(CORPUS, self._group, key)
        return Node(entity.name, id=i, group=self._group, graph=self._graph)

    def title(self, passage: str) -> str | None:
        """Return the key of a passage's title. None without a title."""
        title = self._names.title_of(passage)
        return title if title and self._is_title(title) else None

    def named(self, text: str) -> list[Entity]:
        """Return the entities whose titles a text names, the longest first."""
        entities = map(self.entity, names_in(text, self._is_title))
        return [entity for entity in entities if entity is not None]

    def _is_title(self, key: str) -> bool:
        entity = self.entity(key) if self._names.is_title(key) else None
        return entity is not None and bool(entity.about)


@dataclass(slots=True)
class LinkGraph:
    """The connections between the passages of a graph. The graph's lock must be held.

    Attributes:
        graph: The graph.
        passages: The indexed passages.
        allowed: A predicate for passages that may be results. None: all passages.
        index: The index of names. None: only direct links are followed.
    """

    graph: NodeGraph
    passages: TextIndex
    allowed: Meets | None
    index: LinkIndex | None
    _numbering: Numbering = field(init=False)

    def __post_init__(self) -> None:
        self._numbering = Numbering() if self.index is None else self.index.numbering

    def connections(self, seeds: Sequence[str]) -> LinkMatrix:
        """Return the strongest connections of passages; of equal connections, the first."""
        links: list[tuple[int, str, Link]] = []
        existing = self.passages.known()
        for row, seed_links in enumerate(self._links(seeds)):
            links += [(row, other, link) for other, link in seed_links if other in existing]
        entities: list[LinkedEntity] = []
        if self.index is not None:  # the rarest first
            found = self.index.entities(seeds, MAX_PASSAGES_PER_ENTITY)
            entities = sorted(map(self.index.link, found), key=attrgetter("place"))
        numbers = self._numbering([*seeds, *(other for _, other, _ in links)])
        passages, columns = self._columns(
            np.concatenate([numbers, *(entity.passages for entity in entities)]), len(seeds)
        )
        strengths = np.zeros((len(seeds), len(passages)))
        strongest = np.zeros_like(strengths, np.int32)
        connections: list[PassageLink] = []
        direct, of_entities = np.split(columns[len(seeds) :], [len(links)])
        for (row, _, link), column in zip(links, direct.tolist(), strict=True):
            weight = min(link.weight, 1.0)
            if column >= 0 and weight > strengths[row, column]:
                strengths[row, column], strongest[row, column] = weight, len(connections)
                connections.append(PassageLink(link.type))
        if entities:
            highest, rarest = _strongest(entities, of_entities, self.passages.size, strengths.shape)
            stronger = highest > strengths
            strengths[stronger] = highest[stronger]
            strongest[stronger] = len(connections) + rarest[stronger]
            connections += [entity.link for entity in entities]
        np.fill_diagonal(strengths, 0.0)  # no passage is connected to itself
        return LinkMatrix(passages, strengths, strongest, connections)

    def _columns(self, numbers: Numbers, seeds: int) -> tuple[list[str], Numbers]:
        """Return the seeds and the other possible results, up to ``MAX_PASSAGES``.

        Args:
            numbers: Numbers of passages, the seeds first. They may repeat.
            seeds: The number of seeds.

        Returns:
            The passages, and the column of each number. -1: no column.
        """
        ids = self._numbering.ids
        places = np.arange(len(numbers))
        at = np.empty(len(ids), np.int64)
        at[numbers[::-1]] = places[::-1]  # the first place is written last
        distinct = numbers[at[numbers] == places]
        if self.allowed is not None:
            others = [ids[number] for number in distinct[seeds:].tolist()]
            meeting = np.array([*map(self.allowed, others)], np.bool_)
            distinct = np.append(distinct[:seeds], distinct[seeds:][meeting])
        distinct = distinct[: max(seeds, MAX_PASSAGES)]
        at[numbers] = -1
        at[distinct] = np.arange(len(distinct))
        return [ids[number] for number in distinct.tolist()], at[numbers]

    def _links(self, ids: Sequence[str]) -> Iterator[list[tuple[str, Link]]]:
        """Yield the links of each node, with the ids of the nodes at the other ends."""
        outgoing = self.graph.reader.links_of(ids)
        incoming = self.graph.reader.links_of(ids, incoming=True)
        for links_out, links_in in zip(outgoing, incoming, strict=True):
            ends = [(link.target, link) for link in links_out if link.weight > 0]
            ends += [(link.source, link) for link in links_in if link.weight > 0]
            yield ends


def _strongest(
    entities: Sequence[LinkedEntity], columns: Numbers, size: int, shape: tuple[int, ...]
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return the highest strengths of connections by entities, and the first such entities.

    Args:
        entities: The entities.
        columns: The columns of the passages of all entities, one entity after the other.
        size: The number of passages.
        shape: The number of rows, which have the first columns, and the number of columns.
    """
    counts = [len(entity.shares) for entity in entities]
    rarity = {n: math.log((size + 1) / n) / math.log(size + 1) for n in {*counts}}
    rarities, sizes = np.array([*map(rarity.__getitem__, counts)]), np.array(counts)
    shares = np.concatenate([entity.shares for entity in entities])
    is_row = (columns >= 0) & (columns < shape[0])
    of_pairs = np.arange(len(sizes)).repeat(sizes)[is_row]
    rows, own = columns[is_row], shares[is_row]
    count_of = sizes[of_pairs]
    # positions of the entity's passages, for each pair of an entity and a row
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
    best = (strengths == highest[cells]).nonzero()[0][::-1]  # the first entity is written last
    strongest[cells[best]] = of_cells[best]
    return highest.reshape(shape), strongest.reshape(shape)
