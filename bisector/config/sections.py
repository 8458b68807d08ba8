"""What a configuration file may say, section by section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec


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

LISTS: Mapping[str, Any] = {"watch": tuple[WatchConfig, ...], "post": tuple[PostConfig, ...]}
"""``[[name]]`` → what its entries are."""

SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "pypi": PypiConfig,
    "dockerhub": DockerHubConfig,
    "registries": RegistriesConfig,
    "wheels": WheelsConfig,
    "github": GitHubConfig,
}
"""``[name]`` → what it is."""


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
