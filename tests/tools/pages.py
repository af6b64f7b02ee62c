"""Pages in a browser: tabs, tables and figures as people see them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2**10, "MiB": 2**20}
UNITS |= {"GiB": 2**30}


# Values that fill a unit: four digits that would be "1000.0 us" read "1.000 ms".
_LADDERS = {
    "ns": ((1, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")),
    "bytes": tuple((2.0 ** (10 * i), u) for i, u in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))),
    "flops": tuple((10.0 ** (3 * i), f"{u}FLOP") for i, u in enumerate(("", "k", "M", "G", "T"))),
}


def text_of(value: float, unit: str) -> str:
    """Writes a value as pages and the terminal do: "309.6 us", "15.75 GiB", "7.0%"."""
    if unit == "share":
        return f"{100 * value:.1f}%"
    ladder = _LADDERS[unit]
    size, name = next(
        (step for step in reversed(ladder) if abs(value) >= 0.99995 * step[0]), ladder[0]
    )
    if size == 1 and value == int(value):
        return f"{int(value)} {name}"
    scaled = value / size
    digits = next(
        (d for least, d in ((999.95, 0), (99.995, 1), (9.9995, 2)) if abs(scaled) >= least), 3
    )
    return f"{scaled:.{digits}f} {name}"


def value_of(text: str) -> float:
    """Reads "244.2 us" in nanoseconds, "27.33 MiB" in bytes, "4.6%" as a share."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    number, unit = text.split()
    return float(number) * UNITS[unit]


def choose(page: "Page", tab: str) -> None:
    """Clicks at a tab."""
    from playwright.sync_api import expect

    page.get_by_role("tab", name=tab, exact=True).click()
    expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute("aria-selected", "true")


def rows_of(page: "Page", label: str) -> list[dict[str, str]]:
    """Returns the rows of a table: cells by the head of their column, without small letters."""
    table = page.get_by_role("table", name=label, exact=True)
    heads = table.locator("thead th").all_inner_texts()
    rows = table.evaluate(
        """table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell =>
             [...cell.children].filter(c => !c.matches("small, .unfold")).map(c => c.innerText)
               .join("").trim()))"""
    )
    return [dict(zip(heads, row, strict=True)) for row in rows]


def small_of(page: "Page", label: str) -> list[str]:
    """Returns the small letters in the first cells of a table."""
    table = page.get_by_role("table", name=label, exact=True)
    return table.evaluate(
        """table => [...table.tBodies[0].rows].map(row =>
             (row.cells[0].querySelector("small") || {textContent: ""}).textContent)"""
    )
