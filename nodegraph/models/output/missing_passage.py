"""Recognize answers in which a model states that it did not receive the passage."""

from __future__ import annotations

import re

from .chinese_script import chinese_pattern

_MAX_LENGTH = 400  # maximum number of characters

_PASSAGE = (
    r"(?:passages?|texts?|contents?|documents?|articles?|paragraphs?|excerpts?|materials?|input"
    r"|snippets?|message)"
)

_SOME = r"(?:(?:me|us)\ (?:with\ )?)?(?:the|a|an|any|some|your|that|this)\ (?:[\w-]{1,15}\ ){0,3}?"

_ABSENT = (
    r"(?:missing|empty|blank|incomplete|cut\ off|left\ out|unavailable"
    r"|not\ (?:there|included|provided|attached|present|given))"
)

# The end of a statement about the conversation. "No text was given to the press" is a summary.
_END = (
    r"(?=\W{0,3}\Z|[,;]\ (?:so|and\ i|but\ i|please|i|could|therefore|thus)\b"
    r"|\ (?:here|above|below|yet)\b|\ (?:from|in|with|within)\ (?:your|the|this)"
    r"\ (?:\w{1,12}\ )?(?:message|request|prompt|input|question|query|chat|conversation)\b"
    r"|\ (?:for\ me|to\ (?:me|summari[sz]e|extract|work))\b)"
)

# "I need the documents, the spy says" is a summary.
_NO_SPEECH = r"(?!,\ (?:the|an?|he|she|says?|said)\b)"

# Matches sentences such as "Please paste the text." and "I don't see any passage in your message."
_ENGLISH = re.compile(
    rf"""(?:(?:so|then|but|and|sure|of\ course|certainly|once\ you|if\ you)[,!]?\ )?(?:
    (?:(?:could|can|would|will)\ you\ )?(?:please\ |kindly\ )?
      (?:provide|share|paste|send|include|supply|enter|insert|attach|upload|give|resend|submit|add)
      \ {_SOME}{_PASSAGE}(?:\ {_PASSAGE})?
      (?=\W{{0,3}}\Z|[.!?,;:]|\ (?:you|that|here|so|again|for|in|from|below|first|and\ i|and\ then
        |to\ (?:be\ )?(?:summari|extract|work|analy)\w*)\b)
    |{_SOME}{_PASSAGE}(?:\ (?:you\ \w{{1,12}}|(?:in|from)\ your\ \w{{1,12}}|above|below))?
      \ (?:(?:seems?|appears?)(?:\ to\ (?:be|have\ been))?|is|was|may\ be)\ {_ABSENT}
      {_END}
    |{_SOME}{_PASSAGE}\ (?:did(?:n['’]t|\ not)\ come\ through
      |(?:was|has|have)(?:n['’]t|\ not)\ (?:been\ )?(?:provided|included|attached|given|supplied))
      {_END}
    |(?:there\ (?:is|was|seems\ to\ be|appears\ to\ be)\ )?no\ (?:[\w-]{{1,15}}\ )?{_PASSAGE}
      \ (?:(?:was|is|were|has\ been)\ )?
      (?:provided|included|given|attached|supplied|specified|entered
        |to\ (?:summari[sz]e|extract|work)|(?=in\ (?:your|the)\ )){_END}
    |there\ (?:is|was)(?:n['’]t|\ not)\ (?:any|a)\ {_PASSAGE}{_END}
    |there\ is\ nothing\ to\ (?:summari[sz]e|extract)
    |i\ (?:can['’]?t|cannot|could\ not)\ (?:summari[sz]e|extract|create|generate|write|produce)
      \ (?:\w{{1,15}}\ ){{0,4}}without\b
    |(?:it\ (?:looks|seems|appears)\ (?:(?:like|that|as\ (?:if|though))\ )?)?
      (?:you|your\ \w{{1,12}})
      \ (?:(?:have|did|do(?:es)?)(?:n['’]t|\ not)|forgot\ to|may\ have\ forgotten\ to)
      \ (?:\w{{1,12}}\ )?
      (?:provided?|included?|shared?|pasted?|attach(?:ed)?|give|given|contain|have)
      (?=[^.\n]{{0,40}}\b(?:{_PASSAGE}|anything)\b|\W{{0,3}}\Z)
    |it\ (?:looks|seems|appears)\ (?:like|that|as\ (?:if|though))\ (?:{_SOME}|no\ ){_PASSAGE}
      \ [^.\n]{{0,30}}(?:\b{_ABSENT}\b
        |(?:\bnot|n['’]t)\ (?:been\ )?(?:here|there|included|provided|attached|present|given|shared
          |pasted|uploaded|come|available|visible)\b
        |\b(?:included|provided|attached|shared|pasted|uploaded)(?=\W{{0,3}}\Z))
    |i\ (?:(?:do|did|can|could)(?:n['’]t|\ not)|can['’]?t|cannot)\ (?:\w{{1,12}}\ )?
      (?:see|find|have|receive|get)\ (?:any|a|the|your)\ (?:[\w-]{{1,15}}\ )?
      {_PASSAGE}\b{_NO_SPEECH}
    |i(?:['’]ll|\ will|\ would|['’]d)?\ need\ {_SOME}{_PASSAGE}\b{_NO_SPEECH}
    |without\ {_SOME}{_PASSAGE}\b[^.,\n]{{0,20}}\Z)""",
    re.I | re.X,
)

_CHINESE_PASSAGE = "(?:文段|段落|文本|文字|文章|内容|原文|正文|材料|资料|文档)"

_CHINESE = chinese_pattern(
    rf"""(?:那么|因此|所以|如果|由于|因为|麻烦|不过|但是?|如需[^。，,]{{0,12}}[，,])?(?:
    请[您你]?(?:先|再|重新|直接|在[^。]{{0,8}})?(?:提供|输入|粘贴|贴上|发(?:送|给我)|给出|上传
      |补充|附上|复制|分享)[^。！？\n]{{0,20}}{_CHINESE_PASSAGE}(?!的)
    |[您你](?:能否?|可以|可否)(?:先|再|重新)?(?:提供|给我|发[送给])[^。！？\n]{{0,20}}{_CHINESE_PASSAGE}(?!的)
    |请?[您你]?[把将][^。！？\n]{{0,16}}{_CHINESE_PASSAGE}[^。！？\n]{{0,8}}(?:[发贴]|提供|给我)
    |[您你][^。，,\n]{{0,4}}(?:提供|发送?|输入|贴)[^。，,\n]{{0,4}}{_CHINESE_PASSAGE}(?:似乎|好像|看起来)?
      [是为]?(?:空|缺失|不完整)
    |{_CHINESE_PASSAGE}(?:部分)?(?:似乎|好像|看起来)?[是为]?(?:空的?|空白的?|缺失)(?=[。！\s]|\Z|[，,](?:[请您你我]|因此|所以|无))
    |(?:[您你]们?|我(?!们)|消息中|这里|目前|似乎|好像|看起来){{0,3}}(?:似乎|好像|可能|[还尚并])?(?:没有?|未|忘了|忘记)
      (?:能)?(?:提供|给出|附上|粘贴|输入|上传|看到|收到|发[现送]|找到|检测到)
      [^。！？\n]{{0,20}}{_CHINESE_PASSAGE}(?!的))""",
    re.X,
)

# An apology or a greeting before the sentence.
_BEFORE = chinese_pattern(
    r"(?:[\s*_]{0,9}(?:(?:i['’]m|i\ am)\ (?:very\ |so\ )?sorry|sorry|(?:my\ )?apologies"
    r"|i\ apologi[sz]e|unfortunately|hello|hi|sure|of\ course|certainly|however|thanks?"
    r"|thank\ you|it\ seems|很?抱歉|对不起|不好意思|[您你]好|好的|当然(?:可以)?|没问题)"
    r"(?:[,.!:;，。！：；]|\ (?=but))\s{0,4}(?:but\ |但是?|不过)?)+",
    re.I | re.X,
)

_SENTENCE = chinese_pattern(
    r"(?<=[.!?。！？\n])\s{0,9}|(?<=[，,])\s{0,2}(?=请|因此|所以|我|您)|,\s(?=but\s|so\s|I\s)"
)


def is_passage_missing(text: str) -> bool:
    """Return whether a short text states that the passage is missing, or requests the passage.

    Example:
        >>> is_passage_missing("Sorry, I don't see any passage. Please paste the text.")
        True
        >>> is_passage_missing("The text describes a missing ship.")
        False
    """
    if len(text) > _MAX_LENGTH:
        return False
    for sentence in _SENTENCE.split(text):
        start = _BEFORE.match(sentence)
        at = start.end() if start is not None else 0
        for pattern in (_ENGLISH, _CHINESE):
            if pattern.match(sentence, at):
                return True
    return False


def check_passage_given(text: str) -> None:
    """Check that a model received the passage.

    Raises:
        ValueError: If the text states that the passage is missing.
    """
    if is_passage_missing(text):
        raise ValueError("the answer states that the passage is missing")
