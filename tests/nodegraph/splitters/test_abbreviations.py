"""A full stop after an abbreviation, an initial or an ordinal does not end a sentence."""

import pytest

from nodekin.nodegraph import split_sentences

# One sentence each.
ONE_SENTENCE = """
Am 8. Februar 2007 gab es Regen.
Ludwig XIV. Regierungszeit war lang.
Der 2. Weltkrieg begann 1939.
Die 1. Mannschaft siegte.
Gem. § 5 Abs. 3 gilt das.
Siehe Bd. 3 und Kap. 4.
Das kostet 30 Mio. Euro.
Er wohnt in der Goethestr. 12 in Köln.
Prof. Dr. med. Müller kam.
Die sog. Kleinen Leute, z. B. Bauern, d. h. Arme.
Um 300 v. Chr. Geburt war das.
Im Sept. 2020 kam er.
Laut Art. 5 GG gilt das.
Er kam mit ca. 5 Leuten.
St. Pölten und St. Gallen.
Vgl. Schmidt, S. 12.
Zob. art. 12 ust. 3 pkt 4.
Ul. Marszałkowska i ul. Nowa, m.in. Warszawa.
Mieszka przy ul. Nowej 5.
Prof. dr hab. Jan Kowalski.
Św. Jan i św. Paweł.
Он живёт на ул. Ленина в г. Москве.
См. рис. 5 и табл. 3.
А. С. Пушкин писал.
Ул. им. Пушкина.
Согласно ст. 5 п. 2 закона.
Бюджет 5 млн. Долларов США.
Проф. Иванов и акад. Петров.
Это т. е. Иван.
II. Abdülhamid ve 3. Selim padişahtı.
Bkz. Ek 5 ve Prof. Dr. Ayşe Yılmaz.
Türkiye'de 19. Yüzyılda başladı.
Ş. Sami ve M. K. Atatürk.
Türkiye II. Dünya Savaşı'na girmedi.
Podle čl. 5 odst. 2 zákona.
Karel IV. Lucemburský byl král.
Viz č. 5 a tzv. Bílá hora.
Např. Praha a ul. Nová.
Zie blz. 5 en hfst. 3.
De heer dr. Jansen en mevr. De Vries.
O.a. Amsterdam, bijv. Utrecht.
Véase la pág. 5 y el art. 3 de la ley.
El Sr. García y la Sra. López.
Vive en EE.UU. Norte.
P. ej. Madrid y núm. 5.
M. Dupont et Mme. Martin.
Voir p. 5 et chap. 3.
Art. 5 al. 2 du code.
See Sec. 5 para. 2 of the act.
The U.S. Army came.
The U.N. Security Council met.
He moved to St. Louis.
J. K. Rowling and Ö. Müller wrote.
J.-J. Rousseau et Voltaire.
Дж. А. Гобсон, Вл. Соловьёв и Ж.-Ж. Руссо писали.
Fig. 3 and Tab. 4 show it.
ए. पी. जे. अब्दुल कलाम आए।
डॉ. शर्मा और प्रो. वर्मा आए।
म. गांधी आए।
कि. मी. 5 है।
श्री. वी. वी. गिरि आए।
كتب جون سي. ميسنجر الكتاب.
قال د. أحمد ذلك.
و. هايدون بيرنز هنا.
انظر ص. 5 من الكتاب.
א. ב. יהושע כתב ספר.
ג'. ר'. טולקין כתב.
எம். ஜி. ராமச்சந்திரன் வந்தார்.
మ. గాంధీ వచ్చారు.
ಎಸ್. ಎಂ. ಕೃಷ್ಣ ಬಂದರು.
Ο κ. Παπαδόπουλος και ο Α. Σικελιανός ήρθαν.
Βλ. σελ. 5 και αρ. 3.
Ks. luku 5, s. 12, esim. Helsinki.
Den 3. Januar 2020 kom han.
I det 19. Århundrede begyndte det.
Xem TP. Hồ Chí Minh và GS. Nguyễn Văn An.
Menurut Prof. Ahmad di Jl. Sudirman No. 5.
IV. Béla király volt.
Dr. Kovács és ifj. Nagy.
「はい。」と言った。
「はい。」の一言で終わった。
他说“好。”的声音很大。
"""

# Two sentences each.
TWO_SENTENCES = """
Er wurde 1983. Danach ging er fort.
Sie wohnen in Haus 5. Das Dach ist neu.
Es war im Jahr 1995. Jahre später kam er.
Er ging um 5. Peter blieb.
Er kommt am 5. Das ist gut.
Sie kauften Brot usw. Danach gingen sie.
Er ist in der 5. Seine Schwester auch.
Das war 300 v. Chr. Die Stadt wuchs.
Es gab 30 Mio. Die Firma wuchs.
Он родился в 1900 г. Потом уехал.
Это было в XX в. Они жили там.
Книги, тетради и т. д. Он ушёл.
Частота тока 50 Гц. Это мало.
Звук до 20 кГц. Это много.
Да. Он спит.
Он купил хлеб и др. Мы ушли.
Это витамин С. Он полезен.
Рим, 5 в. до н. э. Он вырос.
He scored 3. Then he left.
They sell tea, coffee etc. Prices are low.
He lives in the U.S. He works there.
World War II. Germany lost.
The answer is no. Fine.
It is on page 5. Read it.
He left at 6 p.m. John slept.
He works at Apple Inc. Tim Cook leads it.
It was 5 cm. The dog barked.
Vivo en EE.UU. Mi casa es grande.
Tengo 5. Luego me voy.
Compró peras, manzanas, etc. También uvas.
गांधी जी। वे महान थे।
वह घर गया है. वह सो गया.
મારું નામ છે. તે ઘરે છે.
تأسست عام 969 م. كانت كبيرة.
ذهب إلى البيت. نام هناك.
Mieszkał tam do 1990 r. Potem wyjechał.
Było ich 5. Potem poszli.
O 1990'da geldi. Sonra gitti.
Sınıfta 5. Bu iyi.
Bydlel tam do r. 1990. Potom odjel.
Bylo jich 5. Pak šli.
他说：“我来了。”然后他走了。
「はい。」彼は言った。
“好。”我说。
In dieser Schweiz. Berge gibt es viele.
Er liegt bei 2.000. Überreste gibt es viele.
Ими, т. е. им. Он ушёл.
Много тел. Майкл ушёл.
Он говорил о нем. Потом ушёл.
يملكها بي بي سي. في عام 1950 بدأت.
كان ذلك صغيرًا. وفي عام 2012 عاد.
Họ là cử tri. Cuộc bầu cử bắt đầu.
Das ist BD. Similar things are here.
"""


def _texts(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("text", _texts(ONE_SENTENCE))
def test_abbreviation_does_not_end_sentence(text: str) -> None:
    assert split_sentences(text) == [text]
    assert len(split_sentences(f"{text} {text}")) == 2


@pytest.mark.parametrize("text", _texts(TWO_SENTENCES))
def test_full_stop_ends_sentence(text: str) -> None:
    assert len(split_sentences(text)) == 2


# The sentences of the case "ordinals", from legal texts and biographies.
@pytest.mark.parametrize(
    "sentences",
    [
        ["Am 3. März 2024 war es kalt.", "Es schneite."],
        ["Im 19. Jahrhundert wuchs die Stadt.", "Heute ist sie groß."],
        ["Nach § 5 Abs. 2 Satz 1 gilt das.", "Ausnahmen sind selten."],
        ["Der Preis beträgt ca. 5 Euro inkl. MwSt. pro Stück.", "Versand ist frei."],
        ["Zgodnie z art. 5 ust. 2 ustawy to obowiązuje.", "Wyjątki są rzadkie."],
        ["Он родился в г. Москве в 1900 году.", "Потом уехал."],
        ["Мост Джона К. Мессенджера открыт.", "Он длинный."],
        ["II. Dünya Savaşı uzun sürdü.", "Sonra bitti."],
        ["The U.S. Army and the U.K. Parliament met.", "They agreed."],
        ["Он взял ручки, тетради и т. д.", "Потом ушёл."],
    ],
)
def test_ordinals_stay_in_their_sentence(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


def test_brackets_after_quotation_marks_end_no_sentence() -> None:
    text = f'{"Ein langer Satz über " * 5}das „Mental Health (Care)" (Scotland) {"Gesetz " * 9}.'
    assert split_sentences(text) == [text]
