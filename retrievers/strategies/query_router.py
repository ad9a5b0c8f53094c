"""Let a model choose which route suits a question."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...nodegraph.errors import nearest
from ..plan import Plan
from ..prompt import Prompt
from .query_transform import Forms, QueryTransform
from .read_routes import read_routes

PROMPT = Prompt(
    zh="""\
下面是可用的检索途径。请选出最适合回答问题的{how_many}，只输出名称，不要回答问题，不要解释。

途径：
{routes}

问题：{query}

名称：""",
    en="""\
Here are the sources that can be searched. Choose {how_many} that suits the question best. Write
only the name; do not answer the question, and do not explain.

Sources:
{routes}

Question: {query}

Name:""",
    required=("query", "routes"),
    optional=("how_many",),
)
_HOW_MANY = {
    ("zh", False): "一个途径",
    ("zh", True): "一个或几个途径（每行一个）",
    ("en", False): "the one",
    ("en", True): "the one (or the few, one a line)",
}


class QueryRouter(QueryTransform):
    """Let a model choose among routes by their descriptions; what it returns are their names.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        routes: What each route is good for, by its name.
        default: The route where the model's answer can't be used; None for the first.
        multiple: Whether several may be chosen.
        **settings: ``prompt`` (with ``{query}`` and ``{routes}``), ``language``, ``on_error``,
            ``retries``, ``timeout``; see ``QueryTransform``.

    Raises:
        ValueError: If there is no route, or no such default.

    Example:
        >>> routes = {"rivers": "All about rivers", "drinks": "Tea, coffee, milk"}
        >>> QueryRouter(lambda prompt: "**drinks**", routes)("Is tea fermented?")
        ['drinks']
    """

    name = "route"
    PROMPT = PROMPT

    def __init__(
        self,
        llm: object,
        routes: Mapping[str, str],
        *,
        default: str | None = None,
        multiple: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(llm, **settings)
        self.routes = dict(routes)
        self.default = check_default(default, self.routes)
        self.multiple = multiple

    def _kept(self, query: str) -> tuple[str, ...]:
        return (self.default,)

    def _forms(self, query: str) -> Plan[Forms]:
        names = list(self.routes)
        one: dict[str, Any] = {"type": "string", "enum": names}
        choice = {"type": "array", "items": one} if self.multiple else one
        lines = [
            f"{number}. {name}{': ' if text else ''}{text}"
            for number, (name, text) in enumerate(self.routes.items(), 1)
        ]
        schema = {
            "title": "route",
            "description": "The names of the routes that suit the question",
            "type": "object",
            "properties": {"names": choice},
            "required": ["names"],
            "additionalProperties": False,
        }
        chosen = yield from self._asked(
            query,
            partial(read_routes, names=names, multiple=self.multiple),
            schema,
            '{"names": ["..."]}' if self.multiple else '{"names": "..."}',
            routes="\n".join(lines),
            how_many=_HOW_MANY[self._language(query), self.multiple],
        )
        return Forms(tuple(chosen))


def check_default(default: str | None, routes: Mapping[str, object]) -> str:
    """Return the route to take where none is chosen: the first unless another is named.

    Raises:
        TypeError: If a name is no text.
        ValueError: If there is no route, or none of that name.
    """
    for name in routes:
        if not isinstance(name, str):
            raise TypeError(f"a route's name is a text, not {name!r:.80}")
        if not name.strip():
            raise ValueError(f"a route has the blank name {name!r}; give it one that can be chosen")
    if not routes:
        raise ValueError("routes={} leaves nothing to choose from; give one or more")
    if default is None:
        return next(iter(routes))
    if default not in routes:
        raise ValueError(f"no route {default!r}; there is {nearest(str(default), routes)}")
    return default
