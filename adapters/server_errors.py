"""The causes of failed requests to model servers, in a sentence."""

from __future__ import annotations

_REASONS: dict[object, str] = {  # reasons of failed requests, by status
    None: "does not answer ({error}): is it running? OPENAI_BASE_URL is its address",
    **dict.fromkeys((401, 403), "rejects the key (status {status}): set OPENAI_API_KEY"),
    404: "has no such model or path (status 404): check the name of the model, and "
    "OPENAI_BASE_URL, which usually ends with /v1",
}


def describe_server_error(error: BaseException | None) -> str:
    """Return the address of a model server and the cause of a failed request.

    Args:
        error: The error, or an error that was raised from it. Empty: no server has failed.
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
    status = getattr(error, "status_code", None)
    cause = _first_cause(error) if status is None else error
    reason = _REASONS.get(status, "failed: {error}").format(status=status, error=cause)
    return f"the model server {url} {reason}"


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that began a chain, such as "Connection refused"."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
