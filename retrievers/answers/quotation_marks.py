"""A pattern that matches quotations in all common types of quotation marks."""

from __future__ import annotations

import re

from ...nodegraph.splitters.chunking import UNSPACED

_LATIN = rf"[^\W{UNSPACED}]"

_SAME_PARAGRAPH = r"(?!\n[ \t]*\n)"


# Words that begin with an apostrophe: "'tis", "rock 'n' roll", "the '90s".
_ELIDED = r"(?:tis|twas|twere|twill|em|til|cause|cos|round|bout|neath|nuff|n|\d\ds?)\b"

_APOSTROPHE = (
    rf"(?<={_LATIN})['’](?={_LATIN})|(?<!{_LATIN})['’](?={_ELIDED})|(?<=[ ]['’]n)['’](?=[ ])"
)

_NO_ELISION = rf"(?!(?i:{_ELIDED}))"


def _between(start: str, stop: str) -> str:
    """Return a pattern for a text between two quotation marks, which may contain nested marks."""
    text = rf"{_SAME_PARAGRAPH}[^{start}{stop}]"
    return rf"{start}((?:{text}|{start}(?:{text})+{stop})+){stop}"


QUOTATION = re.compile(
    rf"{_between('“', '”')}|{_between('«', '»')}|{_between('「', '」')}|{_between('『', '』')}"
    rf"|„((?:{_SAME_PARAGRAPH}[^„“”])+)[“”]"
    rf"|(?<!{_LATIN})»((?:{_SAME_PARAGRAPH}[^«»])+)«(?!{_LATIN})"
    rf'|(?<!{_LATIN})"(?=\S)((?:{_SAME_PARAGRAPH}[^"])+)(?<=\S)"(?!{_LATIN})'
    rf"|(?<!{_LATIN})‘{_NO_ELISION}((?:{_SAME_PARAGRAPH}[^‘’]|{_APOSTROPHE})+)’(?!{_LATIN})"
    # Two kinds of marks around one quotation.
    rf"|[“„‟]((?:{_SAME_PARAGRAPH}[^“”„‟\"＂])+)[\"＂]"
    rf'|(?<!{_LATIN})["＂](?=\S)((?:{_SAME_PARAGRAPH}[^"“”＂])+)(?<=\S)[”“＂](?!{_LATIN})'
    rf"|(?<!{_LATIN})”(?=\S)((?:{_SAME_PARAGRAPH}[^“”])+)(?<=\S)”(?!{_LATIN})"
    # Single marks. An apostrophe at the edge of a word is not a mark.
    rf"|‹((?:{_SAME_PARAGRAPH}[^‹›])+)›|(?<!{_LATIN})›((?:{_SAME_PARAGRAPH}[^‹›])+)‹(?!{_LATIN})"
    rf"|‚((?:{_SAME_PARAGRAPH}[^‚‘’]|’(?={_LATIN}))+)[‘’](?!{_LATIN})"
    rf"|(?<!{_LATIN})'(?=\S){_NO_ELISION}((?:{_SAME_PARAGRAPH}[^']|{_APOSTROPHE}){{3,}})"
    rf"(?<=\S)'(?!{_LATIN})"
    # Wide marks, and marks from typesetting and HTML.
    rf"|＇((?:{_SAME_PARAGRAPH}[^＇])+)＇|｢((?:{_SAME_PARAGRAPH}[^｢｣])+)｣"
    rf"|〝((?:{_SAME_PARAGRAPH}[^〝〞〟])+)[〞〟]|``((?:{_SAME_PARAGRAPH}[^`'])+)''"
    rf"|<q>((?:{_SAME_PARAGRAPH}[^<])+)</q>|&quot;((?:{_SAME_PARAGRAPH}[^&])+)&quot;"
    rf"|&ldquo;((?:{_SAME_PARAGRAPH}[^&])+)&rdquo;|&laquo;((?:{_SAME_PARAGRAPH}[^&])+)&raquo;"
)
"""A pattern that matches a quotation. The group that matched is the text between the marks."""
