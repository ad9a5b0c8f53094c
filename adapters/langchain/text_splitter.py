"""Use any nodekin splitter as a LangChain text splitter, with true offsets.

LangChain's own base class is in the package ``langchain-text-splitters``, which only this
module needs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document

from ...nodegraph.node import Node
from ...nodegraph.splitters.sentences import SentenceSplitter
from ...nodegraph.transforms import Draft, as_rule
from .documents import check_same_length

try:
    from langchain_text_splitters import TextSplitter
except ModuleNotFoundError as error:
    if error.name != "langchain_text_splitters":
        raise
    raise ImportError(
        "NodeTextSplitter is one of LangChain's text splitters; get them with: "
        "pip install langchain-text-splitters",
        name="langchain_text_splitters",
    ) from error


class NodeTextSplitter(TextSplitter):
    """Split LangChain documents as nodekin does: Chinese, English or mixed, into whole sentences.

    ``start_index`` is where a chunk truly starts: ``text[start_index:]`` starts with it, also
    where the text repeats itself and the overlap is counted in tokens. LangChain's splitters
    search the text for a chunk, and give -1 or another position then.

    Args:
        splitter: Any transform of a text: ``MarkdownSplitter()``, ``split_paragraphs``,
            ``RecursiveSplitter(...)``, a function. None for a ``SentenceSplitter`` of the sizes
            below.
        chunk_size: The maximum size of a chunk, in characters as for all of LangChain's text
            splitters, unless ``length_function`` counts something else; 4,000 by default.
        chunk_overlap: How much of the end of a chunk the next one repeats at most; 200 by
            default, and never more than a tenth of ``chunk_size``.
        length_function: Measures a text. ``nodekin.nodegraph.count_tokens`` for (an estimate of)
            tokens.
        add_start_index: Whether a chunk's metadata has its start, in characters; -1 for a chunk
            that is no part of the text.

    Raises:
        ImportError: If the package langchain-text-splitters is not installed.
        TypeError: If the splitter is none, or sizes are given beside it.
        ValueError: If the size is below 1, or the overlap not below the size.

    Example:
        >>> splitter = NodeTextSplitter(chunk_size=16, chunk_overlap=0)
        >>> chunks = splitter.split_documents([Document("茶是饮品。用叶子泡。Rivers run.")])
        >>> [(chunk.page_content, chunk.metadata) for chunk in chunks]
        [('茶是饮品。用叶子泡。', {'start_index': 0}), ('Rivers run.', {'start_index': 10})]
    """

    def __init__(
        self,
        splitter: object = None,
        *,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        length_function: Callable[[str], int] | None = None,
        add_start_index: bool = True,
    ) -> None:
        sizes = {
            "chunk_size": chunk_size,
            "chunk_overlap": chunk_overlap,
            "length_function": length_function,
        }
        set_size = next((name for name, value in sizes.items() if value is not None), None)
        if splitter is not None and set_size:
            raise TypeError(
                f"{set_size} is for sentences; give {splitter!r:.60} sizes of its own, or leave "
                "splitter out"
            )
        size = 4000 if chunk_size is None else chunk_size
        overlap = min(200, size // 10) if chunk_overlap is None else chunk_overlap
        length = len if length_function is None else length_function
        super().__init__(size, overlap, length, add_start_index=add_start_index)
        self.splitter = SentenceSplitter(size, overlap, length) if splitter is None else splitter
        self._rule = as_rule(self.splitter, None, {})

    def split_text(self, text: str) -> list[str]:
        """Return the chunks of a text."""
        return [chunk.text for chunk in self._split(text, {})]

    def create_documents(
        self, texts: Sequence[str], metadatas: Sequence[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Return the chunks of texts as documents, with the texts' metadata (copied).

        Metadata that the splitter adds to a chunk (a heading) replaces that of its text.

        Raises:
            ValueError: If there are not as many metadatas as texts.
        """
        fields = [{} for _ in texts] if metadatas is None else metadatas
        check_same_length("texts", texts, "metadatas", fields)
        return [
            Document(chunk.text, metadata=self._metadata(chunk, metadata))
            for text, metadata in zip(texts, fields, strict=True)
            for chunk in self._split(text, metadata)
        ]

    def _metadata(self, chunk: Draft, metadata: dict[Any, Any]) -> dict[Any, Any]:
        start = {"start_index": -1 if chunk.start is None else chunk.start}
        return copy.deepcopy(
            {**metadata, **chunk.metadata, **(start if self._add_start_index else {})}
        )

    def _split(self, text: str, metadata: dict[Any, Any]) -> list[Draft]:
        return self._rule(Node(text, copy.deepcopy(metadata)))
