"""Images of a real Docker engine: what layers add up to, what is told of them, and what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import posixpath
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CalledProcessError
from threading import Event

import anyio
import anyio.to_thread
import pytest

from bisector.artifacts.engine import engine_image
from bisector.artifacts.engine_images import EngineImages
from bisector.artifacts.image.artifact import ImageArtifact
from bisector.errors import Unavailable, UnknownBuild, Unreadable
from bisector.model import EngineImage, EvidenceKind, Platform
from bisector.streams.engine import EngineStream
from tests.fakes.images import (
    ROOT,
    Item,
    MemorySource,
    directory,
    docker_archive,
    file,
    hardlink,
    image,
    opaque,
    pack,
    symlink,
    whiteout,
)
from tests.fakes.wheels import SMALL_VLLM, Choosing, only
from tests.lab.engine import DockerEngine

pytestmark = pytest.mark.docker

AMD64 = Platform("linux/amd64")
V = f"{ROOT}/vllm"
NAME = "bisector/crafted:latest"
EVERYTHING = Choosing(wants=lambda path: path.startswith("vllm/"), opens=lambda path: path.startswith("vllm/"))
LIBRARY, OTHER = file(f"{V}/deep/_C.so", b"lower"), file(f"{V}/other", b"other")
REAL = file(f"{V}/real/_C.so", b"real")
VLLM = [file(f"{ROOT}/{path}", content) for path, content in sorted(SMALL_VLLM.items())]

STACKS: Mapping[str, Sequence[Sequence[Item]]] = {
    "the top layer wins": [[LIBRARY], [file(f"{V}/deep/_C.so", b"upper")]],
    "a whiteout of a file": [[LIBRARY, OTHER], [whiteout(f"{V}/deep/_C.so")]],
    "a whiteout of a directory": [[LIBRARY, OTHER], [whiteout(f"{V}/deep")]],
    "a whiteout above all of it": [[LIBRARY], [whiteout("usr/local/lib"), file("etc/x")]],
    "removed and back": [[LIBRARY, OTHER], [whiteout(f"{V}/deep")], [file(f"{V}/deep/new", b"new")]],
    "opaque after its sibling": [[LIBRARY, OTHER], [file(f"{V}/deep/own", b"own"), opaque(f"{V}/deep")]],
    "opaque before its sibling": [[LIBRARY, OTHER], [opaque(f"{V}/deep"), file(f"{V}/deep/own", b"own")]],
    "opaque in the middle": [[LIBRARY], [opaque(f"{V}/deep")], [file(f"{V}/deep/top", b"top"), OTHER]],
    "a file for a directory": [[LIBRARY, OTHER], [file(f"{V}/deep", b"file")]],
    "a directory for a file": [[file(f"{V}/deep", b"file")], [LIBRARY]],
    "an empty directory for a file": [[file(f"{V}/deep", b"file"), OTHER], [directory(f"{V}/deep/")]],
    "a link for a directory": [[LIBRARY], [REAL, symlink(f"{V}/deep", "real")]],
    "a link for a directory, absolute": [[LIBRARY], [REAL, symlink(f"{V}/deep", f"/{V}/real")]],
    "a link for a directory, and back": [[LIBRARY, REAL], [symlink(f"{V}/deep", "real")], [LIBRARY]],
    "links to links": [[REAL], [symlink(f"{V}/deep", "hop"), symlink(f"{V}/hop", "../vllm/./real")]],
    "a link out of the environment": [
        [file("opt/kernels/_C.so", b"opt"), OTHER],
        [symlink(f"{V}/deep", "/opt/kernels")],
    ],
    "a link through a link": [
        [symlink("bin", "usr/bin"), file("usr/bin/deep/_C.so", b"bin"), OTHER],
        [symlink(f"{V}/deep", "/bin/deep")],
    ],
    "a linked file": [
        [OTHER, file("opt/file", b"opt")],
        [symlink(f"{V}/here", "/opt/file"), symlink(f"{V}/no", "gone")],
    ],
    "a linked package": [[file("opt/vllm/_C.so", b"opt")], [symlink(V, "/opt/vllm"), file("etc/x")]],
    "a linked environment": [[file("opt/packages/vllm/_C.so", b"opt")], [symlink(ROOT, "/opt/packages")]],
    "links in a circle": [[OTHER], [symlink(f"{V}/a", "b"), symlink(f"{V}/b", "a"), symlink(f"{V}/c", ".")]],
    "dots and slashes": [[file(f"./{V}/./deep//_C.so", b"x")], [file(f"/{V}/p/q", b"pq")]],
    "a hardlink in its layer": [[OTHER, hardlink(f"{V}/second", f"{V}/other")], [file("etc/x")]],
    "a hardlink to elsewhere": [[file("opt/file", b"one"), hardlink(f"{V}/a", "opt/file")], [file("opt/file", b"two")]],
    "a hardlink to a link": [[LIBRARY, symlink(f"{V}/a", "deep"), hardlink(f"{V}/b", f"{V}/a")]],
    "long names": [[file(f"{V}/{'long/' * 30}{'name' * 40}", b"long")]],
}


@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
async def test_layers_add_up_to_what_docker_shows(the_engine: DockerEngine, stack: Sequence[Sequence[Item]]) -> None:
    layers = [pack([file("etc/hostname")]), *map(pack, stack)]
    the_engine.docker("load", given=docker_archive(layers, NAME))
    made = image(layers, how="tar")
    by_layers = (await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).select(EVERYTHING)).contents
    async with engine_image(NAME) as artifact:
        by_engine = (await artifact.select(EVERYTHING)).contents
    named = {posixpath.relpath(f"/{item.path}", f"/{ROOT}") for layer in stack for item in layer}
    asked = sorted({*named, *by_layers, "vllm/deep/_C.so"})
    shown = copied(the_engine, asked)
    assert by_layers == {path: content for path, content in shown.items() if path.startswith("vllm/")}
    assert by_engine == by_layers


def copied(engine: DockerEngine, paths: Sequence[str]) -> Mapping[str, bytes]:
    """What `docker create` and `docker cp` show: the files at these paths, and all that lie below `vllm`."""
    container = engine.docker("create", NAME, "true").decode().strip()
    found: dict[str, bytes] = {}
    try:
        for path in ("vllm/", *paths):
            with contextlib.suppress(CalledProcessError):
                archive = engine.docker("cp", "--follow-link", f"{container}:/{ROOT}/{path}", "-")
                found |= files(archive, path)
    finally:
        engine.docker("rm", container)
    return found


def files(archive: bytes, path: str) -> Mapping[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        members = [(member, opened.extractfile(member)) for member in opened if member.isreg() or member.islnk()]
        contents = {member.name: content.read() for member, content in members if content}
    if path == "vllm/":
        return {f"vllm/{name.partition('/')[2]}": content for name, content in contents.items()}
    itself = [content for name, content in contents.items() if "/" not in name]
    return {path: itself[0]} if itself else {}


REFUSED: Mapping[str, Sequence[Item]] = {
    "a path twice": [LIBRARY, LIBRARY],
    "a file held and removed": [LIBRARY, whiteout(f"{V}/deep/_C.so")],
    "a hardlink to nothing": [LIBRARY, hardlink(f"{V}/a", "opt/nothing")],
}


@pytest.mark.parametrize("layer", REFUSED.values(), ids=REFUSED)
async def test_what_docker_refuses_is_refused(the_engine: DockerEngine, layer: Sequence[Item]) -> None:
    layers = [pack([file("opt/other")]), pack(layer)]
    made = image(layers, how="tar")
    with pytest.raises(Unreadable):
        await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).select(EVERYTHING)
    with pytest.raises(CalledProcessError):
        the_engine.docker("load", given=docker_archive(layers, NAME))


# --- one image -------------------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(the_engine: DockerEngine) -> DockerEngine:
    settings = {"Env": ["PATH=/usr/local/bin:/usr/bin"], "Labels": {"org.opencontainers.image.revision": "c" * 40}}
    layers = [pack([symlink("bin", "usr/bin")]), pack(VLLM)]
    the_engine.docker("load", given=docker_archive(layers, "vllm/vllm-openai:nightly", config=settings))
    return the_engine


@pytest.mark.usefixtures("loaded")
async def test_an_image_is_read_as_it_would_be_run() -> None:
    async with engine_image("vllm/vllm-openai:nightly") as artifact:
        assert artifact.evidence is EvidenceKind.IMAGE
        found = await artifact.select(Choosing())
        assert found.contents == SMALL_VLLM
        assert found.digest == await artifact.digest()
        wanted = ["vllm/_version.py", "vllm-0.26.0.dist-info/METADATA"]
        assert (await artifact.select(only(wanted))).contents == {path: SMALL_VLLM[path] for path in wanted}


async def test_only_what_matters_is_asked_for(the_engine: DockerEngine) -> None:
    aside = [file(f"{ROOT}/torch/lib.so", bytes(5_000_000)), file(f"{V}/zzz/more", bytes(5_000_000))]
    the_engine.docker("load", given=docker_archive([pack([*VLLM, *aside])], NAME))

    class Enough(Choosing):
        def satisfied(self, listed: object, last: str) -> bool:
            del listed
            return last.startswith("vllm/zzz")

    async with engine_image(NAME) as artifact:
        found = await artifact.select(Enough())
        assert found.contents == SMALL_VLLM
        assert artifact.bytes_read < 3_000_000


async def test_an_old_deep_gemm_beside_vllm_is_found(the_engine: DockerEngine) -> None:
    old = {"deep_gemm/__init__.py": b"x", "deep_gemm_cpp.cpython-312-x86_64-linux-gnu.so": b"\x7fELF"}
    root = "opt/venv/lib/python3.12/site-packages"
    layer = pack([file(f"{root}/{path}", content) for path, content in {**SMALL_VLLM, **old}.items()])
    the_engine.docker("load", given=docker_archive([layer], NAME))
    async with engine_image(NAME) as artifact:
        assert (await artifact.select(Choosing())).contents == {**SMALL_VLLM, **old}


async def test_the_environment_on_the_path_goes_first(the_engine: DockerEngine) -> None:
    paths = {"usr/lib/python3/dist-packages": b"system", "srv/app/lib/python3.11/site-packages": b"app"}
    layer = pack([file(f"{root}/vllm/here", content) for root, content in paths.items()])
    settings = {"Env": ["PATH=/srv/app/bin:/usr/bin"]}
    the_engine.docker("load", given=docker_archive([layer], NAME, config=settings))
    async with engine_image(NAME) as artifact:
        assert (await artifact.select(Choosing())).contents == {"vllm/here": b"app"}


async def test_an_image_without_vllm_holds_nothing(the_engine: DockerEngine) -> None:
    the_engine.docker("load", given=docker_archive([pack([file("usr/lib", b"no directory")])], NAME))
    async with engine_image(NAME) as artifact:
        found = await artifact.select(Choosing())
        assert (found.listed, found.contents) == ({}, {})


@pytest.mark.usefixtures("the_engine")
@pytest.mark.parametrize("name", ["vllm/none:latest", "sha256:" + "0" * 64, "no name at all", ""])
async def test_an_image_that_is_not_there(name: str) -> None:
    with pytest.raises(UnknownBuild):
        async with engine_image(name):
            pytest.fail("there is no such image")


async def test_an_image_that_is_taken_away(loaded: DockerEngine) -> None:
    async with engine_image("vllm/vllm-openai:nightly") as artifact:
        loaded.docker("rmi", "vllm/vllm-openai:nightly")
        with pytest.raises(UnknownBuild, match="any more"):
            await artifact.select(Choosing())


async def test_images_are_listed_as_builds(loaded: DockerEngine) -> None:
    loaded.docker("tag", "vllm/vllm-openai:nightly", "127.0.0.1:5000/mirror/vllm:night")
    loaded.docker("load", given=docker_archive([pack([file("x")])], NAME, created="2026-01-01T00:00:00.123456789Z"))
    builds = await EngineStream(EngineImages(), repository=None, platform=AMD64).builds()
    assert [build.id for build in builds] == [NAME, "127.0.0.1:5000/mirror/vllm:night", "vllm/vllm-openai:nightly"]
    repository = "vllm/vllm-openai"
    [build] = await EngineStream(EngineImages(repository), repository=repository, platform=AMD64).builds()
    assert (build.id, build.spec) == ("nightly", "docker:vllm/vllm-openai:nightly")
    assert build.location == EngineImage(name="vllm/vllm-openai:nightly")
    assert build.commit == "c" * 40
    async with engine_image(build.location.name) as artifact:
        assert await artifact.digest() == build.digest
    loaded.docker("rmi", NAME)
    async with engine_image(str(build.pin)) as artifact:
        assert await artifact.digest() == build.digest


# --- what is left behind ---------------------------------------------------------------------------------------------


class Held(Choosing):
    """A selection that holds its reader up until it is told to go on."""

    begun, go = Event(), Event()

    def lists(self, path: str) -> bool:
        self.begun.set()
        self.go.wait(20)
        return super().lists(path)


@pytest.fixture
def held() -> Held:
    Held.begun, Held.go = Event(), Event()
    return Held()


async def reading(selection: Choosing) -> None:
    async with engine_image("vllm/vllm-openai:nightly") as artifact:
        await artifact.select(selection)


def containers(engine: DockerEngine) -> str:
    return engine.docker("ps", "--all", "--filter", "label=bisector", "--format", "{{.State}}").decode().strip()


async def test_a_container_is_never_started_and_always_removed(loaded: DockerEngine, held: Held) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reading, held)
        await anyio.to_thread.run_sync(held.begun.wait)
        assert containers(loaded) == "created"
        held.go.set()
    assert containers(loaded) == ""


async def test_a_cancelled_look_removes_its_container(loaded: DockerEngine, held: Held) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reading, held)
        await anyio.to_thread.run_sync(held.begun.wait)
        tasks.cancel_scope.cancel()
        held.go.set()
    assert containers(loaded) == ""


async def test_an_interrupted_look_removes_its_container(loaded: DockerEngine, held: Held) -> None:
    task = asyncio.create_task(reading(held))
    await anyio.to_thread.run_sync(held.begun.wait)
    task.cancel()  # what Ctrl-C does
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert containers(loaded) == ""


async def test_a_failed_look_removes_its_container(loaded: DockerEngine) -> None:
    class Failing(Choosing):
        def lists(self, path: str) -> bool:
            raise Unreadable(f"{path} is a failure")

    with pytest.raises(Unreadable, match="is a failure"):
        await reading(Failing())
    assert containers(loaded) == ""


# Docker's SDK does not close a socket that it could not connect.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "nonsense://", "tcp://"])
async def test_an_engine_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot be reached"):
        async with engine_image("vllm/vllm-openai"):
            pytest.fail("there is no engine")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await EngineImages().images()
    gc.collect()
