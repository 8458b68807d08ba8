from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from bisector.artifacts import bounds
from bisector.errors import UnknownBuild, Unreadable
from bisector.http import Http
from bisector.model import Digest, EvidenceKind, LocalPath
from bisector.ports import FoundFiles
from tests.fakes.opening import opener
from tests.fakes.wheels import SMALL_VLLM, Choosing, only, unpack, wheel

LIBRARY = "vllm/third_party/deep_gemm/_C.cpython-312-x86_64-linux-gnu.so"


async def read(path: Path, selection: Choosing | None = None) -> FoundFiles:
    async with opener(Http()).open(LocalPath(path=str(path)), digest=None) as artifact:
        found = await artifact.select(selection or Choosing())
        assert await artifact.digest() == found.digest
    return found


async def digest(path: Path) -> Digest:
    return (await read(path, only([]))).digest


# --- one library -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_C.abi3.so", "library-without-a-suffix"])
async def test_a_library_alone_is_listed_by_its_name(tmp_path: Path, name: str) -> None:
    content = b"\x7fELF" + bytes(100)
    (tmp_path / name).write_bytes(content)
    async with opener(Http()).open(LocalPath(path=str(tmp_path / name)), digest=None) as artifact:
        assert artifact.evidence is EvidenceKind.FILE
    assert await read(tmp_path / name) == FoundFiles(
        listed={name: 104}, contents={name: content}, digest=Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")
    )


async def test_a_library_that_nobody_asks_for_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "_C.so").write_bytes(b"\x7fELF")
    found = await read(tmp_path / "_C.so", Choosing(wants=lambda _: False))
    assert (found.listed, found.contents) == ({}, {})


async def test_a_library_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "_C.so").open("wb") as file:
        file.truncate(bounds.LARGEST_FILE + 1)
    with pytest.raises(Unreadable, match="more than bisector reads of one file"):
        await read(tmp_path / "_C.so")


# --- directories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unpacked_to", "named"),
    [
        pytest.param("", "", id="an unpacked wheel"),
        pytest.param("venv/lib/python3.12/site-packages", "venv", id="a virtual environment"),
        pytest.param("root/usr/local/lib/python3.12/dist-packages", "root", id="an unpacked image"),
        pytest.param("venv/lib/python3.12/site-packages", "venv/lib/python3.12/site-packages", id="site-packages"),
    ],
)
async def test_an_installation_is_read_as_a_wheel_would_be(tmp_path: Path, unpacked_to: str, named: str) -> None:
    unpack(SMALL_VLLM, tmp_path / unpacked_to)
    found = await read(tmp_path / named)
    assert found.listed == {path: len(content) for path, content in SMALL_VLLM.items()}
    assert list(found.listed) == sorted(SMALL_VLLM)
    assert found.contents == SMALL_VLLM


@pytest.mark.parametrize("site_packages", ["site-packages", "somewhere"])
@pytest.mark.parametrize("named", ["vllm", "vllm/third_party/deep_gemm"])
async def test_a_package_in_an_installation_keeps_its_place(tmp_path: Path, named: str, site_packages: str) -> None:
    unpack(SMALL_VLLM, tmp_path / site_packages)
    found = await read(tmp_path / site_packages / named)
    assert found.contents == {path: content for path, content in SMALL_VLLM.items() if path.startswith(f"{named}/")}


async def test_packages_out_of_their_place_are_known_by_what_they_are(tmp_path: Path) -> None:
    unpack({"deep_gemm/_C.so": b"1"}, tmp_path)
    assert list((await read(tmp_path / "deep_gemm")).listed) == ["deep_gemm/_C.so"]
    unpack({"copy/third_party/deep_gemm/_C.so": b"1"}, tmp_path)
    assert list((await read(tmp_path / "copy")).listed) == ["vllm/third_party/deep_gemm/_C.so"]


async def test_of_several_installations_the_one_with_vllm_counts(tmp_path: Path) -> None:
    unpack({"usr/lib/python3/dist-packages/apt/__init__.py": b""}, tmp_path)
    unpack(SMALL_VLLM, tmp_path / "usr/local/lib/python3.12/dist-packages")
    assert (await read(tmp_path)).contents == SMALL_VLLM


async def test_an_installation_without_vllm_is_an_installation(tmp_path: Path) -> None:
    unpack({"lib/python3.12/site-packages/pip/__init__.py": b""}, tmp_path)
    assert list((await read(tmp_path)).listed) == ["pip/__init__.py"]


async def test_a_directory_without_any_installation_is_not_taken_for_one_without_kernels(tmp_path: Path) -> None:
    unpack({"notes/today.txt": b""}, tmp_path)
    with pytest.raises(Unreadable, match="holds neither vllm, deep_gemm nor site-packages"):
        await read(tmp_path)


async def test_links_do_not_lead_out_of_the_directory(tmp_path: Path) -> None:
    unpack(SMALL_VLLM, tmp_path / "unpacked")
    (tmp_path / "secret.so").write_bytes(b"secret")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.so").write_bytes(b"secret")
    inside = tmp_path / "unpacked" / "vllm"
    (inside / "out.so").symlink_to(tmp_path / "secret.so")
    (inside / "up.so").symlink_to("../../secret.so")
    (inside / "all").symlink_to(tmp_path / "secrets")
    (inside / "loop").symlink_to(".")
    (inside / "nowhere.so").symlink_to("nothing")
    (inside / "self.so").symlink_to("self.so")
    (inside / "alias.so").symlink_to("_C.abi3.so")
    os.mkfifo(inside / "pipe.so")
    found = await read(tmp_path / "unpacked")
    assert found.contents == {**SMALL_VLLM, "vllm/alias.so": SMALL_VLLM["vllm/_C.abi3.so"]}


async def test_a_name_that_cannot_be_told_is_passed_over(tmp_path: Path) -> None:
    unpack(SMALL_VLLM, tmp_path)
    unpack({os.fsdecode(b"vllm/\xff.so"): b""}, tmp_path)
    assert (await read(tmp_path)).contents == SMALL_VLLM


async def test_the_digest_changes_with_everything_an_observation_can_depend_on(tmp_path: Path) -> None:
    first = await digest(unpack(SMALL_VLLM, tmp_path / "first"))
    assert await digest(unpack(SMALL_VLLM, tmp_path / "second")) == first
    for number, path in enumerate(sorted(set(SMALL_VLLM) - {"vllm/__init__.py"})):
        # As long as before: a size alone would not tell.
        changed = {**SMALL_VLLM, path: SMALL_VLLM[path][:-1] + b"?"}
        assert await digest(unpack(changed, tmp_path / f"changed-{number}")) != first, path
    more = {**SMALL_VLLM, "torch/lib/libtorch.so": b"1"}
    assert await digest(unpack(more, tmp_path / "more")) != first


async def test_the_digest_does_not_change_with_the_time_or_with_caches(tmp_path: Path) -> None:
    before = await digest(unpack(SMALL_VLLM, tmp_path))
    os.utime(tmp_path / LIBRARY, (1, 1))
    unpack({"vllm/__pycache__/_version.cpython-312.pyc": b"1"}, tmp_path)
    assert await digest(tmp_path) == before


# --- what cannot be read ---------------------------------------------------------------------------------------------


async def test_what_is_not_there_is_an_unknown_build(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "nothing.whl", tmp_path / "file" / "below.so"):
        with pytest.raises(UnknownBuild, match="There is no "):
            await read(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello"])
async def test_what_is_no_build_is_unreadable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    with pytest.raises(Unreadable, match="neither a wheel, a shared library nor a directory") as caught:
        await read(tmp_path / "notes.txt")
    assert ".whl" in caught.value.hint


async def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    with pytest.raises(Unreadable, match="neither a wheel"):
        await read(tmp_path / "pipe.so")


async def test_a_wheel_that_is_none_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "vllm.whl").write_bytes(b"no zip")
    with pytest.raises(Unreadable, match=r"vllm\.whl is not a zip archive"):
        await read(tmp_path / "vllm.whl")


async def test_a_path_the_system_refuses_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "loop.so").symlink_to("loop.so")
    with pytest.raises(Unreadable, match=r"loop\.so cannot be read: Too many levels of symbolic links"):
        await read(tmp_path / "loop.so")


@pytest.mark.parametrize("closed", ["vllm.whl", "_C.so", "tree/vllm", f"tree/{LIBRARY}"])
async def test_what_may_not_be_read_is_unreadable(tmp_path: Path, closed: str) -> None:
    (tmp_path / "vllm.whl").write_bytes(wheel(SMALL_VLLM))
    (tmp_path / "_C.so").write_bytes(b"\x7fELF")
    unpack(SMALL_VLLM, tmp_path / "tree")
    (tmp_path / closed).chmod(0)
    if os.access(tmp_path / closed, os.R_OK):
        pytest.skip("this user may read everything")
    try:
        with pytest.raises(Unreadable, match="cannot be read: Permission denied"):
            await read(tmp_path / closed.split("/", maxsplit=1)[0])
    finally:
        (tmp_path / closed).chmod(0o700)
