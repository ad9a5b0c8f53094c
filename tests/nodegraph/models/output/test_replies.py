# ruff: noqa: E501
"""Replies of models that were written before the rules, as tables: reply, expected result."""

import pytest

from nodekin.nodegraph.models.output.free_text import parse_final_answer
from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_rewrite,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.routes import parse_route
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions


def text_of(row: str) -> str:
    return row.replace("⏎", "\n").replace("⇥", "\t")


ERRORS = """
{"error": {"message": "Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 29800", "type": "tokens", "param": null, "code": "rate_limit_exceeded"}}
{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
{"error": {"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}}
{"detail": "Not authenticated"}
{"detail": [{"loc": ["body", "prompt"], "msg": "field required", "type": "value_error.missing"}]}
{"message": "Invalid API key provided", "request_id": "a1b2c3"}
{"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]", "request_id": "7f"}
{"error_code": 17, "error_msg": "Open api daily request limit reached"}
{"status": 500, "error": "Internal Server Error", "path": "/v1/chat/completions"}
{"success": false, "errors": [{"code": 10000, "message": "Authentication error"}], "result": null}
{"error":"model 'qwen3:4b' not found"}
{"object": "error", "message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "code": 400}
Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check your plan and billing details.'}}
openai.RateLimitError: Error code: 429
anthropic.APIStatusError: {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}
HTTPSConnectionPool(host='api.openai.com', port=443): Max retries exceeded with url: /v1/chat/completions (Caused by NewConnectionError('Failed to establish a new connection'))
Connection refused
Connection timed out after 30000 milliseconds
502 Bad Gateway
504 Gateway Time-out
HTTP 429 Too Many Requests
HTTP/1.1 503 Service Unavailable⏎Content-Type: text/plain⏎Retry-After: 30⏎⏎upstream connect error
upstream connect error or disconnect/reset before headers. reset reason: connection termination
no healthy upstream
stream timeout
Internal Server Error
Service Unavailable
Too many requests, please slow down.
Rate limit exceeded. Please try again in 20s.
<html>⏎<head><title>502 Bad Gateway</title></head>⏎<body>⏎<center><h1>502 Bad Gateway</h1></center>⏎<hr><center>nginx/1.24.0</center>⏎</body>⏎</html>
<!DOCTYPE html>⏎<html lang="en-US">⏎<head><title>Just a moment...</title></head><body>Checking your browser before accessing the site.</body></html>
<!doctype html><html><head><title>Login</title></head><body><form action="/login"><input name="user"></form></body></html>
<?xml version="1.0" encoding="UTF-8"?>⏎<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>
Traceback (most recent call last):⏎  File "/app/main.py", line 12, in <module>⏎    main()⏎  File "/app/main.py", line 8, in main⏎    raise ValueError("bad")⏎ValueError: bad
Exception in thread "main" java.lang.NullPointerException: Cannot invoke "String.length()"⏎⇥at com.example.Main.main(Main.java:5)
TypeError: Cannot read properties of undefined (reading 'choices')⏎    at callModel (/srv/app/llm.js:42:19)⏎    at processTicksAndRejections (node:internal/process/task_queues:95:5)
panic: runtime error: index out of range [3] with length 3⏎⏎goroutine 1 [running]:⏎main.main()⏎⇥/tmp/sandbox/prog.go:9 +0x1d⏎exit status 2
thread 'main' panicked at 'called `Option::unwrap()` on a `None` value', src/main.rs:4:37⏎note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
Unhandled exception. System.NullReferenceException: Object reference not set to an instance of an object.⏎   at Program.Main() in /app/Program.cs:line 7
undefined method `length' for nil:NilClass (NoMethodError)⏎⇥from app.rb:3:in `<main>'
PHP Fatal error:  Uncaught TypeError: strlen(): Argument #1 ($string) must be of type string in /var/www/index.php:3
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity)
RuntimeError: CUDA error: device-side assert triggered
Segmentation fault (core dumped)
bash: ollama: command not found
curl: (7) Failed to connect to localhost port 11434: Connection refused
Error: llama runner process has terminated: exit status 0xc0000409
ERROR: The request was rejected because it was considered high risk
Error communicating with OpenAI: HTTPSConnectionPool
The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.
finish_reason: content_filter
[Content removed due to safety policies]
Output blocked by content filtering policy
Content Exists Risk
系统繁忙，请稍后再试
请求过于频繁，请稍后重试。
服务器繁忙，请稍后再试。
抱歉，我无法回答这个问题。
很抱歉，作为一个人工智能语言模型，我无法协助处理此请求。
您的账户余额不足，请充值后再试。
你好，这个问题我暂时无法回答，让我们换个话题再聊聊吧。
内容包含敏感信息，无法输出。
I'm sorry, but I can't assist with that request.
I cannot help with this.
As an AI language model, I don't have access to real-time data, so I can't rewrite this.
I'm not able to provide that information.
Sorry, that's beyond my current scope. Let's talk about something else.
I apologize, but I am unable to fulfill this request.
Es tut mir leid, aber dabei kann ich nicht helfen.
Leider kann ich diese Anfrage nicht beantworten.
Je suis désolé, mais je ne peux pas vous aider avec cette demande.
Lo siento, pero no puedo ayudar con esa solicitud.
Desculpe, mas não posso ajudar com isso.
Mi dispiace, ma non posso aiutarti con questa richiesta.
申し訳ありませんが、そのご要望にはお応えできません。
죄송하지만 그 요청은 도와드릴 수 없습니다.
Извините, я не могу помочь с этим запросом.
عذرًا، لا يمكنني المساعدة في هذا الطلب.
Het spijt me, maar daar kan ik niet bij helpen.
<rewritten>
null
undefined
[object Object]
NaN
Please provide the question you would like me to rewrite.
请提供需要改写的问题。
Model qwen2.5-72b is currently loading, estimated time 120.0
I'm sorry, I didn't quite understand. Could you please clarify your question?
{"error": {"type": "invalid_request_error", "message": "max_tokens: 100000 > 8192"}}
{"code": 1301, "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}
{"error":{"message":"This request requires more credits","code":402}}
{"errors":[{"message":"you have used up your daily free allocation","code":4006}],"success":false}
{"fault":{"faultstring":"Invalid ApiKey","detail":{"errorcode":"oauth.v2.InvalidApiKey"}}}
{"message":"Service temporarily unavailable","statusCode":503}
{"status":"error","msg":"quota exhausted"}
Error: 400 Bad Request
ERROR 1045 (28000): Access denied for user 'root'@'localhost'
APIConnectionError: Connection error.
requests.exceptions.ReadTimeout: HTTPConnectionPool(host='localhost', port=8000): Read timed out. (read timeout=60)
dial tcp 127.0.0.1:11434: connect: connection refused
rpc error: code = Unavailable desc = transport is closing
ECONNREFUSED 127.0.0.1:8080
getaddrinfo ENOTFOUND api.openai.com
SSL: CERTIFICATE_VERIFY_FAILED
429 Too Many Requests
Request timed out.
The server is overloaded or not ready yet.
Model not found
Invalid token
Insufficient balance
Your quota has been exhausted.
org.springframework.web.client.HttpServerErrorException$BadGateway: 502 Bad Gateway⏎⇥at org.springframework.web.client.HttpServerErrorException.create(HttpServerErrorException.java:107)
Stack trace:⏎#0 /var/www/app.php(12): call()⏎#1 {main}
Fatal Python error: Segmentation fault
<html><body><h1>503 Service Unavailable</h1>No server is available to handle this request.</body></html>
<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>
该请求触发了内容安全策略，已被拦截。
服务暂时不可用，请稍后再试。
请求超时
抱歉，我还没有学会回答这个问题。
作为AI，我不能对此发表看法。
I'm sorry, but as a text-based AI I can't do that.
I must decline to answer this question.
I won't be able to help with that.
Ich kann Ihnen dabei leider nicht weiterhelfen.
Désolé, je ne suis pas en mesure de répondre à cette question.
申し訳ございませんが、お答えできません。
{"error": "Too Many Requests", "retry_after": 12}
{"errorCode": "ThrottlingException", "message": "Rate exceeded"}
{"type":"about:blank","title":"Unauthorized","status":401}
{"msg":"token expired","code":401}
{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}
{"error":{"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}
botocore.exceptions.ClientError: An error occurred (ThrottlingException) when calling the InvokeModel operation: Too many requests
google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded
litellm.ServiceUnavailableError: OpenAIException - overloaded
Error 524: A timeout occurred
Status 503: upstream unavailable
Request failed with status code 500
Failed to connect to the model server.
Could not connect to Ollama at http://localhost:11434
Unable to load model: file not found
No API key provided.
Invalid API key.
Access to this model is denied.
This model is currently unavailable.
Daily limit reached. Upgrade your plan to continue.
You have reached your usage limit.
The service is under maintenance.
Read timed out. (read timeout=30)
Broken pipe
Network is unreachable
Name or service not known
Too many open files
ValueError: too many values to unpack (expected 2)
KeyError: 'choices'
System.Net.Http.HttpRequestException: Connection refused (localhost:8080)⏎ ---> System.Net.Sockets.SocketException (111): Connection refused
Caused by: java.net.SocketTimeoutException: Read timed out
  File "main.py", line 3⏎    print("x⏎          ^⏎SyntaxError: unterminated string literal
lua: main.lua:3: attempt to index a nil value
<h1>Not Found</h1><p>The requested URL was not found on this server.</p>
<html><head><meta http-equiv="refresh" content="0;url=/login"></head></html>
模型服务异常
网络错误，请检查网络连接
接口调用超时，请重试
您的请求包含敏感词，请修改后重试
当前使用人数过多，请稍后再试～
我无法提供这方面的帮助。
这个问题涉及敏感内容，我不能回答。
作为一个语言模型，我没有能力回答这个问题。
I can't assist with that.
I'm unable to provide an answer to that.
That request goes against my guidelines.
Sorry, I can't help with requests like this.
I won't engage with this topic.
Je regrette, mais je ne peux pas traiter cette demande.
Mi spiace, non posso fornire queste informazioni.
Lo lamento, no me es posible responder.
Sinto muito, não consigo responder a isso.
К сожалению, я не могу ответить на этот вопрос.
죄송합니다. 답변드릴 수 없습니다.
その質問にはお答えできません。
""".strip().split("\n")


@pytest.mark.parametrize("row", ERRORS)
def test_error_is_neither_answer_nor_query(row: str) -> None:
    query = "How long is the Nile?"
    reply = text_of(row)
    assert not parse_final_answer(reply, query).answered
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_rewrite(reply, query)
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_phrasings(reply, query, 5)
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_passage(reply, query)


UNKNOWN_ANSWERS = """
When was the bridge in Tavira rebuilt?|The passages do not mention it.
When was the bridge in Tavira rebuilt?|The passages do not mention when the bridge in Tavira was rebuilt.
When was the bridge in Tavira rebuilt?|None of the provided passages contain information about the bridge in Tavira.
When was the bridge in Tavira rebuilt?|The provided context does not contain this information.
When was the bridge in Tavira rebuilt?|There is no information in the passages about the rebuilding of the bridge.
When was the bridge in Tavira rebuilt?|Based on the passages, it is not possible to determine when the bridge was rebuilt.
When was the bridge in Tavira rebuilt?|The date is not given in the passages.
When was the bridge in Tavira rebuilt?|The text doesn't say.
When was the bridge in Tavira rebuilt?|I could not find the answer in the given passages.
When was the bridge in Tavira rebuilt?|I don't know.
When was the bridge in Tavira rebuilt?|Not mentioned.
When was the bridge in Tavira rebuilt?|Not stated in the passages.
When was the bridge in Tavira rebuilt?|Unknown.
When was the bridge in Tavira rebuilt?|Unfortunately, the passages provided do not include any details on the reconstruction of the bridge.
When was the bridge in Tavira rebuilt?|It is unclear from the passages when the bridge was rebuilt.
When was the bridge in Tavira rebuilt?|The passages do not specify the year of the rebuilding.
When was the bridge in Tavira rebuilt?|No answer can be found in the passages.
When was the bridge in Tavira rebuilt?|The information needed to answer this question is missing from the passages.
When was the bridge in Tavira rebuilt?|Cannot be determined from the given context.
When was the bridge in Tavira rebuilt?|The documents only talk about the castle in Tavira, and do not mention the bridge.
When was the bridge in Tavira rebuilt?|Passage [1] is about fishing and passage [2] is about salt. Neither mentions the bridge.
When was the bridge in Tavira rebuilt?|According to the provided documents, the year in which the bridge was rebuilt isn't specified.
When was the bridge in Tavira rebuilt?|Sorry, I couldn't find any relevant information in the passages.
When was the bridge in Tavira rebuilt?|The answer is not in the passages.
When was the bridge in Tavira rebuilt?|Insufficient information.
When was the bridge in Tavira rebuilt?|There isn't enough information to answer this question.
When was the bridge in Tavira rebuilt?|**Answer:** The passages do not provide this information.
When was the bridge in Tavira rebuilt?|The context lacks any reference to the bridge's reconstruction.
When was the bridge in Tavira rebuilt?|Nothing in the passages indicates when the bridge was rebuilt.
When was the bridge in Tavira rebuilt?|The question cannot be answered from the passages.
When was the bridge in Tavira rebuilt?|I'm afraid the passages don't answer this question.
When was the bridge in Tavira rebuilt?|The given passages contain no mention of this bridge.
When was the bridge in Tavira rebuilt?|This information is not available in the provided sources.
When was the bridge in Tavira rebuilt?|No relevant information.
When was the bridge in Tavira rebuilt?|N/A
塔维拉的桥是哪一年重建的？|资料中没有提到。
塔维拉的桥是哪一年重建的？|资料中没有提到塔维拉的桥是哪一年重建的。
塔维拉的桥是哪一年重建的？|根据提供的资料，无法确定桥的重建年份。
塔维拉的桥是哪一年重建的？|从上述资料无法判断桥是哪一年重建的。
塔维拉的桥是哪一年重建的？|未提及。
塔维拉的桥是哪一年重建的？|未知
塔维拉的桥是哪一年重建的？|资料未说明重建的具体年份。
塔维拉的桥是哪一年重建的？|文中并未给出相关信息。
塔维拉的桥是哪一年重建的？|很遗憾，所给资料中不包含这方面的内容。
塔维拉的桥是哪一年重建的？|提供的资料里没有这个问题的答案。
塔维拉的桥是哪一年重建的？|上述段落均未涉及这座桥的重建时间。
塔维拉的桥是哪一年重建的？|现有资料不足以回答该问题。
塔维拉的桥是哪一年重建的？|无法从资料中得知。
塔维拉的桥是哪一年重建的？|资料[1]和[2]只介绍了城堡，没有提及桥的重建。
塔维拉的桥是哪一年重建的？|不清楚。
塔维拉的桥是哪一年重建的？|无相关信息。
塔维拉的桥是哪一年重建的？|材料中找不到与该桥有关的记载。
塔维拉的桥是哪一年重建的？|抱歉，在给定的资料中没有找到相关内容。
Wann wurde die Brücke in Tavira wieder aufgebaut?|Die Textstellen enthalten dazu keine Angaben.
Wann wurde die Brücke in Tavira wieder aufgebaut?|In den Passagen wird nicht erwähnt, wann die Brücke wieder aufgebaut wurde.
Wann wurde die Brücke in Tavira wieder aufgebaut?|Das geht aus den Texten nicht hervor.
Quand le pont de Tavira a-t-il été reconstruit ?|Les passages ne mentionnent pas la date de reconstruction du pont.
Quand le pont de Tavira a-t-il été reconstruit ?|Cette information ne figure pas dans les documents fournis.
¿Cuándo se reconstruyó el puente de Tavira?|Los pasajes no mencionan la reconstrucción del puente.
¿Cuándo se reconstruyó el puente de Tavira?|No se encuentra esa información en los textos proporcionados.
タヴィラの橋はいつ再建されましたか？|資料には記載されていません。
タヴィラの橋はいつ再建されましたか？|提供された資料からは、橋の再建時期は分かりません。
타비라 다리는 언제 재건되었습니까?|제공된 자료에는 해당 정보가 없습니다.
타비라 다리는 언제 재건되었습니까?|자료에서 다리의 재건 시기를 확인할 수 없습니다.
Who designed the lighthouse of Ponta do Pargo?|The designer of the lighthouse is not named in the passages.
Who designed the lighthouse of Ponta do Pargo?|I couldn't find who designed the lighthouse in the provided text.
Who designed the lighthouse of Ponta do Pargo?|The passages provided don't identify the designer.
Who designed the lighthouse of Ponta do Pargo?|There is no mention of the designer in the passages.
Who designed the lighthouse of Ponta do Pargo?|The passages describe the lighthouse's height and age, but do not say who designed it.
Who designed the lighthouse of Ponta do Pargo?|No information about the designer is given.
Who designed the lighthouse of Ponta do Pargo?|Based on the given context, I cannot determine who designed the lighthouse.
Who designed the lighthouse of Ponta do Pargo?|The context doesn't tell us.
Who designed the lighthouse of Ponta do Pargo?|Not specified.
Who designed the lighthouse of Ponta do Pargo?|Unfortunately, this question cannot be answered using the provided passages.
Who designed the lighthouse of Ponta do Pargo?|The provided passages are about fishing and do not discuss the lighthouse.
Who designed the lighthouse of Ponta do Pargo?|It's not stated.
Who designed the lighthouse of Ponta do Pargo?|I do not have enough information to answer this question.
Who designed the lighthouse of Ponta do Pargo?|The identity of the designer remains unknown based on the passages.
Who designed the lighthouse of Ponta do Pargo?|The text makes no reference to a designer.
Who designed the lighthouse of Ponta do Pargo?|The answer cannot be determined from the information given.
Who designed the lighthouse of Ponta do Pargo?|None of the passages name the designer.
Who designed the lighthouse of Ponta do Pargo?|We are not told who designed it.
蓬塔灯塔是谁设计的？|资料中没有关于设计者的信息。
蓬塔灯塔是谁设计的？|所给材料并没有说明灯塔的设计者。
蓬塔灯塔是谁设计的？|根据资料无法得知设计者是谁。
蓬塔灯塔是谁设计的？|文中没有提及。
蓬塔灯塔是谁设计的？|设计者在资料中没有出现。
蓬塔灯塔是谁设计的？|没有足够的信息回答这个问题。
蓬塔灯塔是谁设计的？|资料里查不到设计者的名字。
蓬塔灯塔是谁设计的？|题目所问的内容不在资料范围内。
蓬塔灯塔是谁设计的？|以上内容没有涉及灯塔的设计者。
蓬塔灯塔是谁设计的？|暂无相关资料。
Wer hat den Leuchtturm entworfen?|Die Quellen nennen den Architekten nicht.
Wer hat den Leuchtturm entworfen?|Dazu finden sich in den Texten keine Informationen.
Qui a conçu le phare ?|Les documents ne précisent pas qui a conçu le phare.
¿Quién diseñó el faro?|El texto no indica quién diseñó el faro.
誰が灯台を設計しましたか？|資料には設計者についての記述がありません。
Where was the composer Anna Bon buried?|The burial place of Anna Bon is not mentioned.
Where was the composer Anna Bon buried?|The passages give no information on where she was buried.
Where was the composer Anna Bon buried?|The provided text does not contain details of her burial.
Where was the composer Anna Bon buried?|Her place of burial is not recorded in the passages provided.
Where was the composer Anna Bon buried?|I found nothing about her burial in the passages.
Where was the composer Anna Bon buried?|Nothing in the text tells where she was buried.
Where was the composer Anna Bon buried?|Sorry, the passages don't say.
Where was the composer Anna Bon buried?|It cannot be determined from the passages where she was buried.
Where was the composer Anna Bon buried?|The sources do not reveal this.
Where was the composer Anna Bon buried?|The passages only mention her birth in 1738; her burial is not covered.
Where was the composer Anna Bon buried?|This is not addressed in the passages.
Where was the composer Anna Bon buried?|There's no information regarding her burial.
Where was the composer Anna Bon buried?|I'm unable to find the answer in the given context.
Where was the composer Anna Bon buried?|The context provided is insufficient to answer the question.
Where was the composer Anna Bon buried?|We don't know from these passages.
Where was the composer Anna Bon buried?|The documents provided contain no reference to her grave.
Where was the composer Anna Bon buried?|Answer: Not found in the passages.
Where was the composer Anna Bon buried?|The answer to this question isn't contained in the passages.
Where was the composer Anna Bon buried?|Unanswerable.
Where was the composer Anna Bon buried?|Passages 1 and 2 do not mention her burial.
Where was the composer Anna Bon buried?|Her burial place is unknown according to the passages.
Where was the composer Anna Bon buried?|No passage mentions where she was buried.
安娜·邦葬在哪里？|资料没有记载她葬在哪里。
安娜·邦葬在哪里？|给出的资料未涉及她的墓地。
安娜·邦葬在哪里？|无法根据现有资料作答。
安娜·邦葬在哪里？|没有找到答案。
安娜·邦葬在哪里？|资料中只提到她的出生年份，没有提到葬地。
安娜·邦葬在哪里？|文章没有交代这一点。
安娜·邦葬在哪里？|抱歉，资料不足，无法回答。
安娜·邦葬在哪里？|该信息未在资料中提供。
安娜·邦葬在哪里？|关于她的墓地，资料只字未提。
安娜·邦葬在哪里？|从资料中看不出她葬在哪里。
安娜·邦葬在哪里？|无从得知。
Wo liegt Anna Bon begraben?|Das wird in den Passagen nicht gesagt.
Wo liegt Anna Bon begraben?|Die Texte geben darüber keine Auskunft.
Où est enterrée Anna Bon ?|Le contexte ne permet pas de répondre à cette question.
Où est enterrée Anna Bon ?|Aucun des passages ne mentionne sa tombe.
¿Dónde está enterrada Anna Bon?|Los documentos no contienen esa información.
¿Dónde está enterrada Anna Bon?|No se menciona en los textos.
""".strip().split("\n")


@pytest.mark.parametrize("row", UNKNOWN_ANSWERS)
def test_statement_that_answer_is_unknown_is_no_answer(row: str) -> None:
    query, reply = row.split("|")
    assert not parse_final_answer(reply, query).answered


ANSWERS = """
What does the book say about the king?|I cannot find a place where the king is praised, and in chapter 3 the book calls him a coward [1].
What does the book say about the king?|The passages do not mention his coronation, but they say that he ruled for nine years [2].
What does the book say about the king?|I'm sorry to say that the king is murdered in the third act [1].
What does the book say about the king?|Unfortunately, the king died in 1203 before the castle was finished [1].
What does the book say about the king?|Unfortunately for him, the barons revolted [2].
What does the book say about the king?|The king did not mention his son in his will [1].
What does the book say about the king?|There is no information that he ever left Norway; he died in Bergen in 1263 [1].
What does the book say about the king?|Unknown to the court, the king had married in secret [1].
What does the book say about the king?|No, the book does not mention a second king, it tells of one king only [1].
What does the book say about the king?|The book doesn't say much, but it states that the king was blind [1].
What does the book say about the king?|It is not stated directly, but the king was born in 1180, since he was 20 in 1200 [1][2].
What does the book say about the king?|Although the passages do not give a date, they say that the king was crowned in Trondheim [2].
Why was the flight cancelled?|I can't say that the weather was the reason: the airline names a strike of the crew [1].
Why was the flight cancelled?|The airline could not find a crew [1].
Why was the flight cancelled?|The pilot was unable to land because of fog [2].
Why was the flight cancelled?|The company apologized and said that it was unable to fly because of a strike [1].
Why was the flight cancelled?|"I'm sorry, but we cannot fly today", the captain said, because an engine had failed [1].
Why was the flight cancelled?|Error in the booking system: the seats had been sold twice [1].
Why was the flight cancelled?|No crew was available [1].
Why was the flight cancelled?|There was not enough fuel at the airport [2].
Why was the flight cancelled?|Nobody could determine the exact cause, the report says, but ice on the wings is likely [1].
Why was the flight cancelled?|The airline did not provide a replacement aircraft [1].
What did the commission find out?|The commission found no information about the money in the accounts [1].
What did the commission find out?|The commission could not determine the cause of the fire [1].
What did the commission find out?|It found that the contract does not mention a deadline [1].
What did the commission find out?|The documents do not contain the signature of the minister, the commission found [2].
What did the commission find out?|That the passages under the castle are not safe [1].
What did the commission find out?|Nothing: it was dissolved in 1931 before its first meeting [1].
What did the commission find out?|The cause is unknown, according to the report of the commission [1].
What did the commission find out?|Not much. It confirmed that two ships had sunk [1].
What did the commission find out?|There is insufficient evidence of fraud, the commission concluded [1].
What did the commission find out?|The records do not say who gave the order, the commission wrote in 1952 [1].
What does clause 4 say about liability?|We cannot be held liable for indirect damage [1].
What does clause 4 say about liability?|The supplier cannot assist with repairs after two years [1].
What does clause 4 say about liability?|I don't know of a limit in clause 4; it says that the supplier is liable without limit [1].
What does clause 4 say about liability?|No liability is accepted for data loss [1].
What does clause 4 say about liability?|The information is not available to third parties, and the supplier is liable for leaks [1].
What does clause 4 say about liability?|Sorry about the confusion in earlier versions: clause 4 limits liability to EUR 10,000 [1].
What does clause 4 say about liability?|As an AI provider, the supplier is liable for faults of its models [1].
What does clause 4 say about liability?|Access denied messages are not a fault in the sense of clause 4 [1].
这份报告的结论是什么？|抱歉二字没有出现在报告中，结论是公司应当赔偿三万元。[1]
这份报告的结论是什么？|无法确定火灾的原因，这是报告的结论。[1]
这份报告的结论是什么？|报告没有提到罚款，但认定公司负全部责任。[1]
这份报告的结论是什么？|很遗憾，报告认定事故造成两人死亡。[1]
这份报告的结论是什么？|对不起，打错了：结论是合同无效。[1]
这份报告的结论是什么？|不能证明被告有罪。[1]
这份报告的结论是什么？|未知的病毒引起了这次疫情。[2]
这份报告的结论是什么？|资料没有直接说明，但由[1]可知工程于1998年完工。
这份报告的结论是什么？|没有证据表明存在贪污。[1]
这份报告的结论是什么？|系统繁忙是因为请求太多，报告建议增加服务器。[1]
这份报告的结论是什么？|不知道真相的村民搬走了，村子于1960年废弃。[1]
这份报告的结论是什么？|文件中没有签名，因此合同无效。[1]
Was sagt der Bericht?|Leider starben zwei Menschen bei dem Unfall [1].
Was sagt der Bericht?|Der Bericht erwähnt die Brücke nicht, aber den Tunnel, der 1974 eröffnet wurde [1].
Was sagt der Bericht?|Es tut ihm leid, sagte der Minister, und er trat zurück [1].
¿Qué dice la carta?|Lo siento mucho, escribe el rey, y pide perdón a su hijo [1].
¿Qué dice la carta?|No puedo volver a Madrid, dice la carta [1].
Que dit la lettre ?|Je suis désolé de partir, écrit-il à sa mère en 1916 [1].
Que dit la lettre ?|Malheureusement, le pont s'est effondré en 1755 [1].
手紙には何と書いてありますか？|申し訳ありませんが結婚できません、と彼は手紙に書いた。[1]
What does the report say about the dam?|The passages through the dam were not closed, it says, and water ran out [1].
What does the report say about the dam?|I am sorry to report that the dam broke in 1963 [1].
What does the report say about the dam?|It says that nobody was told about the cracks [2].
What does the report say about the dam?|There is no evidence of sabotage [1].
What does the report say about the dam?|The engineers could not find the leak [2].
What does the report say about the dam?|Not enough concrete had been used [1].
What does the report say about the dam?|The cause cannot be determined, the report concludes [3].
What does the report say about the dam?|Unclear: two experts disagree, and one blames the rain [2].
What does the report say about the dam?|The records were lost, so no date is given, but the dam was finished before 1910 [1].
What does the report say about the dam?|The report doesn't mention the mayor, and it blames the builder instead [1].
What does the report say about the dam?|Sorry, my earlier answer was wrong: the dam is 61 m high [1].
What does the report say about the dam?|Unable to pay its workers, the company stopped in 1931 [1].
What does the report say about the dam?|I can confirm that the dam was repaired in 1975 [1].
What does the report say about the dam?|Please provide the form before May, the report asks the owners [2].
What does the report say about the dam?|As an artificial lake, it is not protected by law [1].
大坝为什么停工？|没有足够的水泥。[1]
大坝为什么停工？|无法支付工资，公司于1931年停工。[1]
大坝为什么停工？|资料显示，公司没有钱支付工资。[2]
大坝为什么停工？|报告未说明原因，但[1]提到缺少水泥。
大坝为什么停工？|很抱歉的是，工人们没有领到工资。[1]
大坝为什么停工？|不确定因素太多，投资方撤资了。[1]
大坝为什么停工？|文件没有得到批准。[3]
Warum wurde der Damm nicht gebaut?|Leider konnte die Stadt ihn nicht bezahlen [1].
Warum wurde der Damm nicht gebaut?|Es gab keine Genehmigung [2].
Warum wurde der Damm nicht gebaut?|Die Texte der Verträge waren nicht gültig [1].
¿Por qué no se construyó la presa?|No se encontró dinero para la obra [1].
¿Por qué no se construyó la presa?|No hay constancia de sabotaje [2].
Pourquoi le barrage n'a-t-il pas été construit ?|Malheureusement, la ville n'avait pas d'argent [1].
Pourquoi le barrage n'a-t-il pas été construit ?|Le texte de loi ne le permettait pas [1].
Pourquoi le barrage n'a-t-il pas été construit ?|Je ne peux pas payer, a dit le maire [2].
What happened to the bridge?|Nothing is left of it except two pillars [1].
What happened to the bridge?|No trace of the bridge has been found since 1755.
What happened to the bridge?|It is not mentioned after 1755 and was probably destroyed by the earthquake [1].
What happened to the bridge?|It was not rebuilt.
What happened to the bridge?|The text on the plaque says that it fell in 1755.
What happened to the bridge?|Not much is left of it.
What happened to the bridge?|The connection between both banks was lost.
What happened to the bridge?|The host city rejected the plan.
What happened to the bridge?|The key was lost in a fire.
What happened to the bridge?|The model of the bridge was removed from the museum.
What happened to the bridge?|The process was stopped by the king.
What happened to the bridge?|The service was terminated in 1931.
What happened to the bridge?|The prompt rejection of the plan saved it.
What happened to the bridge?|I cannot but admire that it still stands [1].
What happened to the bridge?|Its records are missing.
What happened to the bridge?|The system failed during the flood of 1909.
What happened to the bridge?|An unknown engineer rebuilt it.
What happened to the bridge?|A request by the bishop was denied.
桥怎么了？|桥在地震中倒塌，没有重建。
桥怎么了？|系统出错导致信号灯熄灭。
桥怎么了？|材料不合格，桥没有通过验收。
桥怎么了？|无法通行。
桥怎么了？|请求被国王拒绝了。
桥怎么了？|内容丰富的展览在桥上举行。
What do I do if I cannot log in?|Click "Forgot password" if you cannot log in [1].
What does rate limit exceeded mean?|Rate limit exceeded means that a client sent too many requests [2].
Which status code means Not Found?|404.
What does dict.get return for a missing key in Python?|None
Where is the error raised?|The error is raised by `ValueError: bad` in line 8 [1].
What is the URL of the Python documentation?|https://docs.python.org/3/ [1]
Which element is a generic container?|<div> [1]
Is the bridge open to cars?|No.
Was it opened in 1929?|Not in 1929 but in 1931 [1].
How many moons does Venus have?|0
What does the page display?|"Internal Server Error" [3]
What does HTTP status 401 say?|Unauthorized
这首诗的作者是谁？|无名氏 [1]
金星有卫星吗？|没有。[1]
鲁迅出生在北京吗？|不是，他出生在绍兴。[1]
What was the first album of Joy Division?|Unknown Pleasures [1]
Which song made Sinéad O'Connor famous?|Nothing Compares 2 U [1]
What does N/A mean?|N/A means "not available" [1].
Why did the telegraph fail?|The connection failed because the cable was cut [1].
How long was the ferry out of service?|The service was unavailable for six days in 1999 [2].
What happened to the request for a bridge?|The request was rejected by the council in 1921.
How did the Brilliance BS6 do in the crash test?|The model failed its crash test in 2009.
When are the railways busiest?|The network is busy with trains from six to nine.
What happened to the host of the feast?|The host was killed in a duel.
What did Viking find on Mars?|No evidence of life was found on Mars.
Where is the key of the castle?|The key is missing from the museum since 1974.
What does the treaty leave out?|The treaty does not mention slavery.
When was the song recorded?|It was not recorded until 1967.
Wo liegt die Quelle der Donau?|Die Quelle der Donau liegt in Donaueschingen und ist nicht bewacht.
工程为什么停工？|材料不足导致工程停工。
""".strip().split("\n")


@pytest.mark.parametrize("row", ANSWERS)
def test_answer_that_begins_like_refusal_counts(row: str) -> None:
    query, reply = row.split("|")
    assert parse_final_answer(reply, query).answered


ODD_QUERIES = """
what dose <div> do|What does <div> do?
List<String> vs String[] java|What is the difference between List<String> and String[] in Java?
Traceback (most recent call last) meaning??|What does "Traceback (most recent call last)" mean in Python?
i cant log in to the portal|I can't log in to the portal, what should I do?
who sang sorry|Who sings "Sorry" by Justin Bieber?
what is error 404|What does the error 404 Not Found mean?
what is 502 bad gateway|What does "502 Bad Gateway" mean?
why do i get rate limit exceeded|Why do I get "Rate limit exceeded" from the GitHub API?
im sorry i havnt a clue what is it|What is "I'm Sorry I Haven't a Clue"?
what does null mean in sql|What does NULL mean in SQL?
what is https://example.com for|What is https://example.com for?
kill -9 killed process linux|Why is a Linux process reported as "Killed"?
segmentation fault (core dumped) c|What causes "Segmentation fault (core dumped)" in C?
how to fix connection refused|How do I fix "Connection refused" on port 5432?
i cannot sleep|I cannot sleep at night, what helps?
unable to open my door|What can I do if I am unable to open my door?
what is none in python|What is None in Python?
nan javascript|What is NaN in JavaScript?
who wrote as an ai language model|Who first used the phrase "As an AI language model"?
std::vector<int> size|How do I get the size of a std::vector<int>?
<script setup> vue|What is <script setup> in Vue?
CUDA out of memory fix|How can I fix "CUDA out of memory" in PyTorch?
为什么显示系统繁忙请稍后再试|为什么微信显示“系统繁忙，请稍后再试”？
对不起我爱你 是谁演的|《对不起，我爱你》是谁主演的？
无法登陆邮箱怎么办|无法登录邮箱怎么办？
抱歉 歌词 谁写的|歌曲《抱歉》的歌词是谁写的？
未知生焉知死 出处|“未知生，焉知死”出自哪里？
404是啥意思|404是什么意思？
not found in the book who|Who is not mentioned in the Book of Esther?
why does the text not mention moses|Why does the text of the Haggadah not mention Moses?
who is answer in the movie|Who plays the character Answer in the movie?
what is step 1 of evacuation|What is step 1 of the evacuation plan?
note 7 battery|What was wrong with the battery of the Note 7?
question 3 exam 2019|What is the solution of question 3 of the 2019 exam?
sub-question definition|What is a sub-question?
json what is|What is JSON?
a2. highway|Where does the A2 highway end?
louis xiv. vs xv.|Who was older, Louis XIV or Louis XV?
no country for old men cast|Who is in the cast of "No Country for Old Men"?
what is a 504|What is a 504 plan in US schools?
git connection reset|Why does git push fail with "Connection reset by peer"?
movie forbidden planet|Who directed Forbidden Planet?
explain <T extends Comparable<T>>|What does <T extends Comparable<T>> mean in Java?
song unwritten|Who sings "Unwritten"?
timeout rules basketball|How many timeouts does a basketball team have?
service unavailable song?|Who recorded the song Service Unavailable?
*args python|What does *args mean in Python?
2*3*4|What is 2*3*4?
undefined is not a function|What causes "undefined is not a function"?
没有提到的人|谁在遗嘱中没有被提到？
请提供什么材料办护照|办护照需要提供什么材料？
model loading xgboost|How do I load a saved XGBoost model?
access denied film|When was the film Access Denied released?
why cant i answer the phone|Why can't I answer the phone on my iPhone?
process killed linux|Why was my process killed?
error in variables model|What is an errors-in-variables model?
content removed youtube|Why was my content removed from YouTube?
""".strip().split("\n")


@pytest.mark.parametrize("row", ODD_QUERIES)
def test_rewrite_with_words_of_errors_is_kept(row: str) -> None:
    query, rewritten = row.split("|")
    assert parse_rewrite(rewritten, query) == rewritten


PHRASINGS = """
{0}⏎{1}⏎{2}
1. {0}⏎2. {1}⏎3. {2}
1) {0}⏎⏎2) {1}⏎⏎3) {2}
Here are three alternative phrasings:⏎⏎- {0}⏎- {1}⏎- {2}⏎⏎Let me know if you want more variations!
Sure, here you go:⏎⏎* **{0}**⏎* **{1}**⏎* **{2}**
```⏎{0}⏎{1}⏎{2}⏎```
```json⏎[⏎  "{0}",⏎  "{1}",⏎  "{2}"⏎]⏎```
{{"phrasings": ["{0}", "{1}", "{2}"]}}
[{{"id": 1, "phrasing": "{0}"}}, {{"id": 2, "phrasing": "{1}"}}, {{"id": 3, "phrasing": "{2}"}}]
{{"query1": "{0}", "query2": "{1}", "query3": "{2}"}}
{{"text": "{0}"}}⏎{{"text": "{1}"}}⏎{{"text": "{2}"}}
['{0}', '{1}', '{2}']
queries = [⏎    "{0}",⏎    "{1}",⏎    "{2}",⏎]
print(["{0}", "{1}", "{2}"])
print("{0}")⏎print("{1}")⏎print("{2}")
phrasings:⏎  - {0}⏎  - {1}⏎  - {2}
<phrasing>{0}</phrasing>⏎<phrasing>{1}</phrasing>⏎<phrasing>{2}</phrasing>
<phrasings>⏎<item id="1">{0}</item>⏎<item id="2">{1}</item>⏎<item id="3">{2}</item>⏎</phrasings>
<ul>⏎<li>{0}</li>⏎<li>{1}</li>⏎<li>{2}</li>⏎</ul>
| # | Phrasing |⏎|---|---|⏎| 1 | {0} |⏎| 2 | {1} |⏎| 3 | {2} |
**Phrasing 1:** {0}⏎**Phrasing 2:** {1}⏎**Phrasing 3:** {2}
### 1. {0}⏎⏎### 2. {1}⏎⏎### 3. {2}
1. **Keyword form:** {0}⏎2. **Full question:** {1}⏎3. **Short form:** {2}
1. {0} – uses "number of" in place of "how many"⏎2. {1} – uses the synonym "stairs"⏎3. {2} – short keyword query
1. {0}⏎   - *Rationale: keyword style*⏎2. {1}⏎   - *Rationale: synonym for steps*⏎3. {2}⏎   - *Rationale: very short*
"{0}"⏎"{1}"⏎"{2}"
• {0}⏎• {1}⏎• {2}
① {0}⏎② {1}⏎③ {2}
(a) {0}⏎(b) {1}⏎(c) {2}
1️⃣ {0}⏎2️⃣ {1}⏎3️⃣ {2}
<think>I need three phrasings that ask the same thing. Let me think: number of steps... stairs...</think>⏎{0}⏎{1}⏎{2}
Option 1: {0}⏎Option 2: {1}⏎Option 3: {2}
{0}; {1}; {2}
- {0}⏎- {1}⏎- {2}⏎⏎All three phrasings ask for the same thing and keep the name of the tower.
Alternative Phrasings⏎=====================⏎⏎1. {0}⏎2. {1}⏎3. {2}
{{"name": "generate_phrasings", "arguments": {{"queries": ["{0}", "{1}", "{2}"]}}}}
<tool_call>⏎{{"name": "search", "arguments": {{"queries": ["{0}", "{1}", "{2}"]}}}}⏎</tool_call>
"[\\"{0}\\", \\"{1}\\", \\"{2}\\"]"
// alternative phrasings⏎[⏎  "{0}", // keywords⏎  "{1}", // full⏎  "{2}" // short⏎]
Phrasing A: {0}⏎Phrasing B: {1}⏎Phrasing C: {2}
Here you go!⏎⏎1️⃣ **{0}**⏎2️⃣ **{1}**⏎3️⃣ **{2}**
{{"variants": {{"short": "{0}", "formal": "{1}", "specific": "{2}"}}}}
{{"paraphrases": [{{"text": "{0}", "style": "keywords"}}, {{"text": "{1}", "style": "formal"}}, {{"text": "{2}", "style": "specific"}}]}}
```yaml⏎queries:⏎  - "{0}"⏎  - "{1}"⏎  - "{2}"⏎```
<query id="a">{0}</query><query id="b">{1}</query><query id="c">{2}</query>
<search_queries>⏎- {0}⏎- {1}⏎- {2}⏎</search_queries>
| Style | Phrasing |⏎| :--- | :--- |⏎| Keywords | {0} |⏎| Formal | {1} |⏎| Specific | {2} |
#1 {0}⏎#2 {1}⏎#3 {2}
1. "{0}"⏎   (keyword search)⏎2. "{1}"⏎   (formal)⏎3. "{2}"⏎   (specific)
Sure thing. Different ways to ask this:⏎{0}⏎{1}⏎{2}⏎All of these keep the name of the drug.
**Keyword search**⏎{0}⏎⏎**Formal question**⏎{1}⏎⏎**Specific question**⏎{2}
const queries = ["{0}", "{1}", "{2}"];
["{0}",⏎ "{1}",⏎ "{2}",]
{{"queries": "{0}\\n{1}\\n{2}"}}
→ {0}⏎→ {1}⏎→ {2}
a. {0}⏎b. {1}⏎c. {2}
search("{0}")⏎search("{1}")⏎search("{2}")
Let me think of synonyms: risk → side effect, adverse reaction.⏎⏎- {0}⏎- {1}⏎- {2}
{0} / {1} / {2}
""".strip().split("\n")


@pytest.mark.parametrize("form", PHRASINGS)
def test_form_of_phrasings_gives_all(form: str) -> None:
    phrasings = [
        "Side effects of ibuprofen",
        "What adverse reactions can ibuprofen cause?",
        "Is ibuprofen harmful to the stomach or kidneys?",
    ]
    reply = text_of(form.format(*phrasings))
    assert parse_phrasings(reply, "What are the risks of ibuprofen?", 5) == phrasings


PAIRS = """
1. {0}⏎2. {1}⏎⏎Answering these in order gives the full answer.
Subquestion 1: {0}⏎Subquestion 2: {1}
SQ1: {0}⏎SQ2: {1}
[Step 1] {0}⏎[Step 2] {1}
**Step 1 – Identify the founder**⏎{0}⏎⏎**Step 2 – Find the village**⏎{1}
### Question 1⏎{0}⏎⏎### Question 2⏎{1}
{{"steps": [{{"step": 1, "query": "{0}"}}, {{"step": 2, "query": "{1}"}}]}}
{{"q1": {{"text": "{0}"}}, "q2": {{"text": "{1}"}}}}
{{"needs_decomposition": true, "sub_questions": ["{0}", "{1}"]}}
[{{"type": "function", "function": {{"name": "search", "arguments": "{{\\"query\\": \\"{0}\\"}}"}}}}, {{"type": "function", "function": {{"name": "search", "arguments": "{{\\"query\\": \\"{1}\\"}}"}}}}]
<decomposition>⏎<step n="1">{0}</step>⏎<step n="2">{1}</step>⏎</decomposition>
<sub_question_1>{0}</sub_question_1>⏎<sub_question_2>{1}</sub_question_2>
The two questions are "{0}" and "{1}"
To find the answer, first ask {0} Then ask {1}
{0}⏎   ↓⏎{1}
1. {0}⏎    - Expected answer: a person⏎2. {1}⏎    - Expected answer: a village
1. {0} [independent]⏎2. {1} [depends on 1]
- *{0}*⏎- *{1}*
Simpler questions:⏎⏎1. {0}⏎⏎2. {1}⏎⏎Note: the second question depends on the first.
~~~⏎{0}⏎{1}⏎~~~
{0}<br>{1}
First question: {0}⏎Second question: {1}
questions = {{1: '{0}', 2: '{1}'}}
print("{0}", "{1}")
Okay, let me break that down.⏎⏎{0}⏎{1}⏎⏎That's it!
1\\. {0}⏎2\\. {1}
""".strip().split("\n")

TRIPLES = """
{0}⏎{1}⏎{2}
Simpler questions:⏎{0}⏎{1}⏎{2}
To answer this question, we need to break it down:⏎⏎1. **{0}**⏎2. **{1}**⏎3. **{2}**⏎⏎Once we have these answers, we can compare the release dates.
**Sub-question 1:** {0}⏎⏎**Sub-question 2:** {1}⏎⏎**Sub-question 3:** {2}
## Sub-questions⏎⏎### Release dates⏎- {0}⏎- {1}⏎⏎### Director⏎- {2}
1. Release dates⏎   a. {0}⏎   b. {1}⏎2. Director⏎   a. {2}
Q1: {0}⏎Q2: {1}⏎Q3: {2}
Step 1: {0}⏎Step 2: {1}⏎Step 3: {2}
```json⏎{{⏎  "sub_questions": [⏎    {{"id": 1, "question": "{0}", "depends_on": []}},⏎    {{"id": 2, "question": "{1}", "depends_on": []}},⏎    {{"id": 3, "question": "{2}", "depends_on": [1, 2]}}⏎  ]⏎}}⏎```
{{"reasoning": "We need both dates and the director.", "subquestions": [{{"sub_question": "{0}", "reason": "date 1"}}, {{"sub_question": "{1}", "reason": "date 2"}}, {{"sub_question": "{2}", "reason": "director"}}]}}
{{"1": "{0}", "2": "{1}", "3": "{2}"}}
{{"questions": ["{0}", "{1}", "{2}"
{{"questions": [{{"question": "{0}"}}, {{"question": "{1}"}}, {{"question": "{2}"}}, {{"question": "Who
sub_questions:⏎- question: {0}⏎  reason: first date⏎- question: {1}⏎  reason: second date⏎- question: {2}⏎  reason: director
<subquestions>⏎  <subquestion>⏎    <text>{0}</text>⏎  </subquestion>⏎  <subquestion>⏎    <text>{1}</text>⏎  </subquestion>⏎  <subquestion>⏎    <text>{2}</text>⏎  </subquestion>⏎</subquestions>
<q1>{0}</q1>⏎<q2>{1}</q2>⏎<q3>{2}</q3>
1. {0} (to find the first date)⏎2. {1} (to find the second date)⏎3. {2} (assuming it was released first)
1. {0}⏎*This gives the first date.*⏎⏎2. {1}⏎*This gives the second date.*⏎⏎3. {2}⏎*This identifies the director.*
| No. | Sub-question | Purpose |⏎|:-:|:--|:--|⏎| 1 | {0} | First date |⏎| 2 | {1} | Second date |⏎| 3 | {2} | Director |
<think>⏎Okay. Break down: need the release date of Casablanca? Yes. What about Citizen Kane?⏎</think>⏎⏎{0}⏎{1}⏎{2}
<thinking>Compare two films.</thinking>⏎<answer>⏎{0}⏎{1}⏎{2}⏎</answer>
Let me break this down step by step.⏎⏎First, I need to know: {0}⏎Then: {1}⏎Finally: {2}
- [ ] {0}⏎- [ ] {1}⏎- [ ] {2}
+ {0}⏎+ {1}⏎+ {2}
{0} {1} {2}
I. {0}⏎II. {1}⏎III. {2}
A. {0}⏎B. {1}⏎C. {2}
- Question 1 - {0}⏎- Question 2 - {1}⏎- Question 3 - {2}
The question can be decomposed into the following sub-questions:⏎{0}⏎{1}⏎{2}⏎⏎Does this help?
decompose(["{0}", "{1}", "{2}"])
{{"name": "SubQuestionList", "parameters": {{"items": [{{"sub_question": "{0}"}}, {{"sub_question": "{1}"}}, {{"sub_question": "{2}"}}]}}}}
[{{'question': '{0}'}}, {{'question': '{1}'}}, {{'question': '{2}'}}]
```python⏎sub_questions = ['{0}',⏎ '{1}',⏎ '{2}']⏎```
### 1. {0}⏎We need the year.⏎⏎### 2. {1}⏎We need the year as well.⏎⏎### 3. {2}⏎The last fact.
**1. {0}**⏎**2. {1}**⏎**3. {2}**
Here are the simpler questions:⏎⏎"{0}",⏎"{1}",⏎"{2}"
1: {0}⏎2: {1}⏎3: {2}
[1] {0}⏎[2] {1}⏎[3] {2}
{0} | {1} | {2}
Final answer:⏎{0}⏎{1}⏎{2}
""".strip().split("\n")


@pytest.mark.parametrize("form", [*PAIRS, *TRIPLES])
def test_form_of_sub_questions_gives_all(form: str) -> None:
    questions = ["Who founded IKEA?", "Where did he grow up?", "When was IKEA founded?"]
    reply = text_of(form.format(*questions))
    found = parse_sub_questions(reply, "How did IKEA begin?", 5)
    assert found == questions[: 3 if form in TRIPLES else 2]


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        (
            "### 1. The causes of it\n\n### 2. The effects of it",
            ["The causes of it", "The effects of it"],
        ),
        (
            "## 1. The causes\nWhy it began.\n\n## 2. The effects\nHow it ended.",
            ["The causes", "The effects"],
        ),
        (
            "1. Dates\n   a. When did it begin?\n   b. When did it end?\n2. Place\n   a. Where was it?",
            ["When did it begin?", "When did it end?", "Where was it?"],
        ),
        (
            "1. When was *Faust* written?\n2. ~~Who played it?~~ Who wrote *Faust*?",
            ["When was Faust written?", "Who wrote Faust?"],
        ),
    ],
)
def test_headings_and_nested_lists_give_items(reply: str, items: list[str]) -> None:
    assert parse_sub_questions(reply, "What was the war about?", 5) == items


ROUTES = """
contracts|contracts
Contracts|contracts
**contracts**|contracts
`contracts`|contracts
"contracts"|contracts
contracts.|contracts
Name of the source: contracts|contracts
The best source is contracts, because the question is about a clause.|contracts
{"source": "contracts"}|contracts
```json⏎{"choice": 1, "name": "contracts", "reason": "It is not about news."}⏎```|contracts
1. contracts|contracts
<source>contracts</source>|contracts
<think>news? no. Product Manuals? no.</think>contracts|contracts
news is not needed here; contracts|contracts
I would choose **contracts** rather than news.|contracts
The answer is \\boxed{contracts}.|contracts
contracts⏎⏎Explanation: The question is about the terms of an agreement, which neither news nor Product Manuals would have.|contracts
Source: contracts⏎Reason: legal terms are in agreements|contracts
Not news, but contracts.|contracts
[contracts]|contracts
- contracts|contracts
select_source("contracts")|contracts
Product Manuals and news don't cover legal terms, so contracts is the right choice.|contracts
While news might mention it, the best fit is contracts.|contracts
contracts (confidence: 0.93)|contracts
Option A: contracts|contracts
I'll go with: contracts|contracts
['contracts']|contracts
product_manuals|Product Manuals
Product Manuals|Product Manuals
product manuals|Product Manuals
Source: *Product Manuals*|Product Manuals
{"route": "Product Manuals", "confidence": 0.9}|Product Manuals
3. Product Manuals|Product Manuals
The most suitable source would be "Product Manuals".|Product Manuals
tech_support|tech_support
Tech Support|tech_support
tech-support|tech_support
→ tech_support|tech_support
The question is about a crash, so it belongs to tech_support.|tech_support
Neither billing nor Sales Team can help with a crash. tech_support|tech_support
{"selected_source": "tech_support", "rejected": ["billing", "Sales Team"]}|tech_support
2|tech_support
Option 2: tech_support|tech_support
tech_support (not billing)|tech_support
billing: no⏎tech_support: yes⏎Sales Team: no|tech_support
Rather than billing, use tech_support.|tech_support
**Selected source:** tech_support⏎**Reason:** billing is about invoices|tech_support
It isn't a billing issue. Use tech_support.|tech_support
I am choosing tech_support since the other two, billing and Sales Team, are unrelated.|tech_support
billing ❌⏎tech_support ✅⏎Sales Team ❌|tech_support
""".strip().split("\n")


@pytest.mark.parametrize("row", ROUTES)
def test_route_is_selected_and_not_rejected_name(row: str) -> None:
    reply, name = row.split("|")
    names = ["contracts", "news", "Product Manuals"]
    if name not in names:
        names = ["billing", "tech_support", "Sales Team"]
    assert parse_route(text_of(reply), names) == name


TOOL_QUESTIONS = """
recipes: {0}⏎Wine Guide: {1}
1. recipes: {0}⏎2. Wine Guide: {1}
- **recipes**: {0}⏎- **Wine Guide**: {1}
- **recipes:** {0}⏎- **Wine Guide:** {1}
`recipes`: {0}⏎`Wine Guide`: {1}
recipes - {0}⏎Wine Guide - {1}
recipes -> {0}⏎Wine Guide -> {1}
{0} (recipes)⏎{1} (Wine Guide)
1. {0} → recipes⏎2. {1} → Wine Guide
[recipes] {0}⏎[Wine Guide] {1}
| Tool | Question |⏎|---|---|⏎| recipes | {0} |⏎| Wine Guide | {1} |
| Sub-question | Tool |⏎|---|---|⏎| {0} | `recipes` |⏎| {1} | `Wine Guide` |
Tool: recipes⏎Question: {0}⏎⏎Tool: Wine Guide⏎Question: {1}
**Question 1:** {0}⏎**Tool:** recipes⏎⏎**Question 2:** {1}⏎**Tool:** Wine Guide
[{{"tool": "recipes", "question": "{0}"}}, {{"tool": "Wine Guide", "question": "{1}"}}]
```json⏎{{"items": [{{"sub_question": "{0}", "tool_name": "recipes"}}, {{"sub_question": "{1}", "tool_name": "Wine Guide"}}]}}⏎```
{{"recipes": "{0}", "Wine Guide": "{1}"}}
{{"recipes": ["{0}"], "Wine Guide": ["{1}"]}}
recipes("{0}")⏎Wine Guide("{1}")
recipes(question="{0}")⏎Wine_Guide(question="{1}")
<tool_call>{{"name": "recipes", "arguments": {{"question": "{0}"}}}}</tool_call>⏎<tool_call>{{"name": "Wine Guide", "arguments": {{"question": "{1}"}}}}</tool_call>
<recipes>{0}</recipes>⏎<wine_guide>{1}</wine_guide>
### recipes⏎- {0}⏎⏎### Wine Guide⏎- {1}
recipes:⏎- {0}⏎Wine Guide:⏎- {1}
- tool: recipes⏎  question: {0}⏎- tool: Wine Guide⏎  question: {1}
Simpler questions:⏎Recipes: {0}⏎wine guide: {1}
I'd use two tools here.⏎⏎1. Use **recipes** to answer: {0}⏎2. Use **Wine Guide** to answer: {1}
<think>⏎recipes: how many days? Wine Guide: revenue?⏎</think>⏎recipes: {0}⏎Wine Guide: {1}
recipes: {0}⏎Wine Guide: {1}⏎⏎These two questions cover the whole question.
{{"name": "recipes", "parameters": {{"query": "{0}"}}}}; {{"name": "Wine Guide", "parameters": {{"query": "{1}"}}}}
1. Question: {0} Tool: recipes⏎2. Question: {1} Tool: Wine Guide
Action: recipes⏎Action Input: {0}⏎Action: Wine Guide⏎Action Input: {1}
1. recipes: {0} (policy document)⏎2. Wine Guide: {1} (annual report)
recipes: {0}⏎wine_guide: {1}
1. [recipes] {0}⏎2. [Wine Guide] {1}
**recipes**⏎{0}⏎⏎**Wine Guide**⏎{1}
recipes | {0}⏎Wine Guide | {1}
"recipes": "{0}"⏎"Wine Guide": "{1}"
recipes → {0}⏎Wine Guide → {1}
{{"sub_questions": [{{"question": "{0}", "tool": {{"name": "recipes"}}}}, {{"question": "{1}", "tool": {{"name": "Wine Guide"}}}}]}}
<sub_question tool="recipes">{0}</sub_question>⏎<sub_question tool="Wine Guide">{1}</sub_question>
recipes.query("{0}")⏎wine_guide.query("{1}")
1. {0} [recipes]⏎2. {1} [Wine Guide]
Tool name: recipes, question: {0}⏎Tool name: Wine Guide, question: {1}
Sub-question 1 (recipes): {0}⏎Sub-question 2 (Wine Guide): {1}
I will ask recipes: "{0}"⏎I will ask Wine Guide: "{1}"
- recipes⏎  - {0}⏎- Wine Guide⏎  - {1}
""".strip().split("\n")


@pytest.mark.parametrize("form", TOOL_QUESTIONS)
def test_form_of_tool_questions_gives_pairs(form: str) -> None:
    questions = ["What goes into it?", "Which wine goes with it?"]
    reply = text_of(form.format(*questions))
    pairs = [*zip(["recipes", "Wine Guide"], questions, strict=True)]
    found = parse_tool_questions(reply, ["recipes", "Wine Guide"], "How is ratatouille made?")
    assert found == (pairs, [])
