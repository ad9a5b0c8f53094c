"""Search for the parts of a question, and say what each part found."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...nodegraph import LLM
from ...nodegraph.models import Language, as_llm
from ...nodegraph.models.output import read_partial, read_sub_questions
from ..filters import Filters
from ..planned_retriever import all_of
from ..plans import Plan, Prompt, answered, arun, run
from ..protocols import RetrieverProtocol
from ..ranking import Mode
from ..results import OutputFormat, ScoredNode
from ..tracing import start_span
from ..validation import whole
from .query_transform import QueryTransform, QueryVariants
from .transform_retriever import Ranking, TransformRetriever, failure

PROMPT = Prompt(
    zh="""\
请把原问题分解成几个更简单的子问题，最多 {limit} 个，用来分别检索，合起来就能回答原问题。
每个子问题只问一件事，写明所问的对象，不用“它”“他”“该”等代词；不增加原问题没有涉及的内容。
只写子问题，不写答案：每行一个，以问号结尾，不要编号，不要解释。如果原问题只问一个对象的一件事，不能再分，只输出：无

例一
原问题：珠穆朗玛峰有多高？
子问题：
无

例二
原问题：《战争与和平》的作者出生在哪座城市？
子问题：
《战争与和平》的作者是谁？
《战争与和平》的作者出生在哪座城市？

例三
原问题：长江和黄河分别发源于哪里？
子问题：
长江发源于哪里？
黄河发源于哪里？

要分解的
原问题：{query}
子问题：
""",
    en="""\
Break the question down into at most {limit} simpler questions to search for one by one, whose
answers together answer it. Each asks for one thing and names what it asks about, without "it",
"he" or "that". Do not answer, and ask nothing that the question does not need. Write one question
a line, ending with a question mark, without numbers or remarks, in the language of the question.
If it asks for one thing about one subject, so that there is nothing to break down, write only: NONE

Example 1
Question: How high is Mount Everest?
Simpler questions:
NONE

Example 2
Question: What is the capital of the country where Lake Inari is found?
Simpler questions:
In which country is Lake Inari?
What is the capital of the country where Lake Inari is found?

Example 3
Question: Which is longer, the Nile or the Amazon?
Simpler questions:
How long is the Nile?
How long is the Amazon?

To break down
Question: {query}
Simpler questions:
""",
    required=("query",),
    optional=("limit",),
)

_FORM = '{"questions": ["...", "..."]}, {"questions": []}'

_SCHEMA = {
    "title": "sub_questions",
    "description": "The simpler questions; none where the question is simple already",
    "type": "object",
    "properties": {"questions": {"type": "array", "items": {"type": "string"}}},
    "required": ["questions"],
    "additionalProperties": False,
}


class QueryDecomposition(QueryTransform):
    """Let a model take a question apart; one that is simple already stays as it is.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        limit: How many questions to take at most, the question itself not counted.
        include_query: Whether the question itself comes first, and is searched for too.
        **settings: ``prompt`` (with ``{query}``; ``{limit}`` may stand in it), ``language``,
            ``on_error``, ``retries``, ``timeout``; see ``QueryTransform``.

    Example:
        >>> model = lambda prompt: "1. How long is the Nile?\\n2. How long is the Amazon?"
        >>> QueryDecomposition(model, include_query=False)("Is the Nile longer than the Amazon?")
        ['How long is the Nile?', 'How long is the Amazon?']
    """

    name = "decompose"
    PROMPT = PROMPT

    def __init__(
        self, llm: object, *, limit: int = 5, include_query: bool = True, **settings: Any
    ) -> None:
        super().__init__(llm, **settings)
        self.limit = whole(limit, "limit", 1)
        self.include_query = include_query

    def _forms(self, query: str) -> Plan[QueryVariants]:
        read = partial(read_sub_questions, query=query, limit=self.limit)
        questions = yield from self._asked(query, read, _SCHEMA, _FORM, limit=self.limit)
        own = self.include_query or not questions
        return QueryVariants((query, *questions) if own else tuple(questions))


logger = logging.getLogger(__name__)

PARTIAL = Prompt(
    zh="""\
请只根据下面的资料回答问题，用一句话写出答案，不要解释。如果资料中没有答案，只输出：无

资料：
{context}

问题：{query}

答案：""",
    en="""\
Answer the question from the passages below and from nothing else, in one sentence, without
remarks, in the language of the question. If they do not answer it, write only: NONE

Passages:
{context}

Question: {query}

Answer:""",
    required=("query", "context"),
)

PARTIAL_NAME = "partial answer"

LONGEST_CONTEXT = 6000
"""Characters of passages that a sub-question is answered from, at most; whole passages, best first.
"""


@dataclass(frozen=True, slots=True)
class SubResults:
    """Hold what one part of a question found.

    Attributes:
        question: The sub-question; or the question itself.
        results: What was found, best first.
        answer: What the model answers from the results; None where it was not asked, or they don't
            say.
        error: What went wrong, None where nothing did.
    """

    question: str
    results: tuple[ScoredNode, ...]
    answer: str | None = None
    error: str | None = None


class SubQuestionRetriever(TransformRetriever):
    """Let a model take a question apart, search for all parts at once, and fuse what they find.

    Choose it for questions that ask or compare several things. Where a part can only be asked
    when another is answered, ``MultiStepRetriever`` goes on step by step.

    The question itself is searched for too, so that a bad decomposition only dilutes what it
    finds; one that is simple already is searched for as it is. A part that can't be searched for
    is noted in the evidence of the others; an error is raised where all fail.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes; or a ``QueryDecomposition``.
        answers: Whether the model answers each sub-question from what it found; the answers stand
            in what ``grouped`` returns, and in the evidence's notes.
        answer_llm: The model for that; None for the same.
        answer_prompt: In place of the built-in one: a text with ``{query}`` and ``{context}``, or
            texts by language.
        mode: How results are fused. By their places alone (``"rrf"``) what every part finds a
            little of would come before what one part finds first, and that is what is wanted here.
        query_weight: What the question itself counts beside 1 for each sub-question.
        top_k: How many results at most, also of each sub-question; None for the inner
            retriever's own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Those of ``QueryDecomposition``: ``limit``, ``include_query``, ``on_error``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile has 6,650 km.", "The Amazon has 6,400 km.", "Tea."])
        >>> model = lambda prompt: "How long is the Nile?\\nHow long is the Amazon?"
        >>> retriever = SubQuestionRetriever(Retriever(graph, "ROOT"), model, top_k=2)
        >>> for part in retriever.grouped("Which river is longer?"):
        ...     print(part.question, [result.node.text for result in part.results])
        Which river is longer? []
        How long is the Nile? ['The Nile has 6,650 km.']
        How long is the Amazon? ['The Amazon has 6,400 km.']
        >>> [result.node.text for result in retriever("Which river is longer?")]
        ['The Nile has 6,650 km.', 'The Amazon has 6,400 km.']
    """

    name = "sub-questions"
    form = "sub-question"
    Transform = QueryDecomposition

    def __init__(
        self,
        inner: RetrieverProtocol,
        llm: object,
        *,
        answers: bool = False,
        answer_llm: object = None,
        answer_prompt: str | Mapping[Language, str] | Prompt | None = None,
        mode: Mode = "relative",
        query_weight: float = 1.0,
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: Any,
    ) -> None:
        super().__init__(
            inner,
            llm,
            mode=mode,
            query_weight=query_weight,
            top_k=top_k,
            output_format=output_format,
            join=join,
            **settings,
        )
        self.answers = answers
        own = self.query_transform.llm
        self.answer_llm: LLM = own if answer_llm is None else as_llm(answer_llm)
        self._prompts = {PARTIAL_NAME: PARTIAL.replaced(answer_prompt)}

    def grouped(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[SubResults]:
        """Return what each part of the question found: the question itself, then its parts.

        Args:
            query: The question.
            top_k: How many results of each at most, in place of the retriever's own.
            filters: Conditions, given to the inner retriever.

        Raises:
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run(self._groups(query, top_k, filters))

    async def agrouped(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[SubResults]:
        """Return the same without blocking the event loop."""
        return await arun(self._groups(query, top_k, filters))

    def _groups(
        self, query: str, top_k: int | None, filters: Filters | None
    ) -> Plan[list[SubResults]]:
        limit = self._limit(top_k, filters)
        with start_span(self.name, query=query) as done:
            forms = yield from self.query_transform.plan(query)
            (rankings,) = yield from self._rankings([query], [forms], limit, filters)
            groups = [self._group(query, forms, each, limit) for each in rankings]
            done.facts["results"] = sum(len(each.results) for each in groups)
        return groups

    def _group(
        self, query: str, forms: QueryVariants, ranking: Ranking, limit: int | None
    ) -> SubResults:
        error = None if ranking.error is None else failure(ranking.error)
        results = [] if ranking.error else self._fused(query, forms, [ranking], limit)
        problem = error or ranking.problem or forms.note
        return SubResults(ranking.query, tuple(results), ranking.answer, problem)

    def _rankings(
        self,
        queries: Sequence[str],
        forms: Sequence[QueryVariants],
        limit: int | None,
        filters: Filters | None,
    ) -> Plan[list[list[Ranking]]]:
        rankings = yield from super()._rankings(queries, forms, limit, filters)
        if not self.answers:
            return rankings
        told = yield from all_of(
            [
                self._answered(each)
                for query, found in zip(queries, rankings, strict=True)
                for each in found
                if each.query != query and each.results
            ]
        )
        known = iter(told)
        return [
            [next(known) if each.query != query and each.results else each for each in found]
            for query, found in zip(queries, rankings, strict=True)
        ]

    def _answered(self, ranking: Ranking) -> Plan[Ranking]:
        """Let the model answer a sub-question from what it found."""
        transform = self.query_transform
        language = transform._language(ranking.query)
        with start_span("partial answer", query=ranking.query) as done:
            context, shown = context_of(ranking.results)
            prompt = self._prompts[PARTIAL_NAME].fill(
                language, query=ranking.query, context=context
            )
            done.facts.update(passages=shown, left_out=len(ranking.results) - shown)
            try:
                answer = yield from answered(
                    self.answer_llm,
                    prompt,
                    read_partial,
                    language,
                    retries=transform.retries,
                    timeout=transform.timeout,
                )
            except Exception as error:
                if transform.on_error == "raise":
                    raise
                problem = f"partial answer failed: {failure(error)}"
                logger.warning("of the question %r: %s", ranking.query[:80], problem)
                done.facts["note"] = problem
                return replace(ranking, problem=problem)
            done.facts["answer"] = answer
        return replace(ranking, answer=answer)


def context_of(results: Sequence[ScoredNode]) -> tuple[str, int]:
    """Return numbered passages for a prompt, whole ones as far as there is room, and how many.

    Of a first passage that has no room the beginning is taken.
    """
    passages: list[str] = []
    room = LONGEST_CONTEXT
    for number, result in enumerate(results, 1):
        text = f"[{number}] {str(result.node.content).strip()}"
        if len(text) > room:
            break
        passages.append(text)
        room -= len(text)
    if results and not passages:
        passages = [f"[1] {str(results[0].node.content).strip()}"[:LONGEST_CONTEXT]]
    return "\n\n".join(passages), len(passages)
