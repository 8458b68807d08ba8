"""Profiles as TOML files, shipped ones and people's own. Unknown keys are refused by name."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from bisector.boot.profile import CONTEXT_FLAG, Profile
from bisector.errors import ConfigError

_PACKAGE: Final = Path(__file__).parent.parent


def find_profile(spelling: str) -> Profile:
    """The profile in a file, or a shipped one by name.

    Raises:
        ConfigError: There is none, or it is not a profile.
    """
    shipped = _shipped()
    if spelling in shipped:
        return read_profile(shipped[spelling])
    path = Path(spelling)
    if path.suffix == ".toml" or path.exists():
        return read_profile(path)
    near = difflib.get_close_matches(spelling, shipped, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Name a file, or one of: {', '.join(shipped)}."
    raise ConfigError(f"There is no profile {spelling!r}", hint=hint)


def read_profile(path: Path) -> Profile:
    """The profile in a file.

    Raises:
        ConfigError: It cannot be read, is no TOML, or has a key or value that does not belong.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The profile {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The profile {path} is not TOML: {error}") from error
    return parse_profile(document, name=path.stem, where=str(path))


def parse_profile(document: Mapping[str, Any], *, name: str, where: str) -> Profile:
    """The profile that a TOML document describes.

    Raises:
        ConfigError: A key or value does not belong.
    """
    _refuse_unknown(document, Profile, "", where)
    try:
        profile = msgspec.convert({**document, "name": name}, Profile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error
    if any(flag.name == CONTEXT_FLAG for flag in profile.flags):
        raise ConfigError(f"{where}: {CONTEXT_FLAG} is what the ladder sets", hint="Write it as tokens in [context].")
    heaviest = profile.heaviest
    if heaviest and heaviest.prompt_tokens + heaviest.output_tokens > profile.context.tokens:
        raise ConfigError(f"{where}: the heaviest request is longer than the context of {profile.context.tokens:,}")
    return profile


def _shipped() -> dict[str, Path]:
    folders = [root / "data" / "profiles" for root in (_PACKAGE, _PACKAGE.parent)]
    return {path.stem: path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.toml"))}


def _refuse_unknown(table: Mapping[str, Any], kind: type[msgspec.Struct], where: str, file: str) -> None:
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    hints = get_type_hints(kind)
    names.pop("name", None) if kind is Profile else None
    for key, value in table.items():
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(names))}."
            raise ConfigError(f"Unknown key {where}{key!r} in {file}", hint=hint)
        inner = _table_in(hints[names[key]])
        if inner is not None:
            entries: Sequence[Any] = value if isinstance(value, list) else [value]
            place = f"[[{key}]] " if isinstance(value, list) else f"[{key}] "
            for entry in entries:
                if isinstance(entry, dict):
                    _refuse_unknown(entry, inner, place, file)


def _table_in(hint: Any) -> type[msgspec.Struct] | None:
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint if issubclass(hint, msgspec.Struct) else None
    return next(filter(None, map(_table_in, get_args(hint))), None)
