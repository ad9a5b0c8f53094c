"""Measure how often encoding detectors decode short texts correctly.

For each of 25 encodings, 200 samples of 120 characters and 200 samples of 40 characters are used.
The samples in Arabic, Chinese, German, Japanese, Russian, Thai and Vietnamese are taken from
``--data``. For other languages such as Greek, Korean and Polish, they are taken from the
translations of Django (``pip install django``), which is not used for anything else here. Without
Django, these encodings are left out.

nodekin is tested without a declared encoding and without other files in the folder, so that only
the bytes can be used. The other detectors (``pip install chardet charset-normalizer faust-cchardet
chardetng-py``) are run with default settings. Detectors that are not installed are skipped. If a
wrong encoding decodes the bytes to the same text, it is counted as correct.
"""

from __future__ import annotations

import gettext
import json
import random
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from harness import arguments, show

from nodekin.nodegraph.readers.decoding import detected
from nodekin.retrievers.analysis import normal_form

Detect = Callable[[bytes], str | None]

LENGTH = 120
COUNT = 200


class Encoding(NamedTuple):
    """An encoding, and the languages in which its samples are written."""

    codec: str
    languages: tuple[str, ...]


ENCODINGS = (
    Encoding("gb18030", ("zh",)),
    Encoding("big5hkscs", ("zh-hant",)),
    Encoding("cp932", ("ja",)),
    Encoding("euc_jp", ("ja",)),
    Encoding("cp949", ("ko",)),
    Encoding("cp874", ("th",)),
    Encoding("cp1256", ("ar",)),
    Encoding("iso8859-6", ("ar",)),
    Encoding("cp1251", ("ru", "bg", "uk")),
    Encoding("koi8_r", ("ru",)),
    Encoding("cp866", ("ru",)),
    Encoding("iso8859-5", ("ru", "bg")),
    Encoding("koi8_u", ("uk",)),
    Encoding("cp1252", ("de", "fr", "es", "pt", "it", "sv", "nl")),
    Encoding("cp850", ("de",)),
    Encoding("cp437", ("de", "fr")),
    Encoding("iso8859-7", ("el",)),
    Encoding("cp1250", ("pl", "cs", "hu", "ro")),
    Encoding("iso8859-2", ("pl", "cs", "hu", "ro")),
    Encoding("cp852", ("pl", "cs", "hu")),
    Encoding("cp1253", ("el",)),
    Encoding("cp1254", ("tr",)),
    Encoding("cp1255", ("he",)),
    Encoding("cp1257", ("lt", "lv", "et")),
    Encoding("cp1258", ("vi",)),
)

DATA = {
    "ar": "xquad/xquad.ar.json",
    "de": "xquad/xquad.de.json",
    "ja": "languages/jsquad_valid.json",
    "ru": "xquad/xquad.ru.json",
    "th": "languages/iapp_thai_test.json",
    "vi": "xquad/xquad.vi.json",
    "zh": "cmrc2018/dev.json",
}
"""The files that contain texts in each language, in the format of SQuAD."""


# Creating the samples


def contexts(path: Path) -> list[str]:
    """Return the paragraphs in a file in SQuAD format."""
    content = json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
    found = re.findall(r'"context(?:_text)?": "((?:[^"\\]|\\.)*)"', content)
    return [json.loads(f'"{text}"').rpartition("[SEP]")[2].strip() for text in found]


def messages(language: str) -> list[str]:
    """Return Django's messages in a language, without placeholders and tags."""
    spec = find_spec("django")
    if spec is None or spec.origin is None:
        return []
    texts = []
    for path in sorted(Path(spec.origin).parent.rglob(f"locale/{language}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            catalog: dict[Any, str] = gettext.GNUTranslations(file)._catalog
        for key, text in catalog.items():
            if key:  # The message with an empty key is a header.
                texts.append(re.sub(r"%\(?\w*\)?[sd]|\{\w*\}|<[^>]*>", " ", text))
    return [" ".join(text.split()) for text in texts]


def traditional(text: str) -> str:
    """Convert a text to traditional Chinese characters."""
    return text.translate(_TRADITIONAL)


_TRADITIONAL = {
    ord(new): old
    for line in normal_form._LINES
    if not line.startswith("#")
    for old, new in zip(line[::2], line[1::2], strict=True)
}


def texts_of(language: str, data: Path) -> list[str]:
    """Return texts in a language that are at least as long as a sample."""
    if language == "zh-hant":
        texts = [traditional(text) for text in contexts(data / DATA["zh"])]
    elif language in DATA:
        texts = contexts(data / DATA[language])
    else:
        parts = messages(language)
        random.Random(language).shuffle(parts)
        joined = ". ".join(parts)
        texts = [joined[at : at + LENGTH] for at in range(0, len(joined) - LENGTH, LENGTH)]
    return [text for text in texts if len(text) >= LENGTH]


def encoded(text: str, codec: str) -> bytes:
    """Encode a sample. Characters that the encoding does not support are left out."""
    if codec == "cp1258":  # In this encoding, tone marks are separate characters.
        text = "".join(_with_separate_tone(character) for character in text)
    return text.encode(codec, "ignore")


def _with_separate_tone(character: str) -> str:
    if character.encode("cp1258", "ignore"):
        return character
    letter = unicodedata.normalize("NFD", character)
    tones = [mark for mark in letter[1:] if mark in "\u0300\u0301\u0303\u0309\u0323"]
    rest = [mark for mark in letter[1:] if mark not in tones]
    return unicodedata.normalize("NFC", letter[0] + "".join(rest)) + "".join(tones)


def samples(encoding: Encoding, data: Path, length: int = LENGTH) -> list[bytes]:
    """Return samples in an encoding, alternating between its languages. Pure ASCII is left out."""
    pools = []
    for language in encoding.languages:
        pick = random.Random(f"{encoding.codec} {language}")
        texts = texts_of(language, data)
        pick.shuffle(texts)
        made = (encoded(text[:length], encoding.codec) for text in texts)
        pools.append([sample for sample in made if not sample.isascii()])
    taken: list[bytes] = []
    for turn in range(COUNT):
        taken += [pool[turn] for pool in pools if turn < len(pool)]
    return taken[:COUNT]


# Detectors


def nodekin() -> Detect:
    """Return the encoding detector of nodekin."""
    return detected


def chardet() -> Detect:
    """Return the encoding detector of chardet."""
    from chardet import detect

    return lambda data: detect(data)["encoding"]


def charset_normalizer() -> Detect:
    """Return the encoding detector of charset-normalizer."""
    from charset_normalizer import from_bytes

    def best(data: bytes) -> str | None:
        match = from_bytes(data).best()
        return match.encoding if match else None

    return best


def faust_cchardet() -> Detect:
    """Return the encoding detector of faust-cchardet."""
    from cchardet import detect

    return lambda data: detect(data)["encoding"]


def chardetng() -> Detect:
    """Return the encoding detector of chardetng, which Firefox uses."""
    from chardetng_py import detect

    return lambda data: detect(data)


DETECTORS = {
    "nodekin": nodekin,
    "chardet": chardet,
    "charset-normalizer": charset_normalizer,
    "faust-cchardet": faust_cchardet,
    "chardetng-py": chardetng,
}


def detectors() -> Iterator[tuple[str, Detect]]:
    """Yield the names and functions of all detectors that are installed."""
    for name, make in DETECTORS.items():
        try:
            yield name, make()
        except ImportError as error:
            print(f"skipped: {name}, no {error.name}")


def is_right(detect: Detect, data: bytes, codec: str) -> bool:
    """Return whether the detected encoding decodes the bytes to the original text."""
    found = detect(data)
    try:
        return data.decode(found or "ascii") == data.decode(codec)
    except (LookupError, UnicodeError):
        return False


def accuracy(
    systems: Iterable[tuple[str, Detect]], data: Path, length: int = LENGTH
) -> list[list[str]]:
    """Return a row of the table for each encoding, and a final row for all encodings together."""
    systems = list(systems)
    rows = []
    right = dict.fromkeys((name for name, _ in systems), 0)
    total = 0
    for encoding in ENCODINGS:
        known = samples(encoding, data, length)
        if not known:
            print(f"skipped: {encoding.codec}, no texts")
            continue
        cells = []
        for name, detect in systems:
            count = sum(is_right(detect, sample, encoding.codec) for sample in known)
            right[name] += count
            cells.append(f"{count / len(known):.3f}")
        total += len(known)
        rows.append([encoding.codec, " ".join(encoding.languages), str(len(known)), *cells])
    shares = [f"{count / total:.3f}" for count in right.values()]
    return [["all", "", str(total), *shares], *rows]


def speed(systems: Iterable[tuple[str, Detect]], data: Path) -> list[list[str]]:
    """Measure the time in milliseconds to detect the encoding of large files and of a short sample.

    The files have a size of 1 MB and are written in four encodings.
    """
    systems = list(systems)
    rows = []
    for codec, language in (("gb18030", "zh"), ("cp1251", "ru"), ("cp1252", "de"), ("cp932", "ja")):
        text = "\n".join(contexts(data / DATA[language]))
        file = (encoded(text, codec) * 20)[:1_000_000]
        rows.append([f"1 MB, {codec}", *(_milliseconds(detect, [file]) for _, detect in systems)])
    short = samples(ENCODINGS[0], data)
    rows.append(["120 characters", *(_milliseconds(detect, short) for _, detect in systems)])
    return rows


def _milliseconds(detect: Detect, texts: list[bytes]) -> str:
    detect(texts[0][:100])  # load imports and tables first
    start = time.perf_counter()
    for text in texts:
        detect(text)
    return f"{1000 * (time.perf_counter() - start) / len(texts):.2f}"


def main() -> None:
    """Run the benchmarks and print their tables."""
    options = arguments(__doc__).parse_args()
    systems = list(detectors())
    names = [name for name, _ in systems]
    header = ["encoding", "languages", "samples", *names]
    show("Encodings of 120 characters", header, accuracy(systems, options.data))
    show("Encodings of 40 characters", header, accuracy(systems, options.data, 40))
    show("Milliseconds to detect an encoding", ["text", *names], speed(systems, options.data))


if __name__ == "__main__":
    main()
