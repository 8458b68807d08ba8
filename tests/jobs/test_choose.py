from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bisector.errors import UnknownBuild, UsageError
from bisector.jobs.choose import choose, parse_day
from bisector.model import Build, Digest, Platform


def build(name: str, day: int, *, commit: str | None = None) -> Build:
    return Build(
        id=name,
        source="pypi:vllm",
        spec=f"pypi:vllm=={name}",
        platform=Platform("linux/amd64"),
        location=None,
        digest=Digest(f"sha256:{day:064x}"),
        published_at=datetime(2026, 8, day, 12, tzinfo=UTC),
        commit=commit,
    )


STREAM = (
    build("0.26.0", 1),
    build("0.27.0", 10, commit="4bdc8a788" + "0" * 31),
    build("0.27.1", 11, commit="4bdc8a799" + "0" * 31),
    build("0.28.0", 26),
)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("0.27.0", "0.27.0"),
        ("pypi:vllm==0.27.1", "0.27.1"),
        ("2026-08-10", "0.27.0"),
        ("2026-08-25", "0.27.1"),
        ("2027-01-01", "0.28.0"),
        ("4bdc8a788", "0.27.0"),
        ("4bdc8a788" + "0" * 31, "0.27.0"),
        (f"sha256:{26:064x}", "0.28.0"),
        (" 0.26.0 ", "0.26.0"),
    ],
)
def test_a_build_is_meant_by_id_spec_date_commit_or_digest(spelling: str, expected: str) -> None:
    assert choose(STREAM, spelling).id == expected


def test_a_commit_that_only_the_history_knows() -> None:
    assert choose(STREAM, "ffd46bfab12", commits={"0.26.0": "ffd46bfab"}).id == "0.26.0"


@pytest.mark.parametrize("spelling", ["0.27.9", "2026-07-31", "abcdef1", "sha256:ffffffffffff", "", "sha256:00"])
def test_what_fits_no_build_is_unknown(spelling: str) -> None:
    with pytest.raises(UnknownBuild):
        choose(STREAM, spelling)


def test_a_near_miss_lists_the_near_ones() -> None:
    with pytest.raises(UnknownBuild) as caught:
        choose(STREAM, "0.27.2")
    assert "0.27.1" in caught.value.hint


def test_an_abbreviation_that_fits_two_builds_is_refused() -> None:
    with pytest.raises(UsageError, match=r"0\.27\.0, 0\.27\.1"):
        choose(STREAM, "4bdc8a7")


def test_an_empty_stream_has_no_build() -> None:
    with pytest.raises(UnknownBuild):
        choose((), "1.0")


def test_a_day_is_midnight_utc_and_anything_else_is_no_day() -> None:
    assert parse_day("2026-08-10") == datetime(2026, 8, 10, tzinfo=UTC)
    assert parse_day("yesterday") is None
    assert parse_day("0.27.0") is None
