"""Parse filters in the expression language of LangChain's self-query retriever.

Models that know this language use it instead of JSON, as in ``and(eq("kind", "tea"), ...)``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

_MAX_LENGTH = 1_000  # maximum number of characters of an expression

_NO_FILTER = re.compile(r"[\s\"'`]*no[_ ]?filters?[\s\"'`.]*", re.I)

# These names are keywords of Python.
_KEYWORD = re.compile(r"((?:^|[(,])\s?(?:and|or|not|in))\s?\(", re.I)

_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


def is_no_filter(text: str) -> bool:
    """Return whether a text is LangChain's keyword for the absence of a filter."""
    return _NO_FILTER.fullmatch(text) is not None


def parse_expression(text: str) -> Any:
    """Convert an expression into conditions, or return None if the text is not an expression.

    Example:
        >>> parse_expression('and(eq("kind", "tea"), gte("year", 2000))')["and"][1]
        {'field': 'year', 'operator': 'gte', 'value': 2000}
        >>> parse_expression("tea (green)") is None
        True
    """
    if len(text) > _MAX_LENGTH:
        return None
    try:
        tree = ast.parse(_KEYWORD.sub(r"\1_(", text.strip()), mode="eval")
        return _conditions(tree.body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _conditions(node: ast.expr) -> Any:
    """Convert a call into conditions.

    Raises:
        ValueError: If the node is not a call of a comparison or of "and", "or" or "not".
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        raise ValueError("this is not an operation")
    name = node.func.id.rstrip("_").casefold()
    if name in ("and", "or", "not"):
        return {name: [_conditions(part) for part in node.args]}
    field, value = [_value(part) for part in node.args]
    if isinstance(value, dict) and "date" in value:
        value = value["date"]  # LangChain writes {"date": "2024-05-01", "type": "date"}.
    return {"field": str(field), "operator": name, "value": value}


def _value(node: ast.expr) -> Any:
    """Return the value of a constant or of a list of constants."""
    if isinstance(node, ast.Name):
        return _CONSTANTS.get(node.id, node.id)
    return ast.literal_eval(node)
