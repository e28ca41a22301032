"""The proxies of docs/marketplace.md, configured as it says: TLS, cookies, signatures, clients that dawdle."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from botocore.config import Config
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from app.marketplace.settings import Settings
from hits.marketplace.engine import open_marketplace
from tests.app.marketplace.conftest import PASSWORD, hit_params, question
from tests.app.marketplace.test_killed import kill, serve
from tests.launched import ROOT, free_ports

pytestmark = pytest.mark.slow

SECRET = "0123456789abcdef" * 2
#: More than the threads that the marketplace answers with.
SLOW_CLIENTS = 60


def written(language: str) -> str:
    """Return the page's block of one language."""
    page = (ROOT / "docs/marketplace.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(block)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost that signs itself, and return it with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "proxy.pem", folder / "proxy.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return paths


def nginx(folder: Path, port: int, backend: int) -> list[str]:
    server = (
        written("nginx")
        .replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
        .replace("work.example.org;", "localhost;")
        .replace("/etc/ssl/work.example.org", str(folder / "proxy"))
        .replace("127.0.0.1:8000", f"127.0.0.1:{backend}")
    )
    temporary = "".join(
        f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Started as root, nginx's workers would be somebody who may not write into the test's folder.
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\nevents {{}}\n"
        f"http {{\n{temporary}{server}}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def caddy(folder: Path, port: int, backend: int) -> list[str]:
    site = (
        written("caddyfile")
        .replace("work.example.org {", f"https://localhost:{port} {{\n    tls {folder}/proxy.pem {folder}/proxy.key")
        .replace("127.0.0.1:8000", f"127.0.0.1:{backend}")
    )
    (folder / "Caddyfile").write_text(
        f"{{\n    admin off\n    auto_https disable_redirects\n    storage file_system {folder}/caddy\n}}\n{site}"
    )
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@dataclass(frozen=True)
class Behind:
    """A marketplace behind a proxy: its public address, and what signs requests to it."""

    url: str
    port: int
    certificate: Path
    access_key_id: str
    secret: str
    invitation: str

    def mturk(self) -> Any:
        return boto3.client(
            "mturk",
            region_name="us-east-1",
            endpoint_url=self.url,
            verify=str(self.certificate),
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret,
            config=Config(retries={"total_max_attempts": 1}),
        )


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def behind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Behind]:
    command: Callable[[Path, int, int], list[str]] = request.param
    if not shutil.which(command.__name__):
        pytest.skip(f"{command.__name__} is not installed")
    port, backend = free_ports(2)
    public, _key = certificate(tmp_path)
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 'market.db'}",
        secret_key=SecretStr(SECRET),
        site_url=f"https://localhost:{port}",
        proxies=1,
    )
    environment = {
        "MARKETPLACE_DATABASE_URL": settings.database_url,
        "MARKETPLACE_SECRET_KEY": SECRET,
        "MARKETPLACE_SITE_URL": settings.site_url,
        "MARKETPLACE_PROXIES": "1",
    }
    engine = open_marketplace(settings.database_url, settings=settings.engine_settings())
    requester = engine.create_requester("Lab")
    engine.top_up(requester.requester_id, Decimal(100), "seed")
    key = engine.create_access_key(requester.requester_id)
    invitation = engine.create_invitation()
    engine.close()
    market = serve(backend, environment)
    proxy = subprocess.Popen(
        command(tmp_path, port, backend),
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, proxy)
        yield Behind(settings.site_url, port, public, key.access_key_id, key.secret, invitation)
    finally:
        proxy.terminate()
        proxy.wait(30)
        kill(market)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "the proxy did not start"
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the proxy did not answer")


def test_signed_calls_and_the_site_work_over_tls(behind: Behind) -> None:
    mturk = behind.mturk()
    hit_id = mturk.create_hit(**hit_params(Question=question("https://example.org/hit?a=1&b=2")))["HIT"]["HITId"]
    assert mturk.get_hit(HITId=hit_id)["HIT"]["HITStatus"] == "Assignable"
    browser = requests.Session()
    browser.trust_env = False  # or the environment's certificates would win
    browser.verify = str(behind.certificate)
    page = browser.get(f"{behind.url}/join?code={behind.invitation}", timeout=30)
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    assert token is not None

    answer = browser.post(
        f"{behind.url}/join",
        data={"csrf_token": token[1], "code": behind.invitation, "user_name": "ada", "password": PASSWORD},
        headers={"Referer": f"{behind.url}/join"},
        timeout=30,
    )

    assert answer.status_code == 200, answer.text
    assert answer.url.startswith(behind.url)
    assert browser.cookies
    assert all(cookie.secure for cookie in browser.cookies)
    assert browser.get(f"{behind.url}/hits/{hit_id}", timeout=30).status_code == 200


def test_a_body_over_the_limit_is_refused_and_a_large_one_is_not(behind: Behind) -> None:
    submit = f"{behind.url}/mturk/externalSubmit"

    def send(size: int) -> int:
        fields = {"assignmentId": "3NONE", "text": "x" * size}
        return requests.post(submit, data=fields, verify=str(behind.certificate), timeout=30).status_code

    assert send(200_000) == 404
    # Caddy may find the connection closed before it has passed all of it on.
    assert send(3_000_000) in {413, 502}


@contextmanager
def dawdling(behind: Behind, beginning: bytes) -> Iterator[None]:
    """Many clients who begin a request and never finish it."""
    context = ssl.create_default_context(cafile=str(behind.certificate))
    with ExitStack() as opened:
        for _ in range(SLOW_CLIENTS):
            plain = socket.create_connection(("127.0.0.1", behind.port), timeout=30)
            secured = opened.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
            secured.sendall(beginning)
        yield


@pytest.mark.parametrize(
    "beginning",
    [
        b"POST /mturk/externalSubmit HTTP/1.1\r\nHost: localhost\r\nContent-Le",
        b"POST /mturk/externalSubmit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 100000\r\n\r\nassignmentId=3",
    ],
    ids=["in the headers", "in the body"],
)
def test_clients_that_dawdle_keep_nobody_else_waiting(behind: Behind, beginning: bytes) -> None:
    with dawdling(behind, beginning):
        started = time.monotonic()
        for _ in range(5):
            assert behind.mturk().get_account_balance()["AvailableBalance"] == "100.00"
        took = time.monotonic() - started

    assert took < 30
