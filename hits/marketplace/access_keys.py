"""Access keys of requesters; a secret is kept encrypted, since checking a signature needs it back."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import bindparam, select

from hits.marketplace import accounts, audit
from hits.marketplace.console_views import Actor
from hits.marketplace.database import Store
from hits.marketplace.errors import MarketplaceError, OperatorError
from hits.marketplace.identifiers import new_access_key_id, new_secret
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import AccessKeyRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import AccessKey, AccessKeyInfo
from hits.marketplace.words import words

_IN_FORCE: Final = select(AccessKeyRow.encrypted_secret, AccessKeyRow.requester_id).where(
    AccessKeyRow.access_key_id == bindparam("access_key_id"), AccessKeyRow.revoked_at.is_(None)
)


def create(transaction: Transaction, requester_id: str, by: Actor) -> AccessKey:
    """Create a key for a requester."""
    accounts.find(transaction, requester_id)
    key = AccessKey(new_access_key_id(), new_secret())
    transaction.session.add(
        AccessKeyRow(
            access_key_id=key.access_key_id,
            requester_id=requester_id,
            encrypted_secret=Fernet(transaction.settings.secret_key).encrypt(key.secret.encode("ascii")),
            created_at=transaction.now,
        )
    )
    audit.record(transaction, by, "access key created", "requester", requester_id, access_key_id=key.access_key_id)
    return key


def reveal(store: Store, settings: MarketplaceSettings, access_key_id: str) -> tuple[str, str]:
    """Return (secret, requester id) of a key that is in force.

    Raises MarketplaceError for an unknown or revoked key, OperatorError if the secret was encrypted under another
    secret_key.
    """
    row = store.look_up(_IN_FORCE, {"access_key_id": access_key_id})
    if row is None:
        raise MarketplaceError("UnrecognizedClientException", "The security token included in the request is invalid.")
    try:
        return _decrypted(settings.secret_key, bytes(row.encrypted_secret)), row.requester_id
    except InvalidToken as error:
        raise OperatorError(
            words(
                "The secret of access key %(key)s was stored under another secret_key; start the marketplace with the "
                "old secret_key, or create a new access key.",
                key=access_key_id,
            )
        ) from error


def every(transaction: Transaction, requester_id: str) -> list[AccessKeyInfo]:
    """Return a requester's keys, oldest first."""
    accounts.find(transaction, requester_id)
    rows = transaction.session.scalars(
        select(AccessKeyRow)
        .where(AccessKeyRow.requester_id == requester_id)
        .order_by(AccessKeyRow.created_at, AccessKeyRow.access_key_id)
    )
    return [AccessKeyInfo(row.access_key_id, row.created_at, row.revoked_at) for row in rows]


def revoke(transaction: Transaction, requester_id: str, access_key_id: str, by: Actor) -> None:
    """End a key.

    Raises OperatorError if the requester has no such key.
    """
    row = transaction.session.get(AccessKeyRow, access_key_id)
    if row is None or row.requester_id != requester_id:
        raise OperatorError(words("Requester %(id)s has no access key “%(key)s”.", id=requester_id, key=access_key_id))
    if row.revoked_at is None:
        row.revoked_at = transaction.now
        audit.record(transaction, by, "access key revoked", "requester", requester_id, access_key_id=access_key_id)


@lru_cache(maxsize=1024)
def _decrypted(secret_key: str, encrypted: bytes) -> str:
    return Fernet(secret_key).decrypt(encrypted).decode("ascii")
