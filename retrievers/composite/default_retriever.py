"""The default search of a graph, with automatic groups, branches and weights."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, cast, get_args

from ...nodegraph.errors import EmbeddingError, VectorLengthError
from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.embedding_cache import MAX_QUERIES
from ...nodegraph.storage.columns import portions
from ..analysis.phrases import Phrase, quoted_phrases
from ..base_retriever import BaseRetriever, Phrases
from ..filters import Filters, all_of, parse_filters
from ..indexes.text_index import TextIndex
from ..indexes.vector_index import VectorIndex
from ..plans.effects import find_one
from ..plans.plan import Do
from ..protocols import Index, RetrieverProtocol
from ..ranking import cut_scores, with_variant
from ..results import QueryVariant, Results
from ..retrieval_conditions import HitConditions
from ..retriever import Retriever, search_branches
from ..search import View
from ..similarities.bm25 import Bm25
from ..similarities.registry import DEFAULT, MakeIndex, get_similarity
from ..token_budget import BUDGET, TokenBudget
from ..tracing import start_span, summarize_queries
from ..validation import check_min_score, check_top_k, choice
from .branch_weights import BranchWeights, parse_weights
from .budget_windows import passages_within, search_windows
from .default_search import Distinct, EvidenceSearch, Finish
from .default_settings import (
    MeasuredSettings,
    default_target,
    measure,
    read_settings,
    sentence_group,
)
from .evidence_fusion import DEPTH, SENTENCES, WHOLE, Branches, EvidenceFusion
from .link_index import LinkIndex
from .link_search import SEEDS, LinkSearch
from .linked_search import FirstHits, LinkedSearch

logger = logging.getLogger(__name__)

MISSING = 200
"""The maximum number of missing vectors that a search computes, instead of comparing only words."""

_MAX_WEIGHT = 3.0  # maximum weight of vectors for links and windows

_ALONE = 10.0  # weight of vectors relative to words if vectors alone decide

_PROBED = 200  # characters of the query of ``build``


class DefaultRetriever(BaseRetriever):
    """The default search of a graph, returned by ``as_retriever(graph)``.

    It fuses the relative scores of the words of targets (weight 3) and of their sentences (weight
    1). The fusion is better than either ranking alone in all measured languages. Passages that
    contain a phrase in quotation marks come first.

    If the graph has embeddings, the vectors of targets and of their sentences are fused as well.
    Words and vectors are then weighted by their evidence in each question: how far a target stands
    out from chance matches, and, for words, how much of the question it covers. Vectors decide if a
    question and its answer use different words. Words decide for a code or a name. Vectors that are
    at most half as good as words (a model for a different language) are ignored. The measure is how
    often a sentence's nearest sentence by vectors is in the same target, compared with its nearest
    sentence by words.

    Links are followed (``LinkRetriever``) if titles are names that other targets mention, as in
    an encyclopedia. Headings in documentation rarely are.

    The weights and links are measured on a sample at the first query, and again when the
    number of documents has doubled or halved. The settings are stored with the graph for all
    processes. A trace contains the settings.

    A score from 0 to 1 is the part of the question that a result covers. Scores are comparable
    between questions and graphs, and never rise from one result to the next. A result with a score
    above 0.5 usually contains an answer (docs/scores.md). Targets without a match are not returned.

    Args:
        graph: The node graph. Its groups ``"{target} sentence"`` and, if links are followed,
            ``"{target} entity"`` are declared if they are missing.
        target: The group of the results. Defaults to the first group of an index made by the
            command line, and otherwise to ``"passage"``, which is declared with ``PassageSplitter``
            if it is missing.
        top_k: The maximum number of results.
        filters: Conditions on metadata, checked before ranking.
        follow_links: Whether links are followed. If None, a measurement decides.
        words: The similarity for words, a ``Bm25``.
        embed_keys: The embeddings to search, or ``[]`` for words alone. If None, all embeddings are
            searched. Words alone are then compared if a model fails (the log and the evidence
            contain the error), or if more than 200 vectors are missing (``build()`` computes them).
            Missing vectors of named embeddings are always computed, and a failure of their model is
            an error.
        index: The index of embeddings, as in ``Retriever``.
        collapse: Whether results with equal texts are returned once, with their copies as evidence
            ("also in"). Case, punctuation, white space, width and markup may differ.
        phrases: ``"first"`` returns results that contain the query's quoted phrases first.
            ``"required"`` returns only such results. If there are none, other results are returned
            with a note.
        min_score: The minimum score, from 0 to 1.
        vectors: The texts whose vectors are compared: targets and their sentences (``"both"``),
            ``"sentences"`` or targets (``"passages"``). Comparing both finds more, above all across
            languages. Comparing one of them needs about half the embedding calls.
        weights: The weights of ``"words"`` and of ``"vectors"`` (or of embeddings by name), such as
            ``{"words": 1, "vectors": 3}``. They apply to all questions, and 0 switches a part off.
            If None, words and vectors are weighted by their evidence in each question.

    Raises:
        UnknownGroupError: If the graph has no such target.
        LookupError: If the graph has no such embedding.
        TypeError: If ``graph`` is not a NodeGraph, or ``words`` is not a ``Bm25``.
        ValueError: If a number is out of range, a group with the required name has a different
            rule, or ``index`` is given and the graph has no embeddings.
        EmbeddingError: During retrieval, if a named embedding fails.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import as_retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is.", "茶是一种饮料。"])
        >>> [result.node.text for result in as_retriever(graph).retrieve("green tea", top_k=1)]
        ['Green tea is not fermented.']
    """

    name = "default"

    has_windows = True

    score_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """The lowest and the highest score. See docs/scores.md."""

    def __init__(
        self,
        graph: NodeGraph,
        target: str | None = None,
        *,
        top_k: int = 6,
        filters: Filters | None = None,
        follow_links: bool | None = None,
        words: str | Bm25 = "bm25",
        embed_keys: Sequence[str] | None = None,
        index: str | MakeIndex = DEFAULT,
        collapse: bool = True,
        phrases: Phrases = "first",
        min_score: float | None = None,
        vectors: Literal["both", "sentences", "passages"] = "both",
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        if target is None:
            target = default_target(graph)
        graph.reader.lineage(target)
        parse_filters(filters)
        self.graph = graph
        self.target = target
        self.filters = filters
        self.follow_links = follow_links
        self.collapse = collapse
        self._is_warned = False  # whether a warning about the currently missing vectors was logged
        self.phrases = choice(phrases, "phrases", get_args(Phrases))
        self.min_score = check_min_score(min_score, self)
        self.vectors = choice(vectors, "vectors", ("both", "sentences", "passages"))
        self.sentences, self.entities = sentence_group(graph, target), f"{target} entity"
        self._needs_vectors = embed_keys is not None
        keys = list(graph.embeddings.embedders) if embed_keys is None else list(embed_keys)
        self.bm25 = _words_similarity(words)
        self._word_retrievers = {
            "sentences": self._retriever(self.sentences, self.bm25),
            "words": self._retriever(target, self.bm25),
        }
        self._vectors = self._vector_retrievers(keys, index)
        self._embed_keys = keys
        self._known_keys = keys  # including those with weight 0
        self._known_vectors = self._vectors
        self.weights: BranchWeights | None = None
        if weights is not None:
            self._set_weights(weights)

    def _vector_retrievers(self, keys: Sequence[str], index: str | MakeIndex) -> list[Retriever]:
        """Return the vector retrievers of sentences and of targets.

        Raises:
            ValueError: If an index of embeddings is given, but there is no embedding.
        """
        if index != DEFAULT and not keys:
            raise ValueError(
                f"index={index!r:.80} is an index of embeddings, and none are searched; give the "
                "graph an embedding model"
            )
        groups = [self.sentences, self.target]
        if self.vectors == "sentences":
            groups = [self.sentences]
        elif self.vectors == "passages":
            groups = [self.target]
        return [
            self._retriever(group, "cosine", embed_keys=[key], index=index)
            for key in keys
            for group in dict.fromkeys(groups)
        ]

    def _retriever(self, group: str, similarity: str | Bm25, **options: Any) -> Retriever:
        """Return the retriever of a branch."""
        return Retriever(
            self.graph,
            group,
            similarity,
            target=self.target,
            top_k=DEPTH,
            filters=self.filters,
            **options,
        )

    def _set_weights(self, weights: Mapping[str, float]) -> None:
        """Set the weights of words and vectors. Vectors with weight 0 are not searched."""
        self.weights = parse_weights(weights, self._known_keys)
        of_vectors = self.weights.vectors
        self._embed_keys = [key for key in self._known_keys if of_vectors[key]]
        self._vectors = [each for each in self._known_vectors if of_vectors[each.embed_keys[0]]]

    def with_fetch_k(self, fetch_k: int) -> DefaultRetriever:
        """Return a copy that fetches a different number of hits before lifting."""
        other = copy.copy(self)
        other._word_retrievers = {
            name: each.with_fetch_k(fetch_k) for name, each in self._word_retrievers.items()
        }
        other._vectors = [each.with_fetch_k(fetch_k) for each in self._vectors]
        other._known_vectors = [each.with_fetch_k(fetch_k) for each in self._known_vectors]
        return other

    def with_phrases(self, phrases: Phrases) -> DefaultRetriever:
        """Return a copy that returns results with quoted phrases first, or only such results."""
        other = copy.copy(self)
        other.phrases = choice(phrases, "phrases", get_args(Phrases))
        return other

    def with_weights(self, weights: Mapping[str, float]) -> DefaultRetriever:
        """Return a copy with given weights of words and vectors."""
        other = copy.copy(self)
        other._set_weights(weights)
        return other

    def with_min_score(self, min_score: float) -> DefaultRetriever:
        """Return a copy with a different minimum score."""
        other = copy.copy(self)
        other.min_score = check_min_score(min_score, self)
        return other

    def build(self) -> None:
        """Build groups, vectors, indexes, measured settings and links before the first search."""
        reader = self.graph.reader
        try:
            for group in dict.fromkeys(each.group for each in self._vectors):
                self.graph.build(group, embed=self._embed_keys)
            self.graph.build(self.sentences)
        except EmbeddingError as error:
            if self._needs_vectors or isinstance(error, VectorLengthError):
                raise
            logger.warning("searches use words only, since passages have no vectors: %s", error)
        with reader.reading(self.target):
            first = reader.nodes_by_id(reader.ids(self.target)[:1])
        self.retrieve("".join(node.text[:_PROBED] for node in first), top_k=1)

    def __repr__(self) -> str:
        return f"DefaultRetriever({self.graph!r}, {self.target!r}, top_k={self.top_k})"

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retrievers that may be fused."""
        found: list[tuple[str, RetrieverProtocol]] = [*self._word_retrievers.items()]
        for each in self._vectors:
            key = each.embed_keys[0]
            found.append((key if each.group == self.sentences else f"{key}, passages", each))
        return found

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        assert limit is not None
        rankings: list[Results] = []
        for batch in portions(queries, MAX_QUERIES):  # the cache of query vectors is limited
            rankings += await self._search_batch(batch, limit, filters)
        if self.min_score is not None:
            rankings = [cut_scores(ranking, self.min_score) for ranking in rankings]
        if self.phrases == "first":
            return rankings
        return await Do(lambda: [*map(self._with_phrases, queries, rankings)], kind="work")

    def _with_phrases(self, query: str, results: Results) -> Results:
        """Return the results that contain all phrases of a query, or all results if none does."""
        phrases = [Phrase(self.bm25.analyzer, text) for text in quoted_phrases(query)]
        with self.graph.reader.reading():
            texts = self.graph.reader.searched_texts([result.node for result in results])
        pairs = zip(results, texts, strict=True)
        kept = [result for result, text in pairs if all(p.is_in(text) for p in phrases)]
        if kept or not results:
            return kept
        note = f"no result has {' and '.join(phrase.text for phrase in phrases)}"
        logger.warning("%s; the results have some of the words", note)
        return with_variant(results, QueryVariant(query, self.name, note))

    async def _search_batch(
        self, queries: Sequence[str], limit: int, filters: Filters | None
    ) -> list[Results]:
        """Search with words and vectors, or with words alone if optional vectors are missing."""
        if self._needs_vectors or not self._embed_keys:
            return await self._search(queries, limit, filters)
        by_words = copy.copy(self)
        by_words._vectors = []
        by_words._embed_keys = []
        missing = await Do(self._count_missing_vectors, kind="work")
        if missing > MISSING and not self._is_warned:
            logger.warning(
                "searches use words only: %s vectors of %r are missing; "
                "DefaultRetriever(graph).build() computes them",
                missing,
                self.sentences,
            )
        self._is_warned = missing > MISSING
        if missing > MISSING:
            return await by_words._search(queries, limit, filters)
        try:
            return await self._search(queries, limit, filters)
        except VectorLengthError:  # a model that changed under its old name, not a server failure
            raise
        except EmbeddingError as raised:
            error = raised
        logger.warning("searched with words only, %s: %s", summarize_queries(queries), error)
        found = await by_words._search(queries, limit, filters)
        note = f"words alone were compared: {type(error).__name__}: {error}"
        return [
            with_variant(results, QueryVariant(query, self.name, note))
            for query, results in zip(queries, found, strict=True)
        ]

    def _count_missing_vectors(self) -> int:
        """Return the number of missing vectors that would be compared."""
        measured = read_settings(self.graph, self.target, self._embed_keys)
        reliability = dict.fromkeys(self._embed_keys, 1.0)
        if measured is not None:
            reliability = measured.reliability(self._embed_keys)
        missing = 0
        for each in self._vectors:
            index = self._open(each)
            if reliability[each.embed_keys[0]] and isinstance(index, VectorIndex):
                missing = max(missing, index.count_missing(MISSING))
        return missing

    def _open(self, retriever: Retriever) -> Index[Any]:
        """Return the index of a vector retriever."""
        return retriever.similarity.open(self.graph, retriever.group, retriever.embed_keys[0])

    async def _search(
        self, queries: Sequence[str], limit: int, filters: Filters | None
    ) -> list[Results]:
        texts = [query for query in queries if query.strip()]
        with start_span(self.name, query=summarize_queries(queries)) as span:
            measured = await self._measured()
            links = measured.links if self.follow_links is None else self.follow_links
            span.attributes.update(weights=[SENTENCES, WHOLE, *measured.weights], links=links)
            budget = BUDGET.get()
            count = limit
            if budget is not None:
                count = passages_within(budget)
            distinct = Distinct(count, self.collapse)
            find = self._find_linked if links else self._find
            found = await find(measured, filters, texts, distinct, budget)
            span.attributes.update(_notes(found))
            if len(texts) == len(queries):
                return found
            listed = await find_one(self._word_retrievers["words"], "", limit, filters)
            rankings = iter(found)
            return [next(rankings) if query.strip() else [*listed] for query in queries]

    async def _measured(self) -> MeasuredSettings:
        """Return the measured settings. The first call measures them."""
        read = partial(read_settings, self.graph, self.target, self._embed_keys)
        measured = await Do(read, kind="work")
        if measured is not None:
            return measured
        for each in self._vectors:  # this call embeds the measured texts
            await Do(self._open(each).ready)
        is_of_targets = self.vectors == "passages"
        group = self.target if is_of_targets else self.sentences
        indexes = {
            each.embed_keys[0]: self._open(each) for each in self._vectors if each.group == group
        }
        settings = self.graph, self.target, self.sentences, self._embed_keys
        return await Do(partial(measure, *settings, indexes, is_of_targets))

    async def _find(
        self,
        measured: MeasuredSettings,
        filters: Filters | None,
        queries: Sequence[str],
        distinct: Distinct,
        budget: TokenBudget | None,
    ) -> list[Results]:
        """Search all branches in one view, without following links."""
        reliability = measured.reliability(self._embed_keys)
        if self.weights is not None:
            reliability = dict.fromkeys(self._embed_keys, 1.0)
        vectors = [each for each in self._vectors if reliability[each.embed_keys[0]]]
        branches = self._branches(vectors, filters)
        fusion = EvidenceFusion(branches, reliability, measured.deviations, self.weights)
        finish = self._finish(branches, budget, measured)
        work = EvidenceSearch(fusion, measured.backgrounds, distinct, finish)
        return await search_branches(branches.all, queries, work)

    def _fixed_weights(self, measured: Sequence[float]) -> dict[str, float]:
        """Return the weights of vectors relative to words with the weights 1 and 3."""
        if self.weights is None:
            limited = [min(_MAX_WEIGHT, weight) for weight in measured]
            return dict(zip(self._embed_keys, limited, strict=True))
        words = self.weights.words
        ratios = {
            key: self.weights.vectors[key] / words if words else _ALONE for key in self._embed_keys
        }
        return {key: (SENTENCES + WHOLE) * min(_ALONE, ratio) for key, ratio in ratios.items()}

    async def _find_linked(
        self,
        measured: MeasuredSettings,
        filters: Filters | None,
        queries: Sequence[str],
        distinct: Distinct,
        budget: TokenBudget | None,
    ) -> list[Results]:
        """Search all branches and follow links in one view."""
        group = self.target if self.vectors == "passages" else self.sentences
        weights = self._fixed_weights(measured.weights)
        vectors = [
            each for each in self._vectors if each.group == group and weights[each.embed_keys[0]]
        ]
        branches = self._branches(vectors, filters)
        first = FirstHits(
            branches,
            [weights[each.embed_keys[0]] for each in vectors],
            None if self.weights is None else float(self.weights.words > 0),
        )
        index = await Do(self._link_index, kind="work")
        work = LinkedSearch(
            first,
            LinkSearch(self.graph, branches.words, index, SEEDS, repetition=0.0),
            HitConditions(all_of(self.filters, filters)),
            measured.backgrounds,
            measured.deviations,
            distinct,
            self._finish(branches, budget, measured),
        )
        return await search_branches(branches.all, queries, work, index)

    def _link_index(self) -> LinkIndex:
        """Return the index of the names that link targets. Their group is declared if missing."""
        if self.entities not in self.graph.reader.group_names():
            self.graph.create_node_group(self.entities, EntityExtractor(), parent=self.target)
        return LinkIndex.open(self.graph, self.entities)

    def _branches(self, vectors: Sequence[Retriever], filters: Filters | None) -> Branches:
        """Return the branches of a call with the given vectors."""
        return Branches(
            self._word_retrievers["sentences"].branch(filters),
            self._word_retrievers["words"].branch(filters),
            [each.branch(filters) for each in vectors],
        )

    def _finish(
        self, branches: Branches, budget: TokenBudget | None, measured: MeasuredSettings
    ) -> Finish | None:
        """Return a function that makes windows of passages if there is a token budget."""
        if budget is None:
            return None
        weights = self._fixed_weights(measured.weights)

        def in_windows(view: View, results: Results) -> Results:
            return search_windows(
                self.graph,
                self.sentences,
                results,
                view.prepared(branches.words),
                cast(TextIndex, view.source(branches.sentences).opened.index),
                budget,
                weights,
            )

        return in_windows


def _words_similarity(words: str | Bm25) -> Bm25:
    """Return the similarity for words.

    Raises:
        TypeError: If the similarity is not a ``Bm25``.
    """
    similarity = get_similarity(words)
    if not isinstance(similarity, Bm25):
        raise TypeError(
            f"words must be 'bm25' or a Bm25, got {words!r:.80}; for other similarities, use "
            "Retriever(graph, group, similarity, target=...)"
        )
    return similarity


def _notes(found: Sequence[Results]) -> dict[str, str]:
    """Return notes for a trace on what decided the rankings of queries."""
    notes = dict.fromkeys(
        variant.note
        for results in found
        for match in (results[0].evidence if results else ())
        for variant in match.variants
        if variant.strategy == DefaultRetriever.name and variant.note is not None
    )
    return {"decided": "; ".join(notes)} if notes else {}
