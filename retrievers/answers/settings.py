"""The settings of a query engine, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypedDict, get_args

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.language import Language
from ...nodegraph.models.llm import LLM
from ...nodegraph.node import Node
from ...nodegraph.splitters.tokens import count_tokens
from ..plans.passages import passage_title
from ..plans.prompting import Prompt
from ..validation import choice, seconds, whole

AnswerMode = Literal["stuff", "refine", "map_reduce", "map_rerank"]

OnError = Literal["raise", "extract"]

PASSAGE_PROMPTS: Mapping[AnswerMode, tuple[str, ...]] = MappingProxyType(
    {
        "stuff": ("answer",),
        "refine": ("answer", "refine"),
        "map_reduce": ("partial",),
        "map_rerank": ("rank",),
    }
)
"""The prompts of each mode that have passages."""


class AnswerOptions(TypedDict, total=False):
    """The further options of a ``QueryEngine``, to type ``**options``.

    Attributes:
        history_window: How much of a conversation goes into the prompt that condenses a question,
            from its newest pair on; 1024 by default.
        length: Measures a text; ``count_tokens`` is an estimate, the model's own counter exact.
        title: Returns the line above a passage, from its node.
        on_error: What happens where the model fails before any text was streamed: ``"raise"`` an
            ``AnswerError``, or ``"extract"``: answer with the best passages, and note that.
        max_calls: How many model calls an answer may take, 64 by default. Passages that would need
            more are omitted, with that reason.
        timeout: Seconds that each answer of the model may take in all, streamed or not.
        max_seconds: Seconds that a question may take in all, the search included; from the first
            text that is read for a stream. Then the answer is from what was read until then, with
            a note; where nothing was, ``on_error`` says what happens, and a search that takes
            longer is an ``AnswerError``. What runs in a thread is no longer waited for.
    """

    history_window: int
    length: Callable[[str], int]
    title: Callable[[Node], str]
    on_error: OnError
    max_calls: int
    timeout: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Hold the settings of a query engine; see ``QueryEngine`` and ``AnswerOptions``.

    Attributes:
        prompt_limit: The longest prompt: the context window less the room for the output.
    """

    llm: LLM
    mode: AnswerMode
    prompts: Mapping[str, Prompt]
    context_window: int = 4096
    num_output: int = 512
    history_window: int = 1024
    length: Callable[[str], int] = count_tokens
    language: Language | Literal["auto"] = "auto"
    title: Callable[[Node], str] = passage_title
    on_error: OnError = "raise"
    max_calls: int = 64
    timeout: float | None = None
    max_seconds: float | None = None
    prompt_limit: int = field(init=False)

    def __post_init__(self) -> None:
        if self.mode not in PASSAGE_PROMPTS:
            raise ValueError(
                f"there is no mode {self.mode!r}; there is "
                f"{nearest_names(str(self.mode), PASSAGE_PROMPTS)}"
            )
        whole(self.context_window, "context_window", 1)
        whole(self.num_output, "num_output", 0)
        whole(self.history_window, "history_window", 0)
        whole(self.max_calls, "max_calls", 1)
        choice(self.language, "language", (*get_args(Language), "auto"))
        choice(self.on_error, "on_error", get_args(OnError))
        for name in ("length", "title"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} is a function, not {getattr(self, name)!r:.80}")
        seconds(self.timeout, "timeout")
        seconds(self.max_seconds, "max_seconds")
        object.__setattr__(self, "prompt_limit", self.context_window - self.num_output)
        self._check_prompts()

    def _check_prompts(self) -> None:
        """Check that the prompts of the mode leave room for passages."""
        others = ("reduce", "condense") if self.mode == "map_reduce" else ("condense",)
        languages = get_args(Language) if self.language == "auto" else (self.language,)
        for name in (*PASSAGE_PROMPTS[self.mode], *others):
            for language in languages:
                length = self.length(self.prompts[name].fill(language))
                if length >= self.prompt_limit:
                    raise ValueError(
                        f"context_window={self.context_window!r} less "
                        f"num_output={self.num_output!r} leaves {self.prompt_limit}, and the "
                        f"prompt {name!r} alone measures {length}; raise context_window, or "
                        "shorten the prompt"
                    )
