"""Calls of functions in the worker processes of an executor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any


def pickled(function: Callable[..., Any], owner: str) -> bytes:
    """Pickle a function or lambda for the workers of an executor.

    Args:
        function: The function.
        owner: The owner of the function, for the error message.

    Raises:
        TypeError: If the function cannot be pickled.
    """
    import cloudpickle

    try:
        value: bytes = cloudpickle.dumps(function)
    except Exception as error:
        raise TypeError(
            f"{owner} cannot be pickled for the executor ({type(error).__name__}: {error}); build "
            "without an executor"
        ) from error
    return value


def call_pickled(function: bytes, *values: Any) -> Any:
    """Call a pickled function, in a worker process."""
    return _unpickled(function)(*values)


@lru_cache(16)
def _unpickled(function: bytes) -> Callable[..., Any]:
    import cloudpickle

    call: Callable[..., Any] = cloudpickle.loads(function)
    return call
