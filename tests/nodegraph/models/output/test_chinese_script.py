"""Replies in traditional Chinese are read like those in simplified Chinese."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph.models.output.chinese_script import chinese_pattern, simplified
from nodekin.retrievers.analysis import normal_form

from .test_reply_table import ROWS, Row, result_of

# Traditional forms that are used in Taiwan, where a simplified character has several forms.
USUAL_FORMS = dict("后後 里裡 复複 干乾 发發 台臺 并並 么麼 采採 为為 说說 准準".split())

FILE = Path(normal_form.__file__).with_name("simplified.txt")

CHARACTERS = "".join(
    line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")
)


def traditional(value: Any) -> Any:
    """Convert all Chinese characters in a JSON value to their traditional forms."""
    forms = dict(zip(CHARACTERS[1::2], CHARACTERS[::2], strict=True))
    forms.update(USUAL_FORMS)
    for same_in_both in "面同合余回注真表向制周谷搜系":
        forms.pop(same_in_both, None)
    written = json.dumps(value, ensure_ascii=False)
    return json.loads(written.translate(str.maketrans(forms)))


CHINESE_ROWS = [row for row in ROWS if traditional(row) != row]


@pytest.mark.parametrize("row", CHINESE_ROWS, ids=lambda row: f"{row['role']}: {row['form']}")
def test_reply_in_traditional_characters_gives_same_result(row: Row) -> None:
    assert result_of(traditional(row)) == traditional(row["expected"])


def test_pattern_matches_both_scripts_and_keeps_sets_and_escapes() -> None:
    pattern = chinese_pattern(r"[问题]\[(?:查询)\]")
    assert pattern.fullmatch("问[查询]")
    assert pattern.fullmatch("題[查詢]")
    assert not pattern.fullmatch("問查詢")


def test_simplified_replaces_only_traditional_characters() -> None:
    assert simplified("子問題 A") == "子问题 A"
