"""What may follow a dataset's path: ``scans?dpi=200&question=Read it.``"""

from __future__ import annotations

from collections.abc import Mapping

from vlmhb.config.names import suggestion
from vlmhb.errors import DatasetError


def split_options(written: str) -> tuple[str, dict[str, str]]:
    """A dataset as written, parted into its path and its options.

    Raises:
        DatasetError: an option has no value, or comes twice.
    """
    path, mark, text = written.partition("?")
    options: dict[str, str] = {}
    for part in text.split("&") if mark else ():
        name, equals, value = part.partition("=")
        name = name.strip()
        if not name or not equals or name in options:
            wrong = "comes twice" if name in options else "is no name=value"
            raise DatasetError(f"the dataset option {part!r} {wrong}; write {path}?name=value&name=value.")
        options[name] = value.strip()
    return path.strip(), options


def check_options(format_name: str, known: Mapping[str, str], options: Mapping[str, str]) -> None:
    """Refuse options that a format does not have.

    Raises:
        DatasetError: names the nearest one that it has.
    """
    for name in options:
        if name not in known:
            has = suggestion(name, known) if known else "It has none."
            raise DatasetError(f"datasets of the format {format_name} have no option {name!r}. {has}")
