"""Extract summaries, keywords, questions or question-answer pairs with a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from ..errors import ModelError, ModelTimeoutError, check_integer, explain_names, nearest_names
from ..models.answer_cache import AnswerCache, answer_key
from ..models.llm import LLM, as_llm
from ..models.output.extracts import PARSERS
from ..models.templates import (
    Language,
    PromptTemplate,
    fill_template,
    json_instruction,
    language_of,
    prompt_text,
    retry_note,
    schema_of,
)
from ..node import Node

_LABELS = {"zh": ("问：", "答："), "en": ("Q: ", "A: ")}


class LLMExtractor:
    """A transform that extracts summaries, keywords or questions with a language model.

    ``graph.create_node_group("summary", LLMExtractor(llm, "summary"), parent="paragraph",
    num_workers=4)`` processes four texts concurrently. The answers are cached in the store under
    the model's name and the prompt until ``graph.compact()`` is called, so no further calls are
    needed for equal texts, other groups or restored documents. If the model name, the task, the
    prompt or the limit changes, the nodes are rebuilt. With ``on_error="skip"``, a document is left
    out and listed in ``graph.failures`` if the model fails for one of its texts. ``graph.build``
    then retries only the failed texts.

    If the model supports JSON schemas, the answer is first requested as JSON, and as plain text if
    this fails. If an answer is invalid, the prompt is sent once more together with the error.

    A question-answer pair (``task="qa"``) becomes a node. The text of the node is the question,
    which is searched. Its content, which is returned by a search, contains the question and the
    answer. The answer is also stored in ``metadata["answer"]``. Use ``QaRetriever`` to search these
    pairs. The model is not called for blank texts.

    Args:
        llm: The language model, in any form that ``LLM`` accepts. Its client should retry failed
            calls itself.
        task: The kind of text to extract: ``"summary"`` creates a single node, and ``"keywords"``,
            ``"questions"`` and ``"qa"`` create one node per item.
        language: The language of the prompt and the result, ``"zh"`` or ``"en"``. If ``"auto"``,
            the language of the text is used.
        prompt: A custom prompt with the placeholder ``{text}`` and optionally ``{limit}``, or a
            LangChain or LlamaIndex template with these variables. The model must answer in the same
            format as for the built-in prompt.
        limit: The maximum number of keywords, questions or pairs, or the number of sentences
            requested for a summary. Defaults to 8 keywords, 5 questions, 5 pairs or 3 sentences.

    Raises:
        TypeError: If the model is not supported, or a number or prompt has the wrong type.
        ValueError: If the task or language is unknown, a number is out of range, or the prompt does
            not contain ``{text}``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add("Tea is a drink. It is made of leaves.")
        >>> scripted = LLM(lambda prompt: "1. tea\\n2. leaves", "scripted")
        >>> graph.create_node_group("keyword", LLMExtractor(scripted, "keywords"))
        >>> [node.text for node in graph.nodes("keyword")]
        ['tea', 'leaves']
    """

    rules = 1  # Nodes are rebuilt if this number changes.

    @explain_names
    def __init__(
        self,
        llm: object,
        task: Task = "summary",
        language: Literal["auto", "zh", "en"] = "auto",
        prompt: str | PromptTemplate | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        for what, value, allowed in (
            ("task", task, get_args(Task)),
            ("language", language, ("auto", *get_args(Language))),
        ):
            if value not in allowed:
                raise ValueError(
                    f"unknown {what} {value!r}; known: {nearest_names(str(value), allowed)}"
                )
        self.prompt: str | None = None
        if prompt is not None:
            self.prompt = prompt_text(prompt, _NAMES)
            if "{text}" not in self.prompt:
                raise ValueError(f"the prompt {self.prompt!r:.80} must contain {{text}}")
        self.llm: LLM = as_llm(llm)
        self.task: Task = task
        self.language: Literal["auto", "zh", "en"] = language
        if limit is None:
            limit = LIMITS[task]
        self.limit = check_integer(limit, "limit", 1)

    def __repr__(self) -> str:
        return f"LLMExtractor({self.llm.name!r}, {self.task!r}, {self.language!r})"

    def __call__(self, text: str | Node) -> list[Node]:
        """Extract summaries or other items from a text, and return them as nodes.

        Raises:
            ModelError: If the model fails, or if all its answers are invalid. The message contains
                the start of the text and the last answer.
        """
        return self._extract(text, None)

    def with_answers(self, answers: AnswerCache) -> Callable[[str | Node], list[Node]]:
        """Return the transform with a cache of answers, such as the cache of a graph."""
        return partial(self._extract, answers=answers)

    def _extract(self, text: str | Node, answers: AnswerCache | None) -> list[Node]:
        if isinstance(text, Node):
            text = text.text
        if not text.strip():
            return []
        language: Language
        if self.language == "auto":
            language = language_of(text)
            in_language = "in the language of the text"
        else:
            language = self.language
            in_language = "in English"
        template = self.prompt or PROMPTS[language][self.task]
        prompt = fill_template(template, text=text, limit=self.limit, in_language=in_language)
        if answers is None:
            answer = self._ask(text, prompt, language)
        else:
            ask = partial(self._ask, text, prompt, language)
            answer = answers.ask(answer_key(self.llm.name, prompt), ask)
        return [self._node(item) for item in PARSERS[self.task](answer)[: self.limit]]

    def _ask(self, text: str, prompt: str, language: Language) -> str:
        """Ask the model about a text and return its first valid answer."""
        if self.llm.structured:
            form = FORMS[self.task]
            request = prompt + json_instruction(form, language)
            try:
                structured = self.llm.complete(request, schema_of(form))
                PARSERS[self.task](structured)
                return structured
            except ModelTimeoutError:
                raise  # A retry would probably take just as long.
            except (ModelError, ValueError):  # The answer is requested as plain text below.
                pass
        request = prompt
        for _ in range(2):
            answer = self.llm.complete(request)
            try:
                PARSERS[self.task](answer)
                return answer
            except ValueError as error:
                why = str(error)
                request = prompt + retry_note(language, why)
        raise ModelError(
            f"the language model {self.llm.name!r} gave no {self.task} of the text {text!r:.80}: "
            f"{why}; it answered {answer!r:.300}"
        )

    def _node(self, item: str | tuple[str, str]) -> Node:
        if isinstance(item, str):
            return Node(item)
        question, answer = item
        question_label, answer_label = _LABELS[language_of(question)]
        content = f"{question_label}{question}\n{answer_label}{answer}"
        return Node(question, {"answer": answer}, content)


_NAMES = ("text", "limit", "in_language")

Task = Literal["summary", "keywords", "questions", "qa"]

LIMITS: Mapping[Task, int] = {"summary": 3, "keywords": 8, "questions": 5, "qa": 5}
"""The default number of sentences, keywords, questions or pairs, for each task."""

FORMS: Mapping[Task, str] = {
    "summary": '{"summary": "..."}',
    "keywords": '{"keywords": ["...", "..."]}',
    "questions": '{"questions": ["...", "..."]}',
    "qa": '{"pairs": [{"question": "...", "answer": "..."}]}',
}
"""Example answers for each task, from which JSON schemas are created."""

_PROMPTS = Path(__file__).with_name("prompts.txt").read_text("utf-8")

PROMPTS: Mapping[str, Mapping[str, str]] = {
    language: dict(re.findall(rf"^== {language} (\w+)\n(.*?)\n(?=== |\Z)", _PROMPTS, re.M | re.S))
    for language in ("zh", "en")
}
"""The built-in prompts for each language and task."""
