"""What all tests share."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Everyone's runs look for new counterexamples; CI judges a change by the same ones each time.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

CHECKOUT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data",
        type=Path,
        default=CHECKOUT.parent / "shared" / "data",
        help="folder of the public data sets (cmrc2018, hotpotqa); tests skip what is not there",
    )


@pytest.fixture(scope="session")
def data(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the public data sets."""
    folder: Path = request.config.getoption("--data")
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; say where they are with --data=PATH")
    return folder


@pytest.fixture(scope="session")
def language_model() -> Any:
    """Return the real language model that the environment names (``make test-models``)."""
    for name in ("OPENAI_BASE_URL", "OPENAI_MODEL"):
        if not os.environ.get(name):
            pytest.skip(f"a real model needs {name} (and OPENAI_API_KEY) in the environment")
    from nodekin.adapters.openai_chat import OpenAIChat

    return OpenAIChat(os.environ["OPENAI_MODEL"], max_tokens=600, timeout=300)
