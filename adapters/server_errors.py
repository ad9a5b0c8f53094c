"""Describe in one sentence why a request to a model server failed."""

from __future__ import annotations

_DESCRIPTIONS = {
    None: "the model server {url} does not answer ({error}): is it running? OPENAI_BASE_URL is "
    "its address",
    401: "the model server {url} rejects the key (status {status}): set OPENAI_API_KEY",
    404: "the model server {url} has no such model or path (status 404): check the name of the "
    "model, and OPENAI_BASE_URL, which usually ends with /v1",
    500: "the model server {url} failed: {error}",
}
"""Error messages, keyed by HTTP status.

The message for 500 is used for all statuses that are not listed.
"""


_NO_PROTOCOL = (
    "the address of the model server must start with http:// or https://, got {url!r}; it is "
    "base_url= or OPENAI_BASE_URL"
)


def describe_server_error(error: BaseException | None) -> str:
    """Describe why a request to a model server failed, including the address of the server.

    Args:
        error: The error of the request, or an error that was caused by it.

    Returns:
        The description, or an empty string if the error does not come from a model server.
    """
    while error is not None and type(error).__module__.partition(".")[0] != "openai":
        error = error.__cause__ or error.__context__
    if error is None:
        return ""
    url = str(getattr(getattr(error, "request", None), "url", ""))
    if not url:
        return str(error)
    for path in ("/chat/", "/embeddings", "/rerank"):
        url = url.partition(path)[0]
    if not url.startswith(("http://", "https://")):
        return _NO_PROTOCOL.format(url=url.lstrip("/"))
    status = getattr(error, "status_code", None)
    cause = _first_cause(error) if status is None else error
    kind = 401 if status == 403 else status
    description = _DESCRIPTIONS.get(kind, _DESCRIPTIONS[500])
    return description.format(url=url, status=status, error=cause)


def _first_cause(error: BaseException) -> BaseException:
    """Return the original error of a chain of exceptions, such as "Connection refused"."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
