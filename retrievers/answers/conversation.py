"""A conversation: questions that may refer to earlier ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ...nodegraph.models.language import Language
from ...nodegraph.models.output.queries import parse_query
from ..filters import Filters
from ..plans.plan import Plan
from ..plans.prompting import ask_and_parse
from ..tracing import start_span
from .answer import Answer
from .context import AnswerContext
from .stream import AnswerStream, AsyncAnswerStream
from .truncation import cut

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
"""A question and its answer; either may be empty."""

_USER_ROLES = frozenset(("user", "human"))

_ASSISTANT_ROLES = frozenset(("assistant", "ai", "model", "chatbot", "bot"))

_IGNORED_ROLES = frozenset(("system", "developer", "tool", "function"))

_LABELS: Mapping[Language, Pair] = {"zh": ("用户：", "助手："), "en": ("User: ", "Assistant: ")}


class AnswerEngine(Protocol):
    """The methods of a ``QueryEngine`` that a conversation calls."""

    def query(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Return the answer to a question."""
        ...

    async def aquery(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Return the same without blocking the event loop."""
        ...

    def stream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AnswerStream:
        """Return the answer as the model writes it."""
        ...

    def astream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AsyncAnswerStream:
        """Return the same, for ``async for``."""
        ...


class Conversation:
    """Ask a query engine one question after the other; a question may refer to those before it.

    The history is stored here and not in the engine: conversations of one engine are independent.
    Several threads may share a conversation; a question that is asked while another one is being
    answered does not see that one. An answer that fails, or is not read to its end, is not stored.

    Args:
        engine: The engine.
        history: Earlier questions and answers; see ``QueryEngine.query``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add("The Nile is 6,650 km long.")
        >>> def model(prompt):
        ...     return "How long is the Nile?" if "Conversation:" in prompt else "6,650 km [1]."
        >>> chat = QueryEngine(Retriever(graph, "ROOT"), model).conversation()
        >>> print(chat.query("Where is the Nile?"))
        6,650 km [1].
        >>> chat.query("And how long is it?").searched, len(chat.history)
        ('How long is the Nile?', 2)
    """

    def __init__(self, engine: AnswerEngine, history: Iterable[Any] | None = None) -> None:
        self.engine = engine
        self._pairs = parse_history(history)[0]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Conversation({self.engine!r}, {len(self.history)} pairs)"

    @property
    def history(self) -> tuple[Pair, ...]:
        """The pairs of question and answer so far, the oldest first."""
        with self._lock:
            return tuple(self._pairs)

    def clear(self) -> None:
        """Remove all pairs."""
        with self._lock:
            self._pairs.clear()

    def query(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Return the answer to the next question; see ``QueryEngine.query``."""
        answer = self.engine.query(question, history=self.history, top_k=top_k, filters=filters)
        self._store(answer)
        return answer

    async def aquery(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Return the same without blocking the event loop."""
        history = self.history
        answer = await self.engine.aquery(question, history=history, top_k=top_k, filters=filters)
        self._store(answer)
        return answer

    def stream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AnswerStream:
        """Return the answer to the next question as it comes; it is stored when it has ended."""
        stream = self.engine.stream(question, history=self.history, top_k=top_k, filters=filters)
        stream.on_end(self._store)
        return stream

    def astream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AsyncAnswerStream:
        """Return the same without blocking the event loop."""
        stream = self.engine.astream(question, history=self.history, top_k=top_k, filters=filters)
        stream.on_end(self._store)
        return stream

    def _store(self, answer: Answer) -> None:
        with self._lock:
            self._pairs.append((answer.question, answer.text))


def condense(context: AnswerContext, pairs: Sequence[Pair]) -> Plan[str]:
    """Return the question so that it is understood without the conversation, by a model.

    Where the model fails, or there is no room for the conversation, it is the question as it is.
    The notes say so, and how much of the conversation was left out.
    """
    question, settings = context.question, context.settings
    with start_span("condense", question=question, pairs=len(pairs)) as span:
        empty = settings.length(context.prompt("condense", history=""))
        room = min(settings.history_window, settings.prompt_limit - empty)
        selected, notes = newest_pairs(pairs, room, settings.length, context.language)
        context.notes += notes
        prompt = ""
        while selected:
            history = format_history(selected, context.language)
            prompt = context.prompt("condense", history=history)
            if context.is_short(prompt):
                break
            del selected[0]
        if not selected:
            context.notes.append("there is no room for the conversation beside the question")
            return question
        try:
            condensed = yield from ask_and_parse(
                context.llm,
                prompt,
                lambda answer: parse_query(answer, question),
                context.language,
                timeout=settings.timeout,
            )
        except Exception as error:
            note = f"condensing the question failed: {type(error).__name__}: {error}"
            logger.warning("the question %r is searched for as it is: %s", question[:80], note)
            span.attributes["failed"] = note
            context.notes.append(f"{note}; it was searched for as it is")
            return question
        span.attributes["condensed"] = condensed
    return condensed


def parse_history(history: Iterable[Any] | None) -> tuple[list[Pair], list[str]]:
    """Return the pairs of a conversation, the oldest first, and a note on ignored messages.

    Args:
        history: Pairs of question and answer; or messages, ``{"role": ..., "content": ...}`` or
            objects with such (``type`` instead of ``role`` as in LangChain). Messages of one role
            that follow each other are one; those of a system or a tool are ignored.

    Raises:
        TypeError: If it is one text, or has something else in it.
        ValueError: If a role is unknown.

    Example:
        >>> parse_history([("Who was Lu Xun?", "A writer.")])
        ([('Who was Lu Xun?', 'A writer.')], [])
        >>> parse_history([{"role": "user", "content": "Hi"}, {"role": "system", "content": "?"}])
        ([('Hi', '')], ['1 messages of a system or tool in the history were ignored'])
    """
    if isinstance(history, str | Mapping):
        raise TypeError(
            "history is a list of pairs (question, answer) or of messages "
            f'{{"role": ..., "content": ...}}, not {history!r:.80}'
        )
    pairs: list[Pair] = []
    ignored = 0
    answered = True  # whether the last pair is complete
    for item in history or ():
        if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
            if not all(isinstance(text, str) for text in item):
                raise TypeError(f"a pair of a history is two texts, not {item!r:.80}")
            pairs.append((item[0], item[1]))
            answered = True
            continue
        role, text = _message(item)
        if role in _IGNORED_ROLES:
            ignored += 1
        elif role in _ASSISTANT_ROLES:
            question, answer = pairs.pop() if pairs else ("", "")
            pairs.append((question, f"{answer}\n{text}" if answer else text))
            answered = True
        elif role not in _USER_ROLES:
            raise ValueError(f"a message of a history is by 'user' or 'assistant', not {role!r}")
        elif answered:
            pairs.append((text, ""))
            answered = False
        else:
            pairs[-1] = (f"{pairs[-1][0]}\n{text}", "")
    notes = [f"{ignored} messages of a system or tool in the history were ignored"]
    return pairs, notes if ignored else []


def newest_pairs(
    pairs: Sequence[Pair], limit: int, length: Callable[[str], int], language: Language
) -> tuple[list[Pair], list[str]]:
    """Return the newest pairs that are no longer than a limit together, and what was left out.

    Where the newest pair is too long by itself its answer is cut; where its question is too long,
    no pair is returned.
    """
    selected: list[Pair] = []
    notes = []
    for pair in reversed(pairs):
        if length(format_history([pair, *selected], language)) > limit:
            break
        selected.insert(0, pair)
    if pairs and not selected:
        question, answer = pairs[-1]

        def has_room(text: str) -> bool:
            return length(format_history([(question, text)], language)) <= limit

        if has_room(""):
            selected = [(question, cut(answer, has_room))]
            notes.append("the last answer in the history was cut: it is too long for the prompt")
    if omitted := len(pairs) - len(selected):
        notes.append(
            f"the history's first {omitted} of {len(pairs)} pairs were left out: they are too long "
            "for the prompt"
        )
    return selected, notes


def format_history(pairs: Iterable[Pair], language: Language) -> str:
    """Return a conversation as a prompt has it."""
    labels = _LABELS[language]
    lines = (f"{label}{text}" for pair in pairs for label, text in zip(labels, pair, strict=True))
    return "\n".join(line for line in lines if line not in labels)


def _message(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping):
        role, content = item.get("role", item.get("type")), item.get("content")
    else:
        role = getattr(item, "role", None) or getattr(item, "type", None)
        content = getattr(item, "content", None)
    role = getattr(role, "value", role)
    if isinstance(content, Sequence) and not isinstance(content, str):  # parts, some of them texts
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str | None):
        raise TypeError(
            'a history has pairs (question, answer) or messages {"role": ..., "content": ...}, '
            f"not {item!r:.80}"
        )
    return role.casefold(), content or ""
