"""Limits of a strategy's model calls and seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from ...nodegraph.errors import ModelError
from .plan import All, Effect, Part, intercept
from .timeouts import TimeLimitError

T = TypeVar("T")

clock: Callable[[], float] = time.monotonic

_SLACK = 0.02
"""Seconds that a timer may be early."""

Resource: TypeAlias = Literal["calls", "seconds"]


class LimitExceededError(ModelError):
    """A strategy needs more model calls or seconds than its limits allow."""


class CallLimits:
    """Limits on the number of model calls and on the time of a strategy.

    A call that exceeds a limit raises ``LimitExceededError`` in the strategy, which may catch it.
    The code that set the limits therefore checks ``exceeded``.

    Args:
        max_calls: Maximum number of model calls, including repeated calls. None: no limit.
        total_timeout: Maximum seconds after construction. None: no limit.

    Attributes:
        calls: Number of model calls so far.
        exceeded: The first exceeded limit. None: all limits are met.
    """

    def __init__(self, max_calls: int | None = None, total_timeout: float | None = None) -> None:
        self.calls = 0
        self.exceeded: Resource | None = None
        self._max_calls = max_calls
        self._total_timeout = total_timeout
        self._end = None if total_timeout is None else clock() + total_timeout
        self._lock = threading.Lock()

    async def enforce(self, function: Part[T]) -> T:
        """Run a strategy within the limits.

        Calls of models count. Calls of models and searches end with the time; work completes.

        Raises:
            LimitExceededError: If a limit was exceeded and the strategy did not catch the error.
        """
        return await intercept(function, self._limited)

    def _limited(self, effect: Effect) -> Generator[Effect, Any, Any]:
        if isinstance(effect, All):
            parts = [partial(self.enforce, part) for part in effect.parts]
            return (yield replace(effect, parts=parts))
        if effect.kind == "work":
            return (yield effect)
        self.check_time()
        if effect.kind == "model":
            with self._lock:
                if self._max_calls is not None and self.calls >= self._max_calls:
                    raise self._error("calls", f"max_calls={self._max_calls} is reached")
                self.calls += 1
        if self._end is None:
            return (yield effect)
        remaining = max(0.0, self._end - clock())
        timeout = remaining if effect.timeout is None else min(remaining, effect.timeout)
        try:
            return (yield replace(effect, timeout=timeout))
        except TimeLimitError:
            self.check_time(_SLACK)
            raise

    def check_time(self, slack: float = 0.0) -> None:
        """Check that time remains.

        Raises:
            LimitExceededError: If no time remains.
        """
        if self._end is not None and clock() + slack >= self._end:
            message = f"total_timeout={self._total_timeout:g} s is over"
            raise self._error("seconds", message) from None

    def _error(self, resource: Resource, message: str) -> LimitExceededError:
        self.exceeded = self.exceeded or resource
        return LimitExceededError(message)
