import pytest

from nodekin.adapters.extras import extra


def test_a_missing_framework_names_its_extra():
    with pytest.raises(ImportError) as caught, extra("langchain", "no_such_module"):
        import no_such_module.part  # noqa: F401
    assert str(caught.value) == (
        'no_such_module is not installed; get it with: pip install "nodekin[langchain]"'
    )


def test_another_failing_import_is_left_as_it_is():
    missing = pytest.raises(ModuleNotFoundError, match="another_module")
    with missing as caught, extra("langchain", "no_such_module"):
        import another_module  # noqa: F401
    assert "pip install" not in str(caught.value)


def test_nothing_happens_where_the_framework_is_there():
    with extra("langchain", "json"):
        import json
    assert json
