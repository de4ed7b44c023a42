"""A Modal control plane on loopback: the stock `modal` client and command line deploy to it, and it really runs what
they send, in processes of this machine. It needs the `modal` extra and imports it only when it is used.
"""

from typing import TYPE_CHECKING, Any

from kev.errors import UsageError

if TYPE_CHECKING:
    from kev.emulator.plane import Emulator
    from kev.emulator.timings import Timings

__all__ = ["Emulator", "Timings"]

EXTRA = {"modal", "modal_proto", "grpclib", "google", "aiohttp"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from kev.emulator.plane import Emulator
        from kev.emulator.timings import Timings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in EXTRA:
            raise UsageError(
                "the emulator needs the modal package; install it with: pip install 'kevtui[modal]'"
            ) from None
        raise
    return {"Emulator": Emulator, "Timings": Timings}[name]
