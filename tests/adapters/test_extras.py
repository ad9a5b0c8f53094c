import pytest

from nodekin.adapters.extras import extra


def test_missing_framework_error_names_its_extra():
    with pytest.raises(ImportError) as caught, extra("langchain", "no_such_module"):
        import no_such_module.part  # noqa: F401
    assert str(caught.value) == (
        'no_such_module is not installed; get it with: pip install "nodekin[langchain]"'
    )


def test_other_import_errors_are_raised_unchanged():
    missing = pytest.raises(ModuleNotFoundError, match="another_module")
    with missing as caught, extra("langchain", "no_such_module"):
        import another_module  # noqa: F401
    assert "pip install" not in str(caught.value)


def test_installed_framework_raises_nothing():
    with extra("langchain", "json"):
        import json
    assert json
