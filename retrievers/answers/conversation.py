"""A conversation: questions that may refer to what was said before."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...nodegraph import LLM
from ...nodegraph.models import Language
from ...nodegraph.models.output import parse_query
from ..filters import Filters
from ..plans import Plan, Prompt, ask_and_parse
from ..tracing import start_span
from .answer import Answer
from .stream import AnswerStream, AsyncAnswerStream
from .truncation import cut

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


logger = logging.getLogger(__name__)


def condensed(
    question: str,
    pairs: Sequence[Pair],
    *,
    llm: LLM,
    prompt: Prompt,
    language: Language,
    history_limit: int,
    limit: int,
    length: Callable[[str], int],
    timeout: float | None,
    notes: list[str],
) -> Plan[str]:
    """Return a question that is understood without what was said before, made by a model.

    Without a conversation, and where the model fails, it is the question as it is; the notes say
    that, and what of the conversation there was no room for.

    Args:
        question: The question.
        pairs: The conversation.
        llm: The model.
        prompt: What it is asked.
        language: Of the prompt.
        history_limit: How long the conversation may be in it.
        limit: How long all of it may be.
        length: Measures a text.
        timeout: Seconds to wait for the model.
        notes: Gets what is to be known.
    """
    if not pairs:
        return question
    asked = ""
    with start_span("condense", question=question, pairs=len(pairs)) as done:
        bare = length(prompt.fill(language, question=question, history=""))
        room = min(history_limit, limit - bare)
        kept, told_of = newest(pairs, room, length, language)
        while kept:
            asked = prompt.fill(language, question=question, history=told(kept, language))
            if length(asked) <= limit:
                break
            del kept[0]
        notes += told_of
        if not kept:
            notes.append("there is no room for the conversation beside the question")
            return question
        try:
            made = yield from ask_and_parse(
                llm, asked, lambda made: parse_query(made, question), language, timeout=timeout
            )
        except Exception as error:
            note = f"condensing the question failed: {type(error).__name__}: {error}"
            logger.warning("the question %r is taken as it is: %s", question[:80], note)
            done.attributes["failed"] = note
            notes.append(f"{note}; it was searched for as it is")
            return question
        done.attributes["condensed"] = made
    return made


Pair = tuple[str, str]
"""A question and its answer; either may be empty."""

_ASKS = frozenset(("user", "human"))

_ANSWERS = frozenset(("assistant", "ai", "model", "chatbot", "bot"))

_ASIDE = frozenset(("system", "developer", "tool", "function"))

_LABELS: Mapping[Language, Pair] = {"zh": ("用户：", "助手："), "en": ("User: ", "Assistant: ")}


def pairs_of(history: Iterable[Any] | None) -> tuple[list[Pair], list[str]]:
    """Return the pairs of a conversation, the oldest first, and what was passed over.

    Args:
        history: Pairs of question and answer; or messages, ``{"role": ..., "content": ...}`` or
            objects with such (``type`` instead of ``role`` as in LangChain). Messages of one role
            that follow each other are one; those of a system or a tool are passed over.

    Raises:
        TypeError: If it is one text, or has something else in it.
        ValueError: If a role is not known.

    Example:
        >>> pairs_of([("Who was Lu Xun?", "A writer.")])
        ([('Who was Lu Xun?', 'A writer.')], [])
        >>> pairs_of([{"role": "user", "content": "Hi"}, {"role": "system", "content": "?"}])
        ([('Hi', '')], ['1 messages of a system or tool in the history were passed over'])
    """
    if isinstance(history, str | Mapping):
        raise TypeError(
            "history is a list of pairs (question, answer) or of messages "
            f'{{"role": ..., "content": ...}}, not {history!r:.80}'
        )
    pairs: list[Pair] = []
    passed_over = 0
    answered = True  # whether the last pair is complete
    for item in history or ():
        if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
            if not all(isinstance(text, str) for text in item):
                raise TypeError(f"a pair of a history is two texts, not {item!r:.80}")
            pairs.append((item[0], item[1]))
            answered = True
            continue
        role, text = _message(item)
        if role in _ASIDE:
            passed_over += 1
        elif role in _ANSWERS:
            question, answer = pairs.pop() if pairs else ("", "")
            pairs.append((question, f"{answer}\n{text}" if answer else text))
            answered = True
        elif role not in _ASKS:
            raise ValueError(f"a message of a history is by 'user' or 'assistant', not {role!r}")
        elif answered:
            pairs.append((text, ""))
            answered = False
        else:
            pairs[-1] = (f"{pairs[-1][0]}\n{text}", "")
    notes = [f"{passed_over} messages of a system or tool in the history were passed over"]
    return pairs, notes if passed_over else []


def newest(
    pairs: Sequence[Pair], limit: int, length: Callable[[str], int], language: Language
) -> tuple[list[Pair], list[str]]:
    """Return the newest pairs that are no longer than a limit together, and what was left out.

    Where the newest alone is too long its answer is cut; where its question is, nothing is left.
    """
    kept: list[Pair] = []
    notes = []
    for pair in reversed(pairs):
        if length(told([pair, *kept], language)) > limit:
            break
        kept.insert(0, pair)
    if pairs and not kept:
        question, answer = pairs[-1]

        def fits(text: str) -> bool:
            return length(told([(question, text)], language)) <= limit

        if fits(""):
            kept = [(question, cut(answer, fits))]
            notes.append("the last answer in the history was cut for the budget")
    if gone := len(pairs) - len(kept):
        notes.append(f"the history's first {gone} of {len(pairs)} pairs were left out: budget")
    return kept, notes


def told(pairs: Iterable[Pair], language: Language) -> str:
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
