"""Hold a language model of any framework, and call it."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from ..errors import ModelError, ModelTimeoutError, NoJsonError
from .model_objects import (
    attribute,
    check_is_model,
    finish,
    has,
    in_thread,
    is_async,
    model_name,
    named_model,
    owner_of,
)
from .templates import ChatPrompt

T = TypeVar("T")

_CHAT = 'OpenAIChat("model-name", {}), from nodekin.adapters.openai_chat'


@dataclass(frozen=True, slots=True)
class LLMCalls:
    """Hold the calls that a model offers. Each takes a prompt and returns an answer of any kind.

    ``structured`` takes a prompt and a JSON schema, and returns a value by that schema.
    """

    complete: Callable[[str], Any]
    acomplete: Callable[[str], Awaitable[Any]] | None = None
    stream: Callable[[str], Any] | None = None
    astream: Callable[[str], Any] | None = None
    structured: Callable[[str, Mapping[str, Any]], Any] | None = None
    astructured: Callable[[str, Mapping[str, Any]], Awaitable[Any]] | None = None


def adapt_llm(model: Any) -> LLMCalls:
    """Return how to call a model of any supported kind.

    Raises:
        TypeError: If it is of none. The error says what to give instead.
    """
    _check_model(model)
    if has(model, "invoke"):  # LangChain
        return _langchain(model)
    if has(model, "complete"):  # LlamaIndex, and those in nodekin.adapters
        streams = (("stream_complete", "stream"), ("astream_complete", "astream"))
        others = (("acomplete",), *streams, ("complete_json",), ("acomplete_json",))
        return LLMCalls(model.complete, *(_first(model, *names) for names in others))
    if has(model, "chat"):
        return _chatting(model)
    if not callable(model):
        raise TypeError(
            f"{model!r:.80} is no language model; give a function from a prompt (str) to its "
            "answer, a model of LangChain or LlamaIndex, or " + _CHAT.format("...")
        )
    if is_async(model):
        return LLMCalls(partial(finish, model), model)
    return LLMCalls(model)


def text_of(answer: Any) -> str:
    """Return the text of what a model answered: a text, a message, a completion.

    Of a message in parts the texts are joined. What the model thought, and tools it would call,
    are left out.

    Raises:
        TypeError: If there is no text in it.
    """
    text = _text(answer)
    if text is None:
        raise TypeError(f"the model's answer has no text: {answer!r:.200}")
    return text


def stream_texts(stream: Any) -> Iterator[str]:
    """Yield the texts of a stream, whatever its chunks are."""
    for chunk in stream:
        if text := _chunk_text(chunk):
            yield text


async def astream_texts(stream: Any) -> AsyncIterator[str]:
    """Yield the texts of an asynchronous stream, which may have to be awaited first."""
    if inspect.isawaitable(stream):  # LlamaIndex
        stream = await stream
    async for chunk in stream:
        if text := _chunk_text(chunk):
            yield text


def _langchain(model: Any) -> LLMCalls:
    def structured(prompt: str, schema: Mapping[str, Any]) -> Any:
        return model.with_structured_output(_titled(schema)).invoke(_input(prompt))

    async def astructured(prompt: str, schema: Mapping[str, Any]) -> Any:
        return await model.with_structured_output(_titled(schema)).ainvoke(_input(prompt))

    others: list[Any] = [
        _with_messages(_first(model, name)) for name in ("ainvoke", "stream", "astream")
    ]
    if _supports_schema(model):
        others += [structured, astructured]
    return LLMCalls(lambda prompt: model.invoke(_input(prompt)), *others)


def _with_messages(call: Callable[..., Any] | None) -> Callable[[str], Any] | None:
    return None if call is None else lambda prompt: call(_input(prompt))


def _input(prompt: str) -> str | list[tuple[str, str]]:
    """Return what a model of LangChain takes: the messages of a prompt that has some."""
    return list(prompt.messages) if isinstance(prompt, ChatPrompt) else prompt


def _supports_schema(model: Any) -> bool:
    """Tell whether a model of LangChain can be held to a schema: all have the method, some raise.

    The base class of chat models does it by tools, which a model has to bind in a way of its own.
    """
    if not has(model, "with_structured_output"):
        return False
    owner = owner_of(model, "with_structured_output")
    if owner == "BaseChatModel":
        return owner_of(model, "bind_tools") != "BaseChatModel"
    return owner != "BaseLanguageModel"


def _titled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the fields that LangChain requires."""
    return {"title": "answer", "description": "The answer.", **schema}


def _chatting(model: Any) -> LLMCalls:
    def messages(prompt: str) -> list[dict[str, str]]:
        roles = prompt.messages if isinstance(prompt, ChatPrompt) else [("user", prompt)]
        return [{"role": role, "content": text} for role, text in roles]

    achat = _first(model, "achat")
    return LLMCalls(
        lambda prompt: model.chat(messages(prompt)),
        None if achat is None else lambda prompt: achat(messages(prompt)),
    )


def _check_model(model: Any) -> None:
    check_is_model(
        model, "name it to a server: OpenAIChat({name}), from nodekin.adapters.openai_chat"
    )
    create = attribute(attribute(attribute(model, "chat"), "completions"), "create")
    if callable(create):
        its = type(model).__name__.startswith("Async")
        argument = "async_client=client" if its or is_async(create) else "client=client"
        raise TypeError(
            f"{model!r:.60} is an OpenAI client, which does not say which model to use; write "
            + _CHAT.format(argument)
        )


def _first(model: object, *methods: str) -> Callable[..., Any] | None:
    return next((getattr(model, method) for method in methods if has(model, method)), None)


def _text(answer: Any) -> str | None:
    if answer is None or isinstance(answer, str):
        return answer
    if isinstance(answer, list | tuple):
        texts = [_part(part) for part in answer]
        return "".join(text for text in texts if text is not None) if texts else ""
    for name in ("content", "text"):
        value = _field(answer, name)
        if isinstance(value, str | list | tuple):
            return _text(value)
    choices = _field(answer, "choices")
    inner = choices[0] if isinstance(choices, list | tuple) and choices else None
    inner = _field(answer, "message") if inner is None else inner
    return None if inner is None or inner is answer else _text(inner)


def _part(part: Any) -> str | None:
    """Return the text of a part of a message, None where it is of another kind."""
    if isinstance(part, str):
        return part
    kind, text = _field(part, "type"), _field(part, "text")
    if kind not in (None, "text", "output_text"):
        return None
    return text if isinstance(text, str) else None


def _chunk_text(chunk: Any) -> str | None:
    delta = _field(chunk, "delta")  # LlamaIndex: what has been added to the text so far
    return delta if isinstance(delta, str) else _text(chunk)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


_UNSUPPORTED: Any = object()


@dataclass(frozen=True, slots=True)
class LLM:
    """Hold a language model: how it is called, and its name.

    Every parameter for a language model accepts the model itself too. Choose this class to name
    the model, or to add an async form. It can be called like a function from a prompt to a text.

    Args:
        model: A function from a prompt to its answer, also an async one. A model of LangChain or
            LlamaIndex, ``OpenAIChat``, or any object with ``complete`` (and ``acomplete``,
            ``stream``, ``astream``, ``complete_json`` where it has them). An async function that
            is called from code that is not runs in an event loop of its own each time.
        name: Names the model. What is made with it is kept under this name: under another name it
            is made again. By default it comes from the model's class, name and settings, or from
            a function's code and what it uses, not from keys, addresses and counters. Give one if
            that does not tell two models apart.
        amodel: The same model in an async form, where that is another object.

    Raises:
        TypeError: If there is no model in it. The error says what to give instead.

    Example:
        >>> llm = LLM(lambda prompt: prompt.upper(), "loud")
        >>> llm.complete("hello"), llm.name
        ('HELLO', 'loud')
    """

    model: Any = field(compare=False, repr=False)
    name: str = ""
    _: KW_ONLY
    amodel: Any = field(default=None, compare=False, repr=False)
    _calls: LLMCalls = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"a language model's name is a text, not {self.name!r:.80}")
        calls = adapt_llm(self.model)
        if self.amodel is not None:
            other = adapt_llm(self.amodel)
            if other.acomplete is None:
                raise TypeError(
                    f"amodel={self.amodel!r:.80} has no async form; leave it out, and the model is "
                    "asked in a thread"
                )
            names = ("acomplete", "astream", "astructured")
            calls = replace(calls, **{name: getattr(other, name) for name in names})
        object.__setattr__(self, "name", self.name or model_name(self.model))
        object.__setattr__(self, "_calls", calls)

    def __call__(self, prompt: str) -> str:
        """Ask the model. See ``complete``."""
        return self.complete(prompt)

    def __reduce__(self) -> tuple[type[LLM], tuple[None, str]]:
        # What fingerprints take it for: a group made with the same model is the same group.
        return LLM, (None, self.name)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., LLM], tuple[Any, ...]]:
        return partial(LLM, amodel=self.amodel), (self.model, self.name)

    @property
    def structured(self) -> bool:
        """Whether the model can be held to a JSON schema."""
        return self._calls.structured is not None

    def complete(self, prompt: str) -> str:
        """Return the model's answer to a prompt.

        Raises:
            ModelError: If the model fails, or its answer has no text.
        """
        with self._failing(prompt):
            return text_of(self._calls.complete(prompt))

    async def acomplete(self, prompt: str) -> str:
        """Async version of ``complete``, in a thread if there is no async form.

        Raises:
            ModelError: If the model fails, or its answer has no text.
        """
        if self._calls.acomplete is None:
            return await in_thread(self.complete, prompt)
        with self._failing(prompt):
            return text_of(await self._calls.acomplete(prompt))

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer as it comes. As a whole where the model can't stream.

        Raises:
            ModelError: If the model fails, also in the middle of its answer.
        """
        if self._calls.stream is None:
            yield self.complete(prompt)
            return
        with self._failing(prompt):
            yield from stream_texts(self._calls.stream(prompt))

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the answer as it comes without blocking. As a whole where it can't stream so.

        Raises:
            ModelError: If the model fails, also in the middle of its answer.
        """
        if self._calls.astream is None:
            yield await self.acomplete(prompt)
            return
        with self._failing(prompt):
            async for chunk in astream_texts(self._calls.astream(prompt)):
                yield chunk

    def json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        """Return a JSON value: by the schema where the model offers that, else as it answers.

        The prompt should describe the value all the same. Check the result.

        Raises:
            ModelError: If the model fails, or there is no JSON in its answer.
        """
        from .output.json_values import parse_json  # which most programs don't need

        with self._failing(prompt):
            return parse_json(self.json_text(prompt, schema))

    async def ajson(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        """Async version of ``json``.

        Raises:
            ModelError: If the model fails, or there is no JSON in its answer.
        """
        from .output.json_values import parse_json

        with self._failing(prompt):
            return parse_json(await self.ajson_text(prompt, schema))

    def json_text(self, prompt: str, schema: Mapping[str, Any]) -> str:
        """Return an answer in JSON, as a text, where the model offers that, else its own words.

        Raises:
            ModelError: If the model fails.
        """
        try:
            value = self._structured(prompt, schema)
        except NoJsonError as error:  # to ask again would be to pay again
            return error.answer
        return self.complete(prompt) if value is _UNSUPPORTED else _json_text(value)

    async def ajson_text(self, prompt: str, schema: Mapping[str, Any]) -> str:
        """Async version of ``json_text``.

        Raises:
            ModelError: If the model fails.
        """
        try:
            value = await self._astructured(prompt, schema)
        except NoJsonError as error:
            return error.answer
        return await self.acomplete(prompt) if value is _UNSUPPORTED else _json_text(value)

    def _structured(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        """Return a value by a schema, ``_UNSUPPORTED`` where the model can't be held to one."""
        if self._calls.structured is not None:
            # All models of LangChain have the method, and some raise this error.
            with suppress(NotImplementedError), self._failing(prompt):
                value = self._calls.structured(prompt, schema)
                # LangChain returns None if the model answered in words and called no tool.
                return _UNSUPPORTED if value is None else value
        return _UNSUPPORTED

    async def _astructured(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        if self._calls.astructured is None:
            return await in_thread(self._structured, prompt, schema)
        with suppress(NotImplementedError), self._failing(prompt):
            value = await self._calls.astructured(prompt, schema)
            return _UNSUPPORTED if value is None else value
        return _UNSUPPORTED

    @contextmanager
    def _failing(self, prompt: str) -> Iterator[None]:
        """Raise errors of the block as a ``ModelError`` with the model's name and the prompt."""
        try:
            yield
        except (ModelError, NotImplementedError):
            raise
        except Exception as error:
            # With a StopIteration as its cause contextlib would take it for that.
            cause = RuntimeError("the model ended") if isinstance(error, StopIteration) else error
            # Clients have errors of their own for it: APITimeoutError, ReadTimeout.
            late = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
            raise (ModelTimeoutError if late else ModelError)(
                f"the language model {self.name!r} failed: {type(error).__name__}: {error} (on the "
                f"prompt {textwrap.shorten(prompt, 60, placeholder=' ...')!r})"
            ) from cause


def as_llm(model: object) -> LLM:
    """Return a language model of any supported kind, or the one of a name, as an ``LLM``.

    Raises:
        TypeError: If it is no model. The error says what to give instead.
        ModelError: If a name needs a server, and none is known.

    Example:
        >>> as_llm(str.upper).complete("tea")
        'TEA'
    """
    model = named_model(model, "chat")
    return model if isinstance(model, LLM) else LLM(model)


def _json_text(value: Any) -> str:
    """Return a JSON value as text. A value that JSON has no type for as its ``str``."""
    return json.dumps(value, ensure_ascii=False, default=str)
