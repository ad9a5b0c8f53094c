@pytest.mark.parametrize("run", ["a", "1.", "茶", "1,a"])
def test_superscript_after_endless_word_ends(run: str) -> None:
    assert "2" in superscript(run * 500_000 + "!", "2")
