"""The doors between a boot and the machine it happens on.

Whatever stands behind them passes ``tests/boot/test_engine_contract.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from bisector.boot.hardware import Need
from bisector.boot.profile import Mount
from bisector.model import Location, Platform

PORT = 8000
"""Where a server listens inside its container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A container to be started: no privileges beyond the GPUs, its port on loopback only.

    Attributes:
        boot: The boot's id, which the container is labelled with.
        image: What to start, as :meth:`Engine.pull` named it.
        arguments: For the image's entry point.
        environment: Variables.
        mounts: Folders of the host.
        devices: The GPUs it may use, by number.
        shm: The size of its ``/dev/shm``; without one it shares the host's.
        memory: Its memory; without one, the host's.
        port: The port on the host's loopback; without one, any that is free.
    """

    boot: str
    image: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    devices: Sequence[int] = ()
    shm: str | None = None
    memory: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """How a container stands.

    Attributes:
        running: It has not ended.
        exit_code: How it ended. 0 is no proof of health: vLLM's server leaves with it when its engine has died.
        oom_killed: The kernel killed one of its processes for want of memory.
    """

    running: bool
    exit_code: int | None = None
    oom_killed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer over HTTP; status 0: nobody answered."""

    status: int
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that ran beside the server, and the end of what it printed."""

    exit_code: int
    output: bytes


class Server(Protocol):
    """A container that was started.

    Every method raises ``Unavailable`` when the engine does not answer.
    """

    def log(self) -> AsyncIterator[bytes]:
        """Its output while it grows, cut anywhere; ends with the container. The very last line may be missing."""

    async def whole_log(self) -> bytes:
        """Its output so far, whole."""

    async def state(self) -> ServerState:
        """How it stands now."""

    async def ask(self, path: str, body: bytes | None, *, timeout: float) -> Reply:  # noqa: ASYNC109 - passed on
        """Ask the server itself: GET, or POST where there is a body of JSON. ``timeout`` is in seconds."""

    async def run(self, command: Sequence[str]) -> Ran:
        """Run a command in the container, to its end."""


class Engine(Protocol):
    """The machine that boots, through its container engine."""

    @property
    def name(self) -> str:
        """As the history knows it."""

    async def pull(self, location: Location, platform: Platform, progress: Callable[[int, int], None]) -> str:
        """Have the image there; what it is called there. ``progress`` is told bytes done and bytes in all.

        Raises:
            UsageError: The location is no image.
            UnknownBuild: There is no such image.
            Unavailable: It cannot be had now.
        """

    async def devices(self, need: Need, image: str, mounts: Sequence[Mount], model: str) -> tuple[int, ...]:
        """The GPUs to use, once the machine is known to be one for this profile.

        Raises:
            NoHardware: It is not.
            Unavailable: The engine does not answer.
        """

    def hold(self, image: str, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Keep everybody else's boots off the machine; an owner that is gone does not count.

        Args:
            image: Any image that is there.
            seconds: How long the owner may be believed where nobody can see whether it lives.

        Raises:
            Unavailable: Somebody else holds it.
        """

    async def clear(self) -> tuple[str, ...]:
        """Remove the containers of owners that are gone; the ids of their boots."""

    def start(self, launch: Launch) -> AbstractAsyncContextManager[Server]:
        """A server, which is removed when it is left, however that happens.

        Raises:
            NoHardware: The engine has no way to give it the GPUs.
            LaunchRefused: The image cannot be started as it is.
            Unavailable: The port is taken, or the engine does not answer.
        """
