"""The assumptions about Modal's server, one by one, each with its check. See `kev.compute.contract`.

Each module puts its own on the list as it is imported.
"""

from kev.compute.assumptions import apps, calls, containers, money, volumes  # noqa: F401
from kev.compute.assumptions.asking import CHECKED
from kev.compute.assumptions.unchecked import UNCHECKED

ASSUMPTIONS = [*CHECKED, *UNCHECKED]
