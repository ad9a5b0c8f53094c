import pytest

from nodekin.nodegraph.models.output.free_text import parse_final_answer

# A question and a true answer without a citation.
ANSWERS = """
What is the deadline?|The document must not be sent by mail.
Is the passport needed?|No document is required at the border.
What did the court find?|The contract text was not signed, and is void.
What is in the archive?|The archive contains no documents from before 1900.
Where is the source of the Nile?|The source of the Nile was not known until 1858.
What is RAG?|RAG gives the model passages that it does not know from training.
What happened to the manuscript?|The text is not complete; the last page is missing.
Is the API documented?|The documentation is not public.
What does the licence forbid?|It does not allow the sale of the material.
What are non-renewable energy sources?|Energy sources that do not regenerate, such as coal.
Which letters did he keep?|He did not mention his brother in any document.
Is an ID needed?|No, a source of identification is not needed.
Why was the paper rejected?|The paper contained no new information.
How many errors?|None.
What is the answer?|The answer is not 42 but 43.
Was the ship found?|It is unknown where the ship sank.
When did he die?|It is not known when he died.
When did he die?|The exact date is unknown.
Who wrote Beowulf?|The author is unknown.
Who wrote Beowulf?|Unknown author, about 1000.
What do we know about Homer?|Nothing is known about his life.
Is there a lift?|There is no information desk on this floor.
Is it open?|There is no answer to the phone after six.
What did she say?|I don't know how to love him is a song from the musical.
What did she reply?|I'm not sure this works, she replied to the editor.
Can I log in with my phone number?|No. The phone number is not supported.
哪些文件需要？|不需要任何文件。
合同有效吗？|该合同没有双方签字，因此无效。
资料保存多久？|资料保存三年，不得外借。
原文是什么语言？|原文不是英文，而是拉丁文。
为什么被退稿？|文章没有新意。
他有孩子吗？|他没有孩子。
他是谁？|不知道火丁是主持人。
什么材料不能带？|易燃材料不能带上飞机。
水泥是什么材料？|水泥不是有机材料，而是无机胶凝材料。
这种材料含铅吗？|不含铅。
Welche Unterlagen?|Keine Dokumente sind nötig.
Wann starb er?|Das Datum ist nicht bekannt.
¿Hay documentos?|No se necesitan documentos.
Quel est le texte ?|Le texte n'est pas signé.
Нужны документы?|Документы не нужны.
書類は必要ですか？|書類は必要ありません。
Is smoking allowed?|Smoking is not permitted.
What is the context window?|The context window is 8k tokens and cannot be changed.
What does the bag lack?|The bag does not contain lead, but it contains zinc.
What does the model lack?|It has no document store.
Is gluten listed?|The label lists no gluten source.
Which test failed?|The text field was not found on the page.
Why was the refund refused?|The receipt was not included with the material.
Does the text mention a king?|The text does not mention a king.
Which topics are left out?|The text of the treaty does not mention slavery.
What does the paper say?|According to the text, he did not answer the king.
What is Sorry?|"Sorry" is not mentioned in the text, but in the title.
What about it?|The museum does not list the painter, but the catalog names Munch.
What about it?|Munch did not sign the work.
What about it?|No painter is known before 1880.
What about it?|The source was not tested for lead.
What about it?|The contract does not contain a penalty clause.
What about it?|He never mentioned it in his letters.
What about it?|The form does not need to be signed.
What about it?|The package does not include batteries.
What about it?|The model does not support images.
What about it?|The manual states that water must not be used.
What about it?|The law does not specify a minimum age.
What about it?|The API returns no information about users.
What about it?|The warranty does not cover water damage.
What about it?|The letter gives no reason.
What about it?|Not before May.
What about it?|Not in winter.
What about it?|It does not.
What about it?|说明书没有提到保修期。
What about it?|合同没有写明违约金。
What about it?|保修不包括进水。
What about it?|该接口不返回用户信息。
What about it?|套餐不含早餐。
What about it?|信中没有说明理由。
What about it?|药品说明书未提及孕妇禁用。
What about it?|不含税。
What about it?|Der Vertrag enthält keine Kündigungsfrist.
What about it?|Le contrat ne contient pas de clause.
What about it?|El paquete no incluye pilas.
What about it?|В комплект батареи не входят.
What about it?|電池は含まれていません。
Is smoking allowed?|According to the text, it is not allowed.
Where is the key?|He could not find the key in the drawer.
""".strip().split("\n")

# Answers which say that the answer is unknown.
UNKNOWN = """
I'm sorry, but the passages do not contain information about who painted Brand.
I don't know.
I do not know the answer based on the provided passages.
The passages do not contain the answer.
The provided context does not mention who painted Brand.
Based on the given context, there is no information about who painted Brand.
There is no information about this in the passages.
Unfortunately, the passages don't say who painted Brand.
I cannot find the answer in the given passages.
No information is available.
N/A
Unknown
It is not possible to determine who painted Brand from the given passages.
Not mentioned in the passages.
The answer is not in the passages.
抱歉，资料中没有提到是谁画的。
资料中没有相关信息。
我不知道。
未找到相关信息。
无法确定。
没有答案
根据已知信息无法回答该问题。
文中未提及。
Es tut mir leid, aber die Texte enthalten keine Antwort auf diese Frage.
Die Passagen enthalten keine Informationen dazu, wer Brand malte.
Lo siento, pero los pasajes no contienen la respuesta.
No lo sé.
Je suis désolé, mais les passages ne contiennent pas cette information.
Je ne sais pas.
Mi dispiace, ma i testi non contengono la risposta.
Desculpe, mas os textos não contêm essa informação.
К сожалению, в текстах нет ответа на этот вопрос.
Я не знаю.
申し訳ありませんが、資料には記載がありません。
わかりません。
죄송하지만 자료에는 해당 정보가 없습니다.
Het spijt me, maar de teksten bevatten het antwoord niet.
The context does not specify who the painter was.
None of the passages mention a painter.
The given documents don't provide any details about the painter of Brand.
I could not find this in the documents.
I don't know based on the provided passages.
This information is not provided in the passages.
That is not mentioned in the text.
The painter is not mentioned in the provided passages.
The question cannot be answered from the passages.
The passages only describe the play and do not say who painted it.
There's no mention of a painter in the provided context.
The provided sources do not include information about the painter. They only mention Ibsen.
Not specified in the documents.
It is unclear from the passages who painted Brand.
I am not sure.
No answer found.
No relevant information found.
Insufficient information.
The passages do not contain the answer, so I cannot answer the question.
Sorry, I don't know.
提供的资料中没有提及画家是谁。
根据所给资料，无法得知是谁画的。
这些资料均未提到该画的作者。
资料未说明。
抱歉，文中没有相关内容。
上下文中没有足够的信息来回答这个问题。
从资料来看，没有提到画家。
无法根据资料确定。
暂无相关信息。
不清楚。
对不起，我不知道。
未提及
Aus den Passagen geht nicht hervor, wer Brand malte.
Das wird in den Texten nicht erwähnt.
Dazu enthalten die Dokumente keine Angaben.
Les documents fournis ne mentionnent pas le peintre.
Los documentos no mencionan al pintor.
No hay información sobre el pintor en los textos.
Il testo non menziona il pittore.
O contexto não menciona o pintor.
В документах не указано, кто нарисовал.
提供された情報には記載されていません。
資料からはわかりません。
문서에 언급되어 있지 않습니다.
I was unable to find who painted Brand in the provided material.
The passages given do not reveal the painter's identity.
Unfortunately, I don't have that information.
Nothing in the passages indicates who painted it.
The text only says that Ibsen wrote Brand; it does not say who painted it.
This cannot be determined from the context.
The documents are silent on this.
It isn't mentioned in the passages.
The context provided doesn't include the painter.
Based on the passages provided, it is unclear who painted Brand.
The answer isn't available in the given documents.
No passage contains the answer.
The information is not available in the provided text.
I could not determine the painter from these passages.
根据以上资料，没有提到画家。
以上资料没有涉及这个问题。
资料里查不到画家。
没有找到关于画家的信息。
文档中并未提到画家的名字。
该问题在资料中没有答案。
提供的资料不足以回答这个问题。
抱歉，我在资料中找不到答案。
暂时无法回答。
Les textes ne disent pas qui a peint Brand.
En los textos no se menciona al pintor.
I documenti non forniscono questa informazione.
資料には画家の名前が書かれていません。
""".strip().split("\n")


@pytest.mark.parametrize("row", ANSWERS)
def test_true_answer_with_negation_counts(row: str) -> None:
    question, text = row.split("|")
    assert parse_final_answer(text, question).answered


@pytest.mark.parametrize("text", UNKNOWN)
def test_statement_that_answer_is_unknown_is_no_answer(text: str) -> None:
    final = parse_final_answer(text, "Who painted Brand?")
    assert (final.text, final.answered) == (text, False)
    assert final.problem is not None


@pytest.mark.parametrize("text", UNKNOWN)
def test_cited_statement_counts_as_answer(text: str) -> None:
    assert parse_final_answer(f"{text} [1]", "Who painted Brand?").answered
