import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever, TextAnalyzer
from nodekin.retrievers.analysis.identifiers import _may_have_signs, _names_at_signs, with_parts
from nodekin.retrievers.analysis.normal_form import normalized


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("getUserName()", "getUserName get User Name()"),
        ("run_target", "runtarget run target"),
        ("HTTPServer2", "HTTPServer2 HTTP Server 2"),
        ("snake_case2", "snakecase2 snake case 2 case2"),
        ("self.maxLen", "self.maxLen max Len"),
        ("os.path.join", "os.path.join"),
        ("MAX_SIZE", "MAXSIZE MAX SIZE"),
        ("_private __init__ _", "_private __init__ _"),
        ("__aenter_all__", "_aenterall aenter all_"),
        ("größe_max", "größemax größe max"),
        ("模型getUserName好", "模型getUserName get User Name好"),
        ("iPhone PhD eBay 5 GHz", "iPhone PhD eBay 5 GHz"),
        ("McDonald on YouTube", "McDonald on YouTube"),
        (
            "class NodeGraph() of BeautifulSoup",
            "class NodeGraph Node Graph() of BeautifulSoup Beautiful Soup",
        ),
        ("NodeGraphIndex", "NodeGraphIndex Node Graph Index"),
        ("GPUs and NATO members", "GPUs and NATO members"),
        ("Words of Prose, in The USA.", "Words of Prose, in The USA."),
    ],
)
def test_names_are_followed_by_their_parts(text: str, result: str) -> None:
    assert with_parts(text) == result


@pytest.mark.parametrize("name", ["getUserName", "get_user_name", "GetUserName", "GET_USER_NAME"])
@pytest.mark.parametrize("query", ["user name", "getUserName", "get_user_name", "name"])
def test_function_is_found_by_name_and_parts(name: str, query: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"def {name}(id):\n    return table[id]", "def other(id): return 1"])
    results = Retriever(graph, "ROOT")(query)
    assert [name in result.node.text for result in results] == [True]


def test_whole_name_outranks_its_parts_elsewhere() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["set the target, then run", "call run_target now", "def run(target): pass"])
    assert Retriever(graph, "ROOT")("run_target")[0].node.text == "call run_target now"


def test_prose_has_the_terms_that_it_had() -> None:
    text = "The NATO allies met in Paris; Dr. Smith's GPUs were there (e.g. at 3.14 km)."
    words = "the nato alli met in pari dr smith gpus were there e g at 3 14 km 3.14 3.14km".split()
    assert sorted(TextAnalyzer()(text)) == sorted(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo_bar_\u0301baz qux", {"foobar", "foo", "bar", "baz", "qux"}),
        ("fooBar_\u0308baz", {"foobar", "foo", "bar", "baz"}),
        ("x\u0302_foo_bar", {"x", "foobar", "foo", "bar"}),
        ("__init_sub__\u0301 tea", {"initsub", "init", "sub", "tea"}),
    ],
)
def test_a_sign_on_an_underscore_joins_no_words(text: str, words: set[str]) -> None:
    assert set(TextAnalyzer()(text)) == words
    assert set(TextAnalyzer().query(text)) == words


@given(st.text("aB_1é茶 "))
@example("1BB_1B")
def test_no_part_of_a_name_is_lost(text: str) -> None:
    letters = [c for c in text if c not in "_ "]
    expanded = with_parts(text)
    assert [c for c in letters if c in "aB"] == [] or set(letters) <= set(expanded)
    assert len(expanded) <= 4 * len(text)


@pytest.mark.parametrize("unit", ["aB", "a_", "_", "A", "a", "aA_", "Aa1", "é_a"])
def test_a_name_may_be_very_long(unit: str) -> None:
    text = unit * 100_000  # a quadratic expression would take minutes
    assert len(with_parts(text)) <= 4 * len(text)


@given(st.text(alphabet="aAbBzZ019_- .'", max_size=12))
def test_names_have_equal_parts_in_any_script(text: str) -> None:
    assert with_parts(f"{text} \u00e9") == f"{with_parts(text)} \u00e9"


@given(text=st.text(alphabet="ab0o'’-./:@^, é中٣A²_s", max_size=16))
def test_signs_of_names_are_expected_where_they_occur(text: str) -> None:
    normal = normalized(text)
    if [*_names_at_signs(normal)]:
        assert _may_have_signs(normal)
