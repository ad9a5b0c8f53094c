"""How a graph is searched if nothing is said: its groups, and what was measured on it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from .link_choice import LinkMeasure
from .relevance import Vectors

_PASSAGES = "passage"

_KIND, _TARGET = "default search", "target"  # of values in the store

_VERSION = 1  # of what is measured; another one is measured anew


def default_target(graph: NodeGraph) -> str:
    """Return the group to answer with if nothing is said.

    It is the one that was set, or else ``"passage"``, which is declared if it is not there.
    """
    declared = graph.reader.group_names()
    stored = graph.reader.values(_KIND).get(_TARGET, b"").decode()
    if stored in declared:
        return stored
    if _PASSAGES not in declared:
        graph.create_node_group(_PASSAGES, PassageSplitter)
    return _PASSAGES


def set_default_target(graph: NodeGraph, target: str) -> None:
    """Let a declared group be the one to answer with; the graph's store keeps it."""
    stored = graph.reader.values(_KIND).get(_TARGET, _PASSAGES.encode())
    if stored != target.encode():
        graph.reader.save(_KIND, {_TARGET: target.encode()})


def sentence_group(graph: NodeGraph, target: str) -> str:
    """Return the group of the sentences of a target, which is declared if it is not there.

    A group with the same rule is used as it is, also one that the store has under another name, so
    that no sentence is stored twice.

    Raises:
        UnknownGroupError: If the graph has no such target.
        ValueError: If a group ``"{target} sentence"`` has another rule.
    """
    default = f"{target} sentence"
    name = graph.reader.same_group(split_sentences, target, default) or default
    graph.create_node_group(name, split_sentences, parent=target)
    return name


@dataclass(frozen=True, slots=True)
class MeasuredSettings:
    """Hold what was measured on a graph for its default search.

    Attributes:
        documents: How many documents it had.
        weights: The weight of the vectors of each embedding.
        links: Whether links are worth following.
        backgrounds: Vectors of sentences from all over the graph, of length 1, by embedding.
    """

    documents: int
    weights: tuple[float, ...] = ()
    links: LinkMeasure = field(default_factory=LinkMeasure)
    backgrounds: Mapping[str, Vectors] = field(default_factory=dict, compare=False)

    def to_json(self) -> bytes:
        """Return them as they are stored."""
        backgrounds = {
            key: [vectors.shape[1], base64.b64encode(vectors.astype("<f4").tobytes()).decode()]
            for key, vectors in self.backgrounds.items()
        }
        return json.dumps(
            {
                "documents": self.documents,
                "weights": self.weights,
                "links": asdict(self.links),
                "backgrounds": backgrounds,
            }
        ).encode()

    @classmethod
    def from_json(cls, stored: bytes) -> MeasuredSettings:
        """Return stored ones."""
        record = json.loads(stored)
        backgrounds = {
            key: np.frombuffer(base64.b64decode(data), "<f4").reshape(-1, dimension)
            for key, (dimension, data) in record["backgrounds"].items()
        }
        links = LinkMeasure(**record["links"])
        return cls(record["documents"], tuple(record["weights"]), links, backgrounds)


def read_settings(
    graph: NodeGraph, target: str, embed_keys: Sequence[str]
) -> MeasuredSettings | None:
    """Return what was measured, by any process at any time.

    Returns:
        None if nothing was, or the graph has more than twice or less than half as many documents.
    """
    key = _key(graph, target, embed_keys)
    cache = _cache(graph)
    count = graph.reader.count(ROOT)
    if key in cache and _is_like(cache[key].documents, count):
        return cache[key]
    stored = graph.reader.values(_KIND).get(key)
    if stored is None:
        return None
    settings = MeasuredSettings.from_json(stored)
    if not _is_like(settings.documents, count):
        return None
    cache[key] = settings
    return settings


def save_settings(
    graph: NodeGraph, target: str, embed_keys: Sequence[str], settings: MeasuredSettings
) -> None:
    """Store what was measured, for all processes, and for when the graph is opened again."""
    key = _key(graph, target, embed_keys)
    graph.reader.save(_KIND, {key: settings.to_json()})
    _cache(graph)[key] = settings


def _cache(graph: NodeGraph) -> dict[str, MeasuredSettings]:
    return graph.reader.shared(_KIND, dict)


def _key(graph: NodeGraph, target: str, embed_keys: Sequence[str]) -> str:
    """Name what is measured: another model's vectors are measured anew."""
    models = [[key, graph.embeddings.embedders[key].name] for key in embed_keys]
    return json.dumps([_VERSION, target, models])


def _is_like(measured: int, count: int) -> bool:
    return measured / 2 <= count <= measured * 2
