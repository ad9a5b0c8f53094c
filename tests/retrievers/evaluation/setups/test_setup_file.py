import pytest

from nodekin.retrievers.evaluation.setups.setup_file import SetupFile

TOML = """
default = "fused"

[graph]
source = "docs"

[models.scorer]
rerank = "bge-reranker-v2-m3"
base_url = "http://127.0.0.1:1/v1"
api_key_env = "MY_KEY"

[groups.passage]
transform = "PassageSplitter"
chunk_size = 160

[groups.sentence]
transform = "split_sentences"
parent = "passage"

[setups.words]
type = "Retriever"
group_name = "passage"
similarity = {name = "bm25", k1 = 1.2}

[setups.fused]
type = "FusionRetriever"
mode = "relative"
weights = [3, 1]
retrievers = ["words", {type = "Retriever", group_name = "sentence", target = "passage"}]

[setups.reranked]
type = "RerankRetriever"
inner = "fused"
reranker = {name = "ModuleReranker", model = "scorer", cut_off = 0.1}
"""


def test_what_is_written_is_read_back_equal(tmp_path):
    file = SetupFile.parse(TOML)
    path = tmp_path / "茶.toml"
    path.write_text(file.to_toml(), encoding="utf-8")
    again = SetupFile.read(path)
    assert again == file
    assert again.default == "fused"
    assert again.setups["words"]["similarity"] == {"name": "bm25", "k1": 1.2}
    assert again.to_toml() == file.to_toml()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "weights =",
            "weigths =",
            r"\[setups.fused\], FusionRetriever has no 'weigths'; there is 'w",
        ),
        ("target =", "tagret =", r"\[setups.fused\], Retriever has no 'tagret'; there is 'target'"),
        ('"words", {', '"word", {', r"no set-up 'word'; there are 'words'"),
        ("RerankRetriever", "ReRankRetriever", r"\[setups.reranked\]: type is 'RerankRetriever'"),
        (
            "PassageSplitter",
            "PasageSplitter",
            r"\[groups.passage\]: transform is 'PassageSpl",
        ),
        (
            "chunk_size",
            "chunksize",
            r"\[groups.passage\] has no 'chunksize'; there is 'chunk_s",
        ),
        ("source =", "sources =", r"\[graph\] has no 'sources'; there is 'source'"),
        ("[groups.", "[group.", r"the set-ups has no 'group'; there is 'groups'"),
        ('default = "fused"', 'default = "fusd"', r"no set-up 'fusd'; there are 'fused'"),
        ("rerank =", "reranker =", r"\[models.scorer\] names its model by one of embed, chat, rer"),
        ('api_key_env = "MY_KEY"', 'api_key = "s"', r"has a key in it; .* api_key_env"),
        ('inner = "fused"', "inner = 3", r"\[setups.reranked\]: a retriever is a table"),
        ('inner = "fused"', 'inner = "reranked"', r"within itself: reranked in reranked"),
        ('inner = "fused"', 'inner = "fused', r"is no TOML"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_the_nearest(old, new, error):
    assert old in TOML
    with pytest.raises(ValueError, match=error):
        SetupFile.parse(TOML.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "[graph]\nsource = 'docs'"])
def test_a_file_without_set_ups_has_the_default_retriever(text, tmp_path):
    path = tmp_path / "empty.toml"
    path.write_text(text)
    file = SetupFile.read(path)
    assert file.table(file.default) == {"type": "DefaultRetriever"}
    assert SetupFile.parse(file.to_toml()) == file
    path.write_text(f"default = 'other'\n{text}")
    with pytest.raises(ValueError, match=r"empty.toml has no set-up 'other'; there are 'default'"):
        SetupFile.read(path)


def test_a_section_is_a_table():
    for default in ("3", "[]", "{}", "1.5", "1979-05-27"):
        with pytest.raises(ValueError, match="default is the name of a set-up, not"):
            SetupFile.parse(f"default = {default}")
    with pytest.raises(ValueError, match="setups is a table, not 3"):
        SetupFile.parse("setups = 3")
    with pytest.raises(ValueError, match=r"\[groups.passage\] is a table, not 3"):
        SetupFile.parse("[groups]\npassage = 3")


def test_the_first_set_up_is_the_default():
    assert SetupFile.parse(TOML.replace('default = "fused"', "")).default == "words"


def test_a_description_changes_with_what_decides_the_results():
    file = SetupFile.parse(TOML)
    for old, new, same in [
        ("k1 = 1.2", "k1 = 1.1", False),
        ("chunk_size = 160", "chunk_size = 320", False),
        ('source = "docs"', 'source = "other"', True),
        ('default = "fused"', 'default = "words"', True),
    ]:
        changed = SetupFile.parse(TOML.replace(old, new))
        assert (changed.describe("reranked") == file.describe("reranked")) is same


ENGINE = {"type": "QueryEngine", "retriever": "words", "llm": "small", "mode": "refine"}
WORDS = {"type": "Retriever", "group_name": "ROOT"}


def test_a_query_engine_is_a_set_up_around_a_retriever():
    file = SetupFile({"answers": ENGINE, "words": WORDS})
    assert '"group_name": "ROOT"' in file.describe("answers")  # a changed retriever is another one
    assert SetupFile.parse(file.to_toml()) == file


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({**ENGINE, "modes": "refine"}, "has no 'modes'; there is 'mode'"),
        ({**ENGINE, "qa": "x"}, "has no 'qa'"),
        (
            {"type": "QueryEngine", "retriever": "words"},
            "needs 'llm': the name of a model",
        ),
        (
            {"type": "QueryEngine", "llm": "small"},
            "needs 'retriever': the name of",
        ),
        ({**ENGINE, "retriever": "wods"}, "no set-up 'wods'"),
        ({**ENGINE, "retriever": "one"}, "is within itself"),
        ({**ENGINE, "retriever": "other"}, "no retriever and can't be within one"),
        ({"type": "FusionRetriever", "retrievers": ["other"]}, "can't be within one"),
        ({**WORDS, "type": "QueryEngin"}, "type is 'QueryEngine'"),
        ({"type": "Retriever"}, "one.*, Retriever needs 'group_name': the group to search"),
        ({"type": "RerankRetriever", "inner": "words"}, "RerankRetriever needs 'reranker'"),
        ({"type": "FusionRetriever"}, "FusionRetriever needs 'retrievers'"),
        ({**WORDS, "type": "Nope"}, "type is 'Retriever', 'DefaultRetriever', .*, not 'Nope'"),
    ],
)
def test_what_is_no_query_engine_says_why(table, message):
    with pytest.raises(ValueError, match=message):
        SetupFile({"one": table, "words": WORDS, "other": ENGINE})
