"""Text in any encoding: labels, detection and errors."""

import json
import re
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.readers.decoding import codec_of, detected

SIMPLIFIED = "绿茶在五月和九月购买，产地是安吉和龙井的茶园。采摘超过六个星期的茶叶一律不买。"
TRADITIONAL = "綠茶在五月和九月購買，產地是安吉和龍井的茶園。採摘超過六個星期的茶葉一律不買。"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "gb18030"),
        (TRADITIONAL, "big5hkscs"),
        ("绿茶和红茶", "gb18030"),
        ("你好世界", "gb18030"),
        ("繁體中文", "big5hkscs"),
        ("한국어 문서", "cp949"),
        ("녹차는 찻잎을 따서 바로 쪄서 말린 차이고, 홍차는 발효시킨 차이다.", "cp949"),
        ("この本はお茶の本です", "euc_jp"),
        (SIMPLIFIED, "utf-16"),
        (SIMPLIFIED + "\n", "utf-16-le"),
        ("茶是一种饮料，用叶子泡。 茶园在山上。", "utf-16-be"),
        ("A café, in plain English.", "utf-16-le"),
        ("Der Tee wird im Frühjahr geerntet.", "utf-16-be"),
        ("紅茶と緑茶は同じ植物の葉から作られています。", "cp932"),
        ("Tea: 紅茶と緑茶は同じ植物の葉から作られます。", "iso2022_jp_ext"),
        ("ｶﾌｪ: 紅茶と緑茶", "iso2022_jp_ext"),
        ("Tea: 녹차는 찻잎을 따서 바로 쪄서 말린 차이다.", "iso2022_kr"),
        ("Привет, сегодня хорошая погода и мы пьём чай", "cp1251"),
        ("The café serves crème brûlée every day, and a résumé of what tea can be.", "cp1252"),
        ("Yeşil çay yapraklarını soğuk suda değil, ılık suda demlemek için bekleyin.", "cp1254"),
        ("Ceaiul se păstrează într-o cutie închisă, ferită de lumină şi căldură.", "cp1250"),
        ("Le thé vert est récolté à la fin du mois et séché très vite.", "cp1252"),
        ("A colheita do chá não é feita à mão em todas as regiões.", "cp1252"),
        ("Il tè è più buono se l'acqua non è già bollita.", "cp1252"),
        ("Das grüne Blatt wird schnell getrocknet, und für Gäste gibt es Süßes.", "cp437"),
        ("Το πράσινο τσάι μένει σε κουτί. Άλλα φύλλα μαζεύονται τον Μάιο.", "cp1253"),
        ("התה הירוק נשמר בכלי סגור, והעלים נקטפים בחודש מאי ומיובשים מהר.", "cp1255"),
        ("Tr\xe0 xanh \u0111\u01b0\u01a1\u0323c h\xe2\u0301p ngay sau khi h\xe1i.", "cp1258"),
        ("Žalioji arbata išgarinama iš karto po nuskynimo, o juodoji fermentuojama.", "cp1257"),
        ("ชาเขียวจะถูกนึ่งทันทีหลังจากเก็บ ส่วนชาดำจะถูกหมัก", "cp874"),
        ("الشاي الأخضر يطهى بالبخار بعد القطف مباشرة", "cp1256"),
        ("Зелений чай пропарюють одразу після збору, а чорний ферментують.", "koi8-u"),
        ("Zielona herbata była zbierana późną wiosną, więc jest łagodna.", "iso8859-2"),
    ],
)
def test_encodings_are_detected(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    (node,) = NodeGraph(tmp_path / "a.txt", progress=False).nodes("ROOT")
    assert (node.text, node.metadata["encoding"]) == (text, encoding)


ENCODINGS = {
    "xquad/xquad.ar.json": ["cp1256", "iso8859-6"],
    "xquad/xquad.de.json": ["cp1252", "cp850", "cp437"],
    "xquad/xquad.ru.json": ["cp1251", "koi8_r", "cp866", "iso8859-5"],
    "cmrc2018/dev.json": ["gb18030"],
    "languages/jsquad_valid.json": ["cp932", "euc_jp"],
    "languages/iapp_thai_test.json": ["cp874"],
}


@pytest.mark.data
@pytest.mark.parametrize("name", ENCODINGS)
def test_encodings_of_short_texts_are_detected(data: Path, name: str) -> None:
    content = (data / name).read_text(encoding="utf-8")
    contexts = re.findall(
        r'"context(?:_text)?": "([^"\\]{200})', json.dumps(json.loads(content), ensure_ascii=False)
    )
    encoded = [(c[:120].encode(e, "ignore"), e) for c in contexts[:100] for e in ENCODINGS[name]]
    texts = [(text, text.decode(encoding)) for text, encoding in encoded if not text.isascii()]
    right = sum(text.decode(detected(text) or "ascii", "replace") == known for text, known in texts)
    assert len(texts) >= 90
    assert right >= 0.98 * len(texts)


@pytest.mark.parametrize(
    ("labels", "codec"),
    [
        ("latin1 ISO-8859-1 us-ascii windows-1252 x-cp1252", "cp1252"),
        ("gb2312 GBK x-gbk gb_2312-80 chinese gb18030", "gb18030"),
        ("shift_jis x-sjis sjis windows-31j ms_kanji", "cp932"),
        ("euc-kr ks_c_5601-1987 windows-949 korean", "cp949"),
        ("big5 big5-hkscs x-x-big5 cn-big5", "big5hkscs"),
        ("iso-8859-9 latin5 windows-1254", "cp1254"),
        ("tis-620 windows-874 iso-8859-11 dos-874", "cp874"),
        ("koi8 koi8-r", "koi8-r"),
        ("utf8 utf-8 unicode-1-1-utf-8", "utf-8"),
    ],
)
def test_labels_have_the_codecs_of_browsers(labels: str, codec: str) -> None:
    assert {codec_of(label) for label in labels.split()} == {codec}


def test_given_encoding_has_priority(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TRADITIONAL.encode("big5"))
    for options, text in ((None, TRADITIONAL), (ReadOptions(encoding="big5hkscs"), TRADITIONAL)):
        (node,) = NodeGraph(tmp_path / "a.txt", progress=False, reading=options).nodes("ROOT")
        assert node.text == text
    with pytest.raises(ReadError, match="is not UTF-8: byte 0x"):
        NodeGraph(tmp_path / "a.txt", progress=False, reading=ReadOptions(encoding="utf-8"))
    with pytest.raises(ValueError, match="unknown encoding 'gbk2'"):
        ReadOptions(encoding="gbk2")


@pytest.mark.parametrize(
    "data",
    [b"tea \xff", "茶".encode("gb18030"), bytes(range(256)), b"tea " * 9 + bytes(range(128, 256))],
)
def test_short_data_has_no_detected_encoding(data: bytes) -> None:
    assert detected(data) is None


@pytest.mark.parametrize(
    ("data", "encodings"),
    [
        (b"caf\xe9", "cp1252, cp1250"),
        ("Gyűjtött teák".encode("cp1250"), "cp1250"),
        (bytes(range(128, 256)), None),
    ],
)
def test_error_of_encoding_advises_plausible_encodings(
    tmp_path: Path, data: bytes, encodings: str | None
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(ReadError) as error:
        NodeGraph(tmp_path / "a.txt", progress=False, reading=ReadOptions(encoding="ascii"))
    assert (f"(its bytes fit {encodings}" in str(error.value)) == bool(encodings)
    assert ("its bytes fit" in str(error.value)) == bool(encodings)


def test_control_characters_rule_out_a_detected_encoding() -> None:
    data = "Šálek čaje – “dobrý”…".encode("mac_latin2")
    assert not re.search("[\x80-\x9f]", data.decode(detected(data) or "ascii", "replace"))
