"""How checkpoints that no study trains are made: what the watcher is going to ask for must be what was meant."""

from kev.document import JsonPath
from kev.rounds.blend_orders import BlendRequest, blend_problems, checkpoint_at, registered_blend, request_of
from kev.rounds.subject import Subject
from kev.spelling import on_any_disk

WHERE: JsonPath = ("construction", "blend")


def check_construction(subject: Subject) -> None:
    """The blend of the spec, and the arms that are made by it."""
    spec = subject.spec
    blend = spec.construction.blend if spec.construction is not None else None
    if blend is None:
        return
    request = request_of(blend)
    problems = blend_problems(request)
    for key, message in problems:
        subject.problems.add("bad-blend", (*WHERE, key), message)
    for name in subject.names("studies"):
        if on_any_disk(name) == on_any_disk(request.study):
            subject.problems.add("name-taken", (*WHERE, "study"), f"{name} is a study of this round too")
    if not problems:
        _check_arms(subject, request)


def _check_arms(subject: Subject, request: BlendRequest) -> None:
    made = [checkpoint_at(request, share) for share in request.shares()]
    for name, arm in subject.spec.arms.items():
        checkpoint = arm.checkpoint or ""
        if checkpoint.startswith(f"/runs/{request.study}/{request.prefix}-w") and checkpoint not in made:
            message = f"{checkpoint} is not made by the blend, which makes {', '.join(made)}"
            subject.problems.add("unknown-blend", ("arms", name, "checkpoint"), message)
    if registered_blend(subject.spec) is None and not subject.dropped:
        subject.problems.warn("unused-blend", WHERE, "is the checkpoint of no arm, so it is not made")
