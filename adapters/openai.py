"""Embed and rerank with any server of OpenAI's protocol, with limits of time and size."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import aclosing, closing
from typing import Any

from ..nodegraph.errors import EmbeddingError
from ..nodegraph.locking import mutex
from ..retrievers.plans.timeouts import astream_with_timeout, run_with_timeout, stream_with_timeout
from ..retrievers.protocols import RerankError
from .extras import extra

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
"""Seconds that a call may take in all, unless a user says otherwise."""

SILENCE = 30.0
"""Seconds between two parts of a stream, unless a user says otherwise."""


class OpenAIEmbedder:
    """Embed with a model behind OpenAI's ``/v1/embeddings``: OpenAI itself, vLLM, Ollama, others.

    ``NodeGraph(embed=OpenAIEmbedder("text-embedding-3-small"))``. Trying again is the client's
    (``OpenAI(max_retries=...)``); ``timeout`` bounds all of it.

    Args:
        model: The model that embeds passages.
        client: What calls the server, also an ``AzureOpenAI``. Left out, one is made, which reads
            ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` where the next two do not say it.
        base_url: The server's address, with ``/v1``.
        api_key: The key for it.
        async_client: What calls the server for ``aretrieve``, in one event loop. Left out, one is
            made for each event loop, unless you give a client: then that one is used in a thread.
        query_model: The model that embeds queries, where the server has another name for it.
        dimensions: Shortens the vectors; for models that can.
        batch_size: How many texts are sent at once.
        name: What the vectors are kept under; ``"openai"``, the model and the dimensions if left
            out. The server's address is no part of it: name it where two servers run different
            models under one name.
        timeout: Seconds that a batch may take in all, whatever the server does: retries, waiting
            for them and an answer that drips in included. None leaves it to the client.

    Attributes:
        usage: How many tokens the server has counted so far.

    Raises:
        TypeError: If a client is not what it should be.
        ValueError: If a model has no name, a number is below 1, or there is both a client and
            what to make one of.
        openai.OpenAIError: If there is no key.

    Example:
        >>> embedder = OpenAIEmbedder("bge-m3", base_url="http://127.0.0.1:8000/v1", api_key="-")
        >>> embedder.name, embedder.usage
        ('openai bge-m3', 0)
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        query_model: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 64,
        name: str | None = None,
        timeout: float | None = TIMEOUT,
    ) -> None:
        query_model = model if query_model is None else query_model
        check_model(model)
        check_model(query_model, "query_model")
        check_at_least(1, dimensions=dimensions, batch_size=batch_size)
        self.model = model
        self.query_model = query_model
        self.dimensions = dimensions
        self.batch_size = batch_size
        self.name = name or " ".join(["openai", model, *([str(dimensions)] if dimensions else [])])
        self._clients = Clients(
            client, async_client, timeout=timeout, base_url=base_url, api_key=api_key
        )
        self._client = self._clients.client
        self._lock = mutex()
        self.usage = 0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed passages.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            EmbeddingError: If its answer does not say which vector is whose.
        """
        return self._read(self._clients.call(self._request(self.model, texts)))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed queries; raises what ``embed`` does."""
        return self._read(self._clients.call(self._request(self.query_model, texts)))

    async def aembed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed queries without blocking the event loop."""
        return self._read(await self._clients.acall(self._request(self.query_model, texts)))

    def _request(self, model: str, texts: Sequence[str]) -> Callable[[Any], Any]:
        size = {} if self.dimensions is None else {"dimensions": self.dimensions}
        body: dict[str, Any] = {"model": model, "input": list(texts), **size}
        return lambda client: client.embeddings.create(**body, encoding_format="float")

    def _read(self, answer: Any) -> list[list[float]]:
        """Return the vectors in the order of the texts, which the answer need not have."""
        tokens = getattr(answer.usage, "prompt_tokens", None) or 0
        with self._lock:
            self.usage += tokens
        numbers = [item.index for item in answer.data]
        if sorted(numbers) != list(range(len(numbers))):
            raise EmbeddingError(
                f"the server's vectors of model {self.model!r} are numbered {numbers!r:.80}, which "
                f"has to be 0 to {len(numbers) - 1}, each once; this server does not speak "
                "OpenAI's protocol: give a function of your own to Embedder"
            )
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


class Clients:
    """Hold the clients of a server: those that were passed, or new ones; call them within limits.

    New ones send nothing to another host, and read ``MAX_RESPONSE`` bytes of a response at most.
    Beside a client that was passed no async one is made: its key and address are not known.

    Args:
        client: The client, None to make one.
        async_client: The async client; None for one a loop, where ``client`` is None too.
        defaults: What new clients are made of besides the settings.
        timeout: Seconds that a call may take in all, whatever the server does: retries, waiting
            and the whole of a stream included. Or a pair: these, and the seconds between two
            parts of a stream. None for no limit.
        **settings: What clients are made of, None for the default: ``base_url``, ``api_key``.

    Raises:
        TypeError: If an async client is given for the other one, or the other way round.
        ValueError: If there is both a client and what to make one of.
        openai.OpenAIError: If there is no key.
    """

    def __init__(
        self,
        client: OpenAI | None,
        async_client: AsyncOpenAI | None,
        defaults: Mapping[str, Any] | None = None,
        *,
        timeout: float | tuple[float, float] | None = None,
        **settings: Any,
    ) -> None:
        silence = math.inf if timeout is None else SILENCE
        self.timeout, self.silence = timeout if isinstance(timeout, tuple) else (timeout, silence)
        check_at_least(0.001, timeout=self.timeout, silence=self.silence)
        if isinstance(client, AsyncOpenAI):
            raise TypeError("client is an async one; give it as async_client, beside an OpenAI()")
        if isinstance(async_client, OpenAI):
            raise TypeError("async_client is not async; give it as client")
        settings = {name: value for name, value in settings.items() if value is not None}
        if client is not None and settings:
            raise ValueError(f"{next(iter(settings))} is the client's; give it, or a client")
        settings = {**(defaults or {}), **settings}
        self.client = client or limited_client(**settings)
        self._async_client = async_client
        self._settings = None if client else settings
        self._of_loops: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._lock = mutex()

    def call(self, request: Callable[[Any], Any]) -> Any:
        """Send a request, and return the answer within the time limit.

        It works in a thread that is no longer waited for when time is up. The thread ends then;
        with a client that was passed, when that client gives up.

        Args:
            request: Calls a method of the client that it is passed.

        Raises:
            openai.OpenAIError: If the server can't be reached, refuses, or takes too long.
        """
        deadline = Deadline(self.timeout)

        def call() -> Any:
            with until(deadline):  # in the thread that sends: it gives up by itself, too
                return request(self.client)

        try:
            return run_with_timeout(call, self.timeout)
        except FutureTimeout:
            raise deadline.error() from None

    def stream(self, request: Callable[[Any], Any]) -> Generator[Any, None, None]:
        """Yield the chunks of a streamed answer, all of them within the time limit."""
        deadline = Deadline(self.timeout)

        def chunks() -> Iterator[Any]:
            with until(deadline), closing(request(self.client)) as response:
                yield from response

        try:
            with closing(stream_with_timeout(chunks, self.timeout, self.silence)) as streamed:
                yield from streamed
        except FutureTimeout as error:
            raise deadline.error(str(error)) from None

    async def acall(self, request: Callable[[Any], Any]) -> Any:
        """Send a request by the async client; by the other one in a thread where there is none.

        Args:
            request: Calls a method of the client that it is passed, sync or async.
        """
        client = self.of_loop()
        if client is None:
            return await asyncio.to_thread(self.call, request)
        deadline = Deadline(self.timeout)
        try:
            return await asyncio.wait_for(request(client), self.timeout)
        except asyncio.TimeoutError:
            raise deadline.error() from None
        except Refused as refused:
            raise refused.error from None

    async def astream(
        self, client: AsyncOpenAI, request: Callable[[Any], Any]
    ) -> AsyncGenerator[Any, None]:
        """Yield the chunks of a streamed answer, all of them within the time limit."""
        deadline = Deadline(self.timeout)

        async def chunks() -> AsyncIterator[Any]:
            async with await request(client) as response:
                async for chunk in response:
                    yield chunk

        try:
            streamed = astream_with_timeout(chunks, self.timeout, self.silence)
            async with aclosing(streamed):
                async for chunk in streamed:
                    yield chunk
        except asyncio.TimeoutError as error:
            raise deadline.error(str(error)) from None
        except Refused as refused:
            raise refused.error from None

    def of_loop(self) -> AsyncOpenAI | None:
        """Return the async client for the running loop, as connections serve no other one.

        None where there is none to be had, and the work is for a thread.
        """
        if self._async_client is not None or self._settings is None:
            return self._async_client
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._of_loops:
                alive = {k: v for k, v in self._of_loops.items() if not k.is_closed()}
                self._of_loops = {**alive, loop: limited_async_client(**self._settings)}
            return self._of_loops[loop]


def check_model(model: object, field: str = "model") -> None:
    """Check that a model has a name.

    Raises:
        ValueError: If it is no text, or empty.
    """
    if not isinstance(model, str) or not model:
        raise ValueError(f"{field} is the name of a model, not {model!r:.80}")


def check_at_least(least: float, **numbers: float | None) -> None:
    """Check numbers that may be left out.

    Raises:
        ValueError: If one is below ``least``.
    """
    for name, number in numbers.items():
        if number is not None and not number >= least:
            raise ValueError(f"{name}={number!r} has to be {least} or more")


MAX_RESPONSE = 64 * 2**20
"""Bytes of a response, at most; vectors of 64 long texts are a tenth of it."""


class Refused(BaseException):
    """End a call at once: no client catches it, waits and tries again.

    Attributes:
        error: What the caller gets in its place.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Deadline:
    """Hold until when a call may go on; retries and the whole stream included.

    Args:
        seconds: From now; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float | None:
        """Return the remaining seconds, 0 where it has passed; None for no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def error(self, message: str = "", request: Any = None) -> APITimeoutError:
        """Return the error of a call that took too long."""
        error = APITimeoutError(request=request)
        error.message = message or f"the server did not answer within {self.seconds:g} s"
        error.args = (error.message,)
        return error

    def check(self, request: Any) -> None:
        """Check that there is time.

        Raises:
            Refused: If there is none.
        """
        if self.remaining() == 0:
            raise Refused(self.error(request=request))


class _Current(threading.local):
    """The deadline of the requests of this thread."""

    deadline = Deadline(None)


_current = _Current()


@contextlib.contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """Begin no request of this thread, and read on none, beyond a deadline.

    Raises:
        openai.OpenAIError: If the deadline passes, or the server does what it may not.
    """
    before, _current.deadline = _current.deadline, deadline
    try:
        yield
    except Refused as refused:
        raise refused.error from None
    finally:
        _current.deadline = before


def limited_client(**settings: Any) -> OpenAI:
    """Return a client that keeps to ``until``, follows no redirect and reads no endless answer.

    Args:
        **settings: Those of ``OpenAI``.
    """
    hooks: dict[str, list[Any]] = {"request": [_check_time], "response": [_limit]}
    http_client = DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
    return OpenAI(**settings, http_client=http_client)


def limited_async_client(**settings: Any) -> AsyncOpenAI:
    """Return the same for an event loop; tasks are cancelled when time is up."""

    async def limit(response: Any) -> None:
        _limit(response)

    http_client = DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"response": [limit]})
    return AsyncOpenAI(**settings, http_client=http_client)


def _check_time(request: Any) -> None:
    """Give a request the time that is left, so that its thread ends when nobody waits for it."""
    _current.deadline.check(request)
    remaining = _current.deadline.remaining()
    if remaining is not None:
        request.extensions["timeout"] = dict.fromkeys(
            ("connect", "read", "write", "pool"), remaining
        )


def _limit(response: Any) -> None:
    """Limit what is read of a response, and how long its server may make a client wait.

    Raises:
        Refused: If it redirects, as prompts would go to another server than the one meant.
    """
    if 300 <= response.status_code < 400 and (position := response.headers.get("location")):
        raise _refusal(
            f"the server redirects to {position!r:.200}, where prompts are not sent to; if it may "
            "have them, give its address as base_url",
            response,
        )
    deadline = _current.deadline
    if _is_long(response.headers, deadline):
        response.headers["x-should-retry"] = "false"
    response.stream = _limited(response.stream, deadline, response)


def _is_long(headers: Any, deadline: Deadline) -> bool:
    """Return whether a server wants to be tried again when there is no time left."""
    milliseconds = headers.get("retry-after-ms")
    wait = headers.get("retry-after") if milliseconds is None else milliseconds
    remaining = deadline.remaining()
    if wait is None or remaining is None:
        return False
    try:
        seconds = float(wait) / (1 if milliseconds is None else 1000)
    except ValueError:  # a date
        return True
    return not seconds < remaining


def _limited(stream: Any, deadline: Deadline, response: Any) -> Any:
    """Return a response's stream that ends in an error if it is too long, or takes too long.

    It is a subclass of what the HTTP library of the client checks for, whichever that is.
    """

    def check(size: int) -> None:
        deadline.check(response.request)
        if size > MAX_RESPONSE:
            raise _refusal(f"the server sends more than {MAX_RESPONSE} bytes", response)

    def parts(_: Any) -> Iterator[bytes]:
        size = 0
        for part in stream:
            check(size := size + len(part))
            yield part

    async def aparts(_: Any) -> AsyncIterator[bytes]:
        size = 0
        async for part in stream:
            check(size := size + len(part))
            yield part

    async def aclose(_: Any) -> None:
        await stream.aclose()

    methods = {"SyncByteStream": {"__iter__": parts, "close": lambda _: stream.close()}}
    methods["AsyncByteStream"] = {"__aiter__": aparts, "aclose": aclose}
    kind = next(base for base in type(stream).__mro__ if base.__name__ in methods)
    return type("LimitedStream", (kind,), methods[kind.__name__])()


def _refusal(message: str, response: Any) -> Refused:
    return Refused(APIConnectionError(message=message, request=response.request))


class RerankEndpoint:
    """Score passages with a model behind ``/rerank``: Jina, Cohere, vLLM, llama.cpp, others.

    ``Reranker("ModuleReranker", model=RerankEndpoint("bge-reranker-v2-m3", base_url=...))``.
    OpenAI has no such endpoint of its own, but its client speaks the protocol around it, waits
    and tries again.

    Args:
        model: The model that scores.
        client: What calls the server. Left out, one is made of what follows.
        base_url: The server's address up to ``/rerank``: ``https://api.jina.ai/v1``,
            ``https://api.cohere.com/v2``, ``http://127.0.0.1:8000/v1``.
        api_key: The key for it. What ``OPENAI_API_KEY`` holds is not sent to it.
        async_client: What calls the server for ``aretrieve``, in one event loop. Left out, one is
            made for each event loop, unless you give a client: then that one is used in a thread.
        timeout: Seconds that the answer to a batch may take in all, whatever the server does:
            retries and waiting for them included. None leaves it to the client.
        max_retries: How often a request that failed is tried again.
        batch_size: How many passages are sent at once.
        **body: Further fields of the request, such as ``return_documents=False``.

    Attributes:
        usage: How many tokens the server has counted so far, if it counts.

    Raises:
        TypeError: If a client is not what it should be.
        ValueError: If the model has no name, a number is out of range, there is no server, or
            there is both a client and what to make one of.

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
        check_model(model)
        check_at_least(1, batch_size=batch_size)
        if client is None and not base_url:
            raise ValueError(
                "base_url says which server reranks, such as 'http://127.0.0.1:8000/v1'; OpenAI "
                "has no reranker"
            )
        check_at_least(0, max_retries=max_retries)
        self.model = model
        self.batch_size = batch_size
        self.body = {**body, "model": model}
        self._clients = Clients(
            client,
            async_client,
            {"api_key": "none", "max_retries": 2},
            timeout=timeout,
            base_url=base_url,
            api_key=api_key or None,
            max_retries=max_retries,
        )
        self._client = self._clients.client
        self._lock = mutex()
        self.usage = 0

    def __repr__(self) -> str:
        return f"RerankEndpoint({self.model!r}, {str(self._client.base_url)!r})"

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            RerankError: If its answer does not have a score for each passage.
        """
        scores: list[float] = []
        for batch in self._batches(texts):
            scores += self._read(self._clients.call(self._request(query, batch)), batch)
        return scores

    async def arerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Do the same without blocking the event loop."""
        scores: list[float] = []
        for batch in self._batches(texts):
            scores += self._read(await self._clients.acall(self._request(query, batch)), batch)
        return scores

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        for start in range(0, len(texts), self.batch_size):
            yield list(texts[start : start + self.batch_size])

    def _request(self, query: str, texts: Sequence[str]) -> Callable[[Any], Any]:
        body = {**self.body, "query": query, "documents": texts}
        return lambda client: client.post("/rerank", cast_to=object, body=body)

    def _read(self, answer: Any, texts: Sequence[str]) -> list[float]:
        """Return the scores in the order of the passages, which the answer need not have."""
        try:
            items = answer["results"] if "results" in answer else answer["data"]
            scores = {
                item["index"]: float(item.get("relevance_score", item.get("score")))
                for item in items
            }
            complete = len(items) == len(texts) and set(scores) == set(range(len(texts)))
        except (KeyError, TypeError, ValueError):
            complete = False
        if not complete:
            raise RerankError(
                f"the server answered {answer!r:.120} for {len(texts)} passages; model "
                f"{self.model!r} has to give results with an index and a relevance_score for each: "
                "look at base_url, or give CrossEncoderReranker a function of your own"
            )
        usage = answer.get("usage") or {}
        with self._lock:
            self.usage += usage.get("total_tokens") or usage.get("prompt_tokens") or 0
        return [scores[at] for at in range(len(texts))]
