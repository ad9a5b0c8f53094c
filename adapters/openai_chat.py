"""Ask any chat model behind a server that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..nodegraph import ModelError
from .extras import extra
from .openai import Clients

with extra("openai", "openai"):
    from openai import AsyncOpenAI, BadRequestError, OpenAI

Prompt = str | Sequence[Mapping[str, Any]]
"""What the user says, or a conversation: ``[{"role": "user", "content": "..."}, ...]``."""


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """Count what a model was asked: requests that were answered, tokens in and out."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class OpenAIChat:
    """Ask a model behind OpenAI's ``/v1/chat/completions``: OpenAI itself, vLLM, Ollama, others.

    ``LLMExtractor(OpenAIChat("gpt-4o-mini"), "summary")``. Waiting and trying again are the
    client's (``OpenAI(timeout=..., max_retries=...)``).

    Args:
        model: The model.
        client: What calls the server, also an ``AzureOpenAI``. Left out, one is made, which reads
            ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` where the next two do not say it.
        base_url: The server's address, with ``/v1``.
        api_key: The key for it.
        async_client: What calls the server for the async methods, in one event loop. Left out,
            one is made for each event loop, unless you give a client: then that one is used in a
            thread.
        system: What the model is told before every prompt that is no conversation.
        temperature: How freely it chooses words; None leaves it to the server, as some models want.
        max_tokens: How long an answer may get; one that is cut off there is an error.
        name: What is made with it is kept under this; ``"openai"``, the model and the settings if
            left out. The server's address is no part of it: name it where two servers run
            different models under one name.
        **options: Anything else for the request: ``seed=1``, ``max_completion_tokens=500``,
            ``extra_body={...}``.

    Raises:
        TypeError: If a client is not what it should be.
        ValueError: If the model has no name, a number is out of range, or there is both a client
            and what to make one of.
        openai.OpenAIError: If there is no key.

    Example:
        >>> chat = OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1", api_key="-")
        >>> chat.name, chat.usage.requests
        ('openai qwen3 temperature=0', 0)
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        system: str | None = None,
        temperature: float | None = 0,
        max_tokens: int | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ValueError(f"model is the name of a model, not {model!r:.80}")
        if max_tokens is not None and max_tokens < 1:
            raise ValueError(f"max_tokens={max_tokens!r} has to be 1 or more")
        if temperature is not None and not temperature >= 0:
            raise ValueError(f"temperature={temperature!r} has to be 0 or more, or None")
        if client is not None and (base_url is not None or api_key is not None):
            raise ValueError("base_url and api_key are the client's; give them, or a client")
        settings = {"temperature": temperature, "max_tokens": max_tokens, **options}
        self.model = model
        self.system = system
        self.settings = {key: value for key, value in settings.items() if value is not None}
        self.name = name or _name(model, system, self.settings)
        self._clients = Clients(client, async_client, base_url=base_url, api_key=api_key)
        self._client = self._clients.client
        self._lock = threading.Lock()
        self._usage = ChatUsage()

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r})"

    @property
    def usage(self) -> ChatUsage:
        """What the server has answered and counted so far."""
        return self._usage

    def complete(self, prompt: Prompt) -> str:
        """Return the model's answer.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            ModelError: If there is no whole answer in what it sends.
        """
        return self._read(self._client.chat.completions.create(**self._asked(prompt)))

    async def acomplete(self, prompt: Prompt) -> str:
        """Return the model's answer without blocking the event loop."""
        client = self._clients.of_loop()
        if client is None:
            return await asyncio.to_thread(self.complete, prompt)
        return self._read(await client.chat.completions.create(**self._asked(prompt)))

    def complete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Return a value by a JSON schema (an object's), to which the server holds the model.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            NotImplementedError: If it does not offer this.
            ModelError: If there is no whole answer, or no JSON, in what it sends.
        """
        try:
            answer = self._client.chat.completions.create(**self._asked(prompt, schema))
        except BadRequestError as error:
            raise self._refused(error) from error
        return self._value(self._read(answer))

    async def acomplete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Return the same without blocking the event loop."""
        client = self._clients.of_loop()
        if client is None:
            return await asyncio.to_thread(self.complete_json, prompt, schema)
        try:
            answer = await client.chat.completions.create(**self._asked(prompt, schema))
        except BadRequestError as error:
            raise self._refused(error) from error
        return self._value(self._read(answer))

    def stream(self, prompt: Prompt) -> Iterator[str]:
        """Yield the answer as it comes.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            ModelError: If it ends before the answer does.
        """
        end = None
        with self._client.chat.completions.create(**self._asked(prompt), **_STREAMED) as chunks:
            for chunk in chunks:
                text, end = self._piece(chunk, end)
                if text:
                    yield text
        self._check_end(end)

    async def astream(self, prompt: Prompt) -> AsyncIterator[str]:
        """Yield the answer as it comes without blocking the event loop.

        With a client but no async client of yours, as a whole.
        """
        client = self._clients.of_loop()
        if client is None:
            yield await self.acomplete(prompt)
            return
        end = None
        async with await client.chat.completions.create(
            **self._asked(prompt), **_STREAMED
        ) as chunks:
            async for chunk in chunks:
                text, end = self._piece(chunk, end)
                if text:
                    yield text
        self._check_end(end)

    def _asked(self, prompt: Prompt, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        messages = list(prompt) if not isinstance(prompt, str) else [_says("user", prompt)]
        if isinstance(prompt, str) and self.system is not None:
            messages.insert(0, _says("system", self.system))
        asked: dict[str, Any] = {"model": self.model, "messages": messages, **self.settings}
        if schema is not None:
            named = {"name": "answer", "schema": dict(schema), "strict": True}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        return asked

    def _read(self, answer: Any) -> str:
        choices: Any = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            raise ModelError(
                f"the server's answer for model {self.model!r} has no message: {answer!r:.200}; it "
                "does not speak OpenAI's protocol: give a function of your own to LLM"
            )
        self._count(answer)
        if refusal := getattr(message, "refusal", None):
            raise ModelError(f"model {self.model!r} refused: {refusal}")
        self._check_end(choices[0].finish_reason or "stop")
        if not isinstance(message.content, str):
            raise ModelError(f"model {self.model!r} answered without a text: {message!r:.200}")
        return message.content

    def _piece(self, chunk: Any, end: str | None) -> tuple[str | None, str | None]:
        """Return the text of a chunk, and why the answer ends if it does."""
        if getattr(chunk, "usage", None) is not None:
            self._count(chunk)
        if not getattr(chunk, "choices", None):
            return None, end
        choice = chunk.choices[0]
        return getattr(choice.delta, "content", None), choice.finish_reason or end

    def _check_end(self, reason: str | None) -> None:
        if reason is None:
            raise ModelError(f"the stream of model {self.model!r} ended before its answer did")
        if reason == "length":
            limits = "max_tokens" if "max_tokens" in self.settings else "what the server allows"
            raise ModelError(
                f"the answer of model {self.model!r} was cut off at {limits}; allow more, or ask "
                "for less"
            )
        if reason == "content_filter":
            raise ModelError(f"the answer of model {self.model!r} was stopped by a content filter")

    def _value(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise ModelError(
                f"model {self.model!r} was asked for JSON and answered {text!r:.200}"
            ) from error

    def _refused(self, error: BadRequestError) -> Exception:
        """Tell a server that knows no schemas from one that does not like this request."""
        said = str(error).casefold()
        if any(word in said for word in ("response_format", "json_schema", "structured")):
            return NotImplementedError(
                f"the server of model {self.model!r} takes no JSON schema: {error}"
            )
        return error

    def _count(self, answer: Any) -> None:
        usage = getattr(answer, "usage", None)
        asked = getattr(usage, "prompt_tokens", None) or 0
        told = getattr(usage, "completion_tokens", None) or 0
        with self._lock:
            old = self._usage
            self._usage = ChatUsage(
                old.requests + 1, old.prompt_tokens + asked, old.completion_tokens + told
            )


_STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


def _says(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _name(model: str, system: str | None, settings: Mapping[str, Any]) -> str:
    """Name a model by what changes its answers."""
    told = {key: value for key, value in settings.items() if key not in _UNNAMED}
    given = [f"{key}={json.dumps(told[key], sort_keys=True, default=str)}" for key in sorted(told)]
    return " ".join(["openai", model, *given, *([json.dumps(system)] if system else [])])


_UNNAMED = {"timeout", "extra_headers", "extra_query", "user", "metadata", "service_tier", "store"}

_UNNAMED |= {"max_tokens", "max_completion_tokens", "safety_identifier", "prompt_cache_key"}
