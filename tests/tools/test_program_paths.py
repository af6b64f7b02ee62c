"""No program of the tree names a folder of the machine on which it was exported."""

import gzip
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("benchmarks", "tests", "validation", "workloads")
# Folders in which people keep checkouts; programs name source files relative to a checkout.
ABSOLUTE = re.compile(rb"/(?:home|root|Users|tmp|mnt|work|workspace)/[\w./-]+")


def test_programs_name_source_files_relative_to_a_checkout() -> None:
    found = {}
    programs = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.gz")):
            programs += 1
            names = ABSOLUTE.findall(gzip.decompress(path.read_bytes()))
            if names:
                found[str(path.relative_to(ROOT))] = names[0].decode()
    assert programs > 500
    assert not found
