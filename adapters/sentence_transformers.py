"""Embed and score with models of sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..nodegraph.errors import check_integer
from ..nodegraph.models.encoder import (
    CPU_BATCH_TOKENS,
    GPU_BATCH_TOKENS,
    Encoder,
    padded_batches,
)
from ..nodegraph.models.model_objects import model_name
from ..retrievers.rerankers.cross_encoder import Tokens
from .extras import extra

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer


_DTYPES = ("auto", "float32", "float16", "bfloat16")


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
        batch_size: How many texts the model sees at once. None for as many as suit the device, by
            their tokens: much quicker than a fixed number.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``; None for the best there is.
        dtype: The numbers it computes with: ``"float32"``, ``"float16"``, ``"bfloat16"``, or
            ``"auto"`` for float16 on a GPU and float32 elsewhere. None for those it comes with.
        local_files_only: Whether to fail rather than download.
        **settings: Further arguments of ``SentenceTransformer``, such as ``truncate_dim``.

    The vectors are kept under a name made of the model's weights, a ``dtype`` that is not their
    own, the prompt for passages and the normalization, so that neither another folder nor another
    prompt for queries embeds anew.

    Raises:
        ImportError: If sentence-transformers is needed to load the model, and not installed.
        TypeError: If a loaded model comes with arguments for loading it.
        ValueError: If the dtype is another one, or the batch size below 1.
        OSError: If there is no such model.
    """

    def __init__(
        self,
        model: str | Path | SentenceTransformer,
        *,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        normalize: bool = False,
        batch_size: int | None = None,
        device: str | None = None,
        dtype: str | None = None,
        local_files_only: bool = False,
        **settings: Any,
    ) -> None:
        if dtype not in (None, *_DTYPES):
            raise ValueError(f"dtype is one of {', '.join(map(repr, _DTYPES))}, not {dtype!r:.80}")
        self.batch_size = None if batch_size is None else check_integer(batch_size, "batch_size", 1)
        converted = False
        if isinstance(model, str | Path):
            with extra("sentence-transformers", "sentence_transformers"):
                from sentence_transformers import SentenceTransformer  # it takes seconds
            loaded = SentenceTransformer(
                str(model), device=device, local_files_only=local_files_only, **settings
            )
            if dtype == "auto":
                dtype = "float16" if loaded.device.type == "cuda" else "float32"
            if dtype is not None:
                import torch  # loaded with the model

                own_dtypes = {parameter.dtype for parameter in loaded.parameters()}
                converted = bool(own_dtypes - {getattr(torch, dtype)})
                loaded.to(getattr(torch, dtype))
        elif device is not None or dtype is not None or local_files_only or settings:
            loading = {"device": device, "dtype": dtype, **settings}
            passed = [key for key, value in loading.items() if value] or ["local_files_only"]
            raise TypeError(
                f"{passed[0]} is for loading a model, and {model!r:.60} is loaded; leave it out, "
                "or give the model's folder or name"
            )
        else:
            loaded = model
        both = {"normalize_embeddings": normalize, "batch_size": batch_size or 64}
        self.name = model_name(loaded)
        if converted:
            self.name += f" {dtype}"
        if passage_prompt is not None:
            self.name += f" {passage_prompt!r}"
        if normalize:
            self.name += " normalized"
        self._encoder = Encoder(
            loaded,
            both if passage_prompt is None else {**both, "prompt": passage_prompt},
            both if query_prompt is None else {**both, "prompt": query_prompt},
            by_tokens=batch_size is None,
        )

    def token_batches(self, texts: Sequence[str]) -> list[list[int]] | None:
        """Return which texts to embed together; None where a number of texts says it."""
        return self._encoder.token_batches(texts)

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed passages: (texts, dimension)."""
        return self._encoder.embed(list(texts))

    def embed_queries(self, texts: Sequence[str]) -> Any:
        """Embed queries: (texts, dimension)."""
        return self._encoder.embed_queries(list(texts))


_TOKENIZED_AT_ONCE = 1_024


class TransformerPairs:
    """Compute a ``CrossEncoder`` from tokens, in batches of like lengths bounded by tokens.

    Pairs are tokenized once, to count and to compute. The scores are those of ``predict`` but for
    rounding.

    Args:
        model: The model.
    """

    def __init__(self, model: CrossEncoder) -> None:
        self._model = model

    @property
    def is_usable(self) -> bool:
        """Whether the model is one transformer of sentence-transformers 6, without prompts."""
        model = self._model
        first, *others = model.children()
        tokenizer: Any = getattr(model, "tokenizer", None)
        return (
            not others
            and getattr(first, "transformer_task", None) == "sequence-classification"
            and getattr(first, "backend", None) == "torch"
            and list(first.modality_config) == ["text"]
            and not (first.processing_kwargs or model.default_prompt_name)
            and getattr(model, "_placement_is_delegated", True) is False
            and getattr(model, "_distributed_inference", True) is None
            and getattr(tokenizer, "is_fast", False)
            and tokenizer.pad_token_id is not None
            and tokenizer.padding_side == tokenizer.truncation_side == "right"
        )

    def tokenized(
        self, queries: Sequence[str], texts: Sequence[str], truncation: bool
    ) -> list[Tokens]:
        """Tokenize pairs, with the tokens that the model adds to them."""
        settings: dict[str, Any] = {"truncation": "longest_first" if truncation else False}
        tokens: list[Tokens] = []
        for at in range(0, len(texts), _TOKENIZED_AT_ONCE):
            part = slice(at, at + _TOKENIZED_AT_ONCE)
            encoded = self._model.tokenizer(queries[part], texts[part], verbose=False, **settings)
            columns = [[np.array(row, np.int32) for row in rows] for rows in encoded.values()]
            tokens += [dict(zip(encoded, rows, strict=True)) for rows in zip(*columns, strict=True)]
        return tokens

    def computed(self, tokens: Sequence[Tokens]) -> Any:
        """Return the scores of pairs."""
        import torch  # loaded with the model

        model = self._model
        lengths = [len(row["input_ids"]) for row in tokens]
        on_cpu = model.device.type == "cpu"
        batches = padded_batches(lengths, CPU_BATCH_TOKENS if on_cpu else GPU_BATCH_TOKENS)
        outputs = []
        model.eval()
        with torch.inference_mode():
            for batch in batches:
                padded = self._padded([tokens[at] for at in batch])
                features = {k: torch.from_numpy(v).to(model.device) for k, v in padded.items()}
                outputs.append(model.activation_fn(model(features)["scores"].float()))
            sorted_scores = torch.cat(outputs).cpu().numpy()
        scores = np.empty_like(sorted_scores)
        scores[[at for batch in batches for at in batch]] = sorted_scores
        return scores

    def _padded(self, batch: Sequence[Tokens]) -> dict[str, np.ndarray[Any, Any]]:
        """Fill rows up to the longest, the first."""
        tokenizer = self._model.tokenizer
        fill = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
        shape = len(batch), len(batch[0]["input_ids"])
        arrays = {name: np.full(shape, fill.get(name, 0), np.int64) for name in batch[0]}
        for name, array in arrays.items():
            for row, tokens in zip(array, batch, strict=True):
                row[: len(tokens[name])] = tokens[name]
        return arrays
