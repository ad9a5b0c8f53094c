import pytest

from nodekin.retrievers.validation import check_options, choice, number, seconds, whole


def test_choice_of_unknown_value_raises() -> None:
    assert choice("sum", "lift", ("max", "sum", "mean")) == "sum"
    with pytest.raises(ValueError, match="lift must be 'max', 'sum' or 'mean', got 'most'"):
        choice("most", "lift", ("max", "sum", "mean"))


def test_unknown_option_raises_with_nearest_names() -> None:
    check_options({"top_k": 3}, ("join", "top_k"), "Search")
    with pytest.raises(TypeError, match=r"Search has no option 'topk'; it has 'top_k', 'join'$"):
        check_options({"topk": 3}, ("join", "top_k"), "Search")
    with pytest.raises(TypeError, match=r"; see the manual$"):
        check_options({"topk": 3}, ("join", "top_k"), "Search", "; see the manual")


@pytest.mark.parametrize("value", [True, 1.5, "3", None])
def test_whole_of_other_type_raises(value: object) -> None:
    with pytest.raises(TypeError, match="top_k must be an integer, got"):
        whole(value, "top_k", 1)


def test_number_out_of_range_raises() -> None:
    assert (whole(2, "top_k", 1), number(2, "weight"), seconds(None, "timeout")) == (2, 2.0, None)
    with pytest.raises(ValueError, match="top_k must be 1 or more, got 0"):
        whole(0, "top_k", 1)
    with pytest.raises(ValueError, match="weight must be 0 or more, and finite, got inf"):
        number(float("inf"), "weight")
    with pytest.raises(ValueError, match="timeout must be above 0 seconds, got 0"):
        seconds(0, "timeout")
