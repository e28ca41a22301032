"""Mail to the people who run this instance, by the SMTP server of its settings."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import make_msgid
from typing import Final

from app.settings import Settings
from hits.clock import Clock

_SECONDS: Final = 10


class MailNotSent(Exception):
    """The server did not take a mail; the text says why and names no password."""


def can_send(settings: Settings) -> bool:
    """Return whether there is somebody to write to, and a server that takes the mail."""
    return settings.alert_mail is not None and settings.smtp_host is not None


def send_alert(settings: Settings, clock: Clock, subject: str, text: str) -> None:
    """Write to everybody of DYNAHIT_ALERT_MAIL. Raises MailNotSent; does nothing where mail is not set up."""
    if settings.alert_mail is None or settings.smtp_host is None or settings.mail_from is None:
        return
    message = EmailMessage()
    message["Subject"] = " ".join(subject.split())
    message["From"] = settings.mail_from
    message["To"] = settings.alert_mail
    message["Date"] = clock.now()
    message["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    try:
        with _connected(settings, settings.smtp_host) as server:
            refused = server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise MailNotSent(f"{settings.smtp_host}:{settings.smtp_port} did not take it: {_words(error)}") from error
    if refused:
        raise MailNotSent(f"{settings.smtp_host}:{settings.smtp_port} refused {', '.join(sorted(refused))}.")


def _connected(settings: Settings, host: str) -> smtplib.SMTP:
    if settings.smtp_security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, settings.smtp_port, timeout=_SECONDS, context=ssl.create_default_context()
        )
    else:
        server = smtplib.SMTP(host, settings.smtp_port, timeout=_SECONDS)
    try:
        if settings.smtp_security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user is not None and settings.smtp_password is not None:
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
    except BaseException:
        server.close()
        raise
    return server


def _words(error: Exception) -> str:
    """Return what the server said, without the bytes and numbers of Python's own text."""
    said = getattr(error, "smtp_error", None)
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said or error)
    return " ".join(text.split())[:300] or type(error).__name__
