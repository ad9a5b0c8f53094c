"""Limits on the number and the duration of model calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from ...nodegraph.errors import ModelError
from ...nodegraph.models.usage import Usage, usage_of
from .plan import All, Effect, intercept
from .timeouts import TimeLimitError

T = TypeVar("T")

clock: Callable[[], float] = time.monotonic


class LimitExceededError(ModelError):
    """An error that is raised if a strategy exceeds its limit on model calls or on time."""


class CallLimits:
    """Limits on the number of model calls of a strategy and on its running time.

    When a limit is exceeded, ``LimitExceededError`` is raised within the strategy. Since the
    strategy may catch the error, the caller should check ``exceeded``.

    Args:
        max_calls: The maximum number of model calls, including retries. If None, the number is not
            limited.
        total_timeout: The time limit in seconds, measured from the construction of this object. If
            None, the time is not limited.

    Attributes:
        calls: The number of model calls so far.
        usage: The number of completed model calls and the tokens that they used.
        exceeded: The limit that was exceeded first, or None.
    """

    def __init__(self, max_calls: int | None = None, total_timeout: float | None = None) -> None:
        self.calls = 0
        self.usage = Usage()
        self.exceeded: Literal["calls", "seconds"] | None = None
        self._max_calls = max_calls
        self._total_timeout = total_timeout
        self._end = None if total_timeout is None else clock() + total_timeout
        self._lock = threading.Lock()

    async def enforce(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Run the coroutine function ``function(*args)`` within the limits.

        Model calls are counted. When the time is over, pending model calls and searches are
        abandoned, but other work is completed.

        Raises:
            LimitExceededError: If a limit was exceeded and the coroutine did not catch the error.
        """
        return await intercept(function, self._limited, *args)

    def _limited(self, effect: Effect) -> Generator[Effect, Any, Any]:
        if isinstance(effect, All):
            parts = [partial(self.enforce, part) for part in effect.parts]
            return (yield replace(effect, parts=parts))
        if effect.kind == "work":
            return (yield effect)
        remaining = None if self._end is None else self._end - clock()
        if remaining is not None and remaining <= 0:
            raise self._late()
        if effect.kind == "model":
            with self._lock:
                if self._max_calls is not None and self.calls >= self._max_calls:
                    raise self._error("calls", f"max_calls={self._max_calls} is reached")
                self.calls += 1
        is_soon = remaining is None or (effect.timeout is not None and effect.timeout < remaining)
        result: Any = None
        try:
            if not is_soon:
                effect = replace(effect, timeout=remaining)
            result = yield effect
        except TimeLimitError:
            if is_soon:
                raise
            raise self._late() from None
        finally:
            if effect.kind == "model":
                with self._lock:
                    self.usage += usage_of(result)
        return result

    def _late(self) -> LimitExceededError:
        return self._error("seconds", f"total_timeout={self._total_timeout:g} s is over")

    def _error(self, resource: Literal["calls", "seconds"], message: str) -> LimitExceededError:
        self.exceeded = self.exceeded or resource
        return LimitExceededError(message)
