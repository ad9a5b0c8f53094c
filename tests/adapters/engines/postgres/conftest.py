"""What the tests of the store on a server share."""

import pytest
from support.postgres_server import RunningServer


@pytest.fixture
def address(postgres_server: RunningServer) -> str:
    return postgres_server.address()
