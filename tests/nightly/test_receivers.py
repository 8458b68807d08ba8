from __future__ import annotations

import email
import email.policy
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from apprise.plugins.discord import NotifyDiscord
from apprise.plugins.slack import NotifySlack
from prometheus_client.parser import text_string_to_metric_families

from tests.lab.website import Answer as Refusal
from tests.nightly.conftest import LOSS, RECOVERY, Cron, evening, to_webhook


class Mailbox:
    """What an SMTP server was given."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    yield box, port
    server.stop()


def test_slack_discord_and_mail_each_get_one_message_in_their_own_form(
    cron: Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both services are at one address only, which apprise keeps here.
    monkeypatch.setattr(NotifySlack, "webhook_url", f"{cron.webhooks.site.url}/slack")
    monkeypatch.setattr(NotifyDiscord, "notify_url", f"{cron.webhooks.site.url}/discord")
    monkeypatch.setenv("CHAT", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#nightlies")
    with mail_server() as (box, port):
        cron.posts = [
            to_webhook("slack", "${CHAT}"),
            to_webhook("discord", "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"),
            to_webhook("mail", f"mailto://127.0.0.1:{port}?from=bisector@example.org&to=ops@example.org&mode=insecure"),
        ]
        answer = cron.night(LOSS)
        assert answer.err.count("1 sent") == 3
        cron("nightly")
    slack, discord = sorted(cron.webhooks.taken, key=lambda taken: taken[0], reverse=True)
    assert slack[0].startswith("/slack/")
    assert "lost in nightly-bebf918" in str(slack[1])
    assert discord[0].startswith("/discord/")
    assert "lost in nightly-bebf918" in str(discord[1])
    (message,) = box.messages
    assert message["To"] == "ops@example.org"
    assert "lost in nightly-bebf918" in message["Subject"]
    body = message.get_body(("html", "plain"))
    assert body is not None
    assert "bf16_gemm" in body.get_content()


@pytest.mark.parametrize("trouble", ["429", "500", "down"])
def test_a_post_that_fails_is_kept_and_sent_the_next_night_in_order_and_once(cron: Cron, trouble: str) -> None:
    if trouble == "down":  # port 9 takes nothing
        cron.posts = [to_webhook("team", "json://127.0.0.1:9/hook")]
    else:
        cron.webhooks.refuse(int(trouble), times=2)
    answer = cron.night(LOSS)
    assert answer.exit_code == 0
    assert "post to team: team did not take the post" in answer.err
    if trouble != "down":
        assert f"(it answered {trouble})" in answer.err
    assert cron.webhooks.taken == []
    assert cron.rows("SELECT attempts, last_error IS NULL FROM posts WHERE receiver = 'team'") == [(1, 0)]
    # The next morning brings other news; what was kept goes first.
    cron("nightly")
    cron.posts = [to_webhook("team", cron.webhooks.address)]
    cron.watch += "stopped-after = 0.65\n"
    cron.lab.move_to(evening(LOSS + timedelta(days=1)).replace(hour=7))
    cron("nightly")
    cron("nightly")
    lost, stopped = cron.webhooks.titles
    assert "lost in nightly-bebf918" in lost
    assert "nothing new since 2026-07-31" in stopped
    assert cron.rows("SELECT count(*) FROM posts WHERE sent_at IS NULL OR last_error IS NOT NULL") == [(0,)]


def test_a_slow_receiver_holds_up_nobody_for_long_and_the_others_are_told(cron: Cron) -> None:
    cron.webhooks.delay = 1.5
    slow = f"{cron.webhooks.address}?rto=0.3"
    cron.posts = [to_webhook("slow", slow), to_webhook("team", cron.webhooks.address)]
    answer = cron.night(LOSS)
    assert "post to slow: slow did not take the post" in answer.err
    assert "post to team: 1 sent" in answer.err


def test_an_issue_is_opened_once_edited_and_closed_with_one_comment(cron: Cron) -> None:
    cron.posts = [
        '[[post]]\nkind = "github"\nname = "tracker"\nrepository = "operators/vllm-watch"\nlabel = "sm 120"\n'
    ]
    cron.night(LOSS)
    cron("nightly")
    (issue,) = cron.lab.github.issues.all
    assert issue.labels == ["sm 120"]
    assert issue.body.startswith("<!-- bisector:loss:")
    assert "bf16" in issue.body
    assert issue.edits == 0
    # What people write stays, and what they close stays closed until it is over.
    issue.body += "\n\nWe are on it."
    cron.lab.github.site.interrupt(Refusal(status=502))
    cron.night(RECOVERY)
    cron("nightly")
    assert (issue.state, len(issue.comments)) == ("closed", 1)
    assert "We are on it." in issue.body
    assert "Back in `nightly-2ac1f683f`" in issue.body
    assert "is back in" in issue.comments[0]
    cron("nightly")
    assert (len(cron.lab.github.issues.all), len(issue.comments), issue.edits) == (1, 1, 1)


def test_without_a_token_github_is_a_failed_stage_that_says_what_to_do(
    cron: Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron.posts = ['[[post]]\nkind = "github"\nrepository = "operators/vllm-watch"\n']
    monkeypatch.delenv("GITHUB_TOKEN")
    assert "github has no token" in cron.night(LOSS).err
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrong")
    answer = cron("nightly")
    assert "does not accept the token" in answer.err
    assert "ghp_wrong" not in answer.err + answer.out


def test_the_textfile_is_what_prometheus_reads(cron: Cron) -> None:
    file = cron.folder / "bisector.prom"
    cron.posts = [
        f'[[post]]\nkind = "textfile"\npath = "{file}"\n',
        to_webhook("team", "json://127.0.0.1:9/hook"),
    ]
    cron.night(LOSS)
    metrics = read(file)
    stream = (("platform", "linux/amd64"), ("source", "dockerhub:vllm/vllm-openai"))
    arch = (("arch", "sm120"), *stream)
    assert metrics["bisector_kernels", arch] == 0
    assert metrics["bisector_builds_known", stream] == 5
    assert metrics["bisector_posts_pending", ()] == 1
    assert metrics["bisector_failed_stages", ()] == 1
    assert metrics["bisector_last_run_timestamp_seconds", ()] == cron.lab.now.timestamp()
    good = cron.lab.night("2026-07-30").pushed_at.timestamp()
    assert metrics["bisector_newest_good_build_timestamp_seconds", arch] == good
    assert not any(math.isnan(value) for value in metrics.values())
    assert [path.name for path in cron.folder.glob("*.prom*")] == ["bisector.prom"]


def test_a_trial_reaches_everybody_and_tells_no_news(cron: Cron, tmp_path: Path) -> None:
    cron.posts += [
        '[[post]]\nkind = "github"\nrepository = "operators/vllm-watch"\n',
        f'[[post]]\nkind = "textfile"\npath = "{tmp_path / "b.prom"}"\n',
        to_webhook("gone", "json://127.0.0.1:9/hook"),
    ]
    answer = cron("notify", "--test", "--json")
    assert answer.exit_code == 4
    assert [(one["name"], one["ok"]) for one in answer.json["receivers"]] == [
        ("team", True),
        ("github", True),
        ("textfile", True),
        ("gone", False),
    ]
    assert cron.webhooks.titles == ["bisector: a trial post"]
    assert cron.lab.github.issues.all == []
    assert cron("notify", "--test", "--to", "team").exit_code == 0
    assert cron("notify", "--test", "--to", "nobody").exit_code == 2
    assert not (tmp_path / "b.prom").exists()


def read(file: Path) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }
