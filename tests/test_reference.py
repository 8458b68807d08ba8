"""The shipped data, from a checkout and from the layout of an installed wheel."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from bisector.arch import KNOWN
from bisector.errors import ConfigError
from bisector.reference import gpus, load

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The package directory of an installed wheel: the data inside it, nothing beside it."""
    package = tmp_path / "site-packages" / "bisector"
    shutil.copytree(DATA, package / "data")
    return package


def write(package: Path, text: str) -> None:
    (package / "data" / "gpus.toml").write_text(text, encoding="utf-8")


def test_a_checkout_has_its_data_beside_the_package() -> None:
    assert gpus()["GeForce RTX 5090"] == "sm120"
    assert load("gpus") == tomllib.loads((DATA / "gpus.toml").read_text(encoding="utf-8"))


def test_a_wheel_has_the_same_data_inside_the_package(wheel: Path) -> None:
    assert load("gpus", package=wheel) == load("gpus")
    assert gpus(package=wheel) == gpus()


def test_the_packaged_copy_comes_before_a_directory_beside_it(wheel: Path) -> None:
    stranger = wheel.parent / "data"
    stranger.mkdir()
    (stranger / "gpus.toml").write_text('[sm90]\nnames = ["of another package"]\n', encoding="utf-8")
    assert gpus(package=wheel) == gpus()


def test_every_gpu_stands_once() -> None:
    counted = Counter(gpu.lower() for group in load("gpus").values() for gpu in group["names"])
    assert [gpu for gpu, times in counted.items() if times > 1] == []


def test_the_architectures_stand_in_order_and_are_written_one_way() -> None:
    order = [arch.name for arch in KNOWN]
    groups = list(load("gpus"))
    assert groups == sorted(groups, key=order.index)


def test_nobody_can_change_the_table() -> None:
    with pytest.raises(TypeError):
        gpus()["RTX 9090"] = "sm120"  # type: ignore[index] # the refusal is what is tested


def test_missing_data_asks_for_a_new_installation(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gpus\.toml is not there") as raised:
        gpus(package=tmp_path / "site-packages" / "bisector")
    assert "Reinstall" in raised.value.hint


@pytest.mark.parametrize("text", ["[sm90", 'sm90 = "', "\x00"])
def test_data_that_is_not_toml_is_damaged(wheel: Path, text: str) -> None:
    write(wheel, text)
    with pytest.raises(ConfigError, match=r"gpus\.toml cannot be read") as raised:
        load("gpus", package=wheel)
    assert "Reinstall" in raised.value.hint


def test_data_that_is_not_text_is_damaged(wheel: Path) -> None:
    (wheel / "data" / "gpus.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load("gpus", package=wheel)


@pytest.mark.parametrize("text", ["[sm90]", "[sm90]\nnames = 1", "[sm90]\nnames = [1]", 'sm90 = "H100"'])
def test_a_table_without_names_is_damaged(wheel: Path, text: str) -> None:
    write(wheel, text)
    with pytest.raises(ConfigError, match="no list of names under 'sm90'"):
        gpus(package=wheel)


def test_a_table_of_an_unknown_architecture_is_damaged(wheel: Path) -> None:
    write(wheel, '[sm125]\nnames = ["X"]')
    with pytest.raises(ConfigError, match="names the architecture 'sm125'"):
        gpus(package=wheel)
