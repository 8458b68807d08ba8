"""The rooms of a proof on the hardware: an engine, a profile, and what knows the causes in a log."""

from __future__ import annotations

from anyio import to_thread

from bisector import arch
from bisector.boot.engine import DockerEngine
from bisector.boot.host import connect
from bisector.boot.profile import Profile
from bisector.diagnosis import engine, signatures
from bisector.jobs.boot import Booting
from bisector.jobs.confirm import Proof
from bisector.reference import gpus
from bisector.results import Diagnosis, Question
from bisector.wiring.rooms import Rooms


async def open_proof(rooms: Rooms, profile: Profile, *, host: str, run: str | None) -> Proof:
    """What ``confirm`` is given.

    Args:
        rooms: The other rooms.
        profile: How the model is served.
        host: Which engine, as spelled; it is let go of together with the rooms.
        run: The run that is recorded.

    Raises:
        UsageError: The spelling means no engine.
        Unavailable: The engine does not answer.
        UnknownArchitecture: The profile's is none.
    """
    known = gpus()
    device = arch.parse(profile.arch, known)
    served = arch.deepgemm_arch(device)
    question = Question(device=device, served_by=served.by if served else device, note=served.note if served else None)
    catalogue = signatures.shipped()

    def diagnose(log: bytes) -> Diagnosis:
        return engine.diagnose([log], catalogue, known)

    machine = await to_thread.run_sync(connect, host)
    rooms.closing.callback(machine.close)
    clock = rooms.probe.clock
    booting = Booting(
        engine=DockerEngine(machine, clock=clock, gpus=known),
        boots=rooms.boots,
        diagnose=diagnose,
        clock=clock,
        progress=rooms.probe.progress,
        profile=profile,
        run=run,
    )
    return Proof(booting=booting, question=question)
