"""Let no more tokens through than a prompt has room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...nodegraph.splitters.tokens import count_tokens
from ..results import Results, ScoredNode
from ..validation import whole


class TokenLimit:
    """Keep the first results whose texts together have no more than so many tokens.

    Choose it where results go into a prompt: short ones then come in greater number than long
    ones, and set-ups with passages of different sizes can be compared at one cost. The first
    result is kept even if it is longer by itself; from the first that does not fit, none is.

    Args:
        max_tokens: How many tokens at most.
        length: Counts a text's tokens.

    Raises:
        TypeError: If the number is no whole number, or ``length`` no function.
        ValueError: If the number is below 1.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> results = [ScoredNode(Node(text), 1.0) for text in ("green tea", "black tea", "tea")]
        >>> [result.node.text for result in TokenLimit(4).rerank(results, "tea")]
        ['green tea', 'black tea']
    """

    name = "TokenLimit"

    def __init__(self, max_tokens: int, *, length: Callable[[str], int] = count_tokens) -> None:
        self.max_tokens = whole(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length is a function from a text to a number, not {length!r:.80}")
        self.length = length

    def __repr__(self) -> str:
        return f"TokenLimit({self.max_tokens})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the first results that fit, in their order.

        Args:
            results: Best first.
            query: Not used.
        """
        selected: Results = []
        total = 0
        for result in results:
            total += self.length(result.node.text)
            if selected and total > self.max_tokens:
                break
            selected.append(result)
        return selected
