"""Take a question apart into questions that can be answered one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..plan import Plan
from ..prompt import Prompt
from .query_transform import Forms, QueryTransform, whole
from .reading import read_sub_questions

PROMPT = Prompt(
    zh="""\
请把下面的问题分解成最多 {limit} 个更简单的子问题，每个子问题只问一件事，
所有子问题的答案合起来就能回答原问题。每个子问题都要写明所问的对象，单独拿出来也能看懂，不要用“它”“他”“该”等代词，不要回答问题，不要问原问题没有涉及的内容。
每行一个子问题，以问号结尾，不要编号，不要解释。如果原问题已经足够简单，只输出：无

问题：{query}

子问题：
""",
    en="""\
Take the question below apart into at most {limit} simpler questions, each asking for one thing, \
whose answers together answer it. Name what is asked about in each, so that it is understood by
itself, without "it", "he" or "that". Do not answer, and ask nothing that the question does not
need. Write one question a line, ending with a question mark, without numbers or remarks, in the
language of the question. If it is simple already, write only: NONE

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

    def _forms(self, query: str) -> Plan[Forms]:
        read = partial(read_sub_questions, query=query, limit=self.limit)
        questions = yield from self._asked(query, read, _SCHEMA, _FORM, limit=self.limit)
        own = self.include_query or not questions
        return Forms((query, *questions) if own else tuple(questions))
