"""The configuration: one TOML file, endpoints and defaults. Unknown keys are refused by name.

Precedence: command line over ``BISECTOR_…`` over this file over the default. The sections named after commands hold
defaults of their options; click applies them, so each option is described in one place only.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

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


class WatchConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[[watch]]``: a stream that ``nightly`` looks after.

    Attributes:
        source: The stream.
        archs: GPUs or architectures, as ``--arch`` takes them.
        platform: Whose files are meant.
        require: Operations that must be there; empty: any at all.
        commits: Go on from the two builds of a change to the commit between them.
        stopped_after: Days without a new build after which the stream counts as stopped.
        limit: How many builds are read in one night at most; ``None``: all that are new.
        profile: How its builds are booted to confirm what the files say; ``None``: they are not.
        host: Where, as ``confirm --host`` takes it.
    """

    source: str
    archs: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    platform: str = "linux/amd64"
    require: tuple[str, ...] = ()
    commits: bool = False
    stopped_after: Annotated[float, msgspec.Meta(gt=0)] = 3
    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None
    profile: str | None = None
    host: str = "local"


_Name: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class AppriseConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="apprise"
):
    """``[[post]] kind = "apprise"``: chat, mail or a webhook, by an address that apprise knows.

    Attributes:
        name: What the history and the reports call it.
        url: The address, with ``${NAME}`` for what comes from the environment.
        url_file: A file that holds it instead.
    """

    name: _Name = "apprise"
    url: str | None = None
    url_file: str | None = None


class IssueConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="github"
):
    """``[[post]] kind = "github"``: an issue for each loss.

    Attributes:
        repository: Where: ``OWNER/NAME``.
        name: What the history and the reports call it.
        label: The label its issues are found by.
        token: ``${NAME}``: a token from the environment; by default that of ``[github]``.
        token_file: A file that holds it instead.
    """

    repository: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]
    name: _Name = "github"
    label: Annotated[str, msgspec.Meta(pattern="^[^,]{1,50}$")] = "bisector"
    token: str | None = None
    token_file: str | None = None


class TextfileConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="textfile"
):
    """``[[post]] kind = "textfile"``: metrics for the textfile collector of Prometheus' node exporter.

    Attributes:
        path: The file, ending in ``.prom``.
        name: What the reports call it.
    """

    path: Annotated[str, msgspec.Meta(pattern=r"\.prom$")]
    name: _Name = "textfile"


PostConfig: TypeAlias = AppriseConfig | IssueConfig | TextfileConfig

_LISTS: Mapping[str, Any] = {"watch": tuple[WatchConfig, ...], "post": tuple[PostConfig, ...]}

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
        watch: Every ``[[watch]]``.
        post: Every ``[[post]]``.
        defaults: Command → option → value, for click.
    """

    path: Path | None = None
    pypi: PypiConfig = field(default_factory=PypiConfig)
    dockerhub: DockerHubConfig = field(default_factory=DockerHubConfig)
    registries: RegistriesConfig = field(default_factory=RegistriesConfig)
    wheels: WheelsConfig = field(default_factory=WheelsConfig)
    github: GitHubConfig = field(default_factory=GitHubConfig)
    watch: tuple[WatchConfig, ...] = ()
    post: tuple[PostConfig, ...] = ()
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
        if key in _SECTIONS or key in _LISTS:
            continue
        if key in options and isinstance(value, dict):
            _refuse_unknown(path, f"[{key}] ", value, options[key])
            defaults[key] = {_option(name): setting for name, setting in value.items()}
        elif key in options.get("", ()) and not isinstance(value, dict):
            defaults[_option(key)] = value
        else:
            _refuse_unknown(path, "", [key], [*_SECTIONS, *_LISTS, *filter(None, options), *options.get("", ())])
            raise ConfigError(f"{key!r} in {path} has a value of the wrong kind.")
    sections: dict[str, Any] = {
        name: _converted(path, f"[{name}]", document.get(name, {}), kind) for name, kind in _SECTIONS.items()
    }
    sections |= {name: _converted(path, f"[[{name}]]", document.get(name, []), kind) for name, kind in _LISTS.items()}
    return Config(path=path, defaults=defaults, **sections)


def secret(text: str | None, file: str | None, *, what: str) -> str | None:
    """A secret from where the configuration says it is, or ``None`` where it says nothing.

    Args:
        text: It, with ``${NAME}`` for what comes from the environment.
        file: A file that holds it.
        what: What it is for, for messages; the secret itself is in none.

    Raises:
        ConfigError: The file cannot be read, or the environment has no such variable.
    """
    if file is not None:
        try:
            return Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The file {file} with {what} cannot be read", hint="Check the path.") from error
    if text is None:
        return None
    missing = [name for name in _VARIABLE.findall(text) if not os.environ.get(name)]
    if missing:
        raise ConfigError(f"{what} needs {missing[0]}, which the environment does not have", hint=f"Set {missing[0]}.")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _option(name: str) -> str:
    return name.replace("-", "_")


def _converted(path: Path, name: str, value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name} in {path}: {error}.") from error


def _refuse_unknown(path: Path, where: str, keys: Collection[str], allowed: Collection[str]) -> None:
    for key in keys:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(allowed))}."
            raise ConfigError(f"Unknown key {where}{key!r} in {path}.", hint=hint)
