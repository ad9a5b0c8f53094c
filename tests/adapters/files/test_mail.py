"""E-mail."""

import mailbox
from base64 import b64encode
from email.message import EmailMessage
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph


def message(subject: str, text: str, html: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = subject, "刘 <liu@example.org>", "b@example.org"
    mail["Date"] = "Mon, 02 Mar 2026 10:00:00 +0100"
    if text:
        mail.set_content(text, charset="gb2312" if not text.isascii() else "utf-8")
    if html:
        mail.add_alternative(html, subtype="html")
    return mail


def test_messages_are_read_with_headers_and_text(tmp_path: Path) -> None:
    mail = message("茶的价格", "三月的价格见附件。\n", "<p>三月的<b>价格</b>见附件。</p>")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="价格.pdf")
    (tmp_path / "a.eml").write_bytes(bytes(mail))
    graph = NodeGraph(tmp_path / "a.eml", progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text == "三月的价格见附件。"
    (note,) = graph.read_report.notes.values()
    assert note.endswith("attachments not read (damaged): 1 (first: 价格.pdf)")
    fields = ("title", "from", "to", "date", "attachments")
    assert [node.metadata[name] for name in fields] == [
        "茶的价格",
        "刘 <liu@example.org>",
        "b@example.org",
        "2026-03-02T10:00:00+01:00",
        ["价格.pdf"],
    ]
    box = mailbox.mbox(tmp_path / "all.mbox")
    box.add(message("One", "First.\n"))
    box.add(message("Two", "", "<h1>Second</h1><p>Text.</p>"))
    box.close()
    nodes = NodeGraph(tmp_path / "all.mbox", progress=False).nodes("ROOT")
    assert [(node.id[-10:], node.text, node.metadata["title"]) for node in nodes] == [
        ("all.mbox#1", "First.", "One"),
        ("all.mbox#2", "# Second\n\nText.", "Two"),
    ]


def test_alternatives_without_boundary_are_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text("Content-Type: multipart/alternative\n\nTea is a drink.")
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text == "Tea is a drink."


def word(text: str, encoding: str, label: str) -> bytes:
    return b"=?%s?B?%s?=" % (label.encode(), b64encode(text.encode(encoding)))


@pytest.mark.parametrize(
    ("header", "field", "value"),
    [
        (b"Subject: " + word("朱镕基", "gbk", "gb2312"), "title", "朱镕基"),
        (b"Subject: " + word("똠 가격", "cp949", "ks_c_5601-1987*ko"), "title", "똠 가격"),
        (b"Subject: " + word("茶的价格和产地", "gbk", "x-none"), "title", "茶的价格和产地"),
        (b"Subject: " + "茶的价格".encode("gbk"), "title", "茶的价格"),
        (b"Subject: =?gbk?B?abcde?=", "title", "=?gbk?B?abcde?="),
        (b"Subject: =?gbk?Q?=E9?=\n =?gbk?Q?F_1?= =?hex?Q?ab?=", "title", "镕 1ab"),
        (
            b"From: C:\\users " + word("镕", "gbk", "gb2312") + b" <a@b.org>",
            "from",
            "C:\\users 镕 <a@b.org>",
        ),
        (
            b'Content-Type: a/b; name="' + word("镕.pdf", "gbk", "gb2312") + b'"',
            "attachments",
            ["镕.pdf"],
        ),
        (
            b"Content-Disposition: attachment; filename*0*=gb2312''%E9F; filename*1=.pdf",
            "attachments",
            ["镕.pdf"],
        ),
        (
            b'Content-Disposition: attachment; filename="' + "镕的价格.pdf".encode("gbk") + b'"',
            "attachments",
            ["镕的价格.pdf"],
        ),
        (
            b"Content-Disposition: attachment; filename*=utf-8''" + "镕.pdf".encode(),
            "attachments",
            ["镕.pdf"],
        ),
    ],
)
def test_headers_and_file_names_are_decoded_like_texts(
    tmp_path: Path, header: bytes, field: str, value: object
) -> None:
    (tmp_path / "a.eml").write_bytes(header + b"\n\nGreen tea.\n")
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.metadata[field] == value


def test_undecodable_header_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(b"Subject: Tea \xff\n\nGreen tea.\n")
    graph = NodeGraph(tmp_path, progress=False)
    assert graph.nodes("ROOT")[0].metadata["title"] == "Tea \ufffd"
    (note,) = graph.read_report.notes.values()
    assert note.endswith("texts of unknown encoding: 1 (first: Subject)")
