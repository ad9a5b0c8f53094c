"""Count phrases that make prose difficult to read."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

_CONSTRUCTIONS = (
    r"\bwhat\b(?! (?:kind|type|if|to do)\b)(?![^.?!\n]{0,80}\?)",
    r"\b(?:by|of|from|with|in|for|to|on|at|as) (?:what|whom)\b",
    r"\b(?:whoever|nobody|somebody|who)\b",
    r"\b(?:is|are|was|were|be) (?:no|none)\b",
    r"\bthose (?:that|of|which|whose|it|in|beyond|around)|\b(?:that of|the one\b|ones\b|one's)",
    r"\bone of (?:ours|theirs|its)",
    r"\b(?:the same(?=[ .,;:](?:as|without|for|\s|$)|[.,;:])|others\b|another one|each other)",
    r"\bsuch (?:a|an)? ?(?:one|that)",
    r"\bthere (?:is|are|was|were)\b|\b(?:is|are|was|were) there\b",
    r"\b[Ww]here (?:a|an|the|there|its?|that|one|no|nothing|only|they|some(?:thing)?|this|these)\b",
    r"\b[Ww]here (?:what|nobody|both)\b|\bin place of\b|\bby (?:itself|themselves)\b",
    r"\b(?:at once|for good)\b",
    r"\b(?:anew|beside|meanwhile|oftener|thereby|of yours|of ours|at hand)\b",
    r"\bof (?:its|their|his|your|my|our) own\b|\belse (?:that|the|it|one|what)\b",
    r"\b(?:so many|as (?:it|they) (?:is|are|was|were|stands?|has|have)|as (?:if|far as|long as))\b",
    r", too\b|\balso (?:in|those|of|what|where|the|if|with|a)\b",
    r"\b(?:[Ss]ays?|[Tt]ells?|told|[Ll]ets?|[Kk]nows?|known|asked|asks|believed?|wants?|shown?)\b",
)

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

Passage = tuple[str, str]
"""The position of a text in a file, and the text itself."""


def pages_prose(paths: Iterable[Path]) -> list[Passage]:
    """Return the paragraphs of Markdown pages, without code."""
    texts = ((path, _without_code(path.read_text(encoding="utf-8"))) for path in paths)
    return [(path.name, part) for path, text in texts for part in text.split("\n\n")]


def programs_prose(paths: Iterable[Path], *, names: bool = False) -> list[Passage]:
    """Return the docstrings and comments of programs.

    If ``names`` is True, the names of tests are included.
    """
    passages = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{path}:{getattr(node, 'lineno', 1)}"
                passages.append((place, _without_code(ast.get_docstring(node) or "")))
                if names and getattr(node, "name", "").startswith("test_"):
                    passages.append((place, node.name.replace("_", " ")))
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not re.match(r"# (?:type:|noqa)", token.string):
                place = f"{path}:{token.start[0]}"
                passages.append((place, _without_code(token.string.lstrip("#: "))))
    return passages


def _without_code(text: str) -> str:
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*(>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"``?[^`]*``?", " X ", text)


def count_hits(text: str) -> int:
    """Return the number of difficult phrases in a text."""
    return sum(len(re.findall(pattern, text)) for pattern in _CONSTRUCTIONS)


def check_prose(passages: Iterable[Passage], limit: int) -> None:
    """Check that texts contain at most three difficult phrases, or ``limit`` per 10,000 words.

    Raises:
        AssertionError: If the texts contain more. The message lists the ten worst passages.
    """
    counted = [(count_hits(text), place, " ".join(text.split())) for place, text in passages]
    words = sum(len(_WORD.findall(text)) for _, _, text in counted)
    hits = sum(count for count, _, _ in counted)
    worst = "\n".join(f"{n:3} {place}: {text[:120]}" for n, place, text in sorted(counted)[:-11:-1])
    assert hits <= max(3, limit * words / 10_000), (
        f"{hits} constructions in {words:,} words, at most {limit} in 10,000: use nouns and verbs "
        f"instead of relative clauses (AGENTS.md), in these passages first:\n{worst}"
    )
