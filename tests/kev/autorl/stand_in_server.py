"""`python stand_in_server.py ROOT PORT`: a grading server to be killed, with the evaluator of the tests."""

import asyncio
import sys
from pathlib import Path

import uvicorn
from grading import StandIn, run_of

from kev.autorl.grader import Grader
from kev.autorl.server import build_app
from kev.serve import bind


async def main(root: Path, port: int) -> None:
    listening = bind("127.0.0.1", port)
    grader = Grader(run_of(root, most_submissions=1000), StandIn(seconds=0.01, log=root / "evaluations"))
    await grader.start_clock()
    app = build_app(grader)
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
