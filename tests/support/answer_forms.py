"""Formats in which language models write queries, lists, questions for tools, and reasoning.

``⏎`` represents a line break and ``⇥`` a tab. ``{0}`` and ``{1}`` are placeholders for items.
"""

# ruff: noqa: E501

from collections.abc import AsyncIterator, Iterator

QUERY_FORMS = r"""
Here is the rewritten query: {0}
Here's the rewritten question: {0}
Here is a clearer version of the query: {0}
Here is the rewritten question: "{0}"
Sure! Here is the rewritten question: {0}
Sure, here's the improved query: **{0}**
Certainly! The rewritten question is: {0}
Rewritten question: {0}⏎⏎I corrected the spelling.
The rewritten question:⏎⏎{0}
[Search: {0}]
[Search] {0}
[search: "{0}"]
<search>{0}</search>
search: {0}
Search: {0}
Query: {0}
query: {0}
Question: {0}
{0} NO_ANSWER
{0}⏎NO_ANSWER
{0}⏎⏎NO_ANSWER
{0}⏎无答案
<search_query>{0}</search_query>
<standalone_question>{0}</standalone_question>
<improved>{0}</improved>
<rewrite>⏎{0}⏎</rewrite>
<final>{0}</final>
<final_answer>{0}</final_answer>
<response>{0}</response>
<response>⏎<query>{0}</query>⏎</response>
<output>⏎{0}⏎</output>
<text>{0}</text>
<content>{0}</content>
<xml><query>{0}</query></xml>
<?xml version="1.0"?>⏎<query>{0}</query>
<query><![CDATA[{0}]]></query>
<query type="rewritten">{0}</query>
<query>⏎  <text>{0}</text>⏎</query>
<result><query>{0}</query><reason>typo</reason></result>
<scratchpad>typos in it</scratchpad>⏎<query>{0}</query>
<analysis>There are typos.</analysis>⏎<query>{0}</query>
<reasoning>There are typos.</reasoning>⏎<answer>{0}</answer>
<thought>Hm?</thought>⏎<rewritten_query>{0}</rewritten_query>
<Query>{0}</Query>
<QUERY>{0}</QUERY>
<rewrittenQuery>{0}</rewrittenQuery>
<rewritten-query>{0}</rewritten-query>
<query> {0} </query>.
"<query>{0}</query>"
<query>"{0}"</query>
<query>**{0}**</query>
<query>`{0}`</query>
Query: <query>{0}</query>
The rewritten query is <query>{0}</query>
I rewrote it: <query>{0}</query>
Here is the rewritten query: <query>{0}</query>
Sure! <rewritten_query>{0}</rewritten_query>
<query>{0}</query> I fixed the typos.
<query>{0}</query>⏎⏎I fixed the typos and made it clearer.
<original>wher</original><rewritten>{0}</rewritten>
<input>wher did ibsn live</input>⏎<output>{0}</output>
<user_query>wher did ibsn live</user_query>⏎<query>{0}</query>
<step>fix</step>⏎<query>{0}</query>
<问题>{0}</问题>
<查询>{0}</查询>
<改写后的问题>{0}</改写后的问题>
<结果>{0}</结果>
<answer>⏎Rewritten question: {0}⏎</answer>
<think>⏎Hm?⏎</think>⏎⏎{0}
<think></think>⏎{0}
</think>⏎{0}
Let me think?⏎</think>⏎⏎{0}
<thinking>x?</thinking>{0}
<Thinking>x?</Thinking>⏎{0}
<reflection>x?</reflection>{0}
<|begin_of_thought|>x?<|end_of_thought|><|begin_of_solution|>{0}<|end_of_solution|>
<|begin_of_thought|>⏎x?⏎<|end_of_thought|>⏎⏎<|begin_of_solution|>⏎{0}⏎<|end_of_solution|>
<reasoning_content>x?</reasoning_content>{0}
<internal>x?</internal>{0}
<inner_thoughts>x?</inner_thoughts>{0}
<|thinking|>x?<|/thinking|>{0}
<|im_start|>assistant⏎{0}<|im_end|>
<|assistant|>{0}
{0}<|im_end|>
{0}<|endoftext|>
{0}</s>
<s>{0}</s>
{0}<|eot_id|>
{0}<end_of_turn>
[THINK]x?[/THINK]⏎{0}
[THINKING]x?[/THINKING]⏎{0}
◁think▷x?◁/think▷{0}
<seed:think>⏎x?⏎</seed:think>⏎{0}
<seed:think><seed:cot_budget_reflect>x</seed:cot_budget_reflect>x?</seed:think>{0}
<|channel|>analysis<|message|>x?<|end|><|start|>assistant<|channel|>final<|message|>{0}<|return|>
<|start|>assistant<|channel|>analysis<|message|>x?<|end|><|start|>assistant<|channel|>final<|message|>{0}
<|channel|>commentary<|message|>x?<|end|><|channel|>final<|message|>{0}<|end|>
<|channel|>final<|message|>{0}
analysis: x?⏎final: {0}
**Thinking:** x?⏎⏎**Answer:** {0}
### Thinking⏎x?⏎### Answer⏎{0}
## Reasoning⏎⏎x?⏎⏎## Rewritten query⏎⏎{0}
Thinking Process:⏎⏎1. x?⏎⏎</think>⏎⏎{0}
Thought: typos.⏎Query: {0}
思考：有错字。⏎改写：{0}
【思考】有错字【/思考】{0}
<思考>有错字</思考>{0}
<think>x?</think>⏎<query>{0}</query>
<details><summary>Reasoning</summary>x?</details>{0}
```⏎{0}⏎```
```text⏎{0}⏎```
```json⏎{{"query": "{0}"}}⏎```
```json⏎{{⏎  "rewritten_query": "{0}"⏎}}⏎```
{{"question": "{0}"}}
{{"rewritten_question": "{0}"}}
{{"rewrite": "{0}"}}
{{"text": "{0}"}}
{{"result": "{0}"}}
{{"output": "{0}"}}
{{"search": "{0}"}}
{{"q": "{0}"}}
{{"answer": "{0}"}}
{{"queries": ["{0}"]}}
["{0}"]
[{{"query": "{0}"}}]
{{'query': '{0}'}}
{{"query": "{0}"
{{"query": "{0}
{{query: "{0}"}}
{{"reasoning": "typos", "query": "{0}"}}
{{"thought": "typos?", "rewritten": "{0}"}}
{{"query": {{"text": "{0}"}}}}
{{"result": {{"query": "{0}"}}}}
{{"name": "search", "parameters": {{"query": "{0}"}}}}
{{"tool": "search", "tool_input": "{0}"}}
{{"action": "search", "action_input": "{0}"}}
{{"改写后的问题": "{0}"}}
{{"查询": "{0}"}}
"{0}"
'{0}'
“{0}”
‘{0}’
『{0}』
《{0}》
**{0}**
*{0}*
__{0}__
***{0}***
# {0}
## {0}
> {0}
- {0}
* {0}
1. {0}
=> {0}
→ {0}
-> {0}
({0})
"{0}".
{0}"
"{0}
Answer: {0}
Final answer: {0}
**Final Answer:** {0}
Final query: {0}
Final Query: **{0}**
Output: {0}
Result: {0}
Response: {0}
Revised: {0}
Revised question: {0}
Corrected: {0}
Corrected query: {0}
Corrected question: "{0}"
Clarified question: {0}
Optimized query: {0}
Optimized search query: "{0}"
Standalone question: {0}
Reformulated query: {0}
Reformulated: {0}
Rephrased: {0}
Rephrased question: {0}
Suggested query: {0}
Suggested rewrite: {0}
Better: {0}
Better query: {0}
Improved: {0}
Search for: {0}
Search term: {0}
Search terms: {0}
Web search: {0}
Google: {0}
Rewrite: {0}
Rewrite:⏎{0}
New question: {0}
Next question: {0}
Follow-up question: {0}
Follow up: {0}
Followup: {0}
Sub-question: {0}
Intermediate question: {0}
**Rewritten question:**⏎⏎{0}
**Rewritten question:** {0}⏎⏎**Explanation:** fixed typos.
{0}⏎⏎Explanation: typos.
{0}⏎⏎(Corrected the typos.)
{0}⏎⏎*Note: typos corrected.*
{0}⏎⏎Let me know if you need anything else!
{0}⏎⏎Is there anything else I can help you with?
{0} ⏎---⏎Changes: typos
---⏎{0}⏎---
Okay, {0}
OK. {0}
Sure! {0}
Of course! {0}
Great question! The rewritten question is: {0}
Based on the input, the rewritten query is: {0}
I think the user means: {0}
The user wants to know: {0}
The user is asking: {0}
The question can be rewritten as: {0}
The question can be rewritten as "{0}"
A clearer version would be: {0}
A better query would be: {0}
A clear query is: {0}
You can search: {0}
Try: {0}
Try searching for: {0}
Try "{0}"
Let me rewrite this: {0}
Let me search for: {0}
Let me rephrase: {0}
Let's search: {0}
I'll search for: {0}
I will search for "{0}"
We should ask: {0}
We need to ask: {0}
We could ask, "{0}"
Please search for: {0}
改写：{0}
改写后的问题：{0}
改写结果：{0}
改写后的查询：{0}
改写后的句子：{0}
改写为：{0}
可以改写为：{0}
问题可以改写为：“{0}”
查询：{0}
检索词：{0}
检索：{0}
搜索：{0}
搜索查询：{0}
优化后的查询：{0}
更清楚的问题：{0}
清晰的问题：{0}
答案：{0}
回答：{0}
问题：{0}
问：{0}
好的，改写后的问题是：{0}
好的，以下是改写后的问题：⏎{0}
好的！{0}
当然可以，改写后的问题：{0}
根据您的要求，改写后的问题是：{0}
原问题：x⏎改写后的问题：{0}
原问题：他住哪⏎改写：{0}
用户想问：{0}
用户的问题是：{0}
您是想问：{0}
你可以搜索：{0}
您可以这样问：“{0}”
下一个问题：{0}
下一个问题应该是：{0}
下一步应该问：{0}
我会搜索：{0}
我们需要知道：{0}
[Q] {0}
[QUERY] {0}
[QUERY]{0}[/QUERY]
[ANSWER]{0}[/ANSWER]
{{{{{0}}}}}
{{{0}}}
<{0}>
<<{0}>>
$query = "{0}"
query: "{0}"
query='{0}'
search(query="{0}")
search(query='{0}')
web.search("{0}")
google_search("{0}")
Tool: search⏎Input: {0}
Action: Search⏎Action Input: "{0}"
Action: search⏎Action Input: {{"query": "{0}"}}
Thought: I need it.⏎Action: search⏎Action Input: {0}⏎Observation:
<tool_call>search<arg_key>query</arg_key><arg_value>{0}</arg_value></tool_call>
<invoke name="search"><parameter name="query">{0}</parameter></invoke>
<tool_use><name>search</name><input>{0}</input></tool_use>
<tool_use><name>search</name><parameters><query>{0}</query></parameters></tool_use>
<use_mcp_tool><tool_name>search</tool_name><arguments>{{"query": "{0}"}}</arguments></use_mcp_tool>
functions.search({{"query": "{0}"}})
to=functions.search {{"query": "{0}"}}
<|tool_call|>[{{"name": "search", "arguments": {{"query": "{0}"}}}}]
| Original | Rewritten |⏎|---|---|⏎| x | {0} |
| query |⏎|---|⏎| {0} |
Original,Rewritten⏎x,{0}
{0}⏎{0}
- Original: x y⏎- Rewritten: {0}
1. Original: x y⏎2. Rewritten: {0}
Original: "wher did ibsn live"⏎Corrected: "{0}"
<li>{0}</li>
<ul><li>{0}</li></ul>
<html><body>{0}</body></html>
<html><body><p>{0}</p></body></html>
<div>{0}</div>
<div class="query">{0}</div>
<span class="q">{0}</span>
&quot;{0}&quot;
{0}&nbsp;
\[ {0} \]
\text{{{0}}}
$${0}$$
<think>typos</think><thinking>again</thinking><query>{0}</query>
<think>typos⏎</think>⏎Sure! Here's the rewritten query:⏎⏎**{0}**⏎⏎I fixed two typos.
<query text="{0}"/>
<rewrite query="{0}" />
<rewritten_query confidence="0.9">{0}</rewritten_query>
Certainly! Here's a clearer version of your question:⏎⏎> {0}⏎⏎Let me know if you'd like it more formal.
好的，这是优化后的检索语句：⏎⏎**{0}**⏎⏎如有需要可以继续调整。
当然！以下是改写后的查询：⏎```⏎{0}⏎```
**改写后的查询**：⏎{0}⏎⏎**说明**：修正了错别字。
The rewritten query is:⏎```⏎{0}⏎```⏎It fixes the typos.
```sql⏎{0}⏎```
```plaintext⏎{0}⏎```
Sure, here it is: {{"query": "{0}", "language": "en"}}
{{"query": "{0}", "filters": null}}
{{"query": "{0}", "confidence": 0.95}}
{{"reasoning": "There are typos. I fix them.", "rewritten_query": "{0}", "keywords": ["a", "b"]}}
{{"thinking": "typos", "final_query": "{0}"}}
{{"original": "x y", "corrected": "{0}", "changes": ["spelling"]}}
{{"status": "ok", "data": {{"query": "{0}"}}}}
{{"choices": [{{"message": {{"role": "assistant", "content": "{0}"}}}}]}}
{{"role": "assistant", "content": "{0}"}}
{{"reasoning": "typos", "query": "{0}", "alternatives": ["x
1. Original question: x y⏎2. Issues: typos⏎3. Rewritten question: {0}
**Original:** wher did he⏎⏎**Rewritten:** {0}⏎⏎**Why:** clearer.
| Field | Value |⏎|---|---|⏎| Rewritten query | {0} |
Step 1: Identify typos.⏎Step 2: Fix them.⏎⏎Rewritten query: {0}
Your question, rewritten: {0}
Rewritten (English): {0}
**Q:** {0}
Q: {0}⏎A: Unknown
改写后的检索问题如下：⏎{0}
我将问题改写为：{0}⏎⏎理由：更清楚。
rewritten: >-⏎  {0}
query: |⏎  {0}
- query: {0}
"query": "{0}"
<tool_call>⏎<function=search>⏎<parameter=query>⏎{0}⏎</parameter>⏎</function>⏎</tool_call>
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search⏎```json⏎{{"query": "{0}"}}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{{"query": "{0}"}}<|tool_call_end|><|tool_calls_section_end|>
<|channel|>commentary to=functions.search <|constrain|>json<|message|>{{"query": "{0}"}}<|call|>
[{{"type": "text", "text": "{0}"}}]
{{"type": "text", "text": "{0}"}}
{{"result": "{{\"query\": \"{0}\"}}"}}
<output>⏎<thinking>typos</thinking>⏎<query>{0}</query>⏎</output>
<response><thought>typos</thought><rewritten>{0}</rewritten></response>
{0}⏎⏎(Note: I corrected "ibsn" to "Ibsen".)
{0}⏎⏎**Changes made:**⏎- fixed spelling
{0} // fixed
✅ {0}
🔍 {0}
Rewritten query⏎==============⏎{0}
""".strip().split("\n")

REWRITE_FORMS = r"""
After correcting the typos, the question reads: {0}
I've rewritten your query for clarity: "{0}"
修正后的问题是“{0}”。
to=search code<|message|>{{"query": "{0}"}}
Rewritten query ➜ {0}
Rewritten query → {0}
""".strip().split("\n")
"""Forms around a query that shares words with the question of the user."""

LIST_FORMS = r"""
Here are the sub-questions: {0} {1}
Here are the sub-questions:⏎{0}⏎{1}
Here are two questions: "{0}" and "{1}"
Sub-questions: {0}; {1}
Sub-questions:⏎- {0}⏎- {1}
Questions: 1) {0} 2) {1}
Simpler questions:⏎{0}⏎{1}
Simpler questions: {0} {1}
The question can be split into:⏎1. {0}⏎2. {1}
We need to know: {0} {1}
{0} {1}
{0},{1}
{0}, {1}
{0} / {1}
{0} // {1}
{0} & {1}
{0} then {1}
{0} + {1}
{0}; and {1}
{0}⏎⏎{1}
{0}⏎---⏎{1}
{0}⏎***⏎{1}
{0}\n{1}
{0}<br/>{1}
{0}<br>⏎{1}<br>
1 {0}⏎2 {1}
01. {0}⏎02. {1}
1.{0}⏎2.{1}
1- {0}⏎2- {1}
1-{0}⏎2-{1}
1) {0};⏎2) {1}.
1. {0},⏎2. {1}
[1]. {0}⏎[2]. {1}
(a). {0}⏎(b). {1}
<a> {0}⏎<b> {1}
A) {0}⏎B) {1}
(A) {0}⏎(B) {1}
A: {0}⏎B: {1}
a: {0}⏎b: {1}
A - {0}⏎B - {1}
(i) {0}⏎(ii) {1}
(I) {0}⏎(II) {1}
I) {0}⏎II) {1}
α) {0}⏎β) {1}
第1：{0}⏎第2：{1}
第一个子问题：{0}⏎第二个子问题：{1}
第一步：{0}⏎第二步：{1}
第1步，{0}⏎第2步，{1}
第一：{0}⏎第二：{1}
第一、{0}⏎第二、{1}
第一,{0}⏎第二,{1}
其一，{0}⏎其二，{1}
一是{0}⏎二是{1}
（1）{0}（2）{1}
（一）{0}（二）{1}
①{0}②{1}
1、{0} 2、{1}
1、{0}；2、{1}
第一，{0}第二，{1}
首先：{0}⏎然后：{1}
先问：{0}⏎再问：{1}
子问题一：{0}⏎子问题二：{1}
子问题 1: {0}⏎子问题 2: {1}
子问题：⏎{0}⏎{1}
子问题：{0}⏎子问题：{1}
问题一：{0}⏎问题二：{1}
问题1：{0}⏎问题2：{1}
【问题1】{0}⏎【问题2】{1}
【子问题一】{0}⏎【子问题二】{1}
问1：{0}⏎问2：{1}
Q：{0}⏎Q：{1}
Q: {0}⏎Q: {1}
Q: {0}⏎A: He.⏎Q: {1}⏎A: She.
Question: {0}⏎Question: {1}
Question: {0}⏎Answer: He wrote it.⏎Question: {1}⏎Answer: She did.
Sub-question: {0}⏎Sub-question: {1}
Sub-question 1: {0}⏎Sub-question 2: {1}
Subquestion 1: {0}⏎Subquestion 2: {1}
sub_question_1: {0}⏎sub_question_2: {1}
Sub question #1: {0}⏎Sub question #2: {1}
Subquery 1: {0}⏎Subquery 2: {1}
Query 1: {0}⏎Query 2: {1}
Search 1: {0}⏎Search 2: {1}
Search query 1: {0}⏎Search query 2: {1}
Step 1: {0}⏎Step 2: {1}
Step 1. {0}⏎Step 2. {1}
Step One: {0}⏎Step Two: {1}
First: {0}⏎Second: {1}
First question: {0}⏎Second question: {1}
First, {0}⏎Then, {1}
First, {0} Then, {1}
One: {0}⏎Two: {1}
Part 1: {0}⏎Part 2: {1}
Option 1: {0}⏎Option 2: {1}
Version 1: {0}⏎Version 2: {1}
Alternative 1: {0}⏎Alternative 2: {1}
Variation 1: {0}⏎Variation 2: {1}
Phrasing 1: {0}⏎Phrasing 2: {1}
Variant A: {0}⏎Variant B: {1}
Follow-up question 1: {0}⏎Follow-up question 2: {1}
**Sub-question 1**: {0}⏎**Sub-question 2**: {1}
**Q1:** {0}⏎**Q2:** {1}
**1. {0}**⏎**2. {1}**
1. *{0}*⏎2. *{1}*
1. "{0}"⏎2. "{1}"
1. “{0}”⏎2. “{1}”
1. `{0}`⏎2. `{1}`
1. {0} (author)⏎2. {1} (painter)
1. {0} - to find the author⏎2. {1} - to find the painter
1. {0} — finds the author.⏎2. {1} — finds the painter.
- **Q1**: {0}⏎- **Q2**: {1}
* **{0}**⏎* **{1}**
- {0} [search]⏎- {1} [search]
### Question 1⏎{0}⏎### Question 2⏎{1}
## 1. {0}⏎## 2. {1}
# {0}⏎# {1}
### {0}⏎Explanation here.⏎### {1}⏎Explanation there.
1. {0}⏎Reason: to know.⏎2. {1}⏎Reason: to know.
1. {0}⏎   Purpose: x⏎2. {1}⏎   Purpose: y
1. {0}⏎   > because⏎2. {1}⏎   > because
• {0} • {1}
- {0} - {1}
| {0} |⏎| {1} |
| Question |⏎| --- |⏎| {0} |⏎| {1} |
| No. | Sub-question |⏎|:---:|:---|⏎| 1 | {0} |⏎| 2 | {1} |
| 序号 | 子问题 |⏎|---|---|⏎| 1 | {0} |⏎| 2 | {1} |
| 编号 | 问题 | 目的 |⏎|---|---|---|⏎| 1 | {0} | x |⏎| 2 | {1} | y |
| Step | Question | Why |⏎|------|----------|-----|⏎| 1 | {0} | a |⏎| 2 | {1} | b |
#,Question⏎1,{0}⏎2,{1}
"id","question"⏎"1","{0}"⏎"2","{1}"
1,"{0}"⏎2,"{1}"
1;{0}⏎2;{1}
1⇥{0}⏎2⇥{1}
id⇥question⏎1⇥{0}⏎2⇥{1}
[ "{0}",⏎  "{1}" ]
["{0}" "{1}"]
["{0}"; "{1}"]
[{0}, {1}]
[{0}; {1}]
{{"{0}", "{1}"}}
{{"1": "{0}", "2": "{1}"}}
{{1: "{0}", 2: "{1}"}}
{{"a": "{0}", "b": "{1}"}}
{{"first": "{0}", "second": "{1}"}}
{{"Q1": "{0}", "Q2": "{1}"}}
{{"question1": "{0}", "question2": "{1}"}}
{{"sub_question_1": "{0}", "sub_question_2": "{1}"}}
{{"subQuestion1": "{0}", "subQuestion2": "{1}"}}
{{"query1": "{0}", "query2": "{1}"}}
{{"step1": "{0}", "step2": "{1}"}}
{{"问题1": "{0}", "问题2": "{1}"}}
{{"问题一": "{0}", "问题二": "{1}"}}
{{"子问题": ["{0}", "{1}"]}}
{{"sub_questions": ["{0}", "{1}"]}}
{{"subquestions": ["{0}", "{1}"]}}
{{"subQuestions": ["{0}", "{1}"]}}
{{"decomposition": ["{0}", "{1}"]}}
{{"steps": [{{"step": 1, "query": "{0}"}}, {{"step": 2, "query": "{1}"}}]}}
{{"result": ["{0}", "{1}"]}}
{{"output": {{"questions": ["{0}", "{1}"]}}}}
{{"items": [{{"text": "{0}"}}, {{"text": "{1}"}}]}}
{{"queries": [{{"query": "{0}", "reason": "a"}}, {{"query": "{1}", "reason": "b"}}]}}
{{"questions": {{"1": "{0}", "2": "{1}"}}}}
{{"questions": "{0}\n{1}"}}
{{"questions": "1. {0} 2. {1}"}}
[{{"q": "{0}"}}, {{"q": "{1}"}}]
[{{"sub_question": "{0}"}}, {{"sub_question": "{1}"}}]
[{{"id": 1, "text": "{0}"}}, {{"id": 2, "text": "{1}"}}]
[{{"1": "{0}"}}, {{"2": "{1}"}}]
[["{0}"], ["{1}"]]
{{"original_question": "x?", "sub_questions": ["{0}", "{1}"]}}
{{"reasoning": "Two parts?", "sub_questions": ["{0}", "{1}"]}}
{{"thought": "Is it two?", "questions": ["{0}", "{1}"]}}
Here is the JSON:⏎```json⏎{{"questions": ["{0}", "{1}"]}}⏎```⏎I hope this helps!
json⏎["{0}", "{1}"]
JSON: ["{0}", "{1}"]
```python⏎questions = ["{0}", "{1}"]⏎```
```python⏎questions = [⏎    "{0}",⏎    "{1}",⏎]⏎```
```yaml⏎- {0}⏎- {1}⏎```
```yaml⏎questions:⏎  - "{0}"⏎  - "{1}"⏎```
```yaml⏎- question: {0}⏎- question: {1}⏎```
```markdown⏎1. {0}⏎2. {1}⏎```
```xml⏎<questions><question>{0}</question><question>{1}</question></questions>⏎```
["{0}", "{1}"
["{0}", "{1}",
["{0}", "{1}", "Who else
["{0}", "{1}", "
{{"questions": ["{0}", "{1}"
{{"questions": [{{"question": "{0}"}}, {{"question": "{1}"}}, {{"ques
<questions><question>{0}</question><question>{1}</question><question>Who el
<questions>⏎- {0}⏎- {1}⏎</questions>
<sub_questions>⏎<sub_question>{0}</sub_question>⏎<sub_question>{1}</sub_question>⏎</sub_questions>
<subquestions>⏎1. {0}⏎2. {1}⏎</subquestions>
<sub_question_1>{0}</sub_question_1>⏎<sub_question_2>{1}</sub_question_2>
<query1>{0}</query1><query2>{1}</query2>
<question1>{0}</question1>⏎<question2>{1}</question2>
<item>{0}</item><item>{1}</item>
<list><item>{0}</item><item>{1}</item></list>
<queries><query>{0}</query><query>{1}</query></queries>
<search_queries>⏎  <query>{0}</query>⏎  <query>{1}</query>⏎</search_queries>
<query>{0}</query>⏎⏎<query>{1}</query>
<query>{0}</query> <query>{1}</query>
1. <question>{0}</question>⏎2. <question>{1}</question>
- <q>{0}</q>⏎- <q>{1}</q>
<q n="1">{0}</q><q n="2">{1}</q>
<question number="1"><text>{0}</text></question>⏎<question number="2"><text>{1}</text></question>
<question><id>1</id><text>{0}</text></question><question><id>2</id><text>{1}</text></question>
<thinking>Two?</thinking>⏎<questions>⏎<question>{0}</question>⏎<question>{1}</question>⏎</questions>
<answer>⏎{0}⏎{1}⏎</answer>
<answer>1. {0}⏎2. {1}</answer>
<response>⏎<question>{0}</question>⏎<question>{1}</question>⏎</response>
<output>⏎1. {0}⏎2. {1}⏎</output>
<ul>⏎<li>{0}</li>⏎<li>{1}</li>⏎</ul>
<ul><li>{0}<li>{1}</ul>
<ol><li><p>{0}</p></li><li><p>{1}</p></li></ol>
<p>{0}</p><p>{1}</p>
<p>{0}</p>⏎<p>{1}</p>
<div>{0}</div><div>{1}</div>
<html><body><ul><li>{0}</li><li>{1}</li></ul></body></html>
<dl><dt>1</dt><dd>{0}</dd><dt>2</dt><dd>{1}</dd></dl>
<table><tr><th>Question</th></tr><tr><td>{0}</td></tr><tr><td>{1}</td></tr></table>
<问题1>{0}</问题1><问题2>{1}</问题2>
<问题列表>⏎<问题>{0}</问题>⏎<问题>{1}</问题>⏎</问题列表>
[question]{0}[/question]⏎[question]{1}[/question]
[Q1] {0}⏎[Q2] {1}
[Q1]: {0}⏎[Q2]: {1}
[Question 1] {0}⏎[Question 2] {1}
[[{0}]]⏎[[{1}]]
**{0}** **{1}**
_{0}_⏎_{1}_
“{0}”⏎“{1}”
「{0}」⏎「{1}」
“{0}”、“{1}”
"{0}"; "{1}"
"{0}"⏎⏎"{1}"
'{0}', '{1}'
1. {0}⏎⏎2. {1}⏎⏎These cover the question.
1. {0}⏎2. {1}⏎⏎Note: both are needed.
1. {0}⏎2. {1}⏎⏎Would you like me to answer them?
1. {0}⏎2. {1}⏎⏎Do you want me to go on?
1. {0}⏎2. {1}⏎⏎Shall I answer them?
1. {0}⏎2. {1}⏎⏎以上子问题可以帮助回答原问题。
1. {0}⏎2. {1}⏎⏎希望对你有帮助！
好的，以下是子问题：⏎1. {0}⏎2. {1}
原问题可以分解为以下子问题：⏎1. {0}⏎2. {1}
可以分解为：⏎{0}⏎{1}
可以分解为：{0}{1}
分解如下：⏎1、{0}⏎2、{1}
Original question: What is it?⏎Sub-questions:⏎1. {0}⏎2. {1}
原问题：这是什么？⏎子问题：⏎{0}⏎{1}
To answer the question, we need:⏎1. {0}⏎2. {1}
Let me break it down:⏎⏎1. {0}⏎2. {1}
I'd break this into two: {0} and {1}
We should first ask {0} and then {1}
Thought: two parts.⏎1. {0}⏎2. {1}
Thought: two parts.⏎Questions:⏎1. {0}⏎2. {1}
<tool_call>{{"name": "search", "arguments": {{"query": "{0}"}}}}</tool_call><tool_call>{{"name": "search", "arguments": {{"query": "{1}"}}}}</tool_call>
search("{0}")⏎search("{1}")
[search("{0}"), search("{1}")]
[Search: {0}]⏎[Search: {1}]
[Search] {0}⏎[Search] {1}
Search: {0}⏎Search: {1}
Action: search⏎Action Input: {0}⏎Action: search⏎Action Input: {1}
data: ["{0}", "{1}"]
data: {{"questions": ["{0}", "{1}"]}}
🔍 {0}⏎🔍 {1}
1️⃣ {0}⏎⏎2️⃣ {1}
➊ {0}⏎➋ {1}
⓵ {0}⏎⓶ {1}
㊀ {0}⏎㊁ {1}
Ⅰ. {0}⏎Ⅱ. {1}
Ⅰ、{0}⏎Ⅱ、{1}
– {0}⏎– {1}
— {0}⏎— {1}
~ {0}⏎~ {1}
o {0}⏎o {1}
» {0}⏎» {1}
> {0}⏎⏎> {1}
>> {0}⏎>> {1}
» {0} » {1}
-> {0}⏎-> {1}
--> {0}⏎--> {1}
=> {0}⏎=> {1}
-{0}⏎-{1}
*{0}⏎*{1}
•{0}⏎•{1}
·{0}⏎·{1}
・{0}⏎・{1}
- 1. {0}⏎- 2. {1}
- [x] {0}⏎- [x] {1}
1. [ ] {0}⏎2. [ ] {1}
1. - {0}⏎2. - {1}
1: "{0}"⏎2: "{1}"
1. {0}  ⏎2. {1}
   1. {0}⏎   2. {1}
{0}?⏎{1}?
Q1 {0}⏎Q2 {1}
Q1 - {0}⏎Q2 - {1}
Q-1: {0}⏎Q-2: {1}
Q.1 {0}⏎Q.2 {1}
Frage 1: {0}⏎Frage 2: {1}
Pregunta 1: {0}⏎Pregunta 2: {1}
<think>Two parts.</think>⏎<reasoning>Split.</reasoning>⏎1) {0}⏎2) {1}
<think>⏎1. Who is it?⏎2. What is it?⏎</think>⏎⏎Here are the sub-questions:⏎⏎1. {0}⏎2. {1}
<sub_questions count="2">⏎  <sub_question id="1" text="{0}"/>⏎  <sub_question id="2" text="{1}"/>⏎</sub_questions>
<question text="{0}" /><question text="{1}" />
<item index="1" value="{0}"></item>⏎<item index="2" value="{1}"></item>
1. **Authorship**⏎   {0}⏎2. **Painting**⏎   {1}
1. **{0}**⏎   *Rationale:* identifies the author.⏎2. **{1}**⏎   *Rationale:* identifies the painter.
1. **{0}**⏎   - This identifies the author.⏎   - It is needed first.⏎⏎2. **{1}**⏎   - This identifies the painter.
### Sub-question 1: {0}⏎*Why:* author⏎⏎### Sub-question 2: {1}⏎*Why:* painter
**Sub-question 1 (author):** {0}⏎**Sub-question 2 (painter):** {1}
Certainly! To answer this we need to break it into parts:⏎⏎① {0}⏎② {1}⏎⏎Let me know if you'd like me to continue!
好的，我们可以将问题拆分为以下两个子问题：⏎⏎（一）{0}⏎（二）{1}⏎⏎希望对您有帮助！
以下是拆分后的子问题：⏎问题1：{0}⏎问题2：{1}⏎⏎以上问题可以独立检索。
Sure — here's the JSON you asked for: {{"sub_questions": ["{0}", "{1}"]}}. Let me know if you need changes.
The decomposition is {{"questions": [{{"id": "q1", "question": "{0}", "depends_on": []}}, {{"id": "q2", "question": "{1}", "depends_on": ["q1"]}}]}}
{{"type": "decomposition", "sub_questions": [{{"question": "{0}", "type": "factual"}}, {{"question": "{1}", "type": "factual"}}]}}
{{"id": 1, "question": "{0}", "rationale": "author"}}⏎{{"id": 2, "question": "{1}", "rationale": "painter"}}
{{"id": 1, "question": "{0}"}},⏎{{"id": 2, "question": "{1}"}}
{{"questions": [{{"q": "{0}", "why": "a"}}, {{"q": "{1}", "why": "b"}}, {{"q": "Which
```jsonl⏎{{"question": "{0}"}}⏎{{"question": "{1}"}}⏎```
```yaml⏎sub_questions:⏎  - id: 1⏎    question: "{0}"⏎  - id: 2⏎    question: "{1}"⏎```
sub_questions:⏎- question: "{0}"⏎  reason: author⏎- question: "{1}"⏎  reason: painter
| Step | Sub-question | Purpose |⏎|:----:|:-------------|:--------|⏎| 1 | **{0}** | find the author |⏎| 2 | **{1}** | find the painter |
Here is the table:⏎⏎| ID | Sub-Question | Depends on |⏎|---|---|---|⏎| 1 | {0} | - |⏎| 2 | {1} | 1 |⏎⏎Let me know!
<|channel|>analysis<|message|>We split.<|end|><|start|>assistant<|channel|>final<|message|>{{"queries":["{0}","{1}"]}}
<tool_call>⏎{{"name": "submit_queries", "arguments": {{"queries": ["{0}", "{1}"]}}}}⏎</tool_call>
<tool_call>⏎<function=submit>⏎<parameter=queries>⏎["{0}", "{1}"]⏎</parameter>⏎</function>⏎</tool_call>
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search⏎```json⏎{{"queries": ["{0}", "{1}"]}}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{{"queries": ["{0}", "{1}"]}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
**Sub-questions:**⏎1. {0}⏎2. {1}⏎⏎**Answer:** I need more information.
**Original question:** x y z⏎⏎**Sub-questions:**⏎⏎1. {0}⏎2. {1}
Original question: who did it⏎Sub-questions:⏎- {0}⏎- {1}
原问题：谁做的⏎子问题：⏎1. {0}⏎2. {1}
<answer>⏎<sub_question_1>⏎{0}⏎</sub_question_1>⏎<sub_question_2>⏎{1}⏎</sub_question_2>⏎</answer>
<reflection>ok</reflection>⏎<output>⏎- {0}⏎- {1}⏎</output>
[Sub-question 1]⏎{0}⏎⏎[Sub-question 2]⏎{1}
「问题1」{0}⏎「问题2」{1}
Q1：{0}⏎Q2：{1}
Q1: {0} (no dependencies)⏎Q2: {1} (depends on Q1)
1. {0} [depends on: none]⏎2. {1} [depends on: 1]
1. {0}⏎   **Search terms:** author⏎2. {1}⏎   **Search terms:** painter
1. {0}（用于确定作者）⏎2. {1}（用于确定画家）
1. {0}⏎   目的：确定作者⏎2. {1}⏎   目的：确定画家
- 子问题一：{0}⏎  - 目的：确定作者⏎- 子问题二：{1}⏎  - 目的：确定画家
第一个问题是：{0}⏎第二个问题是：{1}
The first sub-question is: {0}⏎The second sub-question is: {1}
The two sub-questions are:⏎⏎"{0}"⏎"{1}"
I'd break this down into two searches:⏎⏎1. `{0}`⏎2. `{1}`⏎⏎Would you like me to run them?
final{{"questions": ["{0}", "{1}"]}}
<json>{{"questions": ["{0}", "{1}"]}}</json>
<result format="json">["{0}", "{1}"]</result>
{{"questions": ["{0}", "{1}",]}}
{{"questions": ["{0}", "{1}"],}}
{{// two parts⏎"questions": ["{0}", "{1}"]}}
{{"questions": [⏎  "{0}", // author⏎  "{1}" // painter⏎]}}
{{"questions": {{"author": "{0}", "painter": "{1}"}}}}
{{"author": {{"question": "{0}"}}, "painter": {{"question": "{1}"}}}}
[{{"step": 1, "action": "search", "query": "{0}"}}, {{"step": 2, "action": "search", "query": "{1}"}}]
[{{"query": "{0}", "priority": "high", "intent": "informational"}}, {{"query": "{1}", "priority": "low", "intent": "informational"}}]
{{"parameters": {{"queries": ["{0}", "{1}"]}}, "name": "multi_search"}}
{{"questions": "[\"{0}\", \"{1}\"]"}}
"[\"{0}\", \"{1}\"]"
SubQuestionList(items=[SubQuestion(question="{0}"), SubQuestion(question="{1}")])
questions=["{0}", "{1}"]
return ["{0}", "{1}"]
1. {0}⏎⏎   This question asks for the author of the work.⏎⏎2. {1}⏎⏎   This question asks for the painter of the work.
1.  {0}⏎    Answer: unknown⏎2.  {1}⏎    Answer: unknown
Let's think step by step.⏎⏎To answer this question, we need:⏎1. {0}⏎2. {1}⏎⏎Final answer: both questions above.
💡 {0}⏎💡 {1}
➤ {0}⏎➤ {1}
◆ {0}⏎◆ {1}
★ {0}⏎★ {1}
1 → {0}⏎2 → {1}
1️⃣ **{0}**⏎2️⃣ **{1}**
<p>1. {0}</p>⏎<p>2. {1}</p>
<dl><dt>Q1</dt><dd>{0}</dd><dt>Q2</dt><dd>{1}</dd></dl>
<h3>Question 1</h3><p>{0}</p><h3>Question 2</h3><p>{1}</p>
Task 1: {0}⏎Task 2: {1}
Query A: "{0}"⏎Query B: "{1}"
Hop 1: {0}⏎Hop 2: {1}
Hop 1 → {0}⏎Hop 2 → {1}
""".strip().split("\n")

TOOL_FORMS = r"""
plays: {0}⏎⏎people: {1}
1. plays: {0}⏎2. people: {1}
- plays: {0}⏎- people: {1}
- **plays**: {0}⏎- **people**: {1}
- **plays:** {0}⏎- **people:** {1}
1. **plays** – {0}⏎2. **people** – {1}
1. plays - {0}⏎2. people - {1}
1. `plays`: {0}⏎2. `people`: {1}
1. (plays) {0}⏎2. (people) {1}
(plays) {0}⏎(people) {1}
<plays> {0}⏎<people> {1}
plays – {0}⏎people – {1}
plays — {0}⏎people — {1}
plays => {0}⏎people => {1}
plays → {0}⏎people → {1}
plays：{0}⏎people：{1}
【plays】{0}⏎【people】{1}
Plays: {0}⏎People: {1}
PLAYS: {0}⏎PEOPLE: {1}
"plays": "{0}"⏎"people": "{1}"
'plays': '{0}'⏎'people': '{1}'
("plays", "{0}")⏎("people", "{1}")
(plays, {0})⏎(people, {1})
[plays, "{0}"]⏎[people, "{1}"]
plays, {0}⏎people, {1}
plays,"{0}"⏎people,"{1}"
tool,question⏎plays,{0}⏎people,{1}
tool,question⏎plays,"{0}"⏎people,"{1}"
tool: plays⏎question: {0}⏎tool: people⏎question: {1}
tool: plays⏎query: {0}⏎⏎tool: people⏎query: {1}
- tool: plays⏎  question: {0}⏎- tool: people⏎  question: {1}
```yaml⏎- tool: plays⏎  question: {0}⏎- tool: people⏎  question: {1}⏎```
Tool: plays | Question: {0}⏎Tool: people | Question: {1}
Tool: plays, Question: {0}⏎Tool: people, Question: {1}
Tool: plays - Question: {0}⏎Tool: people - Question: {1}
Tool: plays; {0}⏎Tool: people; {1}
Tool 1: plays⏎Question 1: {0}⏎Tool 2: people⏎Question 2: {1}
**Tool:** plays⏎**Question:** {0}⏎⏎**Tool:** people⏎**Question:** {1}
**Tool**: `plays`⏎**Sub-question**: {0}⏎⏎**Tool**: `people`⏎**Sub-question**: {1}
Sub-question: {0}⏎Tool: plays⏎⏎Sub-question: {1}⏎Tool: people
1. {0}⏎   Tool: plays⏎2. {1}⏎   Tool: people
1. {0}⏎   - Tool: plays⏎2. {1}⏎   - Tool: people
1. {0} → plays⏎2. {1} → people
1. {0} (tool: plays)⏎2. {1} (tool: people)
1. {0} [tool: plays]⏎2. {1} [tool: people]
1. {0} — plays⏎2. {1} — people
1. {0} | plays⏎2. {1} | people
1. {0} Tool: plays⏎2. {1} Tool: people
1. {0} (Tool: `plays`)⏎2. {1} (Tool: `people`)
{0} - plays⏎{1} - people
{0} : plays⏎{1} : people
{0} => plays⏎{1} => people
{0}: plays⏎{1}: people
"{0}" -> plays⏎"{1}" -> people
"{0}": plays⏎"{1}": people
{0} → `plays`⏎{1} → `people`
{0} (use plays)⏎{1} (use people)
{0} (via plays)⏎{1} (via people)
Use plays: {0}⏎Use people: {1}
Use plays for: {0}⏎Use people for: {1}
Use plays for "{0}"⏎Use people for "{1}"
Use `plays` to answer "{0}"⏎Use `people` to answer "{1}"
Use the "plays" tool to find: {0}⏎Use the "people" tool to find: {1}
Using plays: {0}⏎Using people: {1}
Ask plays: {0}⏎Ask people: {1}
Query plays: {0}⏎Query people: {1}
Search plays for {0}⏎Search people for {1}
Search plays: {0}⏎Search people: {1}
From plays: {0}⏎From people: {1}
Call plays("{0}")⏎Call people("{1}")
plays.query("{0}")⏎people.query("{1}")
plays('{0}')⏎people('{1}')
plays(question="{0}")⏎people(question="{1}")
plays(q={0})⏎people(q={1})
plays {{"query": "{0}"}}⏎people {{"query": "{1}"}}
plays({{"query": "{0}"}})⏎people({{"query": "{1}"}})
functions.plays({{"query": "{0}"}})⏎functions.people({{"query": "{1}"}})
Action: plays⏎Action Input: {0}⏎⏎Action: people⏎Action Input: {1}
Action: plays⏎Action Input: {{"query": "{0}"}}⏎Action: people⏎Action Input: {{"query": "{1}"}}
Thought: two.⏎Action: plays⏎Action Input: "{0}"⏎⏎Action: people⏎Action Input: "{1}"
plays⏎{0}⏎people⏎{1}
plays:⏎{0}⏎⏎people:⏎{1}
plays:⏎1. {0}⏎people:⏎1. {1}
**plays**⏎- {0}⏎**people**⏎- {1}
**plays:**⏎- {0}⏎⏎**people:**⏎- {1}
## plays⏎{0}⏎## people⏎{1}
### plays⏎- {0}⏎### people⏎- {1}
### Tool: plays⏎{0}⏎### Tool: people⏎{1}
### 1. plays⏎{0}⏎### 2. people⏎{1}
[plays]⏎{0}⏎[people]⏎{1}
Plays tool:⏎{0}⏎People tool:⏎{1}
Tool plays:⏎- {0}⏎Tool people:⏎- {1}
{{"questions": [{{"tool": "plays", "question": "{0}"}}, {{"tool": "people", "question": "{1}"}}]}}
{{"questions": [{{"tool_name": "plays", "sub_question": "{0}"}}, {{"tool_name": "people", "sub_question": "{1}"}}]}}
{{"items": [{{"sub_question": "{0}", "tool_name": "plays"}}, {{"sub_question": "{1}", "tool_name": "people"}}]}}
[{{"source": "plays", "query": "{0}"}}, {{"source": "people", "query": "{1}"}}]
[{{"toolName": "plays", "query": "{0}"}}, {{"toolName": "people", "query": "{1}"}}]
[{{"name": "plays", "arguments": {{"input": "{0}"}}}}, {{"name": "people", "arguments": {{"input": "{1}"}}}}]
[{{"name": "plays", "parameters": {{"question": "{0}"}}}}, {{"name": "people", "parameters": {{"question": "{1}"}}}}]
{{"plays": {{"question": "{0}"}}, "people": {{"question": "{1}"}}}}
[{{"plays": "{0}"}}, {{"people": "{1}"}}]
{{"plays": "{0}"}}⏎{{"people": "{1}"}}
{{"tools": {{"plays": "{0}", "people": "{1}"}}}}
{{"sub_questions": ["{0}", "{1}"], "tools": ["plays", "people"]}}
{{"tool": ["plays", "people"], "question": ["{0}", "{1}"]}}
[["plays", "{0}"], ["people", "{1}"]]
["plays: {0}", "people: {1}"]
["plays", "{0}"]⏎["people", "{1}"]
[("plays", "{0}"), ("people", "{1}")]
[{{"tool": "plays", "question": "{0}"}}, {{"tool": "people", "question": "{1}"}}, {{"tool": "pl
```json⏎[{{"tool": "plays", "question": "{0}"}}, {{"tool": "people", "question": "{1}"}}]⏎```
```json⏎{{"plays": "{0}", "people": "{1}"}}⏎```
[{{"工具": "plays", "问题": "{0}"}}, {{"工具": "people", "问题": "{1}"}}]
[{{"工具名": "plays", "子问题": "{0}"}}, {{"工具名": "people", "子问题": "{1}"}}]
工具：plays⏎问题：{0}⏎工具：people⏎问题：{1}
工具: plays 问题: {0}⏎工具: people 问题: {1}
子问题：{0} 工具：plays⏎子问题：{1} 工具：people
子问题1：{0}（plays）⏎子问题2：{1}（people）
1. {0}（工具：plays）⏎2. {1}（工具：people）
1. 使用plays：{0}⏎2. 使用people：{1}
用plays回答：{0}⏎用people回答：{1}
plays工具：{0}⏎people工具：{1}
plays：{0}；people：{1}
plays：“{0}”⏎people：“{1}”
plays：{0}⏎⏎people：{1}
plays 查询：{0}⏎people 查询：{1}
| 工具 | 子问题 |⏎|---|---|⏎| plays | {0} |⏎| people | {1} |
| Tool | Sub-question |⏎|------|------|⏎| plays | {0} |⏎| people | {1} |
| # | Tool | Question |⏎|---|---|---|⏎| 1 | plays | {0} |⏎| 2 | people | {1} |
| # | Question | Tool |⏎|---|---|---|⏎| 1 | {0} | `plays` |⏎| 2 | {1} | `people` |
| plays | {0} |⏎| people | {1} |
<question><tool>plays</tool><text>{0}</text></question><question><tool>people</tool><text>{1}</text></question>
<questions><question tool="plays">{0}</question><question tool="people">{1}</question></questions>
<item><tool>plays</tool><question>{0}</question></item><item><tool>people</tool><question>{1}</question></item>
<sub_question tool="plays">{0}</sub_question>⏎<sub_question tool="people">{1}</sub_question>
<sub_question>⏎<tool>plays</tool>⏎<question>{0}</question>⏎</sub_question>⏎<sub_question>⏎<tool>people</tool>⏎<question>{1}</question>⏎</sub_question>
<call tool="plays">{0}</call><call tool="people">{1}</call>
<tool_use><name>plays</name><input>{0}</input></tool_use><tool_use><name>people</name><input>{1}</input></tool_use>
<plays><question>{0}</question></plays><people><question>{1}</question></people>
<plays>⏎{0}⏎</plays>⏎<people>⏎{1}⏎</people>
<tool_calls><plays>{0}</plays><people>{1}</people></tool_calls>
<answer>⏎plays: {0}⏎people: {1}⏎</answer>
<questions>⏎plays: {0}⏎people: {1}⏎</questions>
<工具>plays</工具><问题>{0}</问题>⏎<工具>people</工具><问题>{1}</问题>
<think>Use both.</think>⏎plays: {0}⏎people: {1}
<thinking>plays: Who?</thinking>⏎plays: {0}⏎people: {1}
Here are the questions:⏎plays: {0}⏎people: {1}
Sure! plays: {0}⏎people: {1}
Sub-questions:⏎⏎plays: {0}⏎people: {1}
plays: {0}⏎people: {1}⏎⏎These two cover it.
plays: {0} (to find the author)⏎people: {1} (to find the painter)
plays: "{0}"⏎people: "{1}"
plays: '{0}'⏎people: '{1}'
plays: **{0}**⏎people: **{1}**
**plays: {0}**⏎**people: {1}**
`plays: {0}`⏎`people: {1}`
plays: 1. {0}⏎people: 1. {1}
a) plays: {0}⏎b) people: {1}
① plays：{0}⏎② people：{1}
一、plays：{0}⏎二、people：{1}
Question 1: plays: {0}⏎Question 2: people: {1}
Question 1 - plays: {0}⏎Question 2 - people: {1}
Q1 (plays): {0}⏎Q2 (people): {1}
Q1: {0} (plays)⏎Q2: {1} (people)
Step 1: plays: {0}⏎Step 2: people: {1}
Step 1: Use plays to answer "{0}"⏎Step 2: Use people to answer "{1}"
First, ask plays: {0}⏎Then, ask people: {1}
tool name: plays⏎question: {0}⏎tool name: people⏎question: {1}
tool_name: plays, question: {0}⏎tool_name: people, question: {1}
"tool": "plays", "question": "{0}"⏎"tool": "people", "question": "{1}"
@plays {0}⏎@people {1}
#plays {0}⏎#people {1}
/plays {0}⏎/people {1}
plays> {0}⏎people> {1}
plays>> {0}⏎people>> {1}
plays|{0}⏎people|{1}
plays||{0}⏎people||{1}
plays:: {0}⏎people:: {1}
plays / {0}⏎people / {1}
plays_tool: {0}⏎people_tool: {1}
"plays" tool: {0}⏎"people" tool: {1}
1. **plays**⏎   {0}⏎2. **people**⏎   {1}
1. **plays** – "{0}"⏎   *Reason:* author⏎2. **people** – "{1}"⏎   *Reason:* painter
<sub_question tool="plays" text="{0}"/><sub_question tool="people" text="{1}"/>
<tool_call name="plays" query="{0}"/>⏎<tool_call name="people" query="{1}"/>
<call><name>plays</name><arguments>{{"query": "{0}"}}</arguments></call><call><name>people</name><arguments>{{"query": "{1}"}}</arguments></call>
<tool_call>⏎<function=plays>⏎<parameter=query>⏎{0}⏎</parameter>⏎</function>⏎</tool_call>⏎<tool_call>⏎<function=people>⏎<parameter=query>⏎{1}⏎</parameter>⏎</function>⏎</tool_call>
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>plays⏎```json⏎{{"query": "{0}"}}⏎```<｜tool▁call▁end｜>⏎<｜tool▁call▁begin｜>function<｜tool▁sep｜>people⏎```json⏎{{"query": "{1}"}}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>plays<｜tool▁sep｜>{{"query": "{0}"}}<｜tool▁call▁end｜><｜tool▁call▁begin｜>people<｜tool▁sep｜>{{"query": "{1}"}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
{{"tool_calls": [{{"id": "c1", "type": "function", "function": {{"name": "plays", "arguments": {{"query": "{0}"}}}}}}, {{"id": "c2", "type": "function", "function": {{"name": "people", "arguments": {{"query": "{1}"}}}}}}]}}
[{{"id": 1, "tool": "plays", "question": "{0}", "reason": "author"}}, {{"id": 2, "tool": "people", "question": "{1}", "reason": "painter"}}]
{{"tool": "plays", "question": "{0}"}}⏎{{"tool": "people", "question": "{1}"}}
{{"tool": "plays", "question": "{0}"}},⏎{{"tool": "people", "question": "{1}"}}
```jsonl⏎{{"tool": "plays", "question": "{0}"}}⏎{{"tool": "people", "question": "{1}"}}⏎```
The plan is {{"steps": [{{"tool": "plays", "question": "{0}"}}, {{"tool": "people", "question": "{1}"}}]}}. I hope it helps.
| Step | Tool | Sub-question | Purpose |⏎|---|---|---|---|⏎| 1 | plays | {0} | author |⏎| 2 | people | {1} | painter |
- plays⏎  - {0}⏎- people⏎  - {1}
plays:⏎  question: {0}⏎people:⏎  question: {1}
tools:⏎  - name: plays⏎    query: "{0}"⏎  - name: people⏎    query: "{1}"
Q1：{0}【plays】⏎Q2：{1}【people】
问题1：{0}⏎工具：plays⏎⏎问题2：{1}⏎工具：people
（一）使用 plays：{0}⏎（二）使用 people：{1}
① 【plays】{0}⏎② 【people】{1}
1. {0}⏎   - **Tool:** plays⏎   - **Reason:** author⏎2. {1}⏎   - **Tool:** people⏎   - **Reason:** painter
**Sub-question 1:** {0}⏎**Tool:** plays⏎⏎**Sub-question 2:** {1}⏎**Tool:** people
#### 1. {0}⏎Tool: `plays`⏎⏎#### 2. {1}⏎Tool: `people`
好的，拆分如下：⏎1. plays：{0}⏎2. people：{1}⏎希望对您有帮助！
<think>plays first</think>⏎<reasoning>ok</reasoning>⏎1) plays: {0}⏎2) people: {1}
[plays] → {0}⏎[people] → {1}
plays ⇒ {0}⏎people ⇒ {1}
plays → "{0}"⏎people → "{1}"
Search in plays: {0}⏎Search in people: {1}
""".strip().split("\n")

THOUGHT_FORMS = r"""
<think>{}</think>
<think>⏎{}⏎</think>⏎⏎
<thinking>{}</thinking>
<thought>{}</thought>
<thoughts>{}</thoughts>
<reasoning>{}</reasoning>
<reason>{}</reason>
<reasoning_content>{}</reasoning_content>
<reflection>{}</reflection>
<scratchpad>{}</scratchpad>
<inner_monologue>{}</inner_monologue>
<internal_thoughts>{}</internal_thoughts>
<inner_thoughts>{}</inner_thoughts>
<analysis>{}</analysis>
<antThinking>{}</antThinking>
<antthinking>{}</antthinking>
<thinking_process>{}</thinking_process>
<thought_process>{}</thought_process>
<think_process>{}</think_process>
<deep_think>{}</deep_think>
<deepthink>{}</deepthink>
<longcat_think>{}</longcat_think>
<seed:think>{}</seed:think>
<seed:think>{}<seed:cot_budget_reflect>ok</seed:cot_budget_reflect></seed:think>
<mm:think>{}</mm:think>
<ds:think>{}</ds:think>
<think type="a">{}</think>
<THINK>{}</THINK>
<Think>{}</Think>
<思考>{}</思考>
<思考过程>{}</思考过程>
[THINK]{}[/THINK]
[think]{}[/think]
[Thinking]{}[/Thinking]
[THOUGHT]{}[/THOUGHT]
[REASONING]{}[/REASONING]
[BEGIN_THINK]{}[END_THINK]
【思考】{}【/思考】
◁think▷{}◁/think▷
◁think▷⏎{}⏎◁/think▷⏎
<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>
<|channel|>analysis<|message|>{}<|start|>assistant<|channel|>final<|message|>
<|start|>assistant<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>
<|channel|>commentary<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>
<|channel|>analysis<|message|>{}<|end|>⏎<|channel|>final<|message|>
analysis{}assistantfinal
assistantanalysis{}assistantfinal
<|begin_of_thought|>{}<|end_of_thought|>
<|begin_of_thought|>⏎{}⏎<|end_of_thought|>⏎⏎<|begin_of_solution|>
<|START_THINKING|>{}<|END_THINKING|>
<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>
<|think|>{}<|/think|>
<|thinking|>{}<|/thinking|>
<|thought|>{}<|/thought|>
<|think_start|>{}<|think_end|>
<|think_begin|>{}<|think_end|>
<|begin_think|>{}<|end_think|>
<|start_think|>{}<|end_think|>
<|reasoning|>{}<|/reasoning|>
<|inner_prefix|>{}<|inner_suffix|>
<｜begin▁of▁thinking｜>{}<｜end▁of▁thinking｜>
<unused94>thought⏎{}<unused95>
<|channel>thought⏎{}<channel|>
<start_of_thought>{}<end_of_thought>
<begin_of_thought>{}<end_of_thought>
<details><summary>Thinking</summary>{}</details>
<details type="reasoning" done="true" duration="3">⏎<summary>Thought for 3 seconds</summary>⏎> {}⏎</details>⏎
<details><summary>Thought for 5 seconds</summary>⏎⏎{}⏎⏎</details>⏎⏎
<details><summary>💭 Reasoning</summary>⏎{}⏎</details>⏎
<details><summary>思考过程</summary>⏎{}⏎</details>⏎
<details>⏎<summary>Reasoning process</summary>⏎{}⏎</details>⏎
> Thinking: {}⏎⏎
> **Thinking**⏎> {}⏎⏎
> 💭 {}⏎⏎
Thinking...⏎{}⏎...done thinking.⏎⏎
Thinking…⏎{}⏎…done thinking.⏎⏎
*Thinking: {}*⏎⏎
**Thinking:** {}⏎⏎**Answer:**
**Reasoning:** {}⏎⏎**Answer:**
Thought: {}⏎Answer:
Thought: {}⏎Final Answer:
Reasoning: {}⏎Answer:
思考：{}⏎答案：
思考过程：{}⏎回答：
### Thinking⏎{}⏎### Answer⏎
### Reasoning⏎⏎{}⏎⏎### Answer⏎⏎
# Thinking⏎{}⏎# Response⏎
**Thought process**⏎{}⏎⏎**Final answer**⏎
Here's my thought process:⏎{}⏎Here's my response:⏎
{}⏎</think>⏎⏎
{}</think>
{}⏎</thinking>⏎
{}[/THINK]
{}◁/think▷
{}</seed:think>
{}<|END_THINKING|>
{}<|end_of_thought|>
<think>{}⏎</think>⏎<answer>
<think>{}</think><think>More [1]?</think>
<think>a</think>⏎<think>{}</think>⏎
```thinking⏎{}⏎```⏎
```think⏎{}⏎```⏎
<!-- {} -->⏎
<!-- thinking: {} -->
(thinking: {})⏎
""".strip().split("\n")


def filled(form: str, *items: str) -> str:
    """Fill the placeholders of a format with items."""
    return form.format(*items).replace("⏎", "\n").replace("⇥", "\t")


class Scripted:
    """A language model that always gives the same answer, and can also stream it."""

    def __init__(self, answer: str, size: int = 7) -> None:
        self.answer = answer
        self.size = size

    def complete(self, prompt: str) -> str:
        return self.answer

    async def acomplete(self, prompt: str) -> str:
        return self.answer

    def stream(self, prompt: str) -> Iterator[str]:
        for start in range(0, len(self.answer), self.size):
            yield self.answer[start : start + self.size]

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        for text in self.stream(prompt):
            yield text
