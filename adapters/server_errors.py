"""The causes of failed requests to model servers, in a sentence."""

from __future__ import annotations

_ENGLISH = {
    None: "the model server {url} does not answer ({error}): is it running? OPENAI_BASE_URL is "
    "its address",
    401: "the model server {url} rejects the key (status {status}): set OPENAI_API_KEY",
    404: "the model server {url} has no such model or path (status 404): check the name of the "
    "model, and OPENAI_BASE_URL, which usually ends with /v1",
    500: "the model server {url} failed: {error}",
}
"""Descriptions of failed requests by status. 500 stands for all other statuses."""

_CHINESE = {
    None: "模型服务 {url} 没有应答（{error}）：它启动了吗？地址由 OPENAI_BASE_URL 指定",
    401: "模型服务 {url} 拒绝了密钥（状态 {status}）：请设置 OPENAI_API_KEY",
    404: "模型服务 {url} 没有这个模型或路径（状态 404）：请检查模型的名字，以及 OPENAI_BASE_URL，"
    "它通常以 /v1 结尾",
    500: "模型服务 {url} 出错：{error}",
}


def describe_server_error(error: BaseException | None, language: str = "en") -> str:
    """Return the address of a model server and the cause of a failed request.

    Args:
        error: The error, or an error that was raised from it. If no server has failed, the result
            is empty.
        language: ``"en"`` or ``"zh"``.
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
    descriptions = _CHINESE if language == "zh" else _ENGLISH
    kind = 401 if status == 403 else status
    description = descriptions.get(kind, descriptions[500])
    return description.format(url=url, status=status, error=cause)


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that began a chain, such as "Connection refused"."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
