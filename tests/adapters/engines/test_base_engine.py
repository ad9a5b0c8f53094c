"""Addresses of engines are read alike, and no message has a password."""

from typing import ClassVar

import pytest

from nodekin.adapters.engines.base_engine import EngineAddress


class SearchAddress(EngineAddress):
    engine = "Search"
    default_port = 9200
    defaults: ClassVar = {"secure": "false", "timeout": "10"}


def parse(address: str, local: str = "") -> EngineAddress:
    class Local(SearchAddress):
        pass

    Local.local = (local, local)
    return Local.parse(address)


def test_parts_are_read() -> None:
    parts = parse("search://me:p%2Fw@[::1]?secure=true")
    assert (parts.host, parts.port, parts.netloc) == ("::1", 9200, "[::1]:9200")
    assert (parts.user, parts.password, parts.path) == ("me", "p/w", "")
    assert (parts.secure, parts.timeout) == (True, 10.0)
    assert parse("search://db:7").netloc == "db:7"
    assert parse("search:///a/b%20c", "folder").path == "/a/b c"
    assert parse("search:folder", "folder").path == "folder"


@pytest.mark.parametrize(
    ("address", "local", "message"),
    [
        ("other://db", "", r"^the address of Search names a server, 'search://host:9200'$"),
        ("search:folder", "", "names a server"),
        ("search://", "folder", "or a folder, 'search:///folder' or 'search:folder'$"),
        ("search://db/name", "", r"a path, '/name', after a host; .*\?name=value$"),
        ("search://db/name", "file", "three slashes for a file$"),
        ("search://db?secur=true", "", "'secur'; it takes 'secure'"),
        ("search://db?secure=1", "", "neither true nor false"),
        ("search://db:port", "", "port of Search's address is no number"),
        ("search://db:65536", "", "no number up to 65,535"),
    ],
)
def test_other_addresses_are_refused(address: str, local: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(address, local)


@pytest.mark.parametrize("timeout", ["0", "-1", "inf", "nan", "soon", ""])
def test_what_is_no_time_is_refused(timeout: str) -> None:
    with pytest.raises(ValueError, match="is no number of seconds above 0"):
        parse(f"search://db?timeout={timeout}")


@pytest.mark.parametrize("password", ["pass/word", "12/word", "12?word", "12#word", "pass#word"])
def test_a_password_with_special_characters_is_in_no_message(password: str) -> None:
    with pytest.raises(ValueError, match=r"the characters / \? # of a password as %2F") as raised:
        parse(f"search://me:{password}@db")
    assert "word" not in str(raised.value).replace("password", "")
    assert "pass" not in str(raised.value).replace("password", "")
