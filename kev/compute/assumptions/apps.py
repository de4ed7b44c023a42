"""Of a workspace, and of an app that is deployed in it."""

from dataclasses import replace

from kev.compute.assumptions.asking import assumes, expect, raised_by, start
from kev.compute.contract import Probe
from kev.compute.errors import AuthFailed, NotDeployed
from kev.compute.modal_compute import ModalCompute


@assumes("workspace-name", "the workspace of a token has a name")
async def _(probe: Probe) -> None:
    """Workspace.from_context().hydrate(), and its name is not empty."""
    identity = await probe.compute.ping()
    expect(identity.workspace, identity)


@assumes("bad-token", "a token that is not known is AuthError, at once")
async def _(probe: Probe) -> None:
    """A lookup of the workspace with an invented token."""
    settings = replace(probe.settings, token_id="ak-nobody", token_secret="as-nothing")
    async with ModalCompute(settings) as stranger:
        error = await raised_by(stranger.ping())
    expect(isinstance(error, AuthFailed), repr(error))


@assumes("app-missing", "looking up an app that is not deployed is NotFoundError, and creates nothing")
async def _(probe: Probe) -> None:
    """App.lookup of an invented name, twice."""
    settings = replace(probe.settings, app=f"kev-nothing-{probe.run}")
    async with ModalCompute(settings) as nobody:
        found = [await nobody.app(), await nobody.app()]
    expect(found == [None, None], found)


@assumes("app-info", "a deployed app says its version, when it was deployed, and its functions")
async def _(probe: Probe) -> None:
    """App.lookup().info() of the contract app."""
    app = await probe.compute.app()
    expect(app and app.version >= 1 and app.deployed_at and {"echo", "fail"} <= set(app.functions), app)


@assumes("function-missing", "a function that the app lacks is NotFoundError before anything starts")
async def _(probe: Probe) -> None:
    """spawn of an invented function name."""
    error = await raised_by(start(probe, "no_such_function"))
    expect(isinstance(error, NotDeployed) and not error.may_have_happened, repr(error))
