"""Use a query engine as a LangChain runnable with streaming."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Literal

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableGenerator,
    RunnableLambda,
)
from langchain_core.runnables.utils import AddableDict

from ...nodegraph.errors import explain_names
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.validation import choice
from ..frameworks import check_names
from .callbacks import child_runs
from .documents import SCORE_KEY, to_document
from .filter_translation import as_filters


@explain_names
def engine_runnable(
    engine: QueryEngine, *, output: Literal["text", "dict"] = "text", name: str = "query_engine"
) -> Runnable[Any, Any]:
    """Return a LangChain runnable that answers questions with a query engine and can stream.

    The input can be a text, a message, a list of messages that ends with the question, or a mapping
    with ``question``, ``input``, ``query`` or ``messages``, and optionally ``chat_history``. The
    options ``k`` and ``filter`` can be passed with each call. The filter is combined with the
    filter of the retriever.

    Args:
        engine: The query engine.
        output: ``"text"`` to return only the text of the answer, or ``"dict"`` to return a
            dictionary with ``question``, ``context`` (the documents with scores and places, in the
            order of their numbers), ``answer``, ``sources`` (``number``, ``cited``, ``title`` and
            the ``text`` in the prompt), ``found``, ``notes``, and ``quotes`` if the engine checks
            them. When the answer is streamed, the documents are sent first.
        name: The name of the runs in traces.

    Raises:
        TypeError: If ``engine`` is not a ``QueryEngine``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = QueryEngine(graph, lambda prompt: "It has 6,650 km [1].")
        >>> engine_runnable(engine).invoke("How long is the Nile?")
        'It has 6,650 km [1].'
        >>> full = engine_runnable(engine, output="dict")
        >>> answer = full.invoke({"input": "How long is the Nile?", "chat_history": []})
        >>> [source["text"] for source in answer["sources"] if source["cited"]]
        ['The Nile is 6,650 km long.']
    """
    if not isinstance(engine, QueryEngine):
        raise TypeError(f"engine must be a QueryEngine(retriever, llm), got {engine!r:.80}")
    choice(output, "output", ("text", "dict"))
    return EngineRunnable(engine, output, name)


class EngineRunnable(RunnableGenerator[Any, Any]):
    """A runnable that answers questions with a query engine. See ``engine_runnable``."""

    def __init__(self, engine: QueryEngine, output: str, name: str) -> None:
        generate: Any = self._generate
        agenerate: Any = self._agenerate
        super().__init__(generate, agenerate, name=name)
        self.engine = engine
        self.output = output

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the answer to a question.

        ``kwargs`` may contain the options ``k`` and ``filter``.
        """
        return self._whole_answer.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Async version of ``invoke``."""
        return await self._whole_answer.ainvoke(input, config, **kwargs)

    @property
    def _whole_answer(self) -> Runnable[Any, Any]:
        """A step that answers without streaming.

        It is reported as one run with this runnable's name.
        """
        return RunnableLambda(self._query, self._aquery, name=self.name)

    def _query(self, input: Any, config: RunnableConfig, **options: Any) -> Any:
        with child_runs(config):
            return self._output(self.engine.query(**_arguments(input, options)))

    async def _aquery(self, input: Any, config: RunnableConfig, **options: Any) -> Any:
        with child_runs(config):
            answer = await self.engine.aquery(**_arguments(input, options))
        return await asyncio.to_thread(self._output, answer)

    def _output(self, answer: Answer) -> Any:
        if self.output == "text":
            return answer.text
        return {**_first_chunk(answer), "answer": answer.text, **_last_chunk(answer)}

    # A stream copies the context in its first step, so the config must be set only there.

    def _generate(
        self, inputs: Iterator[Any], config: RunnableConfig, **options: Any
    ) -> Iterator[Any]:
        with self.engine.stream(**_arguments(reduce(add, inputs), options)) as stream:
            with child_runs(config):
                first = next(stream, "")
            if self.output == "dict":
                yield _first_chunk(stream.answer)
            for text in chain([first], stream):
                yield self._piece(text)
            if self.output == "dict":
                yield _last_chunk(stream.answer)

    async def _agenerate(
        self, inputs: AsyncIterator[Any], config: RunnableConfig, **options: Any
    ) -> AsyncIterator[Any]:
        arguments = _arguments(reduce(add, [chunk async for chunk in inputs]), options)
        async with aclosing(self.engine.astream(**arguments)) as stream:
            with child_runs(config):
                first = await anext(stream, "")
            if self.output == "dict":
                yield await asyncio.to_thread(_first_chunk, stream.answer)
            yield self._piece(first)
            async for text in stream:
                yield self._piece(text)
            if self.output == "dict":
                yield _last_chunk(stream.answer)

    def _piece(self, text: str) -> Any:
        return text if self.output == "text" else AddableDict(answer=text)


_QUESTION_KEYS = ("question", "input", "query", "messages")


def _arguments(input: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the input and options of a call to arguments of the query engine."""
    check_names("invoke", options, ("k", "filter"))
    history: list[BaseMessage] = []
    if isinstance(input, Mapping):
        key = next((key for key in _QUESTION_KEYS if key in input), None)
        if key is None:
            raise ValueError(
                f"the input must have one of the keys {', '.join(_QUESTION_KEYS)}, got "
                f"{sorted(str(key) for key in input)}"
            )
        history = convert_to_messages(input.get("chat_history") or [])
        input = input[key]
    if not isinstance(input, str):
        messages = convert_to_messages([input] if isinstance(input, BaseMessage) else input)
        if not messages or messages[-1].type != "human":
            raise ValueError(f"the last message must be the user's question, got {messages[-1:]}")
        history = [*history, *messages[:-1]]
        input = str(messages[-1].text)
    turns = [{"role": m.type, "content": str(m.text)} for m in history if m.text]
    filters = as_filters(options.get("filter"))
    return {"question": input, "history": turns, "top_k": options.get("k"), "filters": filters}


def _first_chunk(answer: Answer) -> AddableDict:
    context = [
        to_document(source.result, score_key=SCORE_KEY, place=True) for source in answer.sources
    ]
    return AddableDict(question=answer.question, context=context)


def _last_chunk(answer: Answer) -> AddableDict:
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "title": source.title,
            "text": source.text,
        }
        for source in answer.sources
    ]
    chunk = AddableDict(sources=sources, found=answer.answered, notes=list(answer.notes))
    if answer.quotes:
        chunk["quotes"] = [quote.to_dict() for quote in answer.quotes]
    return chunk
