"""The commands: each parses its options, runs one job and renders its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from bisector.cli.app import PLATFORM, SOURCE, Settings, bisector

_ARCH_HELP = "GPU or architecture: sm120, 12.0, RTX 5090, 'RTX PRO 6000'…"
_ARCH = click.option("--arch", required=True, metavar="ARCH", help=_ARCH_HELP)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
_PLATFORM = click.option(
    "--platform", default=PLATFORM, show_default=True, metavar="OS/ARCH", help="Whose files are meant."
)
_REQUIRE = click.option(
    "--require", multiple=True, metavar="OP", help="An operation that must be there (repeatable). [default: any]"
)
_VERIFY = click.option("--verify", is_flag=True, help="Read the layers of images to their end and check every digest.")
_REFRESH = click.option("--refresh", is_flag=True, help="Read again even what the history knows.")
_SOURCE = click.option(
    "--source",
    default=SOURCE,
    show_default=True,
    metavar="S",
    help="The stream of builds: dockerhub:REPO, registry:HOST/REPO, commits:OWNER/NAME, pypi:PACKAGE…",
)


def _reading(command: Any) -> Any:
    """What every command that reads builds can be told about reading them."""
    return _PLATFORM(_REFRESH(_VERIFY(_JSON(command))))


@bisector.command("find-regression")
@click.option("--arch", metavar="ARCH", help=_ARCH_HELP)
@_SOURCE
@click.option("--good", metavar="B", help="A build that has the kernels: id, commit, date or digest.")
@click.option("--bad", metavar="B", help="A build that has not.")
@click.option("--since", metavar="DATE", help="Leave out builds published before YYYY-MM-DD.")
@click.option(
    "--strategy",
    type=click.Choice(["auto", "sweep", "bisect"]),
    default="auto",
    show_default=True,
    help="Look at every build of the range, or halve it. auto: sweep while a look is cheap.",
)
@_REQUIRE
@click.option("--find-fix", is_flag=True, help="Look for the first build that has them again.")
@click.option("--commits", is_flag=True, help="Go on from the two builds to the commit between them.")
@click.option(
    "--repo",
    "clone",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A clone to read the commits from instead of GitHub.",
)
@click.option(
    "--every",
    type=click.Choice(["commit", "day"]),
    default="commit",
    show_default=True,
    help="How dense a stream of commits is.",
)
@click.option("--pre", "prereleases", is_flag=True, help="Look at pre-releases too.")
@click.option(
    "--by",
    type=click.Choice(["kernels", "boot", "tpot"]),
    default="kernels",
    show_default=True,
    help="What makes a build good: its kernels; that it boots and answers; that it is as fast as --good.",
)
@click.option("--confirm", is_flag=True, help="Boot the two builds that were found.")
@click.option("--profile", metavar="P", help="How builds are booted: a file, or a shipped profile by name.")
@click.option("--host", default="local", show_default=True, metavar="H", help="The engine that boots; see `confirm`.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted search; its options are taken over.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done, and read no build.")
@_reading
@click.pass_obj
def find_regression(
    settings: Settings,
    /,
    *,
    platform: str,
    refresh: bool,
    verify: bool,
    clone: Path | None,
    as_json: bool,
    only_plan: bool,
    resume: str | None,
    **options: Any,
) -> int:
    """Find the build that lost an architecture's kernels, and what else changed in it."""
    from bisector.cli import requests  # noqa: PLC0415 - heavy imports wait until a command runs
    from bisector.jobs.find import find, plan  # noqa: PLC0415
    from bisector.model import Asked  # noqa: PLC0415

    if resume:
        options = requests.asked_before(settings, resume)
    request = requests.regression(**options)
    boots = request.by != "kernels" or request.confirm
    job = plan if only_plan else find
    asked = Asked(
        command="find-regression",
        arguments=options,
        question=f"Which build lost {request.question.device.name}?",
        source=request.source,
        arch=request.question.device.name,
        resumes=resume,
    )
    if boots and not only_plan:
        from bisector.cli import proving  # noqa: PLC0415

        return proving.find_regression(
            settings, request, asked, platform=platform, refresh=refresh, verify=verify, clone=clone, as_json=as_json
        )
    return requests.answer(
        settings,
        lambda rooms: job(request, resolve=rooms.resolve, probe=rooms.probe),
        platform=platform,
        refresh=refresh,
        verify=verify,
        clone=clone,
        as_json=as_json,
        asked=None if only_plan else asked,
    )


@bisector.command()
@click.argument("builds", nargs=-1, required=True, metavar="BUILD…")
@_ARCH
@_REQUIRE
@_SOURCE
@_reading
@click.pass_obj
def check(
    settings: Settings, /, *, builds: tuple[str, ...], arch: str, require: tuple[str, ...], **options: Any
) -> int:
    """The gate before adopting a build: exit 0 if it has the kernels, 1 if it has not.

    BUILD is an image (vllm/vllm-openai:nightly-…, HOST/REPO@sha256:…), a release (pypi:vllm==0.27.0), a build of
    --source, docker:IMAGE, oci:DIR[:TAG], or a path to a .whl, a .so or an unpacked directory.
    """
    from bisector.cli import requests  # noqa: PLC0415
    from bisector.jobs.check import check as job  # noqa: PLC0415

    question = requests.question(arch, require)
    return requests.answer(
        settings, lambda rooms: job(builds, question, resolve=rooms.resolve, probe=rooms.probe), **options
    )


@bisector.command()
@click.argument("build", metavar="BUILD")
@click.option(
    "--all-libraries", is_flag=True, help="Also list the device code of every other CUDA library (reads them whole)."
)
@_SOURCE
@_reading
@click.pass_obj
def inspect(settings: Settings, /, *, build: str, all_libraries: bool, **options: Any) -> int:
    """What a build contains: operations by architecture, versions, gate, provenance."""
    from bisector.cli import requests  # noqa: PLC0415
    from bisector.jobs.inspect import inspect as job  # noqa: PLC0415

    return requests.answer(
        settings,
        lambda rooms: job(build, resolve=rooms.resolve, probe=rooms.probe, all_libraries=all_libraries),
        **options,
    )


@bisector.command()
@click.argument("before", metavar="BUILD")
@click.argument("after", metavar="BUILD")
@_SOURCE
@_reading
@click.pass_obj
def diff(settings: Settings, /, *, before: str, after: str, **options: Any) -> int:
    """Kernels lost and gained between two builds, and the packages that changed."""
    from bisector.cli import requests  # noqa: PLC0415
    from bisector.jobs.inspect import diff as job  # noqa: PLC0415

    return requests.answer(
        settings, lambda rooms: job(before, after, resolve=rooms.resolve, probe=rooms.probe), **options
    )


@bisector.command()
@_SOURCE
@_PLATFORM
@_JSON
@click.pass_obj
def builds(settings: Settings, /, *, source: str, platform: str, as_json: bool) -> int:
    """The stream as a timeline, with what the history knows of each build."""
    from bisector.cli import requests  # noqa: PLC0415
    from bisector.jobs.timeline import timeline as job  # noqa: PLC0415

    return requests.answer(
        settings,
        lambda rooms: job(source, resolve=rooms.resolve, probe=rooms.probe),
        source=source,
        platform=platform,
        as_json=as_json,
    )
