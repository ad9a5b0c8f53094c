"""Defaults of options from ``nodekin.toml``."""

from pathlib import Path


def write(folder: Path, text: str) -> None:
    (folder / "nodekin.toml").write_text(text, encoding="utf-8")


def test_a_command_takes_its_options_from_the_file(nodekin, indexed, here) -> None:
    query = "Wuhan steamed 陆羽"
    found = nodekin("search", query, "--json").json["count"]
    assert found > 1
    write(here, '[search]\ntop-k = 1\nfilter = "file_name=tea.md"\n')
    assert nodekin("search", query, "--json").documents == ["docs/tea.md"]
    assert nodekin("search", query, "--json", "-f", "file_name~.").json["count"] == 1
    assert nodekin("explain", query, "--json").json["count"] == found  # another command


def test_options_outside_of_tables_are_for_all_commands_that_have_them(nodekin, here) -> None:
    (here / "below").mkdir()
    write(here, 'store = "kept"\n')
    assert nodekin("index", "docs").status == 0
    assert (here / "kept" / "index.json").exists()
    assert nodekin("list").status == 0
    assert nodekin("groups", "--json").status == 0


def test_it_is_found_from_below_and_paths_begin_where_it_is(
    nodekin, indexed, here, monkeypatch
) -> None:
    (here / ".nodekin").rename(here / "kept")
    (here / "below").mkdir()
    write(here, 'store = "kept"\n')
    monkeypatch.chdir(here / "below")
    assert nodekin("search", "steamed").status == 0


def test_the_command_line_and_the_environment_go_first(nodekin, indexed, here, monkeypatch) -> None:
    write(here, 'store = "nowhere"\n')
    assert nodekin("search", "steamed").status == 3
    assert nodekin("search", "steamed", "--store", here / ".nodekin").status == 0
    monkeypatch.setenv("NODEKIN_STORE", str(here / ".nodekin"))
    assert nodekin("search", "steamed").status == 0


def test_values_that_no_option_has_are_refused(nodekin, indexed, here) -> None:
    for text, says in (
        ('search = "x"', "write its options below a line [search]"),
        ("top-k = [[1]]", "an option is a text, a number, true or false, or a list of them"),
        ("[ask]\nmin-score = 1979-05-27", "an option is a text, a number, true or false"),
        ("[search]\nquiet = {}", "an option is a text, a number, true or false"),
        ('json = ["a", 1]', "json = ['a', 1], but it has one value"),
        ("top-k = []", "top_k = [], but it has one value"),
        ("quiet = -1", "quiet = -1, but it is true or false"),
    ):
        write(here, f"{text}\n")
        ran = nodekin("search", "tea")
        assert ran.status == 2 or "but it" in says
        assert ran.status != 70
        assert says in nodekin("search", "tea").err or says in nodekin("ask", "tea").err


def test_a_flag(nodekin, indexed, here) -> None:
    write(here, "json = true\n")
    assert nodekin("search", "steamed").json["count"] == 1


def test_the_model(nodekin, indexed, here) -> None:
    write(here, '[ask]\nmodel = "qwen"\n')
    ran = nodekin("ask", "Who?")
    assert ran.status == 4
    assert "OPENAI_MODEL" not in ran.err  # which is there
    assert "OPENAI_BASE_URL" in ran.err


def test_mistakes_are_named_in_one_line(nodekin, indexed, here) -> None:
    for text, says in (
        ("[serch]\ntop_k = 1\n", "nodekin.toml has a table [serch], which is no command; there is"),
        ("[search]\ntopk = 1\n", "'nodekin search' has no option 'topk'; it has 'top_k', "),
        ("[search\n", "can't read "),
    ):
        write(here, text)
        ran = nodekin("search", "tea")
        assert (ran.status, len(ran.err.splitlines())) == (2, 1)
        assert says in ran.err
    write(here, "[search]\ntop_k = 0\n")
    ran = nodekin("search", "tea")
    assert ran.status == 2
    assert "--top-k" in ran.err
