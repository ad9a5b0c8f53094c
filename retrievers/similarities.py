"""The similarities that are known by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..nodegraph.errors import nearest
from .bm25 import Bm25
from .cosine import Cosine
from .protocols import Similarity

SIMILARITIES: dict[str, Callable[..., Similarity]] = {
    "bm25": Bm25,
    # One analysis serves all languages; the second name is for those who look for it.
    "bm25_chinese": partial(Bm25, name="bm25_chinese"),
    "cosine": Cosine,
}


def get_similarity(similarity: str | Similarity | None, settings: Mapping[str, Any]) -> Similarity:
    """Return the similarity of a name with settings, or the object that was given; bm25 for None.

    Raises:
        ValueError: If there is none of that name.
        TypeError: If it has no such setting, or an object was given settings beside it.
    """
    if similarity is None:
        similarity = "bm25"
    if not isinstance(similarity, str):
        usable = all(hasattr(similarity, name) for name in ("open", "prepare", "mode", "name"))
        if not usable or isinstance(similarity, type):
            raise TypeError(
                f"similarity is one of {nearest('', SIMILARITIES)} or an object with open(), "
                f"prepare(), mode and name, not {similarity!r:.80}"
            )
        if settings:
            raise TypeError(
                f"settings {sorted(settings)} go with a similarity's name; give them to "
                f"{type(similarity).__name__}(...) itself"
            )
        return similarity
    make = SIMILARITIES.get(similarity)
    if make is None:
        raise ValueError(
            f"no similarity {similarity!r}; there is {nearest(similarity, SIMILARITIES)}"
        )
    known = [name for name in inspect.signature(make).parameters if name != "name"]
    for name in settings:
        if name not in known:
            raise TypeError(
                f"{similarity!r} has no setting {name!r}; it has {nearest(name, known)}"
            )
    return make(**settings)
