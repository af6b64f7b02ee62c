"""The image, as far as it is known unbuilt; test_wheel.py builds from what it copies."""

import re
import subprocess

from tpusim.jax_internals.tested import newest

from tests.tools.dockerfile import ROOT, copied, instructions


def packages_of(array: str) -> set[str]:
    """Names in an array of tools/install, and in those that it takes in."""
    found = re.search(rf"^{array}=\((.*?)\)$", (ROOT / "tools/install").read_text(), re.M | re.S)
    assert found is not None, array
    words = found[1].split()
    inner = [re.fullmatch(r'"\$\{(\w+)\[@\]\}"', word) for word in words]
    packages = {word for word, other in zip(words, inner, strict=True) if other is None}
    return packages.union(*(packages_of(other[1]) for other in inner if other))


def test_both_stages_are_debian():
    assert [rest for name, rest in instructions() if name == "FROM"] == [
        "debian:12-slim AS build",
        "debian:12-slim",
    ]


def test_packages_are_those_of_tools_install():
    runs = " && ".join(rest for name, rest in instructions() if name == "RUN")
    installed = re.findall(r"apt-get install ([^&]*)", runs)
    assert installed
    for words in map(str.split, installed):
        packages = {word for word in words if not word.startswith("-")}
        assert packages == packages_of("python_packages")


def test_the_build_has_what_it_runs():
    """`tools/install wheel` is known, and is copied before it runs."""
    commands = instructions()
    at = next(i for i, (name, rest) in enumerate(commands) if name == "RUN")
    assert ("COPY", "tools/install tools/install") in commands[:at]
    assert commands[at][1].startswith("tools/install wheel")
    assert packages_of("python_packages") <= packages_of("test_packages")
    usage = subprocess.run(
        [ROOT / "tools/install", "none"], capture_output=True, text=True, check=False
    )
    assert usage.returncode == 2
    assert "wheel" in usage.stderr


def test_sources_exist_and_are_sent_to_the_builder():
    sources = copied()
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    # Everything else is left out.
    assert "*" in ignored
    assert sent == {source.split("/")[0] for source in sources}


def test_folders_of_the_build_are_copied():
    """CMake builds these for a wheel: not the tests, not the benchmarks."""
    cmake = (ROOT / "CMakeLists.txt").read_text()
    always = re.findall(r"^add_subdirectory\((\w+)\)", cmake, re.MULTILINE)
    assert always
    assert {*always, "cmake", "CMakeLists.txt", "pyproject.toml"} <= set(copied())


def test_jax_is_the_newest_that_is_tested():
    """The newest for its Python, which is that of Debian 12."""
    assert ("ARG", f"JAX_VERSION={newest('3.11')}") in instructions()


def test_nothing_is_of_this_machine_or_of_a_named_registry():
    for name in ("Dockerfile", ".dockerignore"):
        text = (ROOT / name).read_text()
        assert "http" not in text
        assert str(ROOT) not in text
