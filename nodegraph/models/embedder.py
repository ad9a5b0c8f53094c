"""Hold an embedding model of any framework, and call it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..concurrency import run_in_tasks
from ..errors import EmbeddingError, check_integer
from .encoder import Batch, Encoder, padded_batches
from .model_objects import (
    check_is_model,
    finish,
    has,
    in_thread,
    is_async,
    model_name,
    named_model,
    owner_of,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


T = TypeVar("T")

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""One vector a row, (texts, dimension)."""

EmbedTexts = Callable[[list[str]], Any]
"""Takes texts, returns one vector for each: an array (texts, dimension), or a list of lists."""

AsyncEmbedTexts = Callable[[list[str]], Awaitable[Any]]

EmbedBatches = Callable[[list[str]], "Iterator[Batch] | None"]
"""Takes texts, returns them in batches as they are embedded."""

_FRAMEWORKS = (
    ("get_text_embedding_batch", "get_query_embedding", "_aget_text_embeddings"),  # LlamaIndex
    ("embed_documents", "embed_query", "aembed_documents"),  # LangChain
)
"""Methods for passages and for a query, and the one that a class overrides which embeds passages
async. LlamaIndex's ``_aget_text_embedding``, for one text, often calls the sync method.
"""


_BATCH_CHARACTERS = 1 << 18  # given at once, so that a batch of long texts is no larger


@dataclass(frozen=True, slots=True)
class EmbedderCalls:
    """How a model embeds passages, and queries where it has a way of its own for them."""

    embed: EmbedTexts
    embed_queries: EmbedTexts | None = None
    aembed_queries: AsyncEmbedTexts | None = None
    aembed: AsyncEmbedTexts | None = None
    embed_batches: EmbedBatches | None = None


def adapt_embedder(model: Any) -> EmbedderCalls:
    """Return how to call a model of any supported kind.

    Raises:
        TypeError: If it is of none. The error says what to give instead.
    """
    check_is_model(
        model,
        "load it, for example SentenceTransformer({name}), or name it to a server: "
        "OpenAIEmbedder({name}), from nodekin.adapters.openai",
    )
    for passages, query, overridden in _FRAMEWORKS:
        if has(model, passages, query):
            aquery = _method(model, f"a{query}")
            has_async = has(model, overridden) and owner_of(model, overridden) not in _DEFAULTS
            return EmbedderCalls(
                _method(model, passages),
                partial(_sequentially, _method(model, query)),
                partial(_all_at_once, aquery) if callable(aquery) else None,
                _method(model, f"a{passages}") if has_async else None,
            )
    if has(model, "encode"):  # sentence-transformers and its relatives
        encoder = Encoder(model)
        calls = (encoder.embed, encoder.embed_queries)
        return EmbedderCalls(*calls, embed_batches=encoder.embed_batches)
    if has(model, "embed"):  # a class of one's own, such as those in nodekin.adapters
        names = ("embed_queries", "aembed_queries", "aembed", "embed_batches")
        return EmbedderCalls(model.embed, *(getattr(model, name, None) for name in names))
    if has(getattr(model, "embeddings", None), "create"):
        raise TypeError(
            f"{model!r:.60} is an OpenAI client, which does not say which model to use; write "
            'OpenAIEmbedder("model-name", client=client), from nodekin.adapters.openai'
        )
    if not callable(model):
        raise TypeError(
            f"{model!r:.80} is no embedding model; give a function from a list of texts to an "
            "array of vectors, or a model of LangChain, LlamaIndex or sentence-transformers"
        )
    if is_async(model):
        return EmbedderCalls(partial(finish, model), None, model, model)
    return EmbedderCalls(model)


_DEFAULTS = ("Embeddings", "BaseEmbedding")
"""LangChain's and LlamaIndex's base classes, whose async methods call the others."""


def _method(model: object, name: str) -> Any:
    """Return a method that can be pickled, as LlamaIndex's, which are wrapped, can't. Or None."""
    method = getattr(model, name, None)
    return method if method is None or type(method) is MethodType else partial(_call, model, name)


def _call(model: object, name: str, *args: object) -> Any:
    return getattr(model, name)(*args)


def _sequentially(call: Callable[[str], Any], texts: Iterable[str]) -> list[Any]:
    return [call(text) for text in texts]


async def _all_at_once(call: Callable[[str], Awaitable[Any]], texts: Iterable[str]) -> list[Any]:
    """Ask for all at once, as far as ``limit_concurrency`` lets. If one fails, the others end."""
    calls = [partial(call, text) for text in texts]
    return await run_in_tasks(calls, len(calls))


def check_vectors(output: Any, texts: Sequence[str], name: str) -> Vectors:
    """Return a model's output as a new array, (texts, dimension) float32.

    Args:
        output: An array, a tensor of torch on any device, or an iterable of vectors.
        texts: What was embedded.
        name: The model's name, for the error.

    Raises:
        EmbeddingError: If it is not one vector for each text, all of one length, finite, and not
            zero throughout.

    Example:
        >>> check_vectors([[1, 0], [0, 1]], ["a", "b"], "model").shape
        (2, 2)
        >>> check_vectors([[1, 0]], ["a", "b"], "model")
        Traceback (most recent call last):
        ...
        nodekin.nodegraph.errors.EmbeddingError: the embedding model 'model' gave 1 vector for 2 \
texts; it has to give one for each text, in their order
    """
    import numpy as np

    model = f"the embedding model {name!r}"
    allowed = f"it has to give an array ({count_of(texts, 'text')}, dimension) of numbers"
    if inspect.isawaitable(output):
        if inspect.iscoroutine(output):
            output.close()
        raise EmbeddingError(
            f"{model} gave a coroutine; {allowed}: give an async form as "
            "Embedder(embed, aembed_queries=...), beside one that is not"
        )
    rows = _plain(output)
    if rows is None or isinstance(rows, str | bytes):
        raise EmbeddingError(f"{model} gave {rows!r:.80}; {allowed}")
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        raise EmbeddingError(
            f"{model} gave sparse vectors, which are not searched; give a model of dense ones, and "
            "search words by similarity='bm25'"
        )
    try:
        numbers = np.asarray(rows)
        if numbers.dtype.kind not in "fiub":
            raise TypeError(f"{numbers.dtype} is no type of numbers")
        with np.errstate(over="ignore"):  # infinite then, which is looked for below
            vectors = np.array(numbers, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingError(f"{model} gave {_describe(rows)}; {allowed}") from error
    if vectors.ndim == 2 and len(vectors) != len(texts):
        raise EmbeddingError(
            f"{model} gave {count_of(vectors, 'vector')} for {count_of(texts, 'text')}; it has to "
            "give one for each text, in their order"
        )
    if vectors.ndim != 2 or not vectors.size:
        raise EmbeddingError(f"{model} gave an array of shape {vectors.shape}; {allowed}")
    _check_rows(vectors, texts, model)
    return vectors


def _check_rows(vectors: Vectors, texts: Sequence[str], model: str) -> None:
    import numpy as np

    for bad, what in (
        (~np.isfinite(vectors).all(axis=1), "a vector with NaN or infinite numbers"),
        (~vectors.any(axis=1), "a vector of zeros, which is like nothing"),
    ):
        if bad.any():
            raise EmbeddingError(
                f"{model} gave {what} for {int(bad.sum())} of {count_of(texts, 'text')}, first "
                f"{texts[int(bad.argmax())]!r:.80}; leave such texts out of the group, or give an "
                "embed function that replaces such vectors"
            )


def _plain(output: Any) -> Any:
    """Return tensors as arrays, and an iterator as a list."""
    if hasattr(output, "detach"):
        tensor = output.detach().cpu()
        return (tensor.float() if hasattr(tensor, "float") else tensor).numpy()
    if isinstance(output, list | tuple):
        has_tensors = any(hasattr(row, "detach") for row in output)
        return [_plain(row) for row in output] if has_tensors else output
    is_array = hasattr(output, "__array__") or hasattr(output, "__len__")
    return output if is_array or not isinstance(output, Iterable) else list(map(_plain, output))


def _describe(rows: Any) -> str:
    """Describe a value that is no array of numbers."""
    if isinstance(rows, list | tuple):
        lengths = sorted({len(row) for row in rows if hasattr(row, "__len__")})
        if len(lengths) > 1:
            return f"vectors of different lengths ({', '.join(map(str, lengths[:5]))})"
    return f"{rows!r:.80}"


def count_of(things: Sequence[object] | Vectors, what: str) -> str:
    """Return how many there are, in words: "2 texts"."""
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Embedder:
    """Hold an embedding model: how it embeds passages and queries, and what it is called.

    A graph takes a bare model too. Choose this one to give queries a way of their own, to name
    the model, or to set the batch size.

    A model gets passages of like lengths together, the longest first: it fills each batch up to
    its longest text. A model of sentence-transformers gets as many at once as suit its device, by
    their tokens. A function gets passages in the order of the documents.

    Args:
        embed: Embeds passages, many at once: a function from a list of texts to an array (texts,
            dimension) or a list of lists. Or a model: LangChain ``Embeddings``, LlamaIndex
            ``BaseEmbedding``, a ``SentenceTransformer``, any object with such an ``embed``. It
            then brings the other two functions, as far as it has them.
        name: Names the model. What it has embedded is kept under this name, in the store too, and
            never embedded again: another model, or other settings that change its vectors, need
            another name. Left out, it is made of the model's class, name and settings, or of a
            function's code and what it uses. Give one where the model does not tell them apart:
            where its code is changed (with a newer Python the code of a function counts as
            changed), or where it asks a server that may come to run another model.
        embed_queries: Embeds queries, where the model treats them differently.
        aembed_queries: The same without blocking the event loop. Without it, a thread is used.
        aembed: Embeds passages in async code. Without it, a thread is used.
        batch_size: How many texts are given at once; very long ones are fewer. A model that counts
            tokens gets its passages by these instead.
        num_workers: How many batches of passages are embedded at the same time, in threads. 0 and
            1 for one after the other. Choose 4 to 16 for a model behind a server, which may be
            called by several threads. A model in this process gains nothing by it.

    Raises:
        TypeError: If there is no model, or it can't be called.
        ValueError: If the batch size is below 1.

    Example:
        >>> embedder = Embedder(lambda texts: [[len(text), 1] for text in texts], "lengths")
        >>> embedder.passages(["tea", "water"]).tolist()
        [[3.0, 1.0], [5.0, 1.0]]
    """

    embed: Any
    name: str = ""
    _: KW_ONLY
    embed_queries: EmbedTexts | None = None
    aembed_queries: AsyncEmbedTexts | None = None
    batch_size: int = 64
    num_workers: int = 0
    aembed: AsyncEmbedTexts | None = None
    by_length: bool = field(init=False, repr=False, compare=False)
    embed_batches: EmbedBatches | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = adapt_embedder(self.embed)
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"an Embedder's name is a text, not {self.name!r:.80}")
        check_integer(self.batch_size, "batch_size", 1)
        check_integer(self.num_workers, "num_workers", 0)
        for name in ("embed_queries", "aembed_queries", "aembed"):
            _check_callable(name, getattr(self, name))
        # The model's async form would embed queries in another way than those given here.
        of_model = calls.aembed_queries if self.embed_queries is None else None
        settled = {
            "name": self.name or model_name(self.embed),
            "embed": calls.embed,
            "embed_queries": self.embed_queries or calls.embed_queries,
            "aembed_queries": self.aembed_queries or of_model,
            "aembed": self.aembed or calls.aembed,
            "by_length": not inspect.isroutine(self.embed),
            "embed_batches": calls.embed_batches,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def batches(self, texts: Mapping[str, str]) -> list[list[str]]:
        """Return the keys of passages in the batches that the model is to get."""
        keys = list(texts)
        if not self.by_length:
            return split_batches(keys, self.batch_size)
        lengths = [*map(len, texts.values())]
        batches = padded_batches(lengths, _BATCH_CHARACTERS, self.batch_size)
        return [[keys[at] for at in batch] for batch in batches]

    def computed(self, texts: Mapping[str, str]) -> Iterator[tuple[Sequence[str], Vectors]] | None:
        """Return the vectors of passages, of a model that makes the batches: keys and vectors.

        None for another model.

        Raises:
            EmbeddingError: When vectors are taken, as ``passages`` does.
        """
        keys, passages = list(texts), list(texts.values())
        batches = None if self.embed_batches is None else self.embed_batches(passages)
        if batches is None:
            return None
        return (
            ([keys[at] for at in batch], self._outcome([passages[at] for at in batch], vectors))
            for batch, vectors in batches
        )

    def _outcome(self, texts: Sequence[str], vectors: Any) -> Vectors:
        """Return the vectors that a model has made, checked, or raise what it has raised."""
        with self._failing(texts):
            if isinstance(vectors, Exception):
                raise vectors
        return check_vectors(vectors, texts, self.name)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: (texts, dimension) float32.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        return self._checked(self.embed, texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries: (texts, dimension) float32.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        return self._checked(self.embed_queries or self.embed, texts)

    async def aqueries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries without blocking, in a thread where the model has no async form.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        if self.aembed_queries is None:
            return await in_thread(self.queries, texts)
        return await self._achecked(self.aembed_queries, texts)

    async def apassages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages without blocking, in a thread where the model has no async form.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        if self.aembed is None:
            return await in_thread(self.passages, texts)
        return await self._achecked(self.aembed, texts)

    async def _achecked(self, call: AsyncEmbedTexts, texts: Sequence[str]) -> Vectors:
        with self._failing(texts):
            vectors = await call(list(texts))
        return check_vectors(vectors, texts, self.name)

    def _checked(self, call: EmbedTexts, texts: Sequence[str]) -> Vectors:
        with self._failing(texts):
            vectors = call(list(texts))
        return check_vectors(vectors, texts, self.name)

    @contextmanager
    def _failing(self, texts: Sequence[str]) -> Iterator[None]:
        """Raise errors of the block as an ``EmbeddingError`` with the model's name and a text."""
        try:
            yield
        except EmbeddingError:
            raise
        except Exception as error:
            number = count_of(texts, "text")
            first = f", the first of them {texts[0]!r:.80}" if texts else ""
            raise EmbeddingError(
                f"the embedding model {self.name!r} failed on {number}{first}: "
                f"{type(error).__name__}: {error}; what it embedded before is kept: mend it and "
                "ask again"
            ) from error


def as_embedder(model: object) -> Embedder:
    """Return an embedding model of any supported kind, or the one of a name, as an ``Embedder``.

    Raises:
        TypeError: If it is no model. The error says what to give instead.
        ModelError: If a name is of a model that needs a server, and none is known.
    """
    model = named_model(model, "embed")
    if isinstance(model, Embedder):
        return model
    size = getattr(model, "batch_size", None) if has(model, "embed") else None
    return Embedder(model, batch_size=size) if isinstance(size, int) else Embedder(model)


def as_embedders(embed: object) -> dict[str, Embedder]:
    """Take one model, which is then called ``"default"``, or several by key.

    Raises:
        TypeError: If a model is of no known kind, or a key is no text.
        ValueError: If there are no models in the mapping.
    """
    if embed is None:
        return {}
    if isinstance(embed, list | tuple | set):
        raise TypeError(
            f"embed takes one model, or several by key, not {type(embed).__name__}; write "
            "embed={'key': model, ...}"
        )
    if not isinstance(embed, Mapping):
        return {"default": as_embedder(embed)}
    if not embed:
        raise ValueError("embed={} has no models; leave it out, or write embed={'key': model}")
    for key in embed:
        if not isinstance(key, str) or not key:
            raise TypeError(f"the keys of embed are names, not {key!r:.80}; write {{'key': model}}")
    return {key: as_embedder(model) for key, model in embed.items()}


def _check_callable(field: str, call: object) -> None:
    if call is not None and not callable(call):
        raise TypeError(
            f"{field} is a function from a list of texts to their vectors, not {call!r:.80}"
        )
    if callable(call) and is_async(call) and field == "embed_queries":
        raise TypeError(f"{call!r:.80} is async; give it as aembed_queries")


def split_batches(items: Sequence[str], size: int) -> list[list[str]]:
    """Return items in lists of a size, the last one shorter."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]
