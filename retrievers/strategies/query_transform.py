"""What turns a query into other forms of it, and what that does where its model fails."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from ...nodegraph import LLM
from ...nodegraph.llm import as_llm
from ...nodegraph.llm_lines import each_once
from ..plan import Plan, arun, run
from ..trace import stage

logger = logging.getLogger(__name__)
OnError = Literal["keep", "raise"]


@dataclass(frozen=True, slots=True)
class Forms:
    """Hold what to search for in place of a query.

    Attributes:
        queries: At least one.
        note: What went wrong on the way, None where nothing did.
    """

    queries: tuple[str, ...]
    note: str | None = None


class QueryTransform:
    """Turn a query into one or more; what every query transform offers.

    A subclass has a ``name``, which evidence and traces call it by, and ``_queries``: a plan that
    returns the queries, or raises where the model gave none that can be used.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        on_error: Where the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        retries: How often the model is asked again where its answer can't be used.
        timeout: Seconds to wait for each of the model's answers; None leaves it to its client.

    Raises:
        TypeError: If the model is none, or a number is not one.
        ValueError: If there is no such choice, or a number is out of range.
    """

    name = "transform"

    def __init__(
        self,
        llm: object,
        *,
        on_error: OnError = "keep",
        retries: int = 1,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        if on_error not in ("keep", "raise"):
            raise ValueError(f"on_error is 'keep' or 'raise', not {on_error!r}")
        self.on_error = on_error
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    def __call__(self, query: str) -> list[str]:
        """Return the forms of a query; see ``transform``."""
        return self.transform(query)

    def transform(self, query: str) -> list[str]:
        """Return the forms of a query: the query itself where the model fails, or it is blank.

        Raises:
            TypeError: If the query is no text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return list(run(self.plan(query)).queries)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return list((await arun(self.plan(query))).queries)

    def plan(self, query: str) -> Plan[Forms]:
        """Return the forms of a query, and what went wrong on the way, as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        if not query.strip():
            return Forms((query,))
        with stage(self.name, query=query) as done:
            try:
                queries = yield from self._queries(query)
                forms = Forms(tuple(each_once(queries)) or (query,))
            except Exception as error:
                if self.on_error == "raise":
                    raise
                note = f"{self.name} failed: {type(error).__name__}: {error}"
                logger.warning("the query %r is kept as it is: %s", query[:80], note)
                done.facts["failed"] = note
                forms = Forms((query,), note)
            done.facts["queries"] = list(forms.queries)
        return forms

    def _queries(self, query: str) -> Plan[list[str]]:
        raise NotImplementedError


def whole(number: int, name: str, least: int) -> int:
    """Return a whole number that is at least so large.

    Raises:
        TypeError: If it is none.
        ValueError: If it is smaller.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} is a whole number, not {number!r:.80}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number!r}")
    return number


def seconds(number: float | None, name: str) -> float | None:
    """Return a number of seconds, or None for no limit.

    Raises:
        TypeError: If it is neither.
        ValueError: If it is not above 0.
    """
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} is a number of seconds or None, not {number!r:.80}")
    if not number > 0:
        raise ValueError(f"{name} must be above 0 seconds, not {number!r}")
    return float(number)
