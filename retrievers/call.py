"""The value of one search: its filters, its restriction and its token budget."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..nodegraph.concurrency import context_value
from .filters import Filters, all_of, parse_filters

if TYPE_CHECKING:
    from .token_budget import TokenBudget


@dataclass(frozen=True, slots=True)
class Call:
    """The conditions of one search, such as its filters and its token budget.

    A retriever creates this value when its search begins, and passes it to all steps of the search.

    Attributes:
        filters: The filters of the caller, or None.
        restriction: The filters that every returned node must match, or None. See ``restrict``.
        budget: The token budget, or None. If there is a budget, a retriever that supports smaller
            parts of text returns such parts.
        state: The number of the graph's state, if the graph is on a server and an earlier step of
            the search has read this number, or None. Later steps do not read it again.
    """

    filters: Filters | None = None
    restriction: Filters | None = None
    budget: TokenBudget | None = None
    state: int | None = None

    @classmethod
    def begin(cls, filters: Filters | None = None) -> Call:
        """Return the value of a search that begins in the current context."""
        around = _around.get()
        if filters is None:
            return around
        return cls(filters, around.restriction, around.budget)

    @property
    def conditions(self) -> Filters | None:
        """The restriction and the filters, combined with "and"."""
        return all_of(self.restriction, self.filters)


_ALONE = Call()  # a search that no other call surrounds

_around: ContextVar[Call] = ContextVar("call", default=_ALONE)
"""The restriction and the token budget of the calls around a search.

They apply to every retriever in all threads and tasks that are started in the context, even if
retrievers in between do not pass them on.
"""


def restrict_calls(filters: Filters | None) -> AbstractContextManager[object]:
    """Restrict all searches in a ``with`` block, in addition to the restriction around it."""
    return _change(restriction=all_of(_around.get().restriction, filters))


def limit_tokens(budget: TokenBudget | None) -> AbstractContextManager[object]:
    """Set the token budget of all searches in a ``with`` block.

    Args:
        budget: The token budget. If None, the searches have no budget. If its ``max_tokens`` is
            None, the budget around the block remains in force.
    """
    if budget is not None and budget.max_tokens is None:
        return nullcontext()
    return _change(budget=budget)


def _change(**values: Any) -> AbstractContextManager[object]:
    return context_value(_around, replace(_around.get(), **values))


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
