from __future__ import annotations

from bisector.errors import ConfigError, Unavailable
from bisector.jobs.doctor import Examination, doctor
from bisector.results import HealthState
from tests.fakes.clock import SteppingClock


async def fine() -> str:
    return "works"


async def broken() -> str:
    raise Unavailable("no answer", hint="Plug it in.")


async def unset() -> str:
    raise ConfigError("nothing is configured")


async def test_what_does_not_work_comes_with_what_to_do_and_does_not_hide_the_rest() -> None:
    checkup = await doctor(
        [
            Examination(subject="a", attempt=broken, needed_for="half"),
            Examination(subject="b", attempt=fine, needed_for="all", vital=True),
            Examination(subject="c", attempt=unset, needed_for="little"),
        ],
        SteppingClock(),
    )
    assert [(health.subject, health.state) for health in checkup.health] == [
        ("a", HealthState.WARN),
        ("b", HealthState.OK),
        ("c", HealthState.WARN),
    ]
    assert checkup.health[0].hint == "Plug it in."
    assert checkup.exit_code == 0


async def test_without_something_vital_nothing_is_well() -> None:
    checkup = await doctor([Examination(subject="a", attempt=broken, needed_for="all", vital=True)], SteppingClock())
    assert checkup.exit_code == 4
