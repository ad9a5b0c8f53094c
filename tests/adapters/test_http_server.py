"""Ports are bound before an address is printed."""

import pytest

from nodekin.adapters.http_server import bind, url_of

pytestmark = pytest.mark.enable_socket


def test_bind_selects_free_port():
    with bind("127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 0


def test_bind_of_used_port_raises():
    with bind("127.0.0.1", 0) as listener, pytest.raises(OSError, match="choose another with"):
        bind("127.0.0.1", listener.getsockname()[1])


def test_bind_of_foreign_address_raises():
    with pytest.raises(OSError, match=r"can't serve at 192\.0\.2\.1:0"):
        bind("192.0.2.1", 0)


def test_url_of_ipv6_address_has_brackets():
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of("::1", listener) == f"http://[::1]:{port}"
        assert url_of("localhost", listener) == f"http://localhost:{port}"
