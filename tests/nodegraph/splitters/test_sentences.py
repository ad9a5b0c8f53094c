import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chunk_checks import LONG_LINES, TEXTS, check_chunks

from nodekin.nodegraph import Document, Embedder, NodeGraph, split_paragraphs, split_sentences
from nodekin.nodegraph.hashing import fingerprint
from nodekin.nodegraph.splitters.sentences import paragraph_spans, sentence_spans
from nodekin.retrievers import Retriever

SENTENCES = {
    "Chinese": [
        ["长江有多长？", "六千多公里！", "真长。"],
        ["真的吗？！", "不会吧！！！", "好。"],
        ["他问：“你好吗？”我说很好。", "“走吧。”", "他说。"],
        ["『好。』", "（完。）", "【注。】", "下一句。"],
        ["他说：“好。”。", "然后走了。"],
        ["等等……然后走了。", "真的……？", "真的。"],
        ["圆周率是3.14。", "价格为1.5元，见图3.2。"],
        ["它见于文献。[1]", "又见于别处。[2][3]", "完。"],
    ],
    "Chinese with ASCII marks": [
        ["很好!", "真的?", "是."],
        ["他用Yahoo!奇摩.", "很好."],
        ["价格是3.5元.", "很贵."],
        ["部份Mono社群移植到.NET上.", "它是个.NET程序."],
    ],
    "mixed": [
        ["使用Python 3.11。", "It works.", "很好!"],
        ["GPU比CPU快。", "See Fig. 3 for details.", "详见下文。"],
    ],
    "Japanese": [
        ["今日は晴れです。", "「行こう。」と言った。", "明日も！"],
        ["ﾊﾛｰ｡", "ﾜｰﾙﾄﾞ｡"],
        ["どこ？", "ここだ。"],
    ],
    "Japanese, an article": [
        [
            *("「吾輩は猫である」は夏目漱石の小説である。", "名前はまだ無い。"),
            *("どこで生れたか、とんと見当がつかぬ。", "彼は「行くのか？」と聞いた。"),
            *("「はい。」", "1905年（明治38年）1月に発表された。", "売上は約3.5倍になった！"),
            *("本当だろうか？", "詳細は第2.1節を参照（図1。）。", "これで終わりです。"),
        ]
    ],
    "Korean": [
        ["한국어 문장입니다.", " 두 번째 문장입니다."],
        [
            *("서울은 대한민국의 수도이다.", " 인구는 약 940만 명이다.", " 언제 생겼을까?"),
            *(" 조선은 1394년에 이곳으로 옮겼다!", ' 그는 "안녕."이라고 말했다.'),
            *(" 면적은 605.2 km²이다.", " 정말인가요?", " 한강이 흐른다.[1]"),
            *(" (자세한 것은 아래에 있다.)", " 끝."),
        ],
    ],
    "Hindi": [
        [
            *("ताजमहल आगरा में है।", " इसे शाहजहाँ ने बनवाया था।", " क्या आपने इसे देखा है?"),
            *(" कितना सुंदर है!", " डॉ. शर्मा ने 3.5 किलोमीटर की यात्रा की।", " “चलो।”"),
            *(" उसने कहा, “रुको।”", " यह १६४३ में पूरा हुआ।[2]", " (विवरण नीचे है।)"),
            " श्लोक समाप्त हुआ॥",
        ]
    ],
    "Arabic": [
        [
            *("القاهرة عاصمة مصر.", " كم عدد سكانها؟", " إنها كبيرة جدا!"),
            *(" قال د. أحمد ذلك، ثم عاد.", " بلغت المساحة 3.5 كم.", " هل هذا صحيح؟!", " «نعم.»"),
            *(" تأسست عام ٩٦٩ م على يد جوهر.[1]", " (انظر أدناه.)", " هذا كل شيء."),
        ]
    ],
    "Persian": [
        [
            *("تهران پایتخت ایران است.", " جمعیت آن چقدر است؟", " بسیار بزرگ است!"),
            *(" او گفت: «بیا.»", " من رفتم.", " ارتفاع آن ۱۲۰۰ متر است.", " آیا درست است؟"),
            *(" ۳.۵ درصد است؛ زیاد نیست.", " (پایین را ببینید.)", " پایان."),
        ]
    ],
    "Urdu": [["لاہور ایک شہر ہے۔", " کیا آپ وہاں گئے؟", " جی ہاں۔"]],
    "Thai": [
        [
            "กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุดของประเทศไทยและเป็นศูนย์กลางการปกครอง",
            " เมืองนี้ตั้งอยู่บนสามเหลี่ยมปากแม่น้ำเจ้าพระยาในภาคกลางของประเทศ"
            "มีพื้นที่ทั้งหมด 1,568.7 ตร.กม. โดยประมาณ",
            " เมื่อปีพ.ศ. 2325 พระบาทสมเด็จพระพุทธยอดฟ้าจุฬาโลกมหาราช (รัชกาลที่ 1 แห่งราชวงศ์จักรี)"
            "ทรงย้ายเมืองหลวงมาที่นี่",
            " ดร. สมชาย กล่าวว่าเด็กเล็ก ๆ ควรดื่มน้ำวันละ 3.5 แก้วเพราะอากาศในเมืองร้อนมากตลอดทั้งปี",
        ],
        ["จริงหรือ?", " ใช่!", "\nรถไฟ ออก แล้ว"],
    ],
    "other quotation marks": [
        ["„Ja.“", " Er ging.", " „Wann?“, fragte sie.", " »So.«", " Gut."],
        ["« Oui. »", " Il part."],
        ["А. С. Пушкин родился в 1799 г.", " Он умер в 1837 г.", " «Да!»", " Это так."],
    ],
    "English": [
        ["Dr. Who met Mr. Li and Mrs. Wu.", " They left."],
        ["Use a tool, e.g. a spade.", " It digs, i.e. it works."],
        ["The U.S. is big.", " He lives in the U.S."],
        ["J. R. R. Tolkien wrote it.", " H.G. Wells did not."],
        ["It stands in chap. two of the book.", " Read it."],
        ["He came at 5 p.m. on Monday.", " He left at 6 p.m.", " Then he slept."],
        ["Smith et al. (2020) found it in Jan. 2020.", " Good."],
        ["Version 2.0 costs $3.50.", " Buy it."],
        ["No. 5 is alive.", ' He said "no."', " The answer is no.", " Fine."],
        ["What?!", " No!", " Yes...", "\nOK."],
        ["Wait... what?", " Nothing."],
        ["(It rained.)", ' "Go!" he said.', ' "Now!"'],
        ['She asked, "Why?" and left.', " Nobody knew."],
        ["So it was.[1]", " It was.[2][3]", " It is."],
        ["See https://example.org/a.b?c=d for more.", " Or file.txt."],
    ],
    "hard-wrapped English": [
        ["A line that\nwraps here.", " And goes\non."],
        ["It is about\n3.5 metres,\n*very* long\n-5 degrees\nand #5."],
    ],
    "lists and headings": [
        ["Steps:", "\n- one", "\n* two", "\n1. three", "\n2) four", "\n• five"],
        ["1. First item.", " 2. Second item."],
        ["做法：", "\n一、洗", "\n2、切"],
        ["# Tea", "\nA drink", "\n\n## Green", "\nUnfermented."],
        ["Overview", "\n\nThis is it."],
        ["没有结尾的一行", "\n下一行"],
        ["## 1.2. Scope", "\nIt is wide.", " See 1.2.", " Then go on."],
        ["### 1.2.5. 一组用户", "\n为了使组生效。"],
    ],
    "leaders": [
        ["1 Tea . . . . . . 12", "\n1.1 Water ........ 13", "\n2 水……………… 14"],
        ["Wait . . . what?", " No . . .", " Yes."],
    ],
}


@pytest.mark.parametrize(
    "sentences", [case for cases in SENTENCES.values() for case in cases], ids="".join
)
def test_split_sentences_in_languages(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == [sentence.strip() for sentence in sentences]


PARAGRAPHS = [
    (["One line,\nwrapped.", "\n\nAnother."], "blank lines part"),
    (["a", "\n \t\nb", "\n\u3000\n\n  c"], "blank lines may hold white space"),
    (["a\r\nb", "\r\n\r\nc"], "Windows line ends"),
    (["第一段。", "\n第二段。", "\n　　第三段。"], "Chinese stands one a line"),
    (["中文一行", "\nEnglish", "\n\nwrapped\nEnglish"], "beside Chinese, line breaks part"),
    (["x" * 121, "\nshort", "\n\nwrapped\nhere"], "nobody wraps at more than 120 characters"),
    (["x" * 120 + "\nshort"], "a line of 120 characters may be wrapped"),
]


@pytest.mark.parametrize(("paragraphs", "why"), PARAGRAPHS)
def test_split_paragraphs_at_line_ends(paragraphs: list[str], why: str) -> None:
    assert split_paragraphs("".join(paragraphs)) == [each.strip() for each in paragraphs], why


@pytest.mark.parametrize("split", [split_sentences, split_paragraphs])
@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t\r\n"])
def test_blank_text_has_no_parts(split, text: str) -> None:
    assert split(text) == []


@given(st.text("天地。，“” a\n", max_size=60))
def test_each_chinese_mark_ends_sentence(text: str) -> None:
    for piece in split_sentences(text):
        assert not re.search("。”*[天地a]", piece)


def test_chinese_encyclopedia_has_whole_sentences(data: Path) -> None:
    text = "\n".join(path.read_text("utf-8") for path in (data / "cmrc2018" / "kb").glob("*.txt"))
    sentences = split_sentences(text)
    assert max(map(len, sentences)) < 700
    assert sum(s.rstrip("”」』）\"'")[-1] in "。！？" for s in sentences) / len(sentences) > 0.95
    assert not [s for s in sentences if s[0] in "。！？，、；：”）》"]


@given(TEXTS)
def test_sentences_and_paragraphs_cover_text(text: str) -> None:
    paragraphs = paragraph_spans(text)
    check_chunks(text, paragraphs, len(text), 0, len)
    assert split_paragraphs(text) == [text[begin:end] for begin, end in paragraphs]
    sentences = sentence_spans(text)
    assert split_sentences(text) == [text[begin:end] for begin, end in sentences]
    covered = 0
    for begin, end in [*sentences, (len(text), len(text))]:
        assert not re.sub(r"[\s|+:=*_~#-]", "", text[covered:begin]), "only rules are left out"
        assert begin < end or begin == len(text)
        covered = end


@pytest.mark.parametrize("text", LONG_LINES.values(), ids=LONG_LINES)
def test_long_line_is_one_paragraph(text: str) -> None:
    assert split_paragraphs(text) == [text.rstrip()]
    assert sum(map(len, split_sentences(text))) >= len(text) - text.count(" ")


@pytest.mark.parametrize(
    "line",
    ["|---|---|", "| --- | :-: |", "|-|-|", "--- | ---", "+---+---+", "---", "* * *", "====="],
)
def test_lines_without_words_are_no_sentences(line: str) -> None:
    text = f"| Tea | Cup |\n{line}\n| Green | 1 |\n\n{line}\n\nThe end."
    assert line not in split_sentences(text)
    assert split_sentences(text)[-1] == "The end."


@pytest.mark.parametrize("text", ["C++", "...", "🙂", "a | b", "-5"])
def test_short_texts_are_sentences(text: str) -> None:
    assert split_sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("# Tea\n\nIt is green.\n\nIt is hot.", ["# Tea\n\nIt is green.", "It is hot."]),
        ("# Tea\n\n## Green\n\nHot.\n\n## Black", ["# Tea\n\n## Green\n\nHot.", "## Black"]),
        ("Tea\n===\n\nIt is green.", ["Tea\n===\n\nIt is green."]),
        ("# 茶\n茶是饮品。\n茶很好。", ["# 茶\n茶是饮品。", "茶很好。"]),
        ("#hashtag\n\nIt is green.", ["#hashtag", "It is green."]),
        (f"# {'long ' * 50}\n\nIt is green.", [f"# {'long ' * 50}".strip(), "It is green."]),
    ],
)
def test_split_paragraphs_keeps_heading_with_text(text: str, paragraphs: list[str]) -> None:
    assert split_paragraphs(text) == paragraphs


def test_retriever_returns_paragraph_with_its_heading() -> None:
    graph = NodeGraph(progress=False)
    graph.add("# Tea\n\nIt is green. It is hot.\n\n# Milk\n\nIt is white.")
    graph.create_node_group("block", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="block")
    (result,) = Retriever(graph, "sentence", target="block", top_k=1)("hot")
    assert result.text == "# Tea\n\nIt is green. It is hot."


def test_new_rules_rebuild_sentences_and_keep_equal_nodes(tmp_path: Path) -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[len(text), 1.0] for text in texts]

    def older(text: str) -> list[str]:
        return [part.strip() for part in re.findall(r"[^.]+\.", text)]

    vars(older)["rules"] = 1
    text = "Am 3. März war es kalt. Es schneite."
    ids = {}
    model = Embedder(embed, name="lengths")
    for split in (older, split_sentences):
        with NodeGraph(store=str(tmp_path / "g.db"), embed=model, progress=False) as graph:
            graph.add(Document(text, id="a.md"))
            graph.create_node_group("sentence", split, replace=True)
            graph.build("sentence", embed=True)
            ids[split] = {node.text: node.id for node in graph.nodes("sentence")}
    assert list(ids[split_sentences]) == ["Am 3. März war es kalt.", "Es schneite."]
    assert sorted(embedded) == sorted([*ids[older], "Am 3. März war es kalt."])
    assert ids[split_sentences]["Es schneite."] == ids[older]["Es schneite."]


def test_rules_of_function_are_part_of_its_fingerprint() -> None:
    def split(text: str) -> list[str]:
        return [text]

    before = fingerprint(split)
    vars(split)["rules"] = 2
    assert fingerprint(split) != before


TRUE_ENDS = json.loads(Path(__file__).with_name("true_ends.json").read_text("utf-8"))
"""Ends of sentences in XQuAD, drawn by chance and marked by hand: the number of the paragraph, the
end and the characters before it."""


@pytest.mark.data
@pytest.mark.parametrize("language", TRUE_ENDS)
def test_split_sentences_keeps_ends_marked_by_hand(language: str, data: Path) -> None:
    path = data / "xquad" / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    articles = json.loads(path.read_text("utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    paragraphs = list(dict.fromkeys(texts))
    lost = []
    for number, end, before in TRUE_ENDS[language]:
        text = paragraphs[number]
        assert text[:end].endswith(before)
        if end not in [span[1] for span in sentence_spans(text)]:
            lost.append(text[end - 30 : end + 30])
    assert not lost


# Three German answers, and one answer in each other language, continue after a true end.
@pytest.mark.data
@pytest.mark.parametrize(("language", "most"), [("de", 3), ("ru", 1), ("ar", 1), ("vi", 1)])
def test_sentences_rarely_end_inside_answers(language: str, most: int, data: Path) -> None:
    path = data / "xquad" / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    articles = json.loads(path.read_text("utf-8"))["data"]
    answers = 0
    divided = []
    for paragraph in (each for article in articles for each in article["paragraphs"]):
        spans = sentence_spans(paragraph["context"])
        for answer in (each for question in paragraph["qas"] for each in question["answers"]):
            begin = answer["answer_start"]
            end = begin + len(answer["text"])
            answers += 1
            if not any(first <= begin and end <= last for first, last in spans):
                divided.append(answer["text"])
    assert answers == 1190
    assert len(divided) <= most, divided
