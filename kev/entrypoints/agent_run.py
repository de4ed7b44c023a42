"""A run of the agent bench on the provider: asked for once, admitted like a read, its records brought home."""

from dataclasses import dataclass

from kev.budget import MAX_TIMEOUT_FULL_WEIGHT, compute_bound, parse_gpu
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_read, reserve_reads, wait_for_read
from kev.errors import NotFound, Refused, UsageError
from kev.ledger.units import agent_id
from kev.records.ledger import Order
from kev.records.spec import STUDY_NAME
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import Provenance, Wanted, is_same_work, round_up
from kev.worker.orders import AGENT_FUNCTION
from kev.worker.sources import source_hashes

GRADING_SECONDS = 3600
"""Beside the run's own time: the base is measured before it, and the last submissions and the final one after it."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """What a command line asks for. `timeout` is the container's; 0 for the run's time and the gradings around it."""

    agent: str
    task: str
    model: str
    name: str
    seconds: int
    submissions: int
    gpu: str
    timeout: int = 0

    @property
    def container_seconds(self) -> int:
        return self.timeout or self.seconds + GRADING_SECONDS


def check_agent(request: AgentRequest) -> None:
    """Raises UsageError for what cannot be meant."""
    from kev.autorl.agent_folder import shipped_agents

    parse_gpu(request.gpu)
    if not STUDY_NAME.fullmatch(request.name):
        raise UsageError(f"--name {request.name!r:.100}: a name is 1 to 80 letters, digits, _ or -")
    if not request.model.startswith("/"):
        raise UsageError(f"--model {request.model!r:.100}: write a directory of a volume, /hf/... or /runs/...")
    if request.agent not in shipped_agents() and not request.agent.startswith("/"):
        words = f"write one of {', '.join(shipped_agents())}, or a folder of a volume, /hf/..."
        raise UsageError(f"--agent {request.agent!r:.100}: {words}")
    if request.seconds < 1 or request.submissions < 1:
        raise UsageError("--seconds and --submissions are above 0")
    if not request.seconds < request.container_seconds <= MAX_TIMEOUT_FULL_WEIGHT:
        words = f"above --seconds, for gradings, and at most {MAX_TIMEOUT_FULL_WEIGHT}"
        raise UsageError(f"--timeout {request.container_seconds}: {words}")


async def run_agent_there(place: Place, request: AgentRequest) -> int:
    """Run an agent in a container, wait for it, and bring its records to `runs/autorl/<name>`.

    What was launched before, by a launcher that died, is waited for and not launched again. Returns the exit code: 1
    without a verdict. Raises Refused and its like before anything is launched; a RemoteError.
    """
    check_agent(request)
    gate = open_gate(place)
    unit_id, order = agent_order(request, provenance_of(place, gate))
    known = gate.ledger.read().by_id.get(unit_id)
    if known is None or not known.counted:
        if (place.root / order.local).exists() or await place.compute.listdir(RUNS_VOLUME, order.remote):
            raise Refused(f"/runs/{order.remote}: is there already; use another --name")
        await check_deployed(gate, place.app_name, source_hashes(place.root))
    await reserve_reads(gate, unit_id, [(unit_id, order)], is_same_work)
    call = await launch_read(gate, unit_id)
    place.say(f"{request.name}: {call.id}")
    why = await wait_for_read(place, gate, unit_id, call)
    local = place.root / order.local
    try:
        await place.compute.pull(RUNS_VOLUME, f"/{order.remote}", local)
    except NotFound:
        why = why or "left nothing on the volume"
    else:
        place.say(f"{request.name}: kevtui session {order.local}/results.csv")
    if why is None:
        why = no_verdict((await place.compute.poll(call)).result)
    if why is not None:
        place.say(f"{request.name}: FAILED {why}")
    return 0 if why is None else 1


def no_verdict(answer: object) -> str | None:
    """Why a container's answer is no verdict, or None for one that is."""
    if not isinstance(answer, dict):
        return "the container answered nothing"
    return None if answer.get("success") is True else str(answer.get("why") or "the run has no verdict")


def agent_order(request: AgentRequest, provenance: Provenance) -> Wanted:
    """The request as a unit of the ledger."""
    order = Order(
        kind="agent",
        name=request.name,
        function=AGENT_FUNCTION,
        payload={"sources": provenance.sources, "git_commit": provenance.commit, "agent": request.agent,
                 "task": request.task, "model": request.model, "name": request.name, "seconds": request.seconds,
                 "submissions": request.submissions},
        gpu=request.gpu,
        timeout=request.container_seconds,
        attempt_usd=round_up(compute_bound(request.gpu, request.container_seconds, 1)),
        remote=f"autorl/{request.name}",
        local=f"runs/autorl/{request.name}",
        session=provenance.session,
    )  # fmt: skip
    return agent_id(request.name), order
