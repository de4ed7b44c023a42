"""What a container costs an hour, by the engine's own rate table. Simulated: nobody is billed."""

from decimal import Decimal

from kev.budget import CPU_HOURLY, DISK_SHARE, GPU_HOURLY, MEMORY_GIB_HOURLY
from kev.emulator.wire import invalid, pb

DEFAULT_CORES = Decimal("0.125")
DEFAULT_MEMORY_MIB = 128
"""What a container has that asks for nothing."""


def gpu_of(definition: pb.Function) -> tuple[str, int]:
    """Type and number of cards; ("", 0) for none."""
    gpu = definition.resources.gpu_config
    return (gpu.gpu_type.upper().rstrip("!"), int(gpu.count) or 1) if gpu.gpu_type else ("", 0)


def check_priced(definition: pb.Function) -> None:
    """Raises INVALID_ARGUMENT for a card without a price: its containers would seem to cost nothing."""
    gpu_type, count = gpu_of(definition)
    if count and gpu_type not in GPU_HOURLY:
        raise invalid(f"GPU type {gpu_type!r} has no price here; known are {', '.join(sorted(GPU_HOURLY))}")


def hourly(definition: pb.Function) -> dict[str, Decimal]:
    """US dollars per hour of one container, by resource."""
    resources = definition.resources
    gpu_type, count = gpu_of(definition)
    cores = Decimal(resources.milli_cpu) / 1000 or DEFAULT_CORES
    memory = resources.memory_mb_max or resources.memory_mb or DEFAULT_MEMORY_MIB
    gib = (Decimal(memory) + Decimal(resources.ephemeral_disk_mb) / DISK_SHARE) / 1024
    rates = {"CPU": cores * CPU_HOURLY, "Memory": gib * MEMORY_GIB_HOURLY}
    if count:
        rates[gpu_type] = GPU_HOURLY[gpu_type] * count
    return rates
