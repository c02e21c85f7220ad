"""The scheduler actor: drain, wish, grant, plan, publish. It knows ids and numbers of blocks, and no text.

Everything it decides is in the plain core: `ledger` applies what has happened, `policy` decides who runs.
"""

from puma.actors.channels import Channels, drain, post
from puma.actors.ledger import Ledger
from puma.actors.messages import (
    Admit,
    Ask,
    Cancel,
    Grant,
    StepResult,
    ToScheduler,
)
from puma.actors.overview import overview


async def run_scheduler(channels: Channels, ledger: Ledger, model: str) -> None:
    """Serve for ever. Raises when another actor breaks the protocol: nothing counted can then be trusted."""
    inbox = channels.scheduler[1]
    while True:
        messages = [await inbox.receive(), *drain(inbox)]
        while messages:
            for message in messages:
                take(message, ledger, model)
            messages = await plan_steps(channels, ledger)
        emitted = ledger.take_emitted()
        if emitted is not None:
            post(channels.emitted[0], emitted, "intake")


def take(message: ToScheduler, ledger: Ledger, model: str) -> None:
    """Apply one message."""
    match message:
        case Admit():
            ledger.admit(message)
        case Cancel(sequence):
            ledger.cancel(sequence)
        case StepResult():
            ledger.settle(message)
        case Ask(answer):
            answer.put(overview(ledger, model))
        case Grant(step):
            raise RuntimeError(f"a grant for step {step} arrived, and none was awaited")


async def plan_steps(channels: Channels, ledger: Ledger) -> list[ToScheduler]:
    """Send plans until enough are in flight, or there is nothing to plan, or other messages have arrived.

    Returns those messages in the order of their arrival; they are not applied yet.
    """
    others: list[ToScheduler] = []
    while not others and (reserve := ledger.wish()) is not None:
        post(channels.reserves[0], reserve, "the KV cache")
        while not isinstance(message := await channels.scheduler[1].receive(), Grant):
            others.append(message)
        plan = ledger.plan(message)
        if plan is not None:
            post(channels.plans[0], plan, "the executor")
    return others
