"""Limits on a strategy's model calls and time."""

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
    """An error: a strategy needs more model calls or seconds than its limits allow."""


class CallLimits:
    """Limits on the number of a strategy's model calls and on its time.

    A call that exceeds a limit raises ``LimitExceededError`` in the strategy, which may catch it.
    The code that set the limits therefore checks ``exceeded``.

    Args:
        max_calls: Maximum number of model calls, including repeated calls. None means no limit.
        total_timeout: Maximum seconds after construction. None means no limit.

    Attributes:
        calls: Number of model calls so far.
        usage: The number of model calls and their tokens so far.
        exceeded: The first exceeded limit. None if no limit was exceeded.
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
        """Run ``function(*args)``, a strategy, within the limits.

        Model calls are counted. Model calls and searches end when the time is over, but work is
        completed.

        Raises:
            LimitExceededError: If a limit was exceeded and the strategy did not catch the error.
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
