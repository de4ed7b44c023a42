"""No argument is accepted and then has no effect: it acts, or it is refused in one line."""

import ast
from pathlib import Path
from typing import Any

import pytest
from checkouts import changed, good_spec, write_checkout, write_spec
from hypothesis import given
from hypothesis import strategies as st
from round_lab import RoundLab

from kev import baseline, benchmark, experiment
from kev.budget import MAX_TIMEOUT_FULL_WEIGHT
from kev.rounds.__main__ import main as rounds
from kev.rounds.locked_args import MAX_MEMORY_MB, MIN_MEMORY_MB, LockedArguments, parse_locked_arguments
from kev.rounds.read_orders import arm_reads
from kev.rounds.trial_orders import Provenance
from kev.rounds.validate import validate

ROOT = Path(__file__).parents[2]
SPEC = changed(good_spec(), "round", to=201)


def entry_points(path: Path) -> list[ast.FunctionDef]:
    """The local entry points of a modal app."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return [node for node in found if any("local_entrypoint" in ast.unparse(each) for each in node.decorator_list)]


def test_every_argument_of_an_entry_point_goes_on_to_what_it_does() -> None:
    found = entry_points(ROOT / "modal_app.py")
    assert len(found) >= 7
    for function in found:
        used = {node.id for node in ast.walk(ast.Module(function.body, [])) if isinstance(node, ast.Name)}
        assert {argument.arg for argument in function.args.args} <= used, function.name


@pytest.mark.parametrize(
    ("main", "arguments", "words"),
    [
        (benchmark.main, "--run c --suite s --out o --remote-model x", "--remote-model belongs to --remote"),
        (benchmark.main, "--run c --suite s --out o --retry-seconds 5", "--retry-seconds belongs to --remote"),
        (benchmark.main, "--remote http://127.0.0.1 --suite s --out o --device cpu", "belong to --run"),
        (benchmark.main, "--run c --suite s --out o --owner-allows o", "belongs to --allow-test"),
        (baseline.main, "--suite s --out o --owner-allows o", "belongs to --allow-test"),
        (experiment.main, "--out o --aggregate --plan p", "--aggregate ranks"),
        (experiment.main, "--out o --suite s --resume --existing c", "--resume goes on"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    main: Any, arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    assert caught.value.code == 2 and words in capsys.readouterr().err


@pytest.mark.parametrize("options", ["--stage tests --arms 2b-full", "--arm 2b-full"])
def test_arms_and_arm_belong_to_different_reads(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rounds(["launch-reads", "r1.json", *options.split()]) in (1, 2)
    assert "--arm" in capsys.readouterr().err


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkout")
    write_checkout(root)
    return root


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--redo-interrupted"], "is no argument of a locked test here"),
        (["--timout", "60"], "did you mean --timeout"),
        (["--timeout"], "without its value"),
        (["--timeout", "0"], "write a whole number"),
        (["--memory-mb", "131 072"], "write a whole number"),
        (["--memory-mb", "1024"], "--memory-mb 1024"),
        (["--memory-mb", "999999"], "--memory-mb 999999"),
        (["60"], "is no argument"),
    ],
)
def test_a_locked_argument_without_an_effect_is_a_problem_of_the_spec(
    checkout: Path, words: list[str], message: str
) -> None:
    path = write_spec(checkout / "r201.json", changed(SPEC, "locked_args", to={"2b": words}))
    found = validate(path, checkout).findings
    assert any(finding.code == "bad-flag" and message in finding.message for finding in found)


@given(st.integers(1, MAX_TIMEOUT_FULL_WEIGHT), st.integers(MIN_MEMORY_MB, MAX_MEMORY_MB), st.booleans())
def test_locked_arguments_are_read_in_either_spelling(timeout: int, memory: int, joined: bool) -> None:
    pairs = [("--timeout", timeout), ("--memory-mb", memory)]
    words = [f"{key}={value}" for key, value in pairs] if joined else [str(each) for pair in pairs for each in pair]
    assert parse_locked_arguments(words) == LockedArguments(timeout, None if memory == 49_152 else memory)


async def test_the_memory_that_a_spec_gives_a_locked_test_is_asked_of_the_provider(round_lab: RoundLab) -> None:
    spec = round_lab.loaded.spec
    wanted = dict(arm_reads(spec, round_lab.root, "2b-full", Provenance(), stage="locked"))
    order = wanted["locked/lamps-2b-r201-ungated"]
    asked = []
    real = round_lab.compute.spawn

    async def spawn(*arguments: Any, memory_mb: int | None = None, **options: Any) -> Any:
        asked.append(memory_mb)
        return await real(*arguments, **options)

    round_lab.compute.spawn = spawn  # type: ignore[method-assign]
    gate = round_lab.new_gate()
    await gate.reserve("a test", list(wanted.items()))
    await gate.start("locked/lamps-2b-r201-ungated")
    assert asked == [order.memory_mb] == [65_536]
