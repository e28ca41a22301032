"""Replays published adversarial rounds through the product: ``python benchmarks/replay.py --data DIR --home DIR``.

Every step is a command of `dynahit` as a requester would type it: import the rounds, freeze them, train a model on base
data alone and then one more with each round, measure every model on every round and on a base set, compare each model
with the one before. Interrupted, the same call goes on; with the same folder it changes nothing that is done.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Replay:
    """One task's rounds. ``rounds`` holds (form, files, published round); paths are below the data folder."""

    rounds: tuple[tuple[str, tuple[str, ...], int], ...]
    base: tuple[str, ...]
    measured: tuple[str, ...]
    length: int


REPLAYS = {
    "hate": Replay(
        rounds=tuple(
            (
                "hatemoji",
                tuple(f"hate_hatemoji/HatemojiBuild_{part}.csv" for part in ("train", "validation", "test")),
                n,
            )
            for n in (5, 6, 7)
        ),
        base=(
            *("--base", "{data}/hate_base/davidson_labeled_data.csv.gz", "--base-licence", "MIT"),
            *("--base-column", "message=tweet", "--base-column", "label=class"),
            *("--base-label", "0=hateful", "--base-label", "1=not_hateful", "--base-label", "2=not_hateful"),
            *("--class-weight", "balanced"),
        ),
        measured=(
            *("--functions", "HateCheck={data}/hate_base/hatecheck_test_suite_cases.csv"),
            *("--column", "message=test_case", "--column", "label=label_gold", "--column", "target=target_ident"),
            *("--label", "non-hateful=not_hateful"),
        ),
        length=64,
    ),
    "sentiment": Replay(
        rounds=(
            (
                "dynasent",
                tuple(f"sentiment_dynasent/dynasent-v1.1-round01-yelp-{part}.jsonl.gz" for part in ("dev", "test")),
                1,
            ),
            ("dynasent", ("sentiment_dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl",), 2),
        ),
        base=("--base", "{data}/sentiment_dynasent/sst-dev-validated.jsonl", "--base-licence", "cc-by-4.0"),
        measured=(
            *("--file", "CAD IMDb dev={data}/sentiment_base/cad_imdb_combined_paired_dev.tsv"),
            *("--column", "statement=Text", "--column", "label=Sentiment"),
            *("--label", "Negative=negative", "--label", "Positive=positive"),
        ),
        length=64,
    ),
    "nli": Replay(
        rounds=tuple(
            (
                "anli",
                (f"nli_anli/anli_r{n}_dev_annotated.csv{'.gz' * (n == 3)}", "nli_anli/verifier_labels_dev.jsonl"),
                n,
            )
            for n in (1, 2, 3)
        ),
        base=("--base", "{data}/nli_base/snli_dev.csv.gz", "--base-licence", "cc-by-sa-4.0"),
        measured=("--file", "CAD-NLI test={data}/nli_base/cad_nli_all_combined_test.tsv"),
        length=128,
    ),
}


def main() -> None:
    """Run the replays and print their tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(REPLAYS)}; all without one")
    parser.add_argument("--data", type=Path, required=True, help="folder with the published data sets")
    parser.add_argument(
        "--home", type=Path, required=True, help="where the instance, its models and its figures are kept"
    )
    parser.add_argument("--rounds", type=int, help="the last round to train on; all without it")
    parser.add_argument("--limit", type=int, default=2500, help="rows of each source at the most")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="of each training; all without it")
    given = parser.parse_args()
    given.home.mkdir(parents=True, exist_ok=True)
    run = Instance(given.home.resolve())
    run("db", "upgrade")
    for code in given.tasks or REPLAYS:
        replay(run, code, given)


class Instance:
    """The commands of an instance of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DYNAHIT_HOME": str(home),
            "DYNAHIT_DATABASE_URL": f"sqlite:///{home / 'replay.db'}",
            "DYNAHIT_SECRET_KEY": "a secret key of the replay, long enough",
            "DYNAHIT_PSEUDONYM_KEY": "a pseudonym key of the replay, long enough",
            "DYNAHIT_AWS_ACCESS_KEY_ID": "none",
            "DYNAHIT_AWS_SECRET_ACCESS_KEY": "none",
        }

    def __call__(self, *arguments: str) -> str:
        """Run one command, show it, and return what it printed; its progress goes to the terminal."""
        print("$ dynahit", " ".join(arguments), file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "app.cli", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"dynahit {arguments[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
        return done.stdout


def replay(run: Instance, code: str, given: argparse.Namespace) -> None:
    """Import, freeze, train, measure and compare one task."""
    wanted = REPLAYS[code]
    last = min(given.rounds or len(wanted.rounds), len(wanted.rounds))
    mine = [one for one in json.loads(run("round", "list", "--json")) if one["task"] == code]
    frozen = {one["round"] for one in mine if one["state"] in ("frozen", "trained", "archived")}
    for number, (form, files, published) in enumerate(wanted.rounds, start=1):
        if number not in frozen:
            paths = [str(given.data / file) for file in files]
            run("import", form, *paths, "--round", str(number), "--published-round", str(published))
            run("round", "freeze", code, str(number), "--yes")
    settings = ["--limit-per-source", str(given.limit), "--epochs", str(given.epochs), "--seeds", str(given.seed)]
    if given.threads:
        settings += ["--threads", str(given.threads)]
    models = []
    for number in range(last + 1):
        written = run(
            *(
                "round",
                "train",
                code,
                "--round",
                str(number),
                *filled(wanted.base, given.data),
                "--start",
                "pretrained",
            ),
            *(*settings, "--length", str(wanted.length), "--patience", "9", "--local-files-only", "--json"),
        )
        models.append(json.loads(written)["reference"])
    named = [part for model in models for part in ("--model", model)]
    run("measure", "models", code, *named, "--split", "dev", "--split", "test", *filled(wanted.measured, given.data))
    rows = json.loads(run("measure", "matrix", code, "--json"))
    heads = [head_of(rows, model) for model in models]
    print(f"\n## {code}\n\nError rates in percent, with 95 % intervals.\n\n{table(rows, heads)}\n", flush=True)
    for before, after in pairwise(heads):
        print(run("measure", "compare", code, before, after), flush=True)


def filled(arguments: tuple[str, ...], data: Path) -> list[str]:
    """Return the arguments with the data folder in its place."""
    return [argument.replace("{data}", str(data)) for argument in arguments]


def head_of(rows: list[dict[str, Any]], reference: str) -> str:
    """Return how the matrix calls a model that was trained into a folder."""
    folder = Path(reference.removeprefix("dir:")).name
    return next(str(row["model"]) for row in rows if folder in row["model"])


def table(rows: list[dict[str, Any]], heads: list[str]) -> str:
    """Return the error rates as a Markdown table: a line for each set, a column for each model."""
    cells = {(row["set"], row["model"]): row for row in rows if row["metric"] == "error"}
    sets = list(dict.fromkeys(name for name, _ in cells))
    named = ["base", *(f"base and round{'s 1 to' if last > 1 else ''} {last}" for last in range(1, len(heads)))]
    lines = ["| set | rows | " + " | ".join(named) + " |", "| --- " * (len(named) + 2) + "|"]
    for name in sets:
        found = [cells[name, head] for head in heads]
        figures = [f"{one['value']:.1%} ({one['low']:.1%} to {one['high']:.1%})".replace("%", "") for one in found]
        lines.append(f"| {name} | {found[0]['rows']:,} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
