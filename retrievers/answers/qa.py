"""Preset answers, which are retrieved from a group of question-answer pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..analysis.text_analyzer import TextAnalyzer
from ..base_retriever import BaseRetriever
from ..call import Call
from ..filters import Filters
from ..indexes.exact_index import Exact, normal_text
from ..plans.effects import find_all
from ..plans.plan import Do, arun, run
from ..protocols import Similarity
from ..results import Evidence, OutputFormat, Results, ScoredNode
from ..retriever import Retriever
from ..tracing import start_span
from ..validation import check_number, check_top_k

if TYPE_CHECKING:
    from typing_extensions import Self

_CANDIDATES = 10  # the number of results among which a preset answer is searched

_EXACT = "exact match"

_SAME_QUESTION = Exact()


@dataclass(frozen=True, slots=True)
class PresetAnswer:
    """A preset answer, taken from a question-answer pair.

    Attributes:
        question: The question of the pair.
        answer: The answer of the pair.
        score: The similarity between the query and the question of the pair, at most 1.
        exact: Whether the query and the question of the pair are equal, ignoring case, spaces and
            punctuation.
        result: The node of the pair, with evidence.
    """

    question: str
    answer: str
    score: float
    exact: bool
    result: ScoredNode


class QaRetriever(BaseRetriever):
    """A retriever of question-answer pairs, which can also return preset answers.

    The pairs are the nodes of a group, which can be generated with ``LLMExtractor(llm, "qa")``. The
    text of a node is the question. The answer is ``metadata["answer"]``, or the content of the node
    if this field is missing and the content differs from the text.

    - ``retrieve`` returns pairs like any other retriever. Their content contains the question and
      the answer.
    - ``answer`` returns the answer to an equal question (ignoring case, spaces and punctuation), or
      to a question whose similarity is at least ``min_score``.
    - ``recommend`` returns similar questions whose similarity is below ``min_score``.

    Args:
        graph: A graph, or several graphs that are searched as one.
        group: The name of the group that contains the pairs.
        similarity: See ``Retriever``. Defaults to ``"bm25"``, or to ``"cosine"`` if ``embed_keys``
            are given.
        min_score: The minimum similarity between a query and a question for a preset answer. With
            embeddings, it is the cosine similarity: 0.9 is suitable for models whose similarities
            are widely spread, and 0.97 or more for models such as E5, which rate unrelated texts at
            0.8. With other similarities, it is the Dice coefficient of the terms, including
            question words. A value above 1 accepts equal questions only.
        top_k: The number of pairs that ``retrieve`` returns.
        embed_keys: The embeddings to search. See ``Retriever``.
        filters: Conditions on metadata, which apply to all three methods.
        output_format: The format of the results of a call: None (scored nodes), ``"content"`` or
            ``"dict"``.
        join: The separator that joins the contents into a single text. True stands for a line
            break.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TypeError: If an argument has the wrong type.
        ValueError: If a name is unknown, or a number is out of range.

    Source:
        As in QAnything, equal questions are answered without a model, and so are questions with a
        similarity of at least 0.9.

    Example:
        >>> from nodekin.nodegraph import Node, NodeGraph
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
        min_score: float = 0.9,
        top_k: int = 6,
        embed_keys: Sequence[str] | None = None,
        filters: Filters | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(top_k=top_k)
        self._set_output(output_format, join)
        if similarity is None:
            similarity = "bm25" if embed_keys is None else "cosine"
        self.inner = Retriever(
            graph, group, similarity, top_k=top_k, filters=filters, embed_keys=embed_keys
        )
        check_number(min_score, "min_score")
        if not min_score > 0:
            raise ValueError(f"min_score must be above 0, got {min_score!r}; 0.9 is usual")
        self.min_score = min_score
        self.group = group

    def __repr__(self) -> str:
        return f"QaRetriever({self.inner!r}, min_score={self.min_score!r})"

    def restricted(self, filters: Filters) -> Self:
        """Return a copy that is restricted to the pairs that match filters. See ``restrict``."""
        return self.with_inner_retrievers({"inner": self.inner.restricted(filters)})

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the pairs with the most similar questions for each query, best first."""
        results = await find_all(self.inner, queries, limit, filters)
        answered: list[Results] = []
        for of_query in results:
            answered.append([with_answer(result) for result in of_query])
        return answered

    def answer(self, query: str, *, filters: Filters | None = None) -> PresetAnswer | None:
        """Return the preset answer to a question, or None if no pair matches.

        If several pairs have an equal question, the first one in document order is used.

        Args:
            query: The question.
            filters: Conditions on metadata, in addition to the retriever's filters.

        Raises:
            TypeError: If the query is not a string.
            ValueError: If a condition is invalid.
        """
        return run(self._answer, query, filters)

    async def aanswer(self, query: str, *, filters: Filters | None = None) -> PresetAnswer | None:
        """Asynchronous version of ``answer``."""
        return await arun(self._answer, query, filters)

    def recommend(
        self, query: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return distinct similar questions whose similarity is below ``min_score``.

        Args:
            query: The question.
            top_k: The maximum number of questions.
            filters: Conditions on metadata, in addition to the retriever's filters.

        Raises:
            TypeError: If the query is not a string, or ``top_k`` is not an integer.
            ValueError: If ``top_k`` is below 1, or a condition is invalid.
        """
        return run(self._recommend, query, check_top_k(top_k), filters)

    async def _answer(self, query: str, filters: Filters | None) -> PresetAnswer | None:
        with start_span("preset answer", query=query) as span:
            preset = await Do(self._exact_match, args=(query, filters))
            if preset is None and self.min_score <= 1:
                (results,) = await find_all(self.inner, [query], _CANDIDATES, filters)
                rated = self._with_similarity(query, results)
                pairs = [(r, s) for r, s in rated if s >= self.min_score and answer_of(r.node)]
                if pairs:
                    # The first of several equal pairs is used.
                    best, score = max(pairs, key=itemgetter(1))
                    pair = replace(with_answer(best), score=score)
                    said = answer_of(best.node)
                    preset = PresetAnswer(best.node.text, said or "", score, False, pair)
            span.attributes["match"] = preset and preset.question
            if preset is not None:
                span.attributes.update(score=round(preset.score, 4), exact=preset.exact)
        return preset

    async def _recommend(self, query: str, top_k: int, filters: Filters | None) -> list[ScoredNode]:
        # More results are fetched, because questions may be repeated.
        limit = 5 * (top_k + _CANDIDATES)
        (results,) = await find_all(self.inner, [query], limit, filters)
        seen = {normal_text(query)}
        others = []
        for result, score in self._with_similarity(query, results):
            normal = normal_text(result.node.text)
            if normal not in seen and score < self.min_score:
                others.append(with_answer(result))
            seen.add(normal)
        return others[:top_k]

    def _exact_match(self, query: str, filters: Filters | None) -> PresetAnswer | None:
        if not isinstance(query, str):
            raise TypeError(f"query must be a str, got {query!r:.80}")
        conditions = self.inner.conditions(Call.begin(filters))
        for graph in self.inner.graphs if query.strip() else ():
            index = _SAME_QUESTION.open(graph, self.group)
            with index.current():
                key = _SAME_QUESTION.prepare(query, [index])
                hits = index.search(key, None, conditions.filter)
                nodes = graph.reader.nodes_by_id(hits.ids)
            for node in nodes:
                if (answer := answer_of(node)) is not None:
                    evidence = Evidence(node, 1.0, _EXACT, query, filters=conditions.filters)
                    result = with_answer(ScoredNode(node, 1.0, (evidence,)))
                    return PresetAnswer(node.text, answer, 1.0, True, result)
        return None

    def _with_similarity(
        self, query: str, results: Iterable[ScoredNode]
    ) -> Iterable[tuple[ScoredNode, float]]:
        """Return each result with the similarity between its question and the query."""
        if self.inner.similarity.mode == "embedding":
            return [(result, result.score) for result in results]
        analyze = getattr(self.inner.similarity, "analyzer", None) or TextAnalyzer()
        terms = list(analyze(query))
        return [(result, overlap(terms, analyze(result.node.text))) for result in results]


def overlap(several: Iterable[str], others: Iterable[str]) -> float:
    """Return the Dice coefficient of two bags of terms.

    It is twice the number of common terms, divided by the total number of terms.

    Example:
        >>> overlap(["what", "is", "tea"], ["what", "is", "ice"])
        0.6666666666666666
    """
    first = Counter(several)
    second = Counter(others)
    total = sum(first.values()) + sum(second.values())
    if not total:
        return 0.0
    return 2 * sum((first & second).values()) / total


def answer_of(node: Node) -> str | None:
    """Return the answer that is stored in a node, or None if the node has no answer.

    The answer is the node's own ``metadata["answer"]``. If this field is missing, the answer is the
    content of the node, provided that it differs from the text.
    """
    answer = node.own_metadata.get("answer")
    if answer is None and node.content != node.text:
        answer = node.content
    if answer is None:
        return None
    return str(answer)


def with_answer(result: ScoredNode) -> ScoredNode:
    """Return a copy of a result whose content consists of the question and the answer."""
    node = result.node
    answer = answer_of(node)
    if answer is None or node.content != node.text:
        return result
    return replace(result, node=replace(node, content=f"{node.text}\n{answer}"))
