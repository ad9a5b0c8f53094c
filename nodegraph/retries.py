"""Try again what a store could not do for now."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import TypeVar

from .errors import TransientStoreError

T = TypeVar("T")

_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # seconds, about


def retried(work: Callable[[], T], patience: float = math.inf) -> T:
    """Return what a call returns, made again where the store failed for now, for some seconds.

    The waits grow, and differ at random, so that many processes don't come back at once. What is
    called again must do the same: documents, nodes and values are known by their ids.

    Args:
        work: What to call.
        patience: Seconds after which it is not called again, for what waits itself.

    Raises:
        TransientStoreError: If the store has not come back; nothing was changed.
    """
    end = time.monotonic() + patience
    for wait in _WAITS:
        try:
            return work()
        except TransientStoreError:
            if time.monotonic() > end:
                raise
            time.sleep(wait * random.uniform(0.5, 1.5))
    return work()
