"""The commands that read what a person hands over: a log, a launch command. They open no room and no history."""

from __future__ import annotations

import rich_click as click

from bisector.cli.app import Settings, bisector
from bisector.results import Audit, Diagnosis

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@bisector.command()
@click.argument("file", default="-", metavar="[FILE|-]")
@_JSON
@click.pass_obj
def diagnose(_settings: Settings, /, *, file: str, as_json: bool) -> int:
    """The causes in a log, the root first: of docker, compose, Kubernetes or journald, of any size.

    Exit 0 if a cause is named or nothing is wrong, 3 if the cause is unknown.
    """
    from bisector.diagnosis.signatures import shipped  # noqa: PLC0415 - heavy imports wait until a command runs
    from bisector.jobs.diagnose import diagnose as job  # noqa: PLC0415
    from bisector.reference import gpus  # noqa: PLC0415

    return _show(job(file, catalogue=shipped(), gpus=gpus()), as_json=as_json)


@bisector.command()
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--try", "tried", metavar="BUILD", help="Boot this build once without each workaround of --profile.")
@click.option("--profile", metavar="P", help="With --try: how it is served, a file or a shipped profile by name.")
@click.option("--host", default="local", show_default=True, metavar="H", help="With --try: the engine; see `confirm`.")
@_JSON
@click.pass_obj
def audit(settings: Settings, /, *, file: str, tried: str | None, profile: str | None, host: str, as_json: bool) -> int:
    """The workaround flags in a launch command, each with why it is there and when it may go.

    FILE is a docker run line, a shell script, a compose file, a Kubernetes manifest or a profile.
    """
    if tried is not None:
        from bisector.cli import proving  # noqa: PLC0415

        return proving.try_without(settings, tried, profile=profile, host=host, as_json=as_json)
    from bisector.diagnosis.manifest import launch  # noqa: PLC0415
    from bisector.diagnosis.workarounds import shipped  # noqa: PLC0415
    from bisector.jobs.audit import audit as job  # noqa: PLC0415

    return _show(job(file, read=launch, workarounds=shipped()), as_json=as_json)


def _show(result: Audit | Diagnosis, *, as_json: bool) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bisector.report import console as people  # noqa: PLC0415
    from bisector.report.plain.answers import answer_document  # noqa: PLC0415
    from bisector.report.plain.envelope import encode  # noqa: PLC0415

    if as_json:
        click.echo(encode(answer_document(result)))
    else:
        people.render(result, Console(highlight=False))
    return result.exit_code
