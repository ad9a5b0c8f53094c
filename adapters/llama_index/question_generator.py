"""Generate sub-questions for LlamaIndex's ``SubQuestionQueryEngine``, with any model."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import ToolMetadata

from ...nodegraph.models.output import (
    QUESTION_KEYS,
    check_answer,
    clean,
    is_no_answer,
    normalize,
    parse_json,
    split_bullet,
    strip_markup,
    value_of,
)
from ...retrievers import Prompt
from ...retrievers.plans import Plan, arun, run
from ...retrievers.strategies import QueryDecomposition, TransformOptions
from .instrumentation import report_spans
from .prompt_templates import changed_prompts, llm_or_settings, to_templates

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

ToolQuestions = list[tuple[str, str]]
"""Pairs of a tool's name and a question for it."""

_PROMPT = Prompt(
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

_EXAMPLE = '{"questions": [{"tool": "...", "question": "..."}]}'

_STRING = {"type": "string"}


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SCHEMA = {
    "title": "tool_questions",
    "description": "The simpler questions, each with the tool that can answer it",
    **_object(questions={"type": "array", "items": _object(tool=_STRING, question=_STRING)}),
}


class _ToolQuestions(QueryDecomposition):
    """Let a model split a question, and choose a tool for each sub-question."""

    name = "tool questions"
    PROMPT: ClassVar[Prompt] = _PROMPT

    def tool_questions(self, query: str, tools: Sequence[ToolMetadata]) -> Plan[ToolQuestions]:
        """Return the questions with their tools as a plan; what goes wrong is logged or raised."""
        names = [tool.get_name() for tool in tools]
        listing = "\n".join(f"- {tool.get_name()}: {_line(tool.description)}" for tool in tools)
        attempts: list[ToolQuestions] = []
        unknown: ToolQuestions = []

        def read(answer: str) -> ToolQuestions:
            nonlocal unknown
            questions, unknown = read_tool_questions(answer, names)
            attempts.append(questions[: self.limit])
            if unknown:
                tool = unknown[0][0]
                raise ValueError(f"there is no tool {tool!r}; the tools are {', '.join(names)}")
            return attempts[-1]

        try:
            questions = yield from self.ask(
                query, read, schema=_SCHEMA, example=_EXAMPLE, limit=self.limit, tools=listing
            )
            return questions
        except Exception as error:
            if self.on_error == "raise":
                raise
            note = f"all tools are asked the question: {type(error).__name__}: {error}"
        if questions := max(attempts, key=len, default=[]):
            omitted = "; ".join(f"{question!r} for {tool!r}" for tool, question in unknown)
            note = f"left out, as there is no such tool: {omitted}"
        logger.warning("of the query %r: %s", query[:80], note)
        return questions


class NodeGraphQuestionGenerator(BaseQuestionGenerator):
    """Generate the questions of LlamaIndex's ``SubQuestionQueryEngine``, with any model.

    The model may answer in lines or in any JSON. With one tool all questions are for that; with
    several the model names one for each. If it names an unknown tool, it is asked again with that
    message; questions that still have an unknown tool are left out, with a warning in the log. If
    no question can be used, or the query is simple already, the query itself goes to all tools.

    ``SubQuestionQueryEngine`` itself drops sub-questions that fail, with a line in the log;
    ``NodeGraphQueryEngine(strategy="sub_question")`` reports them in the response.

    Args:
        llm: The model, in any form that ``LLM`` takes; None for ``Settings.llm`` when it is needed.
        limit: How many questions at most.
        callback_manager: Gets an event for each call of the model.
        **options: ``language``, ``on_error`` (``"keep"`` or ``"raise"``), ``retries``,
            ``timeout``; see ``QueryTransform``. Prompts are replaced with ``update_prompts``.

    Raises:
        TypeError: If it is no model, or there is no such option.
        ValueError: If a number is out of range.

    Example:
        >>> model = lambda prompt: "rivers: How long is the Nile?\\ntea: Is green tea fermented?"
        >>> tools = [ToolMetadata(name=name, description=name) for name in ("rivers", "tea")]
        >>> generator = NodeGraphQuestionGenerator(model)
        >>> for question in generator.generate(tools, QueryBundle("What of the Nile and tea?")):
        ...     print(question.tool_name, "|", question.sub_question)
        rivers | How long is the Nile?
        tea | Is green tea fermented?
    """

    def __init__(
        self,
        llm: object = None,
        *,
        limit: int = 5,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[TransformOptions],
    ) -> None:
        model = llm_or_settings(llm)
        self._callback_manager = callback_manager
        self._one = QueryDecomposition(model, limit=limit, include_query=False, **options)
        self._several = _ToolQuestions(model, limit=limit, include_query=False, **options)

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Return the sub-questions, each with its tool.

        Raises:
            ValueError: If there are no tools.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        with report_spans(self._callback_manager):
            return run(self._plan(tools, query))

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """Return the same without blocking the event loop."""
        with report_spans(self._callback_manager):
            return await arun(self._plan(tools, query))

    def _plan(self, tools: Sequence[ToolMetadata], bundle: QueryBundle) -> Plan[list[SubQuestion]]:
        query = bundle.query_str if isinstance(bundle, QueryBundle) else bundle
        names = [tool.get_name() for tool in tools]
        if not names:
            raise ValueError("there are no tools to ask questions of; give at least one")
        if len(names) == 1:
            variants = yield from self._one.plan(query)
            questions = [(names[0], question) for question in variants.queries]
        else:
            questions = yield from self._several.tool_questions(query, tools)
        questions = questions or [(name, query) for name in names]
        return [SubQuestion(sub_question=question, tool_name=name) for name, question in questions]

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return {**to_templates(self._one.prompts), **to_templates(self._several.prompts)}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        for name in ("_one", "_several"):
            transform = getattr(self, name)
            if changed := changed_prompts(transform.prompts, prompts_dict):
                setattr(self, name, transform.with_prompts(changed))


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


_QUESTIONS = ("sub_question", "subquestion", "子问题", *QUESTION_KEYS)

_TOOLS = ("tool_name", "tool", "toolname", "name", "source", "工具名", "工具名称", "工具")

_MAX_TOOL_LENGTH = 60


def read_tool_questions(answer: str, tools: Sequence[str]) -> tuple[ToolQuestions, ToolQuestions]:
    """Return the (tool, question) pairs in an answer, and those with an unknown tool.

    JSON of any shape that names both, also between other text; or lines, each with a tool before
    or after its question.

    Raises:
        ValueError: If there are no pairs at all.

    Example:
        >>> read_tool_questions("1. Rivers: How long is the Nile?", ["rivers", "tea"])
        ([('rivers', 'How long is the Nile?')], [])
    """
    text = clean(answer)
    check_answer(text)
    if is_no_answer(text):
        return [], []
    names = {normalize(tool): tool for tool in tools}
    pairs: dict[tuple[str, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for tool, text_of_question in _pairs(text, names):
        question = strip_markup(text_of_question)
        if re.search(r"\w", question):
            name = names.get(normalize(tool.strip(" \t\"'`*_[]【】()（）")))
            (unknown if name is None else pairs)[name or tool.strip(), question] = None
    if not pairs and not unknown:
        raise ValueError("there is no question for a tool in the answer")
    return list(pairs), list(unknown)


def _pairs(text: str, names: Mapping[str, str]) -> ToolQuestions:
    if "{" in text or "[" in text:
        with suppress(ValueError):
            if pairs := list(_in_json(parse_json(text), names)):
                return pairs
    return [pair for line in text.splitlines() if (pair := _in_line(line, names))]


def _in_json(value: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _in_json(item, names)
    if not isinstance(value, Mapping):
        return
    question, tool = value_of(value, _QUESTIONS), value_of(value, _TOOLS)
    if isinstance(question, str) and isinstance(tool, str):
        yield tool, question
        return
    for key, item in value.items():
        if normalize(str(key)) in names:  # {"rivers": ["How long is the Nile?"]}
            questions = item if isinstance(item, list) else [item]
            yield from ((str(key), question) for question in questions if isinstance(question, str))
        elif isinstance(item, list | Mapping):
            yield from _in_json(item, names)


def _in_line(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    text = split_bullet(line.strip().strip("|"))[0].strip()
    for name in sorted(names.values(), key=len, reverse=True):
        tool = re.escape(name)
        before = re.match(
            rf"(?:[\W_]*{tool}[*_`\"'\])】）]*\s*(?:[:：|,，>→]|-+>?|—)"
            rf"|[\[【(（]\s*{tool}\s*[\])】）])\s*(?=\S)",
            *(text, re.IGNORECASE),
        )
        if before:
            return name, text[before.end() :]
        after = rf"\s*(?:[|>→\[【(（]|-+>)\s*[`*\"']*{tool}[`*\"'\])】）]*\s*$"
        if match := re.search(after, text, re.IGNORECASE):
            return name, text[: match.start()]
    label = re.match(r"[\[【*_`\"']*([^\[\]【】:：?？|]+?)[\]】*_`\"']*\s*[:：|]\s*(\S.*)", text)
    if label and len(label[1]) <= _MAX_TOOL_LENGTH and text.rstrip("\"'*_` ").endswith(("?", "？")):
        return label[1], label[2]
    return None
