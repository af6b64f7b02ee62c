"""The page of a search in a real browser, from a shell and from Python."""

import json
import pathlib
import subprocess
import sys

import pytest
import tpusim
from playwright.sync_api import expect
from tpusim.search.command import main

from tests.jax.search_steps import CONFIG, MESHES, RULES, matmul
from tests.tools.pages import choose, rows_of, text_of, value_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPACE = """
from tests.jax.search_steps import MESHES, RULES, matmul as build

configs = ["v5e-4x2", "v6e-4x2"]
space = {
    "mesh": MESHES,
    "rules": {"y": RULES["y"], "none": RULES["none"]},
    # The arguments of the last are 4.77 GiB and more per device.
    "batch": [1024, 10**7],
}
"""


@pytest.fixture(scope="module")
def made(binary, tmp_path_factory) -> tuple[pathlib.Path, dict]:
    """The page and the JSON of one search."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "space.py").write_text(SPACE)
    command = [sys.executable, "-m", "tpusim.search", folder / "space.py", "-q"]
    command += ["--html", folder / "s.html", "-o", folder / "s.json", "--workers", "2", "--all"]
    path = f"{ROOT}:{ROOT / 'tools' / 'python'}"
    environment = {"PATH": "/usr/bin:/bin", "TPUSIM_BINARY": binary, "PYTHONPATH": path}
    subprocess.run(command, check=True, timeout=300, env=environment, stdout=subprocess.DEVNULL)
    return folder / "s.html", json.loads((folder / "s.json").read_text())


def ranked(written: dict) -> list[dict]:
    return [c for c in written["candidates"] if c["rank"] is not None]


def test_the_ranking_says_why(made, show):
    path, written = made
    page = show(path)
    expect(page.locator("h1")).to_have_text("search for step time")
    rows = rows_of(page, "ranking")
    told = ranked(written)
    assert len(rows) == len(told) > 8
    for row, candidate in zip(rows, told, strict=True):
        assert int(row["rank"]) == candidate["rank"]
        assert (row["slice"], row["mesh"]) == (candidate["config"], candidate["mesh"])
        assert row["why behind"] == candidate["reason"]
        assert value_of(row["step time"]) == pytest.approx(candidate["step_time_ns"], rel=1e-3)
        assert value_of(row["peak HBM"]) == pytest.approx(candidate["peak_hbm_bytes"], rel=1e-3)
    best = page.locator("[data-figure=best]").inner_text()
    assert best.startswith(f"{told[0]['config']} mesh={told[0]['mesh']}")


def test_what_does_not_fit_is_there(made, show):
    path, written = made
    page = show(path)
    choose(page, "Not ranked")
    rows = rows_of(page, "What does not fit")
    told = [c for c in written["candidates"] if c["status"] == "does not fit"]
    assert [row["why"] for row in rows] == [c["reason"] for c in told]
    assert rows
    for row, candidate in zip(rows, told, strict=True):
        assert value_of(row["arguments"]) == pytest.approx(candidate["argument_bytes"], rel=1e-3)


def test_the_front_is_that_of_the_figures(made, show):
    path, written = made
    page = show(path)
    choose(page, "Pareto")
    told = ranked(written)
    marks = page.locator("section[aria-label='objective over memory'] circle")
    assert marks.count() == len(told)
    beaten_by_none = [
        c
        for c in told
        if not any(
            other["rank"] < c["rank"] and other["peak_hbm_bytes"] <= c["peak_hbm_bytes"]
            for other in told
        )
    ]
    labels = page.locator("section[aria-label='objective over memory'] svg > g > text")
    shown = [t for t in labels.all_text_contents() if t[:1].isdigit() and ": " in t]
    assert [int(t.split(":")[0]) for t in shown] == [c["rank"] for c in beaten_by_none]
    marks.and_(page.locator("[aria-label^='1: ']")).hover()
    expect(page.locator("#tip")).to_contain_text("1: ")


def test_parts_add_up_and_the_best_has_its_views(made, show):
    path, written = made
    page = show(path)
    choose(page, "Parts")
    for row, candidate in zip(rows_of(page, "where the steps go"), ranked(written), strict=True):
        assert value_of(row["sum"]) == pytest.approx(candidate["step_time_ns"], rel=1e-3)
    choose(page, "Summary")
    best = page.locator("[data-figure=step_time]").inner_text()
    assert value_of(best) == pytest.approx(ranked(written)[0]["step_time_ns"], rel=1e-3)


def test_any_candidate_opens(made, show):
    path, written = made
    told = ranked(written)
    page = show(path)
    # One of the middle, from the ranking: with its report, the summary has its figures.
    page.get_by_role("table", name="ranking").get_by_role("button", name="3", exact=True).click()
    expect(page.get_by_role("tab", name="Summary")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-figure=rank]")).to_have_text(f"3 of {len(written['candidates'])}")
    shown = page.locator("[data-figure=step_time]").inner_text()
    assert value_of(shown) == pytest.approx(told[2]["step_time_ns"], rel=1e-3)
    expect(page.locator("section[aria-label='Why it is behind'] li")).to_have_text(
        told[2]["reason"]
    )
    rows = rows_of(page, "its step beside that of the best")
    assert value_of(rows[0]["sum"]) == pytest.approx(told[0]["step_time_ns"], rel=1e-3)
    assert value_of(rows[1]["sum"]) == pytest.approx(told[2]["step_time_ns"], rel=1e-3)
    # Going back leads to the ranking, and an address to the candidate again.
    address = page.url
    page.go_back()
    expect(page.get_by_role("tab", name="Candidates")).to_have_attribute("aria-selected", "true")
    page.goto(address)
    expect(page.locator("[data-figure=rank]")).to_have_text(f"3 of {len(written['candidates'])}")
    # One that was not simulated has no more tabs than it has views.
    choose(page, "Not ranked")
    page.get_by_role("table", name="What does not fit").locator("td button.link").first.click()
    expect(page.locator("[data-figure=rank]")).to_have_text("does not fit")
    expect(page.get_by_role("tab", name="Memory")).to_have_count(0)
    # All are in the list.
    assert page.locator("#run option").count() == len(written["candidates"])


def test_the_best_are_compared(made, show):
    path, written = made
    told = ranked(written)
    page = show(path)
    choose(page, "Comparison")
    rows = rows_of(page, "steps")
    assert len(rows) == min(len(told), 12)
    by_time = {row["step time"] for row in rows}
    assert text_of(told[0]["step_time_ns"], "ns") in by_time
    others = [row for row in rows if row["against A"]]
    assert len(others) == len(rows) - 1
    for row in others:
        assert row["against A"][0] in "+-0"


def test_from_python_when_nothing_fits(tmp_path, show):
    space = {"mesh": [MESHES[0]], "rules": {"<y>": RULES["y"]}, "batch": [10**8]}
    results = tpusim.search(matmul, space, configs=CONFIG, progress=False, workers=1)
    results.save(tmp_path / "s.html")
    page = show(tmp_path / "s.html")
    assert page.get_by_role("tab").all_inner_texts() == ["Candidates", "Not ranked", "Summary"]
    choose(page, "Not ranked")
    (row,) = rows_of(page, "What does not fit")
    assert row["rules"] == "<y>"
    assert row["why"] == "the arguments alone take 47.71 GiB of 15.75 GiB"


def test_what_cannot_be_written_is_said_before_the_search(tmp_path, capsys):
    (tmp_path / "space.py").write_text(SPACE)
    assert main([str(tmp_path / "space.py"), "--html", str(tmp_path / "no" / "s.html")]) == 1
    assert "no/s.html: cannot be written: No such file" in capsys.readouterr().err
