"""Read the front matter of Markdown files, which is YAML between --- or TOML between +++."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from ..splitters.headings import front_matter_of
from .source_files import SourceFile

SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".mdown", ".mkd", ".qmd", ".rmd"})
"""The suffixes of Markdown files, in lowercase."""

_MAX_SIZE = 20_000  # maximum number of characters in front matter

_MAX_FIELDS = 100

_MAX_ALIASES = 20  # maximum number of aliases in YAML, since each alias may copy values

_MAX_DEPTH = 20  # maximum number of nested lists and mappings, since the parser's time is quadratic

# Fields that describe the file or a position in it.
_RESERVED = frozenset(
    "file_name file_path file_type file_size creation_date last_modified_date last_accessed_date "
    "encoding read_notes page page_unit heading headings level table_head".split()
)


def front_matter(source: SourceFile, text: str) -> dict[str, Any]:
    """Return the front matter of a Markdown text as a dictionary. Nested fields have dotted names.

    Dates are converted to ISO strings: ``date: 2024-05-01`` sets the field ``date`` to
    ``"2024-05-01"``. If the front matter is invalid or too large, this is reported, and it remains
    part of the text.
    """
    block = front_matter_of(text)
    if block is None or not block["body"].strip():
        return {}
    kind, parse = _PARSERS[text[:3]]
    if len(block["body"]) > _MAX_SIZE:
        source.note(f"front matter above {_MAX_SIZE:,} characters, read as text only", "line 1")
        return {}
    try:
        value = parse(block["body"])
    except Exception as error:  # The parser raises errors of many types for invalid values.
        place = getattr(getattr(error, "problem_mark", None), "line", -1) + 2
        source.note(f"front matter that is not {kind}, read as text only", f"line {place}")
        return {}
    if not isinstance(value, dict):
        return {}
    return _metadata(source, value)


def _yaml(body: str) -> Any:
    import yaml

    depth = 0
    aliases = 0
    for event in yaml.parse(body, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > _MAX_DEPTH:
            raise ValueError(f"front matter must be nested at most {_MAX_DEPTH} levels deep")
        if aliases > _MAX_ALIASES:
            raise ValueError(f"front matter must have at most {_MAX_ALIASES} aliases")
    return yaml.safe_load(body)


def _toml(body: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(body)


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "---": ("YAML", _yaml),
    "+++": ("TOML", _toml),
}
"""The format and the parser of front matter, keyed by its first line."""


def _metadata(source: SourceFile, value: Mapping[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, inner in _fields(value):
        if name in _RESERVED:
            source.note("fields of front matter with reserved names, read as text only", name)
        elif len(fields) == _MAX_FIELDS:
            source.note(f"front matter with more than {_MAX_FIELDS} fields, others are text", name)
            break
        else:
            fields[name] = inner
    title = fields.get("title")
    if title is not None and not isinstance(title, str):
        fields["title"] = str(title)
    return fields


def _fields(value: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a nested mapping with dotted names."""
    for key, inner in value.items():
        name = f"{above}{key}"
        if isinstance(inner, Mapping) and inner:
            yield from _fields(inner, f"{name}.")
        else:
            yield name, _plain(inner)


def _plain(value: Any) -> Any:
    """Convert a value to a type that JSON supports."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)  # for example bytes
