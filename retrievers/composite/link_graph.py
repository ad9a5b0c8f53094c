"""Links between passages, direct or through names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import MEMBER
from ..indexes.bm25_scores import Floats
from ..indexes.text_index import Meets, TextIndex
from .link_index import LinkIndex

UNTITLED = 2 / 3
"""The factor of an entity's rarity if the entity is the title of neither passage."""

IN_TITLE = 3 / 4
"""The factor of an entity's rarity if a title contains the entity among other words."""

MAX_PASSAGES = 500
"""The maximum number of passages scored for a query, those of rare entities first."""


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
    strongest: npt.NDArray[np.int64]
    connections: list[PassageLink]


def connect(
    graph: NodeGraph,
    passages: TextIndex,
    allowed: Meets | None,
    index: LinkIndex | None,
    seeds: Sequence[str],
) -> LinkMatrix:
    """Return the strongest connections of passages; of equal connections, the first.

    Args:
        graph: The node graph. Its lock must be held.
        passages: The index of the passages.
        allowed: A predicate for passages that may be results. None: all passages.
        index: The index of names. None: only direct links are followed.
        seeds: The ids of passages.
    """
    existing = passages.known()
    outgoing = graph.reader.links_of(seeds)
    incoming = graph.reader.links_of(seeds, incoming=True)
    links = []
    for row in range(len(seeds)):
        ends = [(link.target, link) for link in outgoing[row]]
        ends += [(link.source, link) for link in incoming[row]]
        links += [(row, i, link) for i, link in ends if link.weight > 0 and i in existing]
    entities = [] if index is None else index.entities(seeds)
    entities.sort(key=lambda entity: (len(entity.passages), entity.rank))  # the rarest first
    linked = chain((i for _, i, _ in links), *(entity.passages for entity in entities))
    others = (i for i in dict.fromkeys(linked) if i not in seeds)
    meeting = others if allowed is None else filter(allowed, others)
    ids = [*seeds, *islice(meeting, max(0, MAX_PASSAGES - len(seeds)))]
    columns = {passage: column for column, passage in enumerate(ids)}
    strengths = [[0.0] * len(ids) for _ in seeds]
    strongest = [[0] * len(ids) for _ in seeds]
    connections: list[PassageLink] = []
    for row, passage, link in links:
        column, strength = columns.get(passage, row), min(link.weight, 1.0)
        if strength > strengths[row][column]:
            strengths[row][column], strongest[row][column] = strength, len(connections)
            connections.append(PassageLink(link.type))
    for entity in entities:
        rarity = math.log((passages.size + 1) / len(entity.passages)) / math.log(passages.size + 1)
        shares = dict.fromkeys(entity.in_titles, IN_TITLE) | dict.fromkeys(entity.about, 1.0)
        parts = {
            columns[i]: rarity * shares.get(i, UNTITLED) for i in entity.passages if i in columns
        }
        for row in [column for column in parts if column < len(seeds)]:
            own, of_row = parts[row], strengths[row]
            for column, part in parts.items():
                strength = max(part, own)
                if strength > of_row[column]:
                    of_row[column], strongest[row][column] = strength, len(connections)
        connections.append(PassageLink(MEMBER, entity.key))
    matrix = np.array(strengths).reshape(len(seeds), len(ids))
    np.fill_diagonal(matrix, 0.0)  # no passage is connected to itself
    return LinkMatrix(ids, matrix, np.array(strongest).reshape(matrix.shape), connections)
