"""The doors between packages hold at run time too, where a lazy import could walk around the static contract."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent

HEAVY = {"torch", "transformers", "modal", "numpy", "grpclib"}


def loaded_by(module: str) -> set[str]:
    """The top-level names in sys.modules after importing `module` in a fresh interpreter."""
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return set(done.stdout.split())


def modules(package: str) -> list[str]:
    paths = sorted((REPOSITORY / package).rglob("*.py"))
    names = [".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


@pytest.mark.parametrize("module", modules("kev"))
def test_no_module_of_the_engine_loads_the_screen(module: str) -> None:
    source = REPOSITORY / Path(*module.split("."))
    path = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.partition(".")[0] for name in names} & {"kevtui", "textual"}, f"{path} imports {names}"


def test_the_core_of_the_engine_loads_no_screen_and_nothing_heavy() -> None:
    assert not loaded_by("kev.files") & (HEAVY | {"textual", "kevtui", "rich"})


def test_nothing_that_acts_is_loaded_before_the_first_frame() -> None:
    code = "import sys, kevtui.app; print(*(name for name in sys.modules if name.startswith('kevtui.actions.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.split() == ["kevtui.actions.verbs"]


WRITES = {"write_text", "write_bytes", "touch", "mkdir", "rename", "replace", "unlink", "symlink_to", "hardlink_to"}
"""Methods of pathlib that change the disk; `str.replace` takes two arguments, `Path.replace` one."""

MAY_WRITE = {
    "kev/files/appending.py",
    "kev/files/incoming.py",
    "kev/files/locking.py",
    "kev/files/removing.py",
    "kev/files/replacing.py",
    # The emulator's bulk data: no record, not under runs/, and up to gigabytes that a client can send again.
    "kev/emulator/contents.py",  # uploaded files and blobs by digest
    "kev/emulator/launch.py",  # a container's own directory
    "kev/emulator/uploads.py",  # uploaded files of volumes, put together from their blocks
    "kev/emulator/volume_files.py",  # files of volumes, staged and renamed
    # Runs in a container, on the volume of the contract, where there is no kev.
    "kev/compute/contract_app.py",
    # A program of its own that must start in milliseconds, so it imports nothing of kev.
    "kev/emulator/supervisor.py",
}


def writes_in(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            if node.func.attr == "replace" and len(node.args) != 1:
                continue
            found.append(f"{path.relative_to(REPOSITORY)}:{node.lineno} .{node.func.attr}()")
        opened = (isinstance(node.func, ast.Name) and node.func.id == "open") or (
            isinstance(node.func, ast.Attribute) and node.func.attr in {"open", "fdopen"}
        )
        modes = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        if opened and any(isinstance(m, ast.Constant) and isinstance(m.value, str) and set(m.value) <= set("rwxabt+")
                          and set(m.value) & set("wxa+") for m in modes):  # fmt: skip
            found.append(f"{path.relative_to(REPOSITORY)}:{node.lineno} open for writing")
    return found


@pytest.mark.parametrize("package", ["kev", "kevtui"])
def test_only_the_files_module_writes(package: str) -> None:
    paths = list((REPOSITORY / package).rglob("*.py"))
    allowed = [path for path in paths if str(path.relative_to(REPOSITORY)) in MAY_WRITE]
    assert [line for path in paths if path not in allowed for line in writes_in(path)] == []
    for path in allowed:
        assert writes_in(path), f"{path}: nothing is written here; take it off the list, or the check sees nothing"
