"""The page as Debian's Chromium shows it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, sync_playwright

from bisector.report.html import html
from tests.report.nights import ALL_OF_MARKUP, BOOTS, LOSS_LASTS, benchmarks, build, hostile, night

pytestmark = pytest.mark.browser

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
NAMES = ("empty", "one build", "40 builds", "400 builds", "hostile", "long names")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Debian's chromium is not installed: scripts/services chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bad, bad_boots, bad_benchmarks = hostile(ALL_OF_MARKUP)
    long, long_boots, long_benchmarks = hostile("x" * 200)
    pages = (
        html(night(0)),
        html(night(1)),
        html(night(40), boots=BOOTS, benchmarks=benchmarks(3)),
        html(night(400), boots=BOOTS, benchmarks=benchmarks(40)),
        html(bad, boots=bad_boots, benchmarks=bad_benchmarks),
        html(long, boots=long_boots, benchmarks=long_benchmarks),
    )
    made = tmp_path_factory.mktemp("pages")
    for name, content in zip(NAMES, pages, strict=True):
        (made / f"{name}.html").write_text(content, encoding="utf-8")
    return made


def opened(browser: Browser, folder: Path, name: str, *, width: int = 1400, scheme: str = "light") -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page.goto((folder / f"{name}.html").as_uri())
    return page


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_asked_for_and_nothing_goes_wrong(browser: Browser, folder: Path, name: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    address = (folder / f"{name}.html").as_uri()
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert wrong == []
    page.close()


def test_the_answers_the_grid_and_the_pins_are_there(browser: Browser, folder: Path) -> None:
    page = opened(browser, folder, "400 builds")
    assert page.locator(".answer").count() == 3
    assert page.locator(".answer .says").first.inner_text().startswith("Lost in nightly-")
    assert page.locator("table.grid tbody tr").count() == 400
    assert page.locator("table.grid td.lost").all_inner_texts()[0] == "▼ lost here"
    assert page.locator("figure svg").count() == 1
    pin = page.locator(".answer .pin code").first
    pin.click()
    last_good = build(400 - 1 - LOSS_LASTS, behind=LOSS_LASTS)
    assert page.evaluate("getSelection().toString()").strip() == last_good.pin
    page.close()


@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("name", NAMES)
def test_the_page_never_scrolls_sideways(browser: Browser, folder: Path, name: str, width: int) -> None:
    page = opened(browser, folder, name, width=width)
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_everything_is_reached_with_the_keyboard(browser: Browser, folder: Path) -> None:
    page = opened(browser, folder, "400 builds")
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    box = skip.bounding_box()
    assert page.evaluate("document.activeElement.className") == "skip"
    assert box is not None
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    pin = page.evaluate("[document.activeElement.value, getSelection().toString()]")
    assert pin[0] == pin[1] == build(400 - 1 - LOSS_LASTS, behind=LOSS_LASTS).pin
    left = page.locator("summary").all_inner_texts()
    assert left == ["Ask again", "370 older builds", "The numbers"]
    for _ in range(20):
        page.keyboard.press("Tab")
        if left and page.evaluate("document.activeElement.innerText") == left[0]:
            left.pop(0)
    assert left == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "400 builds"])  # more of the same, for a minute
def test_contrast_and_labels_pass_an_accessibility_checker(
    browser: Browser, folder: Path, name: str, scheme: str
) -> None:
    page = opened(browser, folder, name, width=820, scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    found = Axe().run(page)
    assert found.response["passes"]
    assert found.violations_count == 0, found.generate_report()
    page.close()


def test_paper_shows_the_pins_and_no_controls(browser: Browser, folder: Path) -> None:
    page = opened(browser, folder, "400 builds", width=820, scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator(".pin input").first.is_visible()
    assert page.locator(".pin code").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
