"""Rewritten queries that look unusual but are correct, such as code, arrows, labels and refusals.

Each row contains a user's question and the rewritten query, which must be searched unchanged.
"""

ODD_QUERIES = [
    tuple(row.split(" || "))
    for row in r"""
how do i center a <div> || How do I center a <div>?
whats <br> vs <p> || What is the difference between <br> and <p>?
<script> tag in head or body?? || Should a <script> tag stand in the head or in the body?
<T> in java what is it || What does <T> mean in Java?
std::vector<int> resize || std::vector<int> resize
java List<String> to array || How do I convert a List<String> to an array in Java?
List<String> || List<String>
Map<String, List<Integer>> iterate || How do I iterate over a Map<String, List<Integer>>?
Option<&str> to String rust || Convert Option<&str> to String in Rust
Promise<void> typescript || What is Promise<void> in TypeScript?
Dictionary<int, string> default || Default value of Dictionary<int, string>
怎样让 <div> 居中啊 || 怎样让 <div> 居中？
<a> 标签的 target 属性 || <a> 标签的 target 属性有什么用？
List<String> 转数组 || List<String> 怎么转换成数组？
vector<int> 排序 || 如何对 vector<int> 排序？
A → B mapping || A → B mapping
whats f: A -> B mean in math || What does f: A -> B mean in mathematics?
x => x + 1 in js || What does x => x + 1 mean in JavaScript?
H2 + O2 → H2O balanced || Balanced equation of H2 + O2 → H2O
p → q truth table pls || Truth table of p → q
Berlin -> Munich train || Berlin -> Munich train
lim x -> 0 sin(x)/x || Limit of sin(x)/x for x -> 0
ptr->field in c || What does ptr->field mean in C?
int -> str conversion haskell || int -> str conversion in Haskell
ruby hash => syntax || What does => mean in a Ruby hash?
北京→上海 高铁要多久啊 || 北京→上海的高铁要多久？
A→B 映射是啥 || 什么是 A→B 映射？
NaOH+HCl→NaCl+H2O 是什么反应 || NaOH+HCl→NaCl+H2O 是什么反应？
git: rebase || git: rebase
git: rebase onto main how || git: rebase onto main
python: sort dict by value || Python: sort a dict by value
c++: what is std::move || C++: what is std::move?
dune: part two release || Dune: Part Two release date
re: zero author || Re: Zero author
Re:Zero 作者 || 《Re:Zero》的作者是谁？
star wars: a new hope year || Star Wars: A New Hope release year
typeerror: nonetype not iterable || TypeError: 'NoneType' object is not iterable
2001: a space odyssey director || 2001: A Space Odyssey director
mission: impossible 3 cast || Mission: Impossible 3 cast
question: are we not men album || Question: Are We Not Men? album by Devo
psalm 23: 1-4 meaning || Psalm 23: 1-4 meaning
note: music lable || Note: the music label
docker: command not found || docker: command not found
bash: syntax error near unexpected token || bash: syntax error near unexpected token `('
output: 0 from printf why || Output: 0 from printf, why?
search: the movie 2018 || Search: the 2018 movie
answer: a song by phil || Answer: a song by Phil
ratio 3:2:1 || Ratio 3:2:1
10:30 pm in est || 10:30 pm in EST
Python：如何排序字典 || Python：如何按值排序字典？
复仇者联盟4：终局之战 导演 || 《复仇者联盟4：终局之战》的导演是谁？
三体：黑暗森林 讲了什么 || 《三体：黑暗森林》讲了什么？
new york new york singer || New York New York singer
new york new york || New York New York
new york, new york || New York, New York
bora bora || Bora Bora
duran duran || Duran Duran
wagga wagga population || Wagga Wagga population
liar liar || Liar Liar
johnny johnny || Johnny Johnny
pago pago || Pago Pago
walla walla || Walla Walla
location location location meaning || Location Location Location
tora tora tora || Tora! Tora! Tora!
sirhan sirhan || Sirhan Sirhan
the the || The The
what what || What What?
mahi mahi || Mahi mahi
knock knock whos there || Knock knock, who's there?
why why why delilah || Why, why, why, Delilah?
money money money abba || Money, Money, Money by ABBA
who's who || Who's Who?
hello hello what is the song || Hello, hello: what is the song?
看看 和 看 || 看看和看的区别是什么？
好好学习天天向上 谁说的 || “好好学习，天天向上”是谁说的？
妈妈妈妈 歌词 || 妈妈妈妈 歌词
谢谢谢谢 || 谢谢谢谢
爸爸去哪儿 爸爸去哪儿 || 爸爸去哪儿 爸爸去哪儿
search() vs match() re || search() vs match() in re
print("hello") what does it print || What does print("Hello") print?
re.search("a", "b") returns || What does re.search("a", "b") return?
df.query("a > 1") || df.query("a > 1")
search("term") in elasticsearch || search("term") in Elasticsearch
f(x) = x^2 derivative || f(x) = x^2 derivative
sum(range(10)) || sum(range(10))
print(search("x")) python || print(search("x")) in Python
console.log("hi") vs print || console.log("hi") vs print
echo "hi" || echo "hi"
echo "$PATH" shows nothing || echo "$PATH" shows nothing
return "x" in c || return "x" in C
require("fs") || require("fs")
what does len("abc") do || What does len("abc") do?
$("#id") jquery || $("#id") in jQuery
getElementById("a") null || getElementById("a") returns null
print("你好") 输出什么 || print("你好") 输出什么？
[2] in a title || [2] in a title
[errno 13] permission denied || [Errno 13] Permission denied
[[Prototype]] js || What is [[Prototype]] in JavaScript?
[[ vs [ in bash || What is the difference between [[ and [ in bash?
[solved] grub rescue || [SOLVED] grub rescue
[rec] movie || [REC] movie
[rec] || [REC]
[search] box in word || [Search] box in Word
arr[0] c || What does arr[0] mean in C?
dict["key"] keyerror || dict["key"] raises KeyError
a[href] selector || a[href] selector
search[type] css || input[type=search] in CSS
{{ user.name }} jinja || {{ user.name }} in Jinja
{{ template }} || {{ template }}
{x | x > 0} meaning || {x | x > 0} meaning
{} vs dict() || {} vs dict()
${var} bash || ${var} in bash
[[wikilink]] || [[wikilink]]
[[link]] obsidian || [[link]] in Obsidian
<<eof heredoc || What does <<EOF do in a shell?
cout << x c++ || What does cout << x do in C++?
<< operator || << operator
a << 2 || a << 2
<3 meaning || <3 meaning
1 < x < 5 || 1 < x < 5
a < b and c > d || a < b and c > d
if (a<b) { } || if (a<b) { }
i <= n || i <= n
【海贼王】作者 || 【海贼王】的作者是谁？
“三体”作者 || “三体”的作者是谁？
"to be or not to be" author || "To be or not to be" author
"heroes" || "Heroes"
"heroes" bowie || "Heroes" by David Bowie
'til tuesday band || 'Til Tuesday
"a" vs "b" in chinese grammar || "a" vs "b"
'74 jailbreak || '74 Jailbreak
`ls -la` || `ls -la`
what is `self` in python || What is `self` in Python?
*args || *args
*args vs **kwargs || *args vs **kwargs
**kwargs python || **kwargs in Python
# in css || # in CSS selectors
#metoo || #MeToo
#include <stdio.h> || #include <stdio.h>
#1 hit 1984 || #1 hit of 1984
+1 country code || +1 country code
-5 celsius in f || -5 °C in Fahrenheit
-xmx flag || -Xmx flag of the JVM
--no-verify git || --no-verify in git
- operator unary || - operator, unary
> redirect bash || > redirect in bash
~ in path || ~ in paths
~/.bashrc || ~/.bashrc
• alt code || • alt code
→ alt code || → alt code
→ symbol latex || → symbol in LaTeX
★ blackstar bowie || ★ (Blackstar) by David Bowie
✅ emoji unicode || ✅ emoji in Unicode
😂 meaning || 😂 meaning
❤️ vs 🧡 || ❤️ vs 🧡
🔍 emoji name || 🔍 emoji name
🙏是什么意思 || 🙏是什么意思？
/etc/passwd || /etc/passwd
/s meaning reddit || /s meaning on Reddit
/search endpoint twitter || /search endpoint of the Twitter API
/help command discord || /help command in Discord
@override java || @Override in Java
@media css || @media in CSS
@search annotation sap || @Search annotation in SAP
@types/node || @types/node
user@example.com valid? || Is user@example.com a valid address?
c:\windows\system32 || C:\Windows\System32
\n vs \r\n || \n vs \r\n
\frac{1}{2} latex || \frac{1}{2} in LaTeX
\boxed{} latex || \boxed{} in LaTeX
\boxed{x} in latex || \boxed{x}
$x^2$ derivative || $x^2$ derivative
\"quoted\" escape || \"quoted\" escape in JSON
// vs /* comment || // comments vs /* comments
x // 2 python || x // 2 in Python
a // b || a // b
5 // 2 or 5 / 2 || 5 // 2 or 5 / 2
http://localhost:8080 refused || http://localhost:8080 refused to connect
what is on https://example.org/a || What is on https://example.org/a?
https://example.org down? || Is https://example.org down?
traceback (most recent call last) || Traceback (most recent call last)
traceback (most recent call last) meaning || Traceback (most recent call last) meaning
404 not found || 404 Not Found
404 not found nginx || 404 Not Found in nginx
502 bad gateway || 502 Bad Gateway
error: cannot find module 'x' || Error: Cannot find module 'x'
http 429 too many requests || HTTP 429 Too Many Requests
internal server error wordpress || Internal Server Error in WordPress
segmentation fault (core dumped) || Segmentation fault (core dumped)
rate limit exceeded openai || Rate limit exceeded
connection refused || Connection refused
i cant log in || I can't log in
i cannot log in || I cannot log in to my account
sorry by justin bieber || Sorry by Justin Bieber
sorry lyrics || Sorry lyrics
im sorry i havent a clue || I'm Sorry I Haven't a Clue
i cannot tell a lie || I cannot tell a lie
sorry seems to be the hardest word || Sorry Seems to Be the Hardest Word
i dont know how she does it || I Don't Know How She Does It
i cant help falling in love || I can't help falling in love with you
unfortunately used in a sentence || Unfortunately, used in a sentence
as an ai language model phrase || "As an AI language model" phrase
i am unable to connect to wifi || I am unable to connect to wifi
we dont talk about bruno || We Don't Talk About Bruno
无法登录 || 无法登录
抱歉 英语 || “抱歉”用英语怎么说？
我不能登录微信 || 我不能登录微信怎么办？
对不起我爱你 导演 || 《对不起，我爱你》的导演是谁？
不知道 日语 || “不知道”用日语怎么说？
none in python || None in Python
none || None
none vs null || None vs null
null || null
nan || NaN
undefined is not a function || undefined is not a function
n/a meaning || N/A meaning
无 拼音 || “无”的拼音是什么？
unknown pleasures || Unknown Pleasures
yes || Yes
yes band || Yes (band)
no || No
no doubt || No Doubt
true || True
false positive || False positive
sure thing miguel || Sure Thing by Miguel
sure deodorant || Sure deodorant
okay kaya || Okay Kaya
ok google || OK Google
ok computer || OK Computer
certainly vs surely || Certainly vs surely
here comes the sun || Here Comes the Sun
here is your war || Here Is Your War
here is greenwood || Here is Greenwood
hello world || Hello, World!
hello dolly || Hello, Dolly!
of course i still love you || Of Course I Still Love You
great expectations || Great Expectations
thought experiments || Thought experiments
thought: a journal || Thought: A Journal of Philosophy
final fantasy vii || Final Fantasy VII
final answer millionaire || "Final answer" on Who Wants to Be a Millionaire
answer to the ultimate question || Answer to the Ultimate Question of Life
action: definition physics || Action: definition in physics
action bronson || Action Bronson
tool band || Tool (band)
tool: lateralus || Tool: Lateralus
question mark || Question mark
question time bbc || Question Time (BBC)
rewritten constitution chile || Rewritten constitution of Chile
passage to india || A Passage to India
query rewriting || Query rewriting
query: definition sql || Query: definition in SQL
search engine || Search engine
option a vs option b || Option A vs option B
option 1 or 2 trolley || Option 1 or option 2
option: call vs put || Option: call vs put
note 7 battery || Note 7 battery
step up 2 || Step Up 2
step 1: collect underpants || Step 1: Collect underpants
assistant professor || Assistant professor
user: wikipedia || User: Wikipedia namespace
system of a down || System of a Down
output device || Output device
before: after lyrics || Before: After
before sunrise || Before Sunrise
original of laura || The Original of Laura
explanation of benefits || Explanation of Benefits
搜索引擎 || 搜索引擎
好的 英文 || “好的”的英文是什么？
好的：英文怎么说 || “好的”用英文怎么说？
答案之书 || 答案之书
问题少年 || 问题少年
改写 英文 || “改写”用英语怎么说？
助手：app || 助手类 app 有哪些？
mercury planet || Mercury (planet)
mulan 2020 || Mulan (2020)
(i cant get no) satisfaction || (I Can't Get No) Satisfaction
(500) days of summer || (500) Days of Summer
(what's the story) morning glory || (What's the Story) Morning Glory?
(query) string || (Query) string
(1+x)^n || (1+x)^n
(sittin' on) the dock of the bay || (Sittin' On) The Dock of the Bay
ac/dc || AC/DC
tcp/ip vs udp || TCP/IP vs UDP
a | b || a | b
ls | grep x || ls | grep x
cat a.txt | sort || cat a.txt | sort | uniq
p(a|b) || P(A|B)
rouge | noir || Rouge | Noir
x; y || x; y
for (i=0; i<n; i++) || for (i=0; i<n; i++)
1; drop table || 1; DROP TABLE
1984 || 1984
1984 orwell || 1984 by George Orwell
1. fc köln || 1. FC Köln
3. liga || 3. Liga table
2 fast 2 furious || 2 Fast 2 Furious
7 up || 7 Up
1, 2, 3 || 1, 2, 3
1917 || 1917 (film)
i. m. pei || I. M. Pei buildings
c. s. lewis || C. S. Lewis
a. a. milne || A. A. Milne
b. b. king || B. B. King
1) in math || What does 1) mean in math?
第一次世界大战 || 第一次世界大战
一二三等功 || 一、二、三等功有什么区别？
一、问候语 || 一、问候语
第二，三者的关系 || 第二、三者的关系是什么？
一带一路 || 一带一路
select * from users || SELECT * FROM users
import numpy as np || import numpy as np
x = 5 || x = 5
query = "x" || query = "x"
query="a" in url || ?query="a" in a URL
key: value yaml || key: value in YAML
"key": "value" || "key": "value"
{"a": 1} valid json? || Is {"a": 1} valid JSON?
json {"query": "x"} || JSON {"query": "x"}
return value of main || return value of main
my laptop doesnt start what can i do || My laptop does not start. What can I do?
who wrote faust? when? || Who wrote Faust? When?
i have a cold. tea? || I have a cold. Does tea help?
quién escribió don quijote || ¿Quién escribió Don Quijote?
wie gross ist berlin || Wie groß ist Berlin?
君の名は。の監督 || 「君の名は。」の監督は誰ですか？
кто написал войну и мир || Кто написал «Войну и мир»?
من كتب ألف ليلة || من كتب ألف ليلة وليلة؟
l'étranger auteur || Qui a écrit « L'Étranger » ?
""".strip().split("\n")
]
