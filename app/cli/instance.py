"""One instance on this machine: its folder, secrets, databases, accounts, invitations. Everything is made once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import schema
from app.cli.environment import read_settings
from app.marketplace.settings import Settings as MarketplaceSettings
from app.models import ROLES, StaffUser
from hits.clock import Clock
from hits.db import engine_for
from hits.marketplace import database as marketplace_database
from hits.marketplace.engine import Marketplace
from hits.marketplace.views import Invitation
from payments.ledger import record_deposit
from qualification.validators import DESCRIPTION, MINIMUM

REQUESTER = "dynahit"
PLAY_MONEY = Decimal("1000.00")
QUALIFICATION = "dynahit validator"
WRITERS = ("writer 1", "writer 2")
VALIDATORS = ("validator 1", "validator 2", "validator 3")
DEFAULT_MARKETPLACE_PORT = 8000
DEFAULT_PORT = 8001


class InstanceError(Exception):
    """The instance can't be made or used; the message says what to do."""


@dataclass(frozen=True)
class Credentials:
    """The logins that `credentials.txt` holds."""

    requester_email: str
    requester_password: str
    staff_name: str
    staff_password: str


@dataclass(frozen=True)
class Instance:
    """Where an instance keeps its things. ``stored`` is what settings.env holds; the environment wins over it."""

    folder: Path
    stored: Mapping[str, str]
    credentials: Credentials

    @property
    def settings(self) -> dict[str, str]:
        """What the instance runs with."""
        return {**self.stored, **{name: value for name, value in os.environ.items() if name in self.stored}}

    @property
    def marketplace_url(self) -> str:
        return self.settings["MARKETPLACE_SITE_URL"]

    @property
    def service_url(self) -> str:
        return self.settings["DYNAHIT_SERVICE_URL"]

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def environment(self) -> dict[str, str]:
        """Return the environment for this instance's processes."""
        # A proxy of the machine's must not stand between processes on loopback.
        no_proxy = ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1,localhost")))
        own = {"DYNAHIT_HOME": str(self.folder), "NO_PROXY": no_proxy, "no_proxy": no_proxy}
        return {**self.stored, **os.environ, **own}


def port_of(url: str) -> int:
    """Return the port that an address names, or its scheme's own."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def open_instance(folder: Path, *, port: int | None = None, marketplace_port: int | None = None) -> Instance:
    """Return the instance in ``folder``, made with fresh secrets if it is new.

    Raises InstanceError when other ports are asked for than it was made with: its HITs carry their addresses.
    """
    fresh = fresh_settings(folder, port or DEFAULT_PORT, marketplace_port or DEFAULT_MARKETPLACE_PORT)
    instance = Instance(folder, {**fresh, **read_settings(folder)}, read_credentials(folder) or fresh_credentials())
    for name, asked, url in (
        ("DYNAHIT_PORT", port, instance.service_url),
        ("MARKETPLACE_PORT", marketplace_port, instance.marketplace_url),
    ):
        if asked is not None and asked != port_of(url):
            raise InstanceError(
                f"{name} is {asked}, but the instance in {folder} was made for {url}, and its open HITs carry that"
                f" address. Leave {name} unset, or make a second instance: DYNAHIT_HOME={folder}-{asked} and this"
                " port."
            )
    if port_of(instance.service_url) == port_of(instance.marketplace_url):
        raise InstanceError(
            f"Port {port_of(instance.service_url)} is meant for both the dynahit service and the marketplace."
            " Choose two: DYNAHIT_PORT and MARKETPLACE_PORT."
        )
    return instance


def store_instance(instance: Instance) -> None:
    """Write the instance's folder, settings and credentials, readable by their owner only."""
    instance.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    instance.folder.chmod(0o700)
    instance.logs.mkdir(mode=0o700, exist_ok=True)
    if dict(instance.stored) != read_settings(instance.folder):
        lines = [f"{name}={quoted(value)}" for name, value in sorted(instance.stored.items())]
        write_private(
            instance.folder / "settings.env",
            "# Settings of this dynahit instance. It holds secrets: keep it private.\n" + "\n".join(lines) + "\n",
        )
    if read_credentials(instance.folder) is None:
        write_private(instance.folder / "credentials.txt", credentials_text(instance))


def fresh_settings(folder: Path, port: int, marketplace_port: int) -> dict[str, str]:
    """Return the settings of a new instance on loopback, with generated secrets and no access key yet."""
    frame_secret = secrets.token_hex(32)
    worker_site = f"http://127.0.0.1:{marketplace_port}"
    return {
        "DYNAHIT_DATABASE_URL": f"sqlite:///{folder / 'dynahit.db'}",
        "DYNAHIT_SECRET_KEY": secrets.token_hex(32),
        "DYNAHIT_PSEUDONYM_KEY": secrets.token_hex(32),
        "DYNAHIT_FRAME_SECRET": frame_secret,
        # Another host name than the worker site's: for the browser the two are different sites.
        "DYNAHIT_SERVICE_URL": f"http://localhost:{port}",
        "DYNAHIT_MARKETPLACE_ENDPOINT": worker_site,
        "DYNAHIT_WORKER_SITE_URL": worker_site,
        # A few people at one machine should not wait for a full validation HIT.
        "DYNAHIT_VALIDATION_WAIT_SECONDS": "20",
        "MARKETPLACE_DATABASE_URL": f"sqlite:///{folder / 'marketplace.db'}",
        "MARKETPLACE_SECRET_KEY": secrets.token_hex(32),
        "MARKETPLACE_FRAME_SECRET": frame_secret,
        "MARKETPLACE_SITE_URL": worker_site,
        "MARKETPLACE_SITE_NAME": "dynahit marketplace",
        "MARKETPLACE_ALLOWED_HOSTS": "127.0.0.1,localhost",
    }


def fresh_credentials() -> Credentials:
    """Return logins with generated passwords."""
    return Credentials("requester@dynahit.example", secrets.token_urlsafe(15), "requester", secrets.token_urlsafe(15))


LABELS = {
    "requester_email": "marketplace requester, e-mail",
    "requester_password": "marketplace requester, password",
    "staff_name": "dynahit staff, name",
    "staff_password": "dynahit staff, password",
}


def credentials_text(instance: Instance) -> str:
    """Return the text of ``credentials.txt``."""
    lines = [f"{label}: {getattr(instance.credentials, name)}" for name, label in LABELS.items()]
    return (
        f"Logins of this dynahit instance, made by `dynahit up`. Keep them private.\n\n"
        f"dynahit for requesters and finance: {instance.service_url}\n"
        f"the marketplace's requester console: {instance.marketplace_url}/requester\n\n" + "\n".join(lines) + "\n"
    )


def read_credentials(folder: Path) -> Credentials | None:
    """Return the logins that ``credentials.txt`` holds, None when it is missing or incomplete."""
    path = folder / "credentials.txt"
    if not path.exists():
        return None
    values = dict(line.split(": ", 1) for line in path.read_text(encoding="utf-8").splitlines() if ": " in line)
    if any(label not in values for label in LABELS.values()):
        return None
    return Credentials(**{name: values[label] for name, label in LABELS.items()})


def quoted(value: str) -> str:
    """Return a value as settings.env holds it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def upgrade_databases(instance: Instance) -> None:
    """Bring both databases to their newest schema."""
    schema.upgrade(instance.settings["DYNAHIT_DATABASE_URL"])
    marketplace_database.upgrade(instance.settings["MARKETPLACE_DATABASE_URL"])
    for name in ("DYNAHIT_DATABASE_URL", "MARKETPLACE_DATABASE_URL"):
        url = instance.settings[name]
        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///")).chmod(0o600)


def open_marketplace(instance: Instance) -> Marketplace:
    """Open the instance's marketplace as a library, as only the launcher may."""
    settings = MarketplaceSettings.model_validate(
        {
            name.removeprefix("MARKETPLACE_").lower(): value
            for name, value in instance.settings.items()
            if name.startswith("MARKETPLACE_")
        }
    )
    return Marketplace(settings.database_url, settings=settings.engine_settings())


def furnish_marketplace(instance: Instance) -> Instance:
    """Give the marketplace its requester, money, access key, qualification and invitations, each once.

    Returns the instance with the access key among its settings, which are stored before anything is signed with it.
    """
    marketplace = open_marketplace(instance)
    try:
        requester_id = _requester(marketplace, instance)
        if "DYNAHIT_AWS_ACCESS_KEY_ID" not in instance.settings:
            key = marketplace.create_access_key(requester_id)
            made = {"DYNAHIT_AWS_ACCESS_KEY_ID": key.access_key_id, "DYNAHIT_AWS_SECRET_ACCESS_KEY": key.secret}
            instance = replace(instance, stored={**instance.stored, **made})
            store_instance(instance)
        qualification = _qualification(marketplace, requester_id)
        invited = {invitation.note for invitation in marketplace.invitations()}
        for note in WRITERS:
            if note not in invited:
                marketplace.create_invitation(note)
        for note in VALIDATORS:
            if note not in invited:
                marketplace.create_invitation(note, grants={qualification: MINIMUM})
    finally:
        marketplace.close()
    return instance


def furnish_service(instance: Instance, clock: Clock) -> None:
    """Give dynahit its first member of staff, who may do everything, and book the play money, each once."""
    engine = engine_for(instance.settings["DYNAHIT_DATABASE_URL"])
    try:
        with Session(engine) as session, session.begin():
            if session.scalar(select(StaffUser.id).limit(1)) is None:
                user = StaffUser(name=instance.credentials.staff_name, roles=list(ROLES), created_at=clock.now())
                user.set_password(instance.credentials.staff_password)
                session.add(user)
            endpoint = instance.settings["DYNAHIT_MARKETPLACE_ENDPOINT"]
            record_deposit(session, endpoint, PLAY_MONEY, reference="play money", now=clock.now())
    finally:
        engine.dispose()


def invitations(instance: Instance) -> list[Invitation]:
    """Return the invitations that `up` made, writers first."""
    marketplace = open_marketplace(instance)
    try:
        by_note = {invitation.note: invitation for invitation in marketplace.invitations()}
    finally:
        marketplace.close()
    return [by_note[note] for note in (*WRITERS, *VALIDATORS) if note in by_note]


def invite(instance: Instance, note: str, *, validator: bool) -> str:
    """Make one more invitation and return its code."""
    marketplace = open_marketplace(instance)
    try:
        grants = {}
        if validator:
            grants[_qualification(marketplace, _requester(marketplace, instance))] = MINIMUM
        return marketplace.create_invitation(note, grants=grants)
    finally:
        marketplace.close()


def _requester(marketplace: Marketplace, instance: Instance) -> str:
    credentials, key = instance.credentials, instance.settings.get("DYNAHIT_AWS_ACCESS_KEY_ID")
    requesters = marketplace.requesters()
    # A requester who has another e-mail address by now is known by the key.
    owners = [
        one for one in requesters if key in {had.access_key_id for had in marketplace.access_keys(one.requester_id)}
    ]
    found = owners or [one for one in requesters if one.email == credentials.requester_email]
    if found:
        requester_id = found[0].requester_id
    else:
        requester_id = marketplace.create_requester(
            REQUESTER, email=credentials.requester_email, password=credentials.requester_password
        ).requester_id
    if not marketplace.account_entries(requester_id):
        marketplace.top_up(requester_id, PLAY_MONEY, "play money of this instance")
    return requester_id


def _qualification(marketplace: Marketplace, requester_id: str) -> str:
    found = marketplace.call(
        requester_id,
        "ListQualificationTypes",
        {"Query": QUALIFICATION, "MustBeRequestable": False, "MustBeOwnedByCaller": True},
    )
    for qualification in found["QualificationTypes"]:
        if qualification["Name"] == QUALIFICATION:
            return str(qualification["QualificationTypeId"])
    made = marketplace.call(
        requester_id,
        "CreateQualificationType",
        {
            "Name": QUALIFICATION,
            "Description": DESCRIPTION,
            "QualificationTypeStatus": "Active",
        },
    )
    return str(made["QualificationType"]["QualificationTypeId"])
