"""Which passages are about a name: an index of the titles among a group's entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...nodegraph.extractors.entity_names import name_key, names_in
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..indexes.synced_index import SyncedIndex
from ..similarities.bm25 import warn_of_memory


class TitleIndex(SyncedIndex):
    """Look up the passages that an entity named in a text is the title of.

    Entities say so in their metadata, ``about``; others are not kept. Each process has an index of
    its own, also where an engine searches words.
    """

    @classmethod
    def open(cls, graph: NodeGraph, group: str) -> TitleIndex:
        """Return the index of a group of entities, shared by all who use it."""

        def make() -> TitleIndex:
            remedy = "LinkOptions(named=0, repetition=0) does without them"
            warn_of_memory(graph, group, f"the titles among {group!r} are held", remedy)
            return cls(graph, group)

        return graph.reader.shared(("title index", group), make)

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
