"""The settings of a query engine that are used by the steps of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from ...nodegraph.models.llm import LLM
from ...nodegraph.models.templates import Language
from ..plans.prompting import Prompt
from ..prompts.answer_prompts import AnswerMode
from ..protocols import RetrieverProtocol
from .qa import QaRetriever


class AnswerSettings(Protocol):
    """The settings of a query engine. They are described in ``QueryEngine``."""

    retriever: RetrieverProtocol
    llm: LLM
    mode: AnswerMode
    qa: QaRetriever | None
    max_tokens: int | None
    check: Literal["quotes"] | None
    context_window: int
    history_window: int
    length: Callable[[str], int]
    language: Language | None
    timeout: float | None
    total_timeout: float | None

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts, by name."""

    @property
    def prompt_limit(self) -> int:
        """The maximum length of a prompt."""
