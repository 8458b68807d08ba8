"""A profile: how a model is served, loaded and measured."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from bisector.boot.hardware import Need
from bisector.model import Platform

CONTEXT_FLAG: Final = "--max-model-len"
"""The ladder sets it, so no profile does."""

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

    @property
    def document(self) -> dict[str, Any]:
        """The whole profile as JSON has it, to be kept beside what was measured with it."""
        return dict(msgspec.to_builtins(self))

    def arguments(self, context: int) -> tuple[str, ...]:
        """The arguments of the image, which are those of ``vllm serve``."""
        flags = (argument for flag in self.flags for argument in flag.arguments)
        return (self.model, CONTEXT_FLAG, str(context), *flags)
