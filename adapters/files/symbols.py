"""Find functions, classes and methods in source code with tree-sitter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from os.path import splitext
from typing import Any, NamedTuple

from ...nodegraph.readers.formats import Symbol
from ...nodegraph.search_text import MAX_HEADING


def _by_word(words: Mapping[str, str]) -> dict[str, str]:
    """Invert a mapping from names to lists of words, so that each word maps to its name."""
    by_word: dict[str, str] = {}
    for name, listed in words.items():
        by_word.update(dict.fromkeys(listed.split(), name))
    return by_word


_LANGUAGES = _by_word(
    {
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
    }
)
"""The programming language of each file suffix."""

_KINDS = _by_word(
    {
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
    }
)
"""The kind of symbol for each node type of the grammars."""

_WITH_METHODS = frozenset("class struct enum interface implementation".split())


@lru_cache(maxsize=64)
def symbols_in(text: str, file_name: str) -> tuple[Symbol, ...]:
    """Return the functions, classes and methods of a program in the order of the text.

    Outer symbols come before the symbols that they contain.

    Raises:
        ImportError: If the grammar of the language is not installed. The message names the required
            extra.

    Example:
        >>> [(s.name, s.kind) for s in symbols_in("class A:\\n  def f(self): ...", "a.py")]
        [('A', 'class'), ('A.f', 'method')]
    """
    language = _LANGUAGES.get(splitext(file_name.lower())[1])
    if language is None:
        return ()
    data = text.encode("utf-8", "replace")
    symbols = list(_walk(_parser(language).parse(data).root_node))
    limits = {symbol.start for symbol in symbols} | {symbol.end for symbol in symbols}
    offsets = _character_offsets(data, limits)
    return tuple(Symbol(s.name, s.kind, offsets[s.start], offsets[s.end]) for s in symbols)


def _character_offsets(data: bytes, limits: Iterable[int]) -> dict[int, int]:
    """Convert byte offsets to character offsets."""
    offsets: dict[int, int] = {}
    at = 0
    characters = 0
    for offset in sorted(limits):
        characters += len(data[at:offset].decode("utf-8", "replace"))
        offsets[offset] = characters
        at = offset
    return offsets


_GRAMMARS = {"tsx": "tree_sitter_typescript"}
"""The names of grammar modules that contain more than one language, keyed by language."""


@cache
def _parser(language: str) -> Any:
    try:
        from tree_sitter import Language, Parser

        grammar: Any = import_module(_GRAMMARS.get(language, f"tree_sitter_{language}"))
    except ModuleNotFoundError as error:
        raise ImportError(
            f"symbols of programs need {error.name}, which is not installed: "
            'pip install "nodekin[files]"',
            name=error.name,
        ) from error
    function = getattr(grammar, f"language_{language}", None) or grammar.language
    return Parser(Language(function()))


class _Scope(NamedTuple):
    """The symbol that encloses a node.

    It consists of the qualified name and whether functions inside the symbol are methods.
    """

    name: str = ""
    has_methods: bool = False


def _walk(root: Any) -> Iterator[Symbol]:
    waiting = [(root, _Scope())]
    while waiting:
        node, scope = waiting.pop()
        kind, name = _symbol(node)
        if kind and name:
            if kind == "function" and scope.has_methods:
                kind = "method"
            full = f"{scope.name}.{name}" if scope.name else name
            full = full[-MAX_HEADING:]  # each inner symbol contains a copy of this name
            outer = node
            while outer.parent is not None and _wraps(outer.parent):
                outer = outer.parent
            yield Symbol(full, kind, outer.start_byte, outer.end_byte)
            scope = _Scope(full, kind in _WITH_METHODS)
        waiting += [(child, scope) for child in reversed(node.named_children)]


_WRAPPERS = frozenset(
    "decorated_definition export_statement variable_declarator template_declaration".split()
)


def _wraps(node: Any) -> bool:
    """Return whether a node only adds a decorator or a keyword to a definition."""
    is_declaration = node.type in ("lexical_declaration", "type_declaration")
    return node.type in _WRAPPERS or (is_declaration and node.named_child_count == 1)


def _symbol(node: Any) -> tuple[str, str]:
    """Return the kind and the name of the symbol that a node defines, or two empty strings."""
    kind = _KINDS.get(node.type, "")
    if not kind or not node.is_named:
        return "", ""
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return "", ""  # this only mentions a type
    name = _name_node(node)
    if name is None or name.text is None:
        return kind, ""
    return kind, name.text.decode("utf-8", "replace")


def _name_node(node: Any) -> Any:
    """Return the node that contains the name of a definition, or None if it has no name."""
    if node.type in ("arrow_function", "function_expression"):
        parent = node.parent
        if parent is None or parent.type != "variable_declarator":
            return None
        return parent.child_by_field_name("name")
    if node.type == "impl_item":
        return node.child_by_field_name("type")
    name = node.child_by_field_name("name")
    if name is not None:
        return name
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        name = declarator  # for example, "parse" in "*parse(const char *)"
        declarator = declarator.child_by_field_name("declarator")
    return name
