"""What an agent's tool takes beside its question, and what it shows of a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from .documents import NODE_KEY


def asked_for(
    tool: str,
    texts: Mapping[str, str],
    filter_by: Mapping[str, str],
    own: Mapping[str, Any],
) -> type[BaseModel]:
    """Return a tool's arguments: texts that have to be there, and conditions that may.

    Args:
        tool: The tool's name.
        texts: The texts, each with what the model is told of it.
        filter_by: Metadata fields, each with what the model is told of it.
        own: Conditions that the model must not replace.

    Raises:
        ValueError: If a field has the name of another argument, or a condition of its own.
    """
    for field in filter_by:
        if field in (*texts, "callbacks"):
            raise ValueError(f"filter_by={field!r} is the name of another argument of the tool")
        if field in own:
            raise ValueError(
                f"filter_by={field!r} would let the model replace the retriever's own condition "
                f"{own[field]!r}; leave it out"
            )
    value = str | int | float | bool
    fields: dict[str, Any] = {name: (str, Field(description=told)) for name, told in texts.items()}
    fields |= {
        name: (value | list[value] | None, Field(default=None, description=told))
        for name, told in filter_by.items()
    }
    return create_model(f"{tool}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def own_filter(searches: object) -> Mapping[str, Any]:
    """Return the conditions that a retriever or an engine has itself."""
    return getattr(searches, "filter", None) or {}


def as_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as keywords of a call, without those that the model left empty."""
    conditions = {field: value for field, value in given.items() if value not in (None, "", [])}
    return {"filter": conditions} if conditions else {}


def shown(metadata: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return some metadata fields in brackets, as a model reads them; nothing for none."""
    known = {field: metadata[field] for field in show if metadata.get(field) is not None}
    told = (
        f"{field}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for field, value in known.items()
        if field != NODE_KEY
    )
    return f" ({', '.join(told)})" if known else ""
