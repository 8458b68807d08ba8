from __future__ import annotations

import pytest

from bisector.boot.hardware import Machine, Need, fitting_devices, read_gpus, shortcomings
from bisector.reference import gpus

# nvidia-smi --query-gpu=index,name,compute_cap,memory.total,memory.used --format=csv,noheader,nounits
TWO_PRO = """\
0, NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 12.0, 97887, 18
1, NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 12.0, 97887, 18
"""
ONE_BUSY = TWO_PRO.replace("97887, 18\n1", "97887, 60000\n1")
MIXED = "0, NVIDIA GeForce RTX 4090, 8.9, 24564, 10\n1, NVIDIA RTX PRO 6000 Blackwell Server Edition, 12.0, 97887, 4\n"
SPARK = "0, NVIDIA GB10, 12.1, [N/A], [N/A]\n"
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
WANTED = Need(gpus=2, arch="sm120", gpu_gib=90)


def machine(text: str) -> Machine:
    return Machine(gpus=read_gpus(text, gpus()))


def test_gpus_are_read() -> None:
    first, second = read_gpus(TWO_PRO, gpus())
    assert (first.index, second.index, first.arch) == (0, 1, "sm120")
    assert first.free_gib == pytest.approx((97887 - 18) / 1024)


def test_a_capability_the_driver_does_not_tell_is_known_by_the_name() -> None:
    (gpu,) = read_gpus("0, NVIDIA GeForce RTX 5090, [N/A], 32607, 1", gpus())
    assert gpu.arch == "sm120"


def test_a_device_that_shares_the_hosts_memory_has_none_of_its_own() -> None:
    (gpu,) = read_gpus(SPARK, gpus())
    assert (gpu.arch, gpu.total_gib) == ("sm121", 0.0)


@pytest.mark.parametrize("text", ["", FAILED, "a, b, c\n", "0, x\n"])
def test_what_is_no_list_of_gpus_is_none(text: str) -> None:
    assert read_gpus(text, gpus()) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO_PRO, []),
        (ONE_BUSY, ["90 GiB must be free on each of 2 GPUs; free are 37.0, 95.6"]),
        (MIXED, ["1 fitting GPUs are there"]),
        ("", ["0 fitting GPUs are there (none), 2 of sm120 are needed"]),
    ],
)
def test_whether_the_gpus_are_enough(text: str, expected: list[str]) -> None:
    found = shortcomings(machine(text), WANTED)
    assert len(found) == len(expected)
    assert all(sentence.startswith(beginning) for sentence, beginning in zip(found, expected, strict=True))


def test_a_profile_without_gpus_asks_for_none() -> None:
    assert shortcomings(Machine(), Need()) == ()


def test_everything_that_is_missing_is_named() -> None:
    poor = Machine(gpu_trouble="no driver", free_memory_gib=1.0, free_disk_gib=2.0, missing=("/models/x",))
    assert shortcomings(poor, Need(gpus=1, memory_gib=32, disk_gib=40)) == (
        "no GPU can be used: no driver",
        "1.0 GiB of memory are free, 32 are needed",
        "the engine has 2.0 GiB of room, 40 are needed",
        "nothing can be read at /models/x",
    )


def test_the_fitting_devices_are_used() -> None:
    assert fitting_devices(machine(MIXED), Need(gpus=1, arch="sm120")) == (1,)
    assert fitting_devices(machine(TWO_PRO), WANTED) == (0, 1)
