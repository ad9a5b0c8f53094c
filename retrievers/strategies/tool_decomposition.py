"""Let a model take a question apart, and choose a tool for each sub-question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ...nodegraph.models.output.tool_questions import ToolQuestions, parse_tool_questions
from ..plans.plan import Plan
from ..plans.prompting import Prompt
from .model_prompt import object_schema
from .query_transform import QueryVariants, TransformOptions
from .sub_question import QueryDecomposition

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROMPT = Prompt(
    zh="""\
请把下面的问题分解成最多 {limit} 个更简单的子问题，并为每个子问题选一个能回答它的工具。
每个子问题只问一件事，写明所问的对象，单独拿出来也能看懂；所有子问题的答案合起来就能回答原问题。不要回答问题。
只能使用下面列出的工具，工具名照抄。
每行写“工具名: 子问题”，不要编号，不要解释。问题已经足够简单时，只写一行。

工具：
{tools}

问题：{query}

子问题：
""",
    en="""\
Take the question below apart into at most {limit} simpler questions, and choose for each the one
tool that can answer it. Each asks for one thing and names what it asks about, so that it is
understood by itself; their answers together answer the question. Do not answer. Use only the tools
listed below, with their names as they are written there. Write one line for each, "tool name:
question", without numbers or remarks, in the language of the question. If the question is simple
already, write a single line.

Tools:
{tools}

Question: {query}

Simpler questions:
""",
    required=("query", "tools"),
    optional=("limit",),
)

_STRING = {"type": "string"}

_SEPARATOR = ": "


class ToolDecompositionOptions(TransformOptions, total=False):
    """The options of ``ToolDecomposition`` that are not named in its signature."""

    limit: int


class ToolDecomposition(QueryDecomposition):
    """Let a model split a question, and choose for each sub-question the tool that can answer it.

    The model may answer in lines or in any JSON. If it names an unknown tool, it is asked again
    with that message; questions that still have an unknown tool are named in the note. If there is
    one tool all questions are for that, and the model does not choose. If the question is simple
    already, or the model fails, the question itself goes to all tools.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        tools: Descriptions by name.
        **options: ``limit`` (of questions), ``prompt`` (with ``{query}`` and ``{tools}``;
            ``{limit}`` may stand in it), ``language``, ``on_error``, ``retries``, ``timeout``; see
            ``QueryTransform``.

    Example:
        >>> model = lambda prompt: "rivers: How long is the Nile?\\ntea: Is green tea fermented?"
        >>> decomposition = ToolDecomposition(model, {"rivers": "All rivers", "tea": "All teas"})
        >>> decomposition("How long is the Nile, and is green tea fermented?")
        ['rivers: How long is the Nile?', 'tea: Is green tea fermented?']
    """

    name = "tool questions"
    PROMPT: ClassVar[Prompt] = PROMPT
    SCHEMA = object_schema(
        *("tool_questions", "The simpler questions, each with the tool that can answer it"),
        questions={"type": "array", "items": object_schema(tool=_STRING, question=_STRING)},
    )
    EXAMPLE = '{"questions": [{"tool": "...", "question": "..."}]}'

    def __init__(
        self, llm: object, tools: Mapping[str, str], **options: Unpack[ToolDecompositionOptions]
    ) -> None:
        super().__init__(llm, include_query=False, **options)
        self.tools = dict(tools)

    def fallback(self, query: str) -> tuple[str, ...]:
        """Return the question for all tools."""
        return tuple(join_tool_question(name, query) for name in self.tools)

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the questions, each after the name of its tool, as a plan."""
        questions, unknown = yield from self.tool_questions(query, self.tools)
        if not questions and not unknown:
            return QueryVariants(self.fallback(query))
        # Those for unknown tools are variants, too: whoever searches says what became of them.
        return QueryVariants(
            tuple(join_tool_question(*question) for question in (*questions, *unknown))
        )

    def tool_questions(
        self, query: str, tools: Mapping[str, str]
    ) -> Plan[tuple[ToolQuestions, ToolQuestions]]:
        """Return pairs of a tool and a question as a plan, and those of unknown tools.

        Args:
            query: The question.
            tools: Descriptions by name.

        Raises:
            ModelError: If the model fails, or none of its answers can be used.
        """
        names = list(tools)
        if len(names) == 1:
            single = QueryDecomposition(
                *(self.llm,),
                limit=self.limit,
                include_query=False,
                language=self.language,
                retries=self.retries,
                timeout=self.timeout,
            )
            variants = yield from single.variants(query)
            return [(names[0], question) for question in variants.queries], []
        attempts: list[tuple[ToolQuestions, ToolQuestions]] = []
        lines = (f"- {name}: {' '.join(text.split())}".rstrip() for name, text in tools.items())
        try:
            read = partial(self._read, names=names, attempts=attempts)
            return (yield from self.ask(query, read, limit=self.limit, tools="\n".join(lines))), []
        except Exception:
            if not attempts or self.on_error == "raise":
                raise
            return max(attempts, key=lambda attempt: len(attempt[0]))

    def _read(
        self,
        answer: str,
        *,
        names: Sequence[str],
        attempts: list[tuple[ToolQuestions, ToolQuestions]],
    ) -> ToolQuestions:
        questions, unknown = parse_tool_questions(answer, names)
        attempts.append((questions[: self.limit], unknown))
        if unknown:
            raise ValueError(
                f"there is no tool {unknown[0][0]!r}; the tools are {', '.join(names)}"
            )
        return questions[: self.limit]


def join_tool_question(tool: str, question: str) -> str:
    """Return a question after the name of its tool."""
    return f"{tool}{_SEPARATOR}{question}"


def split_tool_question(text: str, tools: Mapping[str, object]) -> tuple[str, str]:
    """Return the tool and the question that ``join_tool_question`` joined.

    Example:
        >>> split_tool_question("rivers: all: How long is it?", {"rivers": 1, "rivers: all": 2})
        ('rivers: all', 'How long is it?')
    """
    names = (name for name in tools if text.startswith(name + _SEPARATOR))
    name = max(names, key=len, default=text.partition(_SEPARATOR)[0])
    return name, text[len(name) + len(_SEPARATOR) :]
