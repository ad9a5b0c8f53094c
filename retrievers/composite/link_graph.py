"""Where links lead from some passages: directly, and through the entities between them."""

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

_MANY_ENTITIES = 100_000  # that are kept for the next query

Floats = npt.NDArray[np.float64]

UNTITLED = 2 / 3
"""What a way counts through an entity that is the title of neither passage."""


class Step(NamedTuple):
    """What joins two passages.

    Attributes:
        type: The type of the link; of one of the entity's links.
        through: Id of the entity between them; None where a link joins them.
    """

    type: str
    through: str | None = None


@dataclass(frozen=True, slots=True)
class Ways:
    """How some passages, the seeds, are joined to others.

    Attributes:
        passages: Their ids, the seeds first.
        strengths: By seed and passage, from 0, where there is no way, to 1.
        by: By seed and passage, which of the steps is the way.
        steps: What joins them.
    """

    passages: list[str]
    strengths: Floats
    by: npt.NDArray[np.int32]
    steps: list[Step]


class _Marks:
    """Gathers ways one by one; keeps the strongest between two passages, of equals the first."""

    def __init__(self) -> None:
        self._seeds: list[int] = []
        self._others: list[int] = []
        self._strengths: list[float] = []
        self._by: list[int] = []
        self._steps: list[Step] = []

    def put(self, seed: int, others: list[int], strengths: list[float], step: Step) -> None:
        """Note ways from a seed to others, by their rows."""
        if not self._steps or self._steps[-1] is not step:
            self._steps.append(step)
        self._seeds += [seed] * len(others)
        self._others += others
        self._strengths += strengths
        self._by += [len(self._steps) - 1] * len(others)

    def ways(self, seeds: int, passages: list[str]) -> Ways:
        """Return what was noted."""
        shape = (seeds, len(passages))
        strengths, by = np.zeros(shape), np.zeros(shape, np.int32)
        if self._seeds:  # the last to be written stays
            order = np.argsort(-np.array(self._strengths), kind="stable")[::-1]
            at = np.array(self._seeds)[order], np.array(self._others)[order]
            strengths[at] = np.array(self._strengths)[order]
            by[at] = np.array(self._by)[order]
        places = np.arange(seeds)
        strengths[places, places] = 0.0  # no way leads back
        return Ways(passages, strengths, by, self._steps)


class _Entity(NamedTuple):
    """An entity between passages."""

    type: str
    rarity: float
    passages: list[str]
    about: frozenset[str]


class _Kept:
    """Entities that were met before, kept for the next query until anything is written."""

    def __init__(self) -> None:
        self._kept: tuple[int, dict[str, _Entity | None]] = (-1, {})

    def of(self, state: int) -> dict[str, _Entity | None]:
        """Return those of a state of the graph."""
        kept = self._kept
        if kept[0] != state or len(kept[1]) > _MANY_ENTITIES:
            kept = self._kept = (state, {})
        return kept[1]


@dataclass(frozen=True, slots=True)
class LinkSteps:
    """Find the ways from passages to others; for a graph that is held.

    Attributes:
        graph: The graph.
        group: The group of the passages.
        numbers: The passages that count, by id; their numbers in ``allowed``.
        allowed: Whether a passage may be gone to; None for all.
        size: How many passages there are.
        via: The group of the entities, None to follow links between passages only.
        types: The types of links to follow, None for all.
        most: Entities of more passages are not gone through.
        limit: To how many passages ways are followed; the rarest entities come first.
    """

    graph: NodeGraph
    group: str
    numbers: Mapping[str, int]
    allowed: npt.NDArray[np.bool_] | None
    size: int
    via: str | None
    types: tuple[str, ...] | None
    most: int
    limit: int

    def __call__(self, seeds: Sequence[str]) -> Ways:
        """Return the strongest ways; of those that are equal, the first."""
        rows = {seed: row for row, seed in enumerate(seeds)}
        direct: list[tuple[int, str, Link]] = []
        mentions: defaultdict[str, dict[int, None]] = defaultdict(dict)
        for row, ends in enumerate(self._ends(seeds)):
            for other, link in ends:
                if other not in self.numbers:
                    mentions[other][row] = None
                elif self._enter(other, rows):
                    direct.append((row, other, link))
        through = [] if self.via is None else self._through(mentions, rows)
        marks = _Marks()
        for row, other, link in direct:
            marks.put(row, [rows[other]], [min(link.weight, 1.0)], Step(link.type))
        for i, entity in through:
            step, near, far = Step(entity.type, i), entity.rarity, UNTITLED * entity.rarity
            known = [passage for passage in entity.passages if passage in rows]
            others = [rows[passage] for passage in known]
            strengths = [near if passage in entity.about else far for passage in known]
            for row in mentions[i]:
                titled = seeds[row] in entity.about
                marks.put(row, others, [near] * len(known) if titled else strengths, step)
        return marks.ways(len(seeds), list(rows))

    def _through(
        self, mentions: Collection[str], rows: dict[str, int]
    ) -> list[tuple[str, _Entity]]:
        """Return the entities, the rarest first, and give their passages rows."""
        kept = self.graph.shared(("link steps", self.group, self.via, self.types, self.most), _Kept)
        known = kept.of(self.graph.state())
        self._learn(known, [i for i in mentions if i not in known])
        found = [(i, entity) for i in mentions if (entity := known[i]) is not None]
        found.sort(key=lambda each: -each[1].rarity)
        for _, entity in found:
            for passage in entity.passages:
                self._enter(passage, rows)
        return found

    def _learn(self, known: dict[str, _Entity | None], ids: Sequence[str]) -> None:
        """Read the links of nodes; None for one that is no entity, or nothing to go through."""
        nodes = self.graph.nodes_by_id(ids)
        known.update((node.id, None) for node in nodes)
        nodes = [node for node in nodes if node.group == self.via]
        for node, ends in zip(nodes, self._ends([node.id for node in nodes]), strict=True):
            passages = list(dict.fromkeys(other for other, _ in ends if other in self.numbers))
            if 1 < len(passages) <= self.most:
                rarity = math.log((self.size + 1) / len(passages)) / math.log(self.size + 1)
                noted = node.own_metadata.get("about")
                about = noted if isinstance(noted, list | tuple) else passages
                known[node.id] = _Entity(ends[0][1].type, rarity, passages, frozenset(about))

    def _enter(self, passage: str, rows: dict[str, int]) -> bool:
        """Give a passage a row, where it may be gone to and there is room."""
        if passage in rows:
            return True
        if len(rows) >= self.limit:
            return False
        if self.allowed is not None and not self.allowed[self.numbers[passage]]:
            return False
        rows[passage] = len(rows)
        return True

    def _ends(self, ids: Sequence[str]) -> Iterator[list[tuple[str, Link]]]:
        """Return what each node is linked to, either way, and the links."""
        there = self.graph.links_of(ids), self.graph.links_of(ids, incoming=True)
        for out, back in zip(*there, strict=True):
            ends = [(link.target, link) for link in out] + [(link.source, link) for link in back]
            yield [each for each in ends if self._follows(each[1])]

    def _follows(self, link: Link) -> bool:
        return link.weight > 0 and (self.types is None or link.type in self.types)


Ints = npt.NDArray[np.int64]


class Pair(NamedTuple):
    """What a passage is worth in its best pair.

    Attributes:
        value: The pair's score.
        own: What the passage's words are worth by themselves, on the scale of the seeds' scores.
        partner: Id of the other passage.
        step: What joins them.
    """

    value: float
    own: float
    partner: str
    step: Step


def word_parts(index: TextIndex, query: TermWeights, slots: Ints) -> Floats:
    """Return what each of a query's terms adds to the BM25 score of some nodes.

    Args:
        index: The index of the nodes, held and in step with the graph.
        query: From ``Bm25.prepare``, for this index.
        slots: The nodes' numbers in the index.

    Returns:
        An array (nodes, terms); the sums of its rows are the scores.
    """
    parts = np.zeros((len(slots), len(query.weights)))
    for column, (term, weight) in enumerate(query.weights.items()):
        posting = index.postings(term)
        if len(posting.rows):
            at = np.searchsorted(posting.rows, slots).clip(max=len(posting.rows) - 1)
            there = posting.rows[at] == slots
            parts[there, column] = weight * posting.impacts(query.saturation)[at[there]]
    return parts


def best_pairs(
    ways: Ways, scores: Sequence[float], parts: Floats, damping: float, weight: float
) -> dict[str, Pair]:
    """Return the best pair of each passage that is in one, by its id.

    Args:
        ways: From the seeds to passages.
        scores: The seeds' scores, 0 or more.
        parts: What each term adds to each passage, in the order of ``ways.passages``.
        damping: The power of a way's strength.
        weight: What a pair counts beside a passage by itself.
    """
    alone = parts.sum(axis=1)
    seeds = len(scores)
    if not seeds:
        return {}
    heaviest = float(alone[:seeds].max())
    scale = max(scores) / heaviest if heaviest else 0.0
    values = np.zeros_like(ways.strengths)
    for row, score in enumerate(scores):
        gains = np.maximum(parts - parts[row], 0.0).sum(axis=1)
        values[row] = weight * ways.strengths[row] ** damping * (score + scale * gains)
    values[ways.strengths == 0] = -1.0
    own = [*scores, *(scale * alone[seeds:]).tolist()]
    partners = values.argmax(axis=0)
    tops = values.max(axis=0)
    steps = ways.by[partners, np.arange(len(partners))]
    for seed in range(seeds):  # it is the first of pairs as well
        if (top := values[seed].max()) > tops[seed]:
            other = int(values[seed].argmax())
            tops[seed], partners[seed], steps[seed] = top, other, ways.by[seed, other]
    found = zip(tops.tolist(), own, partners.tolist(), steps.tolist(), strict=True)
    return {
        passage: Pair(value, alone_worth, ways.passages[partner], ways.steps[step])
        for passage, (value, alone_worth, partner, step) in zip(ways.passages, found, strict=True)
        if value >= 0
    }
