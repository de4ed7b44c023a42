"""Checkpoints between two others: what a launcher asks for is mixed on the runs volume, without a card."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import files
from kev.checkpoint import HEAD
from kev.errors import Refused
from kev.worker.container import Container
from kev.worker.manifest import write_with_manifest
from kev.worker.models import fetch_base
from kev.worker.orders import BLEND_RECORD, BlendOrder, blend_directory
from kev.worker.sources import check_sources


def run_interpolation(order: BlendOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """Mix one checkpoint for each alpha of `order`, and commit each as it is complete.

    Returns {study, name, made}. One that a killed container left incomplete is made anew. Raises Refused for a target
    that is there, for weights that cannot be mixed, and for other sources than the launcher's.
    """
    check_sources(order, container)
    container.runs.reload()
    targets = {alpha: container.runs.path / blend_directory(order.study, order.prefix, alpha) for alpha in order.alphas}
    for alpha, target in targets.items():
        if (target / BLEND_RECORD).exists():
            raise Refused(
                f"/runs/{blend_directory(order.study, order.prefix, alpha)}: is there already; it is never replaced"
            )
    from kev.model.interpolation import left_overs
    from kev.model.layout import full_weights

    sft, other = container.place(order.sft), _other(order, container, show)
    for remark in (*left_overs(sft), *left_overs(other)):
        show(f"!!! {remark}")
    sft_sha256 = full_weights(sft).sha256
    for alpha, target in targets.items():
        _make(order, alpha, sft, sft_sha256, other, target)
        container.runs.commit()
        show(f"saved /runs/{blend_directory(order.study, order.prefix, alpha)}/checkpoint")
    return {"study": order.study, "name": order.prefix, "made": [target.name for target in targets.values()]}


def _other(order: BlendOrder, container: Container, show: Callable[[str], None]) -> Path:
    """What the checkpoint is drawn toward: another one, or the base it came from."""
    from kev.model.places import locate

    if order.toward.startswith("/runs/"):
        return container.place(order.toward)
    name, revision = (order.toward, None) if order.toward else (order.base, order.revision)
    fetch_base(name, revision, show)
    return locate(name, revision)


def _make(order: BlendOrder, alpha: str, sft: Path, sft_sha256: str, other: Path, target: Path) -> None:
    from kev.model.interpolation import interpolate
    from kev.model.layout import full_weights

    files.remove_tree(target)
    note = {
        "sft": order.sft,
        "toward": order.toward or order.base,
        "revision": None if order.toward else order.revision,
        "alpha": float(Decimal(alpha)),
        "blend_head": order.blend_head,
        "sft_sha256": sft_sha256,
    }
    tensors = interpolate(sft, other, float(Decimal(alpha)), target / "checkpoint",
                          blend_head=order.blend_head, note=note)  # fmt: skip
    checkpoint = target / "checkpoint"
    assert (checkpoint / HEAD).exists(), "interpolate writes it last"
    record = {**note, "git_commit": order.git_commit, "tensors": tensors,
              "weights_sha256": full_weights(checkpoint).sha256}  # fmt: skip
    write_with_manifest(target, BLEND_RECORD, files.dump_json(record))
