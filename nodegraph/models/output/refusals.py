"""Recognize responses in which a model refuses to answer, in twelve languages."""

from __future__ import annotations

import re
import unicodedata

from .chinese_script import chinese_pattern

MAX_REFUSAL_LENGTH = 300
"""The maximum length of a refusal in characters.

Longer texts that begin like a refusal are treated as answers.
"""

SORRY = r"""(?:(?:i['’]m|i\ am|we['’]re|we\ are)\ (?:(?:very|so|really|truly|deeply)\ )?(?:sorry
  |afraid)
  |(?:so\ |very\ )?sorry|(?:my\ )?(?:sincere\ )?apologies|(?:i|we)\ (?:do\ )?apologi[sz]e
    |unfortunately|regrettably)"""

_CANNOT = r"""(?:(?:can['’]?t|can\ ?not|could(?:n['’]t|\ not)|won['’]t|will\ not|do(?:n['’]t|\ not)
    |must\ decline|have\ to\ decline)
  |did(?:n['’]t|\ not)(?=\ (?:\w+\ )?(?:understand|catch|find|get))
  |(?:['’]m|\ ?am|['’]re|\ ?are)\ (?:(?:currently|sorry,?\ but)\ )?(?:not\ (?:able|allowed
    |permitted|capable)|unable))"""

# "As a language model, GPT-2 was not ..." is a statement about a model, not a refusal.
_OTHER_SUBJECT = r"[^.,\n]{0,40},\ (?-i:(?!I\b|My\b|It\b|This\b|That\b|There\b)[A-Z])"

# The end of a sentence that does not go on with "is", as in "I decline to answer was his reply".
_FEW_WORDS = r"(?:(?!\b(?:is|was|were)\b)[^.,\n]){0,40}"

_ENGLISH = rf"""
    (?:{SORRY}\ ?[,.:;!—–-]{{0,2}}\ {{0,2}}(?:but\ )?(?:that\ )?(?:we\ ?(?={_CANNOT}))?)?
    (?:as\ an?\ (?:[\w-]{{1,15}}\ )?(?:ai|artificial|large|language)\b[^.\n]{{0,60}}?,?\ )?
    (?:i\ ?|(?<=we)\ ?|(?<=we\ )){_CANNOT}\ (?:to\ |of\ )?
      (?:be\ able\ to\ )?(?:currently\ |directly\ |really\ )?
    (?:help(?:ing)?(?:\ (?:you|with|in|that|this|to)\b|\s{{0,4}}(?:[.,!]|\Z))
      |(?:assist|answer|compl(?:y|ete)|fulfil|respond|provid|generat|creat|rewrit|rephras|process
        |access|brows
        |discuss|engag|perform|produc|writ|translat|summari|offer|support|accommodat|reply
          |continue|participat
        |feel\ comfortable\ (?:\w+ing\b|with)
        |have\ (?:enough|any|the|access|sufficient|information|personal)|talk\ about
        |determine\ the\ answer|find\ (?:any|the|an?)\ (?:answer|information
          |relevant))
        |do\ (?:that|this|it)\b)
    |as\ an?\ (?:ai(?!\ (?:company|engineer|researcher|lab)\b)
      |artificial\ intelligence|large\ language
      |language\ model)\b(?!{_OTHER_SUBJECT})[^.\n]{{0,80}}(?:\bnot|n['’]t|\bunable)\b
    |{SORRY}\ ?[,.:;!—–-]{{0,2}}\ {{0,2}}(?:but\ )?(?:i|we)\ ?{_CANNOT}
      \ (?:be\ able\ to\ |\w{{1,9}}\ )?(?:know|understand|catch|get|find|see|locate|determine
        |have|identify|retrieve)\b
    |{SORRY}\ ?[,.:;!—–-]{{0,2}}\ {{0,2}}(?:but\ )?(?:i|we)\ ?(?:can['’]?t|cannot|can\ not
      |won['’]t)
      \s{{0,4}}(?:do\ (?:that|this|it)\s{{0,4}})?(?:[.!]|\Z)
    |{SORRY}\s{{0,4}}[.!]?\s{{0,4}}\Z
    |{SORRY}[^.\n]{{0,20}}\ (?:beyond|outside)\ (?:of\ )?my\b
    |(?:could\ you\ )?please\ (?:provide|share|enter|specify|clarify|paste)\b[^.?\n]{{0,40}}
      \b(?:question|query|context|passages?)(?:\ (?:you|that|so|to|for)\b[^.\n]{{0,80}})?\W{{0,3}}\Z
    |(?:this|that)\ (?:is\ not|isn['’]t)\ something\ (?:that\ )?(?:i|we)\ can
      \ (?:help|assist|do|answer|discuss|provide)(?:\ with)?(?:\ you\ with|\ that)?[.!]?\Z
    |{SORRY}\ ?[,.:;!—–-]{{0,2}}\ {{0,2}}(?:but\ )?(?:there\ (?:is|are|was)\ no
      \ (?:passage|text|content|context|input|document)s?
        (?:[.,!]|\ (?:in\ (?:your|the)|provided|given|attached|included|for\ me|available)\b)
      |(?:the|your)\ (?:passage|text|question|context|message|input|query)
        \ (?:seems?|appears?|is|was|did)\b[^.\n]{{0,30}}\b(?:missing|empty|blank|unclear|vague
        |ambiguous|incomplete|cut\ off|provided|included|attached|come\ through)\b)
    |(?:my|our)\ (?:guidelines|polic(?:y|ies)|instructions|programming)
      \ (?:prevents?\ me|prohibits?|(?:do\ not|don['’]t)\ (?:allow|permit))\b
    |(?:i|we)\ have\ no\ (?:information|knowledge|data)\ (?:about|on|regarding)\b
      [^.,;\n]{{0,80}}[.!]?\Z
    |(?:i|we)\ (?:must|have\ to|will\ have\ to)\ (?:\w{{1,15}}ly\ )?decline\b(?!\ (?:is|was|were)\b)
    |(?:i|we)\ (?:\w{{1,15}}ly\ )?decline\ to\ (?:answer|respond|reply|comment|comply|help|assist
      |discuss|provide)\b{_FEW_WORDS}[.!]?\s{{0,4}}\Z
    |(?:i|we)\ \w{{1,15}}ly\ decline\s{{0,4}}[.!]?\s{{0,4}}\Z
    |(?:(?:i|we)\ would|(?:i|we)['’]d)\ (?:rather|prefer)\ not\ (?:to\ )?(?:answer|respond|reply
      |comment|discuss)\b{_FEW_WORDS}[.!]?\s{{0,4}}\Z
    |i['’]m\ just\ an?\ (?:ai|language\ model)\b[^.\n]{{0,60}}(?:not|n['’]t|unable)\b
    |the\ response\ was\ (?:filtered|blocked)\b
    |content\ (?:was\ )?(?:filtered|blocked)(?:\ due\ to\ [^.\n]{{0,60}})?\W{{0,4}}\Z
    |(?:{SORRY}\ ?[,.]?\ (?:but\ )?)?(?:this|that|your)\ (?:request|question|content|prompt)
      \ (?:violates|may\ violate|goes\ against|was\ (?:flagged|blocked|filtered|rejected)
      |cannot\ be\ (?:answered|processed))
"""

_CHINESE = r"""
    (?:(?:非常|很|十分|真的)?(?:抱歉|对不起|遗憾|不好意思|對不起)[，,。！!：:\s]{0,3}(?:但是?)?
      |作为(?:一?[个名款])?(?:ai|人工智能|大?语言模型|智能助手)[^。\n]{0,40}?
      |(?=我|本助手|本模型|该模型|(?:无法|不能)(?:直接)?回答))
    (?:我|本助手|本模型|该模型)?(?:目前|暂时|现在)?(?:还)?(?:无法|不能|没办法|沒辦法|無法|不便|难以)(?:直接)?(?:为您|为你|给您|向您|對|对)?
    (?:这个问题|该问题|您的问题|此问题)?(?:做出|进行|给出)?(?:提供|回答|回應|回应|生成|完成|帮|協助|协助|处理|满足|访问|讨论|继续|改写|翻译|找到)(?!的)
    |(?:非常|很|十分)?(?:抱歉|对不起|遗憾|對不起)(?![的地])[，,。！!：:\s]{0,3}
      [^。\n]{0,30}(?:没有|未|无法|不能|不会|不知|不清楚|不确定|沒有|無法)
    |(?:非常|很)?(?:抱歉|对不起|不好意思|對不起)[。！!\s]{0,3}\Z
    |作为(?:一?[个名款])?(?:ai|人工智能|大?语言模型)[^。\n]{0,40}(?:无法|不能|没有)
    |请(?:您)?(?:先)?(?:提供|输入|给出|补充|说明(?=[^。\n]{0,12}(?:您|你|具体|更多)))
      [^。\n]{0,20}(?:问题|内容|资料|信息|细节|上下文|原文|段落|文本)
      (?:[。！!\s]{0,3}\Z|[，,](?:我|(?:以便|这样|好让|方便)(?:我|为[您你])))
    |[^。\n]{0,12}(?:问题|话题)(?:我们?)?(?:暂时|目前)?(?:无法|不能|無法|不便)(?:回答|讨论)
    |[^。“”\n]{0,24}(?:(?:无法|不能|無法)回答(?:该问题|这个问题|您的问题|此问题)?|回答不了)[。！!\s]{0,3}\Z
    |我不知道(?:答案)?[。！!\s]{0,3}\Z
    |[^。“”\n]{0,10}(?:问题|内容|请求)违反了?[^。\n]{0,16}(?:政策|规定|准则)
    |[^。“”\n]{0,10}(?:问题|内容|请求)不符合[^。\n]{0,16}(?:政策|规定|准则|规范)[。！!\s]{0,3}\Z
    |我(?:无法|不能)给到
    |[^。“”\n]{0,10}(?:请求|内容|输入|输出|提问|回复)[^。“”\n]{0,12}(?:安全策略|被(?:拦截|过滤|屏蔽))
    |[^。“”\n]{0,10}(?:输入|输出|内容|提问|问题|请求)[^。“”\n]{0,6}(?:包含|含有|涉及)[^。“”\n]{0,4}
      (?:敏感|违规|不当|不安全)(?:内容|信息|词)(?=[，,。！!]|\Z)
"""

# An apology in other European languages, and the words "I cannot" that follow it.
SORRY_ABROAD = r"""(?:(?:es\ )?tut\ mir\ (?:sehr\ )?leid|entschuldigung|verzeihung|leider
  |(?:je\ suis\ (?:vraiment\ )?)?désolée?|malheureusement|je\ m['’]excuse|je\ regrette
  |lo\ (?:siento(?:\ mucho)?|lamento)|lamentablemente|disculpa|perd[oó]n
  |mi\ (?:di)?spiace|spiacente|purtroppo|mi\ scuso
  |desculpe?|sinto\ muito|lamento|infelizmente|peço\ desculpas?
  |het\ spijt\ m(?:e|ij)|sorry|helaas|excuses
  |извините|простите|к\ сожалению|прошу\ прощения|мне\ (?:очень\ )?жаль)"""

_CANNOT_ABROAD = r"""(?:(?:(?:\w{1,9}\ )?(?:kann|darf|konnte|bin)\ ich|ich\ (?:kann|darf|konnte|bin)
    |(?:(?:daar|dat)\ )?(?:kan|mag)\ ik|ik\ (?:kan|mag))
    \ [^.\n]{0,60}\b(?:nicht|keine?n?|außerstande|niet|geen)\b
  |je\ (?:ne\ |n['’])(?:peux|suis|dispose|ai)\b|no\ (?:puedo|tengo|me\ es|estoy|dispongo)\b
  |non\ (?:posso|sono|ho|riesco)\b|(?:eu\ )?não\ (?:posso|consigo|tenho|estou|me)\b
  |(?:я\ )?не\ (?:могу|имею|в\ состоянии|способ))"""

_OTHERS = rf"""
    {SORRY_ABROAD}[,.!:]?\ (?:(?:aber|mais|pero|ma|mas|maar|но)\ )?{_CANNOT_ABROAD}
    |(?:(?:como|en\ tant|in\ quanto|как)\ [^.\n]{{0,50}},\ )?
      (?:je\ ne\ (?:peux|suis\ pas\ en\ mesure)|no\ puedo|non\ posso
        |(?:eu\ )?não\ (?:posso|consigo)|я\ не\ могу)
      \ (?:pas\ )?(?:de\ |vous\ |y\ |вам\ |с\ этим\ ){{0,2}}
      (?:répondre|aider|fournir|traiter|ayudar|responder|proporcionar|cumplir|atender|contestar
      |aiutar|risponder|fornir|soddisfar|ajudar|fornecer|помочь|ответить|предоставить|выполнить
      |обсуждать)
    |(?:als\ (?:ki|künstliche|sprachmodell)[^.\n]{{0,40}})?ich\ (?:kann|darf)\ (?:ihnen\ |dir[ ]
      |dabei\ |dazu\ |diese\ \w+\ |darauf\ |das\ |hier\ ){{1,3}}
      (?:leider\ )?(?:nicht|keine)\ ?(?:weiter)?(?:helfen|beantworten|antworten|bereitstellen
        |geben|\w*helfen)
    |(?:dabei|dazu|darauf|das|diese\ frage)\ (?:kann|darf)\ ich\ (?:ihnen\ |dir\ )?
      (?:leider\ )?nicht\ (?:\w{{0,5}}helfen|(?:be)?antworten)
    |(?:dat|daar|deze\ vraag)\ kan\ ik\ (?:helaas\ )?niet
      \ (?:beantwoorden|(?:bij\ |mee\ )?helpen)
    |ik\ kan\ (?:u|je|hier|deze\ \w+|dat)\ [^.\n]{{0,30}}niet\ (?:helpen|beantwoorden|\w*helpen)
    # Japanese
    |(?:申し訳(?:ございません|ありません|ない)|すみません|ごめんなさい|恐れ入ります)。?[^。\n]{{0,60}}(?:でき|られ|ませ|ない|かね)
    |(?:申し訳(?:ございません|ありません))[。！!\s]{{0,3}}\Z
    |[^。\n]{{0,24}}(?:お答え|お手伝い|回答|対応)(?:すること[はが]?)?(?:でき|いたしかね)(?:ません|ない|ます)
    # Arabic
    |(?:عذر[اً]{{1,2}}|آسف|أعتذر|للأسف)[،,.]?\ [^.\n]{{0,30}}(?:\bلا|لن|لم|غير)\b
    # Korean
    |(?:죄송합니다|죄송하지만|죄송해요|미안합니다|미안하지만|유감스럽게도)[^\n]{{0,60}}(?:없|못|않)
    |[^.\n]{{0,24}}(?:도와\s?드릴|답변(?:해)?\s?(?:드릴|할)|제공(?:해\s?드릴|할))\s?수\s?(?:가\s?)?없
"""

# A greeting or an agreement before a refusal.
_GREETING = r"""(?:(?:hello|hi|sure|well|oh|no\ comment)[,.!]\s{1,2}(?:but\ )?|i\ regret\ that\s
    |i\ must\ inform\ you\ that\s
    |based\ on\ [^,.\n]{1,60},\s|(?:thank\ you|i\ understand|i\ appreciate)[^,.\n]{0,60},\sbut\s
    |(?:您好|你好)[，,！!。]\s?)?"""

_REFUSAL = chinese_pattern(
    rf"[\s*_\"'“「#>-]{{0,9}}{_GREETING}(?:{_ENGLISH}|{_CHINESE}|{_OTHERS})", re.I | re.X
)

# "I can't say for sure, but the Nile is 6,650 km long" is an answer.
_CONTRAST = chinese_pattern(
    r"\b(?:but|however|though|yet|nevertheless|that said)\b"
    r"(?!,? (?:i|we|you|if|please|feel|my|this|it|there|not?|neither|(?:do|does|did) ?n[o'’]t)\b)"
    r"[^.?!\n]{8}"
    r"|,\sso\b(?! (?:i|we|the answer|it (?:is|remains|cannot)|there|this)\b)[^.?!\n]{8}"
    r"|(?:但是?|不过|然而)(?!我|您|你|如果|可以|如)[^。\n]{4}"
    r"|\b(?:aber|jedoch|mais|pero|però|mas|porém|но)\b"
    r"(?! (?:ich|je|yo|io|eu|я|wenn|si|se|если)\b)[^.?!\n]{8}",
    re.I,
)

_CITED = re.compile(r"\[\d{1,3}\]|【\d{1,3}】|[\"“”„«»「」『』]")

# A quotation and further words: "I can't help" is what Siri said.
_QUOTED_START = re.compile(r"[\"“「][^\"“”「」\n]{4,}[\"”」],?\s?\w")


def is_refusal(text: str, *, is_answer: bool = True) -> bool:
    """Return whether a text is a refusal to answer. Twelve languages are supported.

    A text counts as an answer if it is long, contains a citation or a quotation, or goes on to
    answer the question after the word "but".

    Args:
        text: The text.
        is_answer: Whether an answer from passages was requested. Otherwise, citations and
            quotations do not count, except a quotation at the start of a sentence.

    Example:
        >>> is_refusal("I'm sorry, but I can't help with that.")
        True
        >>> is_refusal("I'm sorry to say that it is 6,650 km long.")
        False
    """
    text = unicodedata.normalize("NFC", text.strip())
    is_quotation = is_supported(text) if is_answer else _QUOTED_START.match(text) is not None
    if is_quotation or len(text) > MAX_REFUSAL_LENGTH:
        return False
    found = _REFUSAL.match(text)
    if found is None:
        return False
    return not has_contrast(text, found.end())


def is_supported(text: str) -> bool:
    """Return whether a text contains a citation or a quotation."""
    return _CITED.search(text.strip('"“”「」')) is not None


def has_contrast(text: str, start: int = 0) -> bool:
    """Return whether a text goes on to answer the question, for example after the word "but"."""
    return _CONTRAST.search(text, start) is not None
