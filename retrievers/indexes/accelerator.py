"""Compile the inner loops of a search, where numba is installed (``nodekin[fast]``)."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from typing import Any

from . import kernels
from .compiled_search import Kernel

logger = logging.getLogger(__name__)

WORTH_LOADING = 5_000_000
"""Nodes to be searched, over all queries of an index, from which importing numba, some tenths of a
second and 150 MB, is worth it: fifty queries of 100,000, which without it took as long.
"""


class Accelerator:
    """Give compiled loops to those who search much.

    numba is imported, and the loops are compiled or read from numba's cache on the disk, when
    they are asked for the first time. Without numba, or where it fails, there are none.

    Attributes:
        loaded: The compiled loops; None until they are loaded, or where there are none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tried = False
        self.loaded: Kernel | None = None

    def kernel(self) -> Kernel | None:
        """Load the loops, the first time only; return them, or None to do without."""
        if not self._tried:
            with self._lock:
                if not self._tried:
                    self.loaded = load()
                    self._tried = True
        return self.loaded


accelerator = Accelerator()
"""The one of this process."""


def load() -> Kernel | None:
    """Compile the loops, or read them from the disk; None where numba is not there."""
    if "numba" not in sys.modules and importlib.util.find_spec("numba") is None:
        return None
    try:
        numba: Any = importlib.import_module("numba")
        return None if numba.config.DISABLE_JIT else _compiled(numba)
    except Exception as error:  # of a numba that does not fit this NumPy or this machine
        logger.debug("searching without numba, which failed: %s", error)
        return None


def _compiled(numba: Any) -> Kernel:
    types = numba.types

    def array(kind: Any, readonly: bool = True) -> Any:
        return types.Array(kind, 1, "C", readonly=readonly)

    number, whole, narrow = types.float64, types.int64, types.int32
    signature = (
        *(array(whole), array(narrow), array(narrow), array(number), array(number)),  # the lists
        *(array(whole), array(number)),  # the query
        *(array(number, False), array(narrow, False)),  # room
        *(array(types.boolean), whole, array(whole)),
        *(array(narrow, False), array(number, False)),  # what is found
    )
    try:
        kernel: Kernel = numba.njit([signature], cache=True, nogil=True)(kernels.search)
    except RuntimeError as error:  # there is no folder to keep it in
        logger.debug("what numba compiles is not kept: %s", error)
        kernel = numba.njit([signature], nogil=True)(kernels.search)
    return kernel
