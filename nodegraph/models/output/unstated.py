"""Recognize answers such as "The passages do not mention it" and "I don't know", in ten languages.

Such a sentence contains a word for the sources, a negation and a word such as "mention". The
grammar of the languages is not needed.
"""

from __future__ import annotations

import re
import unicodedata

from .chinese_script import chinese_pattern
from .refusals import MAX_REFUSAL_LENGTH, SORRY, SORRY_ABROAD, has_contrast, is_supported

# "The text of the treaty" is the subject of a question, and not a source of the answer.
_LATIN_SOURCE = r"""(?:passages?|contexte?s?|textes?|texts?|documents?|sources?|excerpts?|materials?
    |search\ results|information\ (?:provided|given)|(?:provided|given)\ information
    |passagen?|text(?:en?|stellen?)|quellen?|dokumente?n?|abschnitte?n?|kontext|auszüge?n?
    |extraits?|pasajes?|textos?|documentos?|fuentes?|contexto|fragmentos?
    |test[io]|brani|documenti|fonti|contesto|passaggi|trechos?|passagens?|fontes?
    |teksten|tekst|documenten|bronnen|fragmenten
    |(?:текст|источник|документ|отрыв|контекст|материал)\w{0,4})\b
    (?!\ (?:of|des|du|del?|della|van)\b)"""

_ASIAN_SOURCE = r"""资料|資料|文中|原文|段落|材料|上下文|文档|文章|文本|片段
    |(?:检索|搜索)结果|(?:以上|上述|已知|所给|给定的?|提供的|参考)(?:内容|文字|信息)
    |[さら]れた情報|テキスト|文書|文脈|本文|자료|문서|지문|본문|텍스트|문맥"""

# The sources are named at the start of the sentence, or after a word such as "in".
_SOURCE = chinese_pattern(
    rf"""(?:\A[\s*_(（]{{0,4}}(?:(?:none|any|neither)\ of\ )?(?:\w{{1,20}}\ ){{0,3}}
      |\b(?:in|from|by|on|within|according\ to|aus|dans|en|ne[li]|nas?|nos|em|uit|в|из)
       \ (?!any\b|an?\b)(?:\w{{1,20}}\ ){{0,2}})
    {_LATIN_SOURCE}|{_ASIAN_SOURCE}""",
    re.I | re.X,
)

_ASKED_SOURCE = chinese_pattern(rf"\b{_LATIN_SOURCE}|{_ASIAN_SOURCE}", re.I | re.X)

_NEGATION = chinese_pattern(
    r"""\b(?:not?|none|neither|nothing|silent|cannot|lacks?|missing|absent|fails?
    |insufficient|unclear|unknown|nicht|keine?[nrms]?|nichts|ne|aucune?|non|nessuna?
    |não|nenhuma?
    |niet|geen|niets|не|нет)\b|n['’]t\b|\bn['’](?=[aeiouéê])
    |没|沒|未|无|無|不|ません|ない|없|않|못""",
    re.I | re.X,
)

_SAY = chinese_pattern(
    r"""\b(?:contain|mention|provid|includ|stated?s?\b|sa(?:y|id)|specif|gives?\b|given\b|answer|inform
    |discuss|address|help|tells?\b|told\b|cover|determin|evidence|explain|clarif|record|touch
    |(?:un)?known?\b|unclear|data\b|names?\b|named\b|identif|indicat|describ|detail|refer|reveal|silent\b|find\b
    |enth[aä]lt|erwähn|nenn|geben\b|gibt\b|gesagt|(?:be)?antwort|angab|hervor|steht\b
    |contien|fourni|précis|indiqu|répon|disent\b|proporcion|indic|respuesta|mencion|dice
    |conten|menzion|fornisc|rispo|contêm|contém|fornec|respo|diz
    |bevat|vermeld|antwoord|noem|geeft\b
    |содерж|упомин|указ|ответ|информ|говор|сказ|сведен)
    |提到|提及|查不到|找不到|提供|说明|給出|给出|包含|记载|涉及|描述|介绍|回答|答案|信息|内容|写|記載|書|含|答|情報|[わ分]か
    |[未没不]提|看不出|出现|显示|表明|列出|交代|谈|讲|说|述|反映|体现
    |(?:无法|不能|难以|无从)[^。，,\n]{0,12}?(?:判断|确定|推断|看出|知|确认|获取|得出)
    |정보|답|언급|포함|나와|내용|확인|[알찾]\s?을?\s?수""",
    re.I | re.X,
)

# "According to the text, he did not answer" is an answer.
_LEAD = chinese_pattern(
    rf"""[\s*_(（>-]{{0,9}}(?:(?:answer|回答|答案)\s?[:：]\s?)?
    (?:(?:{SORRY}|{SORRY_ABROAD}|(?:很|非常)?(?:抱歉|对不起|遗憾))[,.，。]?\s?
      (?:(?:but|aber|mais|pero|ma|mas|maar|но)\ )?)?
    (?:(?:based\ on|according\ to|given|from|in)
        \ (?:(?!\b(?:not|nicht|no|n[e'])\b)[^.,\n]){{1,60}},\s
      |(?:根据|基于|依据|从)[^，,。\n]{{1,30}}[，,])?""",
    re.I | re.X,
)

_UNKNOWN = chinese_pattern(
    rf"""(?:i\ (?:do\ not|don['’]t)\ know(?:\ the\ answer)?
      (?:\ (?:based\ on|from)\ [^.,\n]{{1,80}})?
    |i(?:['’]m|\ am)\ not\ sure|we(?:\ are|['’]re)\ not\ told\b[^.,;\n]{{0,80}}
    |(?:(?:it|this)\ is\ |it['’]s\ )?
      (?:unknown|unclear|(?:cannot\ be|not)\ (?:mentioned|stated|specified|provided|available|found
        |sure)(?:\ anywhere)?(?:\ ?in\ (?:\w{{1,12}}\ ){{0,2}}{_LATIN_SOURCE})?)
    |unanswerable|i\ (?:found|see)\ no(?:thing|\ (?:mention|information|answer))\b[^.,;\n]{{0,80}}
    |(?:there(?:\ is|\ are|['’]s)\ ?)?(?:no|not\ enough|n['’]t\ (?:enough|any)|insufficient)
      \ (?:relevant\ |sufficient\ |such\ )?(?:information|details|evidence|data|context
        |answer\ found\b)
      (?:\ to\ (?:answer|determine|say|tell|know)\b[^.,;\n]{{0,120}}
        |(?:\ is)?\ (?:available|provided|given|found)|\ (?:about|on|regarding)\ [^.,;\n]{{1,80}})?
    |it\ is\ (?:not\ possible|impossible)\ to\ (?:determine|tell|say|know|answer)\b[^.,;\n]{{0,120}}
    |it\ is\ (?:unclear|unknown|not\ clear)\ (?:from|based\ on)\ [^.,;\n]{{0,120}}
    |(?:(?:this|that|it|the\ (?:question|answer))\ (?:cannot|can['’]t|could\ not|couldn['’]t)\ be
        |i\ ?(?:cannot|can['’]t|could\ not|couldn['’]t|am\ unable\ to|['’]m\ unable\ to))
      \ (?:be\ )?(?:determin|found|answer|establish|confirm|locate)\w*\b[^.,;\n]{{0,80}}
    |[^.,;\n]{{0,40}}\b(?:cannot|can['’]t|could\ not|couldn['’]t|unable\ to)\ (?:be\ )?
      (?:determin|find|found|answer)\w*\b[^.,;\n]{{0,80}}
      \b(?:from|in)\ (?:\w{{1,12}}\ ){{1,2}}{_LATIN_SOURCE}
    |n/a
    |(?:das\ )?(?:ich\ weiß|weiß\ ich)(?:\ es|\ das)?\ nicht
    |je\ ne\ (?:le\ )?sais\ pas|no\ (?:lo\ )?sé|non\ (?:lo\ )?so|(?:eu\ )?não\ sei
    |(?:ik\ weet|weet\ ik)(?:\ het|\ dat)?\ niet
    |я\ (?:этого\ )?не\ знаю
    |我?(?:不知道|不清楚|不确定)(?:具体[^。，,\n]{{0,12}})?|未知
    |[^。，,\n]{{0,12}}(?:未能?|没有|无法)(?:提到|提及|说明|给出|找到)
    |(?:无法|不能|无从)(?:根据[^。，,\n]{{1,16}})?(?:确定|判断|得知)(?:答案|是?[谁哪何][^。，,\n]{{0,20}})?|没有(?:找到)?答案
    |(?:未|没有|没)(?:能?找到|查到|检索到)(?:任何)?(?:相关|有关|关于)[^。，,\n]{{0,20}}?(?:信息|内容|资料)
    |(?:没有|缺[乏少]|暂?无)(?:足够|充分|相关)的?(?:信息|内容|资料)(?:[来以可]{{0,2}}(?:回答|确定|判断)[^。，,\n]{{0,12}})?
    |(?:答えは)?[わ分]かりません|(?:잘\ )?모르겠습니다)[\s.。！!*_)）]{{0,9}}\Z""",
    re.I | re.X,
)

# The rest of a sentence that begins with "Based on the passages, ".
_UNKNOWN_THEREIN = chinese_pattern(
    r"""[^.;\n]{0,120}\b(?:is|are|was|were)(?:\ not|n['’]t)\ (?:\w{1,12}ly\ )?
      (?:mention|state|specifi|provide|includ|given?|indicat|describ|reveal|record|know|available|explain|clear)\w*\W{0,3}\Z
    |(?:it|this)\ is\ (?:unclear|unknown|not\ (?:clear|known|possible\ to|stated
      |mentioned|specified))
    |(?:it|this)\ cannot\ be\ (?:determin|said|answer|found)
    |there\ (?:is|are)\ (?:no|not\ enough|insufficient)\ (?:information|mention|answer
      |indication|detail)
    |(?:没有|并?未|无法|不能)(?:明确|直接)?(?:提到|提及|说明|给出|确定|判断|得知|找到|回答)""",
    re.I | re.X,
)

# Matches "Her burial place is not mentioned."
_NOT_MENTIONED = re.compile(
    r"\b(?:is|are|was|were)(?:\ not|n['’]t)\ (?:mentioned|stated|specified|provided)\W{0,3}\Z",
    re.I | re.X,
)

# Numbers directly after the word for a passage do not support a statement: "passages [1] and [2]".
_NUMBERED_SOURCE = chinese_pattern(
    rf"((?:{_LATIN_SOURCE}|{_ASIAN_SOURCE})\s?)"
    r"(?:[\[【]\d{1,3}[\]】](?:\s?(?:,|、|and|or|和|及)\s?(?=[\[【]))?){1,9}",
    re.I | re.X,
)

# The second sentence belongs to the first if it is about the same sources: "Neither mentions it."
_FIRST_SENTENCE = re.compile(
    r"[^\n。！]*?(?:[。！\n]|[.!](?=\s|\Z)|\Z)(?:\s{0,4}(?:neither|none|they)\b[^\n]{0,200})?", re.I
)


def is_unstated(text: str, query: str = "") -> bool:
    """Return whether a short text states that the answer is unknown or missing in the sources.

    A text counts as an answer if it contains a citation or a quotation, or goes on to answer the
    question. It also counts as an answer if the user asks about the contents of a source.

    Args:
        text: The answer of the model, without its reasoning.
        query: The user's question.

    Example:
        >>> is_unstated("The passages do not mention it."), is_unstated("资料中没有提到。")
        (True, True)
        >>> is_unstated("There is no fee."), is_unstated("The document is not valid.")
        (False, False)
    """
    text = unicodedata.normalize("NFC", text.strip())
    text = _NUMBERED_SOURCE.sub(r"\1", text)
    if len(text) > MAX_REFUSAL_LENGTH or is_supported(text):
        return False
    lead = _LEAD.match(text)
    start = lead.end() if lead is not None else 0
    if _UNKNOWN.match(text, start):
        return True
    is_therein = _ASKED_SOURCE.search(text, 0, start) is not None
    if is_therein and _UNKNOWN_THEREIN.match(text, start) and not has_contrast(text, start):
        return True
    sentence = _FIRST_SENTENCE.match(text, start)
    if sentence is None:
        return False
    rest = text[sentence.end() :].strip()
    if rest and _UNKNOWN.match(sentence[0]):
        return is_unstated(rest, query)
    if _NOT_MENTIONED.search(sentence[0]) and not _asks_about_source(query, sentence[0]):
        return True
    words = [pattern.search(sentence[0]) for pattern in (_SOURCE, _NEGATION, _SAY)]
    if None in words or has_contrast(text, start):
        return False
    return not _asks_about_source(query, sentence[0])


def _asks_about_source(query: str, sentence: str) -> bool:
    """Return whether a question is about the contents of a source, as in "Does he mention it?"."""
    if _ASKED_SOURCE.search(query) is not None:
        return True
    said = {word.casefold() for word in _SAY.findall(sentence) if len(word) > 1}
    asked = {word for word in said if word in query.casefold()}
    if asked and _ASKS_EXISTENCE.search(query):
        return True
    return len(asked) > 1 or not asked <= _NOUNS


# The answer to such a question may be that something does not exist.
_ASKS_EXISTENCE = chinese_pattern(
    r"\A\W*(?:is|are|was|were)\ there\b|\b(?:missing|lack\w*|absent)\b"
    r"|有没有|是否有|有[^？?]{1,8}吗",
    re.I | re.X,
)


# Words that a question may contain alone although it is not about a source: "What is the name of
# the ship?" In contrast, "What data does the app record?" has two words of the answer.
_NOUNS = frozenset(
    ("name", "names", "data", "inform", "detail", "record", "evidence", "答案", "信息", "内容")
)
