"""Profiles: how a model is served, loaded and measured. One TOML file each; unknown keys are refused by name."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from bisector.boot.hardware import Need
from bisector.errors import ConfigError
from bisector.model import Platform

_PACKAGE = Path(__file__).parent.parent
_CONTEXT_FLAG = "--max-model-len"

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Size: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+[kmg]$")]
"""As Docker writes it: ``16g``."""


class Flag(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[[flag]]``: an argument of ``vllm serve``.

    Attributes:
        name: ``--kv-cache-dtype``.
        value: What follows it; a switch has none.
        why: Why it is there.
        remove_when: When it may go.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^--[a-z0-9][a-z0-9._-]*$")]
    value: str | int | float | None = None
    why: str | None = None
    remove_when: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the command line has it."""
        return (self.name,) if self.value is None else (self.name, str(self.value))


class Variable(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[[environment]]``: a variable of the container.

    Attributes:
        name: Its name.
        value: Its value.
        why: Why it is there.
        remove_when: When it may go.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    value: str
    why: str | None = None
    remove_when: str | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[[mount]]``: a folder of the host in the container.

    Attributes:
        host: Its path on the machine whose engine it is.
        container: Where the container sees it.
        writable: Whether the container may write there.
    """

    host: Annotated[str, msgspec.Meta(pattern="^/")]
    container: Annotated[str, msgspec.Meta(pattern="^/")]
    writable: bool = False


class Gpus(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[gpus]``: the hardware the profile needs. Without the table it needs none.

    Attributes:
        count: How many.
        arch: Of which architecture.
        free_gib: Memory that must be free on each.
    """

    count: Count
    arch: str
    free_gib: float = 0.0


class Context(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[context]``: how long requests may be, and how the ladder climbs there.

    Attributes:
        tokens: The goal.
        start: The first rung.
        step: How exactly the longest that boots is found where the goal does not.
    """

    tokens: Count
    start: Count = 8192
    step: Count = 4096


class Heaviest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[heaviest]``: the heaviest request that must really run.

    Attributes:
        prompt_tokens: Its prompt, exactly.
        output_tokens: Its answer, exactly.
    """

    prompt_tokens: Count
    output_tokens: Count = 64


class Benchmark(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[benchmark]``: ``vllm bench serve`` on random prompts. The first pass warms up and is not counted.

    Attributes:
        prompts: Requests a pass.
        input_tokens: Each prompt.
        output_tokens: Each answer.
        concurrency: Requests at once.
        passes: Warm passes at least.
        most_passes: Warm passes at most.
        settled: Passes enough lie no further apart than this fraction of their median.
        smallest_effect: A difference between two builds below this fraction is none.
        turns: How often, at most, each of two builds is booted to be measured against the other.
    """

    prompts: Count = 16
    input_tokens: Count = 1024
    output_tokens: Count = 256
    concurrency: Count = 1
    passes: Annotated[int, msgspec.Meta(ge=3)] = 3
    most_passes: Count = 8
    settled: Share = 0.05
    smallest_effect: Share = 0.05
    turns: Count = 2


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[timeouts]``, in seconds.

    Attributes:
        pull: For the image.
        boot: From the start of the container to ``/health``.
        smoke: For the first request.
        heaviest: For the heaviest request.
        benchmark: For one pass.
    """

    pull: Seconds = 7200
    boot: Seconds = 1800
    smoke: Seconds = 300
    heaviest: Seconds = 1800
    benchmark: Seconds = 1800


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[limits]``: what the container may use, and what must be free before it starts.

    Attributes:
        memory: Its memory; without it, the host's.
        shm: The size of ``/dev/shm``; without it, the host's own is used (``--ipc=host``).
        free_memory_gib: Memory that must be free on the host.
        free_disk_gib: Room that the engine must have for the image.
    """

    memory: Size | None = None
    shm: Size | None = None
    free_memory_gib: float = 0.0
    free_disk_gib: float = 0.0


class Profile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """How a model is served, loaded and measured.

    Attributes:
        title: In words.
        arch: Whose kernels it is about.
        model: The model's path in the container.
        platform: Of the image.
        port: The port on the host's loopback; without it, any that is free.
        flags: Arguments of ``vllm serve``, without the model and its context.
        environment: Variables of the container.
        mounts: Folders of the host.
        gpus: The GPUs it needs.
        context: The goal and the ladder.
        heaviest: The heaviest request.
        benchmark: What is measured.
        timeouts: How long things may take.
        limits: What it may use.
        name: The file's name without its ending; how the history knows it.
    """

    title: str
    arch: str
    model: Annotated[str, msgspec.Meta(pattern="^/")]
    context: Context
    platform: Platform = Platform("linux/amd64")
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    flags: tuple[Flag, ...] = msgspec.field(default=(), name="flag")
    environment: tuple[Variable, ...] = ()
    mounts: tuple[Mount, ...] = msgspec.field(default=(), name="mount")
    gpus: Gpus | None = None
    heaviest: Heaviest | None = None
    benchmark: Benchmark | None = None
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    name: str = ""

    @property
    def served_name(self) -> str:
        """What requests call the model."""
        for flag in self.flags:
            if flag.name == "--served-model-name" and flag.value is not None:
                return str(flag.value).split()[0]
        return self.model

    @property
    def need(self) -> Need:
        """What it asks of a machine."""
        return Need(
            gpus=self.gpus.count if self.gpus else 0,
            arch=self.gpus.arch if self.gpus else None,
            gpu_gib=self.gpus.free_gib if self.gpus else 0.0,
            memory_gib=self.limits.free_memory_gib,
            disk_gib=self.limits.free_disk_gib,
        )

    def arguments(self, context: int) -> tuple[str, ...]:
        """The arguments of the image, which are those of ``vllm serve``."""
        flags = (argument for flag in self.flags for argument in flag.arguments)
        return (self.model, _CONTEXT_FLAG, str(context), *flags)


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
    if any(flag.name == _CONTEXT_FLAG for flag in profile.flags):
        raise ConfigError(f"{where}: {_CONTEXT_FLAG} is what the ladder sets", hint="Write it as tokens in [context].")
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
