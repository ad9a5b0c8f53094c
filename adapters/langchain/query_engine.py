"""Use a query engine as a LangChain runnable that streams."""

from __future__ import annotations

import asyncio
import contextvars
import operator
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import (
    ChatPromptValue,
    ChatPromptValueConcrete,
    PromptValue,
    StringPromptValue,
)
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import AddableDict
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, Strict, field_validator

from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.base_retriever import child_k_override
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.foreign_retriever import configured
from ...retrievers.plans.plan import stream_from_task
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from .callbacks import achild_runs, child_runs
from .documents import Details, check_count, check_kwargs, to_document
from .filter_translation import CheckedFilter, as_filters, merge_filters

if TYPE_CHECKING:
    from typing_extensions import Unpack

EngineInput = (
    str
    | Mapping[str, Any]
    | HumanMessage
    | Annotated[list[Any], Strict()]
    | StringPromptValue
    | ChatPromptValue
    | ChatPromptValueConcrete
)


class EngineFields(TypedDict, total=False):
    """Fields of a ``NodeGraphQueryEngine``, to type ``**fields``. See there."""

    output: Literal["text", "dict"]
    k: int | None
    child_k: int | None
    filter: Mapping[str, Any] | None
    question_key: str | None
    history_key: str
    details: Details
    name: str | None


class NodeGraphQueryEngine(RunnableSerializable[EngineInput, Any]):
    """Use a query engine in LangChain: questions in, answers with sources out, streamed.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``.

    Key init args:
        engine: The ``QueryEngine``. Or, with ``llm``, a retriever to make one of.
        llm: The model, where a retriever is given.
        output: ``"text"`` for the answer's text. ``"dict"`` for a mapping with ``answer``,
            ``question``, ``context`` (the documents, in the order of their numbers), ``sources``
            (number, whether it is cited, title, ids, score, and the text the model was shown),
            ``found`` and ``notes``, and ``quotes`` of an engine that checks them.
        k: How many passages to retrieve. None for the engine's own number.
        child_k: How many children every inner retriever considers before it lifts them.
        filter: Conditions on metadata, checked before ranking.
        question_key: Where in a mapping the question is. None for ``question``, ``input``,
            ``query`` or ``messages`` (a LangGraph state, whose last message is the question).
        history_key: Where in a mapping the conversation so far is: messages.
        details: What the metadata of documents has besides its own fields. See
            ``NodeGraphRetriever``. Scores are in ``sources`` anyway.

    Instantiate:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> model = FakeListChatModel(responses=["It has 6,650 km [1]."])
        >>> engine = NodeGraphQueryEngine(Retriever(graph, "ROOT"), model)

        With a mode, prompts and settings of yours:

        >>> engine = NodeGraphQueryEngine(QueryEngine(Retriever(graph, "ROOT"), model, "refine"))

    Usage:
        >>> engine.invoke("How long is the Nile?")
        'It has 6,650 km [1].'
        >>> chunks = list(engine.stream("How long is the Nile?"))
        >>> len(chunks) > 1, "".join(chunks)
        (True, 'It has 6,650 km [1].')

        A question is a text, a message, messages of which the last is the question, or a mapping
        with one of these and a ``chat_history``. Each call takes ``k``, ``child_k`` and
        ``filter``. That filter is added to the engine's own.

        With ``output="dict"`` the first chunk of a stream has the question and the documents, the
        next ones the answer, the last one the sources. Their sum is what ``invoke`` returns.
        Where the model repeats itself or an answer has to be corrected, the streamed text stays,
        and the corrected answer follows it.

    Use within a chain:
        >>> full = NodeGraphQueryEngine(engine=engine.engine, output="dict")
        >>> def cited(answer):
        ...     return [source["text"] for source in answer["sources"] if source["cited"]]
        >>> chain = full | cited
        >>> chain.invoke({"input": "How long is the Nile?", "chat_history": []})
        ['The Nile is 6,650 km long.']

        A trace shows one run for the engine and a child run for every span. In
        ``RunnableWithMessageHistory`` it takes the messages as ``chat_history``.

    Raises:
        TypeError: If the engine is none, a call has an unknown keyword, or the input has no
            question.
        AnswerError: If the model fails, as the engine does.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Annotated[QueryEngine, SkipValidation]
    """The query engine."""

    output: Literal["text", "dict"] = "text"
    """Whether the text is returned, or a mapping with the sources."""

    k: int | None = Field(default=None, ge=1, strict=True)
    """How many passages to retrieve. None for the engine's own number."""

    child_k: int | None = Field(default=None, ge=1, strict=True)
    """How many children to consider before lifting. None for as many as it takes."""

    filter: CheckedFilter = None
    """Conditions on metadata, checked before ranking."""

    question_key: str | None = None
    """Where in a mapping the question is. None for the usual names."""

    history_key: str = "chat_history"
    """Where in a mapping the conversation is."""

    details: Details = False
    """What the metadata of documents has besides its own fields."""

    def __init__(
        self,
        engine: QueryEngine | RetrieverLike | None = None,
        llm: object = None,
        **fields: Unpack[EngineFields],
    ) -> None:
        if isinstance(engine, QueryEngine) and llm is not None:
            raise TypeError("engine has its model; leave out llm, or give a retriever with it")
        made = engine if llm is None or engine is None else QueryEngine(engine, llm)
        values: dict[str, Any] = {"engine": made, **fields}
        super().__init__(**values)

    @field_validator("engine", mode="before")
    @classmethod
    def _check_engine(cls, value: object) -> object:
        if not all(callable(getattr(value, name, None)) for name in ("query", "aquery", "stream")):
            raise TypeError(
                f"engine is a QueryEngine, or a retriever with a model: "
                f"NodeGraphQueryEngine(retriever, llm), not {value!r:.80}"
            )
        return value

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The engine with this one's conditions as a retriever, whose result is the answer."""
        return configured(as_retriever(self.engine), filters=as_filters(self.filter))

    @property
    def OutputType(self) -> Any:
        """A text or a mapping, depending on ``output``."""
        return str if self.output == "text" else dict[str, Any]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the answer to a question.

        Args:
            input: The question, with or without the conversation before it.
            config: As everywhere in LangChain.
            **kwargs: ``k`` and ``child_k`` replace the engine's own. ``filter`` is added to it.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Async version of ``invoke``."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Yield the answer as the model writes it."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Async version of ``stream``."""

        async def inputs() -> AsyncIterator[Any]:
            yield input

        return self.atransform(inputs(), config, **kwargs)

    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Yield the answer to a question that is streamed itself."""
        return self._transform_stream_with_config(input, self._stream, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Async version of ``transform``."""
        return self._atransform_stream_with_config(input, self._astream, config, **kwargs)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool with one argument, the question. ``answer_tool`` cites and filters too."""
        if args_schema is None and arg_types is None:
            arg_types = {self.question_key or "question": str}
        return super().as_tool(args_schema, name=name, description=description, arg_types=arg_types)

    def _request(
        self,
        input: Any,
        *,
        k: int | None = None,
        child_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> tuple[dict[str, Any], int | None]:
        """Return the arguments of the engine, and ``child_k``: the call's over the own ones."""
        check_kwargs("invoke", unknown, ("k", "child_k", "filter"))
        check_count("k", k)
        check_count("child_k", child_k)
        question = read_question(input, self.question_key, self.history_key)
        arguments = {
            "question": question.text,
            "history": question.history,
            "top_k": self.k if k is None else k,
            "filters": merge_filters(self.filter, filter),
        }
        return arguments, self.child_k if child_k is None else child_k

    def _first_chunk(self, answer: Answer) -> AddableDict:
        sources = answer.sources
        context = [to_document(source.result, details=self.details) for source in sources]
        return AddableDict(question=answer.question, context=context)

    def _output(self, answer: Answer) -> Any:
        if self.output == "text":
            return answer.text
        return {**self._first_chunk(answer), "answer": answer.text, **_last_chunk(answer)}

    def _run(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        arguments, child_k = self._request(input, **kwargs)
        with child_runs(config), child_k_override(child_k):
            return self._output(self.engine.query(**arguments))

    async def _arun(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        arguments, child_k = self._request(input, **kwargs)
        async with achild_runs(config):
            with child_k_override(child_k):
                answer = await self.engine.aquery(**arguments)
        return await asyncio.to_thread(self._output, answer)

    def _stream(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        arguments, child_k = self._request(join_chunks(list(input)), **kwargs)

        def chunks() -> Generator[Any, None, None]:
            with (
                child_runs(config),
                child_k_override(child_k),
                self.engine.stream(**arguments) as stream,
            ):
                if self.output == "text":
                    yield from stream
                    return
                first = next(stream, "")  # the sources are known from now on
                yield self._first_chunk(stream.answer)
                for text in chain([first], stream):
                    yield AddableDict(answer=text)
                yield _last_chunk(stream.answer)

        yield from stream_in_context(chunks())

    async def _astream(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        arguments, child_k = self._request(join_chunks([part async for part in input]), **kwargs)

        async def produce(emit: Callable[[Any], None]) -> None:
            async with achild_runs(config):
                with child_k_override(child_k):
                    async with self.engine.astream(**arguments) as stream:
                        if self.output == "text":
                            async for text in stream:
                                emit(text)
                            return
                        text = await anext(stream, "")  # the sources are known from now on
                        emit(await asyncio.to_thread(self._first_chunk, stream.answer))
                        emit(AddableDict(answer=text))
                        async for text in stream:
                            emit(AddableDict(answer=text))
                        emit(_last_chunk(stream.answer))

        async with aclosing(stream_from_task(produce)) as chunks:
            async for chunk in chunks:
                yield chunk


Message = Mapping[str, str]

_QUESTION_KEYS = ("question", "input", "query", "messages")


class QuestionInput(NamedTuple):
    """Hold a question, and the conversation before it.

    Attributes:
        text: The question.
        history: The messages before it, the oldest first, as ``QueryEngine`` takes them.
    """

    text: str
    history: list[Message]


def read_question(input: Any, question_key: str | None, history_key: str) -> QuestionInput:
    """Return the question of a runnable's input, and the conversation before it.

    Args:
        input: A text. A message. Messages, the last of which is the question, or a mapping with
            one of these, and with a history beside it.
        question_key: Where in a mapping the question is. None for ``question``, ``input``,
            ``query`` or ``messages``.
        history_key: Where the history is: messages in any format that LangChain takes.

    Raises:
        TypeError: If the input has no question.
        ValueError: If a mapping has none, or the last message is not the user's.

    Example:
        >>> read_question({"input": "And how long?", "chat_history": [("human", "Nile?")]},
        ...               None, "chat_history")
        QuestionInput(text='And how long?', history=[{'role': 'user', 'content': 'Nile?'}])
    """
    if not isinstance(input, Mapping):
        return _question(input)
    keys = _QUESTION_KEYS if question_key is None else (question_key,)
    key = next((key for key in keys if key in input), None)
    if key is None:
        raise ValueError(
            f"there is no question: the input has the keys {sorted(map(str, input))}, and it is "
            f"looked for under {' or '.join(map(repr, keys))}; name yours with question_key="
        )
    question = _question(input[key])
    history = input.get(history_key)
    if history is None:
        return question
    if isinstance(history, str):
        raise TypeError(
            f"{history_key!r} holds messages, such as ('human', 'What is tea?'), not "
            f"{history!r:.80}"
        )
    return QuestionInput(question.text, [*_history(history), *question.history])


def _question(input: Any) -> QuestionInput:
    if isinstance(input, str):
        return QuestionInput(input, [])
    if isinstance(input, PromptValue):
        input = input.to_messages()
    if isinstance(input, BaseMessage):
        input = [input]
    if not isinstance(input, Sequence) or not input:
        raise TypeError(
            "a question is a text, a message, a list of messages, or a mapping with one of these, "
            f"not {input!r:.80}"
        )
    *history, last = convert_to_messages(input)
    if _role(last) != "user":
        raise ValueError(f"the last message is the user's question, not {last!r:.80}")
    return QuestionInput(_text(last), _history(history))


def _history(messages: Any) -> list[Message]:
    """Return messages as a query engine takes them, without those of tools and the system."""
    turns = [(_role(message), _text(message)) for message in convert_to_messages(messages)]
    return [{"role": role, "content": text} for role, text in turns if role and text]


_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage | AIMessage):
        return "user" if isinstance(message, HumanMessage) else "assistant"
    return _ROLES.get(message.role, "") if isinstance(message, ChatMessage) else ""


def _text(message: BaseMessage) -> str:
    """Return the text of a message, its parts joined. Parts that are no text are left out."""
    if isinstance(message.content, str):
        return message.content
    parts = (part if isinstance(part, str) else part.get("text") for part in message.content)
    return "\n".join(part for part in parts if isinstance(part, str))


def join_chunks(chunks: Sequence[Any]) -> Any:
    """Return an input that was streamed: texts and messages are joined, mappings by key.

    Raises:
        TypeError: If there are no chunks.

    Example:
        >>> join_chunks([{"question": "What "}, {"question": "is tea?"}, {"chat_history": []}])
        {'question': 'What is tea?', 'chat_history': []}
    """
    if not chunks:
        raise TypeError("there is no question: the input is empty")
    if all(isinstance(chunk, Mapping) for chunk in chunks):
        chunks = [AddableDict(chunk) for chunk in chunks]
    return reduce(operator.add, chunks)


def stream_in_context(chunks: Generator[Any, None, Any]) -> Generator[Any, None, None]:
    """Yield the chunks of a generator that runs in a context of its own.

    What it sets in the context (the current run) does not apply to the consumer between two chunks.
    """
    context = contextvars.copy_context()
    end = object()
    try:
        while (chunk := context.run(next, chunks, end)) is not end:
            yield chunk
    finally:
        context.run(chunks.close)


def _last_chunk(answer: Answer) -> AddableDict:
    """Return the fields of an answer's mapping that come after its text."""
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "title": source.title,
            "id": source.result.node.id,
            "document_id": source.result.node.document_id,
            "score": float(source.result.score),
            "text": source.text,
        }
        for source in answer.sources
    ]
    chunk = AddableDict(sources=sources, found=answer.answered, notes=list(answer.notes))
    if answer.quotes:
        chunk["quotes"] = [quote.to_dict() for quote in answer.quotes]
    return chunk
