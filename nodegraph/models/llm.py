"""Adapt language models of all frameworks, and call them."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ..concurrency import in_thread
from ..errors import ModelError, ModelTimeoutError
from .model_objects import (
    attribute,
    check_is_model,
    check_named,
    finish,
    has,
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
    """The functions of a model, from a prompt to an answer in any form.

    ``structured`` takes a prompt and a JSON schema, and returns a value of that schema.
    """

    complete: Callable[[str], Any]
    acomplete: Callable[[str], Awaitable[Any]] | None = None
    stream: Callable[[str], Any] | None = None
    astream: Callable[[str], Any] | None = None
    structured: Callable[[str, Mapping[str, Any]], Any] | None = None
    astructured: Callable[[str, Mapping[str, Any]], Awaitable[Any]] | None = None


def adapt_llm(model: Any) -> LLMCalls:
    """Return the functions of a model of any supported kind.

    Raises:
        TypeError: If the model is not supported. The message contains the remedy.
    """
    _check_model(model)
    if has(model, "invoke"):  # LangChain
        return _langchain(model)
    if has(model, "complete"):  # LlamaIndex and nodekin.adapters
        streams = (("stream_complete", "stream"), ("astream_complete", "astream"))
        others = (("acomplete",), *streams, ("complete_json",), ("acomplete_json",))
        return LLMCalls(model.complete, *(_first(model, *names) for names in others))
    if not callable(model):
        raise TypeError(
            "a language model must be a function from a prompt (str) to its answer, a model of "
            f"LangChain or LlamaIndex, or {_CHAT.format('...')}, got {model!r:.80}"
        )
    if is_async(model):
        return LLMCalls(partial(finish, model), model)
    return LLMCalls(model)


def text_of(answer: Any) -> str:
    """Return the text of an answer: a text, a message or a completion.

    The text parts of a message are joined. Reasoning and tool calls are left out.

    Raises:
        TypeError: If the answer has no text.
    """
    text = _text(answer)
    if text is None:
        raise TypeError(f"the model's answer has no text: {answer!r:.200}")
    return text


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
    """Return the input of a LangChain model: a text, or the messages of a ``ChatPrompt``."""
    return list(prompt.messages) if isinstance(prompt, ChatPrompt) else prompt


def _supports_schema(model: Any) -> bool:
    """Return whether a LangChain model supports JSON schemas.

    All models have the method. The base class of chat models implements it with tools, and
    requires that the model overrides ``bind_tools``.
    """
    if not has(model, "with_structured_output"):
        return False
    owner = owner_of(model, "with_structured_output")
    if owner == "BaseChatModel":
        return owner_of(model, "bind_tools") != "BaseChatModel"
    return owner != "BaseLanguageModel"


def _titled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields that LangChain requires to a schema."""
    return {"title": "answer", "description": "The answer.", **schema}


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
    """Return the text of a message part, None for other kinds of parts."""
    if isinstance(part, str):
        return part
    kind, text = _field(part, "type"), _field(part, "text")
    if kind not in (None, "text", "output_text"):
        return None
    return text if isinstance(text, str) else None


def _chunk_text(chunk: Any) -> str | None:
    delta = _field(chunk, "delta")  # LlamaIndex: the added text
    return delta if isinstance(delta, str) else _text(chunk)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


@dataclass(frozen=True, slots=True)
class LLM:
    """A language model with a name. It can be called as a function from a prompt to a text.

    Parameters for language models also accept bare models. Use ``LLM`` to name the model.

    Args:
        model: A function from a prompt to an answer, also an async function, a LangChain or
            LlamaIndex model, ``OpenAIChat``, or an object with ``complete`` and optionally
            ``acomplete``, ``stream``, ``astream`` and ``complete_json``. Sync calls of an async
            function run in a new event loop each time.
        name: The cache key of answers, and the identity of the model in node groups: groups are
            rebuilt if the name changes. Required for a function if answers are stored in a file.
            Defaults to the model's name, or its class, model name and settings without keys,
            addresses and counters. Set a name if these do not distinguish two models.

    Raises:
        TypeError: If the model is not supported. The message contains the remedy.

    Example:
        >>> llm = LLM(lambda prompt: prompt.upper(), "loud")
        >>> llm.complete("hello"), llm.name
        ('HELLO', 'loud')
    """

    model: Any = field(compare=False, repr=False)
    name: str = ""
    _calls: LLMCalls = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"a language model's name must be a text, got {self.name!r:.80}")
        object.__setattr__(self, "_calls", adapt_llm(self.model))
        object.__setattr__(self, "name", self.name or model_name(self.model))

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt. See ``complete``."""
        return self.complete(prompt)

    def __reduce__(self) -> tuple[type[LLM], tuple[None, str]]:
        # For fingerprints: the name identifies the model.
        return LLM, (None, self.name)

    def __reduce_ex__(self, protocol: object) -> tuple[type[LLM], tuple[Any, str]]:
        return LLM, (self.model, self.name)

    @property
    def structured(self) -> bool:
        """Whether the model supports JSON schemas."""
        return self._calls.structured is not None

    def complete(self, prompt: str) -> str:
        """Return the answer to a prompt.

        Raises:
            ModelError: If the model fails, or its answer has no text.
        """
        with self._failing(prompt):
            return text_of(self._calls.complete(prompt))

    async def acomplete(self, prompt: str) -> str:
        """Async version of ``complete``. Uses a thread if the model has no async function."""
        if self._calls.acomplete is None:
            return await in_thread(self.complete, prompt)
        with self._failing(prompt):
            return text_of(await self._calls.acomplete(prompt))

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the parts of the answer, or the whole answer if the model does not stream.

        Raises:
            ModelError: If the model fails, possibly in the middle of the answer.
        """
        if self._calls.stream is None:
            yield self.complete(prompt)
            return
        with self._failing(prompt):
            for chunk in self._calls.stream(prompt):
                if text := _chunk_text(chunk):
                    yield text

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Async version of ``stream``."""
        if self._calls.astream is None:
            yield await self.acomplete(prompt)
            return
        with self._failing(prompt):
            stream = self._calls.astream(prompt)
            if inspect.isawaitable(stream):  # LlamaIndex
                stream = await stream
            async for chunk in stream:
                if text := _chunk_text(chunk):
                    yield text

    def json_text(self, prompt: str, schema: Mapping[str, Any]) -> str:
        """Return JSON as a text, or the plain answer if the model does not support the schema.

        The text may be invalid JSON, if the model does not follow the schema.

        Raises:
            ModelError: If the model fails.
        """
        if self._calls.structured is not None:
            # LangChain returns None if the model called no tool. Some models support no schemas.
            with suppress(NotImplementedError), self._failing(prompt):
                if (value := self._calls.structured(prompt, schema)) is not None:
                    return _json_text(value)
        return self.complete(prompt)

    async def ajson_text(self, prompt: str, schema: Mapping[str, Any]) -> str:
        """Async version of ``json_text``."""
        if self._calls.astructured is not None:
            with suppress(NotImplementedError), self._failing(prompt):
                if (value := await self._calls.astructured(prompt, schema)) is not None:
                    return _json_text(value)
        elif self._calls.structured is not None:
            return await in_thread(self.json_text, prompt, schema)
        return await self.acomplete(prompt)

    @contextmanager
    def _failing(self, prompt: str) -> Iterator[None]:
        """Convert errors to ``ModelError`` with the model's name and the prompt."""
        try:
            yield
        except (ModelError, NotImplementedError):
            raise
        except Exception as error:
            # contextlib would treat a StopIteration as the end of this generator.
            cause = RuntimeError("the model ended") if isinstance(error, StopIteration) else error
            # Clients have other timeout classes: APITimeoutError, ReadTimeout.
            late = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
            raise (ModelTimeoutError if late else ModelError)(
                f"the language model {self.name!r} failed: {type(error).__name__}: {error} (on the "
                f"prompt {textwrap.shorten(prompt, 60, placeholder=' ...')!r})"
            ) from cause


def as_llm(model: object, *, stored: str = "") -> LLM:
    """Return a model of any supported kind, or the model with a name, as an ``LLM``.

    Args:
        model: The model, or its name.
        stored: If answers are stored in a file: the expression that stores them, with
            ``{model}`` for the model. A function then needs a name.

    Raises:
        TypeError: If the model is not supported. The message contains the remedy.
        ModelError: If the named model needs a server and none is configured.
        ValueError: If a function has no name and needs one.

    Example:
        >>> as_llm(str.upper).complete("tea")
        'TEA'
    """
    model = named_model(model, "chat")
    llm = model if isinstance(model, LLM) else LLM(model)
    if stored:
        check_named(llm.name, stored.replace("{model}", 'LLM({function}, name="my-model")'))
    return llm


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
