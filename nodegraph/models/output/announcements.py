"""Remove an announcement from the start of a text, such as "Here is the rewritten query: ..."."""

from __future__ import annotations

import re

from .chinese_script import chinese_pattern
from .lines import unwrap, without_label

# Words that are used in sentences about a query. A sentence that contains no other words has no
# topic to search for.
_ABOUT_QUERIES = frozenset(
    """query queries question questions sub-question sub-questions subquestion subquestions search
    searching searched searches ask asking asks asked rewrite rewritten rewriting rewrote rephrase
    rephrased rephrasing reformulate reformulated reformulation reword reworded rewording
    paraphrase paraphrased restate restated refine refined improved version better clearer
    corrected correction try trying mean means know knows find wonder wonders wondering
    google response output result reply answer follow-up followup follow decompose decomposed break
    breaking split simpler standalone phrasing phrasings phrased phrase alternative alternatives
    variant variants look""".split()
)

_OTHER_WORDS = frozenset(
    """a an the this that it its these those here here's there i we you he she they let let's me us
    my our your user user's i'd i'll i'm we'll we'd is are was be been being would could should
    can may might must will shall do does did to for of on in into as by with from and or so now
    then first second next step thus therefore based given according request required need needs
    needed context conversation history information above below following follows follow up like
    how best one two three some more also just please sure certainly course okay ok great good
    absolutely want wants wanted think believe going likely probably using use used web engine
    original suited suitable optimized retrieval natural language english clean clear concise
    already here's no changes change needed necessary yes done got go
    well formed get has have looking seems appears intended intent input corpus documents
    database possible final new single complete full separate parts part different ways way down
    out term terms key keyword keywords""".split()
)

# Words of a sentence that is completed by the query.
_VERBS = frozenset(
    """is are be as for means mean asking ask asks know wants would could should try rephrase
    rewrite reformulate find""".split()
)

# Words before a colon which only announce that a query follows.
_ASSENTS = frozenset(
    """sure okay ok yes certainly absolutely done here here's you go it is this the no changes
    change needed necessary already clear and also finally then next""".split()
)

_CHINESE_ASSENT = chinese_pattern(
    r"(?:(?:好的?|当然|可以|没问题|给[您你]|还有|另外|以下|如下|无需(?:改写|修改)|不(?:需要?|用|必)(?:改写|修改)"
    r"|(?:原|这个|该)?问题(?:已经?)?很?清[楚晰])[，,]?){1,3}"
)

_CHINESE_WORDS = chinese_pattern(
    r"[好的当然可以我们您你用户根据要求想问题改写后为是成如下结果句子词语更清楚晰优化修重表述达搜索查询检原新独立完整一个步应该会"
    r"需知道这样以及上述内容对话信息现在先再接着最了解答案回拆分几两三简单将把变换法，,给出无需修已经很楚还有就用不必须]{2,30}"
)

_CHINESE_VERB = chinese_pattern(
    r"改写|搜索|查询|检索|知道|分解|拆分|表述|优化|修改|想问|问题|该问|样问|先问|再问|答案|回答|重写"
)

# Matches "Based on this, the next question should be: " and "I would rewrite it as ".
_SENTENCE = re.compile(
    r"""(?:[^:：?？\n"“”「」*]{0,300}[.!]\s)?(?:
    (?:[\w,'’-]{1,20}\s){0,12}(?:questions?|query)\s(?:is|are|(?:should|would|could|might|can)\sbe)
    (?:\s(?:re)?(?:phrased|written|stated))?(?:\sas(?:\sfollows)?)?
    |(?:i|you|we)(?:\s(?:would|could|should|can|might|may)|['’]d)\s(?:also\s)?(?:ask|search(?:\sfor)?
      |(?:re)?(?:write|phrase|formulate|state)(?:\s(?:it|this|that|the\s(?:question|query)))?\sas)
    |did\syou\smean)
    (?:\s?[:：]\s?|\s(?=["“「『'`*]))
    |(?:new|next|rewritten|improved|final|standalone)\s(?:query|question)(?:\s[-–—]\s|[:：])""",
    re.I | re.X,
)

_LEAD = re.compile(
    r"""[*_]{0,3}(?P<lead>[^:：?？"“”「」『』`*\n]{1,240}?)[*_]{0,3}
    (?:\s?[:：][*_]{0,3}\s{0,9}|(?:,?\s{1,2}|(?<=[\u3400-\u9fff]))(?=["“「『`*]))""",
    re.X,
)

# Matches "We should first ask Who wrote it?".
_INDIRECT = re.compile(
    r"(?P<lead>[^:：?？\"“”\n]{1,100}?\b(?:ask|asking|know|find out|question|query))\s"
    r"(?=(?:Who|What|When|Where|Which|Why|How)\b|[\u3400-\u9fff])"
)

_IS_ASKED = re.compile(r"[?？][\"'”’」』*_`)）\]]{0,3}\.?\Z")

_QUOTED = re.compile(r"[\"“「『`]")


def without_announcement(text: str, query: str = "") -> str:
    """Remove a label or an announcement from the start of a text.

    Args:
        text: A text from the model's answer.
        query: The user's question. Words that occur in it are not removed.

    Example:
        >>> without_announcement("I know this. The next question should be: Who wrote it?")
        'Who wrote it?'
        >>> without_announcement('I would ask "Who wrote it?"')
        'Who wrote it?'
        >>> without_announcement("Tea: who drinks it?")
        'Tea: who drinks it?'
    """
    found = _SENTENCE.match(text)
    if found is None:
        return _without_lead(text, query)
    rest = text[found.end() :].strip()
    is_whole = re.search(r"[:：–—-]\s?\Z", found[0]) is not None
    bare = rest.rstrip(".。?？")
    if unwrap(bare) != bare:
        return unwrap(bare)
    if is_whole:
        return rest
    return text


def _without_lead(text: str, query: str) -> str:
    """Remove a label or an announcement before a colon or a quotation."""
    for pattern in (_LEAD, _INDIRECT):
        found = pattern.match(text)
        if found is not None and _announces(found["lead"], text[found.end() :], query):
            return text[found.end() :].strip()
    return without_label(text)


def _announces(lead: str, rest: str, query: str) -> bool:
    """Return whether the words before a text only announce that a query follows."""
    sentence = re.split(r"(?<=[.!。！])\s{0,9}", lead.strip())[-1]
    is_asked = _IS_ASKED.search(rest.strip()) is not None
    is_own = sentence.casefold() in query.casefold()
    if is_own or not rest.strip():
        return False
    if is_asked and _CHINESE_ASSENT.fullmatch(sentence):
        return True
    if _CHINESE_WORDS.fullmatch(sentence):
        is_verb = _CHINESE_VERB.search(sentence) is not None
        is_quoted = re.fullmatch(r"[“「\"][^“”「」\"]+[”」\"][。.]?", rest.strip()) is not None
        is_about = is_asked or is_quoted or sentence.endswith(("是", "为", "：", "下", "后"))
        return is_verb and is_about
    words = re.findall(r"[a-z][a-z'’-]*", sentence.casefold().replace("’", "'"))
    if not words or re.search(r"\d|[^\W\da-z'’-]", sentence.casefold()):
        return False
    if not all(word in _ABOUT_QUERIES or word in _OTHER_WORDS for word in words):
        return False
    if is_asked and _ASSENTS.issuperset(words):
        return True
    if not any(word in _ABOUT_QUERIES for word in words):
        return False
    is_sentence = len(words) > 1 and not _VERBS.isdisjoint(words)
    return is_asked or is_sentence
