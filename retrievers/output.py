"""Give results the form that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .scored_node import ScoredNode

OutputFormat = Literal["content", "dict"]


def check_output(output_format: str | None, join: bool | str) -> None:
    """Check the form that results are asked for.

    Raises:
        ValueError: If there is no such form, or something else than content is to be joined.
    """
    if output_format not in (None, "content", "dict"):
        raise ValueError(
            f"output_format is 'content', 'dict' or None (scored nodes), not {output_format!r}"
        )
    if join is not False and output_format != "content":
        raise ValueError(
            f"join={join!r} joins contents; it needs output_format='content', not {output_format!r}"
        )


def check_top_k(top_k: int) -> int:
    """Return how many results are asked for.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise TypeError(f"top_k is a whole number, not {top_k!r}")
    if top_k < 1:
        raise ValueError(f"top_k must be 1 or more, not {top_k!r}")
    return top_k


def formatted(
    results: Sequence[ScoredNode], output_format: OutputFormat | None, join: bool | str
) -> Any:
    """Return scored nodes as they are, their contents (joined or not), or plain dicts.

    A dict has ``id``, ``group``, ``content``, ``score``, ``document_id``, ``start``, ``end`` and
    ``metadata``. ``join=True`` puts a line break between contents.
    """
    if output_format == "content":
        contents = [result.node.content for result in results]
        if join is False:
            return contents
        return ("\n" if join is True else join).join(str(content) for content in contents)
    if output_format == "dict":
        return [as_dict(result) for result in results]
    return list(results)


def as_dict(result: ScoredNode) -> dict[str, Any]:
    """Return a result as a dict of plain values."""
    node = result.node
    return {
        "id": node.id,
        "group": node.group,
        "content": node.content,
        "score": result.score,
        "document_id": node.document_id,
        "start": node.start,
        "end": node.end,
        "metadata": node.metadata,
    }
