"""A good retriever for any graph in one line: groups, branches and weights chosen by themselves."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...nodegraph.errors import EmbeddingError, VectorLengthError
from ...nodegraph.extractors.entity_extractor import EntityExtractor, has_title
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.embedder import split_batches
from ...nodegraph.models.embedding_cache import MAX_QUERIES
from ...nodegraph.models.passage_vectors import embed_ahead
from ...nodegraph.node import ROOT, Node
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from ..filters import Filters, parse_filters
from ..indexes.bm25_scores import Floats
from ..indexes.nearest_vectors import unit
from ..planned_retriever import PlannedRetriever
from ..plans.effects import Compute, Find
from ..plans.plan import Plan
from ..protocols import RetrieverProtocol, Similarity
from ..results import Hits, OutputOptions, QueryVariant, Results, ScoredNode
from ..retriever import Retriever
from ..search import in_a_newer_state
from ..similarities.bm25 import Bm25
from ..similarities.registry import DEFAULT, MakeIndex, get_similarity
from ..tracing import start_span, summarize_queries
from ..validation import check_top_k
from .fusion import FusionRetriever, check_weights
from .link_graph import LinkOptions
from .link_retriever import LinkRetriever
from .relevance import (
    COMPARED,
    Vectors,
    joined,
    linked_from,
    vector_scores,
    with_scores,
    word_scores,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

PASSAGES = "passage"
"""The group to answer with if nothing is said."""

logger = logging.getLogger(__name__)

DEPTH = 50
"""How many targets of each branch are fused."""

SENTENCES, WHOLE = 1.0, 3.0
"""The weights of the words of sentences and of their targets."""

_PROBES = 64  # sentences by which vectors are measured

_FEWEST_PROBES = 12  # with fewer, nothing can be said

_CHANCE = 0.2  # where words are right less often than this, vectors are compared with it

_MOST_LINKED = 2_000  # targets up to which links are followed: entities are found anew at changes

_TITLED = 0.5  # the share of targets with a title from which links are followed


@dataclass(frozen=True, slots=True)
class _Choice:
    """What was measured on a graph.

    Attributes:
        size: How many sentences it had.
        weights: The weight of the vectors of each embedding.
        links: Whether links are followed.
        backgrounds: Vectors of sentences from all over the graph, of length 1, by embedding.
    """

    size: int
    weights: tuple[float, ...]
    links: bool
    backgrounds: Mapping[str, Vectors]


class DefaultRetriever(PlannedRetriever):
    """Search a graph well without choosing anything; ``as_retriever(graph)`` makes one.

    The words of targets and those of their sentences are fused by relative scores, three to one:
    better than either alone in every language that was measured. Where the graph has embeddings,
    the vectors of sentences join, as far as they can be trusted: a sentence's nearest other
    sentence should be of the same target as often as the one with the most words in common is.
    Vectors that are half as good or worse (a model for another language) are not used; equal ones
    get a weight of two. Where half of the targets have titles, and there are no more than 2,000
    of them, links between them are followed (``LinkRetriever``). It is measured on a sample of
    the graph at the first query, and again when the graph has doubled or halved.

    Scores are from 0 to 1, mean the same for all questions and graphs, and don't rise along the
    results: they tell how much of the question a result says. Above 0.5 there mostly is an answer
    (docs/scores.md). What has nothing in common with the question is no result.

    Choose ``Retriever``, ``FusionRetriever`` and the others where you know better; this one is
    made of them.

    Args:
        graph: The node graph. Its groups ``"{target} sentence"`` and, where links are followed,
            ``"{target} entity"`` are declared if they are not there.
        target: The group to answer with; None for ``"passage"``, which is declared by
            ``PassageSplitter`` if it is not there: a short document is one passage.
        top_k: How many nodes at most.
        filters: Conditions on metadata, checked before ranking.
        follow_links: Whether links are followed; None decides as above, and so do ``LinkOptions``,
            which say how.
        words: The similarity of words. With another one than BM25 results keep their fused
            scores, which say nothing across questions.
        embed_keys: Which of the graph's embeddings join, ``[]`` for words alone. None for all;
            then words alone answer if a model fails, which the log and the evidence say. The
            failure of a named one is an error.
        index: How embeddings are searched, as in ``Retriever``.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        UnknownGroupError: If the graph has no such target.
        LookupError: If the graph has no such embedding.
        TypeError: If ``graph`` is no graph, or ``words`` compares embeddings.
        ValueError: If a number is out of range, a group of that name has another rule, or there
            is an index of embeddings and the graph has none.
        EmbeddingError: In a retrieval, if a named embedding fails.

    Example:
        >>> from nodekin.retrievers import as_retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is.", "茶是一种饮料。"])
        >>> [result.node.text for result in as_retriever(graph).retrieve("green tea", top_k=1)]
        ['Green tea is not fermented.']
    """

    name = "default"

    max_score: ClassVar[float] = 1.0
    """Scores are from 0 to this: see docs/scores.md."""

    def __init__(
        self,
        graph: NodeGraph,
        target: str | None = None,
        *,
        top_k: int = 6,
        filters: Filters | None = None,
        follow_links: bool | LinkOptions | None = None,
        words: str | Similarity = "bm25",
        embed_keys: Sequence[str] | None = None,
        index: str | MakeIndex = DEFAULT,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=check_top_k(top_k), **output)
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        if target is None:
            target = PASSAGES
            if target not in graph.groups:
                graph.create_node_group(target, PassageSplitter)
        graph.reader.lineage(target)
        parse_filters(filters)
        self.graph = graph
        self.target = target
        self.filters = filters
        self.follow_links = follow_links
        self.sentences, self.entities = _sentence_group(graph, target), f"{target} entity"
        self.weights: list[float] | None = None
        self._needs_vectors = embed_keys is not None
        keys = list(graph.embeddings.embedders) if embed_keys is None else list(embed_keys)
        if index != DEFAULT and not keys:
            raise ValueError(
                f"index={index!r:.80} is for embeddings, of which none are searched; give the "
                "graph an embedding model"
            )
        similarity = get_similarity(words)
        if similarity.mode != "text":
            raise TypeError(
                f"words are compared by a similarity of texts, not by {similarity.name!r}; for "
                "embeddings alone there is Retriever(graph, group, similarity, target=...)"
            )
        self.bm25 = similarity if isinstance(similarity, Bm25) else None
        branch = partial(Retriever, graph, target=target, top_k=DEPTH, filters=filters)
        self._words = [branch(group, similarity) for group in (self.sentences, target)]
        self._vectors = [
            branch(self.sentences, "cosine", index=index, embed_keys=[key]) for key in keys
        ]

    def with_weights(self, weights: Sequence[float] | None) -> DefaultRetriever:
        """Return the same with weights of one's own; it costs nothing.

        Args:
            weights: Those of the words of sentences, of the words of targets, and of each
                embedding, in this order; None for what is measured.

        Raises:
            TypeError: If a weight is no number.
            ValueError: If they are not as many, below 0, or all 0.
        """
        other = copy.copy(self)
        count = len(self.inner_retrievers)
        other.weights = None if weights is None else check_weights(weights, count)
        return other

    def __repr__(self) -> str:
        return f"DefaultRetriever({self.graph!r}, {self.target!r}, top_k={self.top_k})"

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retrievers that may be fused."""
        names = ["sentences", "words", *(item.embed_keys[0] for item in self._vectors)]
        return list(zip(names, [*self._words, *self._vectors], strict=True))

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        if len(queries) > MAX_QUERIES:  # so that vectors of queries are cached until the end
            rankings: list[Results] = []
            for batch in split_batches(queries, MAX_QUERIES):
                rankings += yield from self.plans(batch, limit, filters)
            return rankings
        try:
            return (yield from self._search(queries, limit, filters))
        except VectorLengthError:  # another model under the same name: no failure of a server
            raise
        except EmbeddingError as error:
            by_words = self._without_vectors()
            if by_words is None:
                raise
            logger.warning("words alone answer %s: %s", summarize_queries(queries), error)
            rankings = yield from by_words._search(queries, limit, filters)
            note = f"words alone were compared: {type(error).__name__}: {error}"
            return [
                [_noted(result, QueryVariant(query, self.name, note)) for result in results]
                for query, results in zip(queries, rankings, strict=True)
            ]

    def _without_vectors(self) -> DefaultRetriever | None:
        """Return what answers if a model fails; None where its vectors have to be compared."""
        weights = self.weights and self.weights[: len(self._words)]
        if self._needs_vectors or not self._vectors or (weights and not any(weights)):
            return None
        other = copy.copy(self)
        other._vectors, other.weights = [], weights
        return other

    def _search(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        with start_span(self.name, query=summarize_queries(queries)) as span:
            choice = self._known_choice()
            if choice is None:
                for branch in self._vectors:  # embeds what is measured
                    index = branch.similarity.open(self.graph, self.sentences, *branch.embed_keys)
                    yield from Compute(index.ready, partial(embed_ahead, index.ready))
                choice = yield from Compute(self._choose)
            weights = self.weights or [SENTENCES, WHOLE, *choice.weights]
            span.attributes.update(weights=weights, links=choice.links)
            retriever = self._retriever(weights, choice.links)
            assert limit is not None
            rankings = yield from Find(retriever, queries, max(limit, COMPARED), filters)
            score = partial(self._scored, queries, rankings, choice)
            scored = partial(in_a_newer_state, score)
            return [results[:limit] for results in (yield from Compute(scored))]

    def _scored(
        self, queries: Sequence[str], rankings: Sequence[Results], choice: _Choice
    ) -> list[Results]:
        """Return rankings with scores that can be compared between questions."""
        if self.bm25 is None:  # what another similarity finds need not share a word
            return list(rankings)
        index = self.bm25.open(self.graph, self.target)
        index.ready()
        with self.graph.reader.reading(self.target):
            index.sync()
            passages = index.passages()
            scored = []
            for query, results in zip(queries, rankings, strict=True):
                if not query.strip():  # what meets the filters
                    scored.append(results)
                    continue
                partners = filter(None, map(linked_from, results))
                nodes = [*(result.node for result in results), *partners]
                ids = list(dict.fromkeys(node.id for node in nodes))  # the results' come first
                passages.known(ids)
                terms = self.bm25.prepare(query, [index])
                scores = word_scores(terms, passages.term_scores(ids, terms))
                first = self._vector_scores(query, results, choice)
                scores[: len(first)] = joined(scores[: len(first)], first)
                by_id = dict(zip(ids, scores.tolist(), strict=True))
                scored.append(with_scores(results, by_id))
        return scored

    def _vector_scores(self, query: str, results: Results, choice: _Choice) -> Floats:
        """Return how near results are to a query by the vectors that found them."""
        nearest = np.zeros(len(results))
        for key, background in choice.backgrounds.items():
            cosines = np.array(
                [
                    max((e.score for e in r.evidence if e.embed_key == key), default=0.0)
                    for r in results
                ]
            )
            if cosines.any():
                vector = unit(self.graph.embeddings.query_vectors([query], key)[0])
                nearest = np.maximum(nearest, vector_scores(cosines, vector, background))
        return nearest

    def _retriever(self, weights: Sequence[float], links: bool) -> RetrieverProtocol:
        branches = [*self._words, *self._vectors]
        fusion = FusionRetriever(branches, "relative", weights, top_k=DEPTH)
        if not links:
            return fusion
        self.graph.create_node_group(
            self.entities, EntityExtractor(), parent=self.target, scope="group"
        )
        options = self.follow_links if isinstance(self.follow_links, LinkOptions) else None
        return LinkRetriever(
            fusion, self.graph, via=self.entities, options=options, filters=self.filters
        )

    def _known_choice(self) -> _Choice | None:
        """Return what was chosen before, None where the graph has changed much since."""
        choice = self._choices().get("choice")
        size = Bm25().open(self.graph, self.sentences).size
        if choice is None or not choice.size / 2 <= size <= choice.size * 2:
            return None
        return choice

    def _choices(self) -> dict[str, _Choice]:
        """Return where the choice is kept, for all retrievers of the graph with this target."""
        keys = tuple(branch.embed_keys[0] for branch in self._vectors)
        key = ("default choice", self.target, self.follow_links, keys)
        choices: dict[str, _Choice] = self.graph.reader.shared(key, dict)
        return choices

    def _choose(self) -> _Choice:
        """Measure a sample of the graph."""
        words = Bm25().open(self.graph, self.sentences)
        full = Bm25().open(self.graph, self.target)
        for index in (words, full):
            index.ready()
        with self.graph.reader.reading(self.sentences, self.target):
            words.sync()
            full.sync()
            targets = self.graph.reader.nodes_by_id(
                _spread(self.graph.reader.ids(self.target), 4 * _PROBES)
            )
            if isinstance(self.follow_links, bool):
                links = self.follow_links
            else:
                titled = sum(map(has_title, targets))
                links = titled >= max(1, _TITLED * len(targets)) and full.size <= _MOST_LINKED
            probes = [] if not self._vectors else self._probes(targets)
            texts = [probe.searched_text for probe in probes]
            by_words = self._share(
                probes, [words.search(Bm25().prepare(text, [words]), 3, _ALL) for text in texts]
            )
            weights = [self._weight(branch, probes, by_words) for branch in self._vectors]
            backgrounds = self._backgrounds(targets)
        choice = _Choice(words.size, tuple(weights), links, backgrounds)
        self._choices()["choice"] = choice
        return choice

    def _backgrounds(self, targets: Sequence[Node]) -> dict[str, Vectors]:
        """Return vectors of a sentence of each of some targets, by embedding."""
        sentences = [
            children[len(children) // 2]
            for target in (targets[:: 1 + len(targets) // (_PROBES + 1)] if self._vectors else ())
            if (children := self.graph.reader.children_in(self.sentences, target))
        ]
        keys = [branch.embed_keys[0] for branch in self._vectors] if sentences else []
        return {
            key: unit(np.array([node.embedding(key) for node in sentences], np.float32))
            for key in keys
        }

    def _probes(self, targets: Sequence[Node]) -> list[Node]:
        """Return a sentence of each of some targets that have three or more."""
        probes: list[Node] = []
        for target in targets:
            sentences = self.graph.reader.children_in(self.sentences, target)
            if len(sentences) >= 3 and len(probes) < _PROBES:
                probes.append(sentences[len(sentences) // 2])
        return probes

    def _share(self, probes: Sequence[Node], found: Sequence[Hits]) -> float:
        """Return for how many sentences the nearest other one is of the same target."""
        right = 0
        for probe, hits in zip(probes, found, strict=True):
            nodes = self.graph.reader.nodes_by_id(hits.ids)
            others = [node for node in nodes if node.text != probe.text]
            right += bool(others) and others[0].parent == probe.parent
        return right / max(1, len(probes))

    def _weight(self, branch: Retriever, probes: Sequence[Node], by_words: float) -> float:
        """Return the weight of an embedding's vectors, beside 3 and 1 of the words."""
        if len(probes) < _FEWEST_PROBES:
            return 1.0
        (key,) = branch.embed_keys
        index = branch.similarity.open(self.graph, self.sentences, key)
        index.sync()
        vectors = [unit(np.asarray(probe.embedding(key), np.float32)) for probe in probes]
        by_vectors = self._share(probes, [index.search(vector, 3, _ALL) for vector in vectors])
        return min(3.0, max(0.0, 4 * (by_vectors / max(by_words, _CHANCE) - 0.5)))


_ALL = parse_filters(None)


def _noted(result: ScoredNode, variant: QueryVariant) -> ScoredNode:
    """Return a result whose evidence notes what else is to be known."""
    matches = (replace(m, variants=(*m.variants, variant)) for m in result.evidence)
    return replace(result, evidence=(*matches,))


def _spread(ids: Sequence[str], count: int) -> list[str]:
    """Return some of the ids, evenly chosen."""
    return [ids[int(at)] for at in np.linspace(0, len(ids) - 1, min(count, len(ids)))]


def _sentence_group(graph: NodeGraph, target: str) -> str:
    """Return the group of the target's sentences: one that is there, or one of its own."""
    own = f"{target} sentence"
    graph.create_node_group(own, split_sentences, parent=target)
    version = graph.reader.lineage(own)[-1].transform_version
    declared = [graph.reader.lineage(name)[-1] for name in graph.groups if name != ROOT]
    same = [g.name for g in declared if (g.parent, g.transform_version) == (target, version)]
    return min(same, key=lambda name: name == own)
