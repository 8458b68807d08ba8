"""An image with a Python, a shell and the stand-ins, made of this machine's own files: no registry, two seconds."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.lab.engine import DockerEngine

_HERE: Final = Path(__file__).parent
_NOT_NEEDED: Final = re.compile(
    r"/(test|tests|idlelib|tkinter|ensurepip|site-packages|lib2to3|config-[^/]*|__pycache__)(/|$)"
)
_PACKAGES: Final = "/usr/local/lib/python3.12/dist-packages/"
_LIBRARY: Final = re.compile(r"(/\S+)\s\(0x")
_SCRIPT: Final = '#!/bin/sh\nexec python3 /stand-in/{name}.py "$@"\n'


def import_stand_in(engine: DockerEngine, name: str = "stand-in:base") -> str:
    """Put the image into an engine; its name."""
    engine.docker(
        *("import", "-c", "ENV PATH=/usr/local/bin:/usr/bin:/bin", "-c", 'ENTRYPOINT ["serve"]', "-", name),
        given=_root_file_system(),
    )
    return name


def with_behaviour(
    engine: DockerEngine, name: str, *, packages: Mapping[str, bytes] | None = None, **behaviour: Any
) -> str:
    """The same image under another name, behaving as it is told, with more in its site-packages; the build's spelling.

    A name without a colon is a tag of ``stand-in``.
    """
    tag = name if ":" in name else f"stand-in:{name}"
    variable = json.dumps(json.dumps(behaviour))
    files = {
        "Dockerfile": "\n".join(
            ("FROM stand-in:base", f"ENV BEHAVIOUR={variable}", f"LABEL name={name}", f"COPY packages {_PACKAGES}")
        ).encode(),
        "packages/readme": b"",
        **{f"packages/{path}": content for path, content in (packages or {}).items()},
    }
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    engine.docker("build", "-q", "-t", tag, "-", given=context.getvalue())
    return f"docker:{tag}"


def _root_file_system() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", dereference=True) as archive:
        for folder in ("tmp", "proc", "sys", "dev", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for folder in ("bin", "lib", "lib64"):
            if Path("/", folder).is_symlink():
                _link(archive, folder, f"usr/{folder}")
        for path in sorted({Path(path).parent.resolve() / Path(path).name for path in _files()}):
            archive.add(path, arcname=str(path).lstrip("/"), recursive=False)
        _link(archive, "usr/bin/python3", str(Path(sys.executable).resolve()))
        for name in ("serve", "bench"):
            archive.add(_HERE / f"{name}.py", arcname=f"stand-in/{name}.py")
        _script(archive, "usr/bin/serve", _SCRIPT.format(name="serve"))
        _script(archive, "usr/bin/vllm", _SCRIPT.format(name="bench"))
    return made.getvalue()


def _files() -> Iterator[str]:
    python = str(Path(sys.executable).resolve())
    programs = [python, *(str(shutil.which(name)) for name in ("sh", "cat", "sleep"))]
    library = Path(sysconfig.get_path("stdlib"))
    modules = [str(path) for path in library.rglob("*") if path.is_file() and not _NOT_NEEDED.search(str(path))]
    native = [module for module in modules if module.endswith(".so")]
    yield from programs
    yield from modules
    for program in [*programs, *native]:
        listing = subprocess.run(["/usr/bin/ldd", program], capture_output=True, text=True, check=False).stdout
        yield from (str(Path(found)) for found in _LIBRARY.findall(listing))


def _link(archive: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)


def _script(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = 0o755, len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))
