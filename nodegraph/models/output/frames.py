"""Remove text around a query, such as function calls, commands, comments and repetitions."""

from __future__ import annotations

import re

from .announcements import without_announcement
from .answer_text import normalize
from .chinese_script import chinese_pattern
from .lines import unwrap
from .own_signs import without_own_signs

_MAX_FRAMES = 6

_OPEN_QUOTE = r"\\?[\"'“「`]"

_SHUT_QUOTE = r"\\?[\"'”」`]"

_ESCAPED = re.compile(r'\A\\"([^"\\]+)\\"\Z')

# Matches 'tool_call: search("...")', 'return "..."', 'text = "..."' and 'console.log("...");'.
_STATEMENT = re.compile(
    rf"""(?:[\w ]{{1,20}}[:：]\s?)?
    (?:(?:return|echo|print|puts|yield)\s|[\w.-]{{1,40}}\s?(?::=|=>|=|[(（\[])\s?)
    (?:[\w-]{{1,20}}\s?[=:：]\s?)?{_OPEN_QUOTE}(?P<text>[^"“”「」`]{{2,400}}){_SHUT_QUOTE}
    \s?[)）\]]{{0,2}}\s?[;；]?""",
    re.I | re.X,
)

# Matches "Action: Search[...]" and "搜索（...）".
_SEARCH_CALL = chinese_pattern(
    r"(?:[\w ]{1,20}[:：]\s?)?(?:web_?)?(?:search|query|retrieve|lookup|搜索|检索|查询)"
    r"\s?(?:\[(?P<square>[^\[\]]{2,400})\]|[(（](?P<round>[^()（）]{2,400}[?？])[)）])[;；]?",
    re.I,
)

_COMMAND = chinese_pattern(
    r"[/!@](?:web_?)?(?:search|query|ask|find|搜索|检索|查询)\s{1,4}(?=\S)", re.I
)

# Matches "[Search] ", "（问题）" and "(Query) ".
_BRACKETED = chinese_pattern(
    r"[\[【(（](?:(?:rewritten|search|new|final)\s)?(?:query|question|search|rewrite|rewritten"
    r"|检索词?|搜索|查询|问题|改写)[\]】)）]\s{0,4}(?=\S)",
    re.I,
)

# A pictogram or an arrow before a question.
_PICTOGRAM = re.compile(
    "(?:\\.{3}|…{1,2})\\s{0,4}(?=\\w)|[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]{1,3}\ufe0f?"
    r"\s{1,4}(?=\S)"
)

# Matches "Option 1: ", "After: " and "改写后的问题为".
_LEAD = chinese_pattern(
    r"(?:(?:option|choice|方案|选项|版本)\s?#?(?:\d{1,2}|[a-c]|[一二三四五])\s?[:：.、]|after:"
    r"|did\syou\smean\s(?=(?-i:[A-Z])|[\u3400-\u9fff])|(?:[您你]是?)?想问[:：]?(?=.*[？?])"
    r"|(?:改写|优化|修改)后的?(?:问题|查询|检索词)?(?:[为是]|如下|[:：]))\s{0,4}(?=\S)",
    re.I,
)

# Matches comments after a question: "// without the greeting", "| Reason: a typing error".
_COMMENT = re.compile(r"(?<=[?？])[\"”'’]?\s{1,4}(?://|\#|\||--|<!--|←)\s?[^?？\n]{1,200}\Z")

# An arrow or words between the user's question and the rewritten query.
_NEW_QUERY = chinese_pattern(
    r"\s?(?:[-=]?>|→|⇒|➡|\bbecomes\b|\bis\srewritten\sas\b|(?:可以)?改[写为成]{1,3})"
    r"\s?[:：]?\s?(?=\S)",
    re.I,
)

_MAX_OLD_QUERY = 500  # maximum number of characters

_PLEASANTRY = chinese_pattern(
    r"""(?:(?:hello|hi|hey)(?:\sthere)?[!.]\s{1,4}
    |(?:sure|certainly|of\scourse|no\sproblem|absolutely|great)[!.]\s{1,4}
    |i(?:['’]d|['’]m|\swould|\sam)\s(?:be\s)?(?:happy|glad|pleased)\sto\s(?:help|assist)
      [^.!?\n]{0,40}[.!]\s{1,4}
    |(?:您好|你好|好的|当然|没问题)[！!。]\s{0,4}
    |[^。！？\n]{0,4}很高兴[^。！？\n]{0,12}[。！]\s{0,4})(?=\S)""",
    re.I | re.X,
)

_FIRST_QUESTION = re.compile("[^?？]+[?？]")

# Matches "=== Who wrote it? ===".
_RULED = re.compile(r"([=|\"'`~^]{1,4})\s?([^=|~^`?？]+[?？])\s?[=|\"'`~^]{1,4}")

_MIN_TWICE = 3  # minimum number of words; a shorter repeated text may be a name


def is_asked(text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return text.rstrip("\"'”’」*_ ").endswith(("?", "？"))


def same(text: str) -> str:
    """Remove spaces and punctuation from a text, so that texts can be compared without them."""
    return " ".join(re.findall(r"[\w+#]+", normalize(without_own_signs(text))))


def without_frames(text: str, query: str = "") -> str:
    """Remove a function call, command, comment or old query from the text around a query.

    Args:
        text: The text of one item in the answer.
        query: The user's question.

    Example:
        >>> without_frames('tool_call: search("How long is the Nile?")')
        'How long is the Nile?'
        >>> without_frames("its lenght -> How long is the Nile?", "its lenght")
        'How long is the Nile?'
        >>> without_frames("New York New York")
        'New York New York'
    """
    for _ in range(_MAX_FRAMES):
        inner = _without_frame(text.strip(), query)
        if inner == text:
            break
        text = inner
    return text


def _without_frame(text: str, query: str) -> str:
    """Remove the outermost frame, such as a function call, from a text."""
    text = _ESCAPED.sub(r"\1", text)
    ruled = _RULED.fullmatch(text)
    if ruled is not None:
        return ruled[2].strip()
    text = _called(text)
    text = _without_old_query(text, query)
    text = _COMMENT.sub("", text)
    text = _once(text, query)
    text = unwrap(text)
    if is_asked(text):
        return without_announcement(_before_question(text), query)
    return text


def _called(text: str) -> str:
    """Return the argument of a function call or statement, unless it is too short."""
    found = _STATEMENT.fullmatch(text)
    inner = found["text"].rstrip("\\") if found is not None else ""
    if is_asked(inner) or _word_count(inner) >= _MIN_TWICE:
        return inner
    search = _SEARCH_CALL.fullmatch(text)
    if search is None:
        return text
    return search["square"] or search["round"]


def _without_old_query(text: str, query: str) -> str:
    """Remove the user's question and an arrow before the rewritten query."""
    for sign in _NEW_QUERY.finditer(text[:_MAX_OLD_QUERY]):
        if same(text[: sign.start()]) == same(query):
            return text[sign.end() :]
    return text


def _before_question(text: str) -> str:
    """Remove a polite phrase, a pictogram or a label in brackets before a question."""
    for pattern in (_COMMAND, _PLEASANTRY, _PICTOGRAM, _BRACKETED, _LEAD):
        found = pattern.match(text)
        if found is not None:
            text = text[found.end() :]
    return text


def _once(text: str, query: str) -> str:
    """Remove the second copy of a text that is repeated.

    A repetition is kept if the text is a name or consists of words from the question.
    """
    question = _FIRST_QUESTION.match(text)
    if question is not None and text.count(question[0]) > 1:
        rest = text.replace(question[0], "")
        if re.search(r"\w", rest) is None:
            return question[0]
        return text
    half = (len(text) + 1) // 2
    first = text[:half].strip()
    is_twice = first == text[half:].strip() and _word_count(first) > _MIN_TWICE
    is_own = text.casefold() in query.casefold()
    if is_twice and not is_own:
        return first
    return text


def _word_count(text: str) -> int:
    """Return the number of words in a text. Two Chinese characters count as one word."""
    chinese = len(re.findall("[\u3040-\u9fff]", text))
    return len(re.findall(r"[^\W\d_\u3040-\u9fff]+", text)) + chinese // 2
