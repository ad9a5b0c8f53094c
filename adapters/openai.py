"""Embed and rerank using OpenAI-compatible servers, with limits on time and size."""

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
"""Default maximum seconds of a call."""


class ServerModel:
    """A model on an OpenAI-compatible server, called with a time limit.

    New clients follow no redirects, so that prompts are not sent to another address. If only a
    sync client is given, no async client is created, since its key and address are unknown.

    Args:
        model: The model.
        client: The client. If None, a new client is created.
        async_client: The async client. If neither client is given, a new one is created per event
            loop.
        timeout: Maximum seconds of a call, including retries, delays and a complete stream. If
            None, there is no limit.
        base_url: The server of new clients. Defaults to the default of ``openai``.
        api_key: The API key of new clients. If None, it is read from the environment.
        max_retries: The maximum number of retries of new clients. Defaults to the default of
            ``openai``.

    Raises:
        TypeError: If a client is sync instead of async, or async instead of sync.
        ValueError: If the model's name is empty, the timeout is below 0.001, or both a client and
            settings are given.
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
        if timeout is not None:  # ends the thread of a call after the call's timeout
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
        """Send a request, and return the answer within the time limit.

        The request runs in a thread, which is abandoned after the timeout. The thread ends after
        the client's timeout.

        Args:
            request: A function that calls a method of the given client.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the call exceeds the limit.
        """
        with named_server():
            return run_with_timeout(lambda: request(self._client), self._timeout)

    async def _acall(self, request: Callable[[Any], Any]) -> Any:
        """Send a request with the async client, or with the sync client in a thread."""
        client = self._loop_client()
        if client is None:
            return await asyncio.to_thread(self._call, request)
        with named_server():
            return await arun_with_timeout(lambda: request(client), self._timeout)

    def _loop_client(self) -> AsyncOpenAI | None:
        """Return the async client of the running loop, since connections belong to one loop.

        If this is None, no async client is available, so the caller must use a thread.
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
    """Add the address of an unreachable server and the cause to an error raised in the block."""
    try:
        yield
    except APITimeoutError:
        raise
    except APIConnectionError as error:
        said = describe_server_error(error)
        raise APIConnectionError(message=said, request=error.request) from error.__cause__


def check_at_least(least: float, **numbers: float | None) -> None:
    """Check optional numbers.

    Raises:
        ValueError: If a number is below ``least``.
    """
    for name, number in numbers.items():
        if number is not None and not number >= least:
            raise ValueError(f"{name} must be {least} or more, got {number!r}")


class OpenAIEmbedder(ServerModel):
    """A model behind OpenAI's ``/v1/embeddings``, on OpenAI, vLLM, Ollama and other servers.

    ``NodeGraph(embed=OpenAIEmbedder("text-embedding-3-small"))``. The client retries
    (``OpenAI(max_retries=...)``). ``timeout`` includes retries.

    Args:
        model: The model for passages.
        client: A client, such as an ``AzureOpenAI``. If None, a new client is created with the
            following settings, which default to ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.
        base_url: The server's address, with ``/v1``.
        api_key: The server's API key.
        async_client: The client of the async methods, for one event loop. If None, a new client is
            created per event loop, or a given ``client`` is called in a thread.
        dimensions: The number of dimensions of truncated vectors, if the model supports truncation.
        batch_size: Number of texts per request.
        name: The key of cached vectors. Defaults to ``"openai"``, the model and the dimensions,
            without the server's address. Set it if two servers use the same name for different
            models.
        timeout: Maximum seconds per batch, including retries, delays and a slow response. Defaults
            to the client's timeout.

    Raises:
        TypeError: If a client is sync instead of async, or async instead of sync.
        ValueError: If a model's name is empty, a number is below 1, or both a client and its
            settings are given.
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
        """Embed passages.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not answer in time.
            EmbeddingError: If the answer does not assign one vector to each text.
        """
        return self._read(self._call(self._request(texts)))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed queries. This raises the same errors as ``embed``."""
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
        """Return the vectors in the order of the texts. The server may send them in any order."""
        numbers = [item.index for item in answer.data]
        if sorted(numbers) != list(range(len(numbers))):
            raise EmbeddingError(
                f"the indexes of the vectors of model {self.model!r} must be 0 to "
                f"{len(numbers) - 1}, got {numbers!r:.80}; the server does not follow OpenAI's "
                "protocol: pass your own function to Embedder"
            )
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


class RerankEndpoint(ServerModel):
    """A model behind ``/rerank``, on Jina, Cohere, vLLM, llama.cpp and other servers.

    ``Reranker("ModuleReranker", model=RerankEndpoint("bge-reranker-v2-m3", base_url=...))``.
    OpenAI has no rerank endpoint, but its client sends the requests and retries.

    Args:
        model: The reranking model.
        client: A client. If None, a new client is created with the following settings.
        base_url: The server's address up to ``/rerank``, such as ``https://api.jina.ai/v1``,
            ``https://api.cohere.com/v2``, ``http://127.0.0.1:8000/v1``.
        api_key: The server's API key. ``OPENAI_API_KEY`` is never used.
        async_client: The client of the async methods, for one event loop. If None, a new client is
            created per event loop, or a given ``client`` is called in a thread.
        timeout: Maximum seconds per batch, including retries and delays. Defaults to the client's
            timeout.
        max_retries: Maximum number of retries of a failed request.
        batch_size: Number of passages per request.
        **body: Further fields of the request, such as ``return_documents=False``.

    Raises:
        TypeError: If a client is sync instead of async, or async instead of sync.
        ValueError: If the model's name is empty, a number is out of range, the server is missing,
            or both a client and its settings are given.

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
        """Return the score of each passage.

        Raises:
            openai.OpenAIError: If the server is unreachable or rejects the request.
            TimeoutError: If the server does not answer in time.
            RerankError: If the answer does not contain one score per passage.
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
        """Return the scores in the order of the passages. The server may send them in any order."""
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
