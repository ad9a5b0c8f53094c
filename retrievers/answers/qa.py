"""Preset answers from a group of question-answer pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..analysis.text_analyzer import TextAnalyzer
from ..base_retriever import BaseRetriever
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

_CANDIDATES = 10  # results of the search for a preset answer

_EXACT = "exact match"

_SAME_QUESTION = Exact()


@dataclass(frozen=True, slots=True)
class PresetAnswer:
    """The answer of a question-answer pair.

    Attributes:
        question: The question of the pair.
        answer: The answer of the pair.
        score: Similarity of the question and the query, at most 1.
        exact: Whether the question and the query are equal except for case, spaces and punctuation.
        result: The node of the pair, with evidence.
    """

    question: str
    answer: str
    score: float
    exact: bool
    result: ScoredNode


class QaRetriever(BaseRetriever):
    """A retriever of question-answer pairs, which also returns preset answers.

    The group is made by ``LLMExtractor(llm, "qa")``, or the text of its nodes is a question, and
    the answer is in ``metadata["answer"]``. Without this field, the content is the answer if it
    differs from the text.

    - ``retrieve`` returns pairs like any retriever. Their content contains the question and the
      answer.
    - ``answer`` returns the answer to the same question (apart from case, spaces and punctuation;
      no model is called), or to a question whose similarity is at least ``min_score``.
    - ``recommend`` returns similar questions with a lower similarity.

    Args:
        graph: A node graph, or several graphs that are searched as one.
        group: The group of pairs.
        similarity: See ``Retriever``. Defaults to ``"bm25"``, or to ``"cosine"`` with
            ``embed_keys``.
        min_score: Minimum similarity of a query and a question for a preset answer. For embeddings,
            this is the cosine: 0.9 suits models with widely spread cosines. For models that give
            unrelated texts 0.8 (E5), use 0.97 or more. For other similarities, it is Dice's
            coefficient of the terms, including question words. A value above 1 accepts only equal
            questions.
        top_k: The number of pairs that ``retrieve`` returns.
        embed_keys: The embeddings to search. See ``Retriever``.
        filters: Conditions on metadata, which apply to all three methods.
        output_format: The format of a call's results: None (scored nodes), ``"content"`` or
            ``"dict"``.
        join: The separator that joins contents into one text, or True for line breaks.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TypeError: If an argument has the wrong type.
        ValueError: If a name is unknown, or a number is out of range.

    Source:
        QAnything answers from a pair with a similarity of at least 0.9, and from an exact match
        without calling a model.

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
        """Return a copy that is restricted to some pairs. See ``restrict``."""
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
        """Return the preset answer to a question, or None.

        Among pairs with equal questions, the first in document order is chosen.

        Args:
            query: The question.
            filters: Conditions on metadata, in addition to the retriever's own.

        Raises:
            TypeError: If the query is not a string.
            ValueError: If a condition is invalid.
        """
        return run(self._answer, query, filters)

    async def aanswer(self, query: str, *, filters: Filters | None = None) -> PresetAnswer | None:
        """Async version of ``answer``."""
        return await arun(self._answer, query, filters)

    def recommend(
        self, query: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return unique similar questions whose similarity is below ``min_score``.

        Args:
            query: The question.
            top_k: Maximum number of questions.
            filters: Conditions on metadata, in addition to the retriever's own.

        Raises:
            TypeError: If the query is not a string, or ``top_k`` is not an integer.
            ValueError: If ``top_k`` is below 1, or a condition is invalid.
        """
        return run(self._recommend, query, check_top_k(top_k), filters)

    async def _answer(self, query: str, filters: Filters | None) -> PresetAnswer | None:
        with start_span("preset answer", query=query) as span:
            preset = await Do(partial(self._exact_match, query, filters))
            if preset is None and self.min_score <= 1:
                (results,) = await find_all(self.inner, [query], _CANDIDATES, filters)
                rated = self._with_similarity(query, results)
                pairs = [(r, s) for r, s in rated if s >= self.min_score and answer_of(r.node)]
                if pairs:
                    best, score = max(pairs, key=itemgetter(1))  # the first pair wins ties
                    pair = replace(with_answer(best), score=score)
                    said = answer_of(best.node)
                    preset = PresetAnswer(best.node.text, said or "", score, False, pair)
            span.attributes["match"] = preset and preset.question
            if preset is not None:
                span.attributes.update(score=round(preset.score, 4), exact=preset.exact)
        return preset

    async def _recommend(self, query: str, top_k: int, filters: Filters | None) -> list[ScoredNode]:
        limit = 5 * (top_k + _CANDIDATES)  # questions may be repeated
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
        conditions = self.inner.conditions(filters)
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
        """Return the results with the similarity of their question to the query."""
        if self.inner.similarity.mode == "embedding":
            return [(result, result.score) for result in results]
        analyze = getattr(self.inner.similarity, "analyzer", None) or TextAnalyzer()
        terms = list(analyze(query))
        return [(result, overlap(terms, analyze(result.node.text))) for result in results]


def overlap(several: Iterable[str], others: Iterable[str]) -> float:
    """Return Dice's coefficient of two bags of terms: twice the common terms over all terms.

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
    """Return the answer of a node: its own ``metadata["answer"]``, otherwise its content.

    None means that the node has no answer, and its content equals its text.
    """
    answer = node.own_metadata.get("answer")
    if answer is None and node.content != node.text:
        answer = node.content
    if answer is None:
        return None
    return str(answer)


def with_answer(result: ScoredNode) -> ScoredNode:
    """Return a result whose content is the question and the answer."""
    node = result.node
    answer = answer_of(node)
    if answer is None or node.content != node.text:
        return result
    return replace(result, node=replace(node, content=f"{node.text}\n{answer}"))
