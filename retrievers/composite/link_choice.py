"""Whether links between passages are worth following: measured on a sample of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...nodegraph.extractors.entity_extractor import split_title
from ...nodegraph.extractors.entity_names import is_written_as_name, name_key, names_in
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node

_logger = logging.getLogger(__name__)

T = TypeVar("T")

_PROBES = 256  # passages by which is seen whether there are titles at all

_MIN_TITLED = 0.05  # with fewer titles nothing else is measured

_MAX_TITLES, _MAX_TEXTS = 10_000, 400  # passages whose titles and texts are compared

_COMMON = 0.02  # a title that more of the texts name leads everywhere

_MIN_NAMED = 0.2  # mentions of titles in a text

_MIN_WRITTEN_AS_NAMES = 0.7  # of the mentions

_MIN_MENTIONS = 5  # with fewer, nothing can be said


@dataclass(frozen=True, slots=True)
class LinkMeasure:
    """What was measured on a group of passages.

    Links are followed where titles are names that other passages mention, as in an encyclopaedia:
    ``named`` is 0.2 or more and ``written_as_names`` 0.7 or more. Headings of documentation are
    mentioned in lower case or not at all.

    Attributes:
        titled: The share of passages with a title.
        named: How many titles of other documents a titled passage mentions on average. Titles
            that every fiftieth passage mentions don't count.
        written_as_names: In how many of these mentions the title has capital letters.
    """

    titled: float = 0.0
    named: float = 0.0
    written_as_names: float = 0.0

    @property
    def attributes(self) -> dict[str, float]:
        """What a trace shows of it."""
        shares = {"titled": self.titled, "named": self.named, "as_names": self.written_as_names}
        return {name: round(share, 3) for name, share in shares.items()}

    @property
    def follow(self) -> bool:
        """Whether links are followed."""
        return self.named >= _MIN_NAMED and self.written_as_names >= _MIN_WRITTEN_AS_NAMES


def measure_links(graph: NodeGraph, group: str) -> LinkMeasure:
    """Measure a sample of a group's passages, and log what follows.

    Args:
        graph: The graph, which is held in a state in which the group is built.
        group: The group.
    """
    measure = _measure(graph, group)
    _logger.info(
        "links between the nodes of %r are %sfollowed: %.0f %% have titles, and name %.2f titles "
        "of others on average, %.0f %% of them in capital letters",
        *(group, "" if measure.follow else "not ", 100 * measure.titled),
        *(measure.named, 100 * measure.written_as_names),
    )
    return measure


def _measure(graph: NodeGraph, group: str) -> LinkMeasure:
    ids = graph.reader.ids(group)
    probes = graph.reader.nodes_by_id(sample(ids, _PROBES))
    share = sum(bool(split_title(node)[0]) for node in probes) / max(1, len(probes))
    if share < _MIN_TITLED:
        return LinkMeasure(share)
    nodes = graph.reader.nodes_by_id(sample(ids, _MAX_TITLES))
    documents, texts = _titles_and_texts(nodes)
    mentions: Counter[str] = Counter()
    as_names: Counter[str] = Counter()
    for own, document, text in texts:
        for name in names_in(text, documents.__contains__):
            if name != own and documents[name] != {document}:
                mentions[name] += 1
                as_names[name] += is_written_as_name(text, name)
    limit = max(2, _COMMON * len(texts))
    rare = [name for name, count in mentions.items() if count <= limit]
    count = sum(mentions[name] for name in rare)
    if count < _MIN_MENTIONS:
        return LinkMeasure(share)
    named = count / len(texts) * len(ids) / len(nodes)
    return LinkMeasure(share, named, sum(as_names[name] for name in rare) / count)


def _titles_and_texts(
    nodes: Sequence[Node],
) -> tuple[dict[str, set[str]], list[tuple[str, str, str]]]:
    """Return documents by the key of a title, and some titled texts with theirs."""
    documents: dict[str, set[str]] = {}
    titled: list[tuple[str, Node]] = []
    for node in nodes:
        if key := name_key(split_title(node)[0]):
            documents.setdefault(key, set()).add(node.document_id)
            titled.append((key, node))
    places = sample(range(len(titled)), _MAX_TEXTS)
    texts = [
        (key, node.document_id, split_title(node)[1])
        for key, node in map(titled.__getitem__, places)
    ]
    return documents, texts


def sample(items: Sequence[T], count: int) -> list[T]:
    """Return some of the items, evenly chosen."""
    if len(items) <= count:
        return [*items]
    return [items[int(at)] for at in np.linspace(0, len(items) - 1, count)]
