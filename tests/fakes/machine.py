"""A machine that boots in memory: an ``Engine`` whose images behave as they are told, and a memory of boots."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from bisector.boot.hardware import Machine, Need, fitting_devices, shortcomings
from bisector.boot.ports import Launch, Ran, Reply, ServerState
from bisector.boot.profile import Mount
from bisector.errors import LaunchRefused, NoHardware, Unavailable, UnknownBuild
from bisector.model import Build, EngineImage, Location, Platform
from bisector.trials import Boot, BootOutcome

LOST = (
    b"RuntimeError: Assertion error (/workspace/.deps/deepgemm-src/csrc/apis/layout.hpp:60): "
    b"Unknown SF transformation\n"
)
COMING_UP = b"""\
(EngineCore pid=23) INFO [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: tensor_parallel_size=2, \
enforce_eager=True, 'cudagraph_mode': <CUDAGraphMode.NONE: 0>
(Worker_TP0 pid=37) INFO [default_loader.py:501] Loading weights took 0.00 seconds
(EngineCore pid=25) INFO [kv_cache_utils.py:2327] CPU KV cache size: 16,384 tokens, Maximum concurrency for 4,096 \
tokens per request: 4.00x
"""
TOO_LONG = (
    "ValueError: To serve at least one request with the model's max seq len ({asked}), (0.01 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (0.0 GiB). Based on the available memory, the estimated "
    "maximum model length is {fits}. Try increasing `gpu_memory_utilization`.\n"
)


@dataclass(slots=True, kw_only=True)
class Behaviour:
    """How a server of an image behaves.

    Attributes:
        fits: The longest context that its memory allows.
        dies_saying: It ends with this log instead of coming up.
        needs: Flags and variables without which it ends.
        dies_without: What it says then.
        hangs: It runs and never becomes healthy.
        dies_at: The request it dies of: ``chat``, ``completions`` or ``benchmark``.
        oom_killed: The kernel killed it.
        refused: The engine cannot start it.
        tpot: The TPOT of each pass in ms, over and over.
        flaky: How many boots fail before one succeeds.
    """

    fits: int = 1_000_000
    dies_saying: bytes | None = None
    needs: Sequence[str] = ()
    dies_without: bytes = b""
    hangs: bool = False
    dies_at: str | None = None
    oom_killed: bool = False
    refused: str | None = None
    tpot: Sequence[float] = (25.0,)
    flaky: int = 0
    passes: int = 0


@dataclass(slots=True)
class MemoryServer:
    """A ``Server`` in memory."""

    behaviour: Behaviour
    launch: Launch
    dead: ServerState | None = None
    printed: bytes = b""
    ended: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        context = int(self.launch.arguments[self.launch.arguments.index("--max-model-len") + 1])
        behaviour = self.behaviour
        if behaviour.flaky:
            behaviour.flaky -= 1
            self._die(b"RuntimeError: something strange\n")
        elif behaviour.dies_saying is not None or behaviour.oom_killed:
            self._die(behaviour.dies_saying or b"", exit_code=137 if behaviour.oom_killed else 1)
        elif any(name not in (*self.launch.arguments, *self.launch.environment) for name in behaviour.needs):
            self._die(behaviour.dies_without)
        elif context > behaviour.fits:
            self._die(TOO_LONG.format(asked=context, fits=behaviour.fits).encode())
        else:
            self.printed = COMING_UP

    async def log(self) -> AsyncIterator[bytes]:
        yield self.printed
        await self.ended.wait()

    async def whole_log(self) -> bytes:
        return self.printed

    async def state(self) -> ServerState:
        return self.dead or ServerState(running=True)

    async def ask(self, path: str, body: bytes | None, *, timeout: float) -> Reply:  # noqa: ASYNC109 - the port's
        await anyio.lowlevel.checkpoint()
        if self.dead or self.behaviour.hangs:
            return Reply(status=0, body=b"connection refused")
        if body is None:
            return Reply(status=200)
        if self.behaviour.dies_at and path.endswith(self.behaviour.dies_at):
            self._die(b"EngineDeadError: EngineCore encountered an issue.\n", exit_code=0)
            return Reply(status=500, body=b'{"error":{"message":"EngineCore encountered an issue."}}')
        asked = json.loads(body)
        used = {"prompt_tokens": len(asked.get("prompt", [1])), "completion_tokens": asked["max_tokens"]}
        assert timeout > 0
        return Reply(status=200, body=json.dumps({"choices": [{}], "usage": used}).encode())

    async def run(self, command: Sequence[str]) -> Ran:
        if command[0] != "cat":
            return Ran(exit_code=0, output=b"")
        behaviour = self.behaviour
        tpot = behaviour.tpot[behaviour.passes % len(behaviour.tpot)]
        behaviour.passes += 1
        lost = behaviour.dies_at == "benchmark"
        if lost:
            self._die(b"EngineDeadError\n", exit_code=0)
        result = {
            "completed": 0 if lost else 5,
            "mean_tpot_ms": tpot,
            "mean_ttft_ms": 3 * tpot,
            "output_throughput": 1000 / tpot,
        }
        return Ran(exit_code=0, output=json.dumps(result).encode())

    def _die(self, saying: bytes, *, exit_code: int = 1) -> None:
        self.printed += saying
        self.dead = ServerState(running=False, exit_code=exit_code, oom_killed=self.behaviour.oom_killed)
        self.ended.set()


@dataclass(slots=True)
class MemoryEngine:
    """An ``Engine`` in memory.

    Attributes:
        images: What is there, by name.
        machine: What it has.
        held: Somebody has the lease.
        running: The boots whose containers are there.
        launched: Image and context of every start, in order.
        left: Boots of owners that are gone.
    """

    images: dict[str, Behaviour]
    machine: Machine = field(default_factory=Machine)
    held: bool = False
    running: list[str] = field(default_factory=list)
    launched: list[tuple[str, int]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    name: str = "memory"

    async def pull(self, location: Location, platform: Platform, progress: Callable[[int, int], None]) -> str:
        assert isinstance(location, EngineImage)
        assert platform
        if location.name not in self.images:
            raise UnknownBuild(f"The engine has no image {location.name}")
        progress(1, 1)
        return location.name

    async def devices(self, need: Need, image: str, mounts: Sequence[Mount], model: str) -> tuple[int, ...]:
        assert all(str(each) for each in (image, model, *mounts))
        if found := shortcomings(self.machine, need):
            raise NoHardware(f"memory is no machine for this profile: {'; '.join(found)}")
        return fitting_devices(self.machine, need)

    @asynccontextmanager
    async def hold(self, image: str, *, seconds: float) -> AsyncIterator[None]:
        assert image
        assert seconds > 0
        if self.held:
            raise Unavailable("memory is held by somebody")
        self.held = True
        try:
            yield
        finally:
            self.held = False

    async def clear(self) -> tuple[str, ...]:
        gone, self.left = tuple(self.left), []
        return gone

    @asynccontextmanager
    async def start(self, launch: Launch) -> AsyncIterator[MemoryServer]:
        behaviour = self.images[launch.image]
        context = int(launch.arguments[launch.arguments.index("--max-model-len") + 1])
        self.launched.append((launch.image, context))
        if behaviour.refused:
            raise LaunchRefused(f"{launch.image} cannot be started: {behaviour.refused}")
        self.running.append(launch.boot)
        try:
            yield MemoryServer(behaviour, launch)
        finally:
            self.running.remove(launch.boot)


@dataclass(slots=True)
class MemoryBoots:
    """A ``Boots`` in memory."""

    begun: dict[str, tuple[Build, Mapping[str, object]]] = field(default_factory=dict)
    ended: dict[str, Boot] = field(default_factory=dict)
    abandoned: list[str] = field(default_factory=list)

    async def begin(
        self, build: Build, *, host: str, profile: str, arch: str, run: str | None, settings: Mapping[str, object]
    ) -> str:
        assert all((host, profile, arch))
        assert run is None
        boot = f"boot-{len(self.begun) + 1}"
        self.begun[boot] = (build, settings)
        return boot

    async def end(self, boot: Boot) -> None:
        assert boot.id in self.begun
        self.ended[boot.id] = boot

    async def abandon(self, boots: Collection[str]) -> Sequence[str]:
        self.abandoned += boots
        return list(boots)

    @property
    def outcomes(self) -> list[BootOutcome]:
        """How each boot ended, in order."""
        return [boot.outcome for boot in self.ended.values()]
