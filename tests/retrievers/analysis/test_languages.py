from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers import TextAnalyzer
from nodekin.retrievers.analysis.languages import (
    _ENGLISH_ONLY,
    _hints,
    detect,
    named,
    of_script,
    script_of,
)
from nodekin.retrievers.analysis.normal_form import normalized
from nodekin.retrievers.analysis.segments import by_script, segments

LATIN = of_script("latin")

SENTENCES = {
    "english": "The river rises in the mountains and flows into the sea.",
    "german": "Der Fluss entspringt in den Bergen und mündet ins Meer.",
    "dutch": "De rivier ontspringt in de bergen en mondt uit in de zee.",
    "swedish": "Floden rinner upp i bergen och är en av de längsta i landet.",
    "danish": "Floden udspringer i bjergene og er en af de længste i landet.",
    "finnish": "Joki saa alkunsa vuorilta ja se on maan pisin.",
    "hungarian": "A folyó a hegyekben ered, és az ország leghosszabb folyója.",
    "turkish": "Nehir dağlardan doğar ve bu ülkenin en uzun nehri olarak bilinir.",
    "polish": "Rzeka wypływa z gór i jest najdłuższa w tym kraju.",
    "czech": "Řeka pramení v horách a je nejdelší v této zemi.",
    "romanian": "Râul izvorăște din munți și este cel mai lung din țară.",
    "spanish": "El río nace en las montañas y es el más largo del país.",
    "portuguese": "O rio nasce nas montanhas e é o mais longo do país.",
    "french": "Le fleuve prend sa source dans les montagnes et se jette dans la mer.",
    "italian": "Il fiume nasce nelle montagne ed è il più lungo della regione.",
    "indonesian": "Sungai itu berasal dari gunung dan mengalir ke laut.",
    "vietnamese": "Con sông bắt nguồn từ núi và chảy ra biển.",
    "russian": "Река берёт начало в горах и впадает в море.",
    "ukrainian": "Річка бере початок у горах і впадає в море.",
    "bulgarian": "Реката извира от планината и се влива в морето, което е топло.",
    "serbian": "Ријека извире у планини и улива се у море, љети је топла.",
    "arabic": "ينبع النهر من الجبال ويصب في البحر.",
    "persian": "رودخانه از کوه سرچشمه می‌گیرد و به دریا می‌ریزد.",
    "urdu": "یہ دریا پہاڑوں سے نکلتا ہے اور سمندر میں گرتا ہے۔",
    "greek": "Ο ποταμός πηγάζει από τα βουνά και εκβάλλει στη θάλασσα.",
    "hindi": "यह नदी पहाड़ों से निकलती है और समुद्र में मिलती है।",
    "nepali": "यो नदी पहाडबाट निस्केको छ र समुद्रमा मिल्छ।",
    "hebrew": "הנהר זורם מן ההרים אל הים.",
}


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items())
def test_detect_returns_language_of_sentence(language: str, sentence: str) -> None:
    ((script, words),) = by_script(segments(normalized(sentence))).items()
    detected = detect(words, script)
    assert (detected or of_script(script)[0]).name == language


@pytest.mark.parametrize("text", ["Die", "die hard", "Angela Merkel", "naïve café", "x = y + 1"])
def test_detect_of_few_latin_words_is_none(text: str) -> None:
    assert detect(text.casefold().split(), "latin") is None


def test_german_text_with_english_quotation_is_german() -> None:
    text = "Der Film The Lord of the Rings ist nach dem Buch und wurde von ihm gedreht"
    assert detect(text.casefold().split(), "latin").name == "german"


def test_english_text_with_foreign_names_is_english() -> None:
    text = "Ludwig van der Rohe and Charles de la Tour designed the house for the Baronne"
    assert detect(text.casefold().split(), "latin").name == "english"


def test_source_code_has_no_foreign_language() -> None:
    code = "for i in range for x in y import os return self def as not x is else if in self i j"
    detected = detect(code.split(), "latin")
    assert detected is None or detected.name == "english"


def test_detect_is_limited_to_given_languages() -> None:
    danish, norwegian = named("danish"), named("norwegian")
    words = "hvor er det".split()
    assert detect(words, "latin", danish) is danish[0]
    assert detect(words, "latin", norwegian) is norwegian[0]
    assert detect(["berlin"], "latin", danish) is None


def test_script_of_returns_script_of_letters() -> None:
    assert [script_of(c) for c in "aéжαअ7"] == [
        "latin",
        "latin",
        "cyrillic",
        "greek",
        "devanagari",
        "digit",
    ]
    assert of_script("latin")[0].name == "english"
    assert of_script("georgian")[0].name == "georgian"


@given(
    st.lists(st.sampled_from(sorted(chain.from_iterable(x.function_words for x in LATIN))))
    | st.lists(st.sampled_from(["the", "and", "in", "of", "die", "é", "de", "river", "a"]))
)
def test_english_detection_equals_general_rule(words: list[str]) -> None:
    scores = Counter(x for word in words for x in _hints("latin").get(word, ()))
    scores.update(x for c in "".join(words) for x in LATIN if c in x.letters)
    best = max(LATIN, key=lambda language: scores[language])
    expected = best if scores[best] >= max(2, len(words) / 20) else None
    known = [word for word in words if best in _hints("latin").get(word, ())]
    if best is not LATIN[0] and len({*known}) < 2 and scores[best] == len(known):
        expected = None  # one word alone, how often it comes
    english = sum(word in _ENGLISH_ONLY for word in words)
    if english > 1 and english * 8 > len(words):
        expected = LATIN[0]
    assert detect(words[:200], "latin") is expected


def test_repeated_word_does_not_determine_language() -> None:
    names, _ = TextAnalyzer().indexed(
        "在 MuSiQue 上，MuSiQue 的召回率；MuSiQue 的 FusionRetriever。"
    )
    assert not any(term.startswith("\0") for term in names)
    assert "fusionretriev" in names  # as in English texts
