"""Transforms that cut texts: sentences, chunks, headings, with their places."""

from .chunking import CLAUSES, WORDS, Length, Span, locate, strip_span
from .headings import headings_in
from .markdown_splitter import MarkdownSplitter, markdown_headings
from .passage_splitter import PassageSplitter
from .recursive_splitter import RecursiveSplitter
from .sentence_splitter import SentenceSplitter
from .sentences import paragraph_spans, sentence_spans, split_paragraphs, split_sentences
from .tokens import UNSPACED, count_tokens

__all__ = [
    "CLAUSES",
    "UNSPACED",
    "WORDS",
    "Length",
    "MarkdownSplitter",
    "PassageSplitter",
    "RecursiveSplitter",
    "SentenceSplitter",
    "Span",
    "count_tokens",
    "headings_in",
    "locate",
    "markdown_headings",
    "paragraph_spans",
    "sentence_spans",
    "split_paragraphs",
    "split_sentences",
    "strip_span",
]
