"""Layers on each other, as ``docker create`` and ``docker cp`` show them."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.layer import LayerReading
from bisector.artifacts.image.scope import Scope
from bisector.errors import Unreadable
from bisector.model import Platform
from tests.fakes.images import (
    ROOT,
    Compression,
    Item,
    MemorySource,
    compress,
    directory,
    file,
    hardlink,
    image,
    opaque,
    pack,
    symlink,
    whiteout,
)
from tests.fakes.wheels import Choosing

AMD64 = Platform("linux/amd64")
V = f"{ROOT}/v"
EVERYTHING = Choosing(wants=lambda path: path.startswith("v/"), opens=lambda path: path.startswith("v/"))
LIBRARY = file(f"{V}/deep/_C.so", b"lower")


async def seen(*layers: Sequence[Item]) -> Mapping[str, bytes]:
    """What an image of these layers, the lowest first, holds below ``v``."""
    made = image([pack(layer) for layer in layers], how="tar")
    found = await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).select(EVERYTHING)
    assert found.listed == {path: len(content) for path, content in found.contents.items()}
    return found.contents


async def test_the_top_layer_wins() -> None:
    assert await seen([LIBRARY], [file(f"{V}/deep/_C.so", b"upper")]) == {"v/deep/_C.so": b"upper"}


async def test_a_whiteout_hides_a_file_and_a_directory() -> None:
    other = file(f"{V}/other", b"x")
    assert await seen([LIBRARY, other], [whiteout(f"{V}/deep/_C.so")]) == {"v/other": b"x"}
    assert await seen([LIBRARY, other], [whiteout(f"{V}/deep")]) == {"v/other": b"x"}
    assert await seen([LIBRARY, other], [whiteout("usr/local")]) == {}


async def test_a_removed_file_may_come_back_above() -> None:
    assert await seen([LIBRARY], [whiteout(f"{V}/deep")], [LIBRARY]) == {"v/deep/_C.so": b"lower"}


@pytest.mark.parametrize("first", [True, False])
async def test_an_opaque_directory_hides_what_lies_below_it_only(first: bool) -> None:  # noqa: FBT001
    mark, own = opaque(f"{V}/deep"), file(f"{V}/deep/own", b"own")
    upper = [mark, own] if first else [own, mark]
    assert await seen([LIBRARY, file(f"{V}/x", b"x")], upper) == {"v/deep/own": b"own", "v/x": b"x"}


async def test_a_file_in_place_of_a_directory_hides_it() -> None:
    assert await seen([LIBRARY], [file(f"{V}/deep", b"file")]) == {"v/deep": b"file"}
    assert await seen([LIBRARY], [file("usr/local/lib", b"file")]) == {}


async def test_a_directory_in_place_of_a_file_replaces_it() -> None:
    assert await seen([file(f"{V}/deep", b"file")], [LIBRARY]) == {"v/deep/_C.so": b"lower"}
    assert await seen([file(f"{V}/deep", b"file")], [directory(f"{V}/deep/")]) == {}


@pytest.mark.parametrize("to", ["real", "./real", f"/{V}/real", "../v/real", "hop"])
async def test_a_symlink_in_place_of_a_directory_is_followed(to: str) -> None:
    upper = [symlink(f"{V}/deep", to), symlink(f"{V}/hop", "real"), file(f"{V}/real/_C.so", b"real")]
    found = await seen([LIBRARY], upper)
    assert found["v/deep/_C.so"] == b"real"
    assert found["v/real/_C.so"] == b"real"


async def test_a_symlink_may_lead_out_of_the_environment_and_down() -> None:
    lower = [file("opt/kernels/_C.so", b"opt"), LIBRARY]
    assert await seen(lower, [symlink(f"{V}/deep", "/opt/kernels")]) == {"v/deep/_C.so": b"opt"}
    assert await seen(lower, [symlink(f"{V}/deep", "../../../../../../opt/kernels")]) == {"v/deep/_C.so": b"opt"}


async def test_a_symlink_may_lead_through_another_anywhere() -> None:
    lower = [symlink("bin", "usr/bin"), file("usr/bin/kernels/_C.so", b"bin")]
    assert await seen(lower, [symlink(f"{V}/deep", "/bin/kernels")]) == {"v/deep/_C.so": b"bin"}


async def test_a_symlinked_environment_is_read() -> None:
    lower = [file("opt/packages/v/a", b"a")]
    assert await seen(lower, [symlink("usr/lib/python3/dist-packages", "/opt/packages")]) == {"v/a": b"a"}


async def test_a_symlink_to_a_file_has_its_content() -> None:
    layer = [file("opt/file", b"there"), symlink(f"{V}/here", "/opt/file"), symlink(f"{V}/nowhere", "gone")]
    assert await seen(layer) == {"v/here": b"there"}


async def test_links_that_lead_nowhere_end() -> None:
    assert await seen([symlink(f"{V}/a", "b"), symlink(f"{V}/b", "a"), symlink(f"{V}/self", "."), LIBRARY]) == {
        "v/deep/_C.so": b"lower"
    }


async def test_a_hardlink_has_the_content_of_its_layer() -> None:
    layer = [file("opt/file", b"one"), hardlink(f"{V}/a", "opt/file"), hardlink(f"{V}/b", f"./{V}/a")]
    assert await seen(layer, [file("opt/file", b"two")]) == {"v/a": b"one", "v/b": b"one"}


async def test_a_hardlink_to_a_symlink_is_one() -> None:
    layer = [LIBRARY, symlink(f"{V}/a", "deep"), hardlink(f"{V}/b", f"{V}/a")]
    assert (await seen(layer))["v/b/_C.so"] == b"lower"


async def test_dots_in_paths_mean_nothing() -> None:
    assert await seen([file(f"./{V}/./deep//_C.so", b"x")]) == {"v/deep/_C.so": b"x"}


async def test_markers_of_aufs_and_devices_are_no_files() -> None:
    device = Item(path=f"{V}/device", kind=tarfile.CHRTYPE)
    assert await seen([LIBRARY], [file(".wh..wh.plnk"), device]) == {"v/deep/_C.so": b"lower"}


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ([LIBRARY, LIBRARY], "twice"),
        ([LIBRARY, whiteout(f"{V}/deep/_C.so")], "holds and removes"),
        ([whiteout(f"{V}/deep"), LIBRARY], "holds and removes"),
        ([hardlink(f"{V}/a", "opt/nothing"), LIBRARY], "does not hold"),
        ([hardlink(f"{V}/a", f"{V}/a")], "itself"),
        ([symlink(f"{V}/deep", "real"), LIBRARY], "no directory"),
        ([file(f"{V}/.wh.", b"")], "without a name"),
        ([file("../x")], "out of the image"),
    ],
)
async def test_what_docker_refuses_is_refused(layer: list[Item], why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        await seen([file("opt/other", b"")], layer)


async def test_a_hardlink_to_a_file_of_another_layer_is_refused() -> None:
    with pytest.raises(Unreadable, match="does not hold"):
        await seen([file("opt/file", b"lower")], [hardlink(f"{V}/a", "opt/file")])


async def test_of_two_environments_the_one_with_more_answers() -> None:
    layer = [file("usr/lib/python3/dist-packages/v/old", b""), file(f"{V}/a", b"a"), file(f"{V}/b", b"b")]
    assert await seen(layer) == {"v/a": b"a", "v/b": b"b"}


# --- any layers at all, against a file system made of dictionaries ----------------------------------------------------


@dataclass(frozen=True)
class Link:
    to: str


Tree = dict[str, "Tree | bytes | Link"]
NAMES = ("a", "b", "c")
TARGETS = ("a", "b/a", "m", "./../v/b", "/opt", "/opt/a", f"/{V}/c", "nowhere")


@st.composite
def layers(draw: st.DrawFn) -> list[Item]:
    """A layer that no engine refuses: a random tree, and marks where the tree has nothing."""

    def below(path: str, depth: int) -> list[Item]:
        items: list[Item] = []
        for name in NAMES:
            here = f"{path}/{name}"
            what = draw(st.sampled_from(["nothing"] * 4 + ["file", "whiteout", "tree", "marked tree", "empty"]))
            if what == "file":
                items.append(file(here, draw(st.binary(min_size=1, max_size=3))))
            elif what == "whiteout":
                items.append(whiteout(here))
            elif what == "empty":
                items.append(directory(here))
            elif what != "nothing" and depth < 3:
                items += [opaque(here)] if what == "marked tree" else []
                items += below(here, depth + 1)
        return items

    links = [symlink(f"{V}/{name}", to) for name in ("l", "m") if (to := draw(st.sampled_from(["", *TARGETS])))]
    items = [*below(V, 1), *below("opt", 2), *links]
    return draw(st.permutations(items))


def applied(tree: Tree, layer: Sequence[Item]) -> None:
    def parent(path: str) -> Tree:
        here = tree
        for part in path.split("/")[:-1]:
            child = here.get(part)
            if not isinstance(child, dict):
                child = here[part] = {}
            here = child
        return here

    for item in layer:
        name = item.path.rpartition("/")[2]
        if name == ".wh..wh..opq":
            parent(item.path).clear()
        elif name.startswith(".wh."):
            parent(item.path).pop(name.removeprefix(".wh."), None)
    for item in layer:
        name = item.path.rpartition("/")[2]
        if name.startswith(".wh."):
            continue
        where = parent(item.path)
        if item.kind == tarfile.DIRTYPE:
            where[name] = there if isinstance(there := where.get(name), dict) else {}
        else:
            where[name] = Link(item.link) if item.kind == tarfile.SYMTYPE else item.content


def looked_up(tree: Tree, path: str) -> bytes | None:
    stack: list[Tree] = [tree]
    todo, followed = path.split("/")[::-1], 0
    while todo:
        part = todo.pop()
        if part == "..":
            stack = stack[:-1] or stack
        elif part not in ("", "."):
            child = stack[-1].get(part)
            if isinstance(child, Link):
                followed += 1
                if followed > 40:
                    return None
                stack = [tree] if child.to.startswith("/") else stack
                todo += child.to.split("/")[::-1]
            elif isinstance(child, dict):
                stack = [*stack, child]
            else:
                return child if child is not None and not todo else None
    return None


@settings(max_examples=300, deadline=None)
@given(stack=st.lists(layers(), min_size=1, max_size=4))
async def test_any_layers_agree_with_a_file_system(stack: list[list[Item]]) -> None:
    tree: Tree = {}
    for layer in stack:
        applied(tree, layer)
    found = await seen(*stack)
    two = [f"{one}/{other}" for one in (*NAMES, "l", "m") for other in ("", *NAMES)]
    three = [f"{one}/{other}" for one in two for other in ("", *NAMES)]
    for name in {path.replace("//", "/").strip("/") for path in three}:
        assert found.get(f"v/{name}") == looked_up(tree, f"{V}/{name}"), name


@settings(max_examples=200, deadline=None)
@given(layer=layers(), seed=st.integers(0, 1 << 32), how=st.sampled_from(["gzip", "zstd", "tar"]))
def test_a_damaged_layer_ends_in_a_record_or_in_a_sentence(layer: list[Item], seed: int, how: Compression) -> None:
    chance = random.Random(seed)
    raw = bytearray(pack(layer))
    for _ in range(chance.randint(0, 4)):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    data = bytearray(compress(bytes(raw), how))
    for _ in range(chance.randint(0, 2)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    reading = LayerReading(EVERYTHING, Scope())
    said = ""
    try:
        for at in range(0, len(data), step := chance.randint(1, 9000)):
            reading.feed(bytes(data[at : at + step]))
        reading.finish()
    except Unreadable as error:
        said = error.message
    assert said.isprintable()


async def test_names_that_are_no_text_can_be_shown() -> None:
    raw = pack([file(f"{V}/nameXX\n", b"x")]).replace(b"nameXX\n", b"name\xff\xfe\n")
    blocks = bytearray(raw)
    blocks[148:156] = b" " * 8
    blocks[148:156] = b"%06o\x00 " % sum(blocks[:512])
    made = image([bytes(blocks)], how="tar")
    found = await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).select(EVERYTHING)
    assert [path.encode() for path in found.listed] == [b"v/name\\xff\\xfe\n"]
