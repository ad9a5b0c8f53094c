"""Ask any chat model behind a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from ..nodegraph.errors import ModelError, NoJsonError
from ..nodegraph.locking import mutex
from ..nodegraph.models.templates import ChatPrompt
from .extras import extra
from .openai import TIMEOUT, Clients, check_at_least, check_model

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

    ``LLMExtractor(OpenAIChat("gpt-4o-mini"), "summary")``. Trying again is the client's
    (``OpenAI(max_retries=...)``); ``timeout`` bounds all of it.

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
        timeout: Seconds that an answer may take in all, whatever the server does: retries, waiting
            for them, and the whole of a stream included. A pair adds the seconds between two
            parts of a stream, which are 30 else. None leaves it to the client.
        **options: Anything else for the request: ``seed=1``, ``max_completion_tokens=500``,
            ``extra_body={...}``.

    Attributes:
        usage: What the server has answered and counted so far.

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
        timeout: float | tuple[float, float] | None = TIMEOUT,
        **options: Any,
    ) -> None:
        check_model(model)
        check_at_least(1, max_tokens=max_tokens)
        if temperature is not None and not temperature >= 0:
            raise ValueError(f"temperature={temperature!r} has to be 0 or more, or None")
        settings = {"temperature": temperature, "max_tokens": max_tokens, **options}
        self.model = model
        self.system = system
        self.settings = {key: value for key, value in settings.items() if value is not None}
        self.name = name or _name(model, system, self.settings)
        self._clients = Clients(
            client, async_client, timeout=timeout, base_url=base_url, api_key=api_key
        )
        self._client = self._clients.client
        self._lock = mutex()
        self.usage = ChatUsage()

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r})"

    def complete(self, prompt: Prompt) -> str:
        """Return the model's answer.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            ModelError: If there is no whole answer in what it sends.
        """
        return self._read(self._clients.call(self._request(prompt)))

    async def acomplete(self, prompt: Prompt) -> str:
        """Return the model's answer without blocking the event loop."""
        return self._read(await self._clients.acall(self._request(prompt)))

    def complete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Return a value by a JSON schema (an object's), to which the server holds the model.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            NotImplementedError: If it does not offer this.
            ModelError: If there is no whole answer, or no JSON, in what it sends.
        """
        with self._schema_errors():
            answer = self._clients.call(self._request(prompt, schema))
        return self._value(self._read(answer))

    async def acomplete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Return the same without blocking the event loop."""
        with self._schema_errors():
            answer = await self._clients.acall(self._request(prompt, schema))
        return self._value(self._read(answer))

    def stream(self, prompt: Prompt) -> Iterator[str]:
        """Yield the answer as it comes.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            ModelError: If it ends before the answer does.
        """
        end = None
        with closing(self._clients.stream(self._request(prompt, **_STREAMED))) as chunks:
            for chunk in chunks:
                text, end = self._read_chunk(chunk, end)
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
        streamed = self._clients.astream(client, self._request(prompt, **_STREAMED))
        async with aclosing(streamed) as chunks:
            async for chunk in chunks:
                text, end = self._read_chunk(chunk, end)
                if text:
                    yield text
        self._check_end(end)

    def _request(
        self, prompt: Prompt, schema: Mapping[str, Any] | None = None, **options: Any
    ) -> Callable[[Any], Any]:
        if isinstance(prompt, str):
            messages = prompt.messages if isinstance(prompt, ChatPrompt) else [("user", prompt)]
            if self.system is not None and all(role != "system" for role, _ in messages):
                messages = [("system", self.system), *messages]
            prompt = [{"role": role, "content": text} for role, text in messages]
        body = {"model": self.model, "messages": list(prompt), **self.settings, **options}
        if schema is not None:
            named = {"name": "answer", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return lambda client: client.chat.completions.create(**body)

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

    def _read_chunk(self, chunk: Any, end: str | None) -> tuple[str | None, str | None]:
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
            raise NoJsonError(
                f"model {self.model!r} was asked for JSON and answered {text!r:.200}", text
            ) from error

    @contextmanager
    def _schema_errors(self) -> Iterator[None]:
        """Tell a server that knows no schemas from one that does not like this request."""
        try:
            yield
        except BadRequestError as error:
            message = str(error).casefold()
            if any(word in message for word in ("response_format", "json_schema", "structured")):
                raise NotImplementedError(
                    f"the server of model {self.model!r} takes no JSON schema: {error}"
                ) from error
            raise

    def _count(self, answer: Any) -> None:
        usage = getattr(answer, "usage", None)
        with self._lock:
            self.usage = ChatUsage(
                self.usage.requests + 1,
                self.usage.prompt_tokens + (getattr(usage, "prompt_tokens", None) or 0),
                self.usage.completion_tokens + (getattr(usage, "completion_tokens", None) or 0),
            )


_STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


def _name(model: str, system: str | None, settings: Mapping[str, Any]) -> str:
    """Name a model by what changes its answers."""
    options = [
        f"{key}={json.dumps(value, sort_keys=True, default=str)}"
        for key, value in sorted(settings.items())
        if key not in _UNNAMED
    ]
    return " ".join(["openai", model, *options, *([json.dumps(system)] if system else [])])


_UNNAMED = frozenset(
    "timeout extra_headers extra_query user metadata service_tier store max_tokens "
    "max_completion_tokens safety_identifier prompt_cache_key".split()
)
