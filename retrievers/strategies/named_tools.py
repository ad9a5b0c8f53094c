"""Named tools, such as retrievers and query engines, from which a model chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..foreign.foreign_retriever import as_retriever
from ..protocols import RetrieverLike, RetrieverProtocol

Tools: TypeAlias = Mapping[str, RetrieverLike | tuple[str, RetrieverLike]]
"""A mapping from names to retrievers or query engines, or to pairs of a description and a
retriever.

A model chooses a tool by its name and its description.
"""


def named_tools(tools: Tools, noun: str = "tool") -> dict[str, tuple[str, RetrieverProtocol]]:
    """Validate tools, and return a pair of a description and a retriever for each name.

    If a tool has no description, the description is empty.

    Args:
        tools: Retrievers, functions and query engines by name, or pairs of a description and one of
            these. A query engine returns its answer as a single result.
        noun: The word for a tool in error messages.

    Raises:
        TypeError: If ``tools`` is not a mapping, or a tool is not a retriever.
        ValueError: If ``tools`` is empty, or a name is not a text with letters.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> words = Retriever(NodeGraph(), "ROOT")
        >>> named_tools({"words": ("Any question", words)})["words"][0]
        'Any question'
    """
    if not isinstance(tools, Mapping):
        raise TypeError(
            f"{noun}s must be a mapping from names to retrievers, got {tools!r:.80}; write "
            f'{{"name": ("what it is good for", retriever)}}'
        )
    named: dict[str, tuple[str, RetrieverProtocol]] = {}
    for name, value in tools.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"the name of a {noun} must be a text with letters, got {name!r:.80}")
        pair = value if isinstance(value, tuple | list) else ("", value)
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(
                f"a {noun} must be a retriever or a pair (description, retriever), got "
                f"{value!r:.80}"
            )
        named[name] = pair[0], as_retriever(pair[1], f"the {noun} {name!r}", name=name)
    if not named:
        raise ValueError(f"{noun}s must not be empty, got {tools!r}")
    return named
