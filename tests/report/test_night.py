from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from bisector.model import Answer, Loss, Verdict
from bisector.report.grid import Cell
from bisector.report.night.page import page
from bisector.results import Night
from tests.report.nights import BOOTS, benchmarks, night


def test_the_first_lines_answer_for_each_architecture_and_the_worst_comes_first() -> None:
    assert page(night(40)).headlines == snapshot(
        (
            "sm120: lost in nightly-972a67c48 (07-30); pin nightly-f1f836cb4@sha256:86e501496586…",
            "sm90: fine in nightly-ca3512f4d (08-03)",
            "sm100: fine in nightly-ca3512f4d (08-03)",
        )
    )


def test_a_build_is_named_as_the_first_bad_only_if_none_before_it_is_untested() -> None:
    whole = night(40)
    [stream] = whole.streams
    sm120 = stream.archs[-1]
    [loss] = sm120.losses
    gap = replace(loss, untestable=("nightly-0", "nightly-1"))
    gapped = replace(whole, streams=(replace(stream, archs=(replace(sm120, losses=(gap,)),)),))
    assert page(gapped).headlines == snapshot(
        (
            "sm120: lost after nightly-f1f836cb4 and by nightly-972a67c48 (07-30), 2 builds between them cannot be tested; pin nightly-f1f836cb4@sha256:86e501496586…",  # noqa: E501
        )
    )


@pytest.mark.parametrize(
    ("verdict", "headline"),
    [
        (
            Verdict(answer=Answer.UNTESTABLE, reason="the registry does not answer"),
            snapshot("sm120: unknown, the registry does not answer; no build to pin is known"),
        ),
        (Verdict(answer=Answer.GOOD, reason="4 kernels"), snapshot("sm120: fine in nightly-da4b9237b (08-03)")),
        (
            Verdict(answer=Answer.BAD, reason="0 kernels"),
            snapshot("sm120: no kernels in nightly-da4b9237b (08-03); no build to pin is known"),
        ),
    ],
)
def test_an_architecture_without_a_loss_is_told_by_its_newest_build(verdict: Verdict, headline: str) -> None:
    [stream] = night(3).streams
    stands = replace(stream.archs[-1], verdict=verdict, losses=(), pin=None)
    [answer] = page(replace(night(3), streams=(replace(stream, archs=(stands,)),))).headlines
    assert answer == headline


def test_a_repaired_loss_is_fine_since() -> None:
    [stream] = night(40).streams
    regained = stream.entries[-3].build.id
    loss = Loss(last_good="a", lost_at="b", last_bad="c", regained_at=regained)
    stands = replace(stream.archs[-1], verdict=Verdict(answer=Answer.GOOD), losses=(loss,))
    [answer] = page(replace(night(40), streams=(replace(stream, archs=(stands,)),))).headlines
    assert answer == snapshot("sm120: fine in nightly-ca3512f4d (08-03), back since nightly-cb7a1d775 (08-01)")


def test_the_newest_build_that_could_be_tested_is_said_to_be_just_that() -> None:
    [stream] = night(9).streams
    stands = replace(stream.archs[0], newest=stream.entries[-3].build)
    [answer] = page(replace(night(9), streams=(replace(stream, archs=(stands,)),))).headlines
    assert answer.endswith(", the newest that could be tested")


def test_each_cell_of_the_grid_has_a_word() -> None:
    [grid] = page(night(400)).grids
    sm120 = [row.cells[-1].kind for row in reversed(grid.rows)]
    assert sm120[:5] == [Cell.NONE, Cell.NONE, Cell.UNKNOWN, Cell.NONE, Cell.LOST]
    assert sm120[5:10] == [*[Cell.KERNELS] * 4, Cell.UNREADABLE]
    assert sm120[59:71] == [Cell.REGAINED, *[Cell.NONE] * 9, Cell.LOST, Cell.KERNELS]
    assert sm120[350] is Cell.GONE
    assert grid.rows[-1].cells[0].operations == 17


def test_the_stream_of_an_architecture_falls_into_runs() -> None:
    [grid] = page(night(12)).grids
    assert [(run.kind, run.builds) for run in grid.runs("sm120")] == [
        (Cell.KERNELS, 2),
        (Cell.UNREADABLE, 1),
        (Cell.KERNELS, 4),
        (Cell.NONE, 2),
        (Cell.UNKNOWN, 1),
        (Cell.NONE, 2),
    ]


def test_kernels_that_went_are_named_where_a_search_named_them_and_counted_elsewhere() -> None:
    [grid] = page(night(400)).grids
    told = [(change.arch, change.had, change.has, change.lost) for change in grid.changes]
    assert told == [
        ("sm120", 4, 0, ("bf16_gemm", "fp8_gemm_1d1d", "fp8_mqa_logits", "hc_prenorm_gemm")),
        ("sm120", 0, 4, ()),
        ("sm120", 4, 0, ()),
    ]


def test_a_pin_is_shown_once_for_all_architectures_it_serves() -> None:
    assert [served for served, _ in page(night(40)).pins] == ["sm120", "sm90, sm100"]


def test_boots_have_causes_and_trends_their_noise() -> None:
    report = page(night(40), boots=BOOTS, benchmarks=benchmarks(30))
    assert [(boot.outcome, boot.cause) for boot in report.boots] == [
        ("fails", "DeepGEMM has no kernel for sm120"),
        ("answers", ""),
        ("without an end", ""),
    ]
    [trend] = report.trends
    assert len(trend.points) == 30
    assert all(point.best < point.tpot < point.worst for point in trend.points)


@pytest.mark.parametrize("empty", [night(0), replace(night(0), streams=(), stages=(), not_measured=())])
def test_an_empty_history_has_a_report_too(empty: Night) -> None:
    assert len(page(empty).headlines) == max(1, sum(len(stream.archs) for stream in empty.streams))
