"""The story this project was born from, on the real index: 0.27.0 lost sm120, 0.28.0 has it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.online.conftest import Ask

FIND = ("find-regression", "--source", "pypi:vllm", "--json")


def test_the_release_that_lost_sm120_is_found_without_being_told_a_range(ask: Ask) -> None:
    answer = ask(*FIND, "--arch", "sm120")
    found = answer.json
    assert answer.exit_code == 1
    assert found["outcome"] == "found"
    assert (found["last_good"]["id"], found["first_bad"]["id"]) == ("0.26.0", "0.27.0")
    assert found["losses"] == [
        {
            "last_good": "0.26.0",
            "lost_at": "0.27.0",
            "last_bad": "0.27.1",
            "regained_at": "0.28.0",
            "untestable": [],
        }
    ]
    assert found["last_good"]["commit"] == "ffd46bfab"
    assert found["lost"] == [
        "bf16_gemm",
        "bmn_bnk_mn_gemm",
        "fp4_mqa_logits",
        "fp4_paged_mqa_logits",
        "fp8_fp4_gemm_1d1d",
        "fp8_mqa_logits",
        "fp8_paged_mqa_logits",
        "split_k_reduce",
        "tf32_hc_prenorm_gemm",
    ]
    assert {"name": "deep_gemm", "before": "2.5.0", "after": "2.6.1"} in found["changes"]["packages"]
    assert found["gate"] == "crash"


@pytest.mark.parametrize("strategy", ["auto", "sweep", "bisect"])
def test_the_same_pair_between_two_ends(ask: Ask, strategy: str) -> None:
    found = ask(*FIND, "--arch", "sm120", "--good", "0.26.0", "--bad", "0.27.1", "--strategy", strategy).json
    assert (found["last_good"]["id"], found["first_bad"]["id"]) == ("0.26.0", "0.27.0")


def test_a_bisection_finds_the_same_pair_in_fewer_looks_than_a_sweep(ask: Ask, tmp_path: Path) -> None:
    sweep = ask(*FIND, "--arch", "sm120", db=tmp_path / "sweep.db").json
    bisection = ask(*FIND, "--arch", "sm120", "--strategy", "bisect", db=tmp_path / "bisect.db").json
    assert (bisection["last_good"]["id"], bisection["first_bad"]["id"]) == ("0.26.0", "0.27.0")
    assert bisection["cost"]["probes"] < sweep["cost"]["probes"]


def test_sm90_lost_nothing(ask: Ask) -> None:
    answer = ask(*FIND, "--arch", "sm90")
    assert (answer.exit_code, answer.json["outcome"]) == (0, "no-regression")


def test_the_repair_is_found(ask: Ask) -> None:
    answer = ask(*FIND, "--arch", "sm120", "--find-fix", "--bad", "0.27.1")
    assert answer.exit_code == 0
    assert (answer.json["last_bad"]["id"], answer.json["first_good"]["id"]) == ("0.27.1", "0.28.0")


def test_ends_that_do_not_hold_are_named(ask: Ask) -> None:
    answer = ask(*FIND, "--arch", "sm120", "--good", "0.27.0", "--bad", "0.26.0")
    assert (answer.exit_code, answer.json["outcome"]) == (3, "not-reproduced")
    assert {end["id"]: (end["expected"], end["verdict"]) for end in answer.json["ends"]} == {
        "0.27.0": ("good", "bad"),
        "0.26.0": ("bad", "good"),
    }


def test_a_required_operation_is_searched_for_in_the_libraries(ask: Ask) -> None:
    answer = ask(*FIND, "--arch", "sm100", "--require", "fp4_mqa_logits", "--good", "0.26.0", "--bad", "0.28.0")
    assert answer.exit_code == 1
    assert (answer.json["last_good"]["id"], answer.json["first_bad"]["id"]) == ("0.26.0", "0.27.0")


def test_asked_twice_no_wheel_is_read_twice(ask: Ask) -> None:
    ask(*FIND, "--arch", "sm120")
    again = ask(*FIND, "--arch", "sm120").json
    assert again["cost"]["probes"] == 0
    assert again["cost"]["requests"] == 1  # the listing
    assert again["outcome"] == "found"


@pytest.mark.parametrize(
    ("release", "arch", "extra", "code"),
    [
        ("0.27.1", "sm120", (), 1),
        ("0.28.0", "sm120", (), 0),
        ("0.28.0", "RTX PRO 6000", (), 0),
        ("0.28.0", "sm120", ("--require", "fp8_mqa_logits"), 0),
        ("0.28.0", "sm120", ("--require", "fp8_fp4_mega_moe"), 1),
        ("0.19.1", "sm90", (), 1),
    ],
)
def test_the_gate_before_adopting_a_build(ask: Ask, release: str, arch: str, extra: tuple[str, ...], code: int) -> None:
    answer = ask("check", f"pypi:vllm=={release}", "--arch", arch, *extra, "--json")
    assert answer.exit_code == code
    checked = answer.json["builds"][0]
    assert checked["verdict"] == ("bad" if code else "good")
    if extra and code:
        assert extra[1] in checked["reason"]


def test_sm121_is_answered_through_sm120_and_says_so(ask: Ask) -> None:
    answer = ask("check", "pypi:vllm==0.28.0", "--arch", "GB10")
    assert answer.exit_code == 0
    assert "sm121 is served by DeepGEMM's sm120 kernels" in answer.out


def test_three_kinds_of_no_are_told_apart(ask: Ask) -> None:
    reasons = {
        release: ask("check", f"pypi:vllm=={release}", "--arch", "sm120", "--json").json["builds"][0]["reason"]
        for release in ("0.19.1", "0.27.0")
    }
    assert "not bundled" in reasons["0.19.1"]
    assert "no sm120 kernels" in reasons["0.27.0"]


def test_what_a_look_costs(ask: Ask, tmp_path: Path) -> None:
    for release, most in (("0.26.0", 2_000_000), ("0.31.0", 2_000_000), ("0.33.0", 10_000_000)):
        cost = ask("inspect", f"pypi:vllm=={release}", "--json", db=tmp_path / f"{release}.db").json["cost"]
        assert cost["bytes"] < most, release
    bounds = ("--good", "0.25.1", "--bad", "0.26.0")  # the bad end does not hold, so nothing is read deeper
    cost = ask(*FIND, "--arch", "sm120", *bounds, db=tmp_path / "names.db").json["cost"]
    assert cost["probes"] == 2
    assert cost["bytes"] / cost["probes"] < 1_000_000


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((*FIND, "--arch", "sm125"), 2, "sm120"),
        ((*FIND, "--arch", "sm120", "--good", "0.26.9"), 2, "0.26.0"),
        (("check", "pypi:vllm==99.0", "--arch", "sm120"), 2, "99.0"),
        (("check", "pypi:vllm-no-such-package-here==1.0", "--arch", "sm120"), 2, "vllm-no-such-package-here"),
        (("inspect", "pypi:vllm==0.5.0", "--platform", "linux/arm64"), 2, "linux/arm64"),
        (("find-regression", "--arch", "sm120", "--source", "nowhere:x"), 2, "nowhere:x"),
    ],
)
def test_bad_input_gets_a_sentence_and_a_way_on(ask: Ask, arguments: tuple[str, ...], code: int, says: str) -> None:
    answer = ask(*arguments)
    assert answer.exit_code == code
    assert says in answer.err
    assert len(answer.err.strip().splitlines()) == 2


def test_people_get_the_answer_first_and_no_line_over_eighty_columns(ask: Ask) -> None:
    answer = ask("find-regression", "--source", "pypi:vllm", "--arch", "sm120")
    lines = answer.out.splitlines()
    assert lines[0] == "sm120 kernels in pypi:vllm: lost in 0.27.0, last good 0.26.0, back in 0.28.0."
    assert "vllm==0.26.0 \\" in lines
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in answer.out
    assert answer.err == ""


def test_builds_are_listed_in_the_order_of_their_versions(ask: Ask) -> None:
    listed = [build["id"] for build in ask("builds", "--source", "pypi:vllm", "--json").json["builds"]]
    known = [release for release in listed if release in {"0.9.2", "0.25.1", "0.26.0", "0.27.1", "0.33.0"}]
    assert known == ["0.9.2", "0.25.1", "0.26.0", "0.27.1", "0.33.0"]
