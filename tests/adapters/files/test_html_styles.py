"""Struck-through text of pages and mail keeps its marks; headings of books by their size."""

from email.message import EmailMessage
from pathlib import Path

import pytest
from support.small_files import text_of

PAGES = [
    "Fee <s>10 <b>euros</b></s> 12",
    "Fee <del>10 euros</del><ins> 12</ins>",
    "Fee <strike>10 euros</strike> 12",
    'Fee <span style="color:red;text-decoration:underline line-through">10 euros</span> 12',
    "Fee <span style=text-decoration-line:line-through>10 euros</span> 12",
    "<style>@media print {.x {color: red}} .old, p.gone {text-decoration: line-through}</style>"
    'Fee <span class="a old">10 euros</span> 12',
]


@pytest.mark.parametrize("page", PAGES)
def test_struck_page_text_keeps_marks(tmp_path: Path, page: str) -> None:
    html = f"<html><body><p>{page}</p></body></html>"
    assert text_of(tmp_path / "a.html", html.encode()) == "Fee ~~10 euros~~ 12"


def test_struck_blocks_of_page_keep_marks(tmp_path: Path) -> None:
    html = "<html><body><del><p>One</p><ul><li>Two</ul></del><p>Three</p></body></html>"
    assert text_of(tmp_path / "a.html", html.encode()) == "~~One~~\n\n- ~~Two~~\n\nThree"


def test_struck_mail_text_keeps_marks(tmp_path: Path) -> None:
    mail = EmailMessage()
    mail["Subject"] = "Fee"
    mail.set_content("<html><body>Fee <s>10 euros</s> 12</body></html>", subtype="html")
    assert text_of(tmp_path / "a.eml", bytes(mail)) == "Fee ~~10 euros~~ 12"


LIBREOFFICE = Path(__file__).parents[2] / "support" / "libreoffice"


@pytest.mark.parametrize("name", ["handbook.epub", "手册.epub"])
def test_headings_of_book_are_found_by_size(tmp_path: Path, name: str) -> None:
    text = text_of(tmp_path / "a.epub", (LIBREOFFICE / name).read_bytes())
    headings = [line.partition(" ")[0] for line in text.splitlines() if line.startswith("#")]
    assert headings == ["#", "##", "##", "#", "##", "##"]
