"""Nights in the lab: the command line with a clock that is moved on, and receivers that remember."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import pytest

from bisector.cli.app import run
from bisector.errors import BisectorError
from tests.lab.issues import TOKEN
from tests.lab.lab import Lab
from tests.lab.scenario import Scenario
from tests.nightly.webhooks import Webhooks

STORY = Scenario(first=date(2026, 7, 27), last=date(2026, 8, 14), undated=None, pull_limit=10_000)
LOSS, RECOVERY, STOP = date(2026, 7, 31), date(2026, 8, 13), date(2026, 8, 17)

_NEEDING_THE_LAB = ("test_nights.py", "test_killed.py", "test_receivers.py", "test_refused.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name in _NEEDING_THE_LAB:
            item.add_marker(pytest.mark.registry)
            item.add_marker(pytest.mark.online)
        if Path(__file__).parent in item.path.parents:
            # apprise asks for it on every Python that still has it
            item.add_marker(pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"))


def evening(day: date) -> datetime:
    """When the nightly job runs: long after the night's build was pushed."""
    return datetime.combine(day, time_of_day(23, tzinfo=UTC))


@dataclass(slots=True)
class LabClock:
    """The lab's time; ``monotonic`` is real."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass(slots=True)
class Cron:
    """Runs bisector as cron does, at the lab's time.

    Attributes:
        lab: Where it is pointed.
        webhooks: Who is told.
        posts: The [[post]] sections.
        watch: The [[watch]] sections.
    """

    folder: Path
    capsys: pytest.CaptureFixture[str]
    lab: Lab
    webhooks: Webhooks
    posts: list[str] = field(default_factory=list)
    watch: str = '[[watch]]\nsource = "dockerhub:vllm/vllm-openai"\narchs = ["sm120"]\n'

    @property
    def db(self) -> Path:
        return self.folder / "history.db"

    def write_config(self) -> Path:
        path = self.folder / "config.toml"
        # Nobody asks the package index, so pip need not be asked where it is.
        index = '[pypi]\nindex = "http://127.0.0.1:9/simple/"\n'
        path.write_text("\n".join([self.lab.config_toml(), index, self.watch, *self.posts]))
        return path

    def __call__(self, *arguments: str) -> Answer:
        command = ["--config", str(self.write_config()), "--db", str(self.db), *arguments]
        code = run(command, clock=LabClock(self.lab.now))
        out, err = self.capsys.readouterr()
        return Answer(exit_code=code, out=out, err=err)

    def night(self, day: date, *arguments: str) -> Answer:
        """The nightly job in the evening of a day."""
        self.lab.move_to(evening(day))
        return self("nightly", *arguments)

    def nights(self, first: date, last: date) -> dict[date, Answer]:
        """The nightly job, evening after evening."""
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        return {day: self.night(day) for day in days}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the history answers."""
        with closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()


def to_webhook(name: str, address: str) -> str:
    """A [[post]] section."""
    return f'[[post]]\nkind = "apprise"\nname = "{name}"\nurl = "{address}"\n'


@pytest.fixture(scope="module")
def story() -> Iterator[Lab]:
    """The lab, once for all tests of a file; each moves it to where it begins."""
    if shutil.which("docker-registry") is None:
        pytest.skip("Debian's docker-registry is not installed (apt-get install docker-registry)")
    try:
        lab = Lab(STORY)
        lab.start()
    except BisectorError as error:
        pytest.skip(f"the lab needs the package index: {error.message}")
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def read_before(story: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of the evening before the loss, in which everything was read and nothing told."""
    folder = tmp_path_factory.mktemp("before")
    config = folder / "config.toml"
    config.write_text(story.config_toml() + '[pypi]\nindex = "http://127.0.0.1:9/simple/"\n')
    story.move_to(evening(LOSS - timedelta(days=1)))
    clock = LabClock(story.now)
    assert run(["--config", str(config), "--db", str(folder / "history.db"), "-q", "harvest"], clock=clock) == 0
    return folder / "history.db"


@pytest.fixture
def webhooks() -> Iterator[Webhooks]:
    with closing(Webhooks()) as receiver:
        yield receiver


@pytest.fixture
def cron(
    story: Lab,
    read_before: Path,
    webhooks: Webhooks,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Cron:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker-configuration"))
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    story.github.issues.all.clear()
    for site in (story.hub.site, story.front.site, story.github.site):
        site.requests.clear()
    capsys.readouterr()
    begun = Cron(tmp_path, capsys, story, webhooks, posts=[to_webhook("team", webhooks.address)])
    shutil.copy(read_before, begun.db)
    return begun
