"""Queries and answers that look like a form, a failure or a refusal, and are right."""

import pytest

from nodekin.nodegraph.models.output.free_text import parse_final_answer
from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.queries import parse_query, parse_sub_questions

QUERIES = """
How do I center a <div>?
<div> or <span>: which is inline?
What does the <query> element do in HL7?
What is <template> in Vue?
How do I close a <p> tag?
Does <br> need a slash?
What is the difference between <b> and <strong>?
How do I sort a List<String> in Java?
When is Map<String, Integer> null?
What does std::vector<int> store?
C++ template<T> syntax
a < b and b > c in Python
What does x -> y mean in Java?
What does => do in JavaScript?
How do I write {name} in an f-string?
What does ${PATH} expand to?
How do I escape { and } in format()?
What is [] == false in JavaScript?
How do I index a[0][1] in numpy?
What is a[1:2] in Python?
json.loads('{"a": 1}') result
{{ site.title }} in Jekyll
What does Traceback (most recent call last) mean?
Traceback (most recent call last)
Why do I get a 502 Bad Gateway?
502 Bad Gateway nginx cause?
What is HTTP 404 Not Found?
How does a 404 page work?
Error 404 meaning?
Error handling in Go
KeyError: 'x' in pandas, how do I fix it?
What is a ValueError?
TypeError: 'NoneType' object is not subscriptable meaning?
NullPointerException cause?
segmentation fault (core dumped) cause?
What does connection refused mean?
Why was my request blocked?
What is rate limiting?
What is null in SQL?
null vs undefined in JavaScript
NaN in pandas
None in Python
What is a no answer vote?
I can't log in
I cannot find my keys
I can't help falling in love lyrics
I'm sorry by Brenda Lee lyrics
Sorry by Justin Bieber
Sorry Not Sorry singer
Sorry We Missed You director
Unfortunately, It Was Paradise author
I Am Sorry for Your Loss quotes
As an artist, what did Ibsen paint?
As an AI engineer, what do I earn?
Who said "I cannot tell a lie"?
Who wrote "Where is my mind?"
Who sang "Do you know the way to San Jose?"
Who wrote "What is to be done?" and when?
Who directed "Who's Afraid of Virginia Woolf?"
What is meant by "Who watches the watchmen?"
"To be or not to be" meaning
"Hello, world!" origin
'tis the season lyrics
rock 'n' roll origin
O'Neill plays in order
What is the Hitchhiker's Guide's answer?
Who directed Nymphomaniac [2]?
What is [sic]?
What does [1] mean in a paper?
Fast & Furious 9 cast
AT&T founder
R&D spending of Apple
What is &amp; in HTML?
What is &nbsp; for?
What is https://example.org used for?
https://docs.python.org/3/ meaning of "3"?
How do I download http://example.com/a.zip?
What is www.example.com?
user@example.com format
first, second and third person narrators
First, do no harm: who said it?
First Man cast
Second Life founder
Third Reich end
Next: Nintendo console after Switch?
A. Einstein's birthplace
B. Russell's paradox
C. difficile symptoms
i. e. meaning
I. Newton's laws
V. Woolf novels
E. coli outbreak 2011
J. S. Bach cantatas
A Tale of Two Cities author
D-Day date
U.S. v. Nixon ruling
1.5 litres in gallons
10:30 train to Bergen?
3D printing cost
2. Bundesliga champion 2020
4. April holiday country?
1984 author
2001: A Space Odyssey director
24: who plays Jack Bauer?
007 actor
7-Eleven founder
9/11 commission chair
1:1 scale meaning
50 Cent real name
1st Amendment text
2nd law of thermodynamics
20,000 Leagues Under the Sea author
50 % of 80
-40 degrees Celsius in Fahrenheit
+47 country code
#MeToo start
@ sign origin
$5 in euros
€ symbol on a keyboard
§ 433 BGB
¿Quién escribió el Quijote?
¡Ay Carmela! director
C# vs F#
.NET release date
-Xmx meaning in Java
--force in git push
* in a glob
** operator in Python
`ls -la` output
__init__ method
_private naming in Python
// operator in Python
/etc/passwd fields
~/.bashrc purpose
\\alpha in LaTeX
E = mc^2 meaning
steel pipes with a width of 5"
H2O formula
x^2 + 1 = 0 solutions
Tea: history in England
Python: how do I reverse a list?
Brand: who wrote it?
Star Wars: Episode IV director
Mission: Impossible cast
Re:Zero author
Search engine: definition
Question Time presenter
Question mark origin
Answer to the Ultimate Question of Life
Query Wizard in Access
The Query: a film?
Rewriting history: meaning
Note-taking apps for iPad
Thought leader meaning
Reason by Immanuel Kant
Action films of 1999
Output of a transistor
Results of the 2020 election
Summary of Brand by Ibsen
Final Fantasy VII release date
Better Call Saul seasons
Try except in Python
Step Brothers cast
Part A of Medicare
Chapter 11 bankruptcy
Type 1 diabetes symptoms
Option pricing by Black and Scholes
Variant Omicron symptoms
Plan B price
Let me in director
Can you hear me? meaning
Would you rather game rules
Do you want to build a snowman lyrics
Could you patent the sun? who said it
May I borrow this? in French
Is it safe to eat raw eggs?
Should I invest in bonds?
how long is it
why
who
what is tea
tea
IT
Go language
R
第一次世界大战的原因
第二季什么时候播出？
一、二、三级医院的区别
三国演义的作者是谁？
十二生肖有哪些？
一是什么意思？
《问题的问题》作者是谁？
《红楼梦》的作者
“问题”一词的来源
对不起，我爱你
抱歉的近义词
无法登录怎么办
不能回答的问题有哪些？
错误 404 是什么意思？
系统错误怎么解决？
请求超时是什么原因？
无答案的问题
空城计是谁用的？
没有人知道的秘密
答案之书
搜索引擎的原理
改写歌词的人是谁？
用户体验是什么？
首先，什么是光合作用？
其他国家的首都
问题少年电影
甲、乙、丙三方合同
Ⅰ型糖尿病的症状
「千と千尋の神隠し」の監督は誰？
What is the <question> tag in Moodle XML?
Title: Ibsen or Title case?
Hop 1 latency in traceroute
Hop: the plant used in beer
⇒ in logic meaning
➜ zsh prompt symbol
What is "[1, 2]" as a string in JSON?
SubQuery(name="x") in Django
Foo(query="x") in GraphQL, what is it?
What is Model(text="a") in pydantic?
「问题」という漢字の意味
「千と千尋の神隠し」 director
Name: what does it mean in YAML?
Name of the wind author
Next question in Wordle
Answer — the band
Query DSL vs SQL
Changes (David Bowie song) year
Typos in the Bible of 1631
What does --- mean in YAML?
I refuse to sink lyrics
Access denied (film) cast
Too many requests: how do I fix 429?
Service Unavailable HTTP code
Sorry, Wrong Number (1948) director
Cannot connect to the Docker daemon
Forbidden City opening hours
为什么浏览器显示“拒绝访问”？
无法连接打印机怎么办
对不起，您拨打的电话是空号 英文
抱歉，我爱你 结局
未找到命令 bash
作为一个中国人，怎么申请签证？
我不知道的事 歌词
“问题1”是什么意思？
null 和 undefined 的区别
[编辑] 在维基百科里是什么
Model loading slow in Keras
finish_reason meaning OpenAI
请求失败怎么解决
Server is overloaded meaning
Content blocked on iPhone, how do I unblock it?
segmentation fault (core dumped) in C
连接失败怎么办
As a responsible AI company, what does Anthropic publish?
我们不能讨论的话题有哪些
问题不符合规范怎么改
Das kann ich auch: Ausstellung
Please try again later meaning
why does it say please wait
"Please try again later" error on Instagram
稍后再试是什么意思
please retry later error
Runner process in GitHub Actions
I have no mouth and I must scream author
I have no idea song
File "setup.py" missing
Your account is not active Discord
Killed by Death Motörhead
""".strip().split("\n")

ANSWERS = """
<div> is a block element [1].
Use <think> to begin a thought [1].
Write </think> to end it [1].
The tag <query> wraps the question [1].
`<answer>` is not part of HTML [1].
Use List<String> [1].
A 404 page says that a page was not found [1].
502 Bad Gateway means that a proxy got a bad reply.
HTTP 500 is returned if the server fails [1].
"502 Bad Gateway" [1]
The opposite of truth: error.
Error 404 means that the page is missing [1].
KeyError is raised if a key is missing [1].
ValueError: raised for a wrong value [1].
Traceback (most recent call last) is the first line of a traceback [1].
The connection was refused because the port is closed.
The request failed because the disk was full.
Forbidden
Conflict.
Not found in nature: element 117.
Not Found is the name of a song [2].
Timeout: 30 seconds [1].
Null Island lies at 0°N 0°E.
null is the absence of a value [1].
Nil Admirari is a motto.
Nothing is known about his youth except that he lived in Skien [1].
None of the three.
No.
No one knows the exact date [1].
Unknown Pleasures
N/A is short for "not applicable" [1].
https://example.org/docs
See https://example.org/docs [1].
The address is https://example.org/docs [1].
{"a": 1} is the output [1].
{"error": "none"} is printed when all is well [1].
[1] says so, and [2] agrees with it.
The array is [1, 2, 3].
1. Boil water. 2. Add tea.
1. Boil water.
- Tea
- Coffee
Thoughts are free [1].
Thinking, Fast and Slow is by Daniel Kahneman [1].
Thought: a film of 1970.
Reasoning: the third step of the method [1].
Analysis is the first step [1].
Analyses were made in 1990 [1].
Plan B costs 40 euros [1].
Notes from Underground
Here is where he was born: Skien [1].
Here's to you, Mrs. Robinson.
Answer: 42 is the answer of a novel [1].
Final answer is a phrase of a quiz show [1].
Response time is 5 ms [1].
NO_ANSWER is written by the model if it does not know [1].
The prompt asks for NO_ANSWER in this case [1].
这道题无答案。
无答案不等于错误[1]。
无，名词，意为没有[1]。
错误：第3行缺少分号
错误代码 404 表示找不到页面[1]。
系统错误是指偏差[1]。
没有。
未知的土地
空。
抱歉是一种礼貌用语。
对不起，我爱你是一部韩剧。
“对不起，我无法回答”是小说的第一句[1]。
作为人工智能的先驱，图灵没有见到它的成功[1]。
思考：快与慢的作者是卡尼曼[1]。
分析表明，水质合格[1]。
> Ibsen lived in Skien. [1]
> 💡 Tip: boil the water first [1].
**Ibsen** lived in Skien [1].
*Brand* is a play [1].
# Ibsen
```python
print("no answer")
```
<p>Ibsen lived in Skien [1].</p>
<b>Skien</b> [1]
&lt;div&gt; is written so [1].
The model is overloaded on Mondays, says the page [1].
Rate limiting protects a server [1].
Access denied means that the user has no rights [1].
Invalid input is refused [1].
Exception: holidays [1].
Exceptions are listed in table 2 [1].
Panic: at the Disco is a band [1].
Fatal errors stop the program [1].
at 10:30 [1]
at home
OK
Yes
Yes, but only on Mondays [1].
true
0
-5 °C [1]
5 % [1]
About 6,650 km.
""".strip().split("\n")

LIKE_REFUSALS = """
I'm sorry to say that it is 6,650 km long, so you can't walk it in a week.
I'm sorry to hear that. Reset the password on the login page.
I'm sorry, I meant the Rhine: it is 1,230 km long.
I am sorry for your loss is the usual phrase.
I am afraid of heights is his most famous line.
I'm afraid the museum closed in 1990.
We are sorry is written above the door.
Sorry is a song by Justin Bieber.
Sorry Day is held on 26 May.
Sorry, it closes at five.
Sorry, the Nile is 6,650 km long.
So sorry was the headline.
My apologies is more formal than sorry.
Apologies were made in 2008.
We apologize for delays, and refund the ticket after two hours.
Unfortunately, the museum is not open on Mondays.
Unfortunately, the policy does not allow pets.
Unfortunately, he died in 1906.
Unfortunately, the last train leaves at nine.
Unfortunately, no trains run on Sundays.
Unfortunately, the play was not printed before 1866.
Regrettably, the bridge was closed in 2015.
I cannot answer every detail, but the Nile is 6,650 km long.
I can't help with that [1].
I can't say for sure, but the passages give 6,650 km.
I cannot tell a lie is attributed to Washington.
I can't get no satisfaction is a line of the Rolling Stones.
I could not find the year, but the town is Skien.
I do not like green eggs and ham.
I don't want to miss a thing is by Aerosmith.
I won't give up is by Jason Mraz.
I will not be silenced was her reply.
I am not a crook, said Nixon.
I am unable to stay was his last letter.
I have no mouth, and I must scream was written by Harlan Ellison.
I must decline was the reply of Bartleby.
We cannot accept returns after 30 days.
We can't enter the site without a helmet.
We do not provide refunds after 30 days.
We do not ship to islands.
We are not open on Mondays.
We could not be reached after 1990: the line was cut.
We won't stop was the slogan.
You cannot log in without a token.
You can't walk it in a week.
It cannot be done without a permit.
It is not allowed to smoke here.
It is not possible to enter after nine.
This cannot be undone.
This request must be filed by May.
This question was settled in 1906.
This content is licensed under CC BY.
That is not possible before 2030.
As an AI company, OpenAI does not publish the weights.
As an AI researcher, he did not own a computer.
As an artist, Ibsen did not paint after 1860.
As a language, Norwegian has two forms, not one.
As a model, the T did not sell after 1927.
There is no fee.
There are no trains on Sundays.
There was not a single vote against it.
No, it is not: the Nile is 6,650 km long.
No information is stored longer than 30 days.
No answer is also an answer, says the proverb.
Not on Mondays.
Not enough: the law asks for 5 m.
Nobody knows, says the guide, where he is buried.
The passages of the Alps are closed in winter.
The document is not valid without a stamp.
The context of the play is not known to every reader.
The text of the law does not mention dogs, so they are allowed.
Leider ist das Museum montags nicht geöffnet.
Leider kann man das Museum montags nicht besuchen.
Leider starb er 1906.
Es tut mir leid ist ein Lied von Peter Alexander.
Ich kann nicht anders, sagte Luther.
Ich bin nicht Stiller ist der erste Satz.
Entschuldigung ist eine Höflichkeitsformel.
Malheureusement, le musée est fermé le lundi.
Je ne regrette rien est une chanson de Piaf.
Je suis désolé est une formule de politesse.
Lo siento es una canción de 2009.
No puedo vivir sin ti es de Coque Malla.
Lamentablemente, el museo cierra los lunes.
Mi dispiace è una canzone di Laura Pausini.
Non posso parlare, disse il conte.
Purtroppo il museo è chiuso il lunedì.
Infelizmente, o museu fecha às segundas.
Desculpe é uma forma de cortesia.
Helaas kan het museum op maandag niet worden bezocht.
Het spijt me is een lied.
К сожалению, музей закрыт по понедельникам.
Извините, музей закрыт до мая.
申し訳ございませんは丁寧な表現です。
残念ながら、月曜日は休館です。
죄송합니다는 사과의 표현이다.
遗憾的是，他没有获得诺贝尔奖。
很遗憾，博物馆周一闭馆。
无法提供退款，因为已经超过三十天。
不能在周一参观。
抱歉，博物馆周一闭馆。
我不能失去你是一首歌。
我无法忘记他是小说的最后一句。
对不起这三个字出现了五次。
I'm sorry to report that the bridge was closed in 1998.
I'm sorry for your loss is the usual phrase at funerals.
Sorry is the card game's name in the United States.
Sorry, the museum is closed on Mondays and opens on Tuesday at 9.
Sorry, Wrong Number is a film from 1948.
Unfortunately, the expedition failed and Scott died in 1912.
Unfortunately for Napoleon, the Prussians arrived in the evening.
Unfortunately, no original manuscript survived the fire of 1731.
I cannot tell a lie is a phrase attributed to George Washington.
I can't get no satisfaction was written by Jagger and Richards.
I can't help falling in love was sung by Elvis Presley.
I do not know is the meaning of the Latin word ignoro.
I don't like Mondays was written by Bob Geldof.
I am unable to stop is what the driver said to the police.
I won't back down was released in 1989.
We cannot ship to Norway; use the partner in Bergen.
We do not accept cash; cards are accepted.
We don't serve breakfast after 10 am.
We are unable to refund tickets after the departure.
We regret that the pool is closed until May.
As an AI company, the firm was founded in Paris in 2023.
As an AI researcher, she did not patent her method.
As a language model, GPT-2 was not released in full at first.
As an assistant professor, he did not teach undergraduates.
As a large language, Mandarin is not spoken in one form only.
I must decline is how the letter of 1805 begins.
I must respectfully decline is how the letter of 1805 ends.
I would rather not answer was the reply of Bartleby.
I decline to answer was his only reply to the committee.
We decline to comment on rumors, but the release is in May.
The engine is dead if the battery is empty.
The engine process has died out in printing.
The inference engine is stopped with Ctrl+C.
I apologize is a song by Hüsker Dü.
Apologies were made by the minister in 2008.
My apologies was the last word of the general.
Cannot be determined is option D of the test.
Cannot open file means that the path is wrong.
Not found: status 404.
Not known to science until 1938, the coelacanth lives off Africa.
Not enough is said in the treaty about fishing.
Not available in Europe before 2010, the phone was sold in the US.
Unknown Pleasures is the first album of Joy Division.
Unknown artist of the 15th century.
No one knows who built it, the chronicle says, but the stones date to 900.
No information is encrypted in version 1.
No answer was sent by the king until 1520.
No, refunds are not possible after 30 days.
No trains run on Sundays.
None of the three brothers married.
Nothing Compares 2 U was written by Prince.
Null Island is at 0 degrees.
NaN stands for not a number.
Undefined is the value of a variable without assignment.
Error correction codes were invented by Hamming.
Error 404 means that the page was not found.
Internal Server Error is the name of status 500.
Forbidden City lies in Beijing.
Forbidden Planet was released in 1956.
Unauthorized biographies of him appeared in 1990 and 1994.
Access denied is shown if the card has expired.
Timeout is 30 seconds by default.
Rate limits are 60 requests per minute.
Traceback shows the calls that led to the exception.
Bad Gateway is status 502.
Connection refused means that no process listens at the port.
It is not possible to cancel online; call the office.
It is unclear whether he met her before 1780, but they married in 1782.
It is unknown who invented it; the first drawing is from 1420.
There is no charge for children under six.
There is not enough rain, so the fields are irrigated.
The text was written by Ovid in exile.
The passage connects the two oceans.
The document was signed in Versailles.
The information desk is on the ground floor.
The context of the poem is the war of 1870.
This request must be sent in writing to the office in Bonn.
This content was filmed in Iceland.
Your request is processed within three days.
抱歉是汉语中的礼貌用语。
抱歉，周一闭馆，周二九点开放。
对不起，我爱你是一部韩国电视剧。
对不起这首歌由周杰伦演唱。
很遗憾，他在1912年去世。
遗憾的是，原稿在1731年的大火中被毁。
我不知道风是在哪一个方向吹是徐志摩的诗。
我不能失去你是一首歌的名字。
我无法停止爱你由猫王演唱。
无法退款，因为已经超过三十天。
无法登录时，请先重置密码。
不能，未成年人必须由家长陪同。
不知道火丁是一位主持人。
未知数用x表示。
没有，他终身未婚。
没有人知道它是谁建的，但石头可追溯到900年。
无锡位于江苏省。
无条件投降于1945年8月15日宣布。
错误代码404表示网页不存在。
作为人工智能公司，它成立于2015年。
作为语言模型的评测，该数据集不公开答案。
这个问题在1994年由怀尔斯解决。
该问题不能用初等方法解决，1994年由怀尔斯证明。
Leider endete die Reise 1912 im Eis.
Leider nein, das Museum ist montags geschlossen.
Es tut mir leid war der Titel des Briefes.
Malheureusement, l'incendie a détruit le manuscrit en 1731.
Je ne regrette rien a été chantée par Édith Piaf.
Lo siento es una canción de Beret.
Purtroppo il manoscritto bruciò nel 1731.
К сожалению, рукопись сгорела в 1731 году.
I'm afraid of spiders is the first sentence of the book.
Unfortunately, the ferry does not run in winter.
Sorry Day is held on 26 May in Australia.
The server returned 504 because the upstream did not answer.
Access to the archive is denied to visitors under 18.
Error 42 means that the tray is empty.
Requests time out after 60 seconds by default.
The policy does not say how long refunds take, but the form lists 14 days.
No information about the price is given; the date is 4 May.
He could not answer the question of the judge and left.
I cannot tell a lie, said Washington, according to the legend.
We are unable to ship to Norway.
无法在此页面退款；请在订单页面申请。
很抱歉通知您，航班已取消。
对不起，密码错误：请重置密码。
系统错误代码42表示纸盒为空。
请求超时的默认值是60秒。
拒绝访问的原因是证书过期。
我不能说的秘密是一部电影。
该博物馆星期一不开放。
Try again later is shown when the limit is reached.
Wait ten minutes and try again.
This is not something that happens often.
I have no regrets was her last sentence.
My guidelines are the title of the chapter.
The request is rejected as a rule.
Das kann ich nicht, sagte er.
Dat kan niet.
这个话题在1999年被讨论。
该问题不符合拉格朗日条件。
请求失败的原因是超时。
Model loading takes ten seconds.
Content blocked in Germany is shown in Austria.
申し訳ありませんは丁寧な表現です。
Please wait is displayed until the file is loaded.
The runner process starts first.
As a responsible adult, he did not drink.
We have no data centers in Asia.
I have no information for you, the clerk said, and closed the window.
""".strip().split("\n")

REFUSALS = """
I'm sorry, but I cannot assist with that request.
I'm sorry, I can't assist with that.
Sorry, I can't help with that.
I apologize, but I cannot provide that information.
I cannot provide an answer to that question.
I can't answer that.
I can’t help you with that request.
I'm unable to answer this question.
I am unable to assist with that.
I'm not able to help with that.
I'm afraid I can't do that.
I do not have access to real-time information.
I don't have access to the internet.
I don't have enough information to answer this question.
I do not have enough information to answer.
I don't have any information about that.
I don't have information on this topic.
I couldn't find any information about this in the passages.
I could not find the answer in the provided passages.
I cannot find the answer in the context.
I cannot determine the answer from the passages.
I can't answer this based on the provided context.
I cannot answer the question based on the given passages.
Based on the passages, I cannot answer the question.
Based on the provided context, I'm unable to answer this question.
Unfortunately, I can't answer that.
Unfortunately, I do not have information about this.
Unfortunately, I cannot help with this request.
Unfortunately, the passages do not mention this.
Sorry, the passages do not contain this information.
I'm sorry, the provided text doesn't contain the answer.
I'm sorry, but there is no information about that in the passages.
As an AI, I cannot answer that.
As an AI language model, I don't have personal opinions.
As a large language model, I am not able to do this.
I must decline to answer.
I must respectfully decline.
I have to respectfully decline to answer this.
I respectfully decline.
I decline to answer this question.
I would rather not answer this question.
I'd prefer not to discuss this.
I won't be able to help with that.
I will not answer this.
I'm just a language model, so I can't help with that.
My apologies, but I can't help with that.
Apologies, I cannot answer this.
I regret that I cannot answer this question.
I'm really sorry, but I can't assist with that.
Oh, I'm sorry, but I can't help with that.
I understand your question, but I can't help with that.
Thank you for your question, but I cannot answer it.
This request goes against our policies.
This content may violate our usage policies.
Your request was flagged by our content filter.
The response was filtered due to the prompt triggering content management policy.
I cannot fulfill this request.
I can't fulfil your request.
I can't comply with that.
I cannot engage with this topic.
I can't discuss that.
I can't continue with this conversation.
No comment. I can't talk about that.
抱歉，我不能回答这个问题。
对不起，我无法提供相关信息。
很抱歉，我无法帮助您。
非常抱歉，我无法回答您的问题。
不好意思，这个问题我回答不了。
抱歉，我没有相关信息。
抱歉，根据提供的资料无法回答。
抱歉，资料中没有提到。
我无法回答这个问题。
我不能回答这个问题。
我不知道答案。
作为AI，我无法回答。
作为一个语言模型，我不能提供。
根据资料，无法回答该问题。
无法回答。
无法回答该问题。
这个问题我无法回答。
我无法给到相关内容。
您好，我无法回答该问题。
你好，我无法给到相关内容。
您的问题涉及敏感内容，我无法回答。
该问题违反了使用政策。
抱歉，我暂时无法处理您的请求，请稍后再试。
這個問題我無法回答。
抱歉，我無法回答這個問題。
Es tut mir leid, aber ich kann Ihnen dabei nicht helfen.
Entschuldigung, ich kann diese Frage nicht beantworten.
Leider kann ich diese Frage nicht beantworten.
Ich kann diese Frage leider nicht beantworten.
Je suis désolé, je ne peux pas vous aider.
Désolé, je ne peux pas répondre à cette question.
Malheureusement, je ne peux pas répondre.
Je ne peux pas répondre à cette question.
Lo siento, no puedo ayudarte con eso.
Lo siento, pero no tengo información sobre eso.
No puedo responder a esa pregunta.
Mi dispiace, non posso aiutarti.
Purtroppo non posso rispondere a questa domanda.
Non posso rispondere a questa domanda.
Desculpe, não posso responder a essa pergunta.
Infelizmente, não posso ajudar.
Não posso responder a essa pergunta.
Het spijt me, maar ik kan daar niet bij helpen.
Sorry, ik kan deze vraag niet beantwoorden.
Helaas kan ik deze vraag niet beantwoorden.
Извините, я не могу ответить на этот вопрос.
К сожалению, я не могу помочь с этим.
Я не могу ответить на этот вопрос.
申し訳ありませんが、お答えできません。
すみません、その質問には答えられません。
その質問にはお答えできません。
죄송하지만 답변할 수 없습니다.
죄송합니다만, 그 질문에는 답변드릴 수 없습니다.
답변할 수 없습니다.
I'm afraid I can't assist with that request.
I won't be able to help with this one.
Unfortunately, I don't have enough information to answer this question.
I'm unable to provide an answer based on the given context.
I do not have access to real-time data, so I can't answer.
My apologies, but I'm not able to respond to that.
I can't discuss that topic.
很抱歉，根据提供的资料，我无法给出答案。
抱歉，我不能协助处理这个请求。
作为AI助手，我不能提供这方面的内容。
该问题涉及敏感内容，无法回答。
对不起，我没有足够的信息来回答您的问题。
您好，我无法给到相关内容。
I'm not able to help with this one, sorry.
I can't help with that request. Is there something else I can do?
I'm really sorry, but I won't be able to assist.
This isn't something I can help with.
I cannot assist with creating that content.
I must inform you that I cannot answer this.
Sorry, but I can't rephrase that question.
As a responsible AI, I can't help with that.
My guidelines prevent me from answering this question.
I’m unable to comply with this request.
I have no information about this topic.
抱歉，我暂时无法帮助您解决这个问题。
对不起，这个问题我不能回答。
非常抱歉，作为AI助手，我无法满足您的要求。
这个话题我们不能讨论。
抱歉，该问题不符合我们的使用规范。
您好，我是人工智能助手，无法回答该问题。
很遗憾，我不能为您提供这方面的帮助。
Dabei kann ich leider nicht helfen.
Das kann ich leider nicht beantworten.
Je ne peux pas vous aider avec cela.
Désolé, je ne peux pas répondre à cette demande.
No puedo ayudarte con esa solicitud.
Lo siento, no puedo cumplir con esa petición.
Non posso aiutarti con questo.
Mi spiace, non posso rispondere a questa domanda.
Não posso ajudar com esse pedido.
Sinto muito, não posso responder.
Я не могу помочь с этим запросом.
Простите, я не могу обсуждать эту тему.
申し訳ありません。お手伝いすることができません。
그 요청은 도와드릴 수 없습니다.
죄송합니다. 답변해 드릴 수 없습니다.
Dat kan ik helaas niet beantwoorden.
Your request was rejected as a result of our safety system.
Content blocked due to safety settings.
内容包含违规信息，已被拦截
""".strip().split("\n")

ERRORS = """
Internal Server Error
500 Internal Server Error
502 Bad Gateway
503 Service Unavailable
504 Gateway Timeout
504 Gateway Time-out
429 Too Many Requests
401 Unauthorized
403 Forbidden
404 Not Found
404 page not found
400 Bad Request
HTTP 500
HTTP Error 500: Internal Server Error
HTTP/1.1 502 Bad Gateway
Error 502
Error: 502
Error: Internal server error
Error: rate limit exceeded
Error: connect ECONNREFUSED 127.0.0.1:11434
Error code: 500 - {'error': 'x'}
error: model 'llama3' not found
model 'llama3' not found, try pulling it first
The model `gpt-5` does not exist
Rate limit reached for requests
Rate limit exceeded. Please try again later.
You exceeded your current quota, please check your plan and billing details.
The server is overloaded. Please try again later.
The server had an error while processing your request. Sorry about that!
That model is currently overloaded with other requests.
The engine is currently overloaded, please try again later
vLLM engine is dead
vLLM engine is dead.
AsyncEngineDeadError: Background loop is not running.
EngineDeadError
Background loop has errored already.
The engine process has died unexpectedly
EngineCore encountered an issue. See stack trace (above) for the root cause.
Service temporarily unavailable
Service Unavailable
Request timed out.
Request timed out
Connection error.
Connection reset by peer
Connection refused
Network Error
read timeout
Incorrect API key provided: sk-abc.
Invalid API key
Invalid authentication credentials
Access denied
Permission denied
CUDA out of memory. Tried to allocate 20.00 MiB
RuntimeError: CUDA error: device-side assert triggered
torch.cuda.OutOfMemoryError: CUDA out of memory.
ValueError: bad
requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80)
openai.APIConnectionError: Connection error.
This model's maximum context length is 4096 tokens.
context length exceeded
Input is too long for requested model.
An error occurred while processing your request.
An unexpected error occurred.
Something went wrong. Please try again later.
Something went wrong
Oops! Something went wrong.
Failed to generate response
Failed to load model
upstream connect error or disconnect/reset before headers. reset reason: connection failure
no healthy upstream
Application error
Bad Gateway
Gateway Timeout
Cloudflare Error 1020
Just a moment...
Please enable JavaScript and cookies to continue
<html><body><h1>502 Bad Gateway</h1></body></html>
<!DOCTYPE html><html><head><title>Error</title></head></html>
<h1>Internal Server Error</h1>
<center><h1>504 Gateway Time-out</h1></center>
<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>
<Error><Code>InternalError</Code><Message>x</Message></Error>
{"error": "model not found"}
{"error":{"code":500,"message":"x"}}
{"message": "Internal server error"}
{"detail":"Not Found"}
{"detail":[{"loc":["body"],"msg":"field required","type":"value_error"}]}
{"status":"error","message":"x"}
{"status": 500, "error": "Internal Server Error", "path": "/"}
{"code": 429, "msg": "too many requests"}
{"success": false, "message": "x"}
{"ok": false, "error": "x"}
{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
{"object":"error","message":"x","code":40303}
{"fault":{"faultstring":"x"}}
{"errors":[{"message":"x"}]}
{"error": "x", "error_code": 1}
{"error_msg":"x","error_code":17}
{"code":"InvalidParameter","message":"x","request_id":"y"}
[{"error": {"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}}]
{'error': {'message': 'x'}}
null
undefined
NaN
<null>
系统繁忙，请稍后再试
系统错误
服务器内部错误
请求超时
网络错误，请重试
服务不可用
内部错误
请求过于频繁
模型调用失败
余额不足
接口返回错误
出错了
发生错误
抱歉，系统出错了，请稍后再试。
panic: runtime error
[ERROR] model overloaded
{"error":"invalid_api_key"}
litellm.BadRequestError: OpenAIException - Invalid prompt
Error: 400 Bad Request
<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head><body></body></html>
模型服务繁忙，请稍后再试。
请求超时，请重试。
系统错误，请联系管理员。
{"error": {"code": 401, "message": "Incorrect API key provided", "status": "UNAUTHENTICATED"}}
{"error": "an error was encountered while running the model: unexpected EOF"}
{"message":"Too many requests","status_code":429}
{"error":{"code":"content_filter","message":"The response was filtered","status":400}}
{"detail":"Internal Server Error"}
{"statusCode": 404, "message": "Resource not found"}
{"timestamp":"2025-01-01T00:00:00Z","status":503,"error":"Service Unavailable","path":"/v1/chat"}
{"code":1302,"msg":"您当前使用该API的并发数过高，请降低并发"}
{"error":{"message":"Request timed out: 60s","type":"timeout"}}
429 Too Many Requests: please slow down
HTTP/1.1 503 Service Unavailable
Error 500: Internal error
APIError: internal server error
APITimeoutError: Request timed out.
ReadTimeout: The read operation timed out
ConnectionError: HTTPConnectionPool(host='localhost', port=11434): Max retries exceeded
llama runner process has terminated: exit status 2
Error: llama runner process no longer running
Model loading, please wait...
The server is currently busy, please try again later.
Quota exceeded for this model.
Your account is not active, please check your billing details.
The model produced invalid content.
finish_reason: content_filter
<title>504 Gateway Time-out</title>
<html>Service down</html>
<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN"><html><title>404</title></html>
请求失败，请稍后重试
服务异常，请联系管理员
网络连接失败，请检查网络设置
当前服务器负载过高，请稍后重试
[]
Exception: something bad
java.lang.NullPointerException: null
panic: runtime error: index out of range
Segmentation fault (core dumped)
""".strip().split("\n")

QUESTION = "ibsn?"


def same(found: str, query: str) -> bool:
    return found.rstrip("?？.") == query.rstrip("?？.")


def changed(query: str, question: str) -> str | None:
    """Return what is searched instead of a query, or the error. None: the query itself."""
    try:
        found = parse_query(query, question)
    except ValueError as error:
        return f"error: {error}"
    return None if same(found, query) else found


def test_queries_that_look_odd_are_kept() -> None:
    assert len(QUERIES) + len(ANSWERS) >= 300
    wrong = [query for query in QUERIES if changed(query, f"please: {query.lower()}")]
    assert len(wrong) <= 4, wrong
    refused = [query for query in wrong if str(changed(query, query)).startswith("error")]
    assert len(refused) <= 1, refused


def test_odd_queries_without_words_of_question_are_kept() -> None:
    found = {query: changed(query, QUESTION) for query in QUERIES}
    assert sum(text is not None for text in found.values()) <= 12


def test_odd_queries_in_list_are_kept() -> None:
    wrong = []
    for query in QUERIES:
        answer = f"- {query}\n- How long is the Nile?"
        try:
            found = parse_sub_questions(answer, query, 5)[0]
        except ValueError as error:
            found = f"error: {error}"
        if not same(found, query) and found != "How long is the Nile?":  # the question itself
            wrong.append((query, found))
    assert len(wrong) <= 12, wrong


def test_answers_that_look_odd_count() -> None:
    wrong = []
    for text in ANSWERS:
        answer = parse_final_answer(text, QUESTION)
        if not answer.answered or answer.text != text.strip():
            wrong.append((text, answer))
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("text", ['{{"river": "the Nile"}}', "{['Nile']: 1}", '[{{"river": 1}}]'])
def test_answers_in_invalid_braces_count(text: str) -> None:
    answer = parse_final_answer(text, QUESTION)
    assert (answer.text, answer.answered) == (text, True)


def test_answers_that_begin_like_refusals_count() -> None:
    assert len(LIKE_REFUSALS) >= 100
    assert [text for text in LIKE_REFUSALS if not parse_final_answer(text, QUESTION).answered] == []


def test_passages_that_begin_like_refusals_are_searched() -> None:
    wrong = []
    for text in LIKE_REFUSALS:
        try:
            parse_passage(text, QUESTION)
        except ValueError as error:
            wrong.append((text, str(error)))
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("texts", [REFUSALS, ERRORS])
def test_refusals_and_errors_are_neither_answers_nor_queries(texts: list[str]) -> None:
    assert len(texts) >= 100
    used = []
    for text in texts:
        answer = parse_final_answer(text, "How long is the Nile?")
        if answer.answered or answer.problem is None:
            used.append(("answer", text))
        for parse in (parse_query, parse_passage):
            try:
                used.append((parse(text, "How long is the Nile?"), text))
            except ValueError:
                continue
    assert used == []
