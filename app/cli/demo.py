"""`dynahit demo`: a small simulated crowd plays the whole loop through the doors that people use."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.cli import instance as instances
from app.cli.crowd import Supply, opinion_of
from app.cli.instance import Instance, InstanceError, write_private
from app.cli.processes import ProcessError, Supervisor, is_running
from app.cli.up import SAMPLE, command, ports, run, say
from app.cli.visitor import Page, PageError, Visitor
from app.settings import instance_folder
from hits.clock import SystemClock
from hits.db import engine_for
from hits.models import Attempt, Example, Hit
from hits.states import AttemptState, Verdict
from hits.tasks import task

TASK = "sentiment"
HITS = 15
TRIES = 5
WRITERS = tuple(f"simulated-writer-{number}" for number in range(1, 6))
VALIDATORS = tuple(f"simulated-validator-{number}" for number in range(1, 5))
#: Longer than it can take for validation HITs to open, be judged, and open again for a third vote.
PATIENCE_SECONDS = 240


class DemoError(Exception):
    """The demo could not be played to its end; the message says where it stands."""


@dataclass
class Story:
    """What happened so far."""

    batch_id: int
    attempts: int = 0
    fooled: int = 0
    judged: int = 0
    #: (validator, HIT) that held nothing which this validator may or can judge.
    passed_over: set[tuple[int, str]] = field(default_factory=set)


@click.command("demo")
@ports
def demo(port: int | None, marketplace_port: int | None) -> None:
    """Let a simulated crowd play the loop on this instance; starts and stops it when it is not running."""
    folder = instance_folder()
    try:
        if is_running(folder):
            instance = instances.open_instance(folder, port=port, marketplace_port=marketplace_port)
            play(instance, lambda: False)
            return

        def on_own_instance(instance: Instance, supervisor: Supervisor) -> None:
            def stopped() -> bool:
                supervisor.check()
                return supervisor.stop_asked

            play(instance, stopped)
            say("\nThe demo stops dynahit again: `make up` starts it, and the pages above are there.")

        say("dynahit is not running here: the demo starts it and stops it at the end.")
        run(folder, port, marketplace_port, sample=True, when_ready=on_own_instance)
    except (InstanceError, ProcessError, DemoError, PageError) as error:
        raise click.ClickException(str(error)) from error


def play(instance: Instance, stopped: Callable[[], bool]) -> None:
    """Play the loop once, on a new batch. Raises DemoError and PageError; ``stopped`` ends it early."""
    began = time.monotonic()
    say("A simulated crowd plays the loop: 5 writers, 4 validators. None of what follows is the work of people;")
    say("their names begin with “simulated”, and their HITs form a batch of their own.")
    wait_for_model(instance, stopped)
    batch_id = launch(instance)
    story = Story(batch_id)
    with crowd(instance) as (writers, validators):
        write(instance, writers, story, stopped)
        validate(instance, validators, story, stopped)
    if stopped():
        return
    settle(instance, "payments", "settle", "--yes")
    settle(instance, "payments", "reconcile")
    say(summary(instance, story, time.monotonic() - began))


def wait_for_model(instance: Instance, stopped: Callable[[], bool]) -> None:
    """Wait until the service's model answers. Raises DemoError when it can't."""
    visitor = Visitor()
    until = time.monotonic() + 120
    said = False
    try:
        while not stopped():
            state = json.loads(visitor.open(f"{instance.service_url}/readyz").text())["model"]
            if state == "ready":
                return
            if state == "failed" or time.monotonic() > until:
                raise DemoError(
                    f"The model is {state}, and without it there is nothing to fool. The end of"
                    f" {instance.logs / 'service.log'} says why."
                )
            if not said:
                said = True
                say("  waiting for the model to load")
            time.sleep(0.5)
    finally:
        visitor.close()


def launch(instance: Instance) -> int:
    """Put the demo's HITs on the marketplace and return their batch. Raises DemoError with what the command said."""
    name = f"demo {SystemClock().now():%Y-%m-%d %H:%M:%S}"
    terms = ("--round", "1", "--hits", str(HITS), "--reward", "0.30", "--bonus", "0.30", "--tries", str(TRIES))
    # Half an hour instead of an hour makes it a HIT type, and so a group, of its own.
    own = ("--assignment-minutes", "30", "--batch", name, "--yes", "--json")
    answer = command(instance, "hits", "launch", TASK, *terms, "--contexts", str(SAMPLE), *own)
    if answer.returncode != 0:
        raise DemoError(f"The demo's HITs could not be launched:\n{answer.stdout}{answer.stderr}".rstrip())
    say(f"  {HITS} HITs launched as batch “{name}”")
    return int(json.loads(answer.stdout)["batch"])


@contextmanager
def crowd(instance: Instance) -> Iterator[tuple[list[Visitor], list[Visitor]]]:
    """Yield the simulated people, signed in to the worker site; the first demo makes their accounts."""
    passwords = stored_passwords(instance.folder / "demo-crowd.json")
    visitors = {name: Visitor() for name in (*WRITERS, *VALIDATORS)}
    try:
        for name, visitor in visitors.items():
            sign_in(instance, name, passwords[name], visitor)
        say(f"  {len(visitors)} simulated people signed in at {instance.marketplace_url}")
        yield [visitors[name] for name in WRITERS], [visitors[name] for name in VALIDATORS]
    finally:
        for visitor in visitors.values():
            visitor.close()


def stored_passwords(path: Path) -> dict[str, str]:
    """Return the passwords of the simulated people, made and kept privately before the first account exists."""
    if not path.exists():
        made = {name: secrets.token_urlsafe(12) for name in (*WRITERS, *VALIDATORS)}
        write_private(path, json.dumps(made, indent=1))
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def sign_in(instance: Instance, name: str, password: str, visitor: Visitor) -> None:
    """Sign in, after joining by invitation where there is no such account yet."""
    page = visitor.open(f"{instance.marketplace_url}/sign-in")
    try:
        visitor.send(page, "/sign-in", {"user_name": name, "password": password})
    except PageError:
        code = instances.invite(instance, name.replace("-", " "), validator=name in VALIDATORS)
        page = visitor.open(f"{instance.marketplace_url}/join?code={code}")
        visitor.send(page, "/join", {"user_name": name, "password": password})


def write(instance: Instance, writers: Sequence[Visitor], story: Story, stopped: Callable[[], bool]) -> None:
    """Let the writers do the batch's HITs in turn."""
    supply = Supply()
    with opened_database(instance) as session:
        hit_ids = session.scalars(
            select(Hit.mturk_hit_id).where(Hit.batch_id == story.batch_id).order_by(Hit.position)
        ).all()
    for number, hit_id in enumerate(hit_ids):
        if stopped():
            return
        visitor = writers[number % len(writers)]
        attempts, fooled = write_one(instance, visitor, str(hit_id), supply)
        story.attempts += attempts
        story.fooled += fooled
        outcome = "fooled the model" if fooled else "did not fool the model"
        say(f"  {WRITERS[number % len(writers)]}: {attempts} attempts, {outcome} (HIT {number + 1} of {len(hit_ids)})")


def write_one(instance: Instance, visitor: Visitor, hit_id: str, supply: Supply) -> tuple[int, bool]:
    """Do one HIT: preview, accept, ask the model until it is fooled or the tries are used, look at the words, submit.

    Returns how many attempts it took, and whether one fooled the model.
    """
    preview = visitor.open(f"{instance.marketplace_url}/hits/{hit_id}")
    visitor.frame(preview)
    work = visitor.send(preview, "/accept")
    page = visitor.go_on(visitor.frame(work))
    texts = supply.for_hit(goal_of(page))
    attempts = 0
    while page.forms("/work/attempts", with_field="statement"):
        page = visitor.send(page, "/work/attempts", {"statement": next(texts)}, with_field="statement")
        attempts += 1
        if page.forms("/explanation"):
            page = visitor.send(page, "/explanation")
    fooled = page.has(".verdict-fooled")
    saved = visitor.send(page, "/work/submit", {"why": "Any reader sees it." if fooled else ""})
    visitor.send(saved, "/mturk/externalSubmit")
    return attempts, fooled


def goal_of(page: Page) -> str:
    """Return the label that a writing page asks for. Raises DemoError when it names none."""
    asked = page.text(".goal-label")
    for label in task(TASK).labels:
        if label.goal == asked:
            return label.code
    raise DemoError(f"The page asks for {asked!r}, which is no goal of the {TASK} task.")


def validate(instance: Instance, validators: Sequence[Visitor], story: Story, stopped: Callable[[], bool]) -> None:
    """Let the validators judge whatever opens, until every fooling statement of the batch is decided."""
    say(f"  {story.fooled} statements fooled the model; waiting for the jobs process to open validation HITs")
    until = time.monotonic() + PATIENCE_SECONDS
    while not stopped():
        for number, visitor in enumerate(validators, start=1):
            while judge_one(instance, visitor, number, story):
                pass
        left = undecided(instance, story.batch_id)
        if not left:
            return
        if time.monotonic() > until:
            raise DemoError(
                f"{left} statements still wait for votes after {PATIENCE_SECONDS} seconds."
                f" `dynahit hits status` and {instance.logs / 'jobs.log'} tell more; running the demo again is safe."
            )
        time.sleep(1)


def judge_one(instance: Instance, visitor: Visitor, number: int, story: Story) -> bool:
    """Judge one validation HIT if there is one for this validator; False when there is none."""
    listing = visitor.open(f"{instance.marketplace_url}/hits?qualified=1&q=short+statements")
    links = (urlsplit(str(link)).path for link in listing.content.xpath("//main//a/@href"))
    hit_ids = [path.removeprefix("/hits/") for path in links if path.startswith("/hits/")]
    hit_id = next((one for one in hit_ids if (number, one) not in story.passed_over), None)
    if hit_id is None:
        return False
    work = visitor.send(visitor.open(f"{instance.marketplace_url}/hits/{hit_id}"), f"/hits/{hit_id}/accept")
    page = visitor.go_on(visitor.frame(work))
    votes = 0
    while page.forms("/validate/votes"):
        opinion = opinion_of(page.text("blockquote"))
        if opinion is None:
            # A real person's statement: nothing that a script could say about it would be a judgement.
            say("  a validation HIT with statements of real people is returned: it is left to people")
            return give_back(visitor, work, number, hit_id, story)
        if opinion.flag:
            page = visitor.send(page, "/validate/votes", {"flag_reason": opinion.flag}, with_field="flag_reason")
        else:
            page = visitor.send(page, "/validate/votes", {"label": opinion.of(number)}, with_field="label")
        votes += 1
    if not page.forms("/validate/submit"):
        # All its statements were judged by this validator before: somebody else is asked for the third vote.
        return give_back(visitor, work, number, hit_id, story)
    saved = visitor.send(page, "/validate/submit")
    visitor.send(saved, "/mturk/externalSubmit")
    story.judged += votes
    say(f"  {VALIDATORS[number - 1]}: judged {votes} statements")
    return True


def give_back(visitor: Visitor, work: Page, number: int, hit_id: str, story: Story) -> bool:
    """Return a HIT, and don't take it again; always True, since another one may be there."""
    story.passed_over.add((number, hit_id))
    visitor.send(visitor.open(f"{work.url}/return"), "/return")
    return True


@contextmanager
def opened_database(instance: Instance) -> Iterator[Session]:
    """Yield a session for looking only."""
    engine = engine_for(instance.settings["DYNAHIT_DATABASE_URL"])
    try:
        with Session(engine) as session:
            yield session
    finally:
        engine.dispose()


def undecided(instance: Instance, batch_id: int) -> int:
    """Return how many fooling attempts of the batch have no verdict yet, collected or not."""
    with opened_database(instance) as session:
        verdicts = session.scalars(
            select(Example.verdict)
            .select_from(Attempt)
            .join(Hit, Attempt.hit_id == Hit.id)
            .outerjoin(Example, Example.attempt_id == Attempt.id)
            .where(Hit.batch_id == batch_id, Attempt.state == AttemptState.ANSWERED, Attempt.fooled.is_(True))
        ).all()
    return sum(verdict in (None, Verdict.PENDING) for verdict in verdicts)


def settle(instance: Instance, *arguments: str) -> None:
    """Run a payments command and show its closing line. Raises DemoError when it fails."""
    answer = command(instance, *arguments)
    if answer.returncode != 0:
        raise DemoError(f"`dynahit {' '.join(arguments)}` failed:\n{answer.stdout}{answer.stderr}".rstrip())
    said = answer.stdout.strip().splitlines() or [""]
    say(f"  dynahit {' '.join(arguments)}: {said[-1].strip()}")


def summary(instance: Instance, story: Story, seconds: float) -> str:
    """Return what the demo leaves behind, and where to look at it."""
    with opened_database(instance) as session:
        examples = session.scalars(
            select(Example)
            .join(Attempt, Example.attempt_id == Attempt.id)
            .join(Hit, Attempt.hit_id == Hit.id)
            .where(Hit.batch_id == story.batch_id)
        ).all()
        verdicts = Counter(example.verdict for example in examples)
        verified = sum(
            example.verdict is Verdict.VALID_AND_MODEL_WRONG and example.final_label == example.goal_label
            for example in examples
        )
    rejected = verdicts[Verdict.INVALID] + verdicts[Verdict.VALID_AND_MODEL_RIGHT]
    return "\n".join(
        [
            f"\nThe simulated crowd was done in {seconds:.0f} seconds. Batch {story.batch_id} of round 1 now has",
            f"  {story.attempts} attempts scored by the model, {story.fooled} of them fooled it",
            f"  {verified} verified, {rejected} rejected by the readers, {verdicts[Verdict.FLAGGED]} flagged",
            f"  {story.judged} judgements of the simulated validators",
            "",
            "Look at it:",
            f"  {instance.service_url}/rounds     the round, its statements, the flagged one",
            f"  {instance.service_url}/finance    what was paid and what is owed",
            f"  {instance.marketplace_url}            the worker site",
            "  .venv/bin/dynahit hits status",
            "  .venv/bin/dynahit payments report",
            "  .venv/bin/dynahit export sentiment --round 1 --out round-1.jsonl",
        ]
    )
