"""Compile the inner loops of a search, where numba is installed (``nodekin[fast]``)."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import kernels

logger = logging.getLogger(__name__)

LARGE = 10_000
"""Nodes from which importing numba, some tenths of a second, is worth it: a query of fewer takes
a tenth of a millisecond.
"""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Hold the functions of ``kernels``, compiled or as they are."""

    add_term: Callable[..., int] = kernels.add_term
    lowest_of_best: Callable[..., float] = kernels.lowest_of_best
    take_best: Callable[..., int] = kernels.take_best
    take_reaching: Callable[..., int] = kernels.take_reaching
    look_up: Callable[..., None] = kernels.look_up


class Accelerator:
    """Give compiled loops to those who search, once there is a large index.

    numba is imported, and the loops are compiled or read from numba's cache on the disk, at the
    first search of a large index. Without numba, or where it fails, there are none.

    Attributes:
        loaded: The compiled loops; None until they are loaded, or where there are none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tried = False
        self.loaded: Kernels | None = None

    def kernels(self) -> Kernels | None:
        """Load the loops, the first time only; return them, or None to do without."""
        if not self._tried:
            with self._lock:
                if not self._tried:
                    self.loaded = load()
                    self._tried = True
        return self.loaded


accelerator = Accelerator()
"""The one of this process."""


def load() -> Kernels | None:
    """Compile the loops, or read them from the disk; None where numba is not there."""
    if "numba" not in sys.modules and importlib.util.find_spec("numba") is None:
        return None
    try:
        numba: Any = importlib.import_module("numba")
        return None if numba.config.DISABLE_JIT else _compiled(numba)
    except Exception as error:  # of a numba that does not fit this NumPy or this machine
        logger.debug("searching without numba, which failed: %s", error)
        return None


def _compiled(numba: Any) -> Kernels:
    types = numba.types

    def array(kind: Any, readonly: bool = True) -> Any:
        return types.Array(kind, 1, "C", readonly=readonly)

    def compiled(function: Callable[..., Any], *signature: Any) -> Any:
        try:
            return numba.njit([signature], cache=True, nogil=True)(function)
        except RuntimeError as error:  # there is no folder to keep it in
            logger.debug("what numba compiles is not kept: %s", error)
            return numba.njit([signature], nogil=True)(function)

    number, whole, truth = types.float64, types.int64, types.boolean
    ints, floats, mask = array(types.int32), array(number), array(truth)
    orders = array(types.int64)
    own_ints, own_floats = array(types.int32, False), array(number, False)
    touched = (own_floats, ints, whole, mask, truth)
    return Kernels(
        compiled(kernels.add_term, ints, floats, number, own_floats, own_ints, whole),
        compiled(kernels.lowest_of_best, floats, ints, whole, mask, truth, own_floats),
        compiled(kernels.take_best, *touched, orders, own_ints, own_floats),
        compiled(kernels.take_reaching, *touched, number, own_ints, own_floats),
        compiled(
            kernels.look_up,
            *(ints, own_floats, whole, ints, ints, ints, number, number, number, number),
        ),
    )
