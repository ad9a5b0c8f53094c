"""Exit statuses, and the conversion of errors to one line with a status."""

from __future__ import annotations

from enum import IntEnum

import click


class ExitStatus(IntEnum):
    """The exit statuses of commands, see docs/quickstart.md."""

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
    """An error that ends a command with one sentence and an exit status."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.USAGE_ERROR) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = int(status)  # type: ignore[misc]


def as_command_error(error: Exception) -> CommandError:
    """Convert an error of the package to a sentence and a status. Other errors are raised.

    Example:
        >>> as_command_error(ValueError("top_k must be 1 or more, got 0")).exit_code
        2
    """
    from ...nodegraph import errors

    if isinstance(error, CommandError):
        return error
    if problem := _server_problem(error):
        return CommandError(problem, ExitStatus.MODEL_ERROR)
    message = str(error) or type(error).__name__
    if isinstance(error, errors.EmbeddingError | errors.ModelError | ImportError):
        return CommandError(message, ExitStatus.MODEL_ERROR)
    if isinstance(error, errors.ReadError | errors.StoreError | errors.TransformError | OSError):
        return CommandError(message, ExitStatus.INDEX_ERROR)
    if type(error) in (ValueError, LookupError, errors.UnknownGroupError):
        return CommandError(message)
    raise error


_KEY = "rejects the key (status {status}): set OPENAI_API_KEY"

_REASONS = {  # reasons of failed requests, by status
    None: "does not answer ({error}): is it running? OPENAI_BASE_URL is its address",
    401: _KEY,
    403: _KEY,
    404: "has no such model or path (status 404): check the name of the model, and "
    "OPENAI_BASE_URL, which usually ends with /v1",
}


def _server_problem(error: BaseException | None) -> str:
    """Return the cause of a failed request to a model server. Empty: another error."""
    while error is not None and type(error).__module__.partition(".")[0] != "openai":
        error = error.__cause__ or error.__context__
    if error is None:
        return ""
    url = str(getattr(getattr(error, "request", None), "url", ""))
    if not url:
        return str(error)
    server = f"the model server {url.partition('/chat/')[0].partition('/embeddings')[0]}"
    status = getattr(error, "status_code", None)
    reason = _REASONS.get(status, "failed: {error}").format(status=status, error=error)
    return f"{server} {reason}"
