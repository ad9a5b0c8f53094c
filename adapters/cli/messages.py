"""Messages in two languages, printing without control characters, and errors with exit statuses."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

import click

from ..chinese_messages import in_chinese
from ..server_errors import describe_server_error

_LINES: dict[str, list[str]]
_LINES = json.loads(Path(__file__).with_name("messages.json").read_text("utf-8"))


def message(name: str, **values: object) -> str:
    """Return a frequently used message in the language of the locale.

    Example:
        >>> message("more sources", count=5)  # doctest: +SKIP
        '+ 5 more read, not cited'
    """
    plural = "" if values.get("count") == 1 else "s"
    return _LINES[name][language() == "zh"].format(s=plural, **values)


def language() -> str:
    """Return the language of the locale, ``"zh"`` or ``"en"``."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if locale := os.environ.get(name):
            return "zh" if locale.lower().startswith("zh") else "en"
    return "en"


def group_sizes(sizes: Mapping[str, int]) -> str:
    """Describe the number of nodes in each group.

    Example:
        >>> group_sizes({"passage": 1, "sentence": 1200})  # doctest: +SKIP
        '1 passage, 1,200 sentences'
    """
    parts = []
    for group, size in sizes.items():
        if group.endswith(" entity"):  # these groups belong to the link index and are not searched
            continue
        name = f"group {group}"
        parts.append(message(name, count=size) if name in _LINES else f"{size:,} {group}")
    return message("comma").join(parts)


def with_short_paths(text: str) -> str:
    """Shorten the paths in a text, relative to the current folder or the home directory (``~``)."""
    for folder, short in ((Path.cwd(), ""), (Path.home(), "~/")):
        if folder.parent != folder:  # the folder is not the root of the file system
            start = re.escape(f"{folder}{os.sep}")
            text = re.sub(rf"(?<![\w./~-]){start}(?=\S)", short, text)
    return text


def translated(text: str, kind: str = "message") -> str:
    """Translate a message to the language of the locale. See ``in_chinese``."""
    if language() == "zh":
        return in_chinese(text, kind)
    return text


def warn(text: object) -> None:
    """Print a line to stderr in the language of the locale."""
    line = printable(translated(" ".join(str(text).split())))
    click.echo(f"nodekin: {with_short_paths(line)}", err=True)


_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if chr(c) not in "\n\t"}
_CONTROLS[ord("\f")] = " "  # a page break
# Characters that change the writing direction can be used to disguise a text.
_CONTROLS.update(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"))

_MARKS = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029)  # direction marks and line separators

_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_MARKS) if code > 31}


def printable(text: str) -> str:
    """Replace control characters, because terminals execute some of them.

    Example:
        >>> printable("tea\\x1b[2J"), printable("one\\ftwo")
        ('tea\ufffd[2J', 'one two')
    """
    return text.translate(_CONTROLS)


def escaped(text: str) -> str:
    r"""Replace control characters in a JSON text with equivalent escape sequences.

    Example:
        >>> escaped('"\u202e"')
        '"\\u202e"'
    """
    return text.translate(_ESCAPES)


class ExitStatus(IntEnum):
    """The exit statuses of commands, which are described in docs/quickstart.md."""

    SUCCESS = 0
    NO_RESULTS = 1
    USAGE_ERROR = 2
    INDEX_ERROR = 3
    MODEL_ERROR = 4
    PARTIAL_SUCCESS = 5
    INTERNAL_ERROR = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class CommandError(click.ClickException):
    """An error that ends a command with a one-line message and an exit status."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.USAGE_ERROR) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = int(status)  # type: ignore[misc]


def as_command_error(error: Exception) -> CommandError:
    """Convert an error of this package to a one-line message with an exit status.

    Other errors indicate bugs, so they are raised again with a traceback.

    Example:
        >>> as_command_error(ValueError("top_k must be 1 or more, got 0")).exit_code
        2
    """
    from ...nodegraph import errors

    if isinstance(error, CommandError):
        return error
    if problem := describe_server_error(error):
        return CommandError(translated(problem), ExitStatus.MODEL_ERROR)
    message = str(error) or type(error).__name__
    if isinstance(error, errors.EmbeddingError | errors.ModelError | ImportError):
        return CommandError(message, ExitStatus.MODEL_ERROR)
    if isinstance(error, errors.ReadError | errors.StoreError | errors.TransformError | OSError):
        return CommandError(message, ExitStatus.INDEX_ERROR)
    if type(error) in (ValueError, LookupError, errors.UnknownGroupError):
        return CommandError(message)
    traceback.print_exception(error)
    return CommandError("this is a bug: report it with the lines above", ExitStatus.INTERNAL_ERROR)
