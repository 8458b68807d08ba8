"""What happens while a job runs, on stderr: one moving line at a terminal, plain lines with ``-v``, else nothing."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from bisector.ports import BootStep, Event, Listed, Narrowed, Probed, Probing, RunBegan
from bisector.report.words import MARKS, count, safe, short


class ConsoleProgress:
    """A ``ports.Progress`` for people.

    Args:
        console: Writes to stderr.
        verbose: Print a line for each event, also where there is no terminal.
        quiet: Say nothing at all.
    """

    def __init__(self, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
        self._console = console
        self._verbose = verbose and not quiet
        self._quiet = quiet
        live = console.is_terminal and not quiet and not verbose
        self._status: Status | None = Status("", console=console) if live else None
        self._reading: list[str] = []
        self.run: str | None = None
        """The id under which the question is recorded, once it is."""
        self._done = 0

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def __call__(self, event: Event) -> None:
        """Show the event."""
        if isinstance(event, RunBegan):
            self.run = event.run
        line = self._line(event)
        # A boot takes minutes and has a dozen steps: they are news, with and without -v.
        news = isinstance(event, BootStep) and not event.passing and not self._quiet
        if (self._verbose or news) and line is not None:
            self._console.print(line, soft_wrap=True)
        if self._status:
            self._status.update(self._moving(event))

    def _line(self, event: Event) -> Text | None:
        match event:
            case RunBegan(run=run):
                return Text(f"run {safe(run)}")
            case Listed(source=source, builds=builds):
                return Text(f"listed {safe(source)}: {count(builds, 'build')}")
            case Probing(build=build):
                return Text(f"reading {short(build.spec)}")
            case Probed(build=build, verdict=verdict, from_history=from_history):
                where = " (history)" if from_history else ""
                return Text.assemble(MARKS[verdict.answer], f" {short(build.id)}: {safe(verdict.reason)}{where}")
            case Narrowed(before=before, after=after, between=between):
                return Text(f"between {short(before)} and {short(after)}: {count(between, 'build')}")
            case BootStep():
                return _boot_step(event)

    def _moving(self, event: Event) -> Text:
        match event:
            case RunBegan():
                return Text("")
            case Listed(source=source, builds=builds):
                return Text(f"{safe(source)}: {count(builds, 'build')}")
            case Probing(build=build):
                self._reading.append(build.id)
            case Probed(build=build):
                self._reading = [name for name in self._reading if name != build.id]
                self._done += 1
            case Narrowed(before=before, after=after, steps_left=steps_left):
                return Text(f"between {short(before)} and {short(after)}, about {count(steps_left, 'step')} left")
            case BootStep():
                return _boot_step(event)
        reading = ", ".join(short(name) for name in self._reading[:4])
        return Text(f"{count(self._done, 'build')} done" + (f", reading {reading}" if reading else ""))


def _boot_step(event: BootStep) -> Text:
    where = f" at {event.context:,}" if event.context else ""
    return Text(f"{event.seconds:7.1f} s  {short(event.build.id)}{where}: {safe(event.step)}")
