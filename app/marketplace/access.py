"""How people come in and get back in: sign-up, forgotten and new passwords, e-mail addresses, the language of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from flask import Blueprint, abort, current_app, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import get_locale, gettext

from app.marketplace import sessions
from app.marketplace.extensions import failed, limiter, marketplace, settings, sign_in_limit
from hits.marketplace import errors as refusals
from hits.marketplace import passwords
from hits.marketplace.addresses import LONGEST as LONGEST_ADDRESS
from hits.marketplace.addresses import key_of

access = Blueprint("access", __name__)


def _sign_up_limit() -> str:
    return settings().sign_up_limit


def _sign_up_total_limit() -> str:
    return settings().sign_up_total_limit


def _mail_limit() -> str:
    return settings().mail_limit


def _everybody() -> str:
    return "everybody"


def _recipient() -> str:
    return "mail to " + key_of(request.form.get("email", ""))


def language() -> str:
    """Return the language of this page, for the mail that follows from it."""
    return str(get_locale())


# Signing up, where the operator lets anybody in


@access.route("/sign-up", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(_sign_up_total_limit, methods=["POST"], key_func=_everybody)
def sign_up() -> ResponseReturnValue:
    """Begin an account: by a mail that confirms the address first, or at once where no mail is sent."""
    if settings().sign_up != "open":
        return redirect(url_for("worker.join"), 303)
    if settings().sends_mail:
        return _sign_up_by_mail()
    user_name, email = request.form.get("user_name", "").strip(), request.form.get("email", "").strip()
    found: dict[str, str] = {}
    if request.method == "POST":
        try:
            account = marketplace().sign_up(
                user_name, request.form.get("password", ""), email=email or None, language=None
            )
        except refusals.SiteError as refusal:
            found[_field_of(refusal)] = refusal.message
        else:
            sessions.sign_in_worker(account)
            flash(gettext("Your account is ready. You are signed in."), "success")
            return redirect(url_for("worker.hits"), 303)
    return _page("sign_up.html", found, user_name=user_name, email=email)


def _sign_up_by_mail() -> ResponseReturnValue:
    email, found = request.form.get("email", "").strip(), {}
    if request.method == "POST":
        try:
            marketplace().ask_to_sign_up(email, language=language())
        except refusals.AddressUnfit as refusal:
            found["email"] = refusal.message
        else:
            return _sent(gettext("Read your mail"), email)
    return _page("sign_up_by_mail.html", found, email=email)


@access.route("/sign-up/finish", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
def finish_sign_up() -> ResponseReturnValue:
    """Choose a user name and a password for the e-mail address that the link was sent to."""
    if settings().sign_up != "open":
        abort(404)
    token = request.values.get("token", "")
    email = marketplace().sign_up_address(token)
    user_name, found = request.form.get("user_name", "").strip(), {}
    if request.method == "POST":
        try:
            account = marketplace().sign_up_by_link(token, user_name, request.form.get("password", ""))
        except refusals.LinkUnfit:
            raise
        except refusals.SiteError as refusal:
            found[_field_of(refusal)] = refusal.message
        else:
            sessions.sign_in_worker(account)
            flash(gettext("Your account is ready. You are signed in."), "success")
            return redirect(url_for("worker.hits"), 303)
    return _page("sign_up_finish.html", found, token=token, email=email, user_name=user_name)


# Forgotten passwords, of workers and of requesters


@access.route("/password/forgotten", methods=["GET", "POST"])
@access.route("/requester/password/forgotten", methods=["GET", "POST"], endpoint="requester_forgotten")
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(_mail_limit, methods=["POST"], key_func=_recipient)
def forgotten() -> ResponseReturnValue:
    """Send a link for a new password; the answer is the same for every address."""
    email, found = request.form.get("email", "").strip(), {}
    if request.method == "POST" and settings().sends_mail:
        try:
            marketplace().ask_for_reset(email, requester=_in_console(), language=language())
        except refusals.AddressUnfit as refusal:
            found["email"] = refusal.message
        else:
            return _sent(gettext("Read your mail"), email)
    return _page("password_forgotten.html", found, email=email, sends_mail=settings().sends_mail)


@access.route("/password/new", methods=["GET", "POST"])
@access.route("/requester/password/new", methods=["GET", "POST"], endpoint="requester_new_password")
@limiter.limit(_sign_up_limit, methods=["POST"])
def new_password() -> ResponseReturnValue:
    """Set a new password by the link out of a mail."""
    token, found = request.values.get("token", ""), {}
    name = marketplace().reset_name(token, requester=_in_console())
    if request.method == "POST":
        try:
            marketplace().reset_password(token, request.form.get("password", ""), requester=_in_console())
        except refusals.PasswordUnfit as refusal:
            found["password"] = refusal.message
        else:
            sessions.sign_out()
            flash(gettext("Your new password is set. Sign in with it."), "success")
            return redirect(url_for("requester.sign_in" if _in_console() else "worker.sign_in"), 303)
    return _page("password_new.html", found, token=token, name=name)


# What somebody who is signed in can change


@access.route("/profile/password", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=sessions.account_key)
@sessions.for_workers
def change_password() -> ResponseReturnValue:
    """Set a new password by the old one; every other session ends."""
    return _password_change(
        lambda old, new: sessions.sign_in_worker(marketplace().change_worker_password(_me(), old, new)),
        back=url_for("worker.profile"),
    )


@access.route("/requester/password/change", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=sessions.account_key)
@sessions.for_requesters
def change_requester_password() -> ResponseReturnValue:
    """Do the same in the requester console."""
    requester_id = cast(str, session["requester_id"])
    return _password_change(
        lambda old, new: sessions.sign_in_requester(marketplace().change_requester_password(requester_id, old, new)),
        back=url_for("requester.account"),
    )


def _password_change(change_and_sign_in: Callable[[str, str], None], *, back: str) -> ResponseReturnValue:
    found: dict[str, str] = {}
    if request.method == "POST":
        try:
            change_and_sign_in(request.form.get("old", ""), request.form.get("password", ""))
        except (refusals.PasswordWrong, refusals.PasswordUnfit) as refusal:
            found[_field_of(refusal)] = refusal.message
        else:
            flash(gettext("Your password is changed. Everywhere else you are signed out."), "success")
            return redirect(back, 303)
    return _page("password_change.html", found, back=back)


@access.route("/profile/address", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(_mail_limit, methods=["POST"], key_func=_recipient)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=sessions.account_key)
@sessions.for_workers
def change_address() -> ResponseReturnValue:
    """Change the worker's e-mail address; where mail is sent, the new one counts once it is confirmed."""
    return _address_change(
        marketplace().worker(_me()).email,
        lambda old, email: marketplace().change_address(_me(), old, email or None, language=language()),
        back=url_for("worker.profile"),
    )


@access.route("/requester/address/change", methods=["GET", "POST"])
@limiter.limit(_sign_up_limit, methods=["POST"])
@limiter.limit(_mail_limit, methods=["POST"], key_func=_recipient)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=sessions.account_key)
@sessions.for_requesters
def change_requester_address() -> ResponseReturnValue:
    """Change the address that a requester signs in with, in the same way."""
    requester_id = cast(str, session["requester_id"])
    return _address_change(
        marketplace().requester(requester_id).email,
        lambda old, email: marketplace().change_requester_address(requester_id, old, email, language=language()),
        back=url_for("requester.account"),
    )


def _address_change(present: str | None, change: Callable[[str, str], bool], *, back: str) -> ResponseReturnValue:
    found: dict[str, str] = {}
    email = request.form.get("email", present or "").strip()
    if request.method == "POST":
        try:
            is_to_confirm = change(request.form.get("old", ""), email)
        except (refusals.PasswordWrong, refusals.AddressUnfit, refusals.AddressTaken) as refusal:
            found[_field_of(refusal)] = refusal.message
        else:
            if is_to_confirm:
                return _sent(gettext("Read your mail"), email)
            flash(
                gettext("Your e-mail address is stored.") if email else gettext("You have no e-mail address here now.")
            )
            return redirect(back, 303)
    return _page("address_change.html", found, email=email, back=back, sends_mail=settings().sends_mail)


@access.route("/address/confirm", methods=["GET", "POST"])
@access.route("/requester/address/confirm", methods=["GET", "POST"], endpoint="confirm_requester_address")
@limiter.limit(_sign_up_limit, methods=["POST"])
def confirm_address() -> ResponseReturnValue:
    """Confirm an address; programs that open the links of mails do not press the button."""
    token = request.values.get("token", "")
    if request.method == "POST":
        email = marketplace().confirm_address(token, requester=_in_console())
        flash(gettext("%(email)s is your e-mail address here now.", email=email), "success")
        if _in_console():
            return redirect(url_for("requester.account" if sessions.requester_id() else "requester.sign_in"), 303)
        return redirect(url_for("worker.profile" if sessions.worker_id() else "worker.sign_in"), 303)
    email = marketplace().address_to_confirm(token, requester=_in_console())
    return _page("address_confirm.html", {}, token=token, email=email)


@access.post("/profile/language")
@sessions.for_workers
def change_language() -> ResponseReturnValue:
    """Choose the language of the pages; nothing chosen leaves it to the browser."""
    wanted = request.form.get("language", "")
    known = current_app.config["MARKETPLACE_LANGUAGES"]
    marketplace().set_language(_me(), wanted if wanted in known else None)
    return redirect(url_for("worker.profile"), 303)


def _me() -> str:
    return cast(str, session["worker_id"])


def _in_console() -> bool:
    return request.path.startswith(sessions.CONSOLE_PATH + "/")


def _field_of(refusal: refusals.SiteError) -> str:
    """Return the field that a refusal is about."""
    match refusal:
        case refusals.UserNameTaken() | refusals.UserNameUnfit():
            return "user_name"
        case refusals.AddressUnfit() | refusals.AddressTaken():
            return "email"
        case refusals.PasswordWrong():
            return "old"
        case refusals.PasswordUnfit():
            return "password"
    raise refusal


def _page(template: str, found: dict[str, str], **values: object) -> ResponseReturnValue:
    content = render_template(
        f"marketplace/{template}",
        errors=found,
        console=_in_console(),
        least=passwords.LEAST_LENGTH,
        most=passwords.MOST_LENGTH,
        longest_address=LONGEST_ADDRESS,
        **values,
    )
    return content, 422 if found else 200


def _sent(title: str, email: str) -> ResponseReturnValue:
    return _page("mail_sent.html", {}, title=title, email=email)
