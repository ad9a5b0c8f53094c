"""Different spellings of a text have one normal form."""

import pytest

from nodekin.retrievers.analysis.normal_form import normalized


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ＦＵＬＬ width：１２", "full width:12"),
        ("Tea™ and Coffee℠", "tea  and coffee "),
        ("2³⁰ metres", "2^30 metres"),
        ("٤٢ pages", "42 pages"),
        ("Tom's, the dog’s", "tom, the dog"),
        ("e\u0301te\u0301", "été"),
        ("İstanbul", "istanbul"),
        ("soft\u00adhyphen", "softhyphen"),
        ("臺灣的電腦", "台湾的电脑"),
        ("\u0e19\u0e4d\u0e32", "\u0e19\u0e33"),
        ("", ""),
    ],
)
def test_spellings_have_normal_form(text: str, normal: str) -> None:
    assert normalized(text) == normal


def test_every_chinese_character_has_one_simplified_form() -> None:
    characters = [chr(code) for code in range(0x4E00, 0x9FA6)]
    simplified = {normalized(one) for one in characters}
    assert len(simplified) > 18_000
    assert {normalized(one) for one in simplified} == simplified
