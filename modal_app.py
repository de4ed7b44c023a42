"""kev on Modal: images, volumes, remote functions and local entry points. It binds; what they do is in `kev`.

    modal deploy modal_app.py
    modal run modal_app.py::study --suite evals/decision-v1 --plan experiments/base/08b.json --name my-study

The environment chooses: KEV_APP_NAME (kev-research) the app, KEV_GPU (H100) the card where none is named, KEV_HF_SECRET
the Modal secret with a Hub token, if any. See docs/modal.md.
"""

import os
from pathlib import Path
from typing import Any

import modal

from kev import budget
from kev.evaluators import SINGLE_FILES
from kev.git import commit_of
from kev.worker import container as containers

APP_NAME = os.environ.get("KEV_APP_NAME", "kev-research")
GPU = os.environ.get("KEV_GPU", "H100")
HF_SECRET = os.environ.get("KEV_HF_SECRET", "")
WORKDIR = "/kev"
"""The working directory of containers."""

ROOT = Path(__file__).resolve().parent if modal.is_local() else Path.cwd()
"""The checkout; in a container, the copy of its evals/ and of the files that decide what runs."""

RUNS = modal.Volume.from_name("kev-runs", create_if_missing=True, version=2)
HF_CACHE = modal.Volume.from_name("kev-hf-cache", create_if_missing=True, version=2)
LEASES = modal.Volume.from_name("kev-leases", create_if_missing=True, version=2)
SECRETS = [modal.Secret.from_name(HF_SECRET)] if HF_SECRET else []


def build_image(*extras: str) -> modal.Image:
    """Python with kev's dependencies, the sources, and evals/ as they are now.

    torch comes from the package index, whose Linux wheels are built for CUDA.
    """
    image = modal.Image.debian_slim(python_version="3.11")
    image = image.pip_install_from_pyproject(str(ROOT / "pyproject.toml"), optional_dependencies=["modal", *extras])
    image = image.env(
        {
            "KEV_APP_NAME": APP_NAME,
            "KEV_GPU": GPU,
            "KEV_HF_SECRET": HF_SECRET,
            "KEV_GIT_COMMIT": commit_of(ROOT) or "",
            "HF_HOME": "/hf",
        }
    )
    image = image.workdir(WORKDIR)
    for name in SINGLE_FILES:
        if (ROOT / name).is_file():
            image = image.add_local_file(ROOT / name, f"{WORKDIR}/{name}", copy=True)
    if (ROOT / "evals").is_dir():
        image = image.add_local_dir(ROOT / "evals", f"{WORKDIR}/evals", copy=True)
    # With the agents' scripts, which are no Python.
    return image.add_local_python_source("kev", copy=True, ignore=["**/__pycache__", "**/*.pyc"])


# In a container there is nothing to build from, and nothing is built.
CUDA_IMAGE = build_image("train") if modal.is_local() else modal.Image.debian_slim()
AGENT_IMAGE = build_image("rl", "serve", "plot") if modal.is_local() else modal.Image.debian_slim()
CPU_IMAGE = build_image() if modal.is_local() else modal.Image.debian_slim()

app = modal.App(APP_NAME, include_source=True)

TRIAL_VOLUMES = {"/runs": RUNS, "/hf": HF_CACHE, "/leases": LEASES}
READ_VOLUMES = {"/runs": RUNS, "/hf": HF_CACHE}


def on_cards(resources: budget.Resources, timeout: int, image: modal.Image = CUDA_IMAGE, **settings: Any) -> Any:
    """A function with cards. Retries are off: each attempt is the ledger's to count and the lease's to admit."""
    return app.function(
        image=image, gpu=GPU, cpu=resources.cpu, memory=resources.memory, timeout=timeout, retries=0,
        single_use_containers=True, secrets=SECRETS, **settings,
    )  # fmt: skip


def on_cores(
    cpu: int, memory: int | tuple[int, int], timeout: int, image: modal.Image = CPU_IMAGE, **settings: Any
) -> Any:
    """A function without cards."""
    return app.function(image=image, cpu=cpu, memory=memory, timeout=timeout, retries=0, **settings)


# Remote functions. Each takes one JSON object, an order of kev.worker.orders, and returns one.


@on_cards(budget.TRIAL, budget.MAX_TIMEOUT, volumes=TRIAL_VOLUMES, max_containers=24)
def run_trial(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.TRIAL.cpu).trial(payload)


@on_cards(budget.FULL_WEIGHT_SINGLE, budget.MAX_TIMEOUT_FULL_WEIGHT, volumes=TRIAL_VOLUMES, max_containers=24,
          ephemeral_disk=budget.FULL_WEIGHT_DISK)  # fmt: skip
def run_full_trial(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.FULL_WEIGHT_SINGLE.cpu).trial(payload)


@on_cards(budget.FULL_WEIGHT_SHARDED, budget.MAX_TIMEOUT_FULL_WEIGHT, volumes=TRIAL_VOLUMES, max_containers=24,
          ephemeral_disk=budget.FULL_WEIGHT_DISK)  # fmt: skip
def run_sharded_trial(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.FULL_WEIGHT_SHARDED.cpu).trial(payload)


@on_cards(budget.Resources(2, (32_768, 131_072)), 3600, volumes=READ_VOLUMES)
def run_bench(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(2).benchmark(payload)


@on_cards(budget.Resources(2, (32_768, 49_152)), 3600, volumes=READ_VOLUMES)
def run_locked_test(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(2).locked_test(payload)


@on_cards(budget.Resources(2, (32_768, 49_152)), 7200, volumes=READ_VOLUMES)
def run_resume(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(2).rescore(payload)


@on_cores(budget.INTERPOLATION.cpu, budget.INTERPOLATION.memory, 10_800, CUDA_IMAGE, volumes=READ_VOLUMES,
          single_use_containers=True)  # fmt: skip
def run_interpolate(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.INTERPOLATION.cpu).interpolate(payload)


@on_cores(budget.MIRROR.cpu, budget.MIRROR.memory, 14_400, CUDA_IMAGE, volumes=READ_VOLUMES, secrets=SECRETS,
          single_use_containers=True)  # fmt: skip
def run_mirror(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.MIRROR.cpu).mirror(payload)


@on_cards(budget.TRIAL, budget.MAX_TIMEOUT_FULL_WEIGHT, AGENT_IMAGE, volumes=READ_VOLUMES)
def run_agent(payload: dict[str, Any]) -> dict[str, Any]:
    return enter(budget.TRIAL.cpu).agent(payload)


@on_cores(1, 1024, 120)
def remote_source_hashes(_payload: dict[str, Any]) -> dict[str, str]:
    from kev.worker.sources import source_hashes

    return source_hashes(ROOT)


def enter(cores: int) -> Any:
    """What a container does, once its libraries know how many cores they have and where to keep what they fetch."""
    containers.limit_threads(cores)
    hub = containers.MountedVolume("kev-hf-cache", "/hf", HF_CACHE)
    containers.use_hub_cache(hub)
    from kev.worker.duties import Duties

    return Duties(
        containers.Container(
            runs=containers.MountedVolume("kev-runs", "/runs", RUNS),
            leases=containers.MountedVolume("kev-leases", "/leases", LEASES),
            root=ROOT,
            call_id=modal.current_function_call_id(),
            hub=hub,
        )
    )


# Local entry points.


def launcher() -> Any:
    """What the local entry points do, for this app and this checkout."""
    from kev.entrypoints.commands import Commands

    return Commands(root=ROOT, app_name=APP_NAME)


@app.local_entrypoint()
def study(
    suite: str, plan: str, name: str, gpu: str = GPU, existing: str = "", transfer: str = "", budget: float = 20.0,
    timeout: int = 1800, detached: bool = True,
) -> None:  # fmt: skip
    """Launch every trial of a plan on the deployed app, and return once they are started."""
    launcher().study(suite, plan, name, gpu, existing, transfer, budget, timeout, detached)


@app.local_entrypoint()
def pull(name: str, weights: bool = False) -> None:
    """Bring a study home, and rank its trials."""
    launcher().pull(name, weights)


@app.local_entrypoint()
def resume(
    study: str, suite: str, transfer: str = "evals/v4/transfer-v4", gpu: str = GPU, timeout: int = 28_800,
    trial: str = "", beyond_bound: bool = False,
) -> None:  # fmt: skip
    """Continue the trials of a study that a timeout ended, and score those that were only trained."""
    launcher().resume(study, suite, transfer, gpu, timeout, trial, beyond_bound)


@app.local_entrypoint()
def benchmarks(jobs: str, gpu: str = GPU, timeout: int = 0, owner_allows: str = "") -> None:
    """Read checkpoints: run@suite@name[@flags], several separated by commas."""
    launcher().benchmarks(jobs, gpu, timeout, owner_allows)


@app.local_entrypoint()
def locked_test(
    trial: str, name: str, decision: str = "evals/v4/decision-v4", transfer: str = "evals/v4/transfer-v4",
    gpu: str = GPU, redo_interrupted: bool = False, timeout: int = 3600, memory_mb: int = 49_152,
    owner_allows: str = "",
) -> None:  # fmt: skip
    """Read the test partitions, once."""
    launcher().locked_test(trial, name, decision, transfer, gpu, redo_interrupted, timeout, memory_mb, owner_allows)


@app.local_entrypoint()
def mirror_snapshots(
    study: str = "",
    paths: str = "",
    repo: str = "jaredpalmer/kev-snapshots",
    force: bool = False,
    dry_run: bool = False,
) -> None:
    """Copy complete checkpoints to a private repository; sizes first, and nothing else with --dry-run."""
    launcher().mirror_snapshots(study, paths, repo, force, dry_run)


@app.local_entrypoint()
def interpolate(
    sft: str, prefix: str, base: str, revision: str, alphas: str = "0.85,0.70,0.50", study: str = "r20-wise",
    timeout: int = 10_800, toward: str = "", blend_head: bool = False,
) -> None:  # fmt: skip
    """Mix a checkpoint with the base it came from."""
    launcher().interpolate(sft, prefix, alphas, base, revision, study, timeout, toward, blend_head)


@app.local_entrypoint()
def agent(
    agent: str, task: str, model: str, name: str, seconds: int = 43_200, submissions: int = 20, gpu: str = GPU,
    timeout: int = 0,
) -> None:  # fmt: skip
    """Give an agent a base model, a task and a fixed time, and bring its records home."""
    launcher().agent(agent, task, model, name, seconds, submissions, gpu, timeout)
