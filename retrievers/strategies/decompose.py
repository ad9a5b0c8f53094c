"""Take a question apart into questions that can be answered one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..checks import whole
from ..plan import Plan
from ..prompt import Prompt
from .query_transform import Forms, QueryTransform
from .reading import read_sub_questions

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

    def _forms(self, query: str) -> Plan[Forms]:
        read = partial(read_sub_questions, query=query, limit=self.limit)
        questions = yield from self._asked(query, read, _SCHEMA, _FORM, limit=self.limit)
        own = self.include_query or not questions
        return Forms((query, *questions) if own else tuple(questions))
