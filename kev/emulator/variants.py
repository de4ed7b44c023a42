"""Variants of a function, under other options or class parameters. They follow the function that they are made of."""

from typing import Any

from kev.emulator.entities import Function
from kev.emulator.wire import decode, pb


def variant_of(base: Function, function_id: str, binding: str, parameters: bytes, options: Any) -> Function:
    """The variant of `base` under `options`, as `base` is deployed now."""
    metadata = base.metadata
    metadata.base_function_id = base.id
    return Function(
        id=function_id,
        app_id=base.app_id,
        name=base.name,
        definition_bytes=with_options(base.definition, options).SerializeToString(),
        metadata_bytes=metadata.SerializeToString(),
        parameters=parameters,
        base=base.id,
        binding=binding,
        source=base.source,
        options_bytes=options.SerializeToString(),
    )


def redeployed(variant: Function, base: Function) -> Function:
    """`variant`, now that `base` was deployed again: of its image and sources, under the options it has."""
    options = decode(pb.FunctionOptions, variant.options_bytes or b"")
    return variant_of(base, variant.id, variant.binding, variant.parameters, options)


def with_options(definition: pb.Function, options: Any) -> pb.Function:
    """`definition` under other resources, limits, retries, volumes and secrets."""
    if options.HasField("resources"):
        definition.resources.MergeFrom(options.resources)
    for name in ("timeout_secs", "concurrency_limit", "task_idle_timeout_secs", "warm_pool_size"):
        if options.HasField(name):
            setattr(definition, name, getattr(options, name))
    if options.HasField("retry_policy"):
        definition.retry_policy.CopyFrom(options.retry_policy)
    if options.replace_volume_mounts:
        del definition.volume_mounts[:]
        definition.volume_mounts.extend(options.volume_mounts)
    if options.replace_secret_ids:
        del definition.secret_ids[:]
        definition.secret_ids.extend(options.secret_ids)
    return definition
