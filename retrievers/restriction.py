"""The restriction of the current block: conditions that every returned node must meet."""

from __future__ import annotations

from contextvars import ContextVar
from copy import deepcopy

from .filters import Filters, parse_filters

RESTRICTION: ContextVar[Filters | None] = ContextVar("restriction", default=None)
"""The current restriction. None means no restriction.

It applies to every retriever in all threads and tasks that its block starts, even inside retrievers
that do not pass filters on. See ``restrict``.
"""


def check_restriction(filters: Filters) -> Filters:
    """Return a private copy of the conditions of a restriction.

    Raises:
        TypeError: If the filters are invalid.
        ValueError: If the filters contain no condition.
    """
    if not parse_filters(filters):
        raise ValueError(
            f"a restriction to {filters!r:.80} has no condition; give one, like {{'tenant': 'a'}}"
        )
    return deepcopy(filters)
