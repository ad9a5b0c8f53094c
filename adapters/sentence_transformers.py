"""Embed with a model of sentence-transformers, loaded as retrieval wants it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..nodegraph.models.embedder import Encoder
from ..nodegraph.models.model_objects import model_name
from .extras import extra

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformerEmbedder:
    """Embed with a model of sentence-transformers, from a folder or the model hub.

    A graph takes a bare ``SentenceTransformer`` too, with the prompts that it is configured with.
    Choose this one to give prompts yourself, as the E5 and BGE models want them, to shorten or
    normalize vectors, or to be sure that nothing is downloaded.

    Args:
        model: A folder, a name on the model hub, or a ``SentenceTransformer``.
        query_prompt: What is put before a query, such as ``"query: "``; the model's own if None.
        passage_prompt: What is put before a passage, such as ``"passage: "``.
        normalize: Whether vectors get the length 1.
        batch_size: How many texts the model sees at once.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``; None for the best there is.
        local_files_only: Whether to fail rather than download.
        **settings: Further arguments of ``SentenceTransformer``, such as ``truncate_dim``.

    The vectors are kept under a name made of the model's weights, the prompt for passages and the
    normalization, so that neither another folder nor another prompt for queries embeds anew.

    Raises:
        ImportError: If sentence-transformers is needed to load the model, and not installed.
        TypeError: If a loaded model comes with arguments for loading it.
        OSError: If there is no such model.
    """

    def __init__(
        self,
        model: str | Path | SentenceTransformer,
        *,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        normalize: bool = False,
        batch_size: int = 64,
        device: str | None = None,
        local_files_only: bool = False,
        **settings: Any,
    ) -> None:
        if isinstance(model, str | Path):
            with extra("sentence-transformers", "sentence_transformers"):
                from sentence_transformers import SentenceTransformer  # it takes seconds
            loaded = SentenceTransformer(
                str(model), device=device, local_files_only=local_files_only, **settings
            )
        elif device is not None or local_files_only or settings:
            passed = [*(["device"] if device else []), *settings] or ["local_files_only"]
            raise TypeError(
                f"{passed[0]} is for loading a model, and {model!r:.60} is loaded; leave it out, "
                "or give the model's folder or name"
            )
        else:
            loaded = model
        both = {"normalize_embeddings": normalize, "batch_size": batch_size}
        self.batch_size = batch_size
        self.name = model_name(loaded)
        if passage_prompt is not None:
            self.name += f" {passage_prompt!r}"
        if normalize:
            self.name += " normalized"
        self._encoder = Encoder(
            loaded,
            both if passage_prompt is None else {**both, "prompt": passage_prompt},
            both if query_prompt is None else {**both, "prompt": query_prompt},
        )

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed passages: (texts, dimension)."""
        return self._encoder.embed(list(texts))

    def embed_queries(self, texts: Sequence[str]) -> Any:
        """Embed queries: (texts, dimension)."""
        return self._encoder.embed_queries(list(texts))
