"""Check what an embedding model returns: one usable vector for each text."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


def check_vectors(made: Any, texts: Sequence[str], name: str) -> Vectors:
    """Return what a model made as an array of its own, (texts, dimension) float32.

    Args:
        made: An array, a tensor of torch on any device, a list of vectors, or a generator of them.
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
    allowed = f"it has to give an array ({_number(texts, 'text')}, dimension) of numbers"
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        raise EmbeddingError(
            f"{model} gave a coroutine; {allowed}: give an async form as "
            "Embedder(embed, aembed_queries=...), beside one that is not"
        )
    rows = _plain(made)
    if rows is None or isinstance(rows, str | bytes):
        raise EmbeddingError(f"{model} gave {rows!r:.80}; {allowed}")
    try:
        numbers = np.asarray(rows)
        if numbers.dtype.kind not in "fiub":
            raise TypeError(f"{numbers.dtype} is no type of numbers")
        with np.errstate(over="ignore"):  # infinite then, which is looked for below
            vectors = np.array(numbers, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingError(f"{model} gave {_shown(rows)}; {allowed}") from error
    if vectors.ndim == 2 and len(vectors) != len(texts):
        raise EmbeddingError(
            f"{model} gave {_number(vectors, 'vector')} for {_number(texts, 'text')}; it has to "
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
                f"{model} gave {what} for {int(bad.sum())} of {_number(texts, 'text')}, first "
                f"{texts[int(bad.argmax())]!r:.80}; leave such texts out of the group, or give an "
                "embed function that replaces such vectors"
            )


def _plain(made: Any) -> Any:
    """Return tensors as arrays, and what can be gone through only once as a list."""
    if hasattr(made, "detach"):
        tensor = made.detach().cpu()
        return (tensor.float() if hasattr(tensor, "float") else tensor).numpy()
    if isinstance(made, list | tuple):
        return [_plain(row) for row in made] if any(hasattr(r, "detach") for r in made) else made
    if hasattr(made, "__array__") or hasattr(made, "__len__") or not isinstance(made, Iterable):
        return made
    return [_plain(row) for row in made]


def _shown(rows: Any) -> str:
    """Say what was given in place of an array of numbers."""
    if isinstance(rows, list | tuple):
        lengths = sorted({len(row) for row in rows if hasattr(row, "__len__")})
        if len(lengths) > 1:
            return f"vectors of different lengths ({', '.join(map(str, lengths[:5]))})"
    return f"{rows!r:.80}"


def _number(things: Sequence[object] | Vectors, what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"
