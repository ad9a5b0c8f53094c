"""Retrievers and query engines with names and descriptions, for a model to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from ..foreign.coercion import as_retriever
from ..protocols import RetrieverLike, RetrieverProtocol


@dataclass(frozen=True, slots=True)
class NamedTool:
    """Hold a retriever or query engine that a model chooses by its name and description.

    Attributes:
        name: Its name.
        description: What it is good for; empty if nobody says.
        retriever: The retriever; of a query engine, the one whose result is the answer.
    """

    name: str
    description: str
    retriever: RetrieverProtocol


Tools: TypeAlias = (
    Mapping[str, RetrieverLike | tuple[str, RetrieverLike] | NamedTool] | Sequence[Any]
)
"""By name, retrievers and query engines, or pairs of a description and one; or a list of tools of
LangChain or LlamaIndex, which have names and descriptions."""


def is_tools(value: object) -> TypeGuard[Tools]:
    """Return whether a value is a mapping or a list, which no retriever is."""
    return isinstance(value, Mapping | list | tuple)


def named_tools(tools: Tools, noun: str = "tool") -> dict[str, NamedTool]:
    """Return tools by their names.

    Args:
        tools: By name, retrievers and query engines of any framework, or pairs of a description
            and one; or tools of LangChain (``name``, ``description``) and LlamaIndex
            (``metadata``) in a list.
        noun: What errors call one.

    Raises:
        TypeError: If one is no retriever, or in a list has no name.
        ValueError: If there is none, a name is blank, or two are the same.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> words = Retriever(NodeGraph(), "ROOT")
        >>> named_tools({"words": ("Any question", words)})["words"].description
        'Any question'
    """
    if not is_tools(tools):
        raise TypeError(
            f"{noun}s are a mapping from names to retrievers or query engines, or a list of tools "
            f"of LangChain or LlamaIndex, not {tools!r:.80}"
        )
    pairs = tools.items() if isinstance(tools, Mapping) else [(_name(t, noun), t) for t in tools]
    named: dict[str, NamedTool] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise TypeError(f"a {noun}'s name is a text, not {name!r:.80}")
        if not name.strip():
            raise ValueError(f"a {noun} has the blank name {name!r}; give it one to choose it by")
        if name in named:
            raise ValueError(f"two {noun}s have the name {name!r}; give each its own")
        if isinstance(value, NamedTool):
            named[name] = value
            continue
        description, source = _described(value, noun)
        named[name] = NamedTool(
            name, description, as_retriever(source, f"the {noun} {name!r}", name=name)
        )
    if not named:
        raise ValueError(f"{noun}s={tools!r} leaves nothing to choose from; give one or more")
    return named


def _described(value: Any, noun: str) -> tuple[str, Any]:
    """Return the description of a tool, empty by default, and its retriever."""
    if not isinstance(value, tuple | list):
        holder = getattr(value, "metadata", None) or value  # LlamaIndex
        description = getattr(holder, "description", None)
        return (description if isinstance(description, str) else ""), value
    if len(value) != 2 or not isinstance(value[0], str):
        raise TypeError(
            f"a {noun} is a retriever or a pair (description, retriever), not {value!r:.80}"
        )
    return value[0], value[1]


def _name(tool: Any, noun: str) -> str:
    """Return the name that a tool of a framework has.

    Raises:
        TypeError: If it has none.
    """
    holder = getattr(tool, "metadata", None) or tool
    name = getattr(holder, "name", None)
    if not isinstance(name, str) or not hasattr(holder, "description"):
        raise TypeError(
            f"{tool!r:.80} has no name and description to choose it by; give a mapping: "
            f'{{"name": ("what it is good for", {noun})}}'
        )
    return name
