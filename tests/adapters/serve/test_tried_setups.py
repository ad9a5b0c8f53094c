"""Set-ups that are tried and kept."""

import pytest

from nodekin.adapters.evaluation.setup_session import load_setup
from nodekin.retrievers import DefaultRetriever
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile


def test_each_suggested_setup_searches(client) -> None:
    for one in client.get("/api/corpus").json()["suggested"]:
        found = client.post("/api/search", query="steamed", setup=one["toml"]).json()
        assert found["results"][0]["document"] == "tea/green.md"


SETUP = 'type = "Retriever"\ngroup_name = "sentence"\ntop_k = 2'


def test_a_kept_setup_is_the_one_that_was_tried(setups, graph) -> None:
    setups.keep("两句", SETUP)
    retriever = load_setup(setups.path, "两句", graph=graph)
    query = "fermented tea"
    assert retriever(query) == setups.retriever(SETUP)(query)
    assert [one["name"] for one in setups.declared()] == ["default", "words", "两句"]


@pytest.mark.parametrize("name", ["", "  ", "words", "x" * 81, "a\nb"])
def test_a_name_that_is_none_or_taken_writes_nothing(setups, name) -> None:
    with pytest.raises(ValueError, match="name"):
        setups.keep(name, SETUP)
    assert not setups.path.exists()


@pytest.mark.parametrize("name", ["a.b", '"', "[x]", "'", "\\", "#", "tried"])
def test_any_printable_name_is_written_as_it_is(setups, name) -> None:
    setups.keep(name, SETUP)
    setups.keep("another", SETUP)
    assert list(SetupFile.read(setups.path).setups) == ["default", "words", name, "another"]


def test_what_somebody_wrote_into_the_file_meanwhile_stays(setups) -> None:
    setups.keep("one", SETUP)
    with setups.path.open("a", encoding="utf-8") as file:
        file.write("\n# mine\n[setups.mine]\ntype = 'DefaultRetriever'\n")
    setups.keep("two", SETUP)
    assert "# mine" in setups.path.read_text("utf-8")
    assert list(SetupFile.read(setups.path).setups)[-2:] == ["mine", "two"]


def test_a_setup_without_text_is_the_default_one(setups) -> None:
    assert type(setups.retriever("")) is DefaultRetriever
    assert setups.retriever(SETUP) is setups.retriever(f"\n{SETUP}\n")


def test_the_page_keeps_only_so_many(setups) -> None:
    for number in range(98):
        setups.keep(f"set-up {number}", SETUP)
    with pytest.raises(ValueError, match="has 100 set-ups, and the page keeps 100 at most"):
        setups.keep("one more", SETUP)
    assert "one more" not in setups.path.read_text("utf-8")
