"""Draw the passages that questions are written about."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.node import Node
from .generated_questions import QuestionKind


class PassageDrawing:
    """Draw passages from as many documents as there are.

    Args:
        nodes: The passages, in the order of the graph.
        seed: Draws the order.
    """

    def __init__(self, nodes: Sequence[Node], seed: int) -> None:
        self.nodes = nodes
        self.seed = seed

    def of(self, kind: QuestionKind) -> Iterator[tuple[Sequence[Node], str]]:
        """Yield passages to ask about, with the name that links two."""
        chance = random.Random(f"{self.seed} {kind}")
        if kind != "linked":
            for node in self._spread(chance):
                yield [node], ""
            return
        linked = EntityExtractor(max_passages=5)(self.nodes)
        entities = [entity for entity in linked if len(_apart(entity.to)) == 2]
        chance.shuffle(entities)
        used: set[str] = set()
        for entity in entities:
            pair = _apart(entity.to)
            if not used & {node.id for node in pair}:
                used |= {node.id for node in pair}
                yield pair, entity.item.text

    def _spread(self, chance: random.Random) -> Iterator[Node]:
        """Yield one passage of every document, then a second one, and so on."""
        by_document: dict[str, list[Node]] = {}
        for node in self.nodes:
            by_document.setdefault(node.document_id or node.id, []).append(node)
        rows = [*by_document.values()]
        chance.shuffle(rows)
        for row in rows:
            chance.shuffle(row)
        for turn in range(max(map(len, rows))):
            yield from (row[turn] for row in rows if turn < len(row))


def _apart(nodes: Sequence[Node]) -> list[Node]:
    """Return the first two passages, of different documents where there are some."""
    first = nodes[0]
    others = [node for node in nodes[1:] if node.document_id != first.document_id]
    return [first, *(others or nodes[1:])[:1]]
