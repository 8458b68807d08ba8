from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from bisector.cli.watching import watches
from bisector.config.reading import load
from bisector.errors import NoHardware
from bisector.jobs.nightly import Nightly
from bisector.jobs.proved import Prove
from bisector.jobs.standing import Bench
from bisector.model import Build, Verdict
from bisector.trials import Agreement, Confirmation
from bisector.wiring.night import open_night
from tests.lab.website import Answer as Refusal
from tests.nightly.conftest import LOSS, RECOVERY, STOP, Cron, LabClock, evening

FIRST, LAST = date(2026, 7, 28), date(2026, 8, 20)


@pytest.mark.timeout(300)
def test_twenty_four_nights_have_three_news(cron: Cron) -> None:
    cron.posts.append('[[post]]\nkind = "github"\nrepository = "operators/vllm-watch"\n')
    cron.db.unlink()
    nights = cron.nights(FIRST, LAST)
    assert len(nights) == 24
    assert {answer.exit_code for answer in nights.values()} == {0}
    lost, back, stopped = cron.webhooks.titles
    assert lost.startswith("sm120: lost in nightly-bebf91804 (07-31); pin vllm/vllm-openai@sha256:")
    assert cron.lab.night("2026-07-30").digest in lost
    assert back.startswith("sm120: back in nightly-")
    assert "nothing new since 2026-08-14" in stopped
    loud = [day for day, answer in nights.items() if "no news" not in answer.err]
    assert loud == [LOSS, RECOVERY, STOP]
    (issue,) = cron.lab.github.issues.all
    assert (issue.state, issue.labels, len(issue.comments)) == ("closed", ["bisector"], 1)
    assert "nightly-bebf918" in issue.title
    assert "Back in" in issue.body
    assert cron.rows("SELECT count(*) FROM posts WHERE sent_at IS NULL") == [(0,)]
    assert [kind for (kind,) in cron.rows("SELECT key FROM posts WHERE receiver = 'report' ORDER BY id")] == [
        f"lost:dockerhub:vllm/vllm-openai:linux/amd64:sm120:{cron.lab.night(LOSS).tag}",
        f"regained:dockerhub:vllm/vllm-openai:linux/amd64:sm120:{cron.lab.night(RECOVERY).tag}",
        f"stopped:dockerhub:vllm/vllm-openai:linux/amd64:{cron.lab.night('2026-08-14').tag}",
    ]


def test_a_night_with_nothing_new_lists_once_and_reads_nothing(cron: Cron) -> None:
    cron.night(LOSS - timedelta(days=1))
    cron.lab.hub.site.requests.clear()
    cron.lab.front.site.requests.clear()
    before = cron.rows("SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM posts)")
    answer = cron("nightly", "--json")
    assert len(cron.lab.hub.site.requests) == 1
    assert not cron.lab.front.site.requests
    assert answer.json["news"] == []
    assert answer.json["cost"]["probes"] == 0
    assert cron.rows("SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM posts)") == before
    assert cron.webhooks.taken == []


def test_a_loss_is_told_with_its_evidence_and_its_commit_and_nothing_is_pulled(cron: Cron) -> None:
    cron.watch += "commits = true\n"
    cron.night(LOSS - timedelta(days=1))
    cron.lab.front.site.requests.clear()
    answer = cron.night(LOSS, "--json", "--fail-on", "regression")
    assert answer.exit_code == 1
    (news,) = answer.json["news"]
    assert news["kind"] == "lost"
    assert news["finding"]["outcome"] == "found"
    assert news["finding"]["commits"]["pull_request"] == 50000
    read = {
        request.path.rpartition("/")[2] for request in cron.lab.front.site.requests if "/manifests/" in request.path
    }
    assert read == {cron.lab.night(LOSS).platforms["linux/amd64"]}
    ((_, body),) = cron.webhooks.taken
    assert "bf16_gemm" in body["message"]
    assert "#50000" in body["message"]
    assert "bisector find-regression --arch sm120" in body["message"]


def test_a_rehearsal_says_what_it_would_do_and_writes_nothing(cron: Cron) -> None:
    cron.night(LOSS - timedelta(days=1))
    before = cron.db.read_bytes()
    cron.lab.front.site.requests.clear()
    answer = cron.night(LOSS, "--dry-run")
    assert answer.exit_code == 0
    assert "would read 1 build" in answer.out
    assert "(dry run)" in answer.err
    assert cron.db.read_bytes() == before
    assert not cron.lab.front.site.requests
    assert cron.webhooks.taken == []
    # What was read by another hand is told by a rehearsal, again and again.
    cron("harvest")
    for _ in range(2):
        assert "would send sm120: lost in" in cron("nightly", "--dry-run").out
    assert "1 sent" in cron("nightly").err


@pytest.mark.parametrize(("post", "titles"), [("always", 2), ("change", 1), ("never", 0)])
def test_when_something_is_posted(cron: Cron, post: str, titles: int) -> None:
    cron.night(LOSS - timedelta(days=1), "--post", post)
    cron.night(LOSS, "--post", post)
    cron("nightly", "--post", post)
    assert len(cron.webhooks.titles) == titles
    if post == "never":
        # What nobody was told stays news.
        cron("nightly")
        assert len(cron.webhooks.titles) == 1


def test_docker_hub_down_is_a_failed_stage_and_the_rest_goes_on(cron: Cron, tmp_path: Path) -> None:
    cron.posts.append(f'[[post]]\nkind = "textfile"\npath = "{tmp_path / "bisector.prom"}"\n')
    cron.night(LOSS - timedelta(days=1))
    cron.lab.move_to(evening(LOSS))
    cron("harvest")
    cron.lab.hub.site.interrupt(Refusal(status=503), times=4)
    answer = cron("nightly", "--json")
    assert answer.exit_code == 0
    stages = {stage["name"]: stage for stage in answer.json["stages"]}
    assert stages["harvest dockerhub:vllm/vllm-openai"]["ok"] is False
    # What a harvest by another hand has read is told all the same, and searched in the history alone.
    assert [news["kind"] for news in answer.json["news"]] == ["lost"]
    assert answer.json["news"][0]["finding"]["outcome"] == "found"
    assert len(cron.webhooks.titles) == 1
    assert "Failed: harvest dockerhub:vllm/vllm-openai" in cron.webhooks.taken[0][1]["message"]
    assert "bisector_failed_stages 1.0" in (tmp_path / "bisector.prom").read_text()


def test_a_stream_that_goes_on_is_told_once(cron: Cron) -> None:
    cron.watch += "stopped-after = 0.65\n"
    cron.db.unlink()
    cron.night(date(2026, 7, 28))
    cron.lab.move_to(evening(date(2026, 7, 29)).replace(hour=7))
    for _ in range(2):
        cron("nightly")
    cron.night(date(2026, 7, 29))
    cron("nightly")
    kinds = [
        key.partition(":")[0] for (key,) in cron.rows("SELECT key FROM posts WHERE receiver = 'report' ORDER BY id")
    ]
    assert kinds == ["stopped", "resumed"]


def test_a_night_is_told_again_in_every_form_without_any_network(cron: Cron) -> None:
    cron.night(LOSS - timedelta(days=1))
    assert cron.night(LOSS, "--page", str(cron.folder / "page.html")).exit_code == 0
    sites = (cron.lab.hub.site, cron.lab.front.site, cron.lab.github.site)
    for site in sites:
        site.requests.clear()
    for form in ("console", "markdown", "html", "json"):
        file = cron.folder / f"report.{form}"
        assert cron("report", "--format", form, "--output", str(file)).exit_code == 0
        told = file.read_text()
        assert "lost in nightly-bebf91804" in told
        assert "bf16_gemm" in told
        assert "lost in nightly-bebf91804" in cron("report", "--format", form).out
    assert "lost in nightly-bebf91804" in (cron.folder / "page.html").read_text()
    assert not any(site.requests for site in sites)


async def test_the_pair_of_a_loss_is_booted_once_and_a_bench_that_is_away_is_tried_again(cron: Cron) -> None:
    asked: list[list[tuple[str, str]]] = []

    async def prove(builds: Sequence[tuple[Build, Verdict | None]]) -> Confirmation:
        asked.append([(build.id, verdict.answer) for build, verdict in builds if verdict])
        if len(asked) == 1:
            raise NoHardware("The engine does not answer")
        return Confirmation(
            profile="tiny", host="local", trials=(), agreement=Agreement.BAD_BOOTS, comparison=None, seconds=60.0
        )

    async def open_bench(_bench: Bench) -> Prove:
        return prove

    config = load(cron.write_config(), options={})
    (watch,) = watches(config)
    watch = replace(watch, bench=Bench(host="local", profile="tiny", arch="sm120"))
    cron.lab.move_to(evening(LOSS))
    kinds = []
    for _ in range(3):
        async with open_night(config, cron.db, LabClock(cron.lab.now)) as opened:
            night = await Nightly(
                watches=[watch],
                resolve=opened.rooms.resolve,
                probe=opened.rooms.probe,
                backlog=opened.rooms.backlog,
                outbox=opened.outbox,
                receivers=opened.receivers,
                open_bench=open_bench,
            ).run()
        kinds.append([news.kind for news in night.news])
    pair = [(cron.lab.night("2026-07-30").tag, "good"), (cron.lab.night("2026-07-31").tag, "bad")]
    assert asked == [pair, pair]
    assert kinds == [["lost"], ["disagrees"], []]
    assert len(cron.webhooks.titles) == 2
