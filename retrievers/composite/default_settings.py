"""The settings of the default search, which are measured on a sample of a graph."""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ...nodegraph.concurrency import with_deferred_work
from ...nodegraph.graph import NodeGraph
from ...nodegraph.names import name_key, split_title
from ...nodegraph.node import ROOT, Node
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from ..branch import take_snapshot
from ..filters import parse_filters
from ..indexes.current import current
from ..indexes.nearest_vectors import unit
from ..indexes.text_index import TextIndex
from ..protocols import Index, Snapshot
from ..results import Hits
from ..similarities.bm25 import Bm25
from .link_names import is_written_as_name, names_in
from .relevance import Vectors, usual_deviation

_logger = logging.getLogger(__name__)

T = TypeVar("T")

_PASSAGES = "passage"

_KIND = "default search"  # the kind under which the settings are stored

_VERSION = "5"  # the version of the measurement; settings of other versions are discarded


def default_target(graph: NodeGraph) -> str:
    """Return the name of the default target group, ``"passage"``. A missing group is created."""
    if _PASSAGES not in graph.reader.group_names():
        graph.create_node_group(_PASSAGES, PassageSplitter)
    return _PASSAGES


def sentence_group(graph: NodeGraph, target: str) -> str:
    """Return the name of the group that contains the sentences of a target.

    If a group with the same rule exists, it is reused even if it has a different name, so that
    sentences are not stored twice. A missing group is created.

    Raises:
        UnknownGroupError: If the graph has no group named ``target``.
        ValueError: If a group named ``"{target} sentence"`` exists and has a different rule.
    """
    default = f"{target} sentence"
    name = graph.reader.same_group(split_sentences, target, default) or default
    graph.create_node_group(name, split_sentences, parent=target)
    return name


EQUAL = 2.0
"""The weight of vectors that are as good as words."""


@dataclass(frozen=True, slots=True)
class MeasuredSettings:
    """The settings of the default search, as measured for a graph.

    Attributes:
        documents: The number of documents at the time of the measurement.
        weights: The weight of the vectors of each embedding.
        links: Whether links should be followed.
        backgrounds: Normalized vectors of random sentences of the graph, by embedding.
        deviations: The standard deviation of the cosine similarities between these vectors, by
            embedding.
    """

    documents: int
    weights: Sequence[float] = ()
    links: bool = False
    backgrounds: Mapping[str, Vectors] = field(default_factory=dict, compare=False)
    deviations: Mapping[str, float] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        deviations = {key: usual_deviation(rows) for key, rows in self.backgrounds.items()}
        object.__setattr__(self, "deviations", deviations)

    def fits(self, documents: int) -> bool:
        """Return whether the settings are still valid for a number of documents.

        They are valid until the number of documents has more than doubled or halved.
        """
        return self.documents / 2 <= documents <= self.documents * 2

    def reliability(self, embed_keys: Sequence[str]) -> dict[str, float]:
        """Return the quality of each embedding, from 0 (useless) to 1 (as good as words)."""
        pairs = zip(embed_keys, self.weights, strict=True)
        return {key: min(1.0, weight / EQUAL) for key, weight in pairs}


def read_settings(
    graph: NodeGraph, target: str, embed_keys: Sequence[str]
) -> MeasuredSettings | None:
    """Return the settings that this or another process has stored for a graph.

    If the settings are missing, or if the number of documents has more than doubled or halved, None
    is returned.
    """
    cache = _cache(graph)
    key = _key(graph, target, embed_keys)
    count = graph.reader.count(ROOT)
    settings = cache.get(key)
    if settings is not None and settings.fits(count):
        return settings
    stored = graph.reader.values(_KIND).get(key)
    settings = None if stored is None else _from_json(stored, len(embed_keys))
    if settings is None or not settings.fits(count):
        return None
    cache[key] = settings
    return settings


def _from_json(stored: bytes, count: int) -> MeasuredSettings | None:
    """Parse stored settings. If they are damaged, a message is logged, and None is returned.

    Args:
        stored: The settings in JSON format.
        count: The number of embeddings.
    """
    try:
        documents, weights, links, backgrounds = json.loads(stored)
        vectors = {
            key: np.frombuffer(base64.b64decode(data), "<f2")
            .astype(np.float32)
            .reshape(-1, dimension)
            for key, (dimension, data) in backgrounds.items()
        }
        are_usable = all(0 <= float(number) < 1e9 for number in (documents, *weights))
        if len(weights) != count or not are_usable:
            raise ValueError(f"weights must be {count} numbers")
        return MeasuredSettings(int(documents), weights, bool(links), vectors)
    except (LookupError, RecursionError, TypeError, ValueError, AttributeError) as error:
        _logger.warning("the settings of the search are damaged and measured again: %s", error)
        return None


def _cache(graph: NodeGraph) -> dict[str, MeasuredSettings]:
    return graph.reader.shared(_KIND, dict)


def _key(graph: NodeGraph, target: str, embed_keys: Sequence[str]) -> str:
    """Return the key under which the settings for a target and its embedding models are stored.

    The key contains the names of the models, so a new model is measured again.
    """
    models = (f"{key}\t{graph.embeddings.embedders[key].name}" for key in embed_keys)
    return "\n".join((_VERSION, target, *models))


_SAMPLE = 256
"""The number of targets that are read to measure vectors."""

_PROBES = 64  # the number of sentences for which words and vectors are compared

_MIN_PROBES = 12  # the minimum number for a reliable result

_BACKGROUND = 128  # the number of random sentences with which a question is compared

_MAX_WEIGHT = 6.0  # for comparison, words have the weights 3 and 1

_CHANCE = 0.2  # the minimum hit rate of words in the comparison with vectors

_ALL = parse_filters(None)


def measure(
    graph: NodeGraph,
    target: str,
    sentences: str,
    embed_keys: Sequence[str],
    vectors: Mapping[str, Index[Any]],
    is_of_targets: bool = False,
) -> MeasuredSettings:
    """Measure the settings on a sample of a graph, and store them for all processes.

    Args:
        graph: The graph.
        target: The name of the target group.
        sentences: The name of the group that contains the sentences of the targets.
        embed_keys: The names of the embeddings.
        vectors: The complete indexes of the sentences' vectors, by embedding.
        is_of_targets: Whether the vectors belong to the targets. In this case, their weight is not
            measured.
    """
    words = Bm25().open(graph, sentences)
    words.ready()
    measured = with_deferred_work(
        lambda: _measure(graph, target, sentences, words, vectors, is_of_targets)
    )
    encoded = {
        name: [background.shape[1], base64.b64encode(background.astype("<f2").tobytes()).decode()]
        for name, background in measured.backgrounds.items()
    }
    key = _key(graph, target, embed_keys)
    stored = [measured.documents, measured.weights, measured.links, encoded]
    graph.reader.save(_KIND, {key: json.dumps(stored).encode()}, derived=True)
    _cache(graph)[key] = measured
    return measured


def _measure(
    graph: NodeGraph,
    target: str,
    sentences: str,
    words: TextIndex,
    vectors: Mapping[str, Index[Any]],
    is_of_targets: bool,
) -> MeasuredSettings:
    """Take a sample of the graph, and compare its vectors after releasing the lock.

    Raises:
        DeferredWork: If vectors are missing.
    """
    reader = graph.reader
    groups = {graph: [target, *reader.searched_groups(sentences)]}
    searches: dict[str, Snapshot] = {}
    backgrounds: dict[str, Vectors] = {}
    with current(groups, [words, *vectors.values()]):
        documents = reader.count(ROOT)
        links = measure_links(graph, target)
        probes, texts = _sampled_nodes(graph, target, sentences, bool(vectors), is_of_targets)
        prepared = [Bm25().prepare(probe.searched_text, [words]) for probe in probes]
        by_words = [words.search(query, 3, _ALL) for query in prepared]
        for key, index in vectors.items():
            searches[key] = take_snapshot(index, reader, [*_unit_vectors(probes, key)], _ALL)
            if texts:
                background = _unit_vectors(texts, key).astype(np.float16).astype(np.float32)
                # Vectors of zeros are removed.
                backgrounds[key] = background[background.any(axis=1)]
    share_of_words = max(_share(graph, probes, by_words), _CHANCE)
    weights = []
    for search in searches.values():
        weight = EQUAL
        if len(probes) >= _MIN_PROBES:
            ratio = _share(graph, probes, search.search(range(len(probes)), 3)) / share_of_words
            weight = min(_MAX_WEIGHT, max(0.0, 2 * EQUAL * (ratio - 0.5)))
        weights.append(weight)
    return MeasuredSettings(documents, weights, links, backgrounds)


def _sampled_nodes(
    graph: NodeGraph, target: str, sentences: str, has_vectors: bool, is_of_targets: bool
) -> tuple[list[Node], list[Node]]:
    """Return sentences for which words and vectors are compared, and nodes with unrelated texts."""
    if not has_vectors:
        return [], []
    reader = graph.reader
    targets = reader.nodes_by_id(sample(reader.ids(target), _SAMPLE))
    if is_of_targets:
        return [], sample(targets, _BACKGROUND)
    children = [reader.children_in(sentences, node) for node in targets]
    probes = [nodes[len(nodes) // 2] for nodes in children if len(nodes) > 2]
    some = sample([nodes for nodes in children if nodes], _BACKGROUND)
    return probes[:_PROBES], [nodes[len(nodes) // 2] for nodes in some]


def _unit_vectors(nodes: Sequence[Node], key: str) -> Vectors:
    return unit(np.array([node.embedding(key) for node in nodes], np.float32))


def _share(graph: NodeGraph, probes: Sequence[Node], found: Sequence[Hits]) -> float:
    """Return the share of sentences whose nearest other sentence belongs to the same target.

    Sentences that were removed after the sample was taken are ignored.
    """
    right = 0
    for probe, hits in zip(probes, found, strict=True):
        nodes = graph.reader.existing_nodes(hits.ids)
        others = [node for node in nodes if node.text != probe.text]
        right += bool(others) and others[0].parent_id == probe.parent_id
    return right / max(1, len(probes))


_CHECKED = 256  # the number of passages that are checked for titles

_MIN_TITLED = 0.05  # the minimum share of passages with a title

_MAX_TITLES = 10_000  # the maximum number of titles

_MAX_TEXTS = 400  # the maximum number of texts in which titles are counted

_COMMON = 0.02  # the share of texts above which a title is too common to distinguish passages

_MIN_NAMED = 0.2  # the minimum number of mentions of titles per text

_MIN_WRITTEN_AS_NAMES = 0.7  # the minimum share of mentions that are written as names

_MIN_MENTIONS = 5  # the minimum number of mentions for a reliable result


def measure_links(graph: NodeGraph, group: str) -> bool:
    """Return whether links should be followed, based on a sample of the passages in a group.

    Links are useful if titles are names that other passages mention, as in an encyclopedia. In
    contrast, headings in documentation are mentioned in lower case or not at all.

    Args:
        graph: The graph. Its lock must be held, and the group must be built.
        group: The name of the group.
    """
    ids = graph.reader.ids(group)
    checked = graph.reader.nodes_by_id(sample(ids, _CHECKED))
    with_title = [node for node in checked if split_title(node)[0]]
    if len(with_title) < _MIN_TITLED * max(1, len(checked)):
        return False
    nodes = graph.reader.nodes_by_id(sample(ids, _MAX_TITLES))
    keys = [name_key(split_title(node)[0]) for node in nodes]
    titled = [(key, node) for key, node in zip(keys, nodes, strict=True) if key]
    texts = sample(titled, _MAX_TEXTS)
    mentions, as_names = _count_mentions(texts, titled)
    limit = max(2, _COMMON * len(texts))
    rare = [name for name, count in mentions.items() if count <= limit]
    count = sum(mentions[name] for name in rare)
    if count < _MIN_MENTIONS:
        return False
    named = count / len(texts) * len(ids) / len(nodes)
    capital = sum(as_names[name] for name in rare) / count
    _logger.info(
        "passages of %r mention %.2f titles of others on average, %.0f %% of them in capital "
        "letters; links are followed from %s and %.0f %%",
        group,
        named,
        100 * capital,
        _MIN_NAMED,
        100 * _MIN_WRITTEN_AS_NAMES,
    )
    return named >= _MIN_NAMED and capital >= _MIN_WRITTEN_AS_NAMES


def _count_mentions(
    texts: Iterable[tuple[str, Node]], titled: Iterable[tuple[str, Node]]
) -> tuple[Counter[str], Counter[str]]:
    """Count how often texts mention each title, and how often the title is written as a name.

    Args:
        texts: Passages with the keys of their titles.
        titled: The passages whose titles are counted, with the keys of these titles.
    """
    documents: dict[str, set[str]] = {}  # the ids of documents, by the key of their title
    for title, node in titled:
        documents.setdefault(title, set()).add(node.document_id)
    mentions: Counter[str] = Counter()
    as_names: Counter[str] = Counter()
    for own, node in texts:
        _, text = split_title(node)
        for title in names_in(text, documents.__contains__):
            if title != own and documents[title] != {node.document_id}:
                mentions[title] += 1
                as_names[title] += is_written_as_name(text, title)
    return mentions, as_names


def sample(items: Sequence[T], count: int) -> list[T]:
    """Return evenly spaced items of a sequence."""
    if len(items) <= count:
        return [*items]
    return [items[int(at)] for at in np.linspace(0, len(items) - 1, count)]
