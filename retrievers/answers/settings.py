"""The settings of a query engine, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.language import Language
from ...nodegraph.node import Node
from ...nodegraph.splitters.tokens import count_tokens
from ..plans.prompting import Prompt, passage_title
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """Hold the settings of a query engine.

    Attributes:
        context_window: How long a prompt and its answer may be together, in the unit of
            ``length``.
        num_output: The part of it that is reserved for the answer.
        history_window: How much of a conversation goes into the prompt that condenses a question,
            from its newest pair on.
        length: Measures a text. ``count_tokens`` is an estimate, the model's own counter exact.
        language: Of the prompts: ``"zh"``, ``"en"``, or ``"auto"`` for the question's.
        title: Returns the line above a passage, from its node.
        on_error: What happens if the model fails before any text was streamed: ``"raise"`` an
            ``AnswerError``, or ``"extract"``: answer with the best passages, and note that.
        max_calls: How many model calls an answer may take. Passages that would need more are
            omitted, with that reason.
        timeout: Seconds that each answer of the model may take in all, streamed or not.
        max_seconds: Seconds that a question may take in all, the search included. From the first
            text that is read for a stream. Then the answer is from what was read until then, with
            a note. If nothing was read, ``on_error`` says what happens, and a search that takes
            longer is an ``AnswerError``. What runs in a thread is no longer waited for.

    Raises:
        TypeError: If a setting has the wrong type.
        ValueError: If a setting is unknown or out of range.
    """

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

    def __post_init__(self) -> None:
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

    @property
    def prompt_limit(self) -> int:
        """The longest prompt: the context window less what is reserved for the answer."""
        return self.context_window - self.num_output


def check_mode(mode: str) -> None:
    """Check the mode of an engine.

    Raises:
        ValueError: If there is no such mode.
    """
    if mode not in PASSAGE_PROMPTS:
        names = nearest_names(str(mode), PASSAGE_PROMPTS)
        raise ValueError(f"there is no mode {mode!r}; there is {names}")


def check_prompts(
    mode: AnswerMode, prompts: Mapping[str, Prompt], settings: AnswerSettings
) -> None:
    """Check that the prompts of a mode leave room for passages.

    Raises:
        ValueError: If one does not.
    """
    others = ("reduce", "condense") if mode == "map_reduce" else ("condense",)
    languages = get_args(Language) if settings.language == "auto" else (settings.language,)
    for name in (*PASSAGE_PROMPTS[mode], *others):
        for language in languages:
            length = settings.length(prompts[name].fill(language))
            if length >= settings.prompt_limit:
                raise ValueError(
                    f"context_window={settings.context_window!r} less "
                    f"num_output={settings.num_output!r} leaves {settings.prompt_limit}, and the "
                    f"prompt {name!r} alone measures {length}; raise context_window, or shorten "
                    "the prompt"
                )
