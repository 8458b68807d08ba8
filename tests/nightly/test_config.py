from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bisector.cli.app import run
from bisector.config.reading import load
from bisector.config.secret import secret
from bisector.errors import ConfigError


def written(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return ["--config", str(path), "--db", str(tmp_path / "history.db")]


def test_init_writes_a_file_that_is_right_and_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "config.toml"
    assert run(["config", "init", str(file)]) == 0
    assert run(["--config", str(file), "config", "check"]) == 0
    assert file.stat().st_mode & 0o077 == 0
    before = file.read_text()
    capsys.readouterr()
    assert run(["config", "init", str(file)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert file.read_text() == before


def test_every_commented_line_of_it_is_right_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.toml"
    run(["config", "init", str(file)])
    # A comment that is TOML begins with a key or a section.
    file.write_text(re.sub(r"^# (?=\[|[a-z-]+ = )", "", file.read_text(), flags=re.MULTILINE))
    assert run(["--config", str(file), "config", "show", "--json"]) == 0
    values = {row["key"]: row for row in json.loads(capsys.readouterr().out.splitlines()[-1])["values"]}
    assert values["watch[0].stopped-after"] == {"key": "watch[0].stopped-after", "value": 3, "from": "file"}
    assert {values[f"post[{number}].name"]["value"] for number in range(3)} == {"team", "github", "textfile"}
    assert values["nightly.post"]["from"] == "file"


def test_show_says_where_each_value_comes_from_and_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BISECTOR_NIGHTLY_POST", "always")
    monkeypatch.setenv("BISECTOR_QUIET", "1")
    start = written(
        tmp_path,
        "[pypi]\nindex = 'https://user:hunter2@index.example/simple/'\n[harvest]\nlimit = 5\n"
        "[[post]]\nkind = 'apprise'\nurl = 'slack://T0/hunter2/B0'\n"
        "[[post]]\nkind = 'apprise'\nname = 'other'\nurl = '${CHAT_URL}'\n"
        "[[post]]\nkind = 'github'\nrepository = 'a/b'\ntoken = 'hunter2'\n",
    )
    assert run([*start, "config", "show"]) == 0
    shown = capsys.readouterr().out
    assert "hunter2" not in shown
    lines = shown.splitlines()
    assert f'db = "{tmp_path / "history.db"}"  # command line' in lines
    assert "quiet = true  # environment" in lines
    assert 'nightly.post = "always"  # environment' in lines
    assert "harvest.limit = 5  # file" in lines
    assert 'wheels.base = "https://wheels.vllm.ai"  # default' in lines
    assert 'post[0].url = "slack://(hidden)"  # file' in lines
    assert 'post[1].url = "${CHAT_URL}"  # file' in lines
    assert 'post[2].token = "(hidden)"  # file' in lines


def test_check_finds_every_mistake_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_URL", raising=False)
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    start = written(
        tmp_path,
        "[github]\ntoken-file = '/nowhere/token'\n"
        "[[watch]]\nsource = 'dokerhub:vllm/vllm-openai'\narchs = ['sm120', 'sm999']\n"
        "[[watch]]\nsource = 'pypi:vllm'\narchs = ['sm120']\n[[watch]]\nsource = 'pypi:vllm'\narchs = ['sm90']\n"
        "[[post]]\nkind = 'apprise'\nurl = '${NO_SUCH_URL}'\n"
        "[[post]]\nkind = 'apprise'\nname = 'odd'\nurl = 'nonsense://secret-word'\n"
        "[[post]]\nkind = 'github'\nrepository = 'a/b'\n"
        "[[post]]\nkind = 'textfile'\npath = '/nowhere/b.prom'\n",
    )
    assert run([*start, "config", "check", "--json"]) == 2
    told = capsys.readouterr()
    found = {mistake["key"]: mistake["error"] for mistake in json.loads(told.out)["mistakes"]}
    assert set(found) == {
        "github.token-file",
        "watch",
        "watch[0].source",
        "watch[0].archs",
        "post[0] (apprise)",
        "post[1] (odd)",
        "post[2] (github)",
        "post[3] (textfile)",
    }
    assert "NO_SUCH_URL" in found["post[0] (apprise)"]
    assert "secret-word" not in told.out + told.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[watch]]\nsource = 'pypi:vllm'\n", "archs"),
        ("[[watch]]\nsource = 'pypi:vllm'\narchs = []\n", "archs"),
        ("[[watch]]\nsource = 'pypi:vllm'\narchs = ['sm120']\nstoped-after = 3\n", "stoped-after"),
        ("[watch]\nsource = 'pypi:vllm'\n", "[[watch]]"),
        ("[[post]]\nkind = 'pigeon'\n", "pigeon"),
        ("[[post]]\nurl = 'json://host'\n", "kind"),
        ("[[post]]\nkind = 'textfile'\npath = 'b.txt'\n", "path"),
        ("[[wach]]\nsource = 'pypi:vllm'\n", "Did you mean 'watch'?"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, named: str
) -> None:
    assert run([*written(tmp_path, text), "config", "check"]) == 2
    assert named in capsys.readouterr().err


def test_two_receivers_of_one_name_and_a_name_that_is_taken_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    post = "[[post]]\nkind = 'apprise'\nurl = 'json://127.0.0.1'\n"
    assert run([*written(tmp_path, post * 2), "config", "check"]) == 2
    assert "Two receivers are called 'apprise'" in capsys.readouterr().out
    assert run([*written(tmp_path, post + "name = 'report'\n"), "config", "check"]) == 2
    assert "'report' is taken" in capsys.readouterr().out


def test_secrets_come_from_the_environment_or_a_file_and_are_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "hunter2")
    (tmp_path / "url").write_text("json://hunter2@host\n")
    assert secret("json://${WORD}@host", None, what="it") == "json://hunter2@host"
    assert secret(None, str(tmp_path / "url"), what="it") == "json://hunter2@host"
    assert secret(None, None, what="it") is None
    with pytest.raises(ConfigError, match="OTHER_WORD"):
        secret("json://${WORD}@${OTHER_WORD}", None, what="it")
    with pytest.raises(ConfigError) as failed:
        secret("hunter2", str(tmp_path / "missing"), what="the address")
    assert "hunter2" not in failed.value.message


def test_nothing_watched_is_said_before_anything_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*written(tmp_path, ""), "nightly"]) == 2
    assert "[[watch]]" in capsys.readouterr().err
    assert run([*written(tmp_path, ""), "nightly", "--source", "pypi:vllm"]) == 2
    assert run([*written(tmp_path, ""), "notify", "--test"]) == 2
    assert not (tmp_path / "history.db").exists()


def test_the_file_says_what_the_structures_do() -> None:
    shipped = Path(__file__).parents[2] / "data/config.toml"
    config = load(shipped, options={"": (), "nightly": ("post", "page")})
    (watch,) = config.watch
    assert (watch.archs, watch.platform, watch.stopped_after) == (("sm120",), "linux/amd64", 3)
