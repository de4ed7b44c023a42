"""What the pages name is there: paths, modules, commands, targets of make, and the pages they refer to."""

import importlib
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PAGES = [REPOSITORY / name for name in ("README.md", "AGENTS.md", "CHANGELOG.md", "PLAN.md")]
PAGES += sorted((REPOSITORY / "docs").glob("*.md"))

ROOTS = ("kev/", "kevtui/", "tests/", "scripts/", "benchmarks/", "docs/", "evals/", "experiments/", ".ci/")
"""Directories of the repository; runs/ is not among them, since it is made by what runs."""


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param.read_text())


def in_backticks(page: str) -> set[str]:
    """What stands in backticks within a line, outside blocks of code."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)))


def unfolded(path: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", path)
    return [found[1] + one + found[3] for one in found[2].split(",")] if found else [path]


def named_paths(page: str) -> set[str]:
    """Paths of the repository in backticks. Those with a placeholder (`r<N>`, `...`, `*`, `NAME`) stand for others."""
    paths = {path for text in in_backticks(page) for path in unfolded(text)}
    return {path for path in paths if path.startswith(ROOTS) and re.fullmatch(r"[\w./-]+", path) and "..." not in path}


def run_modules(page: str) -> set[str]:
    return set(re.findall(r"python -m ((?:kevtui|kev)(?:\.\w+)*)", page))


def test_the_architecture_names_every_package_and_module_at_the_top() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    for package in ("kev", "kevtui"):
        for path in (REPOSITORY / package).iterdir():
            if path.name.startswith(("_", "py.typed")):
                continue
            name = f"{package}/{path.name}/" if path.is_dir() else f"{package}/{path.name}"
            assert name in named_paths(page), f"{name} has no line in docs/architecture.md"


def test_every_path_that_is_named_exists(page: str) -> None:
    assert [path for path in sorted(named_paths(page)) if not (REPOSITORY / path).exists()] == []


def test_every_module_that_a_command_runs_is_there_and_can_be_run(page: str) -> None:
    for name in sorted(run_modules(page)):
        module = importlib.import_module(name)
        assert module.__file__ is not None
        source = Path(module.__file__)
        if source.name == "__init__.py":
            assert (source.parent / "__main__.py").is_file(), f"python -m {name}: a package without __main__"
        else:
            assert '__name__ == "__main__"' in source.read_text(), f"python -m {name} does nothing"


def test_every_script_that_a_command_runs_exists(page: str) -> None:
    for script in re.findall(r"python3? ((?:scripts|benchmarks)/\w+\.py)", page):
        assert (REPOSITORY / script).is_file(), script


def test_every_target_of_make_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`) *make ([a-z-]+)", page, re.MULTILINE))
    assert named <= targets, f"no such target: {named - targets}"


def test_every_entry_point_of_the_deployment_that_is_named_exists(page: str) -> None:
    deployment = (REPOSITORY / "modal_app.py").read_text()
    for name in re.findall(r"modal_app\.py::([a-z_]+)", page):
        assert f"\ndef {name}(" in deployment, f"modal_app.py has no entry point {name}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_and_heading_that_a_page_refers_to_exists(path: Path) -> None:
    for target, anchor in re.findall(r"\[[^\]]*\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", path.read_text()):
        page = path.parent / target if target else path
        assert page.exists(), f"{path.name} refers to {target}"
        assert not anchor or anchor in headings(page), f"{path.name} refers to {target}#{anchor}"


def headings(page: Path) -> set[str]:
    """The headings of a page as anchors: lower case, blanks as dashes, punctuation gone."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}
