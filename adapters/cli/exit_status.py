"""What the exit status of a command means, and which error gives which."""

from __future__ import annotations

from enum import IntEnum

import click


class ExitStatus(IntEnum):
    """Name what the exit status of a command means."""

    SUCCESS = 0
    NO_RESULTS = 1
    USAGE_ERROR = 2
    INDEX_ERROR = 3
    MODEL_ERROR = 4
    PARTIAL_SUCCESS = 5
    INTERNAL_ERROR = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXIT_STATUSES = """\b
Exit status:
  0    done; something was found
  1    nothing was found
  2    the command line is wrong
  3    no index, or a file or an index that can't be read or written
  4    a model is missing, can't be reached, or failed
  5    done, but for some files or documents, which are listed
  70   an error of nodekin itself
  130  interrupted; 141 the reader of the output went away
"""

_BY_STATUS = {
    ExitStatus.NO_RESULTS: ("NoQuestionsError",),
    ExitStatus.USAGE_ERROR: ("UnknownGroupError", "LookupError", "ValueError", "InvalidURL"),
    ExitStatus.INDEX_ERROR: ("ReadError", "StoreError", "TransformError", "OSError"),
    # An ImportError is an extra that is not installed.
    ExitStatus.MODEL_ERROR: ("EmbeddingError", "ModelError", "OpenAIError", "ImportError"),
    ExitStatus.INTERNAL_ERROR: ("KeyError", "IndexError", "UnicodeError"),
}

_BY_NAME = {name: status for status, names in _BY_STATUS.items() for name in names}


class CommandError(click.ClickException):
    """End a command with one sentence on stderr and an exit status."""

    def __init__(self, message: str, status: ExitStatus) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = int(status)  # type: ignore[misc]


def as_command_error(error: Exception) -> CommandError:
    """Turn what the package raised into a sentence and a status.

    Classes are known by name, so that nothing has to be imported for it.

    Example:
        >>> as_command_error(ValueError("top_k=0 has to be 1 or more")).exit_code
        2
    """
    if isinstance(error, CommandError):
        return error
    statuses = (_BY_NAME[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _BY_NAME)
    status = next(statuses, ExitStatus.INTERNAL_ERROR)
    if status != ExitStatus.INTERNAL_ERROR:
        return CommandError(shell_message(error), status)
    return CommandError(
        f"{type(error).__name__}: {error}; this should not happen: run it again with --debug, and "
        "report what it prints",
        ExitStatus.INTERNAL_ERROR,
    )


_HINTS = {
    "; convert it, set its encoding": "; say what it is with --encoding gb18030, or convert it",
    "; or register a reader: register_reader(": "",
    ": register_reader(": "",
    "; leave it out, or give it more: ReadOptions": "; leave it out",
    ": give ReadOptions(ocr=...)": ": nodekin index --ocr reads it, with tesseract installed",
    " of ReadOptions(": "",
    "; register it with create_node_group": "; 'nodekin groups' lists them, "
    "'nodekin index --group NAME=TRANSFORM' makes another",
    "add one with register_reader": "convert it to text",
    "add one with ": "convert it to one of these",
    "; use graph.add": "",
    "; say by fields= what": "; say what it is called with --field question=COLUMN",
    "; choose another path": "; name another folder with --store, or --rebuild",
    "; rename a folder, or add Document": "; rename a folder, or give it "
    "an index of its own with --store",
}
"""The remedies of errors, as Python and as a shell has them."""


def shell_message(error: BaseException | str) -> str:
    """Return what an error or a warning says in one line, with a remedy that a shell has.

    Example:
        >>> error = LookupError("unknown group 'x'; register it with create_node_group")
        >>> shell_message(error)[:37]
        "unknown group 'x'; 'nodekin groups' l"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    for in_python, in_a_shell in _HINTS.items():
        start, match, _ = text.partition(in_python)
        if match:
            return start + in_a_shell
    return text


_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if chr(c) not in "\n\t"}

_CONTROLS[ord("\f")] = " "  # stands between pages

# What turns the direction of writing around, and so may show a text as another one.
_CONTROLS.update(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"))


# Marks of a direction and ends of lines, which texts of some languages have.
_MARKS = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029)

_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_MARKS) if code > 31}


def escaped(text: str) -> str:
    """Return JSON with such characters as escapes, which mean the same.

    Example:
        >>> escaped('"\u202e"')
        '"\\\\u202e"'
    """
    return text.translate(_ESCAPES)


def printable(text: str) -> str:
    """Replace control characters, of which a terminal takes some for commands, one for one.

    Example:
        >>> printable("tea\\x1b[2J"), printable("one\\ftwo")
        ('tea\ufffd[2J', 'one two')
    """
    return text.translate(_CONTROLS)
