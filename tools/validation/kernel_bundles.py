r"""The bundles that the TPU compiler schedules for the kernels of compiled modules.

    pip install 'jax==0.10.2' 'jaxlib==0.10.2' 'libtpu==0.0.42.*'
    JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 \
        python tools/validation/kernel_bundles.py v6e-1x1 mlp_gradient layer_norm

Compiles programs of the corpus (tests/data/compiled) ahead of time, without hardware, has the
compiler write the final bundles of every kernel, and puts how many of them are executed
(bundles.py), with rows that go into the arrays and transcendentals, into
validation/kernels/bundles.json. Kernels are named as in the module of the corpus.
"""

import json
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [
        str(ROOT),
        str(ROOT / "tools" / "python"),
        str(ROOT / "tools" / "validation"),
    ]

import bundles  # noqa: E402

PATH = ROOT / "validation" / "kernels" / "bundles.json"
# Shorter ones are a loop's control.
_FEWEST = 300
_NAME = re.compile(r"\d+-(.*)-\d+-final_bundles\.txt$")


def kernels_in(folder: pathlib.Path, kept: set[str]) -> dict[str, list[int]]:
    """Counts bundles of kernels with a name in `kept`, from texts that the compiler wrote."""
    found: dict[str, list[int]] = {}
    for path in sorted(folder.iterdir()):
        name = _NAME.match(path.name)
        if not name or name.group(1) not in kept:
            continue
        executed = bundles.execute(path.read_text())
        if executed and executed.bundles >= _FEWEST:
            found[name.group(1)] = [executed.bundles, executed.rows, executed.transcendentals]
    return found


def estimated(text: str) -> set[str]:
    """Names of the kernels of a module to which the compiler gave an estimate."""
    pattern = r'^\s*(?:ROOT )?%(\S+) = .*"estimated_cycles":"\d+"'
    return set(re.findall(pattern, text, re.MULTILINE))


def main() -> None:
    """Writes the bundles of the programs named on the command line."""
    slice_name, *programs = sys.argv[1:]
    known = json.loads(PATH.read_text()) if PATH.exists() else {"modules": {}}
    with tempfile.TemporaryDirectory() as name:
        dumps = f"--xla_jf_dump_to={name} --xla_jf_dump_llo_text=true"
        os.environ["LIBTPU_INIT_ARGS"] = f"{dumps} --xla_jf_dump_llo_pass_label_regex=final_bundles"
        from compiled_modules import example_of
        from compiler_store import topology_name
        from compiler_topology import compile_program

        folder = pathlib.Path(name)
        for program in programs:
            compiled = compile_program(example_of(program), topology_name(slice_name), slice_name)
            kept = estimated(compiled["text"])
            known["modules"][f"{slice_name} {program}"] = kernels_in(folder, kept)
            known["versions"] = compiled["versions"]
            for path in folder.iterdir():
                path.unlink()
    PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
