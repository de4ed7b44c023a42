"""What may be imported without the provider's client."""

import subprocess
import sys
from pathlib import Path

import pytest

import kev.compute

PACKAGE = Path(kev.compute.__file__).parent
NEEDS_MODAL = {"contract_app"}


@pytest.mark.parametrize("module", sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem not in NEEDS_MODAL))
def test_importing_compute_loads_no_client(module: str) -> None:
    name = "kev.compute" if module == "__init__" else f"kev.compute.{module}"
    code = f"import sys, {name}; print(*{{each.partition('.')[0] for each in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"modal", "modal_proto", "grpclib", "aiohttp", "numpy", "torch", "textual"}


def test_the_app_of_the_contract_imports_nothing_of_kev() -> None:
    assert "kev." not in "".join(
        line for line in (PACKAGE / "contract_app.py").read_text().splitlines() if line.startswith(("import", "from"))
    )


def test_without_the_client_one_line_says_what_to_install() -> None:
    code = (
        "import sys, asyncio; sys.modules['modal'] = None\n"
        "from kev.compute.modal_compute import ModalCompute\n"
        "from kev.errors import KevError\n"
        "try: asyncio.run(ModalCompute().ping())\n"
        "except KevError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip() == "running on Modal needs the modal package; install it with: pip install 'kevtui[modal]'"
    )
