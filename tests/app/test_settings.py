"""Settings that can't work stop the start with their name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hits.attempts import INTERRUPTED_AFTER
from tests.market import settings


@pytest.mark.parametrize("name", ["service_url", "marketplace_endpoint", "worker_site_url"])
@pytest.mark.parametrize(
    "value", ["garbage", "", "ftp://example.org", "https://", "http://[::1", "http://a:99999", "//a"]
)
def test_what_is_no_web_address_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError, match=name):
        settings(**{name: value})


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "https://hits.example.org", "http://[::1]:8000/"])
def test_a_web_address_is_kept_as_it_is(url: str) -> None:
    assert settings(service_url=url).service_url == url


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "abc", "10000.01"])
def test_a_validation_reward_that_no_hit_can_pay_is_refused(amount: str) -> None:
    with pytest.raises(ValidationError, match="validation_reward"):
        settings(validation_reward=amount)


def test_a_model_is_given_less_time_than_after_which_a_question_counts_as_interrupted() -> None:
    longest = INTERRUPTED_AFTER.total_seconds()

    assert settings(predict_seconds=longest - 5).predict_seconds < longest
    for seconds in (0, -1, longest):
        with pytest.raises(ValidationError, match="predict_seconds"):
            settings(predict_seconds=seconds)


def test_models_are_set_by_task_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAHIT_MODELS", '{"nli": "hub:owner/name@main"}')

    assert settings().models == {"nli": "hub:owner/name@main"}
    with pytest.raises(ValidationError, match="no model is named for qa; name one, such as embedded:qa"):
        settings(models={"qa": " "})


def test_the_model_setting_of_an_older_instance_does_not_stop_the_start() -> None:
    assert settings(model="embedded:sentiment").model is None
    with pytest.raises(ValidationError, match=r'Write DYNAHIT_MODELS=\{"TASK": "hub:some/model"\} instead'):
        settings(model="hub:some/model")


ALERTS = {"alert_mail": "kim@example.org, robin@example.org", "mail_from": "dynahit@example.org", "smtp_host": "mail"}


def test_alerts_by_mail_need_who_from_and_where_together() -> None:
    assert settings(**ALERTS).alert_mail == ALERTS["alert_mail"]
    assert settings(alert_mail="", smtp_host="", mail_from="").smtp_host is None
    with pytest.raises(ValidationError, match="set DYNAHIT_MAIL_FROM, DYNAHIT_SMTP_HOST too, or none"):
        settings(alert_mail="kim@example.org")
    with pytest.raises(ValidationError, match="'robin' is no e-mail address"):
        settings(**{**ALERTS, "alert_mail": "kim@example.org,robin"})


def test_a_password_for_mail_never_crosses_the_network_in_the_clear() -> None:
    sign_in = {"smtp_user": "dynahit", "smtp_password": "secret"}

    with pytest.raises(ValidationError, match="set DYNAHIT_SMTP_SECURITY to starttls or tls"):
        settings(**ALERTS, **sign_in)
    with pytest.raises(ValidationError, match="go together"):
        settings(**ALERTS, smtp_user="dynahit")
    assert settings(**ALERTS, **sign_in, smtp_security="tls").smtp_security == "tls"
    assert settings(**{**ALERTS, "smtp_host": "localhost"}, **sign_in).smtp_security == "none"
