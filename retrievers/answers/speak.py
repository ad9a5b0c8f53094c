"""Ask a model for what the user is to read."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from ..effects import Ask
from .said import SaidReader


@dataclass(frozen=True, slots=True)
class Speak(Ask):
    """Ask a model; streamed, only what is certain to be part of its answer is told.

    What comes of it is the whole answer as the model gave it: ``read_said`` reads it.

    Attributes:
        told: Gets the pieces that were told.
    """

    streamed: bool = True
    told: list[str] = field(default_factory=list, compare=False)

    def pieces(self) -> Generator[str, None, str]:
        """Yield the answer as it comes; return the whole."""
        reader = SaidReader()
        pieces = Ask.pieces(self)
        try:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    whole: str = end.value
                    break
                if text := reader.feed(piece):
                    self.told.append(text)
                    yield text
            if text := reader.close():
                self.told.append(text)
                yield text
            return whole
        finally:
            pieces.close()

    async def say(self, hear: Callable[[str], None]) -> str:
        """Tell the answer as it comes; return the whole."""
        reader = SaidReader()

        def tell(text: str) -> None:
            if text:
                self.told.append(text)
                hear(text)

        whole = await Ask.say(self, lambda piece: tell(reader.feed(piece)))
        tell(reader.close())
        return whole
