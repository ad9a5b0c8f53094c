"""Let a function choose which route suits a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from ...nodegraph.errors import nearest
from ..plan import Plan
from ..prompt import Prompt
from .budget import Call
from .query_router import QueryRouter
from .query_transform import Forms

Choose = Callable[[str], "str | Iterable[str] | Awaitable[str | Iterable[str]]"]


class FunctionRouter(QueryRouter):
    """Let a function choose among routes.

    Args:
        choose: A function, also an async one, from a query to a route's name, or to several.
        routes: What each route is good for, by its name.
        default: The route where the function fails or names none; None for the first.
        multiple: Whether several may be chosen.
        **settings: ``on_error``.

    Raises:
        TypeError: If there is no function.
        ValueError: If there is no route, or no such default.

    Example:
        >>> routes = {"short": "", "long": ""}
        >>> FunctionRouter(lambda query: "long" if len(query) > 20 else "short", routes)("Tea?")
        ['short']
    """

    def __init__(
        self,
        choose: Choose,
        routes: Mapping[str, str],
        **settings: Any,
    ) -> None:
        if not callable(choose):
            raise TypeError(f"choose is a function from a query to a name, not {choose!r:.80}")
        super().__init__(lambda prompt: prompt, routes, **settings)  # a model that is not asked
        self.choose = choose

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """None: a function is asked nothing but the query."""
        return {}

    def _forms(self, query: str) -> Plan[Forms]:
        chosen = yield Call(self.choose, (query,))
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        for name in names:
            if name not in self.routes:
                raise ValueError(f"no route {name!r}; there is {nearest(str(name), self.routes)}")
        if not names:
            raise ValueError("no route was chosen")
        return Forms(tuple(names if self.multiple else names[:1]))
