"""Whom the limits per client address count for."""

from __future__ import annotations

import pytest
from flask import Flask

from app.marketplace.extensions import client_network


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unix", "unix"),
        (None, ""),
    ],
)
def test_a_network_of_ipv6_addresses_counts_as_one_client(address: str | None, counted: str) -> None:
    with Flask(__name__).test_request_context(environ_base={"REMOTE_ADDR": address}):
        assert client_network() == counted
