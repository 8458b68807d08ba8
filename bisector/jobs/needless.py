"""``audit --try``: which workarounds of a profile are still needed. One boot with all, then one without each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from bisector.boot.profile import Profile
from bisector.diagnosis.audit import Workaround, audit
from bisector.diagnosis.launch import Launch, Setting
from bisector.jobs.boot import Booting
from bisector.model import Build
from bisector.results import Flag
from bisector.trials import MACHINE, Omission, Omissions

_HOURS: Final = 8 * 3600.0  # how long the lease is believed


def workarounds_in(profile: Profile, known: Sequence[Workaround]) -> tuple[Flag, ...]:
    """The settings of a profile that are only workarounds; ``line`` tells their place in it, from 1."""
    flags = [
        Setting(name=flag.name, value=None if flag.value is None else str(flag.value), kind="flag", line=line)
        for line, flag in enumerate(profile.flags, start=1)
    ]
    variables = [
        Setting(name=variable.name, value=variable.value, kind="environment", line=line)
        for line, variable in enumerate(profile.environment, start=1)
    ]
    return audit(Launch(settings=(*flags, *variables)), known).flags


def without(profile: Profile, flag: Flag) -> Profile:
    """The profile without one of its settings."""
    field = "flags" if flag.kind == "flag" else "environment"
    kept = tuple(each for place, each in enumerate(getattr(profile, field), start=1) if place != flag.line)
    return msgspec.structs.replace(profile, **{field: kept})


async def omissions(build: Build, known: Sequence[Workaround], *, booting: Booting) -> Omissions:
    """Boot a build at the profile's full context, once as it is and once without each workaround.

    Raises:
        UsageError: The build is no image.
        UnknownBuild: It is gone.
        Unavailable: Somebody else uses the machine, or the image cannot be had.
    """
    await booting.boots.abandon(await booting.engine.clear())
    image = await booting.pull(build)
    context = booting.profile.context.tokens
    tried = []
    async with booting.engine.hold(image, seconds=_HOURS):
        whole = await booting.boot(build, context)
        # Where it fails with all of them, a failure without one would prove nothing.
        for flag in workarounds_in(booting.profile, known) if whole.answered else ():
            less = replace(booting, profile=without(booting.profile, flag))
            boot = await less.boot(build, context)
            needed = None if boot.outcome in MACHINE else not boot.answered
            tried.append(Omission(flag=flag, needed=needed, boot=boot))
    return Omissions(profile=booting.profile.name, host=booting.engine.name, whole=whole, tried=tuple(tried))
