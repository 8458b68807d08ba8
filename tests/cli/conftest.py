"""A little index with the same story as the real one, and bisector's command line pointed at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes.answering import Answer, answered
from tests.fakes.index import Index, serving
from tests.fakes.wheels import wheel
from tests.kernels.builds import build as files_of

STORY: tuple[tuple[str, str, Sequence[str]], ...] = (
    ("0.24.0", "2026-06-30", ("sm90", "sm100")),
    ("0.25.0", "2026-07-11", ("sm90", "sm100", "sm120")),
    ("0.26.0", "2026-07-25", ("sm90", "sm100", "sm120")),
    ("0.27.0", "2026-08-10", ("sm90", "sm100")),
    ("0.27.1", "2026-08-11", ("sm90", "sm100")),
    ("0.28.0", "2026-08-26", ("sm90", "sm100", "sm120")),
)


@dataclass(slots=True)
class CommandLine:
    """Runs bisector with a configuration and a history of its own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    index: Index
    config: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str) -> Answer:
        path = self.folder / "config.toml"
        settings = "\n".join(f"{key} = {value}" for key, value in self.config.items())
        sources = "".join(f'[{name}]\nsource = "pypi:vllm"\n' for name in ("check", "inspect", "diff", "builds"))
        path.write_text(f'{settings}\n{sources}[pypi]\nindex = "{self.index.url}"\n')
        return answered(self.capsys, "--config", str(path), "--db", str(self.folder / "history.db"), *arguments)


def add_release(index: Index, release: str, uploaded: str, archs: Sequence[str], **changes: bytes) -> None:
    version = f"__version__ = '{release}'\n__commit_id__ = 'g{release.replace('.', 'a'):0>9}'\n".encode()
    content = wheel({**files_of(*archs), "vllm/_version.py": version, **changes})
    name = f"vllm-{release}-cp38-abi3-manylinux_2_28_x86_64.whl"
    index.add(name, content, uploaded=f"{uploaded}T10:00:00.000000Z")


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as served:
        for release, uploaded, archs in STORY:
            add_release(served, release, uploaded, archs)
        yield served


@pytest.fixture
def bisector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], index: Index, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "80")
    return CommandLine(tmp_path, capsys, index)
