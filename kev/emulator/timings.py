"""The delays of the platform, in seconds, so that a test need not wait for them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timings:
    """The defaults are the provider's where they are known, and short where they are not."""

    interrupt_after: float = 30.0
    """From the time-out's SIGUSR1, or a preemption's SIGINT, to the next, harder signal: SIGINT or SIGKILL."""

    kill_after: float = 60.0
    """From the time-out's SIGUSR1 to SIGKILL."""

    stop_grace: float = 5.0
    """From the SIGTERM of a stopped container to SIGKILL."""

    keep_warm: float = 5.0
    """How long a container without a call waits for the next one, where the function does not say."""

    background_commit: float = 2.0
    """Between commits that the platform makes by itself."""

    heartbeat: float = 15.0
    """Between heartbeats of a container; a cancellation travels on one that is held open."""

    crash_backoff: float = 0.5
    """Before the first restart after a crash; doubled for each further one."""

    crash_backoff_most: float = 30.0

    client_gone: float = 60.0
    """Without a heartbeat of the client that runs an app: the app ends. Clients send one every 15 s."""

    memory_check: float = 0.5
    """Between looks at the memory of containers that have a limit."""

    cap_check: float = 0.5
    """Between looks at the spend, where it is capped."""
