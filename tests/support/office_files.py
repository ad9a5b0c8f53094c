"""The known contents of files that LibreOffice wrote, and a measure of how well they are read."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Block = tuple[Any, ...]
"""A part of a document, in one of the following forms.

("h", level, text), ("p", text), ("note", text, footnote), ("list", items), ("table", rows),
("columns", blocks), ("page",).
"""


def text_of(blocks: Iterable[Block]) -> str:
    """Return the expected text of blocks."""
    lines: list[str] = []
    for kind, *rest in blocks:
        if kind == "h":
            lines.append(rest[1])
        elif kind in ("p", "note"):
            lines += rest
        elif kind == "list":
            lines += rest[0]
        elif kind == "table":
            lines += (" ".join(row) for row in rest[0])
        elif kind == "columns":
            lines.append(text_of(rest[0]))
    return "\n".join(lines)


def characters(text: str) -> str:
    """Return the characters of a text without white space and Markdown syntax."""
    return re.sub(r"[\s#*_|`>\[\]()\-•–\\\f]+", "", text)


def fidelity(known: str, read: str) -> float:
    """Return the F1 score of the characters that two texts have in common, in the same order.

    The longest common subsequence is computed with bit-parallel arithmetic (Hyyrö 2004).
    """
    a, b = characters(known), characters(read)
    places: dict[str, int] = {}
    for at, character in enumerate(a):
        places[character] = places.get(character, 0) | (1 << at)
    mask = (1 << len(a)) - 1
    state = mask
    for character in b:
        matches = state & places.get(character, 0)
        state = ((state + matches) | (state - matches)) & mask
    common = len(a) - state.bit_count()
    return 2 * common / (len(a) + len(b)) if a or b else 1.0


HANDBOOK: Sequence[Block] = (
    ("h", 1, "1 The tea handbook"),
    (
        "p",
        "This handbook tells how the tea rooms of the harbour company buy, store and serve tea. It "
        "is read by everyone who begins to work in one of the rooms, and it is kept behind the "
        "counter.",
    ),
    ("h", 2, "1.1 Buying"),
    (
        "note",
        "Green tea is bought in May and in September, from the gardens of Anji and of Longjing. "
        "Nothing is bought that was picked more than six weeks before",
        "Oolong is an exception: it may rest for a year.",
    ),
    ("list", ["Smell the dry leaves.", "Pour a cup in hot water.", "Weigh the chest twice."]),
    ("h", 2, "1.2 Prices"),
    ("p", "The prices of a cup were fixed by the board in March and hold in all rooms."),
    (
        "table",
        [
            ["Tea", "Cup", "Pot"],
            ["Longjing", "4.20", "11.00"],
            ["Keemun", "3.80", "9.50"],
            ["Tieguanyin", "5.10", "13.00"],
        ],
    ),
    ("page",),
    ("h", 1, "2 Serving"),
    ("h", 2, "2.1 Water"),
    (
        "p",
        "Green tea is poured at eighty degrees and rests for two minutes. Black tea is poured at "
        "ninety-five degrees and rests for four. The kettle is emptied every evening and cleaned "
        "with vinegar on Mondays.",
    ),
    ("h", 2, "2.2 Complaints"),
    (
        "columns",
        [
            (
                "p",
                "Who finds the tea bitter gets a new cup without a question. The old cup is "
                "tasted by the head of the room, who notes the chest it came from.",
            ),
            (
                "p",
                "Three notes of the same chest within a week send the chest back to the garden, "
                "and the garden pays the freight.",
            ),
        ],
    ),
)

HANDBOOK_ZH: Sequence[Block] = (
    ("h", 1, "第一章 茶室手册"),
    (
        "p",
        "本手册说明港口公司的各家茶室怎样购买、保存和供应茶叶。每位新来的员工都要阅读，"
        "手册放在柜台后面。",
    ),
    ("h", 2, "1.1 采购"),
    (
        "note",
        "绿茶在五月和九月购买，产地是安吉和龙井的茶园。采摘超过六个星期的茶叶一律不买",
        "乌龙茶例外：可以存放一年。",
    ),
    ("list", ["先闻干茶的香气。", "用热水泡一杯。", "把茶箱称两遍。"]),
    ("h", 2, "1.2 价格"),
    ("p", "每杯的价格由董事会在三月确定，所有茶室都一样。"),
    (
        "table",
        [["茶", "一杯", "一壶"], ["龙井", "四元二角", "十一元"], ["祁红", "三元八角", "九元五角"]],
    ),
    ("page",),
    ("h", 1, "第二章 供应"),
    ("h", 2, "2.1 用水"),
    (
        "p",
        "绿茶用八十度的水冲泡，静置两分钟。红茶用九十五度的水冲泡，静置四分钟。水壶每天晚上倒空，"
        "每个星期一用醋清洗。全角字符：ＡＢＣ１２３。",
    ),
    ("h", 2, "2.2 投诉"),
    (
        "columns",
        [
            (
                "p",
                "客人觉得茶苦，就换一杯新的，不问原因。茶室主管要品尝"
                "原来的那一杯，并记下它来自哪个茶箱。",
            ),
            ("p", "同一个茶箱一个星期内被记下三次，就退回茶园，运费由茶园承担。"),
        ],
    ),
)

FIXTURES = Path(__file__).parent / "libreoffice"
"""Files written by LibreOffice 7.4, which ``python benchmarks/office_files.py`` regenerates."""

KNOWN = {"handbook": HANDBOOK, "手册": HANDBOOK_ZH, "直排": HANDBOOK_ZH[:3]}
"""The known contents of each file. The text of the last file runs from top to bottom."""
