"""One boot: start a server, follow it until it answers, load it, measure it, and say why where it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import anyio

from bisector.boot.log_facts import LogReading
from bisector.boot.ports import Engine, Launch, Server
from bisector.boot.profile import Profile
from bisector.errors import LaunchRefused, NoHardware, Unavailable
from bisector.jobs.load import Load, ServerFailed
from bisector.jobs.probe import first_error
from bisector.model import Build
from bisector.ports import Boots, BootStep, Clock, Progress
from bisector.results import UNKNOWN_CAUSE, Cause, Certainty, Diagnosis, Layer
from bisector.trials import Boot, BootOutcome, LogFacts, LongRequest, Pass, Phase, Reached

_A_LOOK: Final = 1.0  # seconds between two looks at a server that is coming up
_LAST_WORDS: Final = 15.0  # seconds a failing server has to end and to say why


@dataclass(frozen=True, slots=True, kw_only=True)
class Booting:
    """What a boot needs.

    Attributes:
        engine: The machine.
        boots: Remembers.
        diagnose: Finds the causes in a log.
        clock: Tells the time.
        progress: Is told what happens.
        profile: How the model is served.
        run: The run it belongs to.
    """

    engine: Engine
    boots: Boots
    diagnose: Callable[[bytes], Diagnosis]
    clock: Clock
    progress: Progress
    profile: Profile
    run: str | None = None

    async def pull(self, build: Build) -> str:
        """Have the build's image on the machine; what it is called there.

        Raises:
            UsageError: The build is no image.
            UnknownBuild: It is gone.
            Unavailable: It cannot be had now.
        """
        if build.location is None:
            raise Unavailable(f"{build.spec} has no image for {self.profile.platform}")
        start = self.clock.monotonic()

        def tell(done: int, whole: int) -> None:
            self._tell(build, None, f"pulling, {done / 1e9:.1f} of {whole / 1e9:.1f} GB", start, passing=True)

        try:
            with anyio.fail_after(self.profile.timeouts.pull):
                image = await self.engine.pull(build.location, self.profile.platform, tell)
        except TimeoutError as error:
            raise Unavailable(f"{build.spec} was not pulled within {self.profile.timeouts.pull:g} s") from error
        return image

    async def boot(self, build: Build, context: int, *, load: bool = False) -> Boot:
        """Boot a build once, with this context; with ``load``, send the heaviest request and measure too.

        Whatever happens is recorded, and no container is left.
        """
        attempt = _Attempt(
            booting=self,
            build=build,
            context=context,
            load=load,
            started_at=self.clock.now(),
            start=self.clock.monotonic(),
            id=await self.boots.begin(
                build,
                host=self.engine.name,
                profile=self.profile.name,
                arch=self.profile.arch,
                run=self.run,
                settings={"arguments": list(self.profile.arguments(context)), "profile": self.profile.document},
            ),
        )
        try:
            await attempt.make()
        except BaseException:
            attempt.outcome = BootOutcome.INTERRUPTED
            attempt.reason = "interrupted"
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self.boots.end(attempt.result())
        boot = attempt.result()
        self._tell(build, context, _ending(boot), attempt.start)
        return boot

    def _tell(self, build: Build, context: int | None, step: str, start: float, *, passing: bool = False) -> None:
        seconds = self.clock.monotonic() - start
        self.progress(BootStep(build=build, context=context, step=step, seconds=seconds, passing=passing))


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """A boot in progress."""

    booting: Booting
    id: str
    build: Build
    context: int
    load: bool
    started_at: datetime
    start: float
    image: str | None = None
    outcome: BootOutcome = BootOutcome.ANSWERED
    reason: str | None = None
    phases: dict[Phase, float] = field(default_factory=dict)
    reading: LogReading = field(default_factory=LogReading)
    facts: LogFacts | None = None
    causes: tuple[Cause, ...] = ()
    exit_code: int | None = None
    passes: list[Pass] = field(default_factory=list)
    heaviest: LongRequest | None = None
    log_ended: anyio.Event = field(default_factory=anyio.Event)

    async def make(self) -> None:
        """Boot; what the machine or the image is to blame for is noted, and nothing is raised for it."""
        try:
            await self._make()
        except NoHardware as error:
            self.outcome, self.reason = BootOutcome.NO_HARDWARE, error.message
        except Unavailable as error:
            self.outcome, self.reason = BootOutcome.UNAVAILABLE, error.message
        except LaunchRefused as error:
            self.outcome, self.reason = BootOutcome.FAILED, error.message

    def result(self) -> Boot:
        """The boot as it is now."""
        return Boot(
            id=self.id,
            build=self.build,
            image=self.image,
            context=self.context,
            started_at=self.started_at,
            seconds=round(self._seconds(), 1),
            outcome=self.outcome,
            reason=self.reason,
            phases=tuple(Reached(phase=phase, seconds=seconds) for phase, seconds in self.phases.items()),
            facts=self.facts or self.reading.facts(),
            causes=self.causes,
            exit_code=self.exit_code,
            passes=tuple(self.passes),
            heaviest=self.heaviest,
        )

    async def _make(self) -> None:
        booting, profile = self.booting, self.booting.profile
        self.image = await booting.pull(self.build)
        self._reach(Phase.PULLED)
        devices = await booting.engine.devices(profile.need, self.image, profile.mounts, profile.model)
        launch = Launch(
            boot=self.id,
            image=self.image,
            arguments=profile.arguments(self.context),
            environment={variable.name: variable.value for variable in profile.environment},
            mounts=profile.mounts,
            devices=devices,
            shm=profile.limits.shm,
            memory=profile.limits.memory,
            port=profile.port,
        )
        with first_error():
            async with booting.engine.start(launch) as server, self._following(server):
                self._reach(Phase.STARTED)
                try:
                    await self._serve(server)
                except ServerFailed as failure:
                    self.outcome, self.reason = failure.outcome, failure.reason
                    await self._autopsy(server)

    async def _serve(self, server: Server) -> None:
        await self._until_healthy(server)
        self._reach(Phase.HEALTHY)
        load = Load(
            server=server, profile=self.booting.profile, clock=self.booting.clock, tell=self._tell, passes=self.passes
        )
        await load.smoke()
        self._reach(Phase.ANSWERING)
        if self.load:
            self.heaviest = await load.heaviest()
            await load.benchmark()
            await load.still_healthy()

    async def _until_healthy(self, server: Server) -> None:
        patience = self.booting.profile.timeouts.boot
        deadline = self.booting.clock.monotonic() + patience
        while True:
            state = await server.state()
            if not state.running:
                raise ServerFailed(f"the server ended with exit code {state.exit_code} before it was healthy")
            reply = await server.ask("/health", None, timeout=5)
            if reply.status == 200:  # noqa: PLR2004 - HTTP's "OK"
                return
            if self.booting.clock.monotonic() > deadline:
                raise ServerFailed(f"the server was not healthy within {patience:g} s", outcome=BootOutcome.TIMED_OUT)
            await anyio.sleep(_A_LOOK)

    async def _autopsy(self, server: Server) -> None:
        """Why it failed: from the whole log, for the live one may miss the last line, and from how it ended."""
        if self.outcome is BootOutcome.FAILED:
            with anyio.move_on_after(_LAST_WORDS):
                await self.log_ended.wait()
        state = await server.state()
        self.exit_code = state.exit_code
        log = await server.whole_log()
        reading = LogReading()
        reading.feed(log)
        self.facts = reading.facts()
        self.causes = self.booting.diagnose(log).causes
        if state.oom_killed:
            named = tuple(cause for cause in self.causes if cause.id != UNKNOWN_CAUSE)
            self.causes = (_out_of_memory(self.booting.profile.limits.memory), *named)

    @asynccontextmanager
    async def _following(self, server: Server) -> AsyncIterator[None]:
        async def follow() -> None:
            async with aclosing(server.log()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    for phase in self.reading.feed(piece):
                        self._reach(phase)
            self.log_ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            yield
            tasks.cancel_scope.cancel()

    def _reach(self, phase: Phase) -> None:
        self.phases[phase] = round(self._seconds(), 1)
        self._tell(str(phase))

    def _tell(self, step: str) -> None:
        self.booting.progress(
            BootStep(build=self.build, context=self.context, step=step, seconds=self._seconds()),
        )

    def _seconds(self) -> float:
        return self.booting.clock.monotonic() - self.start


def _ending(boot: Boot) -> str:
    if boot.answered:
        return "done"
    cause = f": {boot.causes[0].title}" if boot.causes else ""
    return f"{boot.outcome}: {boot.reason}{cause}"


def _out_of_memory(limit: str | None) -> Cause:
    where = f"its limit of {limit}" if limit else "the memory of its host"
    return Cause(
        id="container_out_of_memory",
        layer=Layer.MEMORY,
        arch=None,
        title=f"The kernel killed a process of the container, which had reached {where}",
        line=0,
        excerpt="OOMKilled",
        meaning="The memory of the host, not of the GPU, ran out; the log just stops, or is empty.",
        advice="Give the container more memory, or the host fewer other tasks.",
        certainty=Certainty.CERTAIN,
    )
