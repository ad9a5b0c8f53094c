"""Count function calls, which do not depend on the speed of the machine."""

import sys
from collections.abc import Callable


def function_calls(work: Callable[[], object]) -> int:
    """Call a function, and return the number of Python functions that it calls."""
    calls = 0

    def count_call(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    outer = sys.getprofile()
    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(outer)
    return calls
