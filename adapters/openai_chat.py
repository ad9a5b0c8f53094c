"""A chat model on an OpenAI-compatible server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager, suppress
from typing import Any

from ..nodegraph.errors import ModelError
from ..nodegraph.models.templates import ChatPrompt
from ..nodegraph.models.usage import ModelText, usage_of
from ..retrievers.plans.timeouts import astream_with_timeout, stream_with_timeout
from .extras import extra
from .openai import TIMEOUT, ServerModel, check_at_least, named_server

with extra("openai", "openai"):
    from openai import AsyncOpenAI, BadRequestError, OpenAI

Prompt = str | Sequence[Mapping[str, Any]]
"""Either the user's message, or a conversation: ``[{"role": "user", "content": "..."}, ...]``."""


class OpenAIChat(ServerModel):
    """A chat model on OpenAI, vLLM, Ollama or another server with ``/v1/chat/completions``.

    Pass it wherever a language model is expected, for example
    ``LLMExtractor(OpenAIChat("gpt-4o-mini"), "summary")``. Failed requests are retried by the
    client (set the number with ``OpenAI(max_retries=...)``), and the ``timeout`` includes these
    retries.

    Args:
        model: The name of the model.
        client: A client, such as an ``AzureOpenAI``. If None, a new client is created with
            ``base_url`` and ``api_key``, which default to the environment variables
            ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.
        base_url: The address of the server, including ``/v1``.
        api_key: The API key of the server.
        async_client: The client for the async methods, which must run in a single event loop. If
            None, a new client is created for each event loop, or a given ``client`` is called in a
            thread.
        system: The system prompt. It is not added to prompts that are complete conversations.
        temperature: The sampling temperature. If None, the server's default is used. Some models
            accept only the default.
        max_tokens: The maximum number of tokens of an answer. An answer that is cut off raises an
            error.
        name: The name under which results are cached. Defaults to ``"openai"``, the model and the
            settings, without the address of the server. Set it if two servers use the same model
            name for different models.
        timeout: The time limit of a call in seconds, including retries, delays and the complete
            stream. If None, only the timeout of the client applies.
        **options: Additional fields of the request, such as ``seed=1``,
            ``max_completion_tokens=500`` or ``extra_body={...}``.

    Raises:
        TypeError: If ``client`` is async or ``async_client`` is synchronous.
        ValueError: If the model's name is empty, a number is out of range, or both a client and
            settings for a new client are given.
        openai.OpenAIError: If the API key is missing.

    Example:
        >>> chat = OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1", api_key="-")
        >>> chat.name
        'openai qwen3 temperature=0'
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
        timeout: float | None = TIMEOUT,
        **options: Any,
    ) -> None:
        super().__init__(model, client, async_client, timeout, base_url=base_url, api_key=api_key)
        check_at_least(1, max_tokens=max_tokens)
        check_at_least(0, temperature=temperature)
        self._has_stream_usage = True
        settings = {"temperature": temperature, "max_tokens": max_tokens, **options}
        self.system = system
        self.settings = {key: value for key, value in settings.items() if value is not None}
        self.name = name or _name(model, system, self.settings)

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r})"

    def complete(self, prompt: Prompt) -> ModelText:
        """Return the model's answer to a prompt.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not respond in time.
            ModelError: If the answer is missing or incomplete.
        """
        return self._read(self._call(self._request(prompt)))

    async def acomplete(self, prompt: Prompt) -> ModelText:
        """Async version of ``complete``."""
        return self._read(await self._acall(self._request(prompt)))

    def complete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Return the model's answer as a JSON value.

        The server enforces the JSON schema, which must describe an object. If a server ignores the
        schema and its answer is not valid JSON, the text of the answer is returned instead.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not respond in time.
            NotImplementedError: If the server does not support schemas.
            ModelError: If the answer is incomplete.
        """
        return _json_value(self.complete_json_text(prompt, schema))

    def complete_json_text(self, prompt: Prompt, schema: Mapping[str, Any]) -> ModelText:
        """Return the unparsed text of a JSON answer, with the token usage of the call."""
        with self._schema_errors():
            answer = self._call(self._request(prompt, schema))
        return self._read(answer)

    async def acomplete_json(self, prompt: Prompt, schema: Mapping[str, Any]) -> Any:
        """Async version of `complete_json`."""
        return _json_value(await self.acomplete_json_text(prompt, schema))

    async def acomplete_json_text(self, prompt: Prompt, schema: Mapping[str, Any]) -> ModelText:
        """Async version of ``complete_json_text``."""
        with self._schema_errors():
            answer = await self._acall(self._request(prompt, schema))
        return self._read(answer)

    def stream(self, prompt: Prompt) -> Iterator[str]:
        """Yield the parts of the answer as they arrive.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not respond in time.
            ModelError: If the stream ends before the answer is complete.
        """
        for text in self.stream_texts(prompt):
            if text:
                yield text

    def stream_texts(self, prompt: Prompt) -> Iterator[ModelText]:
        """Yield the parts of the answer, then an empty part with the token usage of the call."""

        def chunks() -> Iterator[Any]:
            try:
                response = self._request(prompt, **self._streaming)(self._client)
            except BadRequestError as error:
                self._leave_out_usage(error)
                response = self._request(prompt, **self._streaming)(self._client)
            with closing(response):
                yield from response

        end = None
        streaming = closing(stream_with_timeout(chunks, self._timeout))
        with named_server(), streaming as streamed:
            for chunk in streamed:
                text, end = self._read_chunk(chunk, end)
                if text or getattr(chunk, "usage", None):
                    yield ModelText(text or "", usage_of(chunk))
        self._check_end(end)

    async def astream(self, prompt: Prompt) -> AsyncIterator[str]:
        """Async version of ``stream``.

        If only a synchronous ``client`` was given, the whole answer is yielded as a single part.
        """
        async for text in self.astream_texts(prompt):
            if text:
                yield text

    async def astream_texts(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        """Async version of ``stream_texts``."""
        client = self._loop_client()
        if client is None:
            yield await self.acomplete(prompt)
            return

        async def chunks() -> AsyncIterator[Any]:
            try:
                response = await self._request(prompt, **self._streaming)(client)
            except BadRequestError as error:
                self._leave_out_usage(error)
                response = await self._request(prompt, **self._streaming)(client)
            async with response:
                async for chunk in response:
                    yield chunk

        end = None
        streaming = aclosing(astream_with_timeout(chunks, self._timeout))
        with named_server():
            async with streaming as streamed:
                async for chunk in streamed:
                    text, end = self._read_chunk(chunk, end)
                    if text or getattr(chunk, "usage", None):
                        yield ModelText(text or "", usage_of(chunk))
        self._check_end(end)

    @property
    def _streaming(self) -> dict[str, Any]:
        """The options of a streaming request.

        Most servers report token usage for streams only if this is requested.
        """
        if self._has_stream_usage and "stream_options" not in self.settings:
            return {"stream": True, "stream_options": {"include_usage": True}}
        return {"stream": True}

    def _leave_out_usage(self, error: BadRequestError) -> None:
        """Stop requesting the token usage of streams if the server rejected this option.

        Raises:
            BadRequestError: If the request was rejected for a different reason.
        """
        if not self._has_stream_usage or "stream_options" not in str(error):
            raise error
        self._has_stream_usage = False

    def _request(
        self, prompt: Prompt, schema: Mapping[str, Any] | None = None, **options: Any
    ) -> Callable[[Any], Any]:
        messages = self._conversation(prompt)
        body = {"model": self.model, "messages": messages, **self.settings, **options}
        if schema is not None:
            named = {"name": "answer", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return lambda client: client.chat.completions.create(**body)

    def _conversation(self, prompt: Prompt) -> list[Mapping[str, Any]]:
        """Convert a prompt to messages, starting with the system prompt.

        Conversations are not changed.
        """
        if not isinstance(prompt, str):
            return list(prompt)
        messages = prompt.messages if isinstance(prompt, ChatPrompt) else [("user", prompt)]
        if self.system is not None and all(role != "system" for role, _ in messages):
            messages = [("system", self.system), *messages]
        return [{"role": role, "content": text} for role, text in messages]

    def _read(self, answer: Any) -> ModelText:
        choices: Any = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            raise ModelError(
                f"the server's answer for model {self.model!r} has no message: {answer!r:.200}; it "
                "does not speak OpenAI's protocol: give a function of your own to LLM"
            )
        if refusal := getattr(message, "refusal", None):
            raise ModelError(f"model {self.model!r} refused: {refusal}")
        self._check_end(choices[0].finish_reason or "stop")
        if not isinstance(message.content, str):
            raise ModelError(f"model {self.model!r} answered without a text: {message!r:.200}")
        return ModelText(message.content, usage_of(answer))

    def _read_chunk(self, chunk: Any, end: str | None) -> tuple[str | None, str | None]:
        """Return the text of a chunk and the latest finish reason."""
        if not chunk.choices:
            return None, end
        choice = chunk.choices[0]
        return choice.delta.content, choice.finish_reason or end

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

    @contextmanager
    def _schema_errors(self) -> Iterator[None]:
        """Raise NotImplementedError if an error means that the server does not support schemas."""
        try:
            yield
        except BadRequestError as error:
            message = str(error).casefold()
            if any(word in message for word in ("response_format", "json_schema", "structured")):
                raise NotImplementedError(
                    f"the server of model {self.model!r} supports no JSON schema: {error}"
                ) from error
            raise


def _name(model: str, system: str | None, settings: Mapping[str, Any]) -> str:
    """Return a cache name that contains all settings that influence the answers."""
    options = [
        f"{key}={json.dumps(value, sort_keys=True, default=str)}"
        for key, value in sorted(settings.items())
        if key not in _UNNAMED
    ]
    if system:
        options.append(json.dumps(system))
    return " ".join(["openai", model, *options])


_UNNAMED = frozenset(
    "timeout extra_headers extra_query user metadata service_tier store max_tokens "
    "max_completion_tokens safety_identifier prompt_cache_key".split()
)


def _json_value(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return text
