"""The errors a caller would catch, and the sentence they are written in."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar


class UnknownGroupError(LookupError):
    """A node group was asked for that the graph does not have."""


class TransformError(RuntimeError):
    """A transform failed on one document; the others are unharmed.

    Attributes:
        document: Id of the document; empty where the transform saw a whole group.
        group: Name of the node group that was being built.

    The transform's own exception is the ``__cause__``.
    """

    def __init__(self, document: str, group: str, reason: str) -> None:
        where = f"document {document!r}" if document else "the whole of its parent group"
        super().__init__(
            f"the transform of group {group!r} failed on {where}: {reason}; "
            'mend it and ask again, or build with on_error="skip" to leave the document out'
        )
        self.document = document
        self.group = group
        self.reason = reason

    def __reduce__(self) -> tuple[type[TransformError], tuple[str, str, str]]:
        return type(self), (self.document, self.group, self.reason)


NEEDS_EXTRA = "in need of "
"""Starts the ``kind`` of a ``ReadError`` for a file that needs an extra."""


class ReadError(ValueError):
    """A file could not be read as a document.

    Attributes:
        kind: What is wrong, in the words of a summary that counts such files: ``"damaged"``,
            ``"encrypted PDF"``.
        skippable: Whether a folder is read without such files, which are told, unless it is read
            strictly: encrypted ones, those too large, those that are no documents.
    """

    def __init__(self, message: str, kind: str = "damaged", *, skippable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.skippable = skippable

    @property
    def needs_extra(self) -> bool:
        """Whether the file can be read once an extra is installed."""
        return self.kind.startswith(NEEDS_EXTRA)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), str(self), self.kind, self.skippable)


def _restored(error: type[ReadError], message: str, kind: str, skippable: bool) -> ReadError:
    return error(message, kind, skippable=skippable)


class UnsupportedFilesError(ReadError):
    """Files of a folder were passed over, as there is no reader for files of their kind."""


def nearest_names(name: str, existing: Iterable[str], *, limit: int = 8) -> str:
    """List existing names, those nearest to ``name`` first, for an error message.

    Near is what has the name as its last part, at its start or within it, then what is spelled
    alike. Where there are too many to list and none is near, that is said.

    Example:
        >>> nearest_names("tae", ["milk", "tea"])
        "'tea', 'milk'"
        >>> books = [f"books/{i}-war-and-peace.txt" for i in range(2)]
        >>> nearest_names("War-and-Peace", [*books, *map(str, range(99))], limit=3)
        "'books/0-war-and-peace.txt', 'books/1-war-and-peace.txt' and 99 more"
        >>> nearest_names("coffee", map(str, range(99)))
        'none like it among 99'
    """
    names = list(existing)
    wanted = name.casefold()
    last = {each: each.casefold().rpartition("/")[2] for each in names}
    stems = {each: part.rpartition(".")[0] or part for each, part in last.items()}
    file_name = wanted.rpartition("/")[2] or wanted
    equal = [each for each in names if file_name in (last[each], stems[each])]
    within = [each for each in names if wanted and wanted in each.casefold()]
    within.sort(key=lambda each: not last[each].casefold().startswith(wanted))
    stem = file_name.rpartition(".")[0] or file_name
    alike = difflib.get_close_matches(stem, dict.fromkeys(stems.values()), n=limit, cutoff=0.5)
    spelled = [each for part in alike for each in names if stems[each] == part]
    near = list(dict.fromkeys([*equal, *within, *spelled]))
    if name and not near and len(names) > limit:
        return f"none like it among {len(names):,}"
    is_long = bool(near) and len(names) > limit
    listed_names = near[:limit] if is_long else list(dict.fromkeys([*near, *names]))[:limit]
    listed = ", ".join(map(repr, listed_names))
    more = len(set(names)) - len(listed_names)
    return f"{listed} and {more} more" if more > 0 else listed or "none"


def check_integer(number: int, name: str, least: float = -math.inf) -> int:
    """Return a whole number that is at least so large.

    Raises:
        TypeError: If it is none.
        ValueError: If it is smaller.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} is a whole number, not {number!r:.80}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number!r}")
    return number


class EmbeddingError(RuntimeError):
    """An embedding model failed, or made vectors that can't be used."""


class StoreError(RuntimeError):
    """A store could not be opened, read or written; what it held before is unharmed."""


class DiskFullError(StoreError):
    """There is no room to write; nothing was changed. What is removed makes room."""


class TransientStoreError(StoreError):
    """A store can't be reached, or gave way to others; nothing was changed, so it may be repeated.

    What changes a graph is repeated for some seconds before this is raised.
    """


class VectorLengthError(EmbeddingError):
    """A model gives vectors of another length than those that are kept under its name."""


class ModelError(RuntimeError):
    """A language model failed, or gave an answer that can't be used."""


class NoJsonError(ModelError):
    """A language model was asked for JSON, and answered in words.

    Attributes:
        answer: The words.
    """

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message, answer)
        self.answer = answer

    def __str__(self) -> str:
        return str(self.args[0])


class ModelTimeoutError(ModelError):
    """A language model took too long to answer."""


ParamT = ParamSpec("ParamT")
ReturnT = TypeVar("ReturnT")

OURS = {
    "top_k": ("topk", "k", "top_n", "similarity_top_k", "limit", "n_results"),
    "graph": ("doc", "docs", "index", "vectorstore", "node_graph"),
    "group_name": ("group", "name", "node_group"),
    "filters": ("filter", "where", "metadata_filter", "metadata_filters"),
    "similarity_cut_off": ("score_threshold", "similarity_cutoff", "similarity_threshold"),
    "cut_off": ("score_threshold", "similarity_cutoff"),
    "embed": ("embed_model", "embedding", "embeddings", "embedding_function"),
    "store": ("persist_dir", "persist_directory", "store_conf", "docstore", "path"),
    "source": ("dataset_path", "documents", "input_dir", "data"),
    "retrievers": ("retriever",),
    "inner": ("base_retriever", "retriever"),
    "retriever": ("base_retriever", "inner"),
    "reranker": ("base_compressor", "compressor", "rerank", "name"),
    "llm": ("model", "chat_model"),
    "query": ("question", "query_str", "input"),
    "node_id": ("id_", "id"),
    "id": ("id_", "doc_id", "document_id", "uid"),
    "text": ("page_content", "content"),
    "metadata": ("extra_info",),
    "group": ("group_name", "node_group"),
    "output_format": ("output_type",),
    "task": ("task_type",),
    "required": ("required_keys", "required_keywords"),
    "excluded": ("exclude_keys", "exclude_keywords"),
}
"""The names here, and those that LangChain, LlamaIndex, Chroma, haystack and LazyLLM use."""


def explain_names(function: Callable[ParamT, ReturnT]) -> Callable[ParamT, ReturnT]:
    """Let the error of a call with another library's argument names say what they are here.

    Nothing else changes: neither the call nor its type.
    """

    @functools.wraps(function)
    def call(*args: ParamT.args, **kwargs: ParamT.kwargs) -> ReturnT:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            hint = _hint(inspect.signature(function).parameters, kwargs, str(error), *args[:1])
            if not hint:
                raise
            raise TypeError(f"{error}; {hint}") from error

    return call


def _hint(
    parameters: Iterable[str], given: Iterable[str], message: str, owner: object = None
) -> str:
    seen = set(parameters)
    settings: Any = getattr(owner, "settings_type", None)
    fields = getattr(settings, "__dataclass_fields__", {})
    if misplaced := [name for name in given if name in fields and name not in seen]:
        values = ", ".join(f"{name}=..." for name in misplaced)
        return f"write settings={settings.__name__}({values})"
    pairs = [
        f"{name!r} is called {native!r} here"
        for name in given
        for native, others in OURS.items()
        if name in others
        and (name not in seen or f"missing 1 required positional argument: '{native}'" in message)
        and (native in seen or f"'{native}'" in message)
    ]
    return ", ".join(pairs) if " is called " not in message else ""
