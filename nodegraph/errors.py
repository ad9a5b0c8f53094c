"""Exception classes that callers may need to catch, and helpers for error messages."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast

from .foreign_names import advice, native_name


class UnknownGroupError(LookupError):
    """Raised if a graph has no group with the given name."""


class MissingNodeError(LookupError):
    """Raised if a node was removed from the graph or changed after an index had read it.

    The search is repeated after this error. Other lookup errors, for example in a user's function,
    do not repeat the search.
    """


class TransformError(RuntimeError):
    """Raised if a transform fails for a document. The nodes of other documents are kept.

    Attributes:
        document: The id of the document. It is empty if the transform has ``scope="group"``.
        group: The name of the group.
        reason: A description of the error.

    The exception that the transform raised is available as ``__cause__``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph(progress=False)
        >>> ids = graph.add(Document("Green tea.", id="tea"))
        >>> graph.create_node_group("number", lambda text: [str(int(text))])
        >>> try:
        ...     graph.build("number")
        ... except TransformError as error:
        ...     print(error.document, error.group, type(error.__cause__).__name__)
        tea number ValueError
    """

    def __init__(self, document: str, group: str, reason: str) -> None:
        where = f"document {document!r}" if document else "the whole of its parent group"
        super().__init__(
            f"transform of group {group!r} failed on {where}: {reason}; "
            'fix the transform, or pass on_error="skip" to leave the document out'
        )
        self.document = document
        self.group = group
        self.reason = reason

    def __reduce__(self) -> tuple[type[TransformError], tuple[str, str, str]]:
        return type(self), (self.document, self.group, self.reason)


NEEDS_EXTRA = "in need of "
"""The beginning of ``ReadError.kind`` for a file that requires an optional dependency."""


class ReadError(ValueError):
    """Raised if a file cannot be read as a document.

    Attributes:
        kind: A short label for the problem, such as ``"damaged"`` or ``"encrypted PDF"``. Summaries
            count the files with each label.
        skippable: Whether the file is intact but cannot be read, for example because it is
            encrypted, too large, a scan or not a document, or because it needs an optional
            dependency.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.nodegraph import NodeGraph, ReadOptions
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "tea.txt").write_text("Green tea is steamed.")
        ...     graph = NodeGraph(folder, reading=ReadOptions(max_bytes=10), progress=False)
        >>> [(failure.error.kind, failure.error.skippable) for failure in graph.failures]
        [('too large', True)]
    """

    def __init__(self, message: str, kind: str = "damaged", *, skippable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.skippable = skippable

    @property
    def needs_extra(self) -> bool:
        """True if the file can be read after an optional dependency is installed."""
        return self.kind.startswith(NEEDS_EXTRA)


class UnsupportedFilesError(ReadError):
    """Raised if files in a folder are skipped because their type is not supported.

    Attributes:
        counts: The number of skipped files for each suffix, most frequent first.
    """

    def __init__(self, message: str, kind: str, counts: Mapping[str, int]) -> None:
        super().__init__(message, kind, skippable=True)
        self.counts = dict(counts)

    def __reduce__(self) -> tuple[type[UnsupportedFilesError], tuple[str, str, Mapping[str, int]]]:
        return type(self), (str(self), self.kind, self.counts)


OnError: TypeAlias = Literal["raise", "skip"]
"""How to handle a failing transform or an unreadable file: raise the error or skip the document."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that could not be transformed, or a file that could not be read.

    Attributes:
        document: The id of the document. It is empty if the transform receives a whole group.
        group: The name of the group. For a file, it is ``ROOT``.
        error: The exception that explains the failure.

    Example:
        >>> import json
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph(on_error="skip", progress=False)
        >>> ids = graph.add([Document('{"name": "Tea"}', id="a"), Document("No JSON", id="b")])
        >>> graph.create_node_group("name", lambda text: [json.loads(text)["name"]])
        >>> [(failure.document, failure.group) for failure in graph.build("name")]
        [('b', 'name')]
    """

    document: str
    group: str
    error: Exception


def nearest_names(name: str, existing: Iterable[str], *, limit: int = 8) -> str:
    """List existing names for an error message, starting with the names most similar to ``name``.

    Names that contain ``name`` come first, followed by names with a similar spelling. For paths,
    only the file name without its suffix is compared. If more than ``limit`` names exist and none
    of them is similar, only the number of names is returned.

    Example:
        >>> nearest_names("tae", ["milk", "tea"])
        "'tea', 'milk'"
        >>> books = [f"books/{i}-war-and-peace.txt" for i in range(2)]
        >>> nearest_names("War-and-Peace", [*books, *map(str, range(99))], limit=3)
        "'books/0-war-and-peace.txt', 'books/1-war-and-peace.txt' and 99 more"
        >>> nearest_names("coffee", map(str, range(99)))
        'none like it among 99'
    """
    names = list(dict.fromkeys(existing))
    wanted = name.casefold()
    stems = {each: PurePosixPath(each.casefold()).stem for each in names}
    within = [each for each in names if wanted and wanted in each.casefold()]
    within.sort(key=lambda each: not stems[each].startswith(wanted))
    known = dict.fromkeys(stems.values())
    near = list(within)
    for stem in difflib.get_close_matches(PurePosixPath(wanted).stem, known, n=limit, cutoff=0.5):
        near += [each for each in names if stems[each] == stem]
    is_long = len(names) > limit
    if is_long and name and not near:
        return f"none like it among {len(names):,}"
    if not is_long or not near:
        near += names
    shown = list(dict.fromkeys(near))[:limit]
    listed = ", ".join([repr(each) for each in shown])
    more = len(names) - len(shown)
    return f"{listed} and {more} more" if more > 0 else listed or "none"


def check_integer(number: int, name: str, least: float = -math.inf) -> int:
    """Check that a number is an integer and at least ``least``, and return it.

    Raises:
        TypeError: If the number is not an integer.
        ValueError: If the number is less than ``least``.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} must be an integer, got {number!r:.80}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, got {number!r}")
    return number


def check_bool(value: object, name: str) -> None:
    """Check that an argument is a bool.

    Raises:
        TypeError: If the argument is not a bool.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r:.80}")


class EmbeddingError(RuntimeError):
    """Raised if an embedding model fails or returns invalid vectors."""


class StoreError(RuntimeError):
    """Raised if a store cannot be opened, read or written, or if its content is inconsistent."""


class TransientStoreError(StoreError):
    """Raised if the store is unreachable or if a concurrent change caused a lock conflict.

    Nothing was changed, so the operation can be retried. If the connection to the server is lost at
    the start of a read or write, the store waits several seconds for the server before it raises
    this error.
    """


class VectorLengthError(EmbeddingError):
    """Raised if a model returns vectors of a different length than its cached vectors."""


class ModelError(RuntimeError):
    """Raised if a language model fails or returns an invalid answer."""


class ModelTimeoutError(ModelError):
    """Raised if a language model does not answer within its timeout."""


ParamT = ParamSpec("ParamT")
ReturnT = TypeVar("ReturnT")

# A constructor passes unknown names on to this class.
_INNER_FUNCTION = re.compile(r"^[\w.<>]+\(\) got")


def explain_names(function: Callable[ParamT, ReturnT]) -> Callable[ParamT, ReturnT]:
    """Decorate a function, so that its ``TypeError`` for an unknown argument suggests a valid name.

    The argument names of other libraries are recognized. The behavior and the type of the function
    are unchanged.
    """

    @functools.wraps(function)
    def call(*args: ParamT.args, **kwargs: ParamT.kwargs) -> ReturnT:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if explained := _explained(function, args, kwargs, error):
                raise explained from error
            raise

    @functools.wraps(function)
    async def acall(*args: ParamT.args, **kwargs: ParamT.kwargs) -> Any:
        try:
            return await cast("Callable[ParamT, Awaitable[Any]]", function)(*args, **kwargs)
        except TypeError as error:
            if explained := _explained(function, args, kwargs, error):
                raise explained from error
            raise

    return cast("Any", acall) if inspect.iscoroutinefunction(function) else call


def _explained(
    function: Callable[..., object],
    args: Sequence[object],
    given: Iterable[str],
    error: TypeError,
) -> TypeError | None:
    """Return the error with a suggestion, or None if it is not about an argument's name."""
    # A constructor may pass unknown arguments on, so the error may come from an inner call.
    # Python 3.13 makes suggestions for some names only
    own = str(error).partition(". Did you mean ")[0]
    message, inner = getattr(error, "_inner", (own, []))
    if "has no argument" in message:  # The function has already checked the names itself.
        return None
    names = [*inner, *_names_of(function)]
    hint = _hint(names, given, message)
    if not hint:
        return None
    caller = function.__qualname__
    if function.__name__ == "__init__" and args:
        caller = type(args[0]).__name__
    message = _INNER_FUNCTION.sub(f"{caller}() got", message)
    explained = TypeError(f"{message}; {hint}")
    vars(explained)["_inner"] = message, names
    return explained


def _names_of(function: Callable[..., object]) -> list[str]:
    """Return the names of a function's arguments."""
    parameters = inspect.signature(function).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.kind not in variable and p.name not in ("self", "cls")]


def _hint(names: Collection[str], given: Iterable[str], message: str) -> str:
    """Return a suggestion of valid names, or an empty string if the error is not about names."""
    hints = []
    for name in given:
        missing = native_name(name, names)
        is_missing = f"missing 1 required positional argument: {missing!r}" in message
        if missing is not None and (name not in names or is_missing):
            hints.append(advice(name, names))
    if hints:
        return ", ".join(hints)
    unknown = message.rpartition("unexpected keyword argument '")[2].rstrip("'")
    if unknown not in given or not message.endswith(f"unexpected keyword argument '{unknown}'"):
        return ""
    return advice(unknown, names) or f"valid names are {nearest_names(unknown, names, limit=20)}"
