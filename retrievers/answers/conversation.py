"""A conversation: questions that may refer to what was said before."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..filters import Filters
from .answer import Answer
from .history import Pair, pairs_of
from .stream import AnswerStream, AsyncAnswerStream

if TYPE_CHECKING:
    from .engine import QueryEngine


class Conversation:
    """Ask a query engine one question after the other, each understood by those before it.

    It keeps questions and answers, and nothing else does: two conversations of one engine know
    nothing of each other. It may be used by several threads; a question that is asked while
    another one is being answered does not know that one. What fails, or is not read to its end,
    is not kept.

    Args:
        engine: The engine.
        history: What was said before; see ``QueryEngine.query``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.answers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add("The Nile is 6,650 km long.")
        >>> def model(prompt):
        ...     return "How long is the Nile?" if "Conversation:" in prompt else "6,650 km [1]."
        >>> chat = QueryEngine(Retriever(graph, "ROOT"), model).conversation()
        >>> print(chat.ask("Where is the Nile?"))
        6,650 km [1].
        >>> chat.ask("And how long is it?").searched, len(chat.history)
        ('How long is the Nile?', 2)
    """

    def __init__(self, engine: QueryEngine, history: Iterable[Any] | None = None) -> None:
        self.engine = engine
        self._pairs = pairs_of(history)[0]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Conversation({self.engine!r}, {len(self.history)} pairs)"

    @property
    def history(self) -> tuple[Pair, ...]:
        """The pairs of question and answer so far, the oldest first."""
        with self._lock:
            return tuple(self._pairs)

    def clear(self) -> None:
        """Forget what was said."""
        with self._lock:
            self._pairs.clear()

    def ask(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Return the answer to the next question; see ``QueryEngine.query``."""
        answer = self.engine.query(question, history=self.history, top_k=top_k, filters=filters)
        self._keep(answer)
        return answer

    async def aask(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Return the same without blocking the event loop."""
        answer = await self.engine.aquery(
            question, history=self.history, top_k=top_k, filters=filters
        )
        self._keep(answer)
        return answer

    def stream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AnswerStream:
        """Return the answer to the next question as it comes; it is kept when it has ended."""
        return self.engine._stream(question, self.history, top_k, filters, self._keep)

    def astream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AsyncAnswerStream:
        """Return the same without blocking the event loop."""
        return self.engine._astream(question, self.history, top_k, filters, self._keep)

    def _keep(self, answer: Answer) -> None:
        with self._lock:
            self._pairs.append((answer.question, answer.text))
