"""The commands: each parses its options, runs one job and renders its result."""

from __future__ import annotations

from typing import Any

import rich_click as click

from bisector.cli.app import PLATFORM, SOURCE, Settings, bisector

_ARCH = click.option(
    "--arch", required=True, metavar="ARCH", help="GPU or architecture: sm120, 12.0, RTX 5090, 'RTX PRO 6000'…"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
_PLATFORM = click.option(
    "--platform", default=PLATFORM, show_default=True, metavar="OS/ARCH", help="Whose files are meant."
)
_REQUIRE = click.option(
    "--require", multiple=True, metavar="OP", help="An operation that must be there (repeatable). [default: any]"
)
_REFRESH = click.option("--refresh", is_flag=True, help="Read again even what the history knows.")
_SOURCE = click.option(
    "--source", default=SOURCE, show_default=True, metavar="S", help="The stream of builds: pypi:PACKAGE."
)


@bisector.command("find-regression")
@_ARCH
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
@click.option("--pre", "prereleases", is_flag=True, help="Look at pre-releases too.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done, and read no build.")
@_PLATFORM
@_REFRESH
@_JSON
@click.pass_obj
def find_regression(
    settings: Settings, /, *, platform: str, refresh: bool, as_json: bool, only_plan: bool, **options: Any
) -> int:
    """Find the build that lost an architecture's kernels, and what else changed in it."""
    from bisector.cli import requests  # noqa: PLC0415 - heavy imports wait until a command runs
    from bisector.jobs.find import find, plan  # noqa: PLC0415

    request = requests.regression(**options)
    job = plan if only_plan else find
    return requests.answer(
        settings,
        lambda rooms: job(request, resolve=rooms.resolve, probe=rooms.probe),
        platform=platform,
        refresh=refresh,
        as_json=as_json,
        source=request.source,
    )


@bisector.command()
@click.argument("builds", nargs=-1, required=True, metavar="BUILD…")
@_ARCH
@_REQUIRE
@_SOURCE
@_PLATFORM
@_REFRESH
@_JSON
@click.pass_obj
def check(
    settings: Settings, /, *, builds: tuple[str, ...], arch: str, require: tuple[str, ...], **options: Any
) -> int:
    """The gate before adopting a build: exit 0 if it has the kernels, 1 if it has not.

    BUILD is pypi:vllm==0.27.0, a release of --source, or a path to a .whl, a .so or an unpacked directory.
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
@_PLATFORM
@_REFRESH
@_JSON
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
@_PLATFORM
@_REFRESH
@_JSON
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
