"""Recognise a language model of any framework, and say how to call it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from .chat_prompt import ChatPrompt
from .embedder_adapters import attribute, check_is_model, finish, has, is_async

T = TypeVar("T")

_CHAT = 'OpenAIChat("model-name", {}), from nodekin.adapters.openai_chat'


@dataclass(frozen=True, slots=True)
class LLMCalls:
    """Hold the calls that a model offers; each takes a prompt and returns an answer of any kind.

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
        TypeError: If it is of none; the error says what to give instead.
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

    Of a message in parts the texts are joined; what the model thought, and tools it would call,
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
    does = _owner(model, "with_structured_output")
    if does == "BaseChatModel":
        return _owner(model, "bind_tools") != "BaseChatModel"
    return does != "BaseLanguageModel"


def _owner(model: Any, method: str) -> str:
    """Return the name of the class that a model has a method from, empty where it is its own."""
    owners = (cls.__name__ for cls in type(model).__mro__ if method in vars(cls))
    return next(owners, "")


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
    for field in ("content", "text"):
        value = _field(answer, field)
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
