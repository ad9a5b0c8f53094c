"""Bound what a server may do to a call: one deadline, whatever it sends; sizes; redirects."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

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
