"""A file of set-ups: its tables, checked, and the code it names. Read and written as TOML."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ....nodegraph.errors import nearest_names
from ....nodegraph.extractors.entity_extractor import EntityExtractor
from ....nodegraph.extractors.llm_extractor import LLMExtractor
from ....nodegraph.graph import NodeGraph
from ....nodegraph.splitters.chunking import RecursiveSplitter
from ....nodegraph.splitters.headings import MarkdownSplitter
from ....nodegraph.splitters.passage_splitter import PassageSplitter
from ....nodegraph.splitters.sentences import SentenceSplitter, split_paragraphs, split_sentences
from ...answers.engine import QueryEngine
from ...base_retriever import BaseRetriever
from ...composite.auto_merge import AutoMergeRetriever
from ...composite.default_retriever import DefaultRetriever
from ...composite.fusion import FusionRetriever
from ...composite.link_retriever import LinkRetriever
from ...composite.recursive import RecursiveRetriever
from ...composite.window import DocumentCompletionRetriever, WindowRetriever
from ...rerankers.rerank_retriever import RerankRetriever
from ...retriever import Retriever
from ...strategies.hyde import HyDERetriever
from ...strategies.multi_step import MultiStepRetriever
from ...strategies.rewrite import MultiQueryRetriever, QueryRewriteRetriever
from ...strategies.sub_question import SubQuestionRetriever

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def names_code(value: object) -> bool:
    """Return whether a value has the form of a name in a module.

    Example:
        >>> names_code("my_module:split"), names_code("split_sentences")
        (True, False)
    """
    if not isinstance(value, str):
        return False
    module, colon, name = value.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def load_object(name: str) -> Any:
    """Return what ``module:name`` names. Modules of the current folder are found, too.

    Raises:
        ValueError: If there is no such module or name, or the module raises.
    """
    if not names_code(name):
        raise ValueError(f"{name!r} is not of the form module:name, such as search:make_retriever")
    module_name, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        value: Any = importlib.import_module(module_name)
    except Exception as error:  # what any module raises
        raise ValueError(
            f"can't import {module_name!r}: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = nearest_names(part, [n for n in dir(value) if not n.startswith("_")])
            raise ValueError(f"{module_name} has no {attribute!r}; there is {names}")
        value = getattr(value, part)
    return value


Table = Mapping[str, Any]

MODEL_KINDS = ("embed", "chat", "rerank")
"""The key of a model's table that says what it is for, and has its name."""

_SECTIONS = ("default", "graph", "models", "groups", "setups")

RETRIEVERS: dict[str, type[BaseRetriever]] = {
    cls.__name__: cls
    for cls in (
        *(Retriever, DefaultRetriever, FusionRetriever),
        *(RerankRetriever, LinkRetriever, RecursiveRetriever),
        *(AutoMergeRetriever, WindowRetriever, DocumentCompletionRetriever),
        *(HyDERetriever, MultiQueryRetriever, MultiStepRetriever),
        *(QueryRewriteRetriever, SubQuestionRetriever),
    )
}
"""The retrievers that a set-up may be made of, by the names of their classes."""

DEFAULT_SETUPS: Table = {"default": {"type": DefaultRetriever.__name__}}
"""The set-ups of a file that declares none."""

ENGINES: dict[str, type[QueryEngine]] = {QueryEngine.__name__: QueryEngine}
"""What answers from what a retriever returns, by the names of their classes."""

TRANSFORMS: dict[str, Callable[..., Any]] = {
    transform.__name__: transform
    for transform in (
        PassageSplitter,
        SentenceSplitter,
        RecursiveSplitter,
        MarkdownSplitter,
        EntityExtractor,
        LLMExtractor,
        split_paragraphs,
        split_sentences,
    )
}
"""The transforms of groups, by their own names."""

_NOT_IN_TOML = frozenset(
    {
        *("self", "graph", "name", "transform", "trans_node", "replace", "progress", "find"),
        *("reading", "length", "analyzer", "index", "prompts", "output_format"),
        *("join", "qa", "title"),
    }
)
"""Arguments that are functions, or that the opening of a set-up passes itself."""


def argument_names(function: Any) -> tuple[str, ...]:
    """Return the arguments of a class or function that a file can have, settings included."""
    make = function.__init__ if inspect.isclass(function) else function
    if make is object.__init__:
        return ()
    names: dict[str, None] = {}
    for parameter in inspect.signature(make).parameters.values():
        if parameter.name == "settings" and hasattr(function, "settings_type"):
            names.update(dict.fromkeys(field.name for field in fields(function.settings_type)))
        elif parameter.kind is not parameter.VAR_KEYWORD:
            names[parameter.name] = None
        else:
            options = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
            typed = getattr(sys.modules[make.__module__], options, None)
            names.update(dict.fromkeys(getattr(typed, "__annotations__", ())))
    return tuple(name for name in names if name not in _NOT_IN_TOML)


def transform_arguments(transform: str) -> tuple[str, ...]:
    """Return what a transform's table may have, beside what all groups have."""
    if transform not in TRANSFORMS:
        return ()
    chosen = TRANSFORMS[transform]
    return argument_names(chosen) if inspect.isclass(chosen) else ()


GROUP_ARGUMENTS = argument_names(NodeGraph.create_node_group)
"""What all groups may have."""

GRAPH_ARGUMENTS = argument_names(NodeGraph)
"""What ``[graph]`` may have."""


def takes_graph(retriever: type[BaseRetriever] | type[QueryEngine]) -> bool:
    """Return whether a retriever is opened on a graph, not around another retriever alone."""
    make = retriever.__init__ if inspect.isclass(retriever) else retriever
    return "graph" in inspect.signature(make).parameters


def check_keys(keys: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Check the keys of a table.

    Raises:
        ValueError: If one is unknown. It names the nearest.
    """
    names = list(allowed)
    for key in keys:
        if key not in names:
            raise ValueError(f"{where} has no {key!r}; there is {nearest_names(key, names)}")


def _check_arguments(table: Table, kind: type, where: str) -> None:
    """Check that a class has all keys of a table, and the table all that the class needs.

    Raises:
        ValueError: If not.
    """
    names = argument_names(kind)
    check_keys(table, ("type", *names), where)
    for name, parameter in inspect.signature(kind).parameters.items():
        is_needed = parameter.default is parameter.empty and parameter.kind in _NAMED
        if is_needed and name in names and name not in table:
            hint = _ARGUMENTS.get(name)
            raise ValueError(f"{where} needs {name!r}" + (f": {hint}" if hint else ""))


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_ARGUMENTS = {
    "group_name": "the group to search, such as 'ROOT'",
    "groups": "a list of the groups to search",
    "inner": "the name of a set-up, or the table of a retriever",
    "llm": "the name of a model in [models]",
    "reranker": "its name, or a table with its name and settings",
    "retriever": "the name of a set-up",
    "retrievers": "a list of names of set-ups, or of tables of retrievers",
}


@dataclass(frozen=True)
class SetupFile:
    """Hold declared set-ups: which groups a graph has, and which retrievers search them.

    Every table has the names of a class and of its arguments, nothing else::

        default = "fused"

        [graph]                      # arguments of NodeGraph
        source = "docs"              # below the folder of this file

        [groups.passage]             # arguments of create_node_group, and of its transform
        transform = "PassageSplitter"
        chunk_size = 160

        [groups.sentence]
        transform = "split_sentences"
        parent = "passage"

        [setups.words]               # arguments of the retriever that type names
        type = "Retriever"
        group_name = "passage"
        similarity = {name = "bm25", k1 = 1.2}

        [setups.fused]
        type = "FusionRetriever"
        mode = "relative"
        weights = [3, 1]
        retrievers = ["words", {type = "Retriever", group_name = "sentence", target = "passage"}]

        [setups.answers]
        type = "QueryEngine"
        retriever = "fused"
        llm = "small"                # a model of [models]

    A retriever within another is a table, or the name of another set-up. Models are named in
    ``[models.NAME]``, where ``embed``, ``chat`` or ``rerank`` is the model's name; ``api_key_env``
    names the environment variable of a key, which is never in the file.

    Code of one's own is named ``"module:name"``, as ``transform``, as ``type`` of a retriever, or
    as ``reranker``. It is run, so the file is only taken with ``trust_code``. A transform that is a
    class gets what is in ``arguments``.

    Attributes:
        setups: By name; the first is what others are compared with. Without any there is
            ``"default"``, the ``DefaultRetriever``.
        groups: By name.
        graph: Arguments of the graph: what is searched, how it is embedded.
        models: By name.
        default: The set-up that is opened where none is named; the first by default.
        path: The file.
        trust_code: Whether code that the file names may be run.

    Raises:
        ValueError: If a key is unknown, a set-up is within itself, or code is not trusted.
    """

    setups: Table = field(default_factory=dict)
    groups: Table = field(default_factory=dict)
    graph: Table = field(default_factory=dict)
    models: Table = field(default_factory=dict)
    default: str = ""
    path: Path | None = field(default=None, compare=False)
    trust_code: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        for section in _SECTIONS[1:]:
            tables = getattr(self, section)
            if not isinstance(tables, Mapping):
                raise ValueError(f"{self._where()}: {section} is a table, not {tables!r:.80}")
        for section in ("models", "groups", "setups"):
            for name, table in getattr(self, section).items():
                if not isinstance(table, Mapping):
                    raise ValueError(f"{self._where(section, name)} is a table, not {table!r:.80}")
        check_keys(self.graph, GRAPH_ARGUMENTS, self._where("graph"))
        for name, table in self.models.items():
            self._check_model(name, table)
        for name, table in self.groups.items():
            self._check_group(name, table)
        for name, table in self.setups.items():
            self._check_setup(name, table)
        object.__setattr__(self, "setups", self.setups or DEFAULT_SETUPS)
        if not isinstance(self.default, str):
            raise ValueError(
                f"{self._where()}: default is the name of a set-up, not {self.default!r:.80}"
            )
        object.__setattr__(self, "default", self.default or next(iter(self.setups)))
        self.table(self.default)

    @classmethod
    def read(cls, path: str | Path, *, trust_code: bool = False) -> SetupFile:
        """Read a file.

        Args:
            path: The file.
            trust_code: Whether code that it names may be run.

        Raises:
            OSError: If it can't be read.
            ValueError: If it is no TOML, or declares what there is not.
        """
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"there is no file {str(path)!r} with set-ups")
        return cls.parse(path.read_text(encoding="utf-8-sig"), path, trust_code=trust_code)

    @classmethod
    def parse(cls, text: str, path: Path | None = None, *, trust_code: bool = False) -> SetupFile:
        """Read the text of a file.

        Raises:
            ValueError: If it is no TOML, or declares what there is not.
        """
        where = "the set-ups" if path is None else str(path)
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{where} is no TOML: {error}") from error
        check_keys(tables, _SECTIONS, where)
        return cls(**tables, path=path, trust_code=trust_code)

    def to_toml(self) -> str:
        """Return the file's text. Read again it is equal."""
        import tomli_w

        tables = {section: getattr(self, section) for section in _SECTIONS}
        filled = {section: table for section, table in tables.items() if table}
        return tomli_w.dumps(filled)

    def table(self, name: str) -> Table:
        """Return what a set-up is declared as.

        Raises:
            ValueError: If there is none of that name.
        """
        if name not in self.setups:
            raise ValueError(
                f"{self._where()} has no set-up {name!r}; there are "
                f"{nearest_names(name, self.setups)}"
            )
        table: Table = self.setups[name]
        return table

    def describe(self, name: str) -> str:
        """Return all that decides what a set-up returns, as one text: what it is known by."""
        parts = {
            "setup": self.resolved(name),
            "groups": self.groups,
            "models": self.models,
            "graph": {k: v for k, v in self.graph.items() if k not in ("source", "store")},
        }
        return json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)

    def resolved(self, table: Any) -> Any:
        """Return a set-up, by its table or name, with the set-ups that it names in their places."""
        if isinstance(table, str):
            return self.resolved(self.table(table))
        return {
            key: self.resolved(value)
            if key in ("inner", "retriever")
            else [self.resolved(item) for item in value]
            if key == "retrievers"
            else {name: self.resolved(item) for name, item in value.items()}
            if key == "references"
            else value
            for key, value in table.items()
        }

    def _where(self, *section: str) -> str:
        file = "the set-ups" if self.path is None else str(self.path)
        return f"{file}, [{'.'.join(section)}]" if section else file

    def _check_model(self, name: str, table: Table) -> None:
        where = self._where("models", name)
        kinds = [kind for kind in MODEL_KINDS if isinstance(table.get(kind), str)]
        if len(kinds) != 1:
            raise ValueError(f"{where} names its model by one of {', '.join(MODEL_KINDS)}")
        if "api_key" in table:
            raise ValueError(
                f"{where} has a key in it; remove it, and name the environment variable that has "
                "it: api_key_env = 'OPENAI_API_KEY'"
            )

    def _check_group(self, name: str, table: Table) -> None:
        where = self._where("groups", name)
        transform = table.get("transform")
        if names_code(transform):
            self._check_trust(transform, where)
            check_keys(table, ("transform", "arguments", *GROUP_ARGUMENTS), where)
            return
        if transform not in TRANSFORMS:
            raise ValueError(
                f"{where}: transform is {nearest_names(str(transform), TRANSFORMS, limit=99)}, not "
                f"{transform!r:.80}"
            )
        allowed = ("transform", *transform_arguments(transform), *GROUP_ARGUMENTS)
        check_keys(table, allowed, where)

    def _check_trust(self, name: object, where: str) -> None:
        if not self.trust_code:
            raise ValueError(
                f"{where} names the code {name!r}, which would be run; if you trust it, say so by "
                "trust_code=True, or --trust-code on the command line"
            )

    def _check_setup(self, name: str, table: Table) -> None:
        """Check a retriever, or a query engine with the retriever that it answers from."""
        where, kind = self._where("setups", name), table.get("type")
        if kind not in ENGINES:
            self._check_retriever(table, where, (name,))
            return
        _check_arguments(table, ENGINES[kind], f"{where}, {kind}")
        self._check_retriever(table["retriever"], where, (name,))

    def _check_retriever(self, table: Any, where: str, ancestors: tuple[str, ...]) -> None:
        """Check a retriever and those in it."""
        if isinstance(table, str):
            if table in ancestors:
                raise ValueError(f"{where} is within itself: {' in '.join((table, *ancestors))}")
            self._check_retriever(self.table(table), where, (table, *ancestors))
            return
        if not isinstance(table, Mapping):
            raise ValueError(
                f"{where}: a retriever is a table with a type, or the name of a set-up, not "
                f"{table!r:.80}"
            )
        kind = table.get("type")
        if kind in ENGINES:
            raise ValueError(
                f"{where}: a {kind} is no retriever and can't be within one; name its retriever"
            )
        reranker = table.get("reranker")
        name = reranker.get("name") if isinstance(reranker, Mapping) else reranker
        for code in filter(names_code, (kind, name)):
            self._check_trust(code, where)
        if kind not in RETRIEVERS and not names_code(kind):
            raise ValueError(
                f"{where}: type is {nearest_names(str(kind), [*RETRIEVERS, *ENGINES], limit=99)}, "
                f"not {kind!r:.80}"
            )
        if kind in RETRIEVERS:
            _check_arguments(table, RETRIEVERS[kind], f"{where}, {kind}")
        inner = table.get("retrievers", [])
        if not isinstance(inner, list):
            raise ValueError(f"{where}: retrievers is a list, not {inner!r:.80}")
        references = table.get("references", {})
        if not isinstance(references, Mapping):
            raise ValueError(f"{where}: references is a table, not {references!r:.80}")
        alone = [table["inner"]] if "inner" in table else []
        for item in (*inner, *alone, *references.values()):
            self._check_retriever(item, where, ancestors)
