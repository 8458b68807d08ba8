"""Who is told, built from the configuration. Secrets are fetched when something is sent, and kept nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bisector.config.secret import secret
from bisector.config.sections import AppriseConfig, Config, IssueConfig, TextfileConfig
from bisector.errors import ConfigError
from bisector.http import Http
from bisector.jobs.news import REPORT
from bisector.ports import Gauge, Receiver
from bisector.report.posting.apprise import AppriseReceiver
from bisector.report.posting.github import IssueTracker
from bisector.report.posting.textfile import Textfile


def receivers(config: Config, http: Http) -> tuple[tuple[Receiver, ...], tuple[Gauge, ...]]:
    """Everybody who is told of changes, and everything that shows how things stand.

    Raises:
        ConfigError: Two have the same name, or one has a name that is taken.
    """
    told: list[Receiver] = []
    gauges: list[Gauge] = []
    names = {REPORT}
    for post in config.post:
        if post.name in names:
            raise ConfigError(
                f"Two receivers are called {post.name!r}" if post.name != REPORT else f"The name {REPORT!r} is taken",
                hint="Give each [[post]] a name of its own.",
            )
        names.add(post.name)
        match post:
            case AppriseConfig():
                told.append(AppriseReceiver(post.name, address_of(post)))
            case IssueConfig():
                told.append(
                    IssueTracker(
                        post.name,
                        http,
                        repository=post.repository,
                        api_base=config.github.api,
                        label=post.label,
                        token=token_of(post, config),
                    )
                )
            case TextfileConfig():
                gauges.append(Textfile(post.name, Path(post.path).expanduser()))
    return tuple(told), tuple(gauges)


def address_of(post: AppriseConfig) -> Callable[[], str]:
    """Gives the address when it is needed."""

    def address() -> str:
        found = secret(post.url, post.url_file, what=f"the address of {post.name}")
        if not found:
            raise ConfigError(f"The receiver {post.name} has no address", hint="Give it url or url-file.")
        return found

    return address


def token_of(post: IssueConfig, config: Config) -> Callable[[], str | None]:
    """Gives the token when it is needed; by default the one that commits are read with."""

    def token() -> str | None:
        own = secret(post.token, post.token_file, what=f"the token of {post.name}")
        general = secret(None, config.github.token_file, what="the token of [github]")
        return own or general or os.environ.get("GITHUB_TOKEN")

    return token
