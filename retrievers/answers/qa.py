"""Answer questions by a group of question-answer pairs."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..analysis.text_analyzer import TextAnalyzer
from ..filters import Filters
from ..indexes.exact_index import Exact, normal_question
from ..planned_retriever import PlannedRetriever
from ..plans.effects import find_all
from ..plans.plan import Do, arun, run
from ..protocols import RetrieverProtocol, Similarity
from ..results import Evidence, OutputOptions, Results, ScoredNode
from ..retriever import Retriever, RetrieverSettings
from ..tracing import start_span
from ..validation import check_top_k

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_CANDIDATES = 10  # results of a search for a preset answer

_EXACT = "exact match"

_SAME_QUESTION = Exact(normalize=normal_question)


@dataclass(frozen=True, slots=True)
class PresetAnswer:
    """Hold the answer of a pair whose question is the query.

    Attributes:
        question: The pair's question.
        answer: Its answer.
        score: How alike the pair's question and the query are, up to 1.
        exact: Whether they are the same, but for case, spaces and punctuation.
        result: The pair's node, with the evidence.
    """

    question: str
    answer: str
    score: float
    exact: bool
    result: ScoredNode


class QaRetriever(PlannedRetriever):
    """Search the questions of question-answer pairs, return both. Answer alone where it is sure.

    The group is one of ``LLMExtractor(llm, "qa")``, or any whose nodes have a question as
    text and ``metadata["answer"]``. Without that the content, where it differs from the text, is
    the answer.

    - ``retrieve`` finds pairs like any retriever. Their content is question and answer.
    - ``answer`` returns an answer only where the query is a pair's question: the same but for
      case, spaces and punctuation, for which no model is called, or as alike as ``threshold`` says.
    - ``recommend`` returns questions close to the query that are not the same.

    Args:
        graph: A node graph, or several, searched as one.
        group: The group of pairs.
        similarity: How questions are searched, as for ``Retriever``. None for ``"bm25"``, or for
            ``"cosine"`` where there are ``embed_keys``: a threshold needs scores of one kind.
        threshold: How alike the query and a question must be for its answer to be returned: with a
            similarity of embeddings their cosine. With one of texts, whose scores have no scale,
            the share of their terms that both have (Dice's coefficient: 1 for the same terms, 0
            for none in common), question words included, since who and when make all the
            difference. 0.9 suits models whose cosines spread. Where unrelated texts have 0.8
            already (E5), take 0.97 or more, and look at pairs that must not be taken for each
            other. Above 1 only the same question is answered.
        top_k: How many pairs ``retrieve`` returns at most.
        embed_keys: Which embeddings to search. See ``Retriever``.
        filters: Conditions on metadata, for all three methods.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TypeError: If the graph is no ``NodeGraph``, or the threshold no number.
        ValueError: If a name is unknown or a number out of range.

    Source:
        QAnything answers from a pair at 0.9 and above, and from an exact match without a model.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> pairs = {"What is tea?": "A drink.", "Who drinks tea?": "Half the world."}
        >>> graph = NodeGraph()
        >>> ids = graph.add("About tea")
        >>> graph.create_node_group("qa", lambda _: [Node(q, {"answer": pairs[q]}) for q in pairs])
        >>> qa = QaRetriever(graph, "qa")
        >>> qa.answer("what is tea").answer, [r.node.text for r in qa.recommend("what is tea")]
        ('A drink.', ['Who drinks tea?'])
    """

    name = "qa"

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        group: str,
        similarity: str | Similarity | None = None,
        *,
        threshold: float = 0.9,
        top_k: int = 6,
        embed_keys: Sequence[str] | None = None,
        filters: Filters | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        if similarity is None:
            similarity = "bm25" if embed_keys is None else "cosine"
        settings = RetrieverSettings(embed_keys=embed_keys)
        self.retriever = Retriever(
            graph, group, similarity, top_k=top_k, filters=filters, settings=settings
        )
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise TypeError(f"threshold is a number, not {threshold!r:.80}")
        if not threshold > 0:
            raise ValueError(f"threshold must be above 0, not {threshold!r}; 0.9 is usual")
        self.threshold = threshold
        self.group = group

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retriever of the questions."""
        return [("retriever", self.retriever)]

    def __repr__(self) -> str:
        return f"QaRetriever({self.retriever!r}, threshold={self.threshold!r})"

    def with_filters(self, filters: Filters | None) -> Self:
        """Return a copy whose own conditions are these. See ``Retriever.with_filters``."""
        return self._with_retriever(self.retriever.with_filters(filters))

    def restricted(self, filters: Filters) -> Self:
        """Return a copy that is restricted to pairs that meet conditions. See ``restrict``."""
        return self._with_retriever(self.retriever.restricted(filters))

    def _with_retriever(self, retriever: Retriever) -> Self:
        other = copy.copy(self)
        other.retriever = retriever
        return other

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return for each query the pairs whose questions are closest to it, best first."""
        results = await find_all(self.retriever, queries, limit, filters)
        return [[with_answer(result) for result in of_query] for of_query in results]

    def answer(self, query: str, *, filters: Filters | None = None) -> PresetAnswer | None:
        """Return the answer of the pair that has this question, or None.

        Of several pairs with the same question it is the first in document order.

        Raises:
            TypeError: If the query is no text.
        """
        return run(partial(self._answer, query, filters))

    async def aanswer(self, query: str, *, filters: Filters | None = None) -> PresetAnswer | None:
        """Async version of ``answer``."""
        return await arun(partial(self._answer, query, filters))

    def recommend(
        self, query: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return questions close to the query, none of them as alike as ``threshold``, each once.

        Raises:
            TypeError: If the query is no text, ``top_k`` no whole number.
            ValueError: If ``top_k`` is below 1.
        """
        return run(partial(self._recommend, query, check_top_k(top_k), filters))

    async def arecommend(
        self, query: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Async version of ``recommend``."""
        return await arun(partial(self._recommend, query, check_top_k(top_k), filters))

    async def _answer(self, query: str, filters: Filters | None) -> PresetAnswer | None:
        with start_span("preset answer", query=query) as span:
            preset = await Do(partial(self._exact_match, query, filters))
            if preset is None and self.threshold <= 1:
                (results,) = await find_all(self.retriever, [query], _CANDIDATES, filters)
                preset = self._most_similar(query, results)
            span.attributes["match"] = preset and preset.question
            if preset is not None:
                span.attributes.update(score=round(preset.score, 4), exact=preset.exact)
        return preset

    async def _recommend(self, query: str, top_k: int, filters: Filters | None) -> list[ScoredNode]:
        limit = step = top_k + _CANDIDATES
        while True:
            (results,) = await find_all(self.retriever, [query], limit, filters)
            others = self._other_questions(query, results)
            if len(others) >= top_k or len(results) < limit:
                return others[:top_k]
            limit += 4 * step

    def _exact_match(self, query: str, filters: Filters | None) -> PresetAnswer | None:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        conditions = self.retriever.conditions(filters)
        for graph in self.retriever.graphs if query.strip() else ():
            index = _SAME_QUESTION.open(graph, self.group)
            with graph.reader.reading(self.group):
                index.sync()
                hits = index.search(_SAME_QUESTION.key(query), None, conditions.filter)
                nodes = graph.reader.nodes_by_id(hits.ids)
            for node in nodes:
                if (answer := answer_of(node)) is not None:
                    evidence = Evidence(node, 1.0, _EXACT, query, filters=conditions.filters)
                    result = with_answer(ScoredNode(node, 1.0, (evidence,)))
                    return PresetAnswer(node.text, answer, 1.0, True, result)
        return None

    def _most_similar(self, query: str, results: Iterable[ScoredNode]) -> PresetAnswer | None:
        """Return the pair most alike of those above the threshold, the first of equals."""
        best: PresetAnswer | None = None
        for result, score in self._with_similarity(query, results):
            answer = answer_of(result.node)
            better = score >= self.threshold if best is None else score > best.score
            if answer is not None and better:
                pair = replace(with_answer(result), score=score)
                best = PresetAnswer(result.node.text, answer, score, False, pair)
        return best

    def _other_questions(self, query: str, results: Iterable[ScoredNode]) -> list[ScoredNode]:
        seen = {normal_question(query)}
        others = []
        for result, score in self._with_similarity(query, results):
            normal = normal_question(result.node.text)
            if normal not in seen and score < self.threshold:
                others.append(with_answer(result))
            seen.add(normal)
        return others

    def _with_similarity(
        self, query: str, results: Iterable[ScoredNode]
    ) -> Iterable[tuple[ScoredNode, float]]:
        """Return each result with the similarity of its question and the query."""
        if self.retriever.similarity.mode == "embedding":
            return [(result, result.score) for result in results]
        analyze = getattr(self.retriever.similarity, "analyzer", None) or TextAnalyzer()
        terms = list(analyze(query))
        return [(result, overlap(terms, analyze(result.node.text))) for result in results]


def overlap(several: Iterable[str], others: Iterable[str]) -> float:
    """Return Dice's coefficient of two bags of terms: twice what both have, by what they have.

    Example:
        >>> overlap(["what", "is", "tea"], ["what", "is", "ice"])
        0.6666666666666666
    """
    first, second = Counter(several), Counter(others)
    total = sum(first.values()) + sum(second.values())
    return 2 * sum((first & second).values()) / total if total else 0.0


def answer_of(node: Node) -> str | None:
    """Return the answer of a node: its own ``metadata["answer"]``, else its content.

    None where the content is but the text.
    """
    answer = node.own_metadata.get("answer")
    if answer is None and node.content != node.text:
        answer = node.content
    if isinstance(answer, Mapping):
        answer = answer.get("answer", answer)
    return None if answer is None else str(answer)


def with_answer(result: ScoredNode) -> ScoredNode:
    """Return a result whose content has question and answer, also where the node's has not."""
    node = result.node
    answer = answer_of(node)
    if answer is None or node.content != node.text:
        return result
    return replace(result, node=replace(node, content=f"{node.text}\n{answer}"))
