from __future__ import annotations

import os
from pathlib import Path

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from bisector.streams.pip_index import PipIndex, pip_index


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which pip knows nothing but what a test writes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_", "HOME"))}
    return kept | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}


def configured(environ: dict[str, str], text: str) -> None:
    path = Path(environ["HOME"]) / "pip.conf"
    path.write_text(text)
    environ["PIP_CONFIG_FILE"] = str(path)


async def test_the_environment_is_believed_without_asking_pip(environ: dict[str, str]) -> None:
    environ |= {"PIP_INDEX_URL": "https://index.example/simple", "PIP_CERT": "ca.pem", "PATH": ""}
    assert await pip_index(environ) == PipIndex(url="https://index.example/simple", ca_file="ca.pem")


async def test_pip_tells_its_index_and_certificates(environ: dict[str, str]) -> None:
    configured(environ, "[global]\nindex-url = https://user:p%40ss'word@index.example/simple\ncert = /etc/ca.pem\n")
    found = await pip_index(environ)
    assert found == PipIndex(url="https://user:p%40ss'word@index.example/simple", ca_file="/etc/ca.pem")


async def test_a_command_of_pip_goes_before_what_holds_for_all(environ: dict[str, str]) -> None:
    configured(
        environ,
        "[global]\nindex-url = https://global.example/\n"
        "[download]\nindex-url = https://download.example/\n"
        "[install]\nindex-url = https://install.example/\n",
    )
    assert (await pip_index(environ)).url == "https://install.example/"


async def test_certificates_are_asked_for_even_when_the_index_is_known(environ: dict[str, str]) -> None:
    configured(environ, "[global]\nindex-url = https://file.example/\ncert = /etc/ca.pem\n")
    environ["PIP_INDEX_URL"] = "https://environment.example/"
    assert await pip_index(environ) == PipIndex(url="https://environment.example/", ca_file="/etc/ca.pem")


async def test_when_pip_has_nothing_to_say_it_is_the_public_index(environ: dict[str, str]) -> None:
    # With this name pip reads no file at all, not even the machine's.
    environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "https://more.example/"}
    assert await pip_index(environ) == PipIndex(url=PYPI_SIMPLE_ENDPOINT)


async def test_when_pip_cannot_read_its_configuration_it_is_the_public_index(environ: dict[str, str]) -> None:
    configured(environ, "no configuration at all")
    assert await pip_index(environ) == PipIndex(url=PYPI_SIMPLE_ENDPOINT)


async def test_without_pip_it_is_the_public_index(environ: dict[str, str], tmp_path: Path) -> None:
    # A module of that name that is found first and fails stands for an interpreter without pip.
    (tmp_path / "pip.py").write_text("raise ImportError('No module named pip')")
    environ["PYTHONPATH"] = str(tmp_path)
    assert (await pip_index(environ)).url == PYPI_SIMPLE_ENDPOINT
