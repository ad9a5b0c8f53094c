"""The default search of a graph, which combines words, vectors and links automatically."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, cast, get_args

from ...nodegraph.errors import EmbeddingError, VectorLengthError
from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.embedding_cache import MAX_QUERIES
from ...nodegraph.storage.columns import portions
from ..analysis.phrases import Phrase, quoted_phrases
from ..base_retriever import BaseRetriever, Phrases
from ..call import Call
from ..filters import Filters, parse_filters
from ..indexes.text_index import TextIndex
from ..indexes.vector_index import VectorIndex
from ..plans.effects import find_one
from ..plans.plan import Do, work
from ..protocols import Index, RetrieverProtocol
from ..ranking import cut_scores, with_variant
from ..results import QueryVariant, Results
from ..retrieval_conditions import HitConditions
from ..retriever import Retriever, search_branches
from ..search import View
from ..similarities.bm25 import Bm25
from ..similarities.registry import DEFAULT, MakeIndex, get_similarity
from ..token_budget import TokenBudget
from ..tracing import is_observed, start_span, summarize_queries
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
"""The maximum number of missing vectors that are computed during a search.

If more vectors are missing, the search uses words only.
"""

_MAX_WEIGHT = 3.0  # the maximum weight of vectors for links and windows

_ALONE = 10.0  # the weight of vectors relative to words if only vectors are used

_PROBED = 200  # the number of characters of the query in ``build``


class DefaultRetriever(BaseRetriever):
    """The default search of a graph, which ``as_retriever(graph)`` returns.

    It fuses two rankings by words, based on their relative scores: a ranking of the targets, which
    are usually passages (weight 3), and a ranking of their sentences (weight 1). In all languages
    measured, the fusion is better than either ranking alone. Passages that contain a phrase in
    quotation marks come first.

    If the graph has embeddings, the vectors of targets and of their sentences are fused as well.
    Words and vectors are then weighted by their evidence in each question. The evidence of vectors
    states how clearly the best target differs from random matches. The evidence of words also
    states how much of the question the target covers. As a result, vectors dominate if a question
    and its answer use different words, and words dominate for codes or names.

    Vectors that are at most half as good as words are ignored. The model may have been trained for
    a different language, for example. The quality is measured on sentences of the graph: vectors
    and words each find the nearest other sentence, which should belong to the same target.

    Links are followed (see ``LinkRetriever``) if titles are names that other targets mention, as in
    an encyclopedia. This is rarely the case for headings in documentation.

    Weights and links are determined from a sample at the first query, and again when the number of
    documents has doubled or halved. These settings are stored with the graph and shared by all
    processes. A trace contains the settings.

    A score from 0 to 1 states which part of the question a result covers. Scores can be compared
    between questions and between graphs, and they never increase from one result to the next. A
    result with a score above 0.5 usually contains an answer (docs/scores.md). Targets that do not
    match at all are not returned.

    Args:
        graph: The graph to search. Its groups ``"{target} sentence"`` and, if links are followed,
            ``"{target} entity"`` are created if they do not exist.
        target: The name of the group that contains the results. Defaults to the first group of an
            index that was created with the command line, and otherwise to ``"passage"``. The group
            ``"passage"`` is created with ``PassageSplitter`` if it does not exist.
        top_k: The maximum number of results.
        filters: Conditions on metadata, which are checked before ranking.
        follow_links: Whether links are followed. If None, this is decided by a measurement.
        words: The similarity for words, which must be a ``Bm25``.
        embed_keys: The names of the embeddings to search, or ``[]`` to use words only. If None, all
            embeddings are searched. The search then uses words only if a model fails (the log and
            the evidence contain the error), or if more than 200 vectors are missing (``build()``
            computes them). If embeddings are named, missing vectors are always computed, and a
            failure of a model raises an error.
        index: The index for embeddings. See ``Retriever``.
        collapse: Whether results with equal texts are returned only once, with their copies as
            evidence ("also in"). Texts count as equal even if they differ in case, punctuation,
            white space, width or markup.
        phrases: The treatment of quoted phrases in the query. ``"first"`` ranks results that
            contain them before all other results. ``"required"`` returns only results that contain
            them. If there are none, other results are returned with a note.
        min_score: The minimum score, from 0 to 1.
        vectors: The texts whose vectors are compared: ``"sentences"``, targets (``"passages"``), or
            ``"both"``. Comparing both finds more, especially across languages. Comparing only one
            of them requires about half as many texts to be embedded.
        weights: The weights of ``"words"`` and of ``"vectors"`` (or of individual embeddings), such
            as ``{"words": 1, "vectors": 3}``. They apply to all questions, and a weight of 0
            disables a part. If None, words and vectors are weighted by their evidence in each
            question.

    Raises:
        UnknownGroupError: If the graph has no group named ``target``.
        LookupError: If the graph has no embedding with a given name.
        TypeError: If ``graph`` is not a NodeGraph, or ``words`` is not a ``Bm25``.
        ValueError: If a number is out of range, a group with one of the required names has a
            different rule, or ``index`` is given although the graph has no embeddings.
        EmbeddingError: During retrieval, if the model of a named embedding fails.

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
    """The lowest and the highest possible score. See docs/scores.md."""

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
        self._is_warned = False  # whether missing vectors have already been reported in the log
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
        self._known_keys = keys  # all embeddings, including those with a weight of 0
        self._known_vectors = self._vectors
        self.weights: BranchWeights | None = None
        if weights is not None:
            self._set_weights(weights)

    def _vector_retrievers(self, keys: Sequence[str], index: str | MakeIndex) -> list[Retriever]:
        """Return the retrievers that search the vectors of sentences and of targets.

        Raises:
            ValueError: If an index for embeddings is given although no embeddings are searched.
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
        """Return a retriever for one group of nodes and one similarity."""
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
        """Set the weights of words and vectors. Vectors with a weight of 0 are not searched."""
        self.weights = parse_weights(weights, self._known_keys)
        of_vectors = self.weights.vectors
        self._embed_keys = [key for key in self._known_keys if of_vectors[key]]
        self._vectors = [each for each in self._known_vectors if of_vectors[each.embed_keys[0]]]

    def with_fetch_k(self, fetch_k: int) -> DefaultRetriever:
        """Return a copy that fetches a different number of candidates."""
        other = copy.copy(self)
        other._word_retrievers = {
            name: each.with_fetch_k(fetch_k) for name, each in self._word_retrievers.items()
        }
        other._vectors = [each.with_fetch_k(fetch_k) for each in self._vectors]
        other._known_vectors = [each.with_fetch_k(fetch_k) for each in self._known_vectors]
        return other

    def with_phrases(self, phrases: Phrases) -> DefaultRetriever:
        """Return a copy that treats quoted phrases differently."""
        other = copy.copy(self)
        other.phrases = choice(phrases, "phrases", get_args(Phrases))
        return other

    def with_weights(self, weights: Mapping[str, float]) -> DefaultRetriever:
        """Return a copy with different weights of words and vectors."""
        other = copy.copy(self)
        other._set_weights(weights)
        return other

    def with_min_score(self, min_score: float) -> DefaultRetriever:
        """Return a copy with a different minimum score."""
        other = copy.copy(self)
        other.min_score = check_min_score(min_score, self)
        return other

    def build(self) -> None:
        """Build the groups, vectors, indexes, settings and links that the first search requires."""
        reader = self.graph.reader
        self._open_words()
        try:
            for group in dict.fromkeys(each.group for each in self._vectors):
                self.graph.build(group, embed=self._embed_keys)
            self.graph.build(self.sentences)
        except EmbeddingError as error:
            if self._needs_vectors or isinstance(error, VectorLengthError):
                raise
            logger.warning("searches use words only, since passages have no vectors: %s", error)
        with reader.reading(self.target):
            first = reader.nodes_by_id(reader.ids(self.target, limit=1))
        self.retrieve("".join(node.text[:_PROBED] for node in first), top_k=1)

    def __repr__(self) -> str:
        return f"DefaultRetriever({self.graph!r}, {self.target!r}, top_k={self.top_k})"

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retrievers whose results can be fused, by name."""
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
        call = Call.begin(filters)
        rankings: list[Results] = []
        # The size of the cache for query vectors is limited.
        for batch in portions(queries, MAX_QUERIES):
            rankings += await self._search_batch(batch, limit, call)
        if self.min_score is not None:
            rankings = [cut_scores(ranking, self.min_score) for ranking in rankings]
        if self.phrases == "first":
            return rankings
        pairs = [*zip(queries, rankings, strict=True)]
        return await Do(lambda: [self._with_phrases(*pair) for pair in pairs], kind="work")

    def _with_phrases(self, query: str, results: Results) -> Results:
        """Return the results that contain all quoted phrases of a query.

        If no result contains them, all results are returned with a note.
        """
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

    async def _search_batch(self, queries: Sequence[str], limit: int, call: Call) -> list[Results]:
        """Search with words and vectors.

        If optional vectors are not available, search with words only.
        """
        if self._needs_vectors or not self._embed_keys:
            return await self._search(queries, limit, call)
        by_words = copy.copy(self)
        by_words._vectors = []
        by_words._embed_keys = []
        missing, state = await Do(self._count_missing_vectors, kind="work")
        call = replace(call, state=state)
        if missing > MISSING and not self._is_warned:
            logger.warning(
                "searches use words only: %s vectors of %r are missing; "
                "DefaultRetriever(graph).build() computes them",
                missing,
                self.sentences,
            )
        self._is_warned = missing > MISSING
        if missing > MISSING:
            return await by_words._search(queries, limit, call)
        try:
            return await self._search(queries, limit, call)
        # The model was replaced under the same name; this is not a server failure.
        except VectorLengthError:
            raise
        except EmbeddingError as raised:
            error = raised
        logger.warning("searched with words only, %s: %s", summarize_queries(queries), error)
        found = await by_words._search(queries, limit, call)
        note = f"words alone were compared: {type(error).__name__}: {error}"
        return [
            with_variant(results, QueryVariant(query, self.name, note))
            for query, results in zip(queries, found, strict=True)
        ]

    def _count_missing_vectors(self) -> tuple[int, int | None]:
        """Return the number of missing vectors that a search would have to compute.

        Returns:
            The number, and the state of the server for which it was counted (see ``Call.state``).
        """
        reader = self.graph.reader
        with reader.call():
            return self._count_missing(), reader.state_of_call

    def _count_missing(self) -> int:
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
        """Return the index that a retriever of vectors searches."""
        return retriever.similarity.open(self.graph, retriever.group, retriever.embed_keys[0])

    async def _search(self, queries: Sequence[str], limit: int, call: Call) -> list[Results]:
        texts = [query for query in queries if query.strip()]
        with start_span(self.name, query=summarize_queries(queries)) as span:
            measured, state = await self._measured(call)
            call = replace(call, state=state)
            links = measured.links if self.follow_links is None else self.follow_links
            span.attributes.update(weights=[SENTENCES, WHOLE, *measured.weights], links=links)
            count = limit if call.budget is None else passages_within(call.budget)
            distinct = Distinct(count, self.collapse)
            find = self._find_linked if links else self._find
            found = await find(measured, call, texts, distinct)
            if is_observed():  # reading the notes would create the evidence
                span.attributes.update(_notes(found))
            if len(texts) == len(queries):
                return found
            listed = await find_one(self._word_retrievers["words"], "", limit, call.filters)
            rankings = iter(found)
            return [next(rankings) if query.strip() else [*listed] for query in queries]

    def _read_settings(self, call: Call) -> tuple[MeasuredSettings | None, int | None]:
        """Return the stored settings, and the state of the server (see ``Call.state``)."""
        reader = self.graph.reader
        with reader.call(call.state):
            settings = read_settings(self.graph, self.target, self._embed_keys)
            return settings, reader.state_of_call

    async def _measured(self, call: Call) -> tuple[MeasuredSettings, int | None]:
        """Return the measured settings of the graph. The first call performs the measurement.

        Returns:
            The settings, and the state of the server (see ``Call.state``).
        """
        stored, state = await work(self._read_settings, call)
        if stored is not None:
            return stored, state
        self._open_words()
        for each in self._vectors:  # this call embeds the measured texts
            await Do(self._open(each).ready)
        is_of_targets = self.vectors == "passages"
        group = self.target if is_of_targets else self.sentences
        indexes = {
            each.embed_keys[0]: self._open(each) for each in self._vectors if each.group == group
        }
        settings = self.graph, self.target, self.sentences, self._embed_keys
        measured = await Do(partial(measure, *settings, indexes, is_of_targets))
        return measured, state

    def _open_words(self) -> None:
        """Open the indexes of words, so that texts are analyzed while other nodes are built."""
        for each in self._word_retrievers.values():
            self.bm25.open(self.graph, each.group)

    async def _find(
        self,
        measured: MeasuredSettings,
        call: Call,
        queries: Sequence[str],
        distinct: Distinct,
    ) -> list[Results]:
        """Search with words and vectors in one snapshot of the graph, without following links."""
        reliability = measured.reliability(self._embed_keys)
        if self.weights is not None:
            reliability = dict.fromkeys(self._embed_keys, 1.0)
        vectors = [each for each in self._vectors if reliability[each.embed_keys[0]]]
        branches = self._branches(vectors, call)
        fusion = EvidenceFusion(branches, reliability, measured.deviations, self.weights)
        finish = self._finish(branches, call.budget, measured)
        work = EvidenceSearch(fusion, measured.backgrounds, distinct, finish)
        return await search_branches(branches.all, queries, work, state=call.state)

    def _fixed_weights(self, measured: Sequence[float]) -> dict[str, float]:
        """Return the weights of vectors, relative to the weights 1 and 3 for words."""
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
        call: Call,
        queries: Sequence[str],
        distinct: Distinct,
    ) -> list[Results]:
        """Search with words and vectors in one snapshot of the graph, and follow links."""
        group = self.target if self.vectors == "passages" else self.sentences
        weights = self._fixed_weights(measured.weights)
        vectors = [
            each for each in self._vectors if each.group == group and weights[each.embed_keys[0]]
        ]
        branches = self._branches(vectors, call)
        first = FirstHits(
            branches,
            [weights[each.embed_keys[0]] for each in vectors],
            None if self.weights is None else float(self.weights.words > 0),
        )
        index = await Do(self._link_index, kind="work")
        work = LinkedSearch(
            first,
            LinkSearch(self.graph, branches.words, index, SEEDS, repetition=0.0),
            HitConditions(call, self.filters),
            measured.backgrounds,
            measured.deviations,
            distinct,
            self._finish(branches, call.budget, measured),
        )
        return await search_branches(branches.all, queries, work, index, call.state)

    def _link_index(self) -> LinkIndex:
        """Return the index of the names that link targets.

        The group of names is created if necessary.
        """
        if self.entities not in self.graph.reader.group_names():
            self.graph.create_node_group(self.entities, EntityExtractor(), parent=self.target)
        return LinkIndex.open(self.graph, self.entities)

    def _branches(self, vectors: Sequence[Retriever], call: Call) -> Branches:
        """Return the searches of a call: two by words, and one for each retriever of vectors."""
        return Branches(
            self._word_retrievers["sentences"].branch(call),
            self._word_retrievers["words"].branch(call),
            [each.branch(call) for each in vectors],
        )

    def _finish(
        self, branches: Branches, budget: TokenBudget | None, measured: MeasuredSettings
    ) -> Finish | None:
        """Return a function that selects windows of passages, or None without a token budget."""
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
    """Return notes for a trace that describe how the rankings of queries were determined."""
    notes = dict.fromkeys(
        variant.note
        for results in found
        for match in (results[0].evidence if results else ())
        for variant in match.variants
        if variant.strategy == DefaultRetriever.name and variant.note is not None
    )
    return {"decided": "; ".join(notes)} if notes else {}
