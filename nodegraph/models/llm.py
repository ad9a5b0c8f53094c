"""Adapt language models from different frameworks, and call them in a uniform way."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

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
)
from .templates import ChatPrompt
from .usage import UNREPORTED, ModelText, usage_of

_CALLS = ("complete", "acomplete", "stream", "astream", "complete_json", "acomplete_json")

_WITH_USAGE = {
    "complete_json": "complete_json_text",
    "acomplete_json": "acomplete_json_text",
    "stream": "stream_texts",
    "astream": "astream_texts",
}

_LLAMA_INDEX = {"stream": "stream_complete", "astream": "astream_complete"}


def _adapted(model: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions that call a model, keyed by the names in ``_CALLS``.

    Raises:
        TypeError: If the model is not supported. The message explains how to pass it.
    """
    check_is_model(
        model, "name it to a server: OpenAIChat({name}), from nodekin.adapters.openai_chat"
    )
    if has(model, "invoke"):
        return _langchain(model)
    if has(model, "complete"):  # models of LlamaIndex and nodekin.adapters
        names = ((name, _LLAMA_INDEX.get(name, name)) for name in _CALLS)
        found = {n: attribute(model, theirs) or attribute(model, n) for n, theirs in names}
        # Unlike the public methods of ``OpenAIChat``, these methods also return the token counts.
        for name, with_usage in _WITH_USAGE.items():
            found[name] = attribute(model, with_usage) or found[name]
        return {name: call for name, call in found.items() if callable(call)}
    if not callable(model):
        raise TypeError(
            "a language model must be a function from a prompt (str) to its answer, a model of "
            'LangChain or LlamaIndex, or OpenAIChat("model-name", client=client) (or '
            f"async_client=client) from nodekin.adapters.openai_chat, got {model!r:.80}"
        )
    if is_async(model):
        return {"complete": partial(finish, model), "acomplete": model}
    return {"complete": model}


def _langchain(model: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions that call a LangChain model with a text or with chat messages."""

    def asks(call: Callable[..., Any]) -> Callable[[str], Any]:
        return lambda prompt: call(
            list(prompt.messages) if isinstance(prompt, ChatPrompt) else prompt
        )

    def by_schema(method: str, prompt: str, schema: Mapping[str, Any]) -> Any:
        titled = {"title": "answer", "description": "The answer.", **schema}
        try:  # The result includes the message, which contains the token counts.
            structured = model.with_structured_output(titled, include_raw=True)
        except (TypeError, NotImplementedError, ValueError):
            structured = model.with_structured_output(titled)
        return asks(getattr(structured, method))(prompt)

    names = {"invoke": "complete", "ainvoke": "acomplete", "stream": "stream", "astream": "astream"}
    calls: dict[str, Callable[..., Any]] = {
        name: asks(getattr(model, method)) for method, name in names.items() if has(model, method)
    }
    with suppress(Exception):  # All models have this method, but base classes raise an error in it.
        model.with_structured_output({"title": "answer", "type": "object", "properties": {}})
        calls["complete_json"] = partial(by_schema, "invoke")
        calls["acomplete_json"] = partial(by_schema, "ainvoke")
    return calls


def _text(answer: Any) -> str | None:
    """Return the text of a string, message or completion, or None if it does not contain text."""
    if answer is None or isinstance(answer, str):
        return answer
    for name in ("text", "content"):  # Reasoning and tool calls are left out.
        if isinstance(value := _field(answer, name), str):
            return str(value)
    message = _field(answer, "message")
    return None if message is None else _text(message)


def _chunk_text(chunk: Any) -> str | None:
    delta = _field(chunk, "delta")  # In LlamaIndex, this is the text that was added.
    return delta if isinstance(delta, str) else _text(chunk)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


@dataclass(frozen=True, slots=True)
class LLM:
    """A language model with a name, which can be called like a function.

    All parameters for language models also accept models that are not wrapped. Use ``LLM`` to give
    a model a name.

    Args:
        model: A sync or async function that takes a prompt and returns an answer, a LangChain or
            LlamaIndex model, ``OpenAIChat``, or an object with a method ``complete`` and optionally
            ``acomplete``, ``stream``, ``astream`` and ``complete_json``. If an async function is
            called from sync code, it runs in a new event loop.
        name: The name under which answers are cached. It also identifies the model in node groups,
            which are rebuilt if the name changes. A name is required if the model is a function and
            answers are stored in a file. Defaults to the model's name, or to its class, model name
            and settings, without API keys, addresses and counters. Set a name if these do not
            distinguish two models.

    Raises:
        TypeError: If the model is not supported. The message explains how to pass it.

    Example:
        >>> llm = LLM(lambda prompt: prompt.upper(), "loud")
        >>> llm.complete("hello"), llm.name
        ('HELLO', 'loud')
    """

    model: Any = field(compare=False, repr=False)
    name: str = ""
    _calls: dict[str, Callable[..., Any]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_calls", _adapted(self.model))
        object.__setattr__(self, "name", self.name or model_name(self.model))

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt. See ``complete``."""
        return self.complete(prompt)

    def __reduce__(self) -> tuple[type[LLM], tuple[None, str]]:
        # This is used in fingerprints: the name identifies the model.
        return LLM, (None, self.name)

    def __reduce_ex__(self, protocol: object) -> tuple[type[LLM], tuple[Any, str]]:
        return LLM, (self.model, self.name)

    @property
    def structured(self) -> bool:
        """True if the model supports JSON schemas."""
        return "complete_json" in self._calls

    def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> ModelText:
        """Return the answer to a prompt, as a string with an attribute ``usage``.

        Args:
            prompt: The prompt for the model.
            schema: A JSON schema for the answer. If it is given and the model supports it, the
                answer is JSON, which may be invalid. Otherwise the answer is plain text.

        Raises:
            ModelError: If the model fails, or if its answer does not contain text.
        """
        if schema is not None and self.structured:
            # LangChain returns None if the model did not call a tool. Some models do not support
            # schemas.
            with suppress(NotImplementedError), self._failing(prompt):
                if not _is_missing(value := self._calls["complete_json"](prompt, schema)):
                    return _json_text(value)
        with self._failing(prompt):
            return _checked_text(self._calls["complete"](prompt))

    async def acomplete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> ModelText:
        """Async version of ``complete``.

        If the model has no async function, it is called in a thread.
        """
        if schema is not None and "acomplete_json" in self._calls:
            with suppress(NotImplementedError), self._failing(prompt):
                if not _is_missing(value := await self._calls["acomplete_json"](prompt, schema)):
                    return _json_text(value)
        elif schema is not None and self.structured:
            return await in_thread(self.complete, prompt, schema)
        if "acomplete" not in self._calls:
            return await in_thread(self.complete, prompt)
        with self._failing(prompt):
            return _checked_text(await self._calls["acomplete"](prompt))

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer in parts, or as a whole if the model does not support streaming.

        If the model reports token counts, they are in the attribute ``usage`` of the last part,
        which may be empty.

        Raises:
            ModelError: If the model fails, which may happen in the middle of the answer.
        """
        if "stream" not in self._calls:
            yield self.complete(prompt)
            return
        with self._failing(prompt):
            usage = UNREPORTED
            for chunk in self._calls["stream"](prompt):
                reported = usage_of(chunk)
                usage = usage if reported == UNREPORTED else reported
                if text := _chunk_text(chunk):
                    yield text
            if usage != UNREPORTED:
                yield ModelText("", usage)

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Async version of ``stream``."""
        if "astream" not in self._calls:
            yield await self.acomplete(prompt)
            return
        with self._failing(prompt):
            stream = self._calls["astream"](prompt)
            if inspect.isawaitable(stream):  # In LlamaIndex, the stream must be awaited.
                stream = await stream
            usage = UNREPORTED
            async for chunk in stream:
                reported = usage_of(chunk)
                usage = usage if reported == UNREPORTED else reported
                if text := _chunk_text(chunk):
                    yield text
            if usage != UNREPORTED:
                yield ModelText("", usage)

    @contextmanager
    def _failing(self, prompt: str) -> Iterator[None]:
        """Convert any exception to a ``ModelError`` with the model's name and the prompt."""
        try:
            yield
        except (ModelError, NotImplementedError):
            raise
        except Exception as error:
            # contextlib would treat a StopIteration as the end of this generator.
            cause = RuntimeError("the model ended") if isinstance(error, StopIteration) else error
            # Clients define their own exception classes for timeouts, such as APITimeoutError.
            late = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
            raise (ModelTimeoutError if late else ModelError)(
                f"the language model {self.name!r} failed: {type(error).__name__}: {error} (on the "
                f"prompt {textwrap.shorten(prompt, 60, placeholder=' ...')!r})"
            ) from cause


def as_llm(model: object, *, stored: str = "") -> LLM:
    """Convert any supported model, or the name of a model, to an ``LLM``.

    Args:
        model: The language model, or its name.
        stored: A code snippet for the error message, in which ``{model}`` is replaced by the model.
            If it is not empty, answers are stored in a file, so a function must have a name.

    Raises:
        TypeError: If the model is not supported. The message explains how to pass it.
        ModelError: If the named model requires a server and none is configured.
        ImportError: If the named model requires a package that is not installed.
        ValueError: If a function has no name although answers are stored in a file.

    Example:
        >>> as_llm(str.upper).complete("tea")
        'TEA'
    """
    model = named_model(model, "chat")
    llm = model if isinstance(model, LLM) else LLM(model)
    if stored:
        check_named(llm.name, stored.replace("{model}", 'LLM({function}, name="my-model")'))
    return llm


def _checked_text(answer: Any) -> ModelText:
    if (text := _text(answer)) is None:
        raise TypeError(f"the model's answer has no text: {answer!r:.200}")
    return ModelText(text, usage_of(answer))


def _has_message(value: Any) -> bool:
    """Return whether a value is the result of a LangChain call that includes the raw message."""
    return isinstance(value, Mapping) and value.keys() == {"raw", "parsed", "parsing_error"}


def _is_missing(value: Any) -> bool:
    return value is None or (_has_message(value) and value["parsed"] is None)


def _json_text(value: Any) -> ModelText:
    """Convert a JSON value to a text."""
    usage = usage_of(value) if isinstance(value, str) else UNREPORTED
    if _has_message(value):
        usage = usage_of(value["raw"])
        value = value["parsed"]
    if isinstance(value, str):
        return ModelText(value, usage)
    return ModelText(json.dumps(value, ensure_ascii=False, default=str), usage)
