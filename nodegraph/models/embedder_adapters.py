"""Recognise an embedding model of any framework, and say how to call it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..concurrency import run_in_tasks
from ..errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""One vector a row, (texts, dimension)."""

EmbedTexts = Callable[[list[str]], Any]
"""Takes texts, returns one vector for each: an array (texts, dimension), or a list of lists."""

AsyncEmbedTexts = Callable[[list[str]], Awaitable[Any]]

_FRAMEWORKS = (
    ("get_text_embedding_batch", "get_query_embedding", "_aget_text_embeddings"),  # LlamaIndex
    ("embed_documents", "embed_query", "aembed_documents"),  # LangChain
)
"""Methods for passages and for a query, and the one that a class overrides which embeds passages
async. LlamaIndex's ``_aget_text_embedding``, for one text, often calls the sync method.
"""


@dataclass(frozen=True, slots=True)
class EmbedderCalls:
    """How a model embeds passages, and queries where it has a way of its own for them."""

    embed: EmbedTexts
    embed_queries: EmbedTexts | None = None
    aembed_queries: AsyncEmbedTexts | None = None
    aembed: AsyncEmbedTexts | None = None


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
            aquery = getattr(model, f"a{query}", None)
            has_async = _overriding_method(model, overridden) is not None
            return EmbedderCalls(
                getattr(model, passages),
                partial(_sequentially, getattr(model, query)),
                partial(_all_at_once, aquery) if callable(aquery) else None,
                getattr(model, f"a{passages}", None) if has_async else None,
            )
    if has(model, "encode"):  # sentence-transformers and its relatives
        encoder = Encoder(model)
        return EmbedderCalls(encoder.embed, encoder.embed_queries)
    if has(model, "embed"):  # a class of one's own, such as those in nodekin.adapters
        names = ("embed_queries", "aembed_queries", "aembed")
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


def _overriding_method(model: Any, name: str) -> AsyncEmbedTexts | None:
    """Return an async method, unless it is that of a framework's base class."""
    owners = (cls.__name__ for cls in type(model).__mro__ if name in vars(cls))
    method: AsyncEmbedTexts | None = attribute(model, name)
    return None if next(owners, None) in _DEFAULTS or not callable(method) else method


def finish(call: Callable[[Any], Coroutine[Any, Any, T]], argument: Any) -> T:
    """Call an async function from where none can be awaited, in an event loop of its own."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    def run() -> T:
        return asyncio.run(call(argument))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    # This thread is an event loop's; waiting here blocks it, as any other model's answer would.
    with ThreadPoolExecutor(1, "async model") as pool:
        return pool.submit(copy_context().run, run).result()


def is_async(call: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Call a function without blocking the event loop."""
    import asyncio

    return await asyncio.to_thread(call, *args)


def check_is_model(model: Any, remedy: str) -> None:
    """Check that a model is not only a name or a class.

    Args:
        model: The model.
        remedy: What to do with a name, which it has a place for: ``{name}``.

    Raises:
        TypeError: If it is.
    """
    if isinstance(model, str | Path):
        name = repr(str(model))
        raise TypeError(f"{name} is the name of a model, not a model; {remedy.format(name=name)}")
    if inspect.isclass(model):
        raise TypeError(
            f"{model.__qualname__} is a class; give a model of it: {model.__qualname__}(...)"
        )


def has(model: object, *methods: str) -> bool:
    """Check whether an object has all of some methods."""
    return all(callable(attribute(model, method)) for method in methods)


def attribute(model: object, name: str) -> Any:
    """Return an attribute of an object, None where it has none.

    Some models look an attribute up in others, and fail there with any error: LangChain's
    ``with_fallbacks`` with a NameError.
    """
    try:
        return getattr(model, name, None)
    except Exception:
        return None


def _sequentially(call: Callable[[str], Any], texts: Iterable[str]) -> list[Any]:
    return [call(text) for text in texts]


async def _all_at_once(call: Callable[[str], Awaitable[Any]], texts: Iterable[str]) -> list[Any]:
    """Ask for all at once, as far as ``limit_concurrency`` lets. If one fails, the others end."""
    calls = [partial(call, text) for text in texts]
    return await run_in_tasks(calls, len(calls))


class Encoder:
    """Call ``encode``, or the ways that sentence-transformers has for the two roles.

    One call at a time: the tokenizers below can't be used by two threads at once.
    """

    def __init__(
        self,
        model: Any,
        passages: dict[str, Any] | None = None,
        queries: dict[str, Any] | None = None,
    ) -> None:
        self._model = model
        self._settings = (passages or {}, queries or {})
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Encoder], tuple[Any, ...]]:
        return type(self), (self._model, *self._settings)

    def embed(self, texts: list[str]) -> Any:
        """Embed passages."""
        settings = self._settings[0]
        return self._encode("encode_document", ("document", "passage", "corpus"), texts, settings)

    def embed_queries(self, texts: list[str]) -> Any:
        """Embed queries."""
        return self._encode("encode_query", ("query",), texts, self._settings[1])

    def _encode(
        self, method: str, prompts: Sequence[str], texts: list[str], settings: dict[str, Any]
    ) -> Any:
        arguments: dict[str, Any] = {"show_progress_bar": False, "convert_to_numpy": True}
        if has(self._model, method):
            call = getattr(self._model, method)
        else:  # before version 5
            call = self._model.encode
            available = getattr(self._model, "prompts", None) or {}
            arguments["prompt_name"] = next(filter(available.get, prompts), None)
        arguments |= settings
        if arguments.get("prompt") is not None:
            arguments.pop("prompt_name", None)
        with self._lock:
            return call(texts, **_accepted(call, arguments))


def _accepted(call: Callable[..., Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the call accepts. Related libraries have fewer."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):  # written in C
        return {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {k: v for k, v in settings.items() if k != "prompt_name" or v is not None}
    return {k: v for k, v in settings.items() if k in parameters}


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
