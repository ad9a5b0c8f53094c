"""The built-in prompts for rewriting a question as one or more search queries."""

from __future__ import annotations

from ..plans.prompting import Prompt

REWRITE = Prompt(
    zh="""\
只输出一个改写后的问题，不要回答它，不要解释。
请把原问题改写成更清楚、更适合检索的一个问句：改正错字，写全简称，去掉寒暄、语气词和与检索无关的话，保留所有人名、地名、数字和条件。
不要增加问题里没有的内容；已经清楚的问题原样输出。

例
原问题：你好，想问下珠穆朗马峰到底有多高啊？
改写后的问题：珠穆朗玛峰有多高？

要改写的
原问题：{query}
改写后的问题（仍是问句）：""",
    en="""\
Write only the rewritten question, as one sentence in the language of the question.
Rewrite the question so that a search engine understands it. Correct spelling mistakes and expand
abbreviations. Remove greetings and everything that the search does not need. Keep all names,
numbers and conditions. Do not answer the question and do not add anything. If the question is
already clear, repeat it.

Example
Question: hello, just wondering how hihg is mt everest??
Rewritten question: How high is Mount Everest?

To rewrite
Question: {query}
Rewritten question:""",
    required=("query",),
)


EXPANSION = Prompt(
    zh="""\
写 {count} 行，每行是一种不同的问法，不要编号，不要解释，不要回答。
请把原问题换成不同的问法，用来检索：换用同义词、全称或简称，改变句式，或换个角度提问，但问的必须是同一件事。保留所有人名、地名、数字和条件。

例
原问题：珠穆朗玛峰有多高？
其他问法：
珠峰的海拔是多少米？
世界最高峰珠穆朗玛峰的高度是多少？
珠穆朗玛峰海拔有几米？

要改写的
原问题：{query}
其他问法：
""",
    en="""\
Write {count} lines. Each line is one phrasing of the question, without numbers or comments, in the
language of the question.
The phrasings are used for a search. Use synonyms, full or short names, or another sentence form.
All phrasings must ask for the same thing. Keep all names, numbers and conditions. Do not answer the
question.

Example
Question: How high is Mount Everest?
Other phrasings:
What is the height of Mount Everest in meters?
Elevation of Mt. Everest, the highest mountain of the world
How tall is Everest?

To rephrase
Question: {query}
Other phrasings:
""",
    required=("query",),
    optional=("count",),
)


PASSAGE = Prompt(
    zh="""\
只输出两三句话的一段文字，不要标题，不要提问。
请像百科或文档那样，写出可能包含下面问题的答案的一段原文。不确定的内容可以合理推测，不要说明这是推测。

例
问题：珠穆朗玛峰有多高？
段落：珠穆朗玛峰位于中国与尼泊尔边境，海拔约 8849 米，是世界最高峰。

问题：{query}

段落（两三句话）：""",
    en="""\
Write two or three sentences that answer the question, as a reference work or a document would.
Write only these sentences, without a heading, in the language of the question. Use the names in the
question. If you are not sure, make a plausible guess and do not mention it. Do not ask anything.

Example
Question: How high is Mount Everest?
Passage: Mount Everest stands on the border of Nepal and China. Its summit is 8,849 m above sea
level, which makes it the highest mountain of the world.

Question: {query}

Passage (two or three sentences):""",
    required=("query",),
)
