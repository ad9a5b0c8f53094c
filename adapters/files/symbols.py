"""Find the functions, classes and methods of programs with syntax trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from os.path import splitext
from typing import Any

from ...nodegraph.readers.formats import Symbol
from ...nodegraph.search_text import MAX_HEADING

_LANGUAGES = {
    suffix: language
    for language, suffixes in {
        "python": ".py .pyi",
        "javascript": ".js .mjs .cjs .jsx",
        "typescript": ".ts",
        "tsx": ".tsx",
        "java": ".java",
        "go": ".go",
        "rust": ".rs",
        "c": ".c .h",
        "cpp": ".cc .cpp .cxx .hpp .hh",
        "ruby": ".rb",
        "c_sharp": ".cs",
        "php": ".php",
        "bash": ".sh .bash",
    }.items()
    for suffix in suffixes.split()
}

_KINDS = {
    node_type: kind
    for kind, node_types in {
        "function": "function_definition function_declaration function_item function_expression "
        "generator_function_declaration arrow_function",
        "method": "method method_definition method_declaration constructor_declaration "
        "singleton_method local_function_statement",
        "class": "class class_definition class_declaration abstract_class_declaration "
        "class_specifier record_declaration",
        "struct": "struct_item struct_specifier struct_declaration",
        "enum": "enum_item enum_declaration enum_specifier",
        "interface": "interface_declaration trait_item",
        "module": "module mod_item namespace_definition namespace_declaration",
        "type": "type_spec type_alias_declaration",
        "implementation": "impl_item",
        "macro": "macro_definition",
    }.items()
    for node_type in node_types.split()
}
"""The kinds of symbols, by the node types of grammars."""

_SCOPES = frozenset("class struct enum interface module implementation".split())


@lru_cache(maxsize=64)
def symbols_in(text: str, file_name: str) -> tuple[Symbol, ...]:
    """Return the symbols of a program in order. Outer symbols precede inner symbols.

    Raises:
        ImportError: If the grammar is not installed. The message names the extra.

    Example:
        >>> [(s.name, s.kind) for s in symbols_in("class A:\\n  def f(self): ...", "a.py")]
        [('A', 'class'), ('A.f', 'method')]
    """
    language = _LANGUAGES.get(splitext(file_name.lower())[1])
    if language is None:
        return ()
    data = text.encode("utf-8", "replace")
    symbols = list(_walk(_parser(language).parse(data).root_node))
    offsets: dict[int, int] = {}  # character offsets by byte offset
    at = characters = 0
    limits = {symbol.start for symbol in symbols} | {symbol.end for symbol in symbols}
    for offset in sorted(limits):
        characters += len(data[at:offset].decode("utf-8", "replace"))
        offsets[offset] = characters
        at = offset
    return tuple(Symbol(s.name, s.kind, offsets[s.start], offsets[s.end]) for s in symbols)


@cache
def _parser(language: str) -> Any:
    try:
        from tree_sitter import Language, Parser

        name = "typescript" if language == "tsx" else language
        grammar: Any = import_module(f"tree_sitter_{name}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"symbols of programs need {error.name}, which is not installed: "
            'pip install "nodekin[files]"',
            name=error.name,
        ) from error
    function = getattr(grammar, f"language_{language}", None) or grammar.language
    return Parser(Language(function()))


def _walk(root: Any) -> Iterator[Symbol]:
    waiting = [(root, "", False)]  # node, outer names, whether the outer symbol is a class
    while waiting:
        node, scope, in_class = waiting.pop()
        kind, name = _symbol(node)
        inner = scope
        inner_in_class = in_class
        if kind and name:
            full = f"{scope}.{name}" if scope else name
            full = full[-MAX_HEADING:]  # each inner symbol has a copy
            if kind == "function" and in_class:
                kind = "method"
            outer = node
            while outer.parent is not None and _wraps(outer.parent):
                outer = outer.parent
            yield Symbol(full, kind, outer.start_byte, outer.end_byte)
            inner = full
            inner_in_class = kind in _SCOPES and kind != "module"
        waiting += [(child, inner, inner_in_class) for child in reversed(node.named_children)]


_WRAPPERS = frozenset(
    "decorated_definition export_statement variable_declarator template_declaration".split()
)


def _wraps(node: Any) -> bool:
    """Return whether a node only adds a decorator or a keyword to its child."""
    is_declaration = node.type in ("lexical_declaration", "type_declaration")
    return node.type in _WRAPPERS or (is_declaration and node.named_child_count == 1)


def _symbol(node: Any) -> tuple[str, str]:
    """Return the kind and the name of a node's definition. Empty texts: no definition."""
    kind = _KINDS.get(node.type, "")
    if not kind or not node.is_named:
        return "", ""
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return "", ""  # a mention of a type
    if node.type in ("arrow_function", "function_expression"):
        parent = node.parent
        is_named = parent is not None and parent.type == "variable_declarator"
        name = parent.child_by_field_name("name") if is_named else None
    else:
        name = node.child_by_field_name("type" if node.type == "impl_item" else "name")
        declarator = node
        while name is None and (declarator := declarator.child_by_field_name("declarator")):
            if not declarator.child_by_field_name("declarator"):
                name = declarator  # "parse" in "*parse(const char *)"
    return kind, "" if name is None or name.text is None else name.text.decode("utf-8", "replace")
