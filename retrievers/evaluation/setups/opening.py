"""Open declared set-ups on a graph: declare its groups, make the retrievers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from ....nodegraph.errors import nearest_names
from ....nodegraph.graph import NodeGraph
from ...answers.engine import QueryEngine
from ...base_retriever import BaseRetriever
from ...composite.link_graph import LinkOptions
from ...foreign.coercion import as_retriever
from ...rerankers.reranker import Reranker
from ...similarities.bm25 import Bm25
from ...similarities.registry import get_similarity
from ...strategies.sub_question import PartialAnswers
from ...validation import with_settings
from .setup_file import (
    ENGINES,
    RETRIEVERS,
    TRANSFORMS,
    SetupFile,
    Table,
    load_object,
    names_code,
    takes_graph,
    transform_arguments,
)

RERANKER_LIMITS = ("top_k", "cut_off", "relative_cut")
"""What every reranker may have, beside its own settings."""


class SetupOpener:
    """Make the retrievers and query engines of a file's set-ups on a graph.

    Groups are declared at once, and built when something searches them.

    Args:
        file: The set-ups.
        graph: The graph to search. Groups that it has must have the same rules.
        models: The models that set-ups name, by name.

    Raises:
        ValueError: If the graph has a group of a declared name with another rule, or a group's
            parent is unknown.
    """

    def __init__(
        self, file: SetupFile, graph: NodeGraph, models: Mapping[str, Any] | None = None
    ) -> None:
        self.file = file
        self.graph = graph
        self.models = models or {}
        for name in _parents_first(file.groups):
            self._declare(name, file.groups[name])

    def _declare(self, name: str, table: Table) -> None:
        """Declare a group on the graph as its table says."""
        arguments = dict(table)
        named = arguments.pop("transform")
        if names_code(named):
            transform, options = load_object(named), arguments.pop("arguments", {})
            if inspect.isclass(transform) or options:
                transform = transform(**options)
        else:
            transform = TRANSFORMS[named]
        if named in TRANSFORMS and inspect.isclass(transform):
            allowed = transform_arguments(named)
            options = {k: arguments.pop(k) for k in list(arguments) if k in allowed}
            if "llm" in options:
                options["llm"] = self.model(options["llm"])
            transform = transform(**options)
            if named == "EntityExtractor":
                arguments.setdefault("scope", "group")
        self.graph.create_node_group(name, transform, **arguments)

    def open(self, name: str | None = None) -> BaseRetriever | QueryEngine:
        """Return the retriever or query engine of a set-up. Of the default one without a name.

        Raises:
            ValueError: If there is no such set-up, group or model, or an argument is refused.
        """
        table, where = self._location(name)
        if table["type"] not in ENGINES:
            return self.retriever(table, where)
        engine: QueryEngine = self._make(ENGINES[table["type"]], table, where)
        return engine

    def open_all(self) -> dict[str, BaseRetriever | QueryEngine]:
        """Return the retrievers and engines of all set-ups by name."""
        return {name: self.open(name) for name in self.file.setups}

    def open_retriever(self, name: str | None = None) -> BaseRetriever:
        """Return the retriever of a set-up. Of a query engine the one that it answers from.

        Raises:
            ValueError: As for ``open``.
        """
        return self.retriever(*self._location(name))

    def _location(self, name: str | None) -> tuple[Table, str]:
        name = self.file.default if name is None else name
        of = "" if self.file.path is None else f" of {self.file.path}"
        return self.file.table(name), f"set-up {name!r}{of}"

    def retriever(self, table: Table | str, where: str) -> BaseRetriever:
        """Return the retriever that a table declares, with those in it.

        Raises:
            ValueError: As for ``open``. It says where.
        """
        if isinstance(table, str):
            return self.open_retriever(table)
        if table["type"] in ENGINES:
            return self.retriever(table["retriever"], where)
        if names_code(table["type"]):
            made = self._make(load_object(table["type"]), table, where)
            named: BaseRetriever = cast("Any", as_retriever(made, f"{where}, {table['type']}"))
            return named
        kind = RETRIEVERS[table["type"]]
        retriever: BaseRetriever = self._make(kind, table, where)
        return retriever

    def _make(self, kind: Any, table: Table, where: str) -> Any:
        """Return an object of a class with the arguments of a table."""
        try:
            arguments = {
                key: self._argument(key, value, where)
                for key, value in table.items()
                if key != "type"
            }
            if takes_graph(kind):
                arguments["graph"] = self.graph
            return kind(**with_settings(kind, arguments))
        except (TypeError, ValueError, LookupError) as error:
            if str(error).startswith("set-up "):
                raise
            raise ValueError(f"{where}, {table['type']}: {error}") from error

    def _argument(self, key: str, value: Any, where: str) -> Any:
        if key in ("inner", "retriever"):
            return self.retriever(value, where)
        if key == "retrievers":
            return [self.retriever(item, where) for item in value]
        if key == "references":
            return {name: self.retriever(item, where) for name, item in value.items()}
        if key == "llm":
            return self.model(value)
        if not isinstance(value, Mapping):
            return self.reranker({"name": value}) if key == "reranker" else value
        settings = dict(value)
        if key in ("similarity", "words"):
            return get_similarity(settings.pop("name", None), **settings)
        if key == "reranker":
            return self.reranker(settings)
        if key == "bm25":
            return Bm25(**settings)
        if key == "answers":
            model = settings.pop("llm", None)
            return PartialAnswers(None if model is None else self.model(model), **settings)
        if key == "options":
            return LinkOptions(**settings)
        return value

    def reranker(self, table: Table) -> Reranker:
        """Return a reranker by its name, with its settings, ``top_k`` and cut-offs."""
        settings = dict(table)
        if "model" in settings:
            settings["model"] = self.model(settings["model"])
        name: Any = settings.pop("name", None)
        if names_code(name):
            name = load_object(name)
            if inspect.isclass(name):
                limits = {key: settings.pop(key) for key in RERANKER_LIMITS if key in settings}
                return Reranker(cast("Any", name(**settings)), **limits)
        return Reranker(name, **settings)

    def model(self, name: object) -> Any:
        """Return a model by its name.

        Raises:
            ValueError: If there is none of that name.
        """
        if not isinstance(name, str) or name not in self.models:
            names = nearest_names(str(name), self.models)
            raise ValueError(f"there is no model {name!r}; in [models] there is {names}")
        return self.models[name]


def _parents_first(groups: Table) -> list[str]:
    """Return the names of groups in an order in which they can be declared.

    Raises:
        ValueError: If groups are their own ancestors.
    """
    parents = {name: [table.get("parent", "ROOT")] for name, table in groups.items()}
    try:
        return [name for name in TopologicalSorter(parents).static_order() if name in groups]
    except CycleError as error:
        circle = ", ".join(dict.fromkeys(error.args[1]))
        raise ValueError(f"the groups {circle} are their own ancestors") from error
