"""The active restriction: filters that every returned node must match."""

from __future__ import annotations

from contextvars import ContextVar
from copy import deepcopy

from .filters import Filters, parse_filters

RESTRICTION: ContextVar[Filters | None] = ContextVar("restriction", default=None)
"""The active restriction, or None if nothing is restricted.

It applies to every retriever, in all threads and tasks that are started in its context, even if
retrievers in between do not pass filters on. See ``restrict``.
"""


def check_restriction(filters: Filters) -> Filters:
    """Validate the filters of a restriction, and return a private copy.

    Raises:
        TypeError: If the filters are invalid.
        ValueError: If the filters contain no condition.
    """
    if not parse_filters(filters):
        raise ValueError(
            f"a restriction to {filters!r:.80} has no condition; give one, like {{'tenant': 'a'}}"
        )
    return deepcopy(filters)
