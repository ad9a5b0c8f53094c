"""Where an index is kept, and how it was made."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .exits import CORPUS, CommandError
from .group_rules import DEFAULT_RULES, GroupRule

FOLDER = ".nodekin"
_SETTINGS = "index.json"
_GRAPH = "graph.sqlite"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """Say how an index is made.

    Attributes:
        groups: Its groups, parents first; the first is what is searched unless told otherwise.
        embed: The embedding model, as ``--embed`` names it; empty where there is none.
        encoding: What text files are that are not UTF-8; empty for none.
        sources: The folders and files that were indexed.
    """

    groups: tuple[GroupRule, ...] = DEFAULT_RULES
    embed: str = ""
    encoding: str = ""
    sources: tuple[Path, ...] = ()

    @property
    def main_group(self) -> str:
        """The group that is searched unless told otherwise."""
        return self.groups[0].name

    def to_json(self) -> str:
        """Return the settings as they are kept."""
        kept = {
            "version": _VERSION,
            "groups": [rule.to_dict() for rule in self.groups],
            "embed": self.embed,
            "encoding": self.encoding,
            "sources": [str(source) for source in self.sources],
        }
        return json.dumps(kept, ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings that were kept.

        Raises:
            ValueError: If they are damaged, or of a newer nodekin.
        """
        try:
            kept: Any = json.loads(text)
            version = int(kept["version"])
            groups = tuple(GroupRule(**each) for each in kept["groups"])
            embed, encoding = str(kept["embed"]), str(kept.get("encoding", ""))
            sources = tuple(Path(each) for each in kept["sources"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
        if version > _VERSION or not groups:
            raise ValueError("it was written by a newer nodekin")
        return cls(groups, embed, encoding, sources)


@dataclass(frozen=True, slots=True)
class Home:
    """Stand for the folder of an index: its settings, and the file of its graph."""

    folder: Path

    @classmethod
    def find(cls, store: Path | None) -> Home:
        """Return the index that was named, or the nearest one from here upwards.

        Raises:
            CommandError: If there is none.
        """
        if store is not None:
            home = cls(store)
            if not home.exists:
                raise CommandError(
                    f"there is no index in {store}; make one with: nodekin index FOLDER --store "
                    f"{store}",
                    CORPUS,
                )
            return home
        here = Path.cwd()
        for folder in (here, *here.parents):
            home = cls(folder / FOLDER)
            if home.exists:
                return home
        raise CommandError(
            f"there is no index ({FOLDER}) in {here} or above; make one with: nodekin index "
            "FOLDER, or search a folder at once with: --in FOLDER",
            CORPUS,
        )

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return (self.folder / _SETTINGS).is_file()

    @property
    def graph_file(self) -> Path:
        """The file that the graph is kept in."""
        return self.folder / _GRAPH

    def load(self) -> Settings:
        """Return the settings.

        Raises:
            CommandError: If they can't be read.
        """
        file = self.folder / _SETTINGS
        try:
            return Settings.from_json(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(
                f"can't use {file}: {error}; make the index anew with: nodekin index FOLDER "
                "--rebuild",
                CORPUS,
            ) from error

    def save(self, settings: Settings) -> None:
        """Keep the settings, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"{_SETTINGS}.{os.getpid()}.new"
        new.write_text(settings.to_json(), encoding="utf-8")
        new.replace(self.folder / _SETTINGS)

    def clear(self) -> None:
        """Remove what belongs to the index, and nothing else that may be in the folder."""
        for path in (self.folder / _SETTINGS, *self.folder.glob(f"{_GRAPH}*")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
