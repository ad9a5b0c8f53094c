"""Embed and rerank with OpenAI-compatible servers, with limits on time and request size."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..nodegraph.errors import EmbeddingError
from ..nodegraph.storage.columns import portions
from ..retrievers.plans.timeouts import arun_with_timeout, run_with_timeout
from ..retrievers.protocols import RerankError
from .extras import extra
from .server_errors import describe_server_error

with extra("openai", "openai"):
    from openai import (
        APIConnectionError,
        APITimeoutError,
        AsyncOpenAI,
        DefaultAsyncHttpxClient,
        DefaultHttpxClient,
        OpenAI,
    )

TIMEOUT = 120.0
"""The default time limit of a call, in seconds."""


class ServerModel:
    """A model on an OpenAI-compatible server, with a time limit for each call.

    Clients created by this class do not follow redirects, so prompts are never sent to a different
    address. If only a synchronous client is given, no async client is created, because the key and
    the address of the given client are unknown.

    Args:
        model: The name of the model.
        client: The client. If None, a new client is created.
        async_client: The async client. If neither client is given, a new async client is created
            for each event loop.
        timeout: The time limit of a call in seconds. It includes retries, delays and the complete
            stream. If None, only the timeout of the client applies.
        base_url: The address of the server, for new clients. Defaults to the default of ``openai``.
        api_key: The API key, for new clients. If None, it is read from the environment.
        max_retries: The maximum number of retries, for new clients. Defaults to the default of
            ``openai``.

    Raises:
        TypeError: If ``client`` is async or ``async_client`` is synchronous.
        ValueError: If the model's name is empty, the timeout is below 0.001, or both a client and
            settings for a new client are given.
        openai.OpenAIError: If the API key is missing.
    """

    def __init__(
        self,
        model: str,
        client: OpenAI | None,
        async_client: AsyncOpenAI | None,
        timeout: float | None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int | None = None,
    ) -> None:
        check_at_least(0.001, timeout=timeout)
        if not isinstance(model, str) or not model:
            raise ValueError(f"model must be the name of a model, got {model!r:.80}")
        if isinstance(client, AsyncOpenAI):
            raise TypeError("client must be an OpenAI(), got an async client; use async_client=")
        if isinstance(async_client, OpenAI):
            raise TypeError("async_client must be async, got an OpenAI(); use client=")
        given = {"base_url": base_url, "api_key": api_key, "max_retries": max_retries}
        settings: dict[str, Any] = {k: value for k, value in given.items() if value is not None}
        if client is not None and settings:
            raise ValueError(f"{next(iter(settings))} belongs to the client: give it or a client")
        if timeout is not None:  # the client's timeout ends the thread of an abandoned call
            settings["timeout"] = timeout
        self.model = model
        self._timeout = timeout
        self._settings: dict[str, Any] | None = None
        if client is None:
            self._settings = settings
            http_client = DefaultHttpxClient(follow_redirects=False)
            client = OpenAI(**settings, http_client=http_client)
        self._client = client
        self._async_client = async_client
        self._of_loops: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._lock = threading.Lock()

    def _call(self, request: Callable[[Any], Any]) -> Any:
        """Send a request and return the response, or fail after the time limit.

        The request runs in a thread that is abandoned after the time limit. The client's own
        timeout then ends the thread.

        Args:
            request: A function that receives the client and sends the request.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the call exceeds the time limit.
        """
        with named_server():
            return run_with_timeout(lambda: request(self._client), self._timeout)

    async def _acall(self, request: Callable[[Any], Any]) -> Any:
        """Send a request with the async client.

        Without an async client, call the sync client in a thread.
        """
        client = self._loop_client()
        if client is None:
            return await asyncio.to_thread(self._call, request)
        with named_server():
            return await arun_with_timeout(lambda: request(client), self._timeout)

    def _loop_client(self) -> AsyncOpenAI | None:
        """Return the async client of the running event loop.

        Connections belong to one event loop, so each loop has its own client. Return None if no
        async client is available. The caller must then use a thread.
        """
        if self._async_client is not None or self._settings is None:
            return self._async_client
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._of_loops:
                alive = {k: v for k, v in self._of_loops.items() if not k.is_closed()}
                http_client = DefaultAsyncHttpxClient(follow_redirects=False)
                client = AsyncOpenAI(**self._settings, http_client=http_client)
                self._of_loops = {**alive, loop: client}
            return self._of_loops[loop]


@contextmanager
def named_server() -> Iterator[None]:
    """Add the cause and the server's address to connection errors raised in the ``with`` block."""
    try:
        yield
    except APITimeoutError:
        raise
    except APIConnectionError as error:
        said = describe_server_error(error)
        raise APIConnectionError(message=said, request=error.request) from error.__cause__


def check_at_least(least: float, **numbers: float | None) -> None:
    """Check that numbers are not below a minimum. Numbers that are None are not checked.

    Raises:
        ValueError: If a number is below ``least``.
    """
    for name, number in numbers.items():
        if number is not None and not number >= least:
            raise ValueError(f"{name} must be {least} or more, got {number!r}")


class OpenAIEmbedder(ServerModel):
    """An embedding model on OpenAI, vLLM, Ollama or another server with ``/v1/embeddings``.

    Pass it to a graph: ``NodeGraph(embed=OpenAIEmbedder("text-embedding-3-small"))``. Failed
    requests are retried by the client (set the number with ``OpenAI(max_retries=...)``), and the
    ``timeout`` includes these retries.

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
        dimensions: The number of dimensions of truncated vectors, if the model supports truncation.
        batch_size: The number of texts per request.
        name: The name under which vectors are cached. Defaults to ``"openai"``, the model and the
            dimensions, without the address of the server. Set it if two servers use the same model
            name for different models.
        timeout: The time limit per batch in seconds, including retries, delays and slow responses.
            If None, only the timeout of the client applies.

    Raises:
        TypeError: If ``client`` is async or ``async_client`` is synchronous.
        ValueError: If the model's name is empty, a number is below 1, or both a client and settings
            for a new client are given.
        openai.OpenAIError: If the API key is missing.

    Example:
        >>> embedder = OpenAIEmbedder("bge-m3", base_url="http://127.0.0.1:8000/v1", api_key="-")
        >>> embedder.name
        'openai bge-m3'
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        dimensions: int | None = None,
        batch_size: int = 64,
        name: str | None = None,
        timeout: float | None = TIMEOUT,
    ) -> None:
        super().__init__(model, client, async_client, timeout, base_url=base_url, api_key=api_key)
        check_at_least(1, dimensions=dimensions, batch_size=batch_size)
        self.dimensions = dimensions
        self.batch_size = batch_size
        parts = ["openai", model]
        if dimensions:
            parts.append(str(dimensions))
        self.name = name or " ".join(parts)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of passages.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not respond in time.
            EmbeddingError: If the response does not contain exactly one vector for each text.
        """
        return self._read(self._call(self._request(texts)))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of queries. Raises the same errors as ``embed``."""
        return self.embed(texts)

    async def aembed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Async version of `embed_queries`."""
        return self._read(await self._acall(self._request(texts)))

    def _request(self, texts: Sequence[str]) -> Callable[[Any], Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        return lambda client: client.embeddings.create(**body, encoding_format="float")

    def _read(self, answer: Any) -> list[list[float]]:
        """Return the vectors of a response in the order of the texts.

        The server may send them in a different order.
        """
        numbers = [item.index for item in answer.data]
        if sorted(numbers) != list(range(len(numbers))):
            raise EmbeddingError(
                f"the indexes of the vectors of model {self.model!r} must be 0 to "
                f"{len(numbers) - 1}, got {numbers!r:.80}; the server does not follow OpenAI's "
                "protocol: pass your own function to Embedder"
            )
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


class RerankEndpoint(ServerModel):
    """A reranking model on Jina, Cohere, vLLM, llama.cpp or another server with ``/rerank``.

    Use it in a reranker: ``Reranker("ModuleReranker", model=RerankEndpoint("bge-reranker-v2-m3",
    base_url=...))``. Although OpenAI does not offer reranking, the ``openai`` client sends and
    retries the requests.

    Args:
        model: The name of the reranking model.
        client: A client. If None, a new client is created with ``base_url``, ``api_key`` and
            ``max_retries``.
        base_url: The address of the server without ``/rerank``, such as ``https://api.jina.ai/v1``,
            ``https://api.cohere.com/v2`` or ``http://127.0.0.1:8000/v1``.
        api_key: The API key of the server. ``OPENAI_API_KEY`` is never used.
        async_client: The client for the async methods, which must run in a single event loop. If
            None, a new client is created for each event loop, or a given ``client`` is called in a
            thread.
        timeout: The time limit per batch in seconds, including retries and delays. If None, only
            the timeout of the client applies.
        max_retries: The maximum number of times that a failed request is retried.
        batch_size: The number of passages per request.
        **body: Additional fields of the request, such as ``return_documents=False``.

    Raises:
        TypeError: If ``client`` is async or ``async_client`` is synchronous.
        ValueError: If the model's name is empty, a number is out of range, the server's address is
            missing, or both a client and settings for a new client are given.

    Example:
        >>> endpoint = RerankEndpoint("bge-reranker-v2-m3", base_url="http://127.0.0.1:8000/v1")
        >>> endpoint
        RerankEndpoint('bge-reranker-v2-m3', 'http://127.0.0.1:8000/v1/')
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        timeout: float | None = 60.0,
        max_retries: int | None = None,
        batch_size: int = 100,
        **body: Any,
    ) -> None:
        if client is None and not base_url:
            raise ValueError(
                "base_url is required, such as 'http://127.0.0.1:8000/v1': OpenAI has no reranker"
            )
        check_at_least(1, batch_size=batch_size)
        check_at_least(0, max_retries=max_retries)
        api_key = api_key or ("none" if client is None else None)
        super().__init__(
            model,
            client,
            async_client,
            timeout,
            base_url=base_url,
            api_key=api_key,
            max_retries=max_retries,
        )
        self.batch_size = batch_size
        self.body = {**body, "model": model}

    def __repr__(self) -> str:
        return f"RerankEndpoint({self.model!r}, {str(self._client.base_url)!r})"

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance score of each passage.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not respond in time.
            RerankError: If the response does not contain exactly one score for each passage.
        """
        scores: list[float] = []
        for batch in portions(texts, self.batch_size):
            scores += self._read(self._call(self._request(query, batch)), batch)
        return scores

    async def arerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Async version of ``rerank``."""
        scores: list[float] = []
        for batch in portions(texts, self.batch_size):
            scores += self._read(await self._acall(self._request(query, batch)), batch)
        return scores

    def _request(self, query: str, texts: Sequence[str]) -> Callable[[Any], Any]:
        body = {**self.body, "query": query, "documents": texts}
        return lambda client: client.post("/rerank", cast_to=object, body=body)

    def _read(self, answer: Any, texts: Sequence[str]) -> list[float]:
        """Return the scores of a response in the order of the passages.

        The server may send them in a different order.
        """
        expected = range(len(texts))
        scores: dict[int, float] = {}
        try:
            items = answer["results"] if "results" in answer else answer["data"]
            for item in items:
                scores[item["index"]] = float(item.get("relevance_score", item.get("score")))
            is_complete = sorted(item["index"] for item in items) == list(expected)
        except (KeyError, TypeError, ValueError):
            is_complete = False
        if not is_complete:
            raise RerankError(
                f"the answer of model {self.model!r} must have an index and a relevance_score for "
                f"each of {len(texts)} passages, got {answer!r:.120}; check base_url, or pass your "
                "own function to CrossEncoderReranker"
            )
        return [scores[at] for at in expected]
