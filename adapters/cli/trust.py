"""Which files of a folder are read, and what they may name: addresses, keys, other folders, code.

Anybody can put a ``nodekin.toml``, a file of set-ups or an index into a folder that is cloned,
unpacked or shared. So nothing outside of such a file's own folder is used because the file names
it, unless the person has allowed it once.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable

WELL_KNOWN_KEYS = frozenset(
    f"{provider}_API_KEY"
    for provider in (
        *("ANTHROPIC", "AZURE_OPENAI", "COHERE", "DASHSCOPE", "DEEPSEEK", "GEMINI", "GROQ", "JINA"),
        *("MISTRAL", "MOONSHOT", "OPENAI", "OPENROUTER", "SILICONFLOW", "TOGETHER", "VOYAGE"),
    )
)
"""Variables that a file may name as the key of a server that the person chose."""

SAFE_MODEL_SETTINGS = frozenset(
    ("embed", "rerank", "query_prompt", "passage_prompt", "normalize", "batch_size", "device",
     "local_files_only", "truncate_dim", "max_length", "similarity_fn_name")
)  # fmt: skip
"""What a file may say of a model of sentence-transformers that can't make it run foreign code."""

_LOOPBACK = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[\w./~-]*)?")

_SETTINGS_FILE = "nodekin.settings_file"


class Permission(NamedTuple):
    """Name what a file was allowed.

    Attributes:
        file: The file, or the folder of an index.
        what: An address, a folder or a model that it names; empty for reading it at all.
        key: The environment variable whose key the address gets; empty for none.
    """

    file: str
    what: str = ""
    key: str = ""


def permissions_file() -> Path:
    """Return where permissions are stored: in the user's configuration, outside of all folders."""
    return Path(click.get_app_dir("nodekin")) / "trusted.json"


def permissions() -> list[Permission]:
    """Return what the person has allowed.

    Raises:
        CommandError: If the file can't be read.
    """
    path = permissions_file()
    try:
        granted = [Permission(**item) for item in json.loads(path.read_text("utf-8"))]
        if not all(isinstance(part, str) for permission in granted for part in permission):
            raise TypeError("a permission has texts only")
        return granted
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(
            f"can't read {path}, which has what you have allowed: {error}; mend or delete it",
            ExitStatus.USAGE_ERROR,
        ) from error


def _save(granted: list[Permission]) -> None:
    path = permissions_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.touch(mode=0o600)
    new.write_text(
        json.dumps([p._asdict() for p in granted], ensure_ascii=False, indent=1) + "\n", "utf-8"
    )
    new.replace(path)


def allow(file: Path, what: str = "", key: str = "") -> None:
    """Remember that a file may name something."""
    granted = permissions()
    permission = Permission(str(file.resolve()), what, key)
    if permission not in granted:
        _save([*granted, permission])


def copy_permissions(old: Path, new: Path) -> None:
    """Allow a file that a command has written what the one that it was made of may name."""
    for permission in permissions():
        if permission.file == str(old.resolve()):
            allow(new, permission.what, permission.key)


def is_allowed(file: Path, what: str = "", key: str = "") -> bool:
    """Tell whether the person has allowed a file to name something."""
    asked = Permission(str(file.resolve()), what, key)
    return any(
        permission == asked or (not key and permission[:2] == asked[:2])
        for permission in permissions()
    )


def command_to_allow(file: Path, what: str = "", key: str = "") -> str:
    """Return the command line that allows something."""
    words = ["nodekin", "trust", str(file), *([what] if what else [])]
    return shlex.join([*words, *(["--key", key] if key else [])])


def require(
    file: Path,
    what: str,
    reason: str,
    key: str = "",
    status: ExitStatus = ExitStatus.MODEL_ERROR,
) -> None:
    """Check that the person has allowed something; ask at a terminal.

    Args:
        file: The file that names it.
        what: What is named.
        reason: What the file does, as the end of a sentence that begins with the file.
        key: The environment variable of the key that an address gets.
        status: How the command ends without permission.

    Raises:
        CommandError: If it is not allowed. The message has the command that allows it.
    """
    if is_allowed(file, what, key):
        return
    question = _in_line(f"{file} {reason}. Allow it from now on?")
    if not (_can_ask() and click.confirm(question, err=True)):
        raise CommandError(_refusal(file, what, reason, key), status)
    allow(file, what, key)


def _refusal(file: Path, what: str, reason: str, key: str = "") -> str:
    command = command_to_allow(file, what, key)
    return printable(f"{file} {reason}; if you want that, allow it once with: {command}")


def _can_ask() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and sys.stdin.isatty() and sys.stderr.isatty()


def require_folder(file: Path, folder: Path, named: Path) -> None:
    """Check a path that a file names: in the file's own folder, or allowed.

    Args:
        file: The file that names the path.
        folder: What is the file's own.
        named: The path.

    Raises:
        CommandError: If it is elsewhere, and not allowed.
    """
    if not _is_in(named, folder):
        reason = f"names {named}, which is outside of {folder}"
        require(file, str(named.resolve()), reason, status=ExitStatus.INDEX_ERROR)


def allow_folder(file: Path, folder: Path, named: Path) -> None:
    """Remember that the person has named a path that a file names from now on."""
    if not _is_in(named, folder):
        allow(file, str(named.resolve()))


def _is_in(named: Path, folder: Path) -> bool:
    path, own = named.resolve(), folder.resolve()
    return path == own or own in path.parents


def require_server(file: Path, address: str, variable: str = "OPENAI_API_KEY") -> None:
    """Check the address of a model's server that a file names, and say where texts go.

    A server on this machine that gets no key needs no permission.

    Args:
        file: The file that names it.
        address: The server.
        variable: The environment variable whose key it would get.

    Raises:
        CommandError: If it is not allowed.
    """
    key, gets = _sent(variable)
    if refused_server(file, address, variable):
        require(file, address, f"names the server {hidden(address)}, which would get {gets}", key)
    _say(f"{file} names the server: {hidden(address)} gets {gets}")


def refused_server(file: Path, address: str, variable: str) -> str:
    """Say why the address of a server is not used as yet; empty if it is."""
    key, gets = _sent(variable)
    if is_allowed(file, address, key) or (not key and _LOOPBACK.fullmatch(address)):
        return ""
    return _refusal(
        file, address, f"names the server {hidden(address)}, which would get {gets}", key
    )


_HEADERS = ("OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")  # sent by its client


def _sent(variable: str) -> tuple[str, str]:
    """Return the first variable with a key or headers, and what a server gets."""
    key = next((name for name in (variable, *_HEADERS) if os.environ.get(name)), "")
    return key, f"your texts and the key in {key}" if key else "your texts"


def require_key(file: Path, variable: str) -> None:
    """Check the variable of a key that a file names for the server that the person chose.

    Raises:
        CommandError: If it is not known as the key of a model's server, and not allowed.
    """
    address = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    if variable not in WELL_KNOWN_KEYS:
        reason = f"would send what is in the variable {variable} to {hidden(address)}"
        require(file, address, reason, variable)
    _say(f"{file} names the key: {hidden(address)} gets what is in {variable}")


def require_local_model(file: Path, name: str, settings: Iterable[str] = ()) -> None:
    """Check a model of sentence-transformers: one in a folder may bring code that would run.

    Raises:
        CommandError: If it may, and is not allowed.
    """
    if what := _code_of(name, settings):
        require(file, what, f"names the model {what}, which may bring programs that run here")


def allow_local_model(file: Path, name: str) -> None:
    """Remember that the person has named a model that an index names from now on."""
    if what := _code_of(name):
        allow(file, what)


def _code_of(name: str, settings: Iterable[str] = ()) -> str:
    """Return what names a model that may run code of others; empty if it may not."""
    kind, _, model = name.partition(":")
    others = sorted(set(settings) - SAFE_MODEL_SETTINGS)
    if kind != "sentence-transformers" or not model:
        return ""
    is_folder = Path(model).expanduser().exists()
    return " ".join((name, *others)) if is_folder or others else ""


def _say(text: str) -> None:
    click.echo(_in_line(f"nodekin: {text}"), err=True)


def _in_line(text: str) -> str:
    """Return a text with names that a file chose, which can't begin a line of their own."""
    return " ".join(printable(text).split())


def hidden(address: str) -> str:
    """Return an address without the password that may be in it, to be shown."""
    return re.sub(r"//[^/?#]*@", "//", address)


class Unread(NamedTuple):
    """Name a file that was found and is not read, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is not read: {self.reason}; to read it: {command_to_allow(self.path)}"


def find_upwards(name: str, marker: str = "") -> tuple[Path | None, list[Unread]]:
    """Look for a file or folder here and in the folders above.

    Read is what belongs to the person who runs the command, and lies neither above the repository
    nor above the home folder that they are in; and what they have allowed.

    Args:
        name: What it is called.
        marker: A file that has to be in a folder.

    Returns:
        The nearest that may be read, and those before it that may not.
    """
    unread: list[Unread] = []
    for folder, beyond in _folders():
        path = folder / name
        if not (path / marker).is_file():
            continue
        reason = owned_by_another(path) or owned_by_another(path / marker) or beyond
        if not reason or is_allowed(path):
            return path, unread
        unread.append(Unread(path, reason))
    return None, unread


def _folders() -> Iterator[tuple[Path, str]]:
    """Yield this folder and those above, with the reason why files there are not read."""
    here, home, beyond = Path.cwd(), Path(os.path.expanduser("~")).resolve(), ""
    for folder in (here, *here.parents):
        yield folder, beyond
        if not beyond and folder == home:
            beyond = "it lies above your home folder"
        elif not beyond and any((folder / name).exists() for name in (".git", ".hg")):
            beyond = f"it lies above the repository {folder}"


def owned_by_another(path: Path) -> str:
    """Say whose a file is, if it is another user's; empty if not, and on Windows."""
    if not hasattr(os, "getuid"):
        return ""
    owners = {path.lstat().st_uid, path.stat().st_uid} - {os.getuid()}
    return "it belongs to another user" if owners else ""


class FromFile(str):
    """Hold a text that a file has, and not the person who runs the command."""

    file: Path | None

    def __new__(cls, text: str, file: Path | None = None) -> FromFile:
        """Return the text with its file; copies have it, too."""
        self = super().__new__(cls, text)
        self.file = file
        return self


def file_of(text: str | None) -> Path | None:
    """Return the file that a text comes from; None if the person gave it."""
    return text.file if isinstance(text, FromFile) else None


def set_settings_file(ctx: click.Context, path: Path) -> None:
    """Remember the file that has defaults of options."""
    ctx.meta[_SETTINGS_FILE] = path


def with_origin(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return the value of an option, with the file that it comes from: a callback of options."""
    source = ctx.get_parameter_source(option.name or "")
    if value is None or source is not click.core.ParameterSource.DEFAULT_MAP:
        return value
    return FromFile(value, ctx.meta[_SETTINGS_FILE])


@click.command(epilog=EXIT_STATUSES)
@click.argument("file", required=False, type=click.Path(path_type=Path, exists=True))
@click.argument("what", default="", metavar="[WHAT]")
@click.option("--key", default="", metavar="VARIABLE", help="The variable whose key WHAT gets.")
@click.option("--forget", is_flag=True, help="Take back all that FILE was allowed.")
def trust(file: Path | None, what: str, key: str, forget: bool) -> int:
    """Allow FILE to name WHAT: a server, a folder, a model; without FILE list what is allowed.

    A nodekin.toml, a file of set-ups or an index may come from others. What it names outside of
    its own folder is used when you have allowed it once. Without WHAT, the file is read although it
    is another user's, or above the repository.

    \b
    nodekin trust setups.toml https://models.example.org/v1 --key OPENAI_API_KEY
    nodekin trust ../nodekin.toml
    nodekin trust setups.toml --forget
    """
    if file is None:
        for permission in permissions():
            words = (permission.file, hidden(permission.what), permission.key)
            click.echo("  ".join(_in_line(word) for word in words if word))
    elif forget:
        _save([p for p in permissions() if p.file != str(file.resolve())])
    else:
        allow(file, what, key)
    return ExitStatus.SUCCESS
