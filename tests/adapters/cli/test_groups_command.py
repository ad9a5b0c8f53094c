def test_groups_are_listed_with_what_they_are_made_of(nodekin):
    nodekin("index", "docs", "-g", "passage=passages", "-g", "句子=sentences@passage")
    ran = nodekin("groups")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[0] == ["group", "parent", "nodes", "transform"]
    assert ["ROOT", "3", "documents"] in rows
    assert ["passage", "ROOT", "3", "passages", "searched", "by", "default"] in rows
    assert ["句子", "passage", "11", "sentences", "searched", "by", "default"] in rows
    assert ["FineChunk", "ROOT", "-", "chunks:128:12", *_LATER] in rows


_LATER = "built when it is first searched".split()


def test_json(nodekin, here):
    nodekin("index", "docs")
    told = nodekin("groups", "--json").json
    assert (told["store"], told["documents"]) == (str(here / ".nodekin"), 3)
    assert told["embeddings"] is None
    assert told["groups"][-1] == {
        "name": "sentence",
        "parent": "passage",
        "transform": "sentences",
        "nodes": 11,
        "built": True,
        "main": False,
        "searched": True,
        "embedded": False,
    }


def test_of_a_folder(nodekin):
    told = nodekin("groups", "--in", "docs", "--json").json
    assert told["store"] is None
    assert {each["name"]: each["nodes"] for each in told["groups"]}["passage"] == 3


def test_no_index(nodekin):
    assert nodekin("groups").status == 3
