"""PgBouncer in session mode, between clients and a PostgreSQL server."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from support.postgres_server import PATIENCE

PORT = 6432

CONFIGURATION = """
[databases]
* = host={server} user={user}

[pgbouncer]
pool_mode = session
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
max_client_conn = 500
default_pool_size = 60
server_login_retry = 1
logfile = {folder}/log
"""


@contextmanager
def running_pooler(uri: str) -> Iterator[str]:
    """Yield the address of a pooler of a server. The test is skipped if PgBouncer is missing.

    Args:
        uri: The address of the server, with the folder of its socket.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer: apt-get install pgbouncer")
    parts = urlsplit(uri)
    parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
    server = parameters["host"]
    owner = Path(server).stat().st_uid  # only this user can open the server's socket
    folder = tempfile.mkdtemp(prefix="bouncer")  # a socket's path must be short
    settings = CONFIGURATION.format(server=server, user=parts.username, port=PORT, folder=folder)
    command = [program, f"{folder}/pgbouncer.ini"]
    Path(folder, "pgbouncer.ini").write_text(settings)
    if os.getuid() == 0:  # PgBouncer refuses to run as root
        command[1:1] = ["-u", pwd.getpwuid(owner).pw_name]
        os.chown(folder, owner, -1)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while not Path(folder, f".s.PGSQL.{PORT}").exists():
            assert process.poll() is None, "PgBouncer has ended"
            assert time.monotonic() < end, "PgBouncer does not start"
            time.sleep(0.05)
        pooled = {**parameters, "host": folder, "port": str(PORT)}
        yield parts._replace(query=urlencode(pooled)).geturl()
    finally:
        process.terminate()
        process.wait(PATIENCE)
        shutil.rmtree(folder)
