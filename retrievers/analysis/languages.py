"""Languages: stems and parts of words, and language detection."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

from Stemmer import Stemmer, algorithms

SAMPLE = 200
"""Number of words for language detection."""

# A text is English if more than one in 8 words is in ``_ENGLISH_ONLY``.
_ENGLISH_SHARE = 8

# Minimum evidence: one function word or typical letter per 20 words.
_LEAST_SHARE = 20

_ALGORITHMS = frozenset(algorithms()) - {"porter", "dutch_porter", "lovins"}


LANGUAGE_TERM = "\0"
"""The term that marks a text in a language other than its script's default."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The properties of a language.

    Attributes:
        name: Its Snowball name, in lower case.
        script: The script of its words, see ``script_of``.
        stemmed: Whether Snowball has a stemmer for it.
        grows: Whether words are compounds or have many endings for case, person and tense, so that
            parts of words match where whole words don't.
        function_words: Articles, pronouns, auxiliaries and question words. For most languages,
            prepositions and conjunctions are included. They identify a language. English function
            words are left out of queries.
        letters: Letters that distinguish it from other languages of its script.
    """

    name: str
    script: str
    stemmed: bool
    grows: bool
    function_words: frozenset[str]
    letters: str = ""

    @property
    def term(self) -> str:
        """The term that marks texts of this language in an index."""
        return f"{LANGUAGE_TERM}{self.name}"


# The default of each script is first. Words of scripts without an entry are not stemmed, and grow.
_TABLE = """
english latin
a an the am is are was were be been being do does did can could will would should has have had i
me my we us our you your it its he him his she her they them their this that these those there
what when where which who whom whose why how

german latin grows äöüß
der die das den dem des ein eine einen einem einer eines kein keine und oder aber nicht ist sind
war waren wird werden wurde wurden hat haben hatte hatten ich du er sie es wir ihr ihn ihm ihnen
sich sein seine seinen seinem seiner ihre ihren ihrem ihrer dieser diese dieses diesem diesen mit
von vom zu zum zur im am auf für aus bei nach über unter durch auch als wie nur noch dass wenn was
wer wen wem wessen wann wo wohin woher warum wieso welche welcher welches welchen welchem wieviel
viele gibt

dutch latin grows
de het een en van in op te dat die dit deze is zijn was waren wordt werd werden worden niet met
voor aan door bij om uit ook naar als er hij zij ze ik je wij we hun haar heeft hebben had hadden
kan naar over maar tot wat wie wanneer waar waarom welke welk hoe hoeveel

swedish latin grows åäö
och att det som en ett den de är var på av för med till inte om han hon jag vi har hade från eller
men sig sin sina kan ska blev blir vid efter under vad vem vems när var varför vilken vilket vilka
hur många

danish latin grows æøå
og at det som en et den de er var på af for med til ikke om han hun jeg vi har havde fra eller men
sig sin sine kan skal blev bliver ved efter under også hvad hvem hvis hvornår hvor hvorfor hvilken
hvilket hvilke hvordan mange

norwegian latin grows æøå
og at det som en et den de er var på av for med til ikke om han hun jeg vi har hadde fra eller men
seg sin sine kan skal ble blir ved etter under også hva hvem når hvor hvorfor hvilken hvilket
hvilke hvordan mange ein eit ikkje kva kven

finnish latin grows äö
ja on ei se että oli ovat olivat hän he joka jotka tai mutta kun kuin myös ole ollut tämä nämä sen
hänen heidän niiden mukaan mikä mitä mitkä kuka ketkä kenen milloin missä mistä mihin miksi miten
kuinka monta paljon millä

estonian latin grows õä
ja on ei see et oli olid ta nad kes mis või aga kui ka ole olnud selle tema nende oma ning mille
mida millal kus kuhu kust miks kuidas milline millised mitu palju kelle

hungarian latin grows őű
a az és hogy nem egy van volt voltak meg is ez ezt ezek azt azok mint vagy de csak már még lesz
amely aki ami ki kik kit mi mit mikor hol hova honnan miért hogyan hány mennyi melyik melyek milyen
kinek

turkish latin grows ğış
ve bir bu da de ile için olarak olan çok daha gibi en ne kim kimin kimi nerede nereye nereden nasıl
neden niçin kaç hangi zaman ya veya ama o onun şu her kadar sonra göre tarafından değil mi mı mu mü
dir dır

polish latin grows łąęśźżćń
i w z na do nie się jest to że są był była było były o od po za przez dla jak ale lub oraz jego jej
ich który która które tym tego co kto kogo kiedy gdzie dlaczego czemu ile jaki jaka jakie czy skąd
dokąd

czech latin grows řěůčšžýň
a v z na do se je to že jsou byl byla bylo byli o od po za pro jak ale nebo jeho její jejich který
která které jako při co kdo koho kdy kde proč kolik jaký jaká jaké čí odkud kam

slovak latin grows ľĺŕôäčšžň
a v z na do sa je to že sú bol bola bolo boli o od po za pre ako ale alebo jeho jej ich ktorý ktorá
ktoré aj pri čo kto koho kedy kde prečo koľko aký aká aké čí odkiaľ kam

serbian latin grows đćčšž
i u na se je da su za od s sa koji koja koje nije bio bila bilo bili kao ali ili po iz do njegov
njen njihov što šta tko ko koga kada kad gdje gde zašto koliko kakav kako čiji

slovenian latin grows čšž
in je v na se da so za z s ki ni bil bila bilo bili kot ali po iz do od pri tudi njegov njen kaj
kdo koga kdaj kje zakaj koliko kakšen kateri katera kako čigav

lithuanian latin grows ėųūįąęčšž
ir yra buvo kad į iš su už ar bet ne tai jis ji jie jos jo kuris kuri kurie apie nuo po dėl kaip
kas ką kada kur kodėl kiek koks kokia kurio

latvian latin grows āēīūģķļņčšž
un ir bija ka no ar uz par bet vai ne tas tā viņš viņa viņi kurš kura kuri pēc kā kas ko kad kur
kāpēc cik kāds kāda

romanian latin grows ășțşţ
și în de la a al ale ai cu pe din pentru care este sunt era erau fost au un o unei unui nu să se
mai prin după dar sau ca lui ei lor său sa ce cine cui când unde cum câți câte cât ceea cele cel

spanish latin ñ¿¡
el la los las un una unos unas de del que y o en a al por para con se su sus es son era fue fueron
ser ha han como no lo le les más pero sobre entre qué quién quiénes cuándo dónde cuál cuáles cómo
cuánto cuánta cuántos cuántas quien cuando donde

portuguese latin ãõç
o a os as um uma uns umas de do da dos das que e ou em no na nos nas por pelo pela para com se seu
sua seus suas é são era foi foram ser tem como não mais mas ao à pelos qual quais quem quando onde
quanto quantos quantas

french latin çèêœ
le la les un une des du de et ou en dans que qui ne pas se sa son ses leur leurs est sont était
étaient a ont été au aux par pour avec sur ce cette ces il elle ils elles nous vous plus mais comme
l d qu quel quelle quels quelles quand où comment pourquoi combien quoi lequel laquelle

italian latin ìòù
il lo la i gli le un uno una di del della dei delle dello degli da dal dalla in nel nella che e o a
al alla per con su sul si è sono era erano ha hanno stato stata non più ma come suo sua suoi quale
quali chi quando dove perché quanto quanti quante cosa cui

catalan latin çŀ
el la els les un una uns unes de del dels que i o en a al als per amb es seu seva seus és són era
va van ser ha han com no més però aquest aquesta què qui quan on quin quina quins quines quant
quants quantes

indonesian latin
yang dan di ke dari untuk pada dengan adalah ini itu dalam tidak oleh sebagai juga atau telah
akan dapat karena mereka ia dia kami saya anda tersebut apa siapa kapan mana dimana mengapa
bagaimana berapa apakah

basque latin grows
eta da ez bat ere zen ziren du dute izan hau hori baina edo den dira zuen zer nor nork noiz non
nola zergatik zenbat zein

irish latin
agus an na is tá bhí ar le do go i ag de a sé sí siad nach ní ach mar cad cé cathain cá conas

vietnamese latin ạảẹẻẽịỉĩọỏụủũỵỷỹơớờởỡợưứừửữựấầẩẫậắằẳẵặếềểễệốồổỗộđ
và của là có được các những một cho trong với không người này đã để từ khi ở như đến về theo tại
bởi gì ai nào đâu sao mấy bao nhiêu thế

russian cyrillic grows ыэё
и в на не с по из к у о от до за для при но а или же бы это этот эта эти он она оно они его её ее
их был была было были есть быть как так также что чтобы который которая которое которые которого
которой которых кто кого кому кем чего чему чем когда где куда откуда почему зачем сколько какой
какая какое какие какого каком какую каким каких чей

ukrainian cyrillic grows іїєґ
і й в у на не з що та до за для від як це але або його її їх був була було були є який яка яке які
хто кого коли де куди звідки чому навіщо скільки чий чим

bulgarian cyrillic grows
се са от със като това който която което които беше бил била били към през също или но и в на не за
по е да кой кого какво какъв каква кога къде защо колко как чий

serbian_cyrillic cyrillic grows ђјљњћџ
и у на се је да су за од са који која које није био била било били као али или по из до његов што
шта ко кога када где зашто колико како

arabic arabic grows
في من إلى على عن مع هو هي هم كان كانت يكون أن إن التي الذي الذين هذا هذه ذلك تلك ما ماذا متى أين
كيف لماذا كم هل أي أية لم لا قد كما بين بعد قبل عند حيث او أو ثم كل و

persian arabic grows پچژگکی
و در به از که این آن را با است بود شد برای یک تا بر هم نیز می های هایی او آنها چه چی کی چند کجا
چرا چگونه کدام آیا

urdu arabic grows ٹڈڑںےہھ
کا کی کے میں ہے ہیں اور سے کو نے پر تھا تھی تھے یہ وہ اس ان کیا کون کب کہاں کیوں کیسے کتنے کتنی

greek greek grows
ο η το οι τα του της των τον την τους τις στο στη στην στον στα στις και να με σε για από που είναι
ήταν έχει είχε δεν ως ένα μια ένας θα αυτό αυτή τι ποιος ποια ποιο ποιον ποιοι ποιες ποιων πότε πού
πώς γιατί πόσο πόσα πόσοι πόσες

hindi devanagari grows
का की के में है हैं था थी थे और से को ने पर यह वह ये वे इस उस इन एक भी नहीं तो ही कि जो गया गई गए
लिए क्या कौन किस किसने किसे किसका कब कहाँ कहां क्यों कैसे कितने कितनी कितना कौनसा

nepali devanagari grows
छ छन् थियो थिए हो हुन् र को का की मा ले लाई बाट पनि यो त्यो तथा भएको गरेको के कसले कहिले कहाँ किन
कसरी कति

marathi devanagari grows ळ
आहे आहेत होता होती होते आणि हा ही हे तो ती ते या व की च्या मध्ये नाही काय कोण कोणी केव्हा कधी कुठे
का कसे किती

hebrew hebrew grows
של את על הוא היא הם הן זה זו אל עם לא כי אשר גם או היה הייתה היו יש אין מה מי מתי איפה היכן למה מדוע
איך כיצד כמה איזה איזו האם

armenian armenian grows
և է են էր էին որ մեջ համար հետ այս այն նա նրա ինչ ով երբ որտեղ ինչու ինչպես քանի որը

tamil tamil grows
ஒரு இந்த அந்த மற்றும் என்று என இது அது ஆகும் என்ன யார் எப்போது எங்கே ஏன் எப்படி எத்தனை எந்த
"""


def _parse(entry: str) -> Language:
    head, *lines = entry.split("\n")
    name, script, *remaining = head.split(" ")
    words = frozenset(chain.from_iterable(map(str.split, lines)))
    letters = "".join(part for part in remaining if part != "grows")
    name, _, _ = name.partition("_")
    return Language(name, script, name in _ALGORITHMS, "grows" in remaining, words, letters)


_ALL = [_parse(entry) for entry in _TABLE.strip().split("\n\n")]

ENGLISH = _ALL[0]

# Prepositions and conjunctions identify English, but stay in queries: frequent words have low
# weights, and some texts use them as names (with, for, in).
_ENGLISH_EVIDENCE = ENGLISH.function_words.union(
    "and or of to in on by with for from as at not if but than into also no one two".split()
)

_ENGLISH_WORDS = frozenset(word for word in _ENGLISH_EVIDENCE if len(word) > 1)

# English words that are rare in all other languages of the table.
_ENGLISH_ONLY = frozenset(
    "the and that with from by this which are were his her they have has not their these what "
    "when who how where why".split()
)


@cache
def of_script(script: str) -> tuple[Language, ...]:
    """Return the languages of a script, its default first."""
    languages = tuple(language for language in _ALL if language.script == script)
    grows = script not in ("digit", "none")
    return languages or (Language(script, script, False, grows, frozenset()),)


@cache
def _hints(script: str) -> Mapping[str, tuple[Language, ...]]:
    """Return the languages of each function word of a script."""
    hints: dict[str, tuple[Language, ...]] = {}
    for language in of_script(script):
        for word in _ENGLISH_EVIDENCE if language is ENGLISH else language.function_words:
            if len(word) > 1 or script != "latin":  # single letters are variables and initials
                hints[word] = (*hints.get(word, ()), language)
    return hints


@cache
def _foreign_words() -> frozenset[str]:
    """Return the function words of languages in Latin script, except for English words."""
    languages = of_script("latin")
    return frozenset(word for word, batch in _hints("latin").items() if batch != languages[:1])


@cache
def _letter_hints(script: str) -> Mapping[str, tuple[Language, ...]]:
    """Return the languages of each typical letter of a script."""
    languages = of_script(script)
    letters = {letter for language in languages for letter in language.letters}
    return {letter: tuple(x for x in languages if letter in x.letters) for letter in letters}


@cache
def script_of(character: str) -> str:
    """Return the name of a letter's script, in lower case.

    Example:
        >>> script_of("ж"), script_of("é"), script_of("7")
        ('cyrillic', 'latin', 'digit')
    """
    return unicodedata.name(character, "none").partition(" ")[0].lower()


def names() -> list[str]:
    """Return the names of all languages."""
    return sorted({language.name for language in _ALL} | _ALGORITHMS)


@cache
def named(name: str) -> tuple[Language, ...]:
    """Return the languages with a name, one per script."""
    languages = tuple(language for language in _ALL if language.name == name)
    return languages or (Language(name, "latin", True, False, frozenset()),)


def detect(
    words: Sequence[str], script: str, candidates: Collection[Language] | None = None
) -> Language | None:
    """Detect the language of words in one script. None: not enough evidence.

    The result has the most function words and typical letters in the first 200 words. On ties, the
    first language of the table is returned.

    Args:
        words: In lower case, composed (NFC), in the order of the text.
        script: The script of the words.
        candidates: The allowed languages. None: all languages.
    """
    words = words[:SAMPLE]
    if script == "latin" and (candidates is None or next(iter(candidates), None) is ENGLISH):
        english = sum(map(_ENGLISH_ONLY.__contains__, words)) if candidates is None else 0
        if english > 1 and english * _ENGLISH_SHARE > len(words):
            return ENGLISH
        # In ASCII, no letter indicates another language. If no language has more function words
        # than English, English is the result, since it is first.
        evidence = sum(map(_ENGLISH_WORDS.__contains__, words))
        foreign = sum(map(_foreign_words().__contains__, words))
        if evidence >= foreign and "".join(words).isascii():
            return ENGLISH if evidence >= (_least(words) if candidates is None else 1) else None
    hints = _hints(script)
    scores: dict[Language, int] = {}
    for word in words:
        for language in hints.get(word, ()):
            scores[language] = scores.get(language, 0) + 1
    joined = "".join(words)
    if not joined.isascii():
        letters = _letter_hints(script)
        for letter in joined:
            for language in letters.get(letter, ()):
                scores[language] = scores.get(language, 0) + 1
    if not scores:
        return None
    best = max(candidates or of_script(script), key=lambda language: scores.get(language, 0))
    if script != "latin" or candidates is not None:
        return best if best in scores else None
    # A single word, such as a repeated part of a name, does not identify a language.
    repeated = [word for word in words if best in hints.get(word, ())]
    several = best is ENGLISH or len({*repeated}) > 1 or scores.get(best, 0) > len(repeated)
    return best if several and scores.get(best, 0) >= _least(words) else None


def _least(words: Sequence[str]) -> float:
    """Return the minimum evidence for a language in Latin script, without given candidates.

    "Die" is a German and an English word. Texts in other languages contain some function words by
    chance.
    """
    return max(2, len(words) / _LEAST_SHARE)


_ACCENTS = re.compile("[\u0300-\u036f]")

_STRESS = re.compile("[\u0300\u0301]")  # in Cyrillic, where a breve makes a different letter

# Points of Hebrew and Arabic, and the elongation mark.
_POINTS = re.compile(
    "[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06ed]"
)

# Letters that are often replaced by a similar letter, or missing on keyboards.
_LETTERS = str.maketrans(
    dict(zip("ıłøđðħŧёأإآٱىیکةۀ", "iloddhtеاااايي\u0643هه", strict=True)) | {"æ": "ae", "œ": "oe"}
)

_VIETNAMESE, _SERBIAN = "vietnamese", "serbian"  # Serbian stems are in Latin letters

_GRAM = 4  # letters per part of a word

# The weight of a part in a query; a word weighs 1. Selected from 0.1 to 0.5 on German, Russian and
# Arabic, where 0.2 to 0.5 differ little.
_GRAM_WEIGHT = 0.3

_MOST_STEMS = 50_000  # maximum number of cached stems per language and thread

_local = threading.local()


def terms(words: list[str], language: Language) -> list[str]:
    """Return the stems of words, each followed by its parts if the language has parts."""
    if language.name == _VIETNAMESE:
        return stems(words, language) + syllable_pairs(words)
    if not language.grows:
        return stems(words, language)
    result: list[str] = []
    for stem, word in zip(stems(words, language), folded(words, language), strict=True):
        result.append(stem)
        result += grams(word)
    return result


def query_parts(words: list[str], languages: Sequence[Language]) -> list[list[tuple[str, float]]]:
    """Return the parts of each query word in any of several languages, with their weights.

    A pair of syllables belongs to its first syllable and weighs as much as a word.
    """
    result: list[list[tuple[str, float]]] = [[] for _ in words]
    growing = next((language for language in languages if language.grows), None)
    if growing is not None:
        for of_word, word in zip(result, folded(words, growing), strict=True):
            of_word += ((gram, _GRAM_WEIGHT) for gram in grams(word))
    if any(language.name == _VIETNAMESE for language in languages):
        for of_word, pair in zip(result, syllable_pairs(words), strict=False):
            of_word.append((pair, 1.0))
    return result


def stems(words: list[str], language: Language) -> list[str]:
    """Return the stems of words without accents. Without a stemmer, return the words."""
    if not language.stemmed:
        return folded(words, language)
    if language is ENGLISH:  # the English stemmer expects words without accents
        return [*map(_stemmer(language.name), folded(words, language))]
    pairs = zip(map(_stemmer(language.name), words), words, strict=True)
    return folded([stem or word for stem, word in pairs], language)


def folded(words: list[str], language: Language) -> list[str]:
    """Remove accents and points from words, unless they distinguish letters."""
    joined = "\n".join(words)
    if joined.isascii() or language.name == _VIETNAMESE:
        return words
    if language.script in ("latin", "greek") or language.name == _SERBIAN:
        joined = _ACCENTS.sub("", unicodedata.normalize("NFD", joined))
    elif language.script == "cyrillic":
        joined = _STRESS.sub("", joined)
    else:
        joined = _POINTS.sub("", joined)
    result = unicodedata.normalize("NFC", joined).translate(_LETTERS).split("\n")
    return [batch or word for batch, word in zip(result, words, strict=True)]


def length_of(words: Sequence[str], language: Language) -> int:
    """Return the number of words. In growing languages, long words count several times.

    A word counts once per about five letters, so a compound is as long as its parts.
    """
    if not language.grows:
        return len(words)
    return -(-sum(max(1, len(word) - 1) for word in words) // _GRAM)


def grams(word: str) -> list[str]:
    """Return the sequences of four letters of a word, the first with a mark in front.

    Short words and numbers have none.

    Example:
        >>> grams("flusse")
        ['_flu', 'flus', 'luss', 'usse']
    """
    if len(word) < _GRAM or word[0].isdigit():
        return []
    word = f"_{word}"
    return [word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)]


def syllable_pairs(words: list[str]) -> list[str]:
    """Return pairs of adjacent Vietnamese syllables as terms, without tones.

    Most words have two syllables and are distinct without tones.
    """
    return [f"{item}_{other}" for item, other in pairwise(folded(words, ENGLISH))]


class _Stems(dict[str, str]):
    """A cache of stems, faster than the stemmer's cache."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stem = Stemmer(language, 0).stemWord

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        stem: str = self._stem(word)
        self[word] = stem
        return stem


def _stemmer(language: str) -> Callable[[str], str]:
    """Return this thread's stemming function for a language."""
    stemmers: dict[str, Callable[[str], str]] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if language not in stemmers:
        stemmers[language] = _Stems(language).__getitem__
    return stemmers[language]
