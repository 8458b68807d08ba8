"""The kernels of 13 real releases, counted as measured by hand (distinct units and entries for each architecture)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.online.conftest import Ask

# release: ((units of sm90, sm100, sm120), (entries of sm90, sm100, sm120)); entries written with the architecture left
# open count for each architecture whose header is shipped.
TABLE = {
    "0.20.0": ((7, 9, 0), (7, 9, 0)),
    "0.22.0": ((7, 9, 0), (7, 9, 0)),
    "0.24.0": ((7, 9, 0), (7, 9, 0)),
    "0.25.1": ((7, 10, 9), (7, 10, 9)),
    "0.26.0": ((7, 10, 9), (7, 10, 9)),
    "0.27.0": ((8, 8, 0), (8, 9, 0)),
    "0.27.1": ((8, 8, 0), (8, 9, 0)),
    "0.28.0": ((8, 9, 10), (8, 10, 10)),
    "0.29.0": ((8, 9, 10), (8, 10, 10)),
    "0.30.0": ((8, 14, 10), (8, 16, 10)),
    "0.31.0": ((8, 14, 10), (8, 16, 10)),
    "0.32.0": ((8, 15, 10), (8, 17, 10)),
    "0.33.0": ((8, 17, 10), (8, 18, 10)),
}
TEMPLATES = dict(zip(TABLE, (19, 19, 19, 28, 28, 21, 21, 32, 32, 36, 36, 37, 39), strict=True))
ARCHS = ("sm90", "sm100", "sm120")


@pytest.mark.parametrize("release", TABLE)
def test_units_entries_and_templates(ask: Ask, release: str) -> None:
    seen = ask("inspect", f"pypi:vllm=={release}", "--json").json
    evidence = seen["evidence_of"]
    units = tuple(len({unit for kernel in evidence.get(arch, []) for unit in kernel["units"]}) for arch in ARCHS)
    entries = tuple(len({name for kernel in evidence.get(arch, []) for name in kernel["entries"]}) for arch in ARCHS)
    assert (units, entries) == TABLE[release]
    assert seen["deep_gemm"]["templates"] == TEMPLATES[release]


def test_no_release_shows_a_loss_that_its_headers_contradict(ask: Ask) -> None:
    headers = {
        release: set(ask("inspect", f"pypi:vllm=={release}", "--json").json["deep_gemm"]["headers"])
        for release in TABLE
    }
    for before, after in pairwise(TABLE):
        changed = ask("diff", f"pypi:vllm=={before}", f"pypi:vllm=={after}", "--json").json["kernels"]
        for arch in ARCHS:
            for op in changed.get(arch, {}).get("lost", []):
                assert f"impls/{arch}_{op}.cuh" not in headers[after], (before, after, arch, op)


def test_debug_information_is_no_growth(ask: Ask) -> None:
    """0.32 and 0.33 carry DWARF, in which `strings` finds 2.4 times as many names."""
    for before, after in (("0.31.0", "0.32.0"), ("0.32.0", "0.33.0")):
        changed = ask("diff", f"pypi:vllm=={before}", f"pypi:vllm=={after}", "--json").json["kernels"]
        assert "sm120" not in changed
        assert "sm90" not in changed
