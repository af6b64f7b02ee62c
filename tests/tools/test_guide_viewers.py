"""The commands of the guide's section on pages and viewers, as they stand there."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def section() -> str:
    text = (ROOT / "docs" / "user-guide.md").read_text()
    return text.split("\n## 8. Pages and viewers\n")[1].split("\n## ")[0]


def test_commands_run_and_write_what_they_say(binary, tmp_path):
    shutil.copy(ROOT / "workloads" / "examples" / "mlp_two_layers.pb", tmp_path / "step.pb")
    (data,) = re.findall(r"```json\n(.*?)```", section(), re.DOTALL)
    (tmp_path / "batches.json").write_text(data)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "tpusim").symlink_to(binary)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    commands = re.findall(r"^    (tpusim .*)$", section(), re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    for page in ("step.html", "compared.html", "batches.html"):
        assert (tmp_path / page).read_text().startswith("<!doctype html>")
    assert len(list((tmp_path / "logs").glob("plugins/profile/*/*.xplane.pb"))) == 1
