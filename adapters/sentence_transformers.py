"""Embedding models from sentence-transformers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..nodegraph.concurrency import fork_safe_lock
from ..nodegraph.errors import check_integer
from ..nodegraph.models.encoder import Batch, Encoder, padded_batches
from ..nodegraph.models.model_objects import model_name
from .extras import extra

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


Tokens = Mapping[str, "np.ndarray[Any, Any]"]
"""The output of a tokenizer for one text: an array for each input name of the model."""


class SentenceTransformerEmbedder:
    """A sentence-transformers embedding model, loaded from a folder or the model hub.

    A graph also accepts a plain ``SentenceTransformer`` and uses its configured prompts. Use this
    class to set the prompts that E5 and BGE models require, to truncate or normalize vectors, or to
    prevent downloads.

    The cache key of a vector depends on the model's weights, the passage prompt and the
    normalization. Moving the model to a different folder or changing the query prompt does not
    invalidate cached vectors.

    Args:
        model: A folder, a name on the model hub, or a loaded ``SentenceTransformer``.
        query_prompt: The prefix of queries, such as ``"query: "``. Defaults to the model's prompt.
        passage_prompt: The prefix of passages, such as ``"passage: "``. Defaults to the model's
            prompt.
        normalize: Whether to normalize vectors to length 1.
        batch_size: The number of texts per batch. If None, the number of tokens per batch is
            limited instead, depending on the device, which is much faster.
        device: The device, such as ``"cpu"`` or ``"cuda:0"``. Defaults to the best available
            device.
        local_files_only: Whether to raise an error instead of downloading a missing model.
        truncate_dim: The number of dimensions to keep, for Matryoshka models. If None, all
            dimensions are kept.
        model_kwargs: Keyword arguments for loading the model, such as ``{"dtype": "float16"}`` for
            a GPU. To set anything else, pass a loaded ``SentenceTransformer``.

    Raises:
        ImportError: If the model must be loaded, but sentence-transformers is not installed.
        TypeError: If a loaded model is given together with arguments for loading it.
        ValueError: If the batch size is below 1.
        OSError: If the model does not exist.
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
        local_files_only: bool = False,
        truncate_dim: int | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.batch_size = None if batch_size is None else check_integer(batch_size, "batch_size", 1)
        if isinstance(model, str | Path):
            with extra("sentence-transformers", "sentence_transformers"):
                from sentence_transformers import SentenceTransformer  # this import takes seconds
            model = SentenceTransformer(
                str(model),
                device=device,
                local_files_only=local_files_only,
                truncate_dim=truncate_dim,
                model_kwargs=None if model_kwargs is None else dict(model_kwargs),
            )
        else:
            loading = {
                "device": device,
                "local_files_only": local_files_only,
                "truncate_dim": truncate_dim,
                "model_kwargs": model_kwargs,
            }
            for option, value in loading.items():
                if value:
                    raise TypeError(
                        f"{option} applies to a model that is loaded by name, got the object "
                        f"{model!r:.60}; leave {option} out, or pass the model's folder or name"
                    )
        self.name = model_name(model)
        if passage_prompt is not None:
            self.name += f" {passage_prompt!r}"
        if normalize:
            self.name += " normalized"
        both = {"normalize_embeddings": normalize, "batch_size": batch_size or 64}
        passages, queries = (
            both if prompt is None else {**both, "prompt": prompt}
            for prompt in (passage_prompt, query_prompt)
        )
        encoder = Encoder(model, passages, queries, by_tokens=batch_size is None)
        self.embed = encoder.embed
        self.embed_queries = encoder.embed_queries
        self.embed_batches = encoder.embed_batches


CPU_BATCH_TOKENS = 1_024
"""The number of tokens per batch on a CPU, including padding.

With this size, the data of one layer fits into the cache of a processor.
"""

GPU_BATCH_TOKENS = 32_768
"""The number of tokens per batch on a GPU, equivalent to 64 texts of 512 tokens."""

_TOKENIZED_AT_ONCE = 1_024  # number of texts that are tokenized together

_TOKENIZED_CHARACTERS = 1 << 17  # number of characters whose tokens are kept in memory

_AHEAD = 2  # number of batches that a GPU computes while the next texts are tokenized

_ATTENTION = fork_safe_lock()


@contextmanager
def _attention_without_plans(device: Any) -> Iterator[None]:
    """Disable cuDNN's attention, which needs about 0.1 s of planning for each new batch shape."""
    if device.type != "cuda":
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel  # loaded with the model

    names = "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"
    with _ATTENTION, sdpa_kernel([getattr(SDPBackend, name) for name in names]):
        yield  # the setting applies to all threads


class TransformerVectors:
    """A fast replacement for ``SentenceTransformer.encode`` that limits the number of tokens per
    batch.

    Each text is tokenized only once. The vectors are equal to those of ``encode`` except for
    rounding errors.

    Args:
        model: The ``SentenceTransformer``.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._lock = fork_safe_lock()

    def is_usable(self, prompt: str) -> bool:
        """Return whether the model is a standard text model of sentence-transformers 6.

        Such a model consists of a transformer, a pooling layer and optionally a normalization
        layer.

        Args:
            prompt: The prefix of texts.
        """
        model: Any = self._model
        first, *others = [*model.children()] or [None]
        names = [type(module).__name__ for module in others]
        tokenizer: Any = getattr(model, "tokenizer", None)
        given = ("query_expansion", "query_length", "document_length", "processing_kwargs")
        flattens = getattr(model, "_can_flatten_inputs", None)
        return (
            names[:1] == ["Pooling"]
            and {*names[1:]} <= {"Normalize"}
            and (others[0].include_prompt or not prompt)
            and type(first).__module__.startswith("sentence_transformers.")
            and getattr(first, "transformer_task", None) == "feature-extraction"
            and getattr(first, "backend", None) == "torch"
            and list(getattr(first, "modality_config", ())) == ["text"]
            and not any(getattr(first, name, None) for name in given)
            and not getattr(model, "_placement_is_delegated", False)
            and getattr(model, "_distributed_inference", None) is None
            and getattr(tokenizer, "is_fast", False)
            and tokenizer.pad_token_id is not None
            and "attention_mask" in tokenizer.model_input_names
            and tokenizer.padding_side == tokenizer.truncation_side == "right"
            and not (flattens and flattens())  # with flash attention, ``encode`` uses no padding
        )

    def batches(
        self, texts: Sequence[str], prompts: Sequence[str], settings: dict[str, Any]
    ) -> Iterator[Batch] | None:
        """Yield the vectors of texts in batches, starting with the longest texts.

        Return None if the model is not supported, in which case ``encode`` must be used.

        Args:
            texts: The texts.
            prompts: The names of possible prompts, in order of preference.
            settings: The arguments ``prompt`` and ``normalize_embeddings``, as for ``encode``.
        """
        model, prompt = self._model, settings.get("prompt")
        if prompt is None:
            name = next((n for n in prompts if n in model.prompts), model.default_prompt_name)
            prompt = model.prompts.get(name) or ""
        if not self.is_usable(prompt):
            return None
        normalize = settings.get("normalize_embeddings", False)
        return self._computed([prompt + text for text in texts], normalize)

    def _computed(self, texts: Sequence[str], normalize: bool) -> Iterator[Batch]:
        """Tokenize the next texts while a GPU computes the vectors of earlier batches."""
        on_cpu = str(getattr(self._model, "device", "cpu")) == "cpu"
        budget, ahead = (CPU_BATCH_TOKENS, 0) if on_cpu else (GPU_BATCH_TOKENS, _AHEAD)
        parts = deque(padded_batches([*map(len, texts)], _TOKENIZED_CHARACTERS))
        tokens: dict[int, Tokens] = {}  # token ids of texts that are not yet in a batch
        computing: deque[Batch] = deque()
        while parts or tokens:
            if parts:
                part = parts.popleft()
                tokens |= zip(part, self.tokenized([texts[at] for at in part]), strict=True)
            waiting = list(tokens)
            batches = padded_batches([len(row["input_ids"]) for row in tokens.values()], budget)
            for rows in batches[:-1] if parts else batches:
                batch = [waiting[row] for row in rows]
                of_batch = [tokens.pop(at) for at in batch]
                computing.append((batch, self.begun(of_batch, normalize)))
                if len(computing) > ahead:
                    batch, begun = computing.popleft()
                    yield batch, self.ended(begun)
        for batch, begun in computing:
            yield batch, self.ended(begun)

    def tokenized(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize texts and add the special tokens."""
        tokens: list[Tokens] = []
        with self._lock:
            for at in range(0, len(texts), _TOKENIZED_AT_ONCE):
                encoded = self._model.tokenizer(
                    list(texts[at : at + _TOKENIZED_AT_ONCE]),
                    truncation=True,
                    return_attention_mask=False,
                    verbose=False,
                )
                arrays = [[np.array(row, np.int32) for row in rows] for rows in encoded.values()]
                columns = zip(*arrays, strict=True)
                tokens += [dict(zip(encoded, rows, strict=True)) for rows in columns]
        return tokens

    def begun(self, tokens: Sequence[Tokens], normalize: bool) -> Any:
        """Start to compute the vectors of texts, and return them as a tensor on the model's device.

        On a GPU, the computation may still be running when this method returns.
        """
        import torch  # loaded with the model

        model, tokenizer = self._model, self._model.tokenizer
        fill = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
        lengths = np.array([len(row["input_ids"]) for row in tokens])
        mask = np.arange(lengths.max()) < lengths[:, None]
        arrays = {"attention_mask": mask.astype(np.int64)}
        for name in tokens[0]:  # rows are padded to the longest row
            arrays[name] = np.full(mask.shape, fill.get(name, 0), np.int64)
            arrays[name][mask] = np.concatenate([row[name] for row in tokens])
        features = {}
        for name, array in arrays.items():
            tensor = torch.from_numpy(array)
            if model.device.type == "cuda":
                tensor = tensor.pin_memory()  # required by non_blocking
            features[name] = tensor.to(model.device, non_blocking=True)
        model.eval()
        with torch.inference_mode(), _attention_without_plans(model.device):
            vectors = model(features)["sentence_embedding"][:, : model.truncate_dim]
            return torch.nn.functional.normalize(vectors, dim=1) if normalize else vectors

    def ended(self, vectors: Any) -> Any:
        """Wait until the vectors are computed, and return them as an array."""
        return vectors.float().cpu().numpy()
