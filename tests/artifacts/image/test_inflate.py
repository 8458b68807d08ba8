from __future__ import annotations

import gzip
import os
import random
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.artifacts.image.inflate import CHUNK, Inflate
from bisector.errors import Unreadable
from tests.fakes.images import compress, pack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SKIPPABLE = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
SAMPLE = bytes(range(256)) * 500 + b"\x00" * 100_000


def inflated(data: bytes, step: int = 1 << 16) -> bytes:
    inflate, out = Inflate(), []
    for at in range(0, len(data), step):
        out += list(inflate.feed(data[at : at + step]))
    out += list(inflate.finish())
    assert all(len(piece) <= CHUNK for piece in out)
    return b"".join(out)


@given(
    parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4),
    how=st.sampled_from(["gzip", "zstd", "zstd with notes"]),
    zeros=st.integers(0, 600),
    step=st.integers(1, 700),
)
def test_every_member_and_frame_is_read_whatever_the_pieces(
    parts: list[bytes], how: str, zeros: int, step: int
) -> None:
    if how == "gzip":
        data = b"".join(gzip.compress(part, mtime=0) for part in parts)
    else:
        between = SKIPPABLE if how == "zstd with notes" else b""
        data = between + between.join(zstd.compress(part) for part in parts) + between
    assert inflated(data + bytes(zeros), step) == b"".join(parts)


def test_what_is_not_compressed_passes_through() -> None:
    raw = pack([])
    assert inflated(raw, 3) == raw
    assert inflated(b"ab") == b"ab"
    assert inflated(b"") == b""


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_cut_stream_is_refused_wherever_it_is_cut(how: str) -> None:
    data = gzip.compress(SAMPLE) if how == "gzip" else zstd.compress(SAMPLE)
    for at in [*range(6, 40), len(data) // 2, len(data) - 5, len(data) - 1]:
        with pytest.raises(Unreadable):
            inflated(data[:at])


@pytest.mark.parametrize("behind", [b"rubbish", b"\x00\x00x", b"\x1f", b"BZh9abcdef", zstd.compress(b"x")])
def test_bytes_behind_the_last_member_are_refused(behind: bytes) -> None:
    with pytest.raises(Unreadable):
        inflated(gzip.compress(b"x") + behind)


@pytest.mark.parametrize(("magic", "name"), [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\x00\x00", "xz")])
def test_other_compressions_are_named(magic: bytes, name: str) -> None:
    with pytest.raises(Unreadable, match=name):
        inflated(magic + bytes(100))


def test_a_wrong_checksum_is_noticed() -> None:
    data = bytearray(gzip.compress(SAMPLE))
    data[-8] ^= 1
    with pytest.raises(Unreadable):
        inflated(bytes(data))


@settings(max_examples=300)
@given(seed=st.integers(0, 1 << 32), how=st.sampled_from(["gzip", "zstd"]))
def test_damage_is_refused_or_harmless(seed: int, how: str) -> None:
    chance = random.Random(seed)
    data = bytearray(compress(SAMPLE[:9000], "gzip" if how == "gzip" else "zstd"))
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    try:
        inflated(bytes(data), chance.randint(1, 5000))
    except Unreadable:
        return


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_bomb_never_takes_more_than_a_few_chunks(how: str) -> None:
    zeros = bytes(1 << 20)
    if how == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        bomb = b"".join(packer.compress(zeros) for _ in range(256)) + packer.flush()
    else:
        larger = zstd.ZstdCompressor()
        bomb = b"".join(larger.compress(zeros) for _ in range(256)) + larger.flush()
    tracemalloc.start()
    inflate = Inflate()
    total = sum(len(piece) for piece in inflate.feed(bomb)) + sum(len(piece) for piece in inflate.finish())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 256 << 20
    assert peak < 8 << 20


def test_random_bytes_are_taken_for_a_tar_whose_checksums_will_tell() -> None:
    noise = b"\x99" + os.urandom(5000)
    assert inflated(noise, 77) == noise
