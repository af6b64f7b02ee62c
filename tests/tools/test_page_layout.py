"""Layout of pages in a real browser: every tab of every kind, narrow and wide, light and dark.

On each nothing is wider than the window, no text lies on another or leaves its chart, no figure is
empty, charts are as wide as their panel, and what is written can be read on its ground. Values are
compared with the report in test_page.py; here on every tab of a run and of a comparison, too.
"""

import json
import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.tools.pages import choose, rows_of, text_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "workloads" / "examples"
# Four devices, and 256 with layers, rings of collectives, and tracks of their own for each link.
FEW = EXAMPLES / "ring_attention_large.pb.gz"
MANY = ROOT / "benchmarks" / "pod_programs" / "decoder_fsdp_tp_256.pb.gz"
WIDTHS = (390, 1400, 2400)

# Finds what is wrong with the tab that is shown, as a list of sentences.
PROBLEMS = """() => {
  const found = [];
  const say = (what, node) => found.push(`${what}: ${node.textContent.trim().slice(0, 60)}`);
  const shown = (node) => node.getClientRects().length > 0 && node.textContent.trim() !== '';
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} px wide`);
  // Texts of a chart: not on each other, and within it.
  for (const svg of document.querySelectorAll('#panels svg')) {
    const edge = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(shown)
      .map(node => ({node, box: node.getBoundingClientRect()}));
    for (const {node, box} of texts) {
      if (box.left < edge.left - 1.5 || box.right > edge.right + 1.5) {
        say('outside of its chart', node);
      }
    }
    texts.sort((a, b) => a.box.top - b.box.top);
    for (let i = 0; i < texts.length; ++i) {
      for (let j = i + 1; j < texts.length && texts[j].box.top < texts[i].box.bottom - 3; ++j) {
        const a = texts[i].box, b = texts[j].box;
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.bottom - 3 > b.top) {
          say(`on "${texts[i].node.textContent}"`, texts[j].node);
        }
      }
    }
    const box = svg.parentElement.getBoundingClientRect();
    if (!svg.closest('[aria-label=Torus]') && edge.width < box.width - 2) {
      found.push(`a chart takes ${edge.width} of ${box.width} px`);
    }
  }
  // Blocks of text: not wider than where they are.
  const blocks = document.querySelectorAll('#panels dd, #panels dt, h1, h2, h3, .legend li, td');
  for (const node of blocks) {
    if (!shown(node)) continue;
    const scrolls = node.closest('.scroll');
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 &&
        getComputedStyle(node).display !== 'inline') say('cut off', node);
    const box = node.getBoundingClientRect();
    if (!scrolls && box.right > innerWidth + 1) say('outside of the window', node);
  }
  for (const node of document.querySelectorAll('#panels [data-figure]')) {
    if (!/[0-9a-z-]/i.test(node.textContent)) found.push(`empty: ${node.dataset.figure}`);
  }
  for (const head of document.querySelectorAll('#panels dt')) {
    const value = head.nextElementSibling;
    if (!value || !value.textContent.trim()) say('without a value', head);
  }
  if (/NaN|undefined|Infinity|\\[object/.test(document.getElementById('panels').innerText)) {
    found.push('no number: ' + /.*(NaN|undefined|Infinity|\\[object).*/.exec(
      document.getElementById('panels').innerText)[0]);
  }
  // A key stands above its chart.
  for (const svg of document.querySelectorAll('#panels svg')) {
    const key = svg.closest('section').querySelector('.legend');
    if (key && key.getBoundingClientRect().top > svg.getBoundingClientRect().top) {
      found.push('the key is below the chart');
    }
  }
  // Contrast of texts on the panel, as WCAG counts it.
  const light = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(v => v / 255)
      .map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.querySelector('section.panel')).backgroundColor);
  for (const selector of ['.note', 'td', 'small', 'h2', 'dt', 'button.link']) {
    const node = document.querySelector(`#panels ${selector}`);
    if (!node) continue;
    const ink = light(getComputedStyle(node).color);
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) found.push(`${selector} has a contrast of ${ratio.toFixed(1)}`);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def pages(binary, tmp_path_factory) -> dict[str, pathlib.Path]:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("layout")
    for name, program in (("few", FEW), ("many", MANY)):
        command = [binary, "run", program, "--quiet", "--html", folder / f"{name}.html"]
        subprocess.run(command, check=True, timeout=120)
    step = EXAMPLES / "residual_mlp_train_loop"
    compared = [binary, "compare", "--quiet", "--config", "v5e-4x2"]
    compared += [f"{step}_data_parallel.pb.gz", f"{step}_fully_sharded.pb.gz"]
    command = [*compared, "--html", folder / "compare.html"]
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
    (folder / "space.py").write_text(
        "from tests.jax.search_steps import MESHES, RULES, matmul as build\n"
        'configs = ["v5e-4x2", "v6e-4x2"]\n'
        'space = {"mesh": MESHES[:2], "rules": {"y": RULES["y"]}, "batch": [1024, 10**7]}\n'
    )
    command = [sys.executable, "-m", "tpusim.search", folder / "space.py", "-q", "--all"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "TPUSIM_BINARY": binary,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tools' / 'python'}",
    }
    command += ["--html", folder / "search.html"]
    subprocess.run(command, check=True, timeout=300, env=environment, stdout=subprocess.DEVNULL)
    return {kind: folder / f"{kind}.html" for kind in ("few", "many", "compare", "search")}


def tabs_of(page: "Page") -> list[str]:
    return page.get_by_role("tab").all_inner_texts()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["few", "many", "compare", "search"])
def test_every_tab_is_in_order(pages, show, kind, scheme):
    page = show(pages[kind], scheme)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for tab in tabs_of(page):
            choose(page, tab)
            assert page.evaluate(PROBLEMS) == [], f"{tab} at {width} px"


# A defect of each kind, and what is said of it.
DEFECTS = {
    'on "': """const texts = document.querySelectorAll('#panels svg .track');
                texts[1].setAttribute('y', texts[0].getAttribute('y'));""",
    "outside of its chart": """document.querySelector('#panels svg .track')
                .setAttribute('x', -40);""",
    "px wide": """document.querySelector('section.panel').style.width = '3000px';""",
    "cut off": """document.querySelector('h2').style.width = '10px';
                document.querySelector('h2').style.overflow = 'hidden';""",
    "a chart takes": """document.querySelector('#panels svg').setAttribute('width', 300);""",
    "contrast": """document.querySelector('#panels .note').style.color = '#bbbbbb';""",
    "no number": """document.querySelector('#panels .note').textContent = 'NaN us';""",
    "the key is below": """const key = document.querySelector('#panels .legend');
                key.parentElement.append(key);""",
}


@pytest.mark.parametrize("said", DEFECTS)
def test_defects_are_noticed(pages, show, said):
    page = show(pages["few"])
    page.set_viewport_size({"width": 1400, "height": 900})
    choose(page, "Timeline")
    page.evaluate(DEFECTS[said])
    assert any(said in problem for problem in page.evaluate(PROBLEMS))


def data_of(path: pathlib.Path) -> dict:
    text = path.read_text()
    begin = text.index('<script type="application/json" id="data">')
    return json.loads(text[text.index(">", begin) + 1 : text.index("</script>", begin)])


@pytest.mark.parametrize("kind", ["few", "many"])
def test_every_table_has_the_values_of_the_report(pages, show, kind):
    report = data_of(pages[kind])["runs"][0]["report"]
    page = show(pages[kind])
    top = rows_of(page, "top operations")
    for row, told in zip(top, report["rollup"]["op"][:8], strict=True):
        assert row["operation"] == told["name"]
        assert row["time"] == text_of(told["time_ns"], "ns")
        assert row["step"] == text_of(told["share"], "share")
    choose(page, "Breakdown")
    for row, told in zip(
        rows_of(page, "step by operation"), report["rollup"]["op"][:200], strict=True
    ):
        assert row["count"] == f"{told['count']:,}"
        assert row["time"] == text_of(told["time_ns"], "ns")
        assert (row["category"], row["source"]) == (told["category"], told["source"])
    choose(page, "Memory")
    for row, told in zip(
        rows_of(page, "arrays at the peak"), report["memory_at_peak"]["arrays"][:100], strict=True
    ):
        assert row["bytes"] == text_of(told["bytes"], "bytes")
        assert row["padding"] == text_of(told["padding_bytes"], "bytes")
    choose(page, "Torus")
    links = sorted(report["links"], key=lambda link: -link["utilization"])
    for row, told in zip(rows_of(page, "links"), links, strict=False):
        assert row["use"] == text_of(told["utilization"], "share")
        assert row["bytes"] == text_of(told["bytes"], "bytes")


def test_colours_are_fixed_and_say_the_family(pages, show):
    """A category has one colour on all pages; what communicates is warm, what computes is blue."""
    fills: dict[str, str] = {}
    for kind in ("few", "many"):
        page = show(pages[kind])
        choose(page, "Timeline")
        keys = page.locator(".legend li").evaluate_all(
            "all => all.map(e => [e.innerText, e.querySelector('i').style.background])"
        )
        for name, color in keys:
            assert fills.setdefault(name, color) == color
        hues = page.evaluate(
            """names => names.map(name => d3.hcl(getComputedStyle(document.documentElement)
                 .getPropertyValue(name)).h)""",
            [
                "--all-reduce",
                "--reduce-scatter",
                "--all-gather",
                "--all-to-all",
                "--permute",
                "--exposed",
                "--matrix",
                "--loop",
                "--compute",
            ],
        )
        assert all(hue < 95 or hue > 355 for hue in hues[:6]), hues
        assert all(220 < hue < 290 for hue in hues[6:]), hues


def test_memory_has_round_ticks_and_the_limit(pages, show):
    report = data_of(pages["many"])["runs"][0]["report"]
    page = show(pages["many"])
    choose(page, "Memory")
    # 44 % are used: the chart goes up to what is usable.
    ticks = page.locator("section[aria-label=Memory] .axis").nth(1).locator("text")
    assert ticks.all_text_contents() == ["0 B", "4 GiB", "8 GiB", "12 GiB"]
    expect(page.locator("[data-mark=usable]")).to_have_count(1)
    usable = f"usable {text_of(report['usable_hbm_bytes'], 'bytes')}"
    expect(page.locator("[data-marks=labels]")).to_contain_text(usable)
    page.get_by_role("group", name="up to").get_by_role("button", name="peak").click()
    assert ticks.all_text_contents() == ["0 B", "2 GiB", "4 GiB", "6 GiB"]
    expect(page.locator("[data-mark=usable]")).to_have_count(0)


def test_the_detail_stands_beside_the_chart_and_the_address_keeps_it(pages, show):
    page = show(pages["few"])
    page.set_viewport_size({"width": 1400, "height": 900})
    choose(page, "Timeline")
    page.get_by_role("button", name="zoom in").click()
    mark = page.locator("[data-track=TensorCore] rect[aria-label*=fusion]").first
    name = mark.get_attribute("aria-label").split("\n")[0]
    mark.click()
    expect(page.locator("#selected h3")).to_have_text(name)
    chart = page.locator("svg[aria-label^=timeline]").bounding_box()
    detail = page.locator("#selected").bounding_box()
    assert detail["x"] >= chart["x"] + chart["width"]
    assert detail["y"] < chart["y"] + chart["height"]
    # The same again from the address, and after the other theme was chosen.
    address, shown = page.url, page.locator("svg[aria-label^=timeline]").get_attribute("data-from")
    page.evaluate("location.hash = ''")
    page.goto(address)
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#selected h3")).to_have_text(name)
    chart = page.locator("svg[aria-label^=timeline]")
    assert int(chart.get_attribute("data-from")) == pytest.approx(int(shown), abs=2)
    page.get_by_role("button", name="dark").click()
    expect(page.locator("#selected h3")).to_have_text(name)
    choose(page, "Summary")
    page.go_back()
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")


def test_idle_tracks_are_folded(pages, show, binary, tmp_path):
    data = data_of(pages["few"])
    timeline = data["runs"][0]["timeline"]
    timeline["tracks"].insert(3, {"name": "Host", "slices": []})
    timeline["tracks"].append({"name": "ICI z+ utilization", "unit": "%", "samples": [0, 0]})
    (tmp_path / "d.json").write_text(json.dumps(data))
    command = [binary, "page", tmp_path / "d.json", "-o", tmp_path / "p.html"]
    subprocess.run(command, check=True, timeout=60)
    page = show(tmp_path / "p.html")
    choose(page, "Timeline")
    names = page.locator("[data-marks=tracks]")
    expect(names).not_to_contain_text("Host")
    expect(names).not_to_contain_text("ICI z+ utilization")
    page.get_by_role("button", name="idle tracks").click()
    expect(names).to_contain_text("Host")
    expect(names).to_contain_text("ICI z+ utilization")
    # A track folds at its name.
    before = page.locator("[data-track=Scopes] g").count()
    names.get_by_text("Scopes").click()
    assert page.locator("[data-track=Scopes] g").count() == 1 < before
