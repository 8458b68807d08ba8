"""Every error bisector raises on purpose.

    BisectorError
    ├── UsageError                exit 2  the request cannot be understood or does not fit
    │   ├── UnknownArchitecture           no such GPU or architecture
    │   ├── UnknownSource                 no such stream
    │   ├── UnknownBuild                  no such package, release, tag, commit or file
    │   ├── UnknownRun                    the history holds no such run
    │   ├── NoBuildForPlatform            the build exists, but not for this platform
    │   ├── ReversedRange                 the good build is newer than the bad one
    │   └── ConfigError                   a configuration file or variable is wrong
    ├── Unreadable                exit 3  the thing is there and its bytes cannot be understood
    │   └── RangesUnsupported             a server that only gives whole files
    ├── LaunchRefused             exit 1  an engine cannot start the image as it is
    └── Unavailable               exit 4  something outside does not answer; later it may
        ├── RateLimited                   asked to wait
        ├── NoHardware                    this machine has not what a boot needs
        └── HistoryUnavailable            the history file cannot be opened or written

A message says what failed and on what, in one sentence without its full stop; the hint says what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class BisectorError(Exception):
    """The root: a sentence for people, a hint for the next step, an exit code for scripts."""

    exit_code: ClassVar[int] = 1
    default_hint: ClassVar[str] = "Run again with -v for the details."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message.removesuffix(".")
        self.hint = hint or self.default_hint


class UsageError(BisectorError):
    """The request cannot be understood, or contradicts itself."""

    exit_code = 2
    default_hint = "See `bisector COMMAND --help`."


class UnknownArchitecture(UsageError):
    """A spelling that names no GPU and no architecture."""

    default_hint = "Write it as sm120, 12.0 or by the GPU's name (RTX 5090)."


class UnknownSource(UsageError):
    """A spelling that names no stream of builds."""

    default_hint = "Write a source as pypi:PACKAGE."


class UnknownBuild(UsageError):
    """A package, release or file that does not exist."""

    default_hint = "`bisector builds` lists what there is."


class UnknownRun(UsageError):
    """A run that the history does not hold."""

    default_hint = "`bisector history runs` lists them."


class NoBuildForPlatform(UsageError):
    """The release exists, but has no wheel for the platform asked for."""

    default_hint = "Choose another with --platform, such as linux/amd64 or linux/arm64."


class ReversedRange(UsageError):
    """The good build comes after the bad one in the stream."""

    default_hint = "Swap the two, or add --find-fix to look for the build that has it again."


class ConfigError(UsageError):
    """A configuration file or environment variable cannot be used as it stands."""

    default_hint = "Correct the value named above."


class Unreadable(BisectorError):
    """A file, archive or library that is there, but cannot be understood."""

    exit_code = 3
    default_hint = "Check that the file is complete, or read another copy of the build."


class RangesUnsupported(Unreadable):
    """The server answers a Range request with the whole file."""

    default_hint = "Add --allow-full-download to fetch the whole file, or use an index whose server knows ranges."


class LaunchRefused(BisectorError):
    """The engine refused to start a container, for a reason that lies in the image."""

    default_hint = "Start the image by hand to see more."


class Unavailable(BisectorError):
    """The network, an index or a registry did not answer as it should; later it may."""

    exit_code = 4
    default_hint = "Check the connection and try again later; what was read is kept."


class RateLimited(Unavailable):
    """A server asked to wait longer than bisector is willing to."""

    default_hint = "Try again after the time named; what was read is kept."


class NoHardware(Unavailable):
    """The machine has not the hardware, memory, room or files that a boot needs: it says nothing about the image."""

    default_hint = "Choose another machine with --host, or free what is named above."


class HistoryUnavailable(Unavailable):
    """The history file cannot be opened, read or written."""

    default_hint = "Name another file with --db, or free the one named above."
