"""Recognize responses that are errors, such as error pages, tracebacks and messages of servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .chinese_script import chinese_pattern

_CITATION = re.compile(r"(?<![A-Za-z0-9_\]])\s?[\[【]\d{1,3}[\]】][.。]?\s{0,9}\Z")

_CITATION_WITHIN = re.compile(r"\w[\s.,]{0,2}[\[【]\d{1,3}[\]】]")

_STATUS = (
    r"(?:bad\ request|unauthori[sz]ed|payment\ required|forbidden|not\ found|request\ time-?out"
    r"|conflict|payload\ too\ large|too\ many\ requests|internal\ server\ error|not\ implemented"
    r"|bad\ gateway|service\ (?:temporarily\ )?unavailable|gateway\ time-?out|overloaded)"
)

# A part of a server, and what happened to it: "connection timed out", "content removed".
_PART = r"""(?:(?:the|that|your|this|an?)\ )?(?:[\w-]{1,20}\ ){0,2}?(?:request|connection|server
    |service|api|upstream|stream|gateway|host|proxy|session|socket|read|network|model|deployment
    |engine|loop|context(?:\ length|\ window)?|content|output|response|prompt|input|completion
    |(?:rate|usage|daily|request|token)\ limit|quota|key|tokens?|process|runner|cuda|gpu|system
    |application|internal|unknown|authentication|account)s?
    (?:\ (?:['"`][^'"`\n]{1,60}['"`]|[\w./-]{0,40}\d[\w./:-]{0,20}))?"""

_BROKEN = r"""(?:(?:has|have|is|are|was|were|been|currently|temporarily)\ ){0,3}(?:timed\ out
    |time-?out|refused|reset|aborted|failed|failure|exceeded|reached|unavailable|overloaded|busy
    |denied|blocked|filtered|removed|rejected|error(?:ed)?
    |expired|terminated|killed|crashed|exhausted|died|dead|stopped|under\ maintenance|loading
    |invalid|too\ long|out\ of\ memory|no(?:t|\ longer)\ (?:available|found|active|running)
    |do(?:es)?\ not\ exist)"""

_AFTER_BROKEN = r"""(?:\ already|\ unexpectedly)?(?:\s{0,3}(?:[.,:;!(]|\Z)|\ or\ not\b|\ due\ to\b
    |\ after\ \d|\ for\ (?:this|requests|requested|[\w.]+-)
    |\ with\ (?:other|status|code|error)\b|\ by\ (?:peer|remote|server|content|safety|policy)\b)"""

_WHAT_FAILED = r"""(?:generate|load|get|process|connect|fetch)"""

_ERROR_LINE = chinese_pattern(
    rf"""[\s*_`\"'\[]{{0,9}}(?:oops!?\s)?(?:
    (?:http(?:/\d(?:\.\d)?)?\s|(?:[\w.-]{{1,20}}\s)?error(?:\ code)?:?\s|status(?:\ code)?:?\s)?
      [45]\d\d\s?[:\-–—.,]?\s{{0,3}}(?:client\ error:?\s|server\ error:?\s)?{_STATUS}
    |(?:\w{{1,9}}\s)?(?:error|status)\ (?:code|status)?:?\s?[45]\d\d\b|http\ [45]\d\d\Z
    |(?=\w+[\ -]\w){_STATUS}(?:[.!]?\s{{0,9}}\Z|,\ please\b)|(?:unauthorized|forbidden):\s
    |(?-i:[a-z][^\n?]{{1,99}}:\ )?{_PART}\ {_BROKEN}{_AFTER_BROKEN}
    |(?-i:[a-z][\w./-]{{1,30}}):\ [^\n]{{0,150}}
      \b(?:not\ found|no\ such\ file|denied|refused|failed|killed
        |(?<=:\ )error\ (?:loading|reading))\b
    |segmentation\ fault\ \(core\ dumped\)\Z
    |(?!(?:the|an?|this|that|his|her|its|their)\b)(?:[\w.-]{{1,20}}[\ _]?){{0,3}}error\s?[:：]\s
    |error\ \d{{3,5}}\b|(?:error|fatal)\]\s
    |error\ (?:communicating|connecting|calling|fetching|processing|generating|loading)\b
    |[^\n]{{0,60}}\b(?-i:ECONN[A-Z]+|ENOTFOUND|ETIMEDOUT|EAI_[A-Z]+|[A-Z]{{3,20}}(?:_[A-Z]{{2,20}}){{0,3}}
      _(?:FAILED|ERROR|DENIED|EXCEEDED|EXHAUSTED|UNAVAILABLE))\b
    |\S{{1,60}}\.[a-z]{{1,5}}:\d+:\s|(?-i:[a-z]+:\ )\S{{1,60}}:\d+:\s|(?:network\ is\ unreachable
      |broken\ pipe|name\ or\ service\ not\ known|too\ many\ open\ files|no\ route\ to\ host
      |no\ such\ file\ or\ directory|no\ space\ left\ on\ device)\W{{0,3}}\Z
    |(?:caused\ by:\s)?(?:[\w.]{{1,60}}\.)?\w{{0,40}}(?:Error|Exception|Timeout|Pool)\s?(?::\s|\()
    |(?:unable\ to|could\ not|cannot)\ (?:connect|load|fetch|reach|resolve)\b[^.\n]{{0,30}}
      \b(?:model|server|host|url|api|https?|file|tokenizer|endpoint)\b
    |failed\ to\ {_WHAT_FAILED}\b|fetch\ failed\b|networkerror\ when|cloudflare\ error\b
    |an?\ (?:\w{{1,12}}\ )?error\ (?:has\ )?occurred\b
    |context\ deadline\ exceeded|you(?:['’]ve|\ have)?\ (?:exceeded|reached)\ your\b
    |out\ of\ memory\b
    |upstream\ connect\ error|no\ healthy\ upstream|something\ went\ wrong\b
    |the\ server\ had\ an\ error\b|404\ page\ not\ found\b|content\ exists\ risk|finish_reason:\s
    |the\ model\ produced\ invalid\ content\b|this\ model['’]s\ maximum\ context\ length
    |just\ a\ moment\.{{3}}|please\ enable\ javascript\b
    |(?:async)?enginedeaderror\b|engine\ ?core\ encountered\ an\ (?:issue|error)\b
    |[^\n]{{1,120}}[.,;!]\ please\ (?:try\ again|retry|wait)
      (?:\ later|\ in\ [^.\n]{{1,20}}|\.\.\.)?[.!]?\Z
    |no\ api\ key\b|access\ to\ (?:this|the)\ (?:model|api|resource)\b
    |(?:access|permission)\ denied[.!]?\s{{0,3}}\Z
    |(?:invalid|insufficient|missing|incorrect|expired)\ (?:\w{{1,20}}\ )?
      (?:key|token|balance|credential|quota|credit|request)s?(?:\W{{0,3}}\Z|\ provided\b|:)
    |[^。\n]{{1,60}}请[^。\n]{{0,8}}(?:稍[后候]|再试|重试)(?:再试|重试)?[。！!～~]?\Z
    |[^。，,\n]{{0,12}}(?P<quota>额度|余额|配额|点数|积分|流量)(?:已经?)?(?:用[完尽光]|不足|耗尽|到期)(?:[，,。！!]|\Z)
    |(?:网络连接|连接|请求|调用|生成)失败[，,。！!]
    |(?:很?抱歉[，,]\s?|对不起[，,]\s?)?(?:请求|服务|系统|服务器|网络|接口|模型){{1,2}}
      (?:超时|异常|错误|繁忙|过多|过于频繁|不可用|调用失败|请求失败|内部错误|出错)(?![的导使])
    |(?:(?:内部|未知)错误(?:代码)?|错误代码)\s?[:：]
    |(?:内部错误|未知错误|发生错误|出错了|接口返回错误|余额不足)[。！!]?\s{{0,3}}\Z
    )""",
    re.I | re.X,
)

_MAX_ERROR_LENGTH = 600

_PAGE = re.compile(
    r"\A\s*(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<\?xml[^>]{0,100}\?>\s*<(?:!doctype|html|error)"
    r"|<title>\s*(?:error\s*)?[45]\d\d\b"
    rf"|<(?:center>\s*<)?h1>\s*(?:(?:error\s*)?[45]\d\d\b|{_STATUS})"
    r"|<error>\s*<code>)",
    re.I,
)

_TRACE = re.compile(
    r"Traceback \(most recent call last\):\s*\n\s*File \""
    r"|^\s{0,9}File \"[^\"\n]{1,200}\", line \d+"
    r"|^\s{1,9}(?:at|from|in) [^\n]{0,200}\.\w{1,5}:(?:line )?\d+"
    r"|^\s{1,9}at (?:[^\n]{1,200} )?\(?[^()\n]{1,200}:\d+:\d+\)?\s*$"
    r"|^(?:Stack ?trace:|#\d{1,3} \S{1,200}\(\d{1,6}\))"
    r"|^Exception in thread \"|^goroutine \d+ \[|^panic: |^thread '[^'\n]{1,60}' panicked at"
    r"|^(?:PHP )?Fatal error: ",
    re.M,
)

_URL = re.compile(r"[\s*_`\"'<(\[]{0,9}(?:https?://|www\.)\S{2,2000}[\s*_`\"'>)\]]{0,9}", re.I)

_LINK = re.compile(r"\s{0,9}\[[^\]\n]{0,200}\]\((?:https?://|www\.)[^\s)]{1,2000}\)\s{0,9}", re.I)

_ERROR_KEYS = frozenset(
    """error errors error_code error_msg error_message error_type errormessage errortype
    detail details message msg status status_code statuscode code type param request_id
    requestid success object timestamp path title instance trace traceback reason ok fault exception
    result data retry_after innererror""".split()
)

_BLANK = frozenset(
    ("null", "undefined", "nan", "[done]", "[object object]", "(null)", "<null>", "nil", "{}", "[]")
)


def is_blank_value(text: str) -> bool:
    """Return whether a text is the null value of a programming language, such as "None"."""
    bare = re.sub(r"\A```\w{0,12}\s|```\Z", "", text.strip()).strip()
    word = bare.strip("`\"'*. ").casefold()
    return bare in ('""', "''") or word in _BLANK


def failure_in(text: str, query: str = "") -> str | None:
    """Return a description of the failure in a text, or None if the text may be an answer.

    Args:
        text: The answer of the model, without its reasoning.
        query: The user's question. Text that occurs in it is not treated as a failure.

    Example:
        >>> failure_in("502 Bad Gateway"), failure_in("502 Bad Gateway", "What is 502 Bad Gateway?")
        ('the error of a server', None)
    """
    text = text.strip()
    if not text:
        return None
    is_cited = _CITATION.search(text) is not None
    for kind, found in (
        ("a web page", _PAGE.match(text)),
        ("a traceback", _traceback(text[:20_000])),
        ("a URL", _URL.fullmatch(text) or _LINK.fullmatch(text)),
        ("the error of a server", None if is_cited else _error_line(text)),
    ):
        is_asked = found is not None and _is_asked(found, query)
        is_url = kind == "a URL"
        if found is not None and not (is_asked or (repeats(text, query) and not is_url)):
            return kind
    return None


def _traceback(text: str) -> re.Match[str] | None:
    """Return the traceback in a text, or None if there is no traceback or if it is an example.

    In an example, a sentence with a citation or a code fence precedes the traceback.
    """
    found = _TRACE.search(text)
    if found is None:
        return None
    before = text[: found.start()]
    is_in_fence = before.count("```") % 2 == 1 and re.search(r"\w", before.split("```")[0])
    if is_in_fence or _CITATION_WITHIN.search(before):
        return None
    return found


def _error_line(text: str) -> re.Match[str] | None:
    if len(text) > _MAX_ERROR_LENGTH or text.endswith(("?", "？")):
        return None
    found = _ERROR_LINE.match(text)
    if found is not None and _EXPLAINED.match(text, found.end()):
        return None
    return found


# "502 Bad Gateway means that ..." and "The request failed because ..." are statements about errors.
_EXPLAINED = chinese_pattern(
    r"\s(?:on|by|after|from|in\s(?=[A-Z0-9]))\s?\w"
    r"|(?<!:\s)[^\n]{0,60}?\b(?:means?|because|is\ raised|is\ reported"
    r"|are\ (?:logged|caused|answered))\b"
    r"|[^\n]{0,30}?(?:表示|意思|是因为|是指|因此|所以)",
    re.X,
)


_MAX_REPEATED = 200  # maximum number of characters of a text that repeats the user's words

_MIN_REPEATED = 3  # minimum number of repeated words

_CHINESE_RUN = 4  # number of consecutive Chinese characters that count as repeated words


def repeats(text: str, query: str) -> bool:
    """Return whether a short text repeats most words of the user's question.

    Such a text is about the error in the question and not an error message. Words are compared by
    their first four letters, since the user may have misspelled the rest. Chinese texts must share
    four consecutive characters.
    """
    if len(text) > _MAX_REPEATED:
        return False
    asked = {word[:4] for word in re.findall(r"\w{3,}", query.casefold())}
    said = {word[:4] for word in re.findall(r"\w{3,}", text.casefold())}
    for run in re.findall("[\u3400-\u9fff]{4,}", query):
        starts = range(len(run) - _CHINESE_RUN + 1)
        if any(run[at : at + _CHINESE_RUN] in text for at in starts):
            return True
    repeated = len(asked & said)
    return repeated >= _MIN_REPEATED and 2 * repeated > len(asked)


def _is_asked(failure: re.Match[str], query: str) -> bool:
    """Return whether the user's question contains the words of a failure message."""
    quota = failure.groupdict().get("quota")
    if quota and quota in query:
        return True
    words = re.findall(r"\w+", failure[0].casefold())[:6]
    asked = query.casefold()
    return bool(words) and all(word in asked for word in words)


_STATUS_KEYS = frozenset(
    """status status_code statuscode code success ok request_id requestid type path
    timestamp""".split()
)

# The start of "status_msg", "faultString" and "errorCode", which are keys of error messages.
_KEY_PREFIX = re.compile(r"\A[a-z]+_?(?=(?:msg|message|code)\Z)")


def is_error_value(value: Any) -> bool:
    """Return whether a JSON value is the error message of a server.

    Example:
        >>> is_error_value({"error": {"message": "Rate limit reached", "type": "tokens"}})
        True
        >>> is_error_value({"question": "What is an error?"})
        False
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping) or not value:
        return False
    first = next(iter(value.values()))
    if len(value) == 1 and isinstance(first, Mapping) and is_error_value(first):
        return True
    keys = {_KEY_PREFIX.sub("", str(key).casefold()) for key in value}
    if not keys <= _ERROR_KEYS:
        return False
    if any(key.startswith(("error", "fault", "exception", "traceback")) for key in keys):
        return True
    is_told = bool(keys & {"message", "msg", "detail", "details", "reason", "title"})
    if (is_told and keys & _STATUS_KEYS) or keys == {"detail"}:
        return True
    return keys <= {"message", "msg"} and _ERROR_LINE.match(str(first)) is not None
