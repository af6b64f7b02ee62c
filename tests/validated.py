"""`tpusim validate --long`, run once for all tests and pages that show or read its outcome.

It simulates every published step, half a minute of one core. The outcome is kept in the build
folder by a digest of the binary and of what it reads.
"""

import dataclasses
import fcntl
import hashlib
import json
import pathlib
import shutil

from resources_used import measured

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The command as pages have it, in a folder with the source tree's folders.
COMMAND = "build/tpusim validate --long"
_KEPT = ROOT / "build" / "validated"


@dataclasses.dataclass(frozen=True)
class Validated:
    """The outcome of all rows, and what they took together."""

    folder: pathlib.Path

    @property
    def printed(self) -> pathlib.Path:
        """The file with the standard output."""
        return self.folder / "printed.txt"

    @property
    def rows(self) -> dict[str, dict]:
        """The rows of the report by their id."""
        report = json.loads((self.folder / "report.json").read_text())
        return {row["id"]: row for row in report["rows"]}

    @property
    def used(self) -> dict[str, float]:
        """Processor seconds of all rows, and the largest memory that was resident."""
        return json.loads((self.folder / "used.json").read_text())


def validated(binary: str) -> Validated:
    """The outcome with this binary; whoever asks first runs it, others wait."""
    digest = hashlib.sha256(pathlib.Path(binary).read_bytes())
    for path in sorted((ROOT / "validation").rglob("*")):
        if path.is_file() and path.suffix in (".json", ".pb", ".gz", ".hlo"):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    folder = _KEPT / digest.hexdigest()[:16]
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            for old in _KEPT.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            _run(binary, _KEPT / "unfinished").rename(folder)
    return Validated(folder)


def _run(binary: str, folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    with (folder / "printed.txt").open("w") as printed:
        command = (binary, "validate", "--long", "--report", folder / "report.json")
        used = measured(*command, stdout=printed, cwd=ROOT)
    (folder / "used.json").write_text(json.dumps(used._asdict()))
    return folder
