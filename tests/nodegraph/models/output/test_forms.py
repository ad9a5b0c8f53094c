# ruff: noqa: E501
"""The usual forms of model output, as one table per role: form, expected items.

No row is deleted without a measurement of how often models write its form.
"""

import pytest

from nodekin.nodegraph.models.output.free_text import parse_final_answer
from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_query,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions

A, B = "Who wrote it?", "Who painted it?"
ZA, ZB = "谁写的？", "谁画的？"
QUESTION, QUESTION_ZH = "Who wrote and painted these things?", "这几件事是谁做的？"

LANGUAGES = [(QUESTION, A, B), (QUESTION_ZH, ZA, ZB)]

LISTS = """
{0}⏎{1}
1. {0}⏎2. {1}
1) {0}⏎2) {1}
(1) {0}⏎(2) {1}
1: {0}⏎2: {1}
1 - {0}⏎2 - {1}
[1] {0}⏎[2] {1}
#1 {0}⏎#2 {1}
1．{0}⏎2．{1}
１．{0}⏎２．{1}
1、{0}⏎2、{1}
（1）{0}⏎（2）{1}
【1】{0}⏎【2】{1}
①{0}⏎②{1}
⑴{0}⏎⑵{1}
❶ {0}⏎❷ {1}
1️⃣ {0}⏎2️⃣ {1}
一、{0}⏎二、{1}
（一）{0}⏎（二）{1}
第一，{0}⏎第二，{1}
第一个：{0}⏎第二个：{1}
首先，{0}⏎其次，{1}
First, {0}⏎Second, {1}
a) {0}⏎b) {1}
(a) {0}⏎(b) {1}
a. {0}⏎b. {1}
A. {0}⏎B. {1}
i. {0}⏎ii. {1}
i) {0}⏎ii) {1}
I. {0}⏎II. {1}
- {0}⏎- {1}
* {0}⏎* {1}
+ {0}⏎+ {1}
• {0}⏎• {1}
– {0}⏎– {1}
▪ {0}⏎▪ {1}
→ {0}⏎→ {1}
✅ {0}⏎✅ {1}
- [ ] {0}⏎- [ ] {1}
> {0}⏎> {1}
**1.** {0}⏎**2.** {1}
**{0}**⏎**{1}**
"{0}"⏎"{1}"
`{0}`⏎`{1}`
"{0}", "{1}"
("{0}", "{1}")
["{0}", "{1}"]
['{0}', '{1}']
queries = ["{0}", "{1}"]
["{0}", "{1}", "Wh
{{"questions": ["{0}", "{1}", "Wh
{{"1": "{0}", "2": "{1}"}}
{{"q1": "{0}", "q2": "{1}"}}
{{"question_1": "{0}", "question_2": "{1}"}}
{{"子问题1": "{0}", "子问题2": "{1}"}}
{{"questions": ["{0}", "{1}"]}}
{{"sub_questions": [{{"id": 1, "question": "{0}"}}, {{"id": 2, "question": "{1}"}}]}}
{{"question": "{0}"}}⏎{{"question": "{1}"}}
```json⏎["{0}", "{1}"]⏎```
```⏎1. {0}⏎2. {1}⏎```
questions:⏎  - {0}⏎  - {1}
Q1: {0}⏎Q2: {1}
Question 1: {0}⏎Question 2: {1}
**Sub-question 1:** {0}⏎**Sub-question 2:** {1}
子问题1：{0}⏎子问题2：{1}
Here are the questions:⏎1. {0}⏎2. {1}
| # | question |⏎|---|---|⏎| 1 | {0} |⏎| 2 | {1} |
| question | reason |⏎|---|---|⏎| {0} | first |⏎| {1} | second |
id,question⏎1,{0}⏎2,{1}
<questions>⏎<question>{0}</question>⏎<question>{1}</question>⏎</questions>
<question>{0}</question><question>{1}</question>
<q1>{0}</q1>⏎<q2>{1}</q2>
<ol>⏎<li>{0}</li>⏎<li>{1}</li>⏎</ol>
<questions>⏎1. {0}⏎2. {1}⏎</questions>
<output>["{0}", "{1}"]</output>
<question id="1">{0}</question>⏎<question id="2">{1}</question>
<analysis>Two parts.</analysis>⏎<questions>⏎<q>{0}</q>⏎<q>{1}</q>⏎</questions>
```xml⏎<q>{0}</q>⏎<q>{1}</q>⏎```
<子问题>{0}</子问题>⏎<子问题>{1}</子问题>
1. {0}⏎   - to know the first⏎2. {1}⏎   - to know the second
1. {0} 2. {1}
(1) {0} (2) {1}
{0}; {1}
<think>Two parts?</think>1. {0}⏎2. {1}
[THINK]Two parts?[/THINK]1. {0}⏎2. {1}
◁think▷Two parts?◁/think▷1. {0}⏎2. {1}
<|channel|>analysis<|message|>Two?<|end|><|start|>assistant<|channel|>final<|message|>1. {0}⏎2. {1}
1. **Author:** {0}⏎2. **Painter:** {1}
1. **Author**: {0}⏎2. **Painter**: {1}
- **Identify the author** – {0}⏎- **Identify the painter** – {1}
**Question 1**⏎{0}⏎⏎**Question 2**⏎{1}
Question 1⏎{0}⏎Question 2⏎{1}
Step 1 - {0}⏎Step 2 - {1}
1\\. {0}⏎2\\. {1}
- "{0}",⏎- "{1}"
{{"{0}": "author", "{1}": "painter"}}
[TOOL_CALLS][{{"name": "decompose", "arguments": {{"questions": ["{0}", "{1}"]}}}}]
<function_calls>⏎<invoke name="decompose">⏎<parameter name="questions">["{0}", "{1}"]</parameter>⏎</invoke>⏎</function_calls>
<function=decompose><parameter=questions>["{0}", "{1}"]</parameter></function>
"questions": ["{0}", "{1}"]
data: {{"question": "{0}"}}⏎data: {{"question": "{1}"}}
<question>{0}⏎<question>{1}
<ul><li><b>{0}</b></li><li><b>{1}</b></li></ul>
<table><tr><td>1</td><td>{0}</td></tr><tr><td>2</td><td>{1}</td></tr></table>
{0}<br>{1}
question⏎{0}⏎{1}
1|{0}⏎2|{1}
{0} | {1}
{0} and {1}
Firstly, {0} Secondly, {1}
1st: {0}⏎2nd: {1}
Q1. {0}⏎Q2. {1}
Q1) {0}⏎Q2) {1}
(Q1) {0}⏎(Q2) {1}
Part A: {0}⏎Part B: {1}
SQ1: {0}⏎SQ2: {1}
S1: {0}⏎S2: {1}
No. 1: {0}⏎No. 2: {1}
№1. {0}⏎№2. {1}
<1> {0}⏎<2> {1}
1> {0}⏎2> {1}
1/ {0}⏎2/ {1}
1.1 {0}⏎1.2 {1}
🔹 {0}⏎🔹 {1}
👉 {0}⏎👉 {1}
❓ {0}⏎❓ {1}
∙ {0}⏎∙ {1}
\\begin{{enumerate}}⏎\\item {0}⏎\\item {1}⏎\\end{{enumerate}}
问题1. {0}⏎问题2. {1}
第1个问题：{0}⏎第2个问题：{1}
第一问：{0}⏎第二问：{1}
甲、{0}⏎乙、{1}
一. {0}⏎二. {1}
一：{0}⏎二：{1}
1. **确定作者**：{0}⏎2. **确定画家**：{1}
Assistant: 1. {0}⏎2. {1}
To answer this, I'd search for "{0}" and "{1}".
I would ask: "{0}" and "{1}"
<details>⏎<summary>Sub-questions</summary>⏎⏎1. {0}⏎2. {1}⏎</details>
<details><summary>Questions (2)</summary>⏎- {0}⏎- {1}⏎</details>
<details open>⏎{0}⏎{1}⏎</details>
<details>⏎<summary>Questions</summary>⏎<ol>⏎<li>{0}</li>⏎<li>{1}</li>⏎</ol>⏎</details>
1. {0}⏎2. {1}⏎<details>⏎<summary>Why these?</summary>⏎The first finds the author.⏎</details>
第一种：{0}⏎第二种：{1}
版本一：{0}⏎版本二：{1}
[Independent] {0}⏎[Depends on 1] {1}
1. 【同义替换】{0}⏎2. 【全称】{1}
<parts>⏎<sub>{0}</sub>⏎<sub>{1}</sub>⏎</parts>
🔸{0}⏎🔸{1}
{0}⏎{1}⏎⏎None of these can be broken down further.
问法一：{0}⏎问法二：{1}
**问法一**⏎{0}⏎⏎**问法二**⏎{1}
**Phrasing 1**⏎{0}⏎⏎**Phrasing 2**⏎{1}
Formulierung 1: {0}⏎Formulierung 2: {1}
Вариант 1: {0}⏎Вариант 2: {1}
а) {0}⏎б) {1}
{0}⏎{1}⏎⏎（以上问题保持了原意）
{0}⏎{1}⏎⏎(Both questions keep the meaning.)
{0}⏎{1}⏎⏎Example 5⏎Question: What is tea?⏎Simpler questions:⏎NONE
{0}⏎{1}⏎⏎例五⏎原问题：什么是茶？⏎子问题：⏎无
{0}⏎{1}⏎⏎Is there anything else that you need?
1. {0}⏎2. {1}⏎⏎**Why these questions?**⏎- The first finds the author.⏎- The second finds the painter.
""".strip().split("\n")


def filled(form: str, *items: str) -> str:
    return form.format(*items).replace("⏎", "\n").replace("⇥", "\t")


@pytest.mark.parametrize("form", LISTS)
@pytest.mark.parametrize(("question", "first", "second"), LANGUAGES)
def test_form_of_list_gives_its_items(form, question, first, second) -> None:
    answer = filled(form, first, second)
    assert parse_sub_questions(answer, question, 5) == [first, second]
    assert parse_phrasings(answer, question, 5) == [first, second]


TITLED = """
- Author: {0}⏎- Year: {1}
1. Author – {0}⏎2. Year – {1}
- *Author* — {0}⏎- *Year* — {1}
- 作者：{0}⏎- 年份：{1}
**Author**⏎{0}⏎**Publication**⏎{1}
**Breakdown**⏎{0}⏎{1}⏎**End**
questions:⏎  - id: 1⏎    text: {0}⏎  - id: 2⏎    text: {1}
- id: q1⏎  question: {0}⏎  reason: author⏎- id: q2⏎  question: {1}⏎  reason: year
SubQ 1 → {0}⏎SubQ 2 → {1}
Subquestion (1): {0}⏎Subquestion (2): {1}
R1. {0}⏎R2. {1}
V1: {0}⏎V2: {1}
Alt A: {0}⏎Alt B: {1}
I would first ask "{0}" and then "{1}".
我会先问“{0}”，再问“{1}”
""".strip().split("\n")

PARTS = [
    (
        "Who wrote Hamlet and in which year was Faust published?",
        "Who wrote Hamlet?",
        "In which year was Faust published?",
    ),
    (
        "谁写了《哈姆雷特》，《浮士德》是哪一年出版的？",
        "谁写了《哈姆雷特》？",
        "《浮士德》是哪一年出版的？",
    ),
]


@pytest.mark.parametrize("form", TITLED)
@pytest.mark.parametrize(("question", "first", "second"), PARTS)
def test_form_of_titled_list_gives_its_items(form, question, first, second) -> None:
    assert parse_sub_questions(filled(form, first, second), question, 5) == [first, second]


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("When were Hamlet and Faust written?", ["Hamlet – who wrote it?", "Faust – what is it?"]),
        ("Compare Hamlet and Faust", ["Hamlet: which year?", "Faust: which year?"]),
        ("茶和咖啡有什么不同？", ["茶：含多少咖啡因？", "咖啡：含多少咖啡因？"]),
        ("What of the two plays?", ["Hamlet: who wrote it?", "Faust: who wrote it?"]),
        ("What is in the guides?", ["Part A: scope", "Part C: limits"]),
    ],
)
def test_titles_that_questions_need_stay(question: str, items: list[str]) -> None:
    answer = "\n".join(f"- {item}" for item in items)
    assert parse_sub_questions(answer, question, 5) == items


STYLES = """
Formal: {0}⏎Casual: {1}
- **Formal:** {0}⏎- **Casual:** {1}
- Keyword style: {0}⏎- Question style: {1}
1. **{0}** – uses keywords⏎2. **{1}** – asks directly
- 正式：{0}⏎- 口语：{1}
1. 换用同义词：{0}⏎2. 改变句式：{1}
- Synonyms: {0}⏎- Another sentence form: {1}
""".strip().split("\n")


@pytest.mark.parametrize("form", STYLES)
def test_names_of_styles_are_no_parts_of_phrasings(form: str) -> None:
    phrasings = ["Ways to change a forgotten password", "How can I get a new password?"]
    answer = filled(form, *phrasings)
    assert parse_phrasings(answer, "How do I reset my password?", 5) == phrasings


ITEMS = [
    ["How is green tea made?", "Describe the history of black tea", "Compare their caffeine"],
    ["The Nile is longer than the Amazon", "The Amazon carries more water"],
    ["亚硫酸盐的作用", "描述国际象棋超级大赛的概况"],
]


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("form", ["- {}", "1. {}", "1. {}.", "1) **{}**", '"{}",'])
def test_each_item_of_list_counts(items: list[str], form: str) -> None:
    answer = "\n".join(form.format(item) for item in items)
    if form.startswith('"'):
        answer = f"[{answer.rstrip(',')}]"
    found = parse_sub_questions(answer, "What is it?", 5)
    assert [item.rstrip(".") for item in found] == items


SHORT_NAMES = [["Go", "Rust", "C#"], ["UK", "France"], ["machine learning", "AI"], ["茶", "咖啡"]]


@pytest.mark.parametrize("names", SHORT_NAMES)
@pytest.mark.parametrize("form", ["- {}", "1. {}", "1) **{}**", '"{}",'])
def test_name_of_one_or_two_characters_counts_in_list(names: list[str], form: str) -> None:
    answer = "\n".join(form.format(name) for name in names)
    assert parse_sub_questions(answer, QUESTION, 5) == names
    assert parse_phrasings(answer, QUESTION, 5) == names


@pytest.mark.parametrize("word", ["Ok", "No", "it", "无"])
def test_word_of_two_characters_that_is_no_name_is_ignored(word: str) -> None:
    answer = f"1. {word}\n2. How long is the Nile?"
    assert parse_phrasings(answer, QUESTION, 5) == ["How long is the Nile?"]


def test_letter_in_its_own_line_is_no_query() -> None:
    answer = "A\nHow long is the Nile?\nHow wide is it?"
    assert parse_sub_questions(answer, QUESTION_ZH, 5) == answer.split("\n")[1:]


def test_single_letters_alone_are_no_queries() -> None:
    with pytest.raises(ValueError, match="no other phrasing"):
        parse_phrasings("1. A\n2. B", QUESTION, 5)


QUERIES = """
{0}
<query>{0}</query>
<query>{0}
{0}</query>
<rewritten_query>⏎{0}⏎</rewritten_query>
<result>⏎{0}⏎</result>
<thinking>There are typos.</thinking>⏎<query>{0}</query>
<original_query>x</original_query>⏎<rewritten_query>{0}</rewritten_query>
<query>{0}</query>⏎<explanation>I mended it.</explanation>
```xml⏎<query>{0}</query>⏎```
Here it is:⏎<search_query>{0}</search_query>
<tool_call>{{"name": "search", "arguments": {{"query": "{0}"}}}}</tool_call>
<p>{0}</p>
[query]{0}[/query]
<改写>{0}</改写>
search("{0}")
`{0}`
「{0}」
[[{0}]]
\\boxed{{{0}}}
The next question should be: {0}
Rewritten query: {0}
Search query: {0}
Improved question: {0}
Action: search⏎Action Input: {0}
改写后的问题应为：{0}
{{"query": "{0}"}}
{{"rewritten": "{0}", "explanation": "typos"}}
{{"original_query": "x y", "rewritten_query": "{0}"}}
<answer>{0}</answer>
<|START_THINKING|>Hm?<|END_THINKING|><|START_RESPONSE|>{0}<|END_RESPONSE|>
<seed:think>Hm?</seed:think>{0}
<unused94>thought⏎Hm?<unused95>{0}
Thinking...⏎Hm?⏎...done thinking.⏎⏎{0}
analysisWe need a query.assistantfinal{0}
{0} (corrected spelling)
Rewritten Question⏎⏎{0}
**Rewritten query**⏎{0}
Rewritten: {0}
New query - {0}
A: {0}
User: {0}
Human: {0}
Assistant: {0}
assistant: {0}
I would rewrite it as: {0}
I would rewrite the query as "{0}".
The rewritten query is "{0}".
You could ask: {0}
Did you mean: {0}
Did you mean "{0}"?
Original: wher did ibsn live⏎Rewritten: {0}
| Original | Rewritten |⏎|---|---|⏎| wher did ibsn live | {0} |
query = "{0}"
rewritten_query: {0}
```yaml⏎rewritten_query: "{0}"⏎```
{{"function": "search", "arguments": "{{\\"query\\": \\"{0}\\"}}"}}
[TOOL_CALLS][{{"name": "search", "arguments": {{"query": "{0}"}}}}]
<function=search><parameter=query>{0}</parameter></function>
<|python_tag|>search.call(query="{0}")
web_search("{0}")
print(search("{0}"))
Thought: I should search.⏎Action: search[{0}]
Action: search("{0}")
Search({0})
Search[{0}]
[Rewritten Query]: {0}
改写后：{0}
修改后：{0}
{0}（已修正错别字）
<b>{0}</b>
<strong>{0}</strong>
<span>{0}</span>
<h1>{0}</h1>
<code>{0}</code>
&lt;query&gt;{0}&lt;/query&gt;
\\<query\\>{0}\\</query\\>
`<query>{0}</query>`
**<query>{0}</query>**
<query>{0}<\\query>
{0}[/INST]
[INST] wher did ibsn live [/INST] {0}
Step 1: mend the spelling.⏎Step 2: {0}
{0}###
The rewritten question could be phrased as follows: {0}
The next question is **{0}**
Next: {0}
Based on what we know, the next question should be: {0}
We know that he was a writer. The next question should be: {0}
接下来应该问：{0}
<details><summary>Thinking</summary>⏎x?⏎</details>⏎⏎{0}
> Thinking...⏎> x?⏎⏎{0}
*Thinking: x?*⏎⏎{0}
**Thought process**⏎⏎x?⏎⏎**Final answer**⏎⏎{0}
Thought: x?⏎Answer: {0}
Reasoning: x?⏎Answer: {0}
<|channel>thought⏎x?<channel|>{0}
<|start_header_id|>assistant<|end_header_id|>⏎⏎{0}
<｜begin▁of▁thinking｜>x?<｜end▁of▁thinking｜>{0}
思考：x？⏎答案：{0}
**思考过程**⏎x？⏎⏎**改写后的问题**⏎{0}
\\boxed{{\\text{{{0}}}}}
„{0}“
{0}⏎Assistant: In Skien.
{0}⏎⏎Question: what is tee⏎Rewritten question: What is tea?
{0}⏎⏎原问题：茶是啥⏎改写后的问题：茶是什么？
""".strip().split("\n")


@pytest.mark.parametrize("form", QUERIES)
@pytest.mark.parametrize(
    ("question", "query"),
    [("wher did ibsn live", "Where did Ibsen live?"), ("他住哪", "他住在哪里？")],
)
def test_form_of_query_gives_query(form: str, question: str, query: str) -> None:
    assert parse_query(filled(form, query), question) == query


TOOLS = """
plays: {0}⏎people: {1}
1. [plays] {0}⏎2. [people] {1}
[plays]: {0}⏎[people]: {1}
**plays**: {0}⏎**people**: {1}
`plays`: {0}⏎`people`: {1}
plays - {0}⏎people - {1}
plays -> {0}⏎people -> {1}
plays | {0}⏎people | {1}
{0} (plays)⏎{1} (people)
{0} [plays]⏎{1} [people]
{0} -> plays⏎{1} -> people
{0}（plays）⏎{1}（people）
plays("{0}")⏎people("{1}")
Tool: plays⏎Question: {0}⏎⏎Tool: people⏎Question: {1}
Question: {0}⏎Tool: plays⏎⏎Question: {1}⏎Tool: people
工具：plays，问题：{0}⏎工具：people，问题：{1}
### plays⏎1. {0}⏎### people⏎1. {1}
plays:⏎- {0}⏎people:⏎- {1}
{{"plays": "{0}", "people": "{1}"}}
{{"plays": ["{0}"], "people": ["{1}"]}}
[{{"tool": "plays", "question": "{0}"}}, {{"tool": "people", "question": "{1}"}}]
{{"name": "plays", "args": {{"query": "{0}"}}}}⏎{{"name": "people", "args": {{"query": "{1}"}}}}
[{{"tool": "plays", "input": "{0}"}}, {{"tool": "people", "input": "{1}"}}]
| tool | question |⏎|---|---|⏎| plays | {0} |⏎| people | {1} |
| question | tool |⏎|---|---|⏎| {0} | plays |⏎| {1} | people |
<plays>{0}</plays>⏎<people>{1}</people>
<question tool="plays">{0}</question>⏎<question tool="people">{1}</question>
<part><tool>plays</tool><q>{0}</q></part><part><tool>people</tool><q>{1}</q></part>
<tool>plays</tool>⏎<question>{0}</question>⏎<tool>people</tool>⏎<question>{1}</question>
For plays: {0}⏎For people: {1}
For the plays tool: {0}⏎For the people tool: {1}
plays tool: {0}⏎people tool: {1}
Tool plays: {0}⏎Tool people: {1}
Use plays to answer: {0}⏎Use people to answer: {1}
Use the plays tool: {0}⏎Use the people tool: {1}
Ask plays "{0}"⏎Ask people "{1}"
{{plays}} {0}⏎{{people}} {1}
plays = {0}⏎people = {1}
plays = "{0}"⏎people = "{1}"
plays⇥{0}⏎people⇥{1}
plays; {0}⏎people; {1}
plays / {0}⏎people / {1}
plays ➡ {0}⏎people ➡ {1}
「plays」：{0}⏎「people」：{1}
plays({0})⏎people({1})
plays(query="{0}")⏎people(query="{1}")
plays.search("{0}")⏎people.search("{1}")
plays[{0}]⏎people[{1}]
plays["{0}"]⏎people["{1}"]
{0} (using the plays tool)⏎{1} (using the people tool)
{0} @plays⏎{1} @people
{0}（使用plays）⏎{1}（使用people）
"{0}", "plays"⏎"{1}", "people"
[("plays", "{0}"), ("people", "{1}")]
[["plays", "{0}"], ["people", "{1}"]]
[["{0}", "plays"], ["{1}", "people"]]
### For `plays`:⏎1. {0}⏎### For `people`:⏎1. {1}
Questions for plays:⏎1. {0}⏎Questions for people:⏎1. {1}
plays:⏎  - "{0}"⏎people:⏎  - "{1}"
items:⏎- sub_question: {0}⏎  tool_name: plays⏎- sub_question: {1}⏎  tool_name: people
Sub-question 1 (plays): {0}⏎Sub-question 2 (people): {1}
Question 1 [plays]: {0}⏎Question 2 [people]: {1}
tool=plays, question="{0}"⏎tool=people, question="{1}"
Thought: x.⏎Action: plays[{0}]⏎Action: people[{1}]
[{{"toolName": "plays", "subQuestion": "{0}"}}, {{"toolName": "people", "subQuestion": "{1}"}}]
{{"{0}": "plays", "{1}": "people"}}
{{"questions": [{{"question": "{0}", "tools": ["plays"]}}, {{"question": "{1}", "tools": ["people"]}}]}}
{{"questions": ["plays: {0}", "people: {1}"]}}
[{{"type": "function", "function": {{"name": "plays", "arguments": "{{\\"query\\": \\"{0}\\"}}"}}}}, {{"type": "function", "function": {{"name": "people", "arguments": "{{\\"query\\": \\"{1}\\"}}"}}}}]
[TOOL_CALLS][{{"name": "plays", "arguments": {{"query": "{0}"}}}}, {{"name": "people", "arguments": {{"query": "{1}"}}}}]
<tool_call>⏎{{"name": "plays", "arguments": {{"query": "{0}"}}}}⏎</tool_call>⏎<tool_call>⏎{{"name": "people", "arguments": {{"query": "{1}"}}}}⏎</tool_call>
<function=plays>⏎<parameter=query>⏎{0}⏎</parameter>⏎</function>⏎<function=people>⏎<parameter=query>⏎{1}⏎</parameter>⏎</function>
<function_calls>⏎<invoke name="plays">⏎<parameter name="query">{0}</parameter>⏎</invoke>⏎<invoke name="people">⏎<parameter name="query">{1}</parameter>⏎</invoke>⏎</function_calls>
<tool_call>plays⏎<arg_key>query</arg_key>⏎<arg_value>{0}</arg_value>⏎</tool_call>⏎<tool_call>people⏎<arg_key>query</arg_key>⏎<arg_value>{1}</arg_value>⏎</tool_call>
<|tool_calls_section_begin|><|tool_call_begin|>functions.plays:0<|tool_call_argument_begin|>{{"query": "{0}"}}<|tool_call_end|><|tool_call_begin|>functions.people:1<|tool_call_argument_begin|>{{"query": "{1}"}}<|tool_call_end|><|tool_calls_section_end|>
<tool name="plays">{0}</tool>⏎<tool name="people">{1}</tool>
<tool name="plays"><question>{0}</question></tool>⏎<tool name="people"><question>{1}</question></tool>
使用plays工具：{0}⏎使用people工具：{1}
对于 plays：{0}⏎对于 people：{1}
向 plays 提问：{0}⏎向 people 提问：{1}
『plays』{0}⏎『people』{1}
[plays(query="{0}"), people(query="{1}")]
plays: {0} | people: {1}
plays: {0}, people: {1}
plays: {0}; people: {1}
plays: {0} people: {1}
""".strip().split("\n")


@pytest.mark.parametrize("form", TOOLS)
@pytest.mark.parametrize(("question", "first", "second"), LANGUAGES)
def test_form_of_tool_questions_gives_pairs(form, question, first, second) -> None:
    answer = filled(form, first, second)
    pairs = [("plays", first), ("people", second)]
    assert parse_tool_questions(answer, ["plays", "people"], question) == (pairs, [])


FAILURES = [
    "<html><head><title>502 Bad Gateway</title></head></html>",
    "502 Bad Gateway",
    "HTTP 503: Service Unavailable",
    "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1',
    'Exception in thread "main" java.lang.Error\n\tat a.B.c(B.java:3)',
    '{"error": {"message": "Rate limit reached", "type": "tokens"}}',
    '{"detail": "Not Found"}',
    '{"code": 500, "message": "Internal server error"}',
    "https://en.wikipedia.org/wiki/Henrik_Ibsen",
    "[Ibsen](https://en.wikipedia.org/wiki/Henrik_Ibsen)",
    "I'm sorry, but I can't help with that.",
    "I cannot answer this question.",
    "As an AI language model, I cannot browse the internet.",
    "抱歉，我无法回答这个问题。",
    "作为一个人工智能语言模型，我无法访问互联网。",
    "Es tut mir leid, aber ich kann diese Frage nicht beantworten.",
    "Je suis désolé, mais je ne peux pas répondre à cette question.",
    "Lo siento, pero no puedo ayudar con eso.",
    "Mi dispiace, ma non posso rispondere.",
    "Desculpe, mas não posso ajudar com isso.",
    "Het spijt me, maar ik kan deze vraag niet beantwoorden.",
    "Извините, но я не могу ответить на этот вопрос.",
    "申し訳ございませんが、その質問にはお答えできません。",
    "죄송합니다. 그 질문에는 답변할 수 없습니다.",
    "I must decline this request.",
    "I'm sorry, but this request violates our content policy.",
    "I'm just an AI and can't answer that.",
    "Hello! I'm sorry, but I can't help with that.",
    "您好，这个问题我暂时无法回答，让我们换个话题再聊聊吧。",
    "Tut mir leid, das kann ich nicht beantworten.",
    "openai.RateLimitError: Rate limit reached for gpt-4o",
    "httpx.ConnectError: [Errno 111] Connection refused",
    "upstream timed out (110: Connection timed out)",
    "context deadline exceeded",
    "Failed to fetch",
    "Content filtered",
    "[DONE]",
    "Model is overloaded, please try again later.",
    "您的输入可能包含敏感内容，请修改后重试。",
    "I don't feel comfortable helping with that.",
    "Het spijt me, maar daar kan ik niet bij helpen.",
]


@pytest.mark.parametrize("answer", FAILURES)
def test_failure_is_no_query_and_no_answer(answer: str) -> None:
    question = "Where did Ibsen live?"
    with pytest.raises(ValueError, match=r"answer is|refused"):
        parse_query(answer, question)
    with pytest.raises(ValueError, match=r"answer is|refused"):
        parse_sub_questions(answer, question, 5)
    with pytest.raises(ValueError, match=r"answer is|refused"):
        parse_passage(answer, question)
    final = parse_final_answer(answer, question)
    is_address = answer.startswith(("http:", "https:", "[Ibsen]"))  # which may be an answer
    assert final.answered == is_address
    assert (final.problem is None) == is_address


@pytest.mark.parametrize("answer", ["null", "`null`", "undefined", "NaN"])
def test_null_is_no_answer(answer: str) -> None:
    assert parse_final_answer(answer).problem == "an empty value"
    assert parse_final_answer(answer).text == ""


ODD_QUERIES = [
    "How do I center a <div>?",
    "<div> or <span>: which is inline?",
    "How do I sort a List<String> in Java?",
    "What does Traceback (most recent call last) mean?",
    "Traceback (most recent call last)",
    "I can't log in",
    "I can't help falling in love lyrics",
    "I cannot find my keys",
    "Sorry by Justin Bieber",
    "对不起，我爱你",
    "Who directed Nymphomaniac [2]?",
    "What is https://example.org used for?",
    "Error handling in Go",
    "How does a 404 page work?",
    "502 Bad Gateway nginx cause?",
    "C++ template<T> syntax",
    "a < b and b > c in Python",
    "first, second and third person narrators",
    "A. Einstein's birthplace",
    "i. e. meaning",
    "1.5 litres in gallons",
    "10:30 train to Bergen?",
    "first-in-first-out queue",
    "what is $5 in euros?",
    "Unfortunately, It Was Paradise author",
    "As an artist, what did Ibsen paint?",
    "第一次世界大战的原因",
    "一、二、三级医院的区别",
]


@pytest.mark.parametrize("query", ODD_QUERIES)
def test_odd_query_is_kept(query: str) -> None:
    assert parse_query(query, "ibsn") == query.rstrip(".")
    assert parse_query(f"<query>{query}</query>", "ibsn") == query.rstrip(".")


TRUE_ANSWERS = [
    "I'm sorry to say that it is 6,650 km long, so you can't walk it in a week.",
    "Conflict.",
    "Forbidden",
    "We do not provide refunds after 30 days.",
    "无法提供退款，因为已经超过三十天。",
    "错误：第3行缺少分号",
    "I'm sorry to hear that. Reset the password on the login page.",
    "I cannot answer every detail, but the Nile is 6,650 km long.",
    "Unfortunately, the museum is not open on Mondays.",
    "Sorry is a song by Justin Bieber.",
    "No, it is not: the Nile is 6,650 km long.",
    "I can't help with that [1].",
    "Leider ist das Museum montags nicht geöffnet.",
    "Malheureusement, le musée est fermé le lundi.",
    "抱歉是一种礼貌用语。",
    "对不起，我爱你是一部韩剧。",
    "Error: the opposite of truth.",
    "A 404 page says that a page was not found.",
    "Not found in nature: element 117.",
    "Null Island lies at 0°N 0°E.",
    "Unfortunately, the policy does not allow pets.",
    "As an AI company, OpenAI does not publish the weights.",
    "502 Bad Gateway means that a proxy got a bad reply.",
    "The request failed because the disk was full.",
    "The connection was refused because the port is closed.",
    "Leider kann man das Museum montags nicht besuchen.",
    "Helaas kan het museum op maandag niet worden bezocht.",
    "遗憾的是，他没有获得诺贝尔奖。",
]


@pytest.mark.parametrize("answer", TRUE_ANSWERS)
def test_answer_that_begins_like_refusal_counts(answer: str) -> None:
    question = "What is an error, and how long is the Nile?"
    assert parse_final_answer(answer, question).answered


# A phrasing without a question mark follows one with a question mark.
MIXED = """
1. {0} [synonyms]⏎2. {1} [noun phrase]
1. {0} - uses the short name⏎2. {1} - uses the full name
1. {0}（换用全称）⏎2. {1}（名词短语）
1. {0} —— 直接提问⏎2. {1} —— 名词短语
1. 【全称】{0}⏎2. 【名词短语】{1}
1. Synonyms: {0}⏎2. Noun phrase: {1}
🔸{0}⏎🔸{1}
版本一：{0}⏎版本二：{1}
{0}; {1}
[{{"id": 1, "phrasing": "{0}"}}, {{"id": 2, "phrasing": "{1}"}}]
1. {0}⏎2. {1}⏎⏎### Explanation⏎- The first uses synonyms.⏎- The second is a noun phrase.
""".strip().split("\n")


@pytest.mark.parametrize("form", MIXED)
@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("who did the ring operas", "Who composed the Ring cycle?", "Composer of the Ring cycle"),
        ("孔子哪年生", "孔子出生于哪一年？", "孔子的出生年份"),
    ],
)
def test_phrasing_without_question_mark_is_read(form, question, first, second) -> None:
    answer = filled(form, first, second)
    assert parse_phrasings(answer, question, 5) == [first, second]


OWN_WORDS = [
    ("which films?", ["[REC] plot", "[REC] director", "[REC] cast"]),
    ("is it the fruit?", ["Apple (fruit)", "Apple (company)"]),
    ("compare a and b", ["Episode 1: A New Hope", "Episode 2: what happens?"]),
    ("opening hours", ["星期一：营业时间", "星期二：营业时间"]),
    ("norwegian plays", ["Brand – Ibsen", "Peer Gynt – Ibsen"]),
    ("simple?", ["Is it already simple enough?", "When can it not be divided?"]),
    ("不能分", ["质数为什么不能再分解？", "质数有哪些？"]),
    ("code", ["__init__", "__call__"]),
]


@pytest.mark.parametrize(("question", "items"), OWN_WORDS)
@pytest.mark.parametrize("form", ["{}", "- {}"])
def test_words_of_items_that_look_like_remarks_stay(form, question, items) -> None:
    answer = "\n".join(form.format(item) for item in items)
    assert parse_phrasings(answer, question, 5) == items


ALREADY_SIMPLE = [
    "NONE\n\nThe question asks about one thing.",
    "NONE (the question is simple)",
    "No simpler questions are needed.",
    '{"questions": ["NONE"]}',
    '{"questions": null}',
    "无子问题",
    "该问题只涉及一件事，不能再分。",
    "Simpler questions:\nNONE",
    "The question is already simple, so: NONE",
    "This question cannot be broken down any further.",
    "There is no need to break it down.",
    "子问题：无",
    "该问题已经足够简单，无需分解。",
]


@pytest.mark.parametrize("answer", ALREADY_SIMPLE)
def test_question_that_needs_no_parts_has_none(answer: str) -> None:
    assert parse_sub_questions(answer, QUESTION, 5) == []


def test_name_with_underscores_stays_at_end_of_phrasing() -> None:
    answer = "What does __init__ do?\nclass constructor __init__"
    assert parse_phrasings(answer, "dunder init", 5) == answer.split("\n")


@pytest.mark.parametrize("mark", [";", "；"])
def test_last_phrasing_behind_semicolon_needs_no_question_mark(mark: str) -> None:
    answer = f"How high is Everest?{mark} How tall is it?{mark} Everest elevation"
    expected = ["How high is Everest?", "How tall is it?", "Everest elevation"]
    assert parse_phrasings(answer, "everest height", 5) == expected


@pytest.mark.parametrize("name", ["nile-docs", "Nile docs", "nile\\_docs", "nile_docs"])
def test_signs_in_names_of_tools_do_not_count(name: str) -> None:
    answer = f"{name}: How long is the Nile?"
    pairs = [("nile_docs", "How long is the Nile?")]
    assert parse_tool_questions(answer, ["nile_docs", "other"], "How long?") == (pairs, [])


def test_space_without_width_is_removed() -> None:
    assert parse_query("\u200bWho wrote it?", "who?") == "Who wrote it?"


def test_tools_before_chinese_hyphens_are_read() -> None:
    answer = "地理-最高的山是哪座？\n人物-谁先登上了它？"
    pairs = [("地理", "最高的山是哪座？"), ("人物", "谁先登上了它？")]
    assert parse_tool_questions(answer, ["地理", "人物"], "谁？") == (pairs, [])


def test_leftover_tag_is_named() -> None:
    with pytest.raises(ValueError, match=r"the answer has the tag <search>"):
        parse_query("Query: <search> Where did he live?", "where")
