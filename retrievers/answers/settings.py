"""How a query engine answers: the modes, and settings that are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from ...nodegraph import LLM, Node, count_tokens, nearest_names
from ...nodegraph.models import Language
from ...nodegraph.models.output import FinalAnswer
from ..plans import Plan, Prompt
from ..protocols import RetrieverProtocol
from ..validation import seconds, whole
from .context import Task, title_of
from .map_rerank import map_rerank
from .modes import map_reduce, refine, stuff
from .qa import QaRetriever

AnswerMode = Literal["stuff", "refine", "map_reduce", "map_rerank"]

OnError = Literal["raise", "extract"]

PROMPTS_OF: Mapping[AnswerMode, tuple[str, ...]] = MappingProxyType(
    {
        "stuff": ("answer",),
        "refine": ("answer", "refine"),
        "map_reduce": ("partial",),
        "map_rerank": ("rank",),
    }
)
"""Which prompts of a mode show passages."""

MODES: Mapping[AnswerMode, Callable[[Task], Plan[FinalAnswer]]] = MappingProxyType(
    {"stuff": stuff, "refine": refine, "map_reduce": map_reduce, "map_rerank": map_rerank}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold what a query engine goes by; see ``QueryEngine`` for what each means."""

    retriever: RetrieverProtocol
    llm: LLM
    mode: AnswerMode
    prompts: Mapping[str, Prompt]
    qa: QaRetriever | None = None
    budget: int = 4096
    reserve: int = 512
    history_window: int = 1024
    length: Callable[[str], int] = count_tokens
    language: Language | Literal["auto"] = "auto"
    title: Callable[[Node], str] = title_of
    on_error: OnError = "raise"
    max_calls: int = 64
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(
                f"there is no mode {self.mode!r}; there is {nearest_names(str(self.mode), MODES)}"
            )
        for name, least in (
            ("budget", 1), ("reserve", 0), ("history_window", 0), ("max_calls", 1),
        ):  # fmt: skip
            whole(getattr(self, name), name, least)
        if self.language not in (*get_args(Language), "auto"):
            raise ValueError(f"language is 'zh', 'en' or 'auto', not {self.language!r}")
        if self.on_error not in get_args(OnError):
            raise ValueError(f"on_error is 'raise' or 'extract', not {self.on_error!r}")
        for name in ("length", "title"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} is a function, not {getattr(self, name)!r:.80}")
        seconds(self.timeout, "timeout")
        also = ("reduce", "condense") if self.mode == "map_reduce" else ("condense",)
        for name in (*PROMPTS_OF[self.mode], *also):
            for language in get_args(Language) if self.language == "auto" else (self.language,):
                bare = self.length(self.prompts[name].fill(language))
                if bare >= self.limit:
                    raise ValueError(
                        f"budget={self.budget!r} less reserve={self.reserve!r} leaves "
                        f"{self.limit}, and the prompt {name!r} alone measures {bare}; raise the "
                        "budget or give a shorter prompt"
                    )

    @property
    def limit(self) -> int:
        """The longest prompt."""
        return self.budget - self.reserve
