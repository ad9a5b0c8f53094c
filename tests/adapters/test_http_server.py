"""Limits of a server, tried by real connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from nodekin.adapters import http_server

pytestmark = pytest.mark.enable_socket

READ = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"

OK = b"HTTP/1.1 200 OK"


async def _read(request: Request) -> PlainTextResponse:
    try:
        return PlainTextResponse(f"{len(await request.body())} bytes")
    except ClientDisconnect:
        return PlainTextResponse("gone")


async def _send_endless(request: Request) -> StreamingResponse:
    async def pieces() -> AsyncIterator[bytes]:
        open_streams.append(request)
        try:
            while True:
                yield bytes(1 << 16)
                await asyncio.sleep(0)
        finally:
            open_streams.remove(request)

    return StreamingResponse(pieces())


open_streams: list[Request] = []


@contextlib.asynccontextmanager
async def _serving() -> AsyncIterator[int]:
    """Serve an application; the port."""
    routes = [Route("/", _read, methods=["GET", "POST"]), Route("/endless", _send_endless)]
    app = Starlette(routes=routes)
    limits = {"http": http_server.LimitedProtocol, "lifespan": "off", "log_level": "error"}
    server = uvicorn.Server(uvicorn.Config(app, port=0, **limits))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def _sent(
    port: int, data: bytes
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and send something."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _until(test: Callable[[], bool]) -> None:
    while not test():
        await asyncio.sleep(0.01)


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), 60)
    return b""


async def _drip(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send a piece again and again, until the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        while piece:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("sent", "piece"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nhost: ", b""),
        (READ[:-2], b"x: 1\r\n"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf", b""),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999\r\n\r\n", b"x"),
        (
            b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n",
        ),
    ],
)
async def test_a_request_that_is_not_complete_in_time_is_ended(
    sent, piece, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(http_server, "READ_TIMEOUT", 0.2)
    async with _serving() as port:
        async with _sent(port, sent) as (slow, writer):
            received, _ = await asyncio.gather(_all_of(slow), _drip(writer, piece))
            assert OK not in received
        async with _sent(port, READ) as (quick, _):
            assert (await quick.readline()).startswith(OK)
    assert "a request was not complete after 0.2 seconds" in caplog.text


async def test_who_reads_nothing_of_an_answer_is_ended(monkeypatch, caplog) -> None:
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.2)
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    request = READ.replace(b"/", b"/endless", 1)
    async with _serving() as port, _sent(port, request) as (reader, _), _sent(port, request):
        await asyncio.wait_for(_until(lambda: len(open_streams) == 2), 60)
        await asyncio.wait_for(_until(lambda: not open_streams), 60)
        assert OK in await _all_of(reader)
        async with _sent(port, READ) as (quick, _):
            assert (await quick.readline()).startswith(OK)
    assert "what was sent was not read for 0.2 seconds" in caplog.text


async def test_a_second_request_has_as_long(monkeypatch) -> None:
    monkeypatch.setattr(http_server, "READ_TIMEOUT", 0.2)
    async with _serving() as port, _sent(port, READ) as (reader, writer):
        assert (await reader.readline()).startswith(OK)
        writer.write(READ[:9])
        assert OK not in await _all_of(reader)


async def test_connections_that_are_too_many_are_refused(monkeypatch, caplog) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 3)
    async with _serving() as port, contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            reader, _ = await stack.enter_async_context(_sent(port, READ))
            assert (await reader.readline()).startswith(OK)
        refused, _ = await stack.enter_async_context(_sent(port, b""))
        assert (await _all_of(refused)).startswith(b"HTTP/1.1 503")
    assert "a connection was refused: 3 are open" in caplog.text
