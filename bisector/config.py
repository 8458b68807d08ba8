"""The configuration: one TOML file, endpoints and defaults. Unknown keys are refused by name.

Precedence: command line over ``BISECTOR_…`` over this file over the default. The sections named after commands hold
defaults of their options; click applies them, so each option is described in one place only.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from bisector.errors import ConfigError


class PypiConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[pypi]``: the index to ask.

    Attributes:
        index: Its simple API; by default the index that pip is configured to use.
        ca_file: A certificate bundle to trust instead of the system's; by default pip's.
    """

    index: str | None = None
    ca_file: str | None = None


class DockerHubConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[dockerhub]``: Docker Hub, or a mirror of it.

    Attributes:
        api: The tags API.
        registry: The registry's API; by default Docker Hub's own.
    """

    api: str = "https://hub.docker.com"
    registry: str | None = None


class RegistriesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[registries]``: mirrors, and other places for a commit's image.

    Attributes:
        mirrors: Host → the address that answers for it.
        elsewhere: Spellings of images with ``{commit}`` and ``{machine}`` (``x86_64``), tried in turn for a nightly
            that its registry has purged.
    """

    mirrors: dict[str, str] = {}
    elsewhere: tuple[str, ...] = ("public.ecr.aws/q9t5s3a7/vllm-release-repo:{commit}-{machine}",)


class WheelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[wheels]``: the index with a wheel of each commit.

    Attributes:
        base: Where its folders are; empty: there is none.
    """

    base: str = "https://wheels.vllm.ai"


class GitHubConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[github]``: the history of the source.

    Attributes:
        api: GitHub's API.
        token_file: A file that holds a token; without it ``GITHUB_TOKEN`` is used, if set.
        repository: Whose commits the nightlies are built of.
    """

    api: str = "https://api.github.com"
    token_file: str | None = None
    repository: str = "vllm-project/vllm"


_SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "pypi": PypiConfig,
    "dockerhub": DockerHubConfig,
    "registries": RegistriesConfig,
    "wheels": WheelsConfig,
    "github": GitHubConfig,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a configuration file says.

    Attributes:
        path: The file, or ``None`` when there is none.
        pypi: ``[pypi]``.
        dockerhub: ``[dockerhub]``.
        registries: ``[registries]``.
        wheels: ``[wheels]``.
        github: ``[github]``.
        defaults: Command → option → value, for click.
    """

    path: Path | None = None
    pypi: PypiConfig = field(default_factory=PypiConfig)
    dockerhub: DockerHubConfig = field(default_factory=DockerHubConfig)
    registries: RegistriesConfig = field(default_factory=RegistriesConfig)
    wheels: WheelsConfig = field(default_factory=WheelsConfig)
    github: GitHubConfig = field(default_factory=GitHubConfig)
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def default_config_path() -> Path:
    """Where the configuration is looked for when no ``--config`` names it."""
    return platformdirs.user_config_path("bisector") / "config.toml"


def default_history_path() -> Path:
    """Where the history is kept when no ``--db`` names it; ``STATE_DIRECTORY`` is systemd's."""
    return platformdirs.user_state_path("bisector") / "history.db"


def load(path: Path | None, *, options: Mapping[str, Collection[str]]) -> Config:
    """Read a configuration file.

    Args:
        path: The file; ``None`` reads the default one if it exists.
        options: For each command, the names of its options; the key ``""`` holds the global ones.

    Raises:
        ConfigError: The file is missing, is no TOML, or has a key or value that does not belong.
    """
    if path is None:
        path = default_config_path()
        if not path.exists():
            return Config()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is not TOML: {error}.") from error
    defaults: dict[str, Any] = {}
    for key, value in document.items():
        if key in _SECTIONS:
            continue
        if key in options and isinstance(value, dict):
            _refuse_unknown(path, f"[{key}] ", value, options[key])
            defaults[key] = {_option(name): setting for name, setting in value.items()}
        elif key in options.get("", ()) and not isinstance(value, dict):
            defaults[_option(key)] = value
        else:
            _refuse_unknown(path, "", [key], [*_SECTIONS, *filter(None, options), *options.get("", ())])
            raise ConfigError(f"{key!r} in {path} has a value of the wrong kind.")
    sections: dict[str, Any] = {name: _section(path, document, name, kind) for name, kind in _SECTIONS.items()}
    return Config(path=path, defaults=defaults, **sections)


def _option(name: str) -> str:
    return name.replace("-", "_")


def _section(path: Path, document: Mapping[str, Any], name: str, kind: type[msgspec.Struct]) -> msgspec.Struct:
    try:
        return msgspec.convert(document.get(name, {}), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[{name}] in {path}: {error}.") from error


def _refuse_unknown(path: Path, where: str, keys: Collection[str], allowed: Collection[str]) -> None:
    for key in keys:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(allowed))}."
            raise ConfigError(f"Unknown key {where}{key!r} in {path}.", hint=hint)
