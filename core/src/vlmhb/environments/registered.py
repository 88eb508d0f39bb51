"""The list of environments that the user made by hand and registered."""

from __future__ import annotations

from pathlib import Path

import msgspec

from vlmhb.environments import places
from vlmhb.environments.inside import Contents
from vlmhb.errors import ManagedEnvironmentError
from vlmhb.whole import written_whole


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One registered environment, with what it held when it was registered."""

    path: str
    python: str
    contents: Contents


def _file() -> Path:
    return places.environments_folder() / "registered.json"


def read() -> list[Entry]:
    """All entries, in the order registered.

    Raises:
        ManagedEnvironmentError: the file is damaged.
    """
    try:
        return msgspec.json.decode(_file().read_bytes(), type=list[Entry])
    except FileNotFoundError:
        return []
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManagedEnvironmentError(f"{_file()} is damaged ({error}); delete it and register again.") from error


def remember(entry: Entry) -> None:
    """Add an entry, in place of an older one for the same path."""
    with places.locked("registered", lambda _: None):
        _write([*(known for known in read() if known.path != entry.path), entry])


def forget(path: str) -> bool:
    """Drop the entry of a path; False when there is none."""
    wanted = {path, str(Path(path).expanduser().absolute())}
    if not any(known.path in wanted for known in read()):
        return False
    with places.locked("registered", lambda _: None):
        _write([known for known in read() if known.path not in wanted])
    return True


def _write(entries: list[Entry]) -> None:
    with written_whole(_file()) as beside:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=1))
