"""Trainers as processes of their own, to be killed: started from a server that has torch loaded already."""

import contextlib
import hashlib
import multiprocessing
import os
import random
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kev import files
from kev.train.points import find_continuation, list_resume_points, list_snapshots

REPOSITORY = Path(__file__).parents[3]

PRELOADED = ["kev.train.run", "transformers.models.qwen3.modeling_qwen3", "torch.distributed.fsdp"]
"""What takes seconds to load, and is loaded once for all the trainers."""


def server() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@dataclass(frozen=True)
class Training:
    """A run of `world` ranks that can be started again and again in `out_dir`."""

    config: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    out_dir: Path
    world: int = 1

    def start(self) -> list[BaseProcess]:
        """One process a rank, which goes on from what is there."""
        port = _free_port()
        processes: list[BaseProcess] = [
            server().Process(target=_train, args=(self, rank, port), daemon=True) for rank in range(self.world)
        ]
        for process in processes:
            process.start()
        return processes

    def finish(self) -> dict[str, str]:
        """Run to the end; the hashes of the weights."""
        processes = self.start()
        for process in processes:
            process.join()
        codes = [process.exitcode for process in processes]
        assert codes == [0] * self.world, (codes, (self.out_dir / "rank0.err").read_text()[-3000:])
        return self.hashes()

    def kill_after(self, seconds: float) -> bool:
        """Kill every rank after that time; whether there was one left to kill."""
        processes = self.start()
        deadline = time.monotonic() + seconds
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
        alive = any(process.is_alive() for process in processes)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        return alive

    @property
    def finished(self) -> bool:
        return (self.out_dir / "checkpoint" / "training_metrics.json").exists()

    def hashes(self) -> dict[str, str]:
        """The hashes of everything that was trained."""
        checkpoint = self.out_dir / "checkpoint"
        names = [path.name for path in checkpoint.glob("*.safetensors")] + ["head.pt"]
        return {name: hashlib.sha256((checkpoint / name).read_bytes()).hexdigest() for name in sorted(names)}

    def check_disk(self) -> None:
        """What a kill left is whole or not there: the acknowledged point reads, and so does every snapshot."""
        from kev.model.loading import load_checkpoint
        from kev.torch_files import load_weights_only

        resume = self.out_dir / "checkpoint" / "resume"
        if (resume / "latest.json").exists():
            found = find_continuation(resume, world=self.world)
            assert found is not None and found.candidates
            latest = files.read_json(resume / "latest.json")
            assert found.candidates[0].path.name == latest["dir"]
        for point in list_resume_points(resume, world=self.world).directories:
            for path in point.path.glob("rank*.pt"):
                assert load_weights_only(path)["counters"]["step"] == point.step
        snapshots = list_snapshots(self.out_dir / "snapshots")
        assert snapshots.incomplete == ()
        for snapshot in snapshots.complete:
            load_checkpoint(snapshot.path / "checkpoint")

    def steps_logged(self) -> list[int]:
        """The step of every line of metrics.jsonl by rank 0, in file order."""
        path = self.out_dir / "metrics.jsonl"
        if not path.exists():
            return []
        lines = (line.value for line in files.parse_json_lines(path.read_bytes()) if line.damage is None)
        return [line["step"] for line in lines if line["rank"] == 0]


def kill_often(training: Training, *, kills: int, seed: int) -> Iterator[Training]:
    """Kill runs at random moments until `kills` of them met one alive; yields every run, finished.

    The disk is looked at after each kill. A run is left to finish after a few, and the next is begun beside it.
    """
    luck = random.Random(seed)
    met = number = 0
    longest = 1.5
    while met < kills:
        run = replace(training, out_dir=training.out_dir / f"run-{number}")
        for _ in range(luck.randint(1, 5)):
            met += run.kill_after(luck.uniform(0.0, longest))
            run.check_disk()
            if run.finished or met == kills:
                break
        started = time.monotonic()
        run.finish()
        longest = max(longest, 1.2 * (time.monotonic() - started))
        run.check_disk()
        yield run
        number += 1


def _train(training: Training, rank: int, port: int) -> None:
    training.out_dir.mkdir(parents=True, exist_ok=True)
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    if training.world > 1:
        os.environ.update(
            RANK=str(rank), WORLD_SIZE=str(training.world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
        )
    from kev.train import run_training
    from kev.train.settings import TrainingOptions

    with (training.out_dir / f"rank{rank}.err").open("a") as log, contextlib.redirect_stderr(log):
        options = TrainingOptions(threads=1, save_every_minutes=0.0, echo=False)
        try:
            run_training(training.config, training.records, training.out_dir, resume=True, options=options)
        except BaseException:
            import traceback

            traceback.print_exc()
            raise


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
