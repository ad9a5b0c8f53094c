"""Describe a retriever that was built in Python as a set-up of a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from ....nodegraph.graph import NodeGraph
from ...base_retriever import BaseRetriever
from ...composite.default_retriever import DefaultRetriever
from ...composite.link_graph import LinkOptions
from ...rerankers.reranker import RERANKERS, FunctionReranker, Reranker
from ...similarities.bm25 import Bm25
from ...similarities.registry import Auto, Cosine
from .opening import RERANKER_LIMITS, SetupOpener
from .setup_file import ENGINES, RETRIEVERS, TRANSFORMS, SetupFile, Table, argument_names

_UNKNOWN = object()


def describe_setup(
    retriever: object, name: str = "saved", models: Mapping[str, Any] | None = None
) -> SetupFile:
    """Return a retriever or query engine as a file of set-ups, with the groups that it searches.

    It is opened again on its graph before it is returned, and has to be the same.

    Args:
        retriever: The retriever.
        name: What the set-up is called.
        models: The models in it, by the names that the file has for them.

    Raises:
        ValueError: If a part can't be declared in a file. It says which.
    """
    describing = _Description(models or {})
    table = describing.retriever(retriever, f"the {type(retriever).__name__}")
    if describing.graph is None:
        raise ValueError(f"{retriever!r:.80} searches no graph, so a file can't declare it")
    groups = describing.groups(table)
    file = SetupFile({name: table}, groups, trust_code=True)  # it is in this process already
    again = SetupOpener(file, describing.graph, describing.models).open(name)
    other = _Description(describing.models).retriever(again, f"the {type(again).__name__}")
    if other != table:
        keys = [key for key in table if other.get(key) != table[key]] or list(other)
        raise ValueError(
            f"the {type(retriever).__name__} has something that a file can't say: opened again it "
            f"has another {', '.join(keys)}"
        )
    return file


class _Description:
    """Turn objects into tables.

    Attributes:
        models: The models by name.
        graph: The graph that is searched. None where none was seen.
    """

    def __init__(self, models: Mapping[str, Any]) -> None:
        self.models = models
        self.graph: NodeGraph | None = None

    def retriever(self, retriever: Any, where: str) -> dict[str, Any]:
        kind = type(retriever)
        if {**RETRIEVERS, **ENGINES}.get(kind.__name__) is not kind:
            raise ValueError(
                f"{where} is no retriever that a file can declare but {retriever!r:.80}; declare "
                'its class as type = "module:name"'
            )
        self._see(retriever)
        table: dict[str, Any] = {"type": kind.__name__}
        defaults = _defaults(kind)
        for name in argument_names(kind):
            value = _value_of(retriever, name)
            if value is _UNKNOWN:
                raise ValueError(f"{where}: its {name} can't be read back; write it by hand")
            if value is None or value == defaults.get(name, _UNKNOWN):
                continue
            if name == "embed_keys" and not value:
                continue  # of a search by words
            if (kind, name) == (DefaultRetriever, "target") and value in _default_groups(
                retriever.graph
            ):
                continue
            table[name] = self._plain(name, value, f"{where}, {name}")
        return table

    def _see(self, retriever: Any) -> None:
        graph = getattr(retriever, "graph", None)
        owner = getattr(retriever, "_pool", retriever)  # of a recursive retriever
        graphs = getattr(owner, "graphs", None) or ([graph] if graph is not None else [])
        for searched in graphs:
            if self.graph is not None and searched is not self.graph:
                raise ValueError("a set-up searches one graph, and this retriever several")
            self.graph = searched

    def _plain(self, name: str, value: Any, where: str) -> Any:
        """Return a value as a file has it."""
        if name in ("llm", "model"):
            return self._model(value, where)
        if isinstance(value, BaseRetriever):
            return self.retriever(value, where)
        if name == "retrievers":
            return [self.retriever(item, where) for item in value]
        if name == "references" and isinstance(value, Mapping):
            return {key: self.retriever(item, f"{where} {key!r}") for key, item in value.items()}
        if isinstance(value, Reranker):
            limits = {key: getattr(value, key) for key in RERANKER_LIMITS}
            table = {key: item for key, item in limits.items() if item is not None}
            return {**self._reranker(value.reranker, where), **table}
        if isinstance(value, LinkOptions):
            return self._settings(value, where)
        if isinstance(value, Bm25):
            return {"name": "bm25", **self._settings(value, where)}
        if isinstance(value, Cosine | Auto):
            return value.name
        if isinstance(registered := getattr(value, "name", None), str) and not is_dataclass(value):
            return registered
        return _check_plain(value, where)

    def _settings(self, item: Any, where: str) -> dict[str, Any]:
        """Return the settings of an object that differ from those of its class."""
        defaults, settings = _defaults(type(item)), {}
        for name in argument_names(type(item)):
            value = getattr(item, name, None)
            if value is not None and value != defaults.get(name, _UNKNOWN):
                settings[name] = self._plain(name, value, f"{where}, {name}")
        return settings

    def _reranker(self, reranker: Any, where: str) -> dict[str, Any]:
        """Return what a reranker is called, and its settings."""
        if isinstance(reranker, FunctionReranker):
            name = _code_name(reranker.function, where)
            return {"name": name, **_check_plain(reranker.settings, where)}
        known = next((name for name, kind in RERANKERS.items() if kind is type(reranker)), None)
        name = known or _code_name(type(reranker), where)
        return {"name": name, **self._settings(reranker, where)}

    def _model(self, model: Any, where: str) -> str:
        for name, other in self.models.items():
            parts = (model, getattr(model, "model", None))
            if any(part is other or part is getattr(other, "model", _UNKNOWN) for part in parts):
                return name
        raise ValueError(
            f"{where} is the model {model!r:.60}, for which the file needs a name: give "
            'models={"small": model}'
        )

    def groups(self, table: Table) -> dict[str, Any]:
        """Return the groups that a table names, and their parents."""
        assert self.graph is not None
        declared = {group.name: group for group in self.graph._registry}  # with their rules
        defaults = _default_groups(self.graph)
        declared = {name: group for name, group in declared.items() if name not in defaults}
        names = [name for name in _strings(table) if name in declared]
        for name in names:
            parent = declared[name].parent
            if parent in declared and parent not in names:
                names.append(parent)
        groups = {}
        for name in reversed(names):
            group, where = declared[name], f"the group {name!r}"
            call = getattr(group.rule, "call", None)
            entry = self._transform(call, where)
            if group.parent != "ROOT":
                entry["parent"] = group.parent
            if group.scope != "node":
                entry["scope"] = group.scope
            groups[name] = entry
        return groups

    def _transform(self, call: Any, where: str) -> dict[str, Any]:
        kind = call if inspect.isroutine(call) else type(call)
        known = next((name for name, item in TRANSFORMS.items() if item is kind), None)
        if known is not None:
            return {"transform": known} | (
                {} if inspect.isroutine(call) else self._settings(call, where)
            )
        name = _code_name(kind, where)
        if inspect.isroutine(call):
            return {"transform": name}
        return {"transform": name, "arguments": self._settings(call, where)}


def _code_name(code: Any, where: str) -> str:
    """Return a function or class of one's own as ``module:name``.

    Raises:
        ValueError: If no other process would find it by that name.
    """
    name = f"{code.__module__}:{code.__qualname__}"
    if code.__module__ == "__main__" or "<" in name:
        raise ValueError(
            f"{where} is made by {code!r:.80}, which a file can't name; put it into a module, as "
            "a function or class of its own"
        )
    return name


def _default_groups(graph: NodeGraph) -> set[str]:
    """Return the groups of a graph that the default retriever declares itself."""
    with NodeGraph(progress=False) as fresh:
        DefaultRetriever(fresh)
        versions = {(group.name, group.version) for group in fresh._registry}
    return {group.name for group in graph._registry if (group.name, group.version) in versions}


def _value_of(retriever: Any, name: str) -> Any:
    """Return what an argument was, wherever a retriever has it."""
    parts = [retriever, getattr(retriever, "settings", None)]
    for attribute in ("query_transform", "reader"):
        part = getattr(retriever, attribute, None)
        parts += [part, getattr(part, "settings", None)]
    for part in parts:
        if part is not None and hasattr(part, name):
            value = getattr(part, name)
            return None if name == "prompt" and value == getattr(part, "PROMPT", None) else value
    options = getattr(retriever, "_options", {})
    if name in options:
        return options[name]
    if name == "words" and (searches := getattr(retriever, "_words", ())):
        return searches[0].similarity  # of the default retriever
    if name == "embed_keys" and not getattr(retriever, "_needs_vectors", True):
        return None
    return _UNKNOWN


def _defaults(kind: Any) -> dict[str, Any]:
    """Return the defaults of a class' arguments, those of its settings included."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    settings = getattr(kind, "settings_type", None)
    for field in fields(settings) if settings is not None else ():
        if field.default is not MISSING:
            defaults[field.name] = field.default
    return defaults


def _check_plain(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _check_plain(item, where) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_check_plain(item, where) for item in value]
    if isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"{where} is {value!r:.80}, which a file can't say")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    )
    return list(dict.fromkeys(text for part in parts for text in _strings(part)))
