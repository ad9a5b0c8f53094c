"""Find the functions, classes and methods of programs with syntax trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from os.path import splitext
from typing import Any

from ...nodegraph.readers.formats import Symbol

_GRAMMARS = {
    "python": ("tree_sitter_python", "language", ".py .pyi"),
    "javascript": ("tree_sitter_javascript", "language", ".js .mjs .cjs .jsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript", ".ts"),
    "tsx": ("tree_sitter_typescript", "language_tsx", ".tsx"),
    "java": ("tree_sitter_java", "language", ".java"),
    "go": ("tree_sitter_go", "language", ".go"),
    "rust": ("tree_sitter_rust", "language", ".rs"),
    "c": ("tree_sitter_c", "language", ".c .h"),
    "cpp": ("tree_sitter_cpp", "language", ".cc .cpp .cxx .hpp .hh"),
    "ruby": ("tree_sitter_ruby", "language", ".rb"),
    "c#": ("tree_sitter_c_sharp", "language", ".cs"),
    "php": ("tree_sitter_php", "language_php", ".php"),
    "bash": ("tree_sitter_bash", "language", ".sh .bash"),
}

_LANGUAGES = {
    suffix: language
    for language, (_, _, suffixes) in _GRAMMARS.items()
    for suffix in suffixes.split()
}

_KINDS = {
    **dict.fromkeys(
        "function_definition function_declaration function_item generator_function_declaration "
        "arrow_function function_expression".split(),
        "function",
    ),
    **dict.fromkeys(
        "method_definition method_declaration constructor_declaration method singleton_method "
        "local_function_statement".split(),
        "method",
    ),
    **dict.fromkeys(
        "class_definition class_declaration abstract_class_declaration class_specifier class "
        "record_declaration".split(),
        "class",
    ),
    **dict.fromkeys("struct_item struct_specifier struct_declaration".split(), "struct"),
    **dict.fromkeys("enum_item enum_declaration enum_specifier".split(), "enum"),
    **dict.fromkeys("interface_declaration trait_item trait_declaration".split(), "interface"),
    **dict.fromkeys("module mod_item namespace_definition namespace_declaration".split(), "module"),
    **dict.fromkeys("type_spec type_alias_declaration".split(), "type"),
    "impl_item": "implementation",
    "macro_definition": "macro",
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
    root = _parser(language).parse(data).root_node
    symbols = list(_walk(root))
    if len(data) == len(text):
        return tuple(symbols)
    offsets = _characters(data, sorted({p for s in symbols for p in (s.start, s.end)}))
    return tuple(Symbol(s.name, s.kind, offsets[s.start], offsets[s.end]) for s in symbols)


@cache
def _parser(language: str) -> Any:
    module, function, _ = _GRAMMARS[language]
    try:
        from tree_sitter import Language, Parser

        grammar = import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"symbols of programs need {error.name}, which is not installed: "
            'pip install "nodekin[files]"',
            name=error.name,
        ) from error
    return Parser(Language(getattr(grammar, function)()))


def _characters(data: bytes, offsets: list[int]) -> dict[int, int]:
    """Convert byte offsets to character offsets."""
    at = characters = 0
    characters_at = {}
    for offset in offsets:
        characters += len(data[at:offset].decode("utf-8", "replace"))
        characters_at[offset], at = characters, offset
    return characters_at


def _walk(root: Any) -> Iterator[Symbol]:
    waiting = [(root, "", False)]  # node, outer names, whether the outer symbol is a class
    while waiting:
        node, scope, in_class = waiting.pop()
        kind, name = _symbol(node)
        inner, inner_in_class = scope, in_class
        if kind and name:
            full = f"{scope}.{name}" if scope else name
            if kind == "function" and in_class:
                kind = "method"
            outer = node
            while outer.parent is not None and _wraps(outer.parent):
                outer = outer.parent
            yield Symbol(full, kind, outer.start_byte, outer.end_byte)
            inner, inner_in_class = full, kind in _SCOPES and kind != "module"
        waiting += [(child, inner, inner_in_class) for child in reversed(node.named_children)]


_WRAPPERS = frozenset(
    "decorated_definition export_statement variable_declarator template_declaration".split()
)

_SINGLE_WRAPPERS = frozenset("lexical_declaration type_declaration".split())


def _wraps(node: Any) -> bool:
    """Return whether a node only adds a decorator or a keyword to its child."""
    return node.type in _WRAPPERS or (node.type in _SINGLE_WRAPPERS and node.named_child_count == 1)


def _symbol(node: Any) -> tuple[str, str]:
    """Return the kind and the name of a node's definition. Empty texts: no definition."""
    kind = _KINDS.get(node.type, "")
    if not kind or not node.is_named:
        return "", ""
    if node.type in ("arrow_function", "function_expression"):
        parent = node.parent
        if parent is None or parent.type != "variable_declarator":
            return "", ""
        return kind, _text(parent.child_by_field_name("name"))
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return "", ""  # a mention of a type
    if node.type == "impl_item":
        return kind, _text(node.child_by_field_name("type"))
    name = node.child_by_field_name("name")
    if name is None and (declarator := node.child_by_field_name("declarator")) is not None:
        name = _declared(declarator)
    return kind, _text(name)


def _declared(declarator: Any) -> Any:
    """Return the name in a C declarator: ``parse`` for ``*parse(const char *)``."""
    while (inner := declarator.child_by_field_name("declarator")) is not None:
        declarator = inner
    return declarator


def _text(node: Any) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")
