"""What any ``Engine`` does: the real one, and the one in memory that the jobs are tested with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from bisector.boot.engine import DockerEngine
from bisector.boot.hardware import Need
from bisector.boot.host import connect
from bisector.boot.ports import Engine, Launch, Server, ServerState
from bisector.errors import NoHardware, Unavailable, UnknownBuild
from bisector.model import EngineImage, Platform
from bisector.reference import gpus
from bisector.wiring.clock import SystemClock
from tests.boot.stand_in.image import with_behaviour
from tests.fakes.machine import LOST, Behaviour, MemoryEngine
from tests.lab import engine as lab

PLATFORM = Platform("linux/amd64")
GOOD, LOSING = EngineImage(name="stand-in:good"), EngineImage(name="stand-in:lost")
CHAT = json.dumps({"messages": [], "max_tokens": 8}).encode()


_REAL = [pytest.mark.docker, pytest.mark.timeout(300)]


@pytest.fixture(params=["memory", pytest.param("docker", marks=_REAL), pytest.param("ssh", marks=_REAL)])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    if request.param == "memory":
        yield MemoryEngine({GOOD.name: Behaviour(), LOSING.name: Behaviour(dies_saying=LOST)})
        return
    private: lab.DockerEngine = request.getfixturevalue("stand_in")
    with_behaviour(private, "good")
    with_behaviour(private, "lost", lost=True)
    away = request.param == "ssh"
    host = connect(request.getfixturevalue("sshd").to(private) if away else private.host)
    assert host.local != away
    yield DockerEngine(host, clock=SystemClock(), gpus=gpus())
    assert host.client.containers.list(all=True) == []
    host.close()


async def pulled(engine: Engine, image: EngineImage) -> str:
    return await engine.pull(image, PLATFORM, lambda _done, _whole: None)


def launch(image: str, boot: str = "1") -> Launch:
    return Launch(boot=boot, image=image, arguments=["/models/tiny", "--max-model-len", "4096"], shm="64m")


async def until_healthy(server: Server) -> None:
    with anyio.fail_after(60):
        while (await server.ask("/health", None, timeout=5)).status != 200:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.2)


async def until_ended(server: Server) -> ServerState:
    with anyio.fail_after(60):
        while (state := await server.state()).running:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.2)
    return state


async def test_a_server_answers(engine: Engine) -> None:
    async with engine.start(launch(await pulled(engine, GOOD))) as server:
        await until_healthy(server)
        reply = await server.ask("/v1/chat/completions", CHAT, timeout=10)
        assert (reply.status, json.loads(reply.body)["usage"]["completion_tokens"]) == (200, 8)
        assert (await server.state()).running


async def test_a_long_request_arrives_whole(engine: Engine) -> None:
    body = json.dumps({"prompt": [123] * 130_000, "max_tokens": 1}).encode()
    async with engine.start(launch(await pulled(engine, GOOD))) as server:
        await until_healthy(server)
        reply = await server.ask("/v1/completions", body, timeout=30)
        assert json.loads(reply.body)["usage"]["prompt_tokens"] == 130_000


async def test_a_log_is_followed_while_it_grows(engine: Engine) -> None:
    async with engine.start(launch(await pulled(engine, GOOD))) as server:
        seen = b""
        with anyio.fail_after(60):
            async with aclosing(server.log()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    seen += piece
                    if b"KV cache size" in seen:
                        break
        assert b"KV cache size" in await server.whole_log()


async def test_a_server_that_ended_tells_how(engine: Engine) -> None:
    async with engine.start(launch(await pulled(engine, LOSING))) as server:
        state = await until_ended(server)
        assert (state.exit_code, state.oom_killed) == (1, False)
        assert (await server.ask("/health", None, timeout=5)).status == 0
        assert b"Unknown SF transformation" in await server.whole_log()


async def test_an_image_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(UnknownBuild):
        await pulled(engine, EngineImage(name="stand-in:none"))


async def test_the_machine_is_held_by_one_at_a_time(engine: Engine) -> None:
    image = await pulled(engine, GOOD)
    async with engine.hold(image, seconds=60):
        with pytest.raises(Unavailable, match="held by"):
            async with engine.hold(image, seconds=60):
                pytest.fail("two had it at once")
        assert await engine.clear() == ()
    async with engine.hold(image, seconds=60):
        pass


async def test_hardware_that_is_not_there(engine: Engine, tmp_path: Path) -> None:
    image = await pulled(engine, GOOD)
    with pytest.raises(NoHardware):
        await engine.devices(Need(gpus=2, arch="sm120"), image, [], str(tmp_path))


async def test_a_server_is_removed_when_it_is_cancelled(engine: Engine) -> None:
    image = await pulled(engine, GOOD)
    with anyio.CancelScope() as scope:
        async with engine.start(launch(image)) as server:
            await until_healthy(server)
            scope.cancel()
            await anyio.sleep(60)
    assert scope.cancelled_caught
