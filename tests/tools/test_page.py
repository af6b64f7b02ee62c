"""The page of `--html` in a real browser: what it shows is what the report says.

Chromium without a display and without a network, driven by Playwright. Every test ends without an
error on the console and without a request beyond the file itself.
"""

import json
import pathlib
import re
import subprocess

import pytest
from playwright.sync_api import expect

from tests.tools.pages import choose, rows_of, small_of, text_of, value_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABS = ["Summary", "Timeline", "Breakdown", "Roofline", "Memory", "Torus", "Collectives"]


def example(name: str) -> pathlib.Path:
    return ROOT / "workloads" / "examples" / f"{name}.pb.gz"


@pytest.fixture(scope="module", params=["collective_matmul_int32", "mlp_scan_8_layers"])
def made(request, binary, tmp_path_factory) -> tuple[pathlib.Path, dict]:
    """The page of a run and its report."""
    folder = tmp_path_factory.mktemp(request.param)
    command = [binary, "run", example(request.param), "--config", "v5e-4x2", "--quiet"]
    command += ["--html", folder / "x.html", "--report", folder / "r.json"]
    subprocess.run(command, check=True, timeout=60)
    return folder / "x.html", json.loads((folder / "r.json").read_text())


def test_every_tab_shows_something(made, show):
    page = show(made[0])
    assert page.get_by_role("tab").all_inner_texts() == TABS
    for tab in TABS:
        choose(page, tab)
        assert page.locator("section.panel").count() >= 1
    # By keys alone, too.
    page.get_by_role("tab", name="Collectives").press("ArrowRight")
    expect(page.get_by_role("tab", name="Summary")).to_be_focused()


def test_the_summary_has_the_figures_of_the_report(made, show):
    path, report = made
    page = show(path)
    step = report["step_time_ns"]
    # A figure's first line, and what its second has to say among other things.
    told = {
        "step_time": (text_of(step, "ns"), ""),
        "mfu": (text_of(report["mfu"], "share"), text_of(report["hfu"], "share")),
        "bound_by": (report["bound_by"], "critical path: "),
        "compute": (
            text_of(sum(row["compute_ns"] for row in report["rollup"]["op"]), "ns"),
            "of the step, MXU ",
        ),
        "exposed": (
            text_of(report["exposed_communication_ns"], "ns"),
            text_of(report["exposed_communication_ns"] / step, "share"),
        ),
        "memory": (
            text_of(report["peak_hbm_bytes"], "bytes"),
            f"of {text_of(report['usable_hbm_bytes'], 'bytes')} usable HBM",
        ),
        "flops": (text_of(report["flops"], "flops"), "per device"),
        "slice": (report["config"], f"{report['chips']} chips, {report['devices']} devices"),
    }
    figures = page.locator("#panels [data-figure]").all()
    assert [figure.get_attribute("data-figure") for figure in figures] == list(told)
    for figure in figures:
        first, _, second = figure.inner_text().partition("\n")
        text, more = told[figure.get_attribute("data-figure")]
        assert first == text != ""
        assert more in second
    bounds = {row["bound"]: row["time"] for row in rows_of(page, "lower bounds")}
    assert bounds == {name: text_of(ns, "ns") for name, ns in report["bound_ns"].items() if ns > 0}
    assumed = page.locator("[data-list=assumptions] li").all_inner_texts()
    assert assumed[1:] == report["assumptions"]


def test_figures_read_as_in_the_terminal(made, show, binary):
    path, report = made
    command = [binary, "run", example(report["workload"]), "--config", "v5e-4x2"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page = show(path)
    step = re.search(r"^step time +(\S+ \S+)", text, re.MULTILINE)[1]
    assert page.locator("[data-figure=step_time]").inner_text() == step
    peak = re.search(r"^memory +peak (\S+ \S+)", text, re.MULTILINE)[1]
    assert page.locator("[data-figure=memory]").inner_text().startswith(peak)
    bound, path = re.search(r"^bound by +(\S+) \((.*)\)$", text, re.MULTILINE).groups()
    shown, shares = page.locator("[data-figure=bound_by]").inner_text().split("\n")
    assert shown == bound
    assert path.split(", other")[0] in shares


@pytest.mark.parametrize("by", ["op", "scope", "source", "category", "collective"])
def test_breakdowns_add_up_to_the_step(made, show, by):
    path, report = made
    page = show(path)
    choose(page, "Breakdown")
    button = page.get_by_role("group", name="by", exact=True).get_by_role(
        "button", name=by, exact=True
    )
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    label = "operation" if by == "op" else by
    rows = rows_of(page, f"step by {label}")
    assert [row[label] for row in rows] == [row["name"] for row in report["rollup"][by]]
    for row, told in zip(rows, report["rollup"][by], strict=True):
        assert value_of(row["time"]) == pytest.approx(told["time_ns"], rel=1e-3, abs=1e-3)
    total = page.locator("[data-figure=sum]").inner_text().removeprefix("sum ")
    assert value_of(total) == pytest.approx(report["step_time_ns"], rel=1e-3)


def test_columns_sort(made, show):
    page = show(made[0])
    choose(page, "Breakdown")
    page.get_by_role("button", name="time", exact=True).click()
    table = page.get_by_role("table", name="step by operation")
    expect(table.locator("th[aria-sort]")).to_have_text("time")
    times = [value_of(row["time"]) for row in rows_of(page, "step by operation")]
    assert times == sorted(times, reverse=True)
    page.get_by_role("button", name="time", exact=True).click()
    times = [value_of(row["time"]) for row in rows_of(page, "step by operation")]
    assert times == sorted(times)


def test_the_timeline_zooms_and_says_what_slices_are(made, show):
    path, report = made
    page = show(path)
    choose(page, "Timeline")
    chart = page.locator("svg[aria-label^=timeline]")
    assert chart.get_attribute("data-from") == "0"
    assert int(chart.get_attribute("data-to")) == pytest.approx(report["step_time_ns"], abs=1)
    names = page.locator("[data-track=TensorCore] rect").evaluate_all(
        "marks => marks.map(m => m.getAttribute('aria-label'))"
    )
    longest = max(report["ops"], key=lambda op: op["total_ns"])
    assert any(name.split("\n")[0] == longest["name"] for name in names)
    mark = page.locator(f"[data-track=TensorCore] rect[aria-label^='{longest['name']}\\a ']").first
    mark.hover()
    expect(page.locator("#tip")).to_contain_text(longest["category"])
    mark.click()
    expect(page.locator("#selected")).to_contain_text(longest["name"])
    page.get_by_role("button", name="zoom in").click()
    page.get_by_role("button", name="zoom in").click()

    def span():
        return int(chart.get_attribute("data-to")) - int(chart.get_attribute("data-from"))

    assert span() == pytest.approx(report["step_time_ns"] / 4, rel=0.01)
    before = int(chart.get_attribute("data-from"))
    chart.press("ArrowRight")
    assert int(chart.get_attribute("data-from")) > before
    page.get_by_role("button", name="whole step").click()
    assert span() == pytest.approx(report["step_time_ns"], abs=1)


def test_the_roofline_has_a_mark_per_operation(made, show):
    path, report = made
    page = show(path)
    choose(page, "Roofline")
    marks = page.locator("[data-marks=roofline] circle")
    inside = {"while", "conditional", "call"}
    drawn = [
        op
        for op in report["ops"]
        if op["flops"] > 0 and op["hbm_bytes"] > 0 and op["category"] not in inside
    ]
    assert marks.count() == len(drawn) > 0
    longest = max(drawn, key=lambda op: op["total_ns"])
    # The longest comes first: the others lie on top of it.
    label = marks.first.get_attribute("aria-label")
    assert label.startswith(longest["name"])
    rate = longest["flops"] / (longest["total_ns"] * 1e-9)
    shown = re.search(r"\n(\S+) TFLOP/s", label)
    assert shown, label
    assert float(shown[1]) * 1e12 == pytest.approx(rate, rel=1e-3)


def test_operations_say_what_the_compiler_decided(binary, tmp_path, show):
    file, report_file = tmp_path / "x.html", tmp_path / "r.json"
    command = [binary, "run", example("mlp_scan_8_layers"), "--config", "v5e-4x2", "--quiet"]
    command += ["--explain", "memory-space-assignment", "--html", file, "--report", report_file]
    subprocess.run(command, check=True, timeout=60)
    report = json.loads(report_file.read_text())
    drawn = {op["name"] for op in report["ops"] if op["flops"] > 0 and op["hbm_bytes"] > 0}
    placed = [r for r in report["records"] if r["reason"] == "memory-space-assignment.placed"]
    decision = next(r for r in placed if r["subject"] in drawn)
    page = show(file)
    choose(page, "Roofline")
    mark = page.locator(f'[data-marks=roofline] circle[aria-label^="{decision["subject"]} ("]')
    mark.first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text(decision["text"]).first).to_be_visible()


def test_memory_has_its_owners_and_arrays(made, show):
    path, report = made
    page = show(path)
    choose(page, "Memory")
    peak = report["memory_at_peak"]
    shown = page.locator("ul.legend li").all_inner_texts()
    for owner in peak["owners"]:
        assert any(text.startswith(f"{owner['owner']} ") for text in shown), shown
    rows = rows_of(page, "arrays at the peak")
    assert [row["array"] for row in rows] == [a["name"] for a in peak["arrays"]]
    assert [row["shape"] for row in rows] == [a["shape"] for a in peak["arrays"]]
    # Over time: a layer for each, as high as it says.
    layers = page.locator("[data-marks=live] path").evaluate_all(
        "marks => marks.map(m => m.getAttribute('aria-label'))"
    )
    largest = dict(layer.split(": up to ") for layer in layers)
    for owner in peak["owners"]:
        assert value_of(largest[owner["owner"]]) >= 0.999 * owner["bytes"]


def test_the_torus_has_every_link(made, show):
    path, report = made
    page = show(path)
    choose(page, "Torus")
    marks = page.locator("[data-marks=links] line")
    assert marks.count() == len(report["links"])
    labels = marks.evaluate_all("marks => marks.map(m => m.getAttribute('aria-label'))")
    by_direction = {row["direction"]: row for row in rows_of(page, "directions")}
    for direction, row in by_direction.items():
        of = [link for link in report["links"] if link["direction"] == direction]
        assert row["links"] == str(len(of))
        assert row["bytes"] == text_of(sum(link["bytes"] for link in of), "bytes")
        assert row["busiest"] == text_of(max(link["utilization"] for link in of), "share")
    for link in report["links"]:
        use = f"{100 * link['utilization']:.1f}%"
        assert any(t.startswith(f"chip {link['chip']} {link['direction']}: {use}") for t in labels)


def test_collectives_say_why_they_are_exposed(made, show):
    path, report = made
    page = show(path)
    choose(page, "Collectives")
    if not report["collectives"]:
        expect(page.locator("#panels")).to_contain_text("The program has none.")
        return
    rows = rows_of(page, "collectives")
    assert [row["collective"] for row in rows] == [c["name"] for c in report["collectives"]]
    for row, told in zip(rows, report["collectives"], strict=True):
        assert row["count"] == str(told["count"])
        assert row["bytes"] == text_of(told["bytes"], "bytes")
        assert row["simulated"] == text_of(told["total_ns"] / told["count"], "ns")
        assert row["expected"] == text_of(told["expected_ns"], "ns")
        assert row["bound"] == text_of(told["bound_ns"], "ns")
        assert row["exposed"] == text_of(told["exposed_ns"] / told["total_ns"], "share")
        for reason in told["exposed_by"]:
            assert f"{reason['reason']} {text_of(reason['exposed_ns'], 'ns')}" in row["why exposed"]


@pytest.fixture(scope="module")
def layers(binary, tmp_path_factory) -> tuple[pathlib.Path, dict]:
    """Returns page and report of a program whose layers are unrolled."""
    folder = tmp_path_factory.mktemp("layers")
    name = "residual_mlp_train_loop_two_dimensional"
    command = [binary, "run", example(name), "--config", "v5e-4x2", "--quiet"]
    command += ["--html", folder / "x.html", "--report", folder / "r.json"]
    subprocess.run(command, check=True, timeout=60)
    return folder / "x.html", json.loads((folder / "r.json").read_text())


def test_collectives_of_layers_are_one_row(layers, show):
    path, report = layers
    page = show(path)
    choose(page, "Collectives")
    rows = rows_of(page, "collectives")
    told = report["collectives"]
    assert len(rows) < len(told)
    # Together they are all of them.
    assert sum(int(row["count"]) for row in rows) == sum(c["count"] for c in told)
    first = next(row for row in rows if "*" in row["collective"])
    pattern = re.compile(re.escape(first["collective"]).replace("\\*", r"\d+"))
    page.get_by_role("table", name="collectives").locator(".unfold").first.click()
    inside = rows_of(page, "collectives")
    added = inside[rows.index(first) + 1 :][: len(inside) - len(rows)]
    assert len(added) > 1
    for row in added:
        one = next(c for c in told if c["name"] == row["collective"])
        assert pattern.fullmatch(one["name"])
        assert row["bytes"] == first["bytes"] == text_of(one["bytes"], "bytes")
        assert row["simulated"] == text_of(one["total_ns"] / one["count"], "ns")
    assert int(first["count"]) == sum(int(row["count"]) for row in added)


def test_tables_are_filtered(layers, show):
    path, report = layers
    page = show(path)
    choose(page, "Collectives")
    kind = report["collectives"][-1]["kind"]
    page.get_by_role("group", name="kind").get_by_role("button", name=kind, exact=True).click()
    of_kind = [c for c in report["collectives"] if c["kind"] == kind]
    count = sum(int(row["count"]) for row in rows_of(page, "collectives"))
    assert count == sum(c["count"] for c in of_kind)
    choose(page, "Breakdown")
    page.get_by_label("filter step by operation").fill("exposed ")
    shown = rows_of(page, "step by operation")
    waits = [row for row in report["rollup"]["op"] if row["category"].startswith("exposed ")]
    assert [row["operation"] for row in shown] == [row["name"] for row in waits]
    expect(page.locator("#panels")).to_contain_text(
        f"{len(waits)} of {len(report['rollup']['op'])} rows fit the filter."
    )


def test_rows_of_one_name_tell_their_scopes(layers, show):
    path, report = layers
    page = show(path)
    choose(page, "Breakdown")
    rows = report["rollup"]["op"]
    small = small_of(page, "step by operation")
    keys = [(r["name"], r["category"], r["source"], s) for r, s in zip(rows, small, strict=True)]
    assert len(set(keys)) == len(keys)
    for row, told in zip(rows, small, strict=True):
        assert row["scope"].endswith(told.replace(".", "") if told == "." else told)


def test_dark_and_light(made, show):
    page = show(made[0], "dark")

    def color():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark = color()
    page.get_by_role("button", name="light").click()
    assert color() != dark
    assert page.locator("html").get_attribute("data-theme") == "light"


def test_runs_are_compared(binary, tmp_path, show):
    command = [binary, "compare", "--config", "v5e-4x2", "--config", "v6e-4x2", "--quiet"]
    command += [example("mlp_two_layers"), "--html", tmp_path / "c.html"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    page = show(tmp_path / "c.html")
    assert page.get_by_role("tab").all_inner_texts() == ["Comparison"] + [
        tab for tab in TABS if tab != "Timeline"
    ]
    steps = rows_of(page, "steps")
    assert [row["slice"] for row in steps] == ["v5e-4x2", "v6e-4x2"]
    times = []
    for config in ("v5e-4x2", "v6e-4x2"):
        run = [binary, "run", example("mlp_two_layers"), "--config", config, "--quiet"]
        subprocess.run([*run, "--report", tmp_path / "r.json"], check=True, timeout=60)
        times.append(json.loads((tmp_path / "r.json").read_text())["step_time_ns"])
    for row, time in zip(steps, times, strict=True):
        assert value_of(row["step time"]) == pytest.approx(time, rel=1e-3)
        assert row["bound by"] in ("compute", "hbm", "ici", "launch/latency")
    # Differences, in the words of the command line, too.
    change = times[1] - times[0]
    assert rows_of(page, "steps")[0]["against A"] == ""
    assert value_of(rows_of(page, "steps")[1]["against A"]) == pytest.approx(change, rel=1e-3)
    command = [binary, "compare", "--config", "v5e-4x2", "--config", "v6e-4x2", "--quiet"]
    text = subprocess.run(
        [*command, example("mlp_two_layers")], check=True, capture_output=True, text=True
    ).stdout
    sentence = page.locator("[data-list=differences] li").inner_text()
    assert sentence.startswith("B is ")
    assert sentence in text
    # What takes longer first, down to what takes less; together they are the difference.
    rows = rows_of(page, "steps by category")
    changes = [value_of(row["B - A"]) for row in rows]
    assert changes == sorted(changes, reverse=True)
    assert sum(changes) == pytest.approx(change, abs=0.001 * abs(change) + 10)
    for row, difference in zip(rows, changes, strict=True):
        assert value_of(row["B"]) - value_of(row["A"]) == pytest.approx(difference, abs=20)
    # Any of them can be looked at alone.
    choose(page, "Summary")
    page.get_by_label("shown").select_option(index=1)
    shown = page.locator("[data-figure=step_time]").inner_text()
    assert value_of(shown) == pytest.approx(times[1], rel=1e-3)
    expect(page.locator("[data-figure=slice]")).to_contain_text("v6e-4x2")


def test_names_of_files_do_no_harm(binary, tmp_path, show):
    """Names that look like the end of the script, or like markup, are text."""
    data = {
        "schema": "tpusim.page/1",
        "title": "</title><script>alert(1)</script>",
        "tabs": [
            {
                "title": "<i>Search</i>",
                "panels": [
                    {"kind": "text", "title": "t", "lines": ["</script><script>alert(2)</script>"]}
                ],
            }
        ],
    }
    (tmp_path / "d.json").write_text(json.dumps(data))
    subprocess.run(
        [binary, "page", tmp_path / "d.json", "-o", tmp_path / "p.html"], check=True, timeout=60
    )
    page = show(tmp_path / "p.html")
    expect(page.locator("h1")).to_have_text(data["title"])
    expect(page.get_by_role("tab")).to_have_text(["<i>Search</i>"])
    expect(page.locator("section li")).to_have_text("</script><script>alert(2)</script>")


def test_pages_of_any_data(binary, tmp_path, show):
    points = [
        {"x": 1e6, "y": 2e9, "name": "a", "group": "v5e", "marked": True},
        {"x": 3e6, "y": 1e9, "name": "b", "group": "v5p", "marked": True},
        {"x": 4e6, "y": 3e9, "name": "c", "group": "v5p", "marked": False},
    ]
    axes = {"x": {"name": "step time", "unit": "ns"}, "y": {"name": "memory", "unit": "bytes"}}
    panels = [
        {"kind": "figures", "title": "f", "figures": [{"name": "best", "text": "a"}]},
        {
            "kind": "table",
            "title": "candidates",
            "columns": [{"name": "name"}, {"name": "time", "unit": "ns"}],
            "rows": [["a", 1e6], ["b", 3e6]],
        },
        {
            "kind": "bars",
            "title": "parts",
            "unit": "ns",
            "parts": ["compute", "exposed"],
            "rows": [{"name": "a", "values": [1e6, 2e6]}],
        },
        {"kind": "scatter", "title": "pareto", **axes, "line": True, "points": points},
    ]
    data = {
        "schema": "tpusim.page/1",
        "title": "search",
        "subtitle": "3 candidates",
        "tabs": [{"title": "Candidates", "panels": panels}],
    }
    (tmp_path / "d.json").write_text(json.dumps(data))
    command = [binary, "page", tmp_path / "d.json", "-o", tmp_path / "p.html"]
    subprocess.run(command, check=True, timeout=60)
    page = show(tmp_path / "p.html")
    expect(page.locator("#subtitle")).to_have_text("3 candidates")
    assert rows_of(page, "candidates") == [
        {"name": "a", "time": "1.000 ms"},
        {"name": "b", "time": "3.000 ms"},
    ]
    assert page.locator("section[aria-label=pareto] circle").count() == 3
    assert rows_of(page, "parts")[0]["sum"] == "3.000 ms"


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "tpusim.report/1", "title": "x"}'])
def test_other_files_are_no_pages(binary, tmp_path, text):
    (tmp_path / "d.json").write_text(text)
    command = [binary, "page", tmp_path / "d.json", "-o", tmp_path / "p.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "tpusim.page/1" in done.stderr
    assert not (tmp_path / "p.html").exists()
