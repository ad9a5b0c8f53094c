"""Split texts into chunks of whole sentences."""

from __future__ import annotations

from dataclasses import dataclass

from .chunking import CLAUSES, WORDS, Length, Span, check_sizes, cut_to_fit, pack
from .sentences import sentence_spans
from .tokens import count_tokens


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """Split a text into chunks of whole sentences, Chinese, English or mixed.

    Choose it for running text. A sentence that is too long alone is cut at its clauses, then its
    words, then anywhere. For one sentence a node, give ``split_sentences`` as the transform. To
    keep paragraphs together, choose ``RecursiveSplitter``.

    Args:
        chunk_size: The most a chunk may measure, in units of ``length``.
        chunk_overlap: How much of the end of a chunk, in whole sentences, the next one repeats
            at most.
        length: Measures a text. By default an estimate of tokens (``count_tokens``), ``len`` for
            characters, or a model's own tokenizer: ``lambda text: len(tokenizer.encode(text))``.

    Raises:
        ValueError: If the size is below 1, or the overlap not below the size.

    Example:
        >>> SentenceSplitter(chunk_size=8, chunk_overlap=0)("茶是饮品。用叶子泡。Rivers run.")
        ['茶是饮品。', '用叶子泡。Rivers run.']
    """

    chunk_size: int = 1024
    chunk_overlap: int = 100
    length: Length = count_tokens

    def __post_init__(self) -> None:
        check_sizes(self.chunk_size, self.chunk_overlap)

    def __call__(self, text: str) -> list[str]:
        """Return the chunks of a text."""
        return [text[start:end] for start, end in self.spans(text)]

    def spans(self, text: str) -> list[Span]:
        """Return the begin and end of each chunk, in characters."""
        parts = [
            part
            for sentence in sentence_spans(text)
            for part in cut_to_fit(text, sentence, self.chunk_size, self.length, (CLAUSES, WORDS))
        ]
        return pack(text, parts, self.chunk_size, self.chunk_overlap, self.length)
