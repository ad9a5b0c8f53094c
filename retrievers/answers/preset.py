"""Look for a preset answer, as an effect of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from ..filters import Filters
from .preset_answer import PresetAnswer
from .qa import QaRetriever


@dataclass(frozen=True, slots=True)
class Preset:
    """Look whether a question-answer pair has this question; None comes of it where none does."""

    qa: QaRetriever
    question: str
    filters: Filters | None = None

    def do(self) -> PresetAnswer | None:
        """Return the pair's answer."""
        return self.qa.answer(self.question, filters=self.filters)

    async def ado(self) -> PresetAnswer | None:
        """Return the same without blocking the event loop."""
        return await self.qa.aanswer(self.question, filters=self.filters)
