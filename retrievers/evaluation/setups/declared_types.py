"""Which classes a set-up may name, and which of their arguments: those that TOML has a form for."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ....nodegraph.errors import nearest_names
from ....nodegraph.extractors.entity_extractor import EntityExtractor
from ....nodegraph.graph import NodeGraph
from ....nodegraph.splitters.markdown_splitter import MarkdownSplitter
from ....nodegraph.splitters.passage_splitter import PassageSplitter
from ....nodegraph.splitters.recursive_splitter import RecursiveSplitter
from ....nodegraph.splitters.sentence_splitter import SentenceSplitter
from ....nodegraph.splitters.sentences import split_paragraphs, split_sentences
from ...answers.engine import QueryEngine
from ...base_retriever import BaseRetriever
from ...composite.auto_merge import AutoMergeRetriever
from ...composite.default_retriever import DefaultRetriever
from ...composite.document_completion import DocumentCompletionRetriever
from ...composite.fusion import FusionRetriever
from ...composite.link_retriever import LinkRetriever
from ...composite.recursive import RecursiveRetriever
from ...composite.window import WindowRetriever
from ...rerankers.rerank_retriever import RerankRetriever
from ...retriever import Retriever
from ...strategies.hyde import HyDERetriever
from ...strategies.multi_query import MultiQueryRetriever
from ...strategies.multi_step import MultiStepRetriever
from ...strategies.rewrite import QueryRewriteRetriever
from ...strategies.sub_question import SubQuestionRetriever

_RETRIEVERS: tuple[type[BaseRetriever], ...] = (
    Retriever,
    DefaultRetriever,
    FusionRetriever,
    RerankRetriever,
    LinkRetriever,
    RecursiveRetriever,
    AutoMergeRetriever,
    WindowRetriever,
    DocumentCompletionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QueryRewriteRetriever,
    SubQuestionRetriever,
)

RETRIEVERS: dict[str, type[BaseRetriever]] = {cls.__name__: cls for cls in _RETRIEVERS}
"""The retrievers that a set-up may be made of, by the names of their classes."""

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
        split_paragraphs,
        split_sentences,
    )
}
"""The transforms of groups, by their own names."""

_NOT_IN_TOML = frozenset(
    {
        *("self", "graph", "name", "transform", "trans_node", "replace", "progress", "find"),
        *(
            "reading",
            "length",
            "analyzer",
            "references",
            "index",
            "prompts",
            "output_format",
            "join",
            "qa",
            "title",
        ),
    }
)
"""Arguments that are functions, or that the opening of a set-up passes itself."""


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments of a class or function that a file can have, typed options included."""
    make = function.__init__ if inspect.isclass(function) else function
    names: dict[str, None] = {}
    for parameter in inspect.signature(make).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            names[parameter.name] = None
            continue
        options = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
        typed = getattr(sys.modules[make.__module__], options, None)
        names.update(dict.fromkeys(getattr(typed, "__annotations__", ())))
    return tuple(name for name in names if name not in _NOT_IN_TOML)


def transform_arguments(transform: str) -> tuple[str, ...]:
    """Return what a transform's table may have, beside what all groups have."""
    chosen = TRANSFORMS[transform]
    return argument_names(chosen) if inspect.isclass(chosen) else ()


GROUP_ARGUMENTS = argument_names(NodeGraph.create_node_group)
"""What all groups may have."""

GRAPH_ARGUMENTS = argument_names(NodeGraph)
"""What ``[graph]`` may have."""


def takes_graph(retriever: type[BaseRetriever] | type[QueryEngine]) -> bool:
    """Return whether a retriever is opened on a graph, not around another retriever alone."""
    return "graph" in inspect.signature(retriever.__init__).parameters


def check_keys(keys: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Check the keys of a table.

    Raises:
        ValueError: If one is unknown; it names the nearest.
    """
    names = list(allowed)
    for key in keys:
        if key not in names:
            raise ValueError(f"{where} has no {key!r}; there is {nearest_names(key, names)}")
