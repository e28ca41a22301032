"""Launch a batch of HITs from Python: plan it, look at the plan, launch it, and show how it stands.

    python docs/examples/launch_batch.py docs/examples/prompts.jsonl --hits 3 --reward 0.30 --launch

Without --launch only the plan is printed. Running it again creates only what is missing.
The settings are those of the instance (DYNAHIT_HOME, or DYNAHIT_* variables).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sqlalchemy.orm import Session

from app.operations.launch import LaunchTerms, launch_batch, plan_launch
from app.operations.status import batch_statuses
from app.settings import load_settings
from hits.clock import SystemClock
from hits.contexts import read_contexts
from hits.db import engine_for
from hits.errors import HitsError
from hits.money import display, usd
from hits.mturk.client import MTurk
from hits.tasks import task


def main() -> int:
    """Plan, and launch if asked to. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Launch a batch of creation HITs for round 1 of the sentiment task.")
    parser.add_argument("contexts", type=Path)
    parser.add_argument("--hits", type=int, default=3)
    parser.add_argument("--reward", default="0.30")
    parser.add_argument("--launch", action="store_true")
    wanted = parser.parse_args()

    settings = load_settings()
    mturk = MTurk(
        settings.marketplace_endpoint,
        settings.aws_access_key_id.get_secret_value(),
        settings.aws_secret_access_key.get_secret_value(),
    )
    clock = SystemClock()
    try:
        terms = LaunchTerms(
            task_code="sentiment",
            round_number=1,
            hits=wanted.hits,
            reward=usd(wanted.reward),
            bonus=usd("0.30"),
            tries=5,
            name="example",
        )
        contexts = read_contexts(wanted.contexts, task("sentiment"))
        with Session(engine_for(settings.database_url)) as session:
            plan = plan_launch(session, mturk, settings, clock, terms, contexts)
            print(
                f"{plan.missing_hits} HITs to create, at most {display(plan.cost)}; {display(plan.left)} would remain."
            )
            if not wanted.launch:
                return 0
            result = launch_batch(
                session,
                mturk,
                settings,
                clock,
                terms,
                contexts,
                on_created=lambda done, total: print(f"HIT {done} of {total} exists."),
            )
            print(f"Batch {result.batch_id}: created {result.created}, existed before {result.existing}.")
            print(json.dumps([one.as_json() for one in batch_statuses(session, task_code="sentiment")], indent=2))
    except HitsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
