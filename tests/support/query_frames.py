"""Formats in which language models present queries, such as calls, labels, arrows and comments.

In these formats, ``{q}`` represents a query, ``{o}`` the user's question, ``{a}`` and ``{b}`` two
items, and ``{t1}`` and ``{t2}`` the tools of these items. ``⏎`` represents a line break and ``⇥`` a
tab. Each format is parsed with English and Chinese items.
"""

# ruff: noqa: E501

QUERY_FRAMES = r"""
[[Search: {q}]]
[[搜索：{q}]]
Sure: {q}
好的：{q}
tool_call: search("{q}")
{q} {q}
{q}{q}
{o} → {q}
{o} -> {q}
{o} => {q}
"{o}" becomes "{q}"
“{o}”改写为“{q}”
[SEARCH] {q}
[检索] {q}
[SEARCH]{q}[/SEARCH]
[检索]{q}[/检索]
{{{{{q}}}}}
{{search: {q}}}
{{搜索：{q}}}
<<{q}>>
<|query|>{q}<|end|>
<|im_start|>assistant⏎{q}<|im_end|>
### Response:⏎{q}
### 回答：⏎{q}
### Rewritten Query⏎{q}
### 改写后的问题⏎{q}
**Rewritten query:** {q}
**改写后的问题：** {q}
**Rewritten query**: {q}
**改写后的问题**：{q}
**{q}**
Search query: "{q}"
检索词：“{q}”
search_query = "{q}"
query: {q}
查询: {q}
query: >⏎  {q}
query: |⏎  {q}
---⏎query: {q}⏎---
search("{q}")
搜索（“{q}”）
search(query="{q}")
print(search("{q}"))
```tool_code⏎print(search(query="{q}"))⏎```
Thought: I should look this up.⏎Action: search⏎Action Input: {q}
思考：需要检索。⏎行动：搜索⏎行动输入：{q}
Action: search⏎Action Input: "{q}"
Action: Search[{q}]
行动：搜索[{q}]
Search[{q}]
搜索[{q}]
<tool_call>⏎{{"name": "search", "arguments": {{"query": "{q}"}}}}⏎</tool_call>
[TOOL_CALLS] [{{"name": "search", "arguments": {{"query": "{q}"}}}}]
{{"tool": "search", "input": "{q}"}}
{{"action": "search", "action_input": "{q}"}}
<search>{q}</search>
<搜索>{q}</搜索>
<function=search><parameter=query>{q}</parameter></function>
<invoke name="search"><parameter name="query">{q}</parameter></invoke>
✅ {q}
🔍 {q}
🔍 Search: {q}
🔍 搜索：{q}
👉 {q}
→ {q}
> {q}
Okay, here you go: {q}
好的，给你：{q}
Certainly! {q}
当然！{q}
Sure! Here's the rewritten question:⏎⏎{q}
好的！改写后的问题如下：⏎⏎{q}
{q}⏎⏎Let me know if you need anything else!
{q}⏎⏎如果还需要其他帮助，请告诉我！
{q}⏎⏎(Corrected the typo in the name.)
{q}⏎⏎（改正了错字。）
{q} (rewritten)
{q}（改写后）
Original: {o}⏎Rewritten: {q}
原问题：{o}⏎改写：{q}
Before: {o}⏎After: {q}
改写前：{o}⏎改写后：{q}
| Original | Rewritten |⏎|---|---|⏎| {o} | {q} |
| 原问题 | 改写后 |⏎|---|---|⏎| {o} | {q} |
Q: {q}
问：{q}
Q: {q}⏎A:
问：{q}⏎答：
Assistant: {q}
助手：{q}
Answer: {q}
答案：{q}
Output: {q}
输出：{q}
Final answer: {q}
最终答案：{q}
\boxed{{{q}}}
$\boxed{{\text{{{q}}}}}$
<answer>{q}</answer>
<rewritten_question>⏎{q}⏎</rewritten_question>
<改写>⏎{q}⏎</改写>
“{q}”
「{q}」
`{q}`
1. {q}
1、{q}
- {q}
{{"query": "{q}"}}
{{"查询": "{q}"}}
{{"rewritten_query": "{q}", "reason": "typo"}}
{{"改写": "{q}", "理由": "错字"}}
["{q}"]
"{q}"
<think>The user greets.</think>⏎{q}
<think>用户打招呼。</think>⏎{q}
I would search for: {q}
我会搜索：{q}
I'd search for "{q}".
我会检索“{q}”。
The rewritten question is: {q}
改写后的问题是：{q}
The question could be rephrased as "{q}".
这个问题可以改写为“{q}”。
Rewritten question (clear version): {q}
改写后的问题（清晰版）：{q}
{q}⏎{q}
{q}⏎⏎Explanation: I removed the greeting.
{q}⏎⏎说明：去掉了寒暄。
{q} // removed the greeting
{q} // 去掉了寒暄
<p>{q}</p>
<html><body><p>{q}</p></body></html>
<br>{q}<br/>
search: {q}
搜索：{q}
SEARCH({q})
web_search: {q}
/search {q}
@search {q}
functions.search({{"query": "{q}"}})
to=functions.search <|message|>{{"query": "{q}"}}
<query>{q}
No changes needed: {q}
无需修改：{q}
The question is already clear: {q}
问题已经很清楚：{q}
{q}<|endoftext|>
<s>{q}</s>
[INST] {q} [/INST]
\"{q}\"
"query": "{q}"
"query" => "{q}"
Rewrite #1: {q}
改写1：{q}
Option 1: {q}
方案一：{q}
【Query】{q}
【改写】{q}
return "{q}"
console.log("{q}");
echo "{q}"
QUERY="{q}"
* **Query**: {q}
* **问题**：{q}
Rewritten: {q} | Reason: typo
改写：{q} | 理由：错字
Standalone question: {q}
独立问题：{q}
User: {o}⏎Assistant: {q}
用户：{o}⏎助手：{q}
Rewritten question — {q}
改写后的问题——{q}
Here is the rewritten question {q}
改写后的问题为{q}
```json⏎{{"result": {{"query": "{q}"}}}}⏎```
[query]⏎text = "{q}"
{{'query': '{q}'}}
queries = ['{q}']
<?xml version="1.0"?>⏎<query>{q}</query>
<query><![CDATA[{q}]]></query>
&quot;{q}&quot;
\text{{{q}}}
__{q}__
[Query]: {q}
[问题]：{q}
(Query) {q}
（问题）{q}
*** {q} ***
---⏎{q}⏎---
Hello! I'd be happy to help. {q}
您好！很高兴为您服务。{q}
~~~⏎{q}⏎~~~
Here's what I'd look up: {q}
我要查的是：{q}
Try this: {q}
试试这个：{q}
Maybe: {q}
或许：{q}
Result -> {q}
结果 -> {q}
Rewritten → {q}
改写 → {q}
Input: {o}⏎Output: {q}
输入：{o}⏎输出：{q}
From: {o}⏎To: {q}
原文：{o}⏎改文：{q}
«{q}»
《{q}》
query == {q}
# rewritten query⏎{q}
# 改写后的查询⏎{q}
SELECT * FROM docs WHERE q = '{q}'
search("{q}", top_k=5)
await search("{q}")
$ search "{q}"
>>> search("{q}")
results = search("{q}")
{{"method": "tools/call", "params": {{"name": "search", "arguments": {{"query": "{q}"}}}}}}
{{"function_call": {{"name": "search", "arguments": "{{\"query\": \"{q}\"}}"}}}}
<search query="{q}"/>
<tool name="search" query="{q}"></tool>
"Rewritten question": {q}
“改写后的问题”：{q}
*Rewritten question:* {q}
*改写后的问题：*{q}
# {q}
{q} {q} {q}
{q}{q}{q}
{q} - {q}
{q}——{q}
"{q}"⏎"{q}"
OK. {q}
好。{q}
Got it! {q}
明白了！{q}
Thanks for your question! {q}
感谢您的提问！{q}
Understood. Here is the search query: {q}
明白。检索词如下：{q}
{q} [typo corrected]
{q}【已改正错字】
{q} — corrected the spelling
{q}——已改正错字
{q}⏎⏎Changes made:⏎- removed the greeting⏎- corrected the name
{q}⏎⏎修改说明：⏎- 去掉寒暄⏎- 改正错字
{q}⏎*Note: typo corrected.*
{q}⏎*注：改正了错字。*
<strong>Query:</strong> {q}
<strong>问题：</strong>{q}
<span class="query">{q}</span>
<code>{q}</code>
``{q}''
'''{q}'''
f"{q}"
query: "{q}"
query: {q}⏎reason: typo
查询: {q}⏎理由: 错字
[rewrite]⏎query = {q}
Search Query:⏎⏎{q}
检索问题：⏎⏎{q}
➡️ **{q}**
🔎 **Search query:** {q}
🔎 **检索词：** {q}
🤖: {q}
🤖：{q}
Bot: {q}
机器人：{q}
AI: {q}
AI：{q}
[assistant]: {q}
[助手]：{q}
| {q} |
|| {q} ||
=== {q} ===
{{"role": "assistant", "content": "{q}"}}
{{"choices": [{{"message": {{"content": "{q}"}}}}]}}
{{"": "{q}"}}
{{"queries": ["{q}"]}}
data: {{"query": "{q}"}}
Revised: {q}
修订：{q}
FINAL => {q}
最终 => {q}
Ok so here's my attempt: {q}
我来试试：{q}
Clean version: {q}
清理后：{q}
Output: "{q}"
输出：“{q}”
The result is {{"rewritten": "{q}"}}.
结果是 {{"改写": "{q}"}}。
✔ {q}
☞ {q}
■ {q}
<rewrite>{q}</rewrite>
<改写后>{q}</改写后>
[thinking] user wants height [/thinking] {q}
const query = "{q}";
String query = "{q}";
SEARCH FOR '{q}'
site search: {q}
站内搜索：{q}
Refined search: {q}
优化检索：{q}
I think you mean: {q}
我想您是问：{q}
Did you mean {q}
您是想问{q}
(no greeting) {q}
（去掉寒暄）{q}
Version A: {q}⏎Version B: {q}
版本A：{q}⏎版本B：{q}
{q}⏎⏎Note that the original had a typo.
{q}⏎⏎注意原问题有错字。
1. "{q}"
1. “{q}”
...{q}
……{q}
{q}  # clean
{q}  # 清理
{q} [END]
{q}【完】
{q} Done.
{q}完成。
query - {q}
问题 - {q}
""".strip().split("\n")

LIST_FRAMES = r"""
[[Search: {a}]]⏎[[Search: {b}]]
[[搜索：{a}]]⏎[[搜索：{b}]]
search("{a}")⏎search("{b}")
{a} {b}
{a}{b}
{a}; {b}
{a}；{b}
{a} | {b}
[{a}] [{b}]
{a}⏎---⏎{b}
{a}⏎⏎⏎{b}
Sub-question 1: {a}⏎Sub-question 2: {b}
子问题1：{a}⏎子问题2：{b}
Sub-question #1⏎{a}⏎Sub-question #2⏎{b}
子问题一⏎{a}⏎子问题二⏎{b}
Q1: {a}⏎Q2: {b}
SQ1) {a}⏎SQ2) {b}
<q>{a}</q><q>{b}</q>
<ol><li>{a}</li><li>{b}</li></ol>
<sub_questions>⏎<question id="1">{a}</question>⏎<question id="2">{b}</question>⏎</sub_questions>
questions:⏎  - {a}⏎  - {b}
子问题:⏎  - {a}⏎  - {b}
- question: {a}⏎- question: {b}
- 问题: {a}⏎- 问题: {b}
- question: {a}⏎  reason: needed first⏎- question: {b}⏎  reason: needed then
- 问题: {a}⏎  理由: 先要知道⏎- 问题: {b}⏎  理由: 然后要知道
queries = ["{a}", "{b}"]
[{{"id": 1, "question": "{a}"}}, {{"id": 2, "question": "{b}"}}]
{{"sub_questions": [{{"sub_question": "{a}", "reason": "first"}}, {{"sub_question": "{b}", "reason": "then"}}]}}
{{"q": "{a}"}}⏎{{"q": "{b}"}}
1,{a}⏎2,{b}
id,question⏎1,"{a}"⏎2,"{b}"
1⇥{a}⏎2⇥{b}
"{a}",⏎"{b}"
(1) {a} (2) {b}
（1）{a}（2）{b}
1. {a} 2. {b}
1、{a}2、{b}
① {a} ② {b}
①{a}②{b}
First, {a}⏎Second, {b}
首先，{a}⏎其次，{b}
First: {a}⏎Second: {b}
第一：{a}⏎第二：{b}
i. {a}⏎ii. {b}
I) {a}⏎II) {b}
1 - {a}⏎2 - {b}
1: {a}⏎2: {b}
1：{a}⏎2：{b}
1| {a}⏎2| {b}
#1 {a}⏎#2 {b}
Step 1 → {a}⏎Step 2 → {b}
第一步 → {a}⏎第二步 → {b}
1️⃣ {a}⏎2️⃣ {b}
• {a}⏎• {b}
·{a}⏎·{b}
➤ {a}⏎➤ {b}
▶{a}⏎▶{b}
+ {a}⏎+ {b}
★ {a}⏎★ {b}
- [ ] {a}⏎- [x] {b}
1. **{a}**⏎2. **{b}**
**1.** {a}⏎**2.** {b}
1. **Writing**: {a}⏎2. **Painting**: {b}
1. **写作**：{a}⏎2. **绘画**：{b}
1. {a}⏎   - Reason: it comes first.⏎2. {b}⏎   - Reason: it comes next.
1. {a}⏎   - 理由：先要知道。⏎2. {b}⏎   - 理由：然后要知道。
## Sub-questions⏎1. {a}⏎2. {b}
## 子问题⏎1. {a}⏎2. {b}
1. {a}⏎2. {b}⏎⏎Together these questions answer the original one.
1. {a}⏎2. {b}⏎⏎这两个问题合起来就能回答原问题。
{{"{a}", "{b}"}}
("{a}", "{b}")
```yaml⏎- {a}⏎- {b}⏎```
```xml⏎<questions>⏎  <q>{a}</q>⏎  <q>{b}</q>⏎</questions>⏎```
<table><tr><td>1</td><td>{a}</td></tr><tr><td>2</td><td>{b}</td></tr></table>
| Question | Purpose |⏎|---|---|⏎| {a} | the writer |⏎| {b} | the painter |
| 问题 | 目的 |⏎|---|---|⏎| {a} | 作者 |⏎| {b} | 画家 |
Nr | Question⏎--- | ---⏎1 | {a}⏎2 | {b}
序号 | 问题⏎--- | ---⏎1 | {a}⏎2 | {b}
1.⏎{a}⏎2.⏎{b}
Question 1⏎{a}⏎⏎Question 2⏎{b}
问题1⏎{a}⏎⏎问题2⏎{b}
First question: {a}⏎Second question: {b}
第一个问题：{a}⏎第二个问题：{b}
1) "{a}"⏎2) "{b}"
1）“{a}”⏎2）“{b}”
"1": "{a}"⏎"2": "{b}"
(a) {a}⏎(b) {b}
（甲）{a}⏎（乙）{b}
A. {a}⏎B. {b}
甲、{a}⏎乙、{b}
[1] {a}⏎[2] {b}
【1】{a}⏎【2】{b}
one. {a}⏎two. {b}
一、{a}⏎二、{b}
To answer this, we need to know two things:⏎{a}⏎{b}
要回答这个问题，需要知道两件事：⏎{a}⏎{b}
Original question: {o}⏎⏎Sub-questions:⏎- {a}⏎- {b}
原问题：{o}⏎⏎子问题：⏎- {a}⏎- {b}
{o}⏎→ {a}⏎→ {b}
{o} → {a}⏎{o} → {b}
{{"question_1": "{a}", "question_2": "{b}"}}
{{"问题1": "{a}", "问题2": "{b}"}}
Action: search⏎Action Input: {a}⏎Action: search⏎Action Input: {b}
[{{"name": "search", "arguments": {{"query": "{a}"}}}}, {{"name": "search", "arguments": {{"query": "{b}"}}}}]
<tool_call>{{"name": "search", "arguments": {{"query": "{a}"}}}}</tool_call>⏎<tool_call>{{"name": "search", "arguments": {{"query": "{b}"}}}}</tool_call>
"{a}" and "{b}"
“{a}”和“{b}”
{a}⏎{b}⏎{a}⏎{b}
{a} {a}⏎{b} {b}
{a}{a}⏎{b}{b}
Sure: {a}⏎And: {b}
好的：{a}⏎还有：{b}
<q>{a}⏎<q>{b}
['{a}',⏎ '{b}',⏎]
[⏎  "{a}", // first⏎  "{b}"  // second⏎]
Thoughts: there are two things.⏎Questions:⏎{a}⏎{b}
思考：有两件事。⏎问题：⏎{a}⏎{b}
1. [[{a}]]⏎2. [[{b}]]
Step 1: {a}⏎Step 2: {b}
步骤1：{a}⏎步骤2：{b}
I need to know:⏎1) {a}⏎2) {b}
我需要知道：⏎1）{a}⏎2）{b}
-> {a}⏎-> {b}
Search: {a}⏎Search: {b}
搜索：{a}⏎搜索：{b}
🔍 {a}⏎🔍 {b}
🎭 {a}⏎🎨 {b}
{{"result": {{"questions": ["{a}", "{b}"]}}}}
["{a}", "{b}"]⏎⏎These cover the question.
["{a}", "{b}"]⏎⏎以上覆盖了问题。
The sub-questions are: ["{a}", "{b}"]
子问题如下：["{a}", "{b}"]
```text⏎1. {a}⏎2. {b}⏎```
{a} / {b}
{a} // {b}
{a}\n{b}
{a} Then: {b}
{a}然后：{b}
Question 1: {a} Question 2: {b}
问题1：{a} 问题2：{b}
{a} (1)⏎{b} (2)
{a}（1）⏎{b}（2）
**Question 1:** {a}⏎⏎**Question 2:** {b}
**问题1：** {a}⏎⏎**问题2：** {b}
1. {a}⏎2. {b} (depends on 1)
1. {a}⏎2. {b}（依赖1）
A: {a}⏎B: {b}
q1 = "{a}"⏎q2 = "{b}"
<div>{a}</div>⏎<div>{b}</div>
<item>{a}</item><item>{b}</item>
"{a}", "{b}"
“{a}”、“{b}”
I. {a}⏎II. {b}
(1){a}⏎(2){b}
（一）{a}⏎（二）{b}
    {a}⏎    {b}
⇥{a}⏎⇥{b}
> {a}⏎> {b}
{a}⏎Reason: first.⏎{b}⏎Reason: next.
{a}⏎理由：先要知道。⏎{b}⏎理由：然后知道。
Plan:⏎Step 1. {a}⏎Step 2. {b}⏎Done.
计划：⏎第1步 {a}⏎第2步 {b}⏎完成。
{{"sub1": "{a}", "sub2": "{b}"}}
{{"steps": [{{"step": 1, "query": "{a}"}}, {{"step": 2, "query": "{b}"}}]}}
➊ {a}⏎➋ {b}
- Need: {a}⏎- Need: {b}
- 需要：{a}⏎- 需要：{b}
{a} → {b}
{a}⏎and⏎{b}
{a}⏎和⏎{b}
* '{a}'⏎* '{b}'
""".strip().split("\n")

TOOL_FRAMES = r"""
{t1}("{a}")⏎{t2}("{b}")
{t1}(question="{a}")⏎{t2}(question="{b}")
{t1}[{a}]⏎{t2}[{b}]
- **{t1}**: {a}⏎- **{t2}**: {b}
1. `{t1}`: {a}⏎2. `{t2}`: {b}
{t1} → {a}⏎{t2} → {b}
{a} → {t1}⏎{b} → {t2}
{a} ({t1})⏎{b} ({t2})
{a}（{t1}）⏎{b}（{t2}）
{a} [{t1}]⏎{b} [{t2}]
<{t1}>{a}</{t1}>⏎<{t2}>{b}</{t2}>
<question tool="{t1}">{a}</question>⏎<question tool="{t2}">{b}</question>
| Tool | Question |⏎|---|---|⏎| {t1} | {a} |⏎| {t2} | {b} |
| 工具 | 问题 |⏎|---|---|⏎| {t1} | {a} |⏎| {t2} | {b} |
| Question | Tool |⏎|---|---|⏎| {a} | {t1} |⏎| {b} | {t2} |
| 问题 | 工具 |⏎|---|---|⏎| {a} | {t1} |⏎| {b} | {t2} |
[{{"tool": "{t1}", "question": "{a}"}}, {{"tool": "{t2}", "question": "{b}"}}]
[{{"tool_name": "{t1}", "sub_question": "{a}"}}, {{"tool_name": "{t2}", "sub_question": "{b}"}}]
[{{"name": "{t1}", "arguments": {{"query": "{a}"}}}}, {{"name": "{t2}", "arguments": {{"query": "{b}"}}}}]
<tool_call>{{"name": "{t1}", "arguments": {{"query": "{a}"}}}}</tool_call>⏎<tool_call>{{"name": "{t2}", "arguments": {{"query": "{b}"}}}}</tool_call>
Action: {t1}⏎Action Input: {a}⏎⏎Action: {t2}⏎Action Input: {b}
Use {t1} for: {a}⏎Use {t2} for: {b}
用{t1}：{a}⏎用{t2}：{b}
### {t1}⏎{a}⏎⏎### {t2}⏎{b}
**{t1}**⏎- {a}⏎⏎**{t2}**⏎- {b}
- tool: {t1}⏎  question: {a}⏎- tool: {t2}⏎  question: {b}
- 工具: {t1}⏎  问题: {a}⏎- 工具: {t2}⏎  问题: {b}
Question: {a}⏎Tool: {t1}⏎Question: {b}⏎Tool: {t2}
问题：{a}⏎工具：{t1}⏎问题：{b}⏎工具：{t2}
{t1} | {a}⏎{t2} | {b}
[[{t1}: {a}]]⏎[[{t2}: {b}]]
[[{t1}：{a}]]⏎[[{t2}：{b}]]
@{t1} {a}⏎@{t2} {b}
{t1} - {a}⏎{t2} - {b}
{t1}——{a}⏎{t2}——{b}
Tool {t1}: {a}⏎Tool {t2}: {b}
工具{t1}：{a}⏎工具{t2}：{b}
{t1},{a}⏎{t2},{b}
{t1}: {a} {a}⏎{t2}: {b} {b}
{t1}：{a}{a}⏎{t2}：{b}{b}
tool_call: {t1}("{a}")⏎tool_call: {t2}("{b}")
Ask {t1}: {a}⏎Ask {t2}: {b}
问{t1}：{a}⏎问{t2}：{b}
{{"{t1}": ["{a}"], "{t2}": ["{b}"]}}
1. {t1} - {a}⏎2. {t2} - {b}
Q: {a} | T: {t1}⏎Q: {b} | T: {t2}
[{t1}] {a}⏎[{t2}] {b}
<invoke name="{t1}"><parameter name="query">{a}</parameter></invoke>⏎<invoke name="{t2}"><parameter name="query">{b}</parameter></invoke>
functions.{t1}({{"question": "{a}"}})⏎functions.{t2}({{"question": "{b}"}})
Search {t1} for "{a}"⏎Search {t2} for "{b}"
在{t1}中检索“{a}”⏎在{t2}中检索“{b}”
[{{"id": 1, "tool": "{t1}", "input": "{a}"}}, {{"id": 2, "tool": "{t2}", "input": "{b}"}}]
{t1}: "{a}"⏎{t2}: "{b}"
{t1}：“{a}”⏎{t2}：“{b}”
call {t1} -> {a}⏎call {t2} -> {b}
/{t1} {a}⏎/{t2} {b}
""".strip().split("\n")
