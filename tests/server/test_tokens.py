"""Who is let in, as whom, and for how long."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from fastapi import APIRouter, Depends
from hypothesis import given
from hypothesis import strategies as st
from served import app_of, client_of

from lamina.domain.text import check_name
from lamina.errors import AdapterUnavailable, ConfigError, InvalidInput
from lamina.kernel.api_tokens import issue_token
from lamina.server.authentication import authenticated
from lamina.server.jwt_tokens import JwtTokens
from lamina.server.principal import Access, Principal
from lamina.server.stored_tokens import StoredTokens
from lamina.settings import JwtConfig
from lamina.state.sqlite import SqliteServerStore

ISSUER, AUDIENCE = "https://issuer.example", "lamina"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
router = APIRouter(prefix="/v1/me")


@router.get("")
async def me(principal: Annotated[Principal, Depends(authenticated)]) -> dict[str, str | None]:
    return {"tenant": principal.tenant, "owner": principal.owner, "id": principal.id}


class Clock:
    """The present, moved by hand."""

    def __init__(self):
        self.now = datetime.now(UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def store(tmp_path):
    async with SqliteServerStore(tmp_path / "lamina.db") as opened:
        yield opened


async def make(store, clock, **options):
    given = {"tenant": "acme", "scopes": (Access.READ,), "now": clock.now, **options}
    return await issue_token(store, **given)


async def test_a_stored_token_stands_for_its_tenant_owner_and_scopes(store, clock):
    token, secret = await make(store, clock, owner="mira", scopes=(Access.READ, Access.WRITE))
    principal = await StoredTokens(store, clock=clock)(secret)
    assert (principal.tenant, principal.owner, principal.id) == ("acme", "mira", token.id)
    assert principal.access == {Access.READ, Access.WRITE}


@pytest.mark.parametrize("secret", ["", "x", "tok\u00e9", "\udcff", "a" * 100_000, "'; drop table tokens; --"])
async def test_what_was_never_a_token_is_none(store, clock, secret):
    await make(store, clock)
    assert await StoredTokens(store, clock=clock)(secret) is None


async def test_an_expired_token_ends_at_once_though_it_is_remembered(store, clock):
    _, secret = await make(store, clock, expires_at=clock.now + timedelta(hours=1))
    tokens = StoredTokens(store, clock=clock, remembered=3600)
    assert await tokens(secret) is not None
    clock.now += timedelta(hours=1)
    assert await tokens(secret) is None


async def test_a_revoked_token_ends_when_it_is_looked_up_again(store, clock):
    token, secret = await make(store, clock)
    remembering, forgetting = StoredTokens(store, clock=clock, remembered=3600), StoredTokens(store, remembered=0)
    assert await remembering(secret) is not None
    await store.revoke_token(token.id, now=clock.now)
    assert await remembering(secret) is not None
    assert await forgetting(secret) is None


async def test_the_use_of_a_token_is_noted_to_the_minute(store, clock):
    token, secret = await make(store, clock)
    tokens = StoredTokens(store, clock=clock, remembered=0)
    first = clock.now
    await tokens(secret)
    clock.now += timedelta(seconds=59)
    await tokens(secret)
    assert (await store.find_token(token.digest)).last_used_at == first
    clock.now += timedelta(seconds=1)
    await tokens(secret)
    assert (await store.find_token(token.digest)).last_used_at == clock.now


async def test_a_store_that_cannot_be_reached_is_503_and_not_401():
    async def fails(token):
        raise AdapterUnavailable("sqlite", "is locked")

    async with client_of(app_of(router, auth=fails)) as http:
        assert (await http.get("/v1/me")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    "values", [["Bearer a", "Bearer a"], ["Basic YTpi"], ["Bearer"], ["Bearer "], ["a"], ["Bearer " + "a" * 20_000]]
)
async def test_headers_that_are_no_one_bearer_token_are_401(values):
    async with client_of(app_of(router, auth={"a"}), token=None) as http:
        answer = await http.get("/v1/me", headers=[("Authorization", each) for each in values])
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')


# Signed tokens


def key_set(*keys):
    made = []
    for kid, key in keys:
        kind = (
            jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
        )
        name = "ES256" if kind is jwt.algorithms.ECAlgorithm else "RS256"
        made.append({**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "use": "sig", "alg": name})
    return json.dumps({"keys": made})


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "keys.json"
    file.write_text(key_set(("one", KEY), ("curve", CURVE)), encoding="utf-8")
    return JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_file=file, leeway=0)


def claims(**changes):
    now = datetime.now(UTC)
    made = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now + timedelta(minutes=5),
        "sub": "mira",
        "org_id": "acme",
        "project_id": "web",
        "scope": "read write",
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


def signed(key=KEY, algorithm="RS256", kid="one", **changes):
    return jwt.encode(claims(**changes), key, algorithm, headers={"kid": kid})


async def test_a_signed_token_stands_for_what_its_claims_say(config):
    principal = await JwtTokens(config)(signed())
    assert (principal.tenant, principal.owner) == ("acme/web", "mira")
    assert principal.access == {Access.READ, Access.WRITE}
    by_curve = await JwtTokens(config)(signed(CURVE, "ES256", "curve"))
    assert by_curve.id == principal.id


def public_pem():
    return KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def by_public_key():
    """HS256 with the public key as the secret: PyJWT refuses to make it, so it is made by hand."""
    import base64
    import hashlib
    import hmac

    def part(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    made = {**claims(), "exp": int(claims()["exp"].timestamp())}
    head = (
        part(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode()) + b"." + part(json.dumps(made).encode())
    )
    return (head + b"." + part(hmac.new(public_pem(), head, hashlib.sha256).digest())).decode()


HOUR = timedelta(hours=1)
REFUSED = {
    "unsigned": lambda: jwt.encode(claims(), None, "none", headers={"kid": "one"}),
    "signed by the public key as a secret": by_public_key,
    "of another audience": lambda: signed(aud="other"),
    "of no audience": lambda: signed(aud=None),
    "of another issuer": lambda: signed(iss="https://evil.example"),
    "of no issuer": lambda: signed(iss=None),
    "expired": lambda: signed(exp=datetime.now(UTC) - HOUR),
    "without an end": lambda: signed(exp=None),
    "not valid yet": lambda: signed(nbf=datetime.now(UTC) + HOUR),
    "of an unknown key": lambda: signed(kid="two"),
    "by another key": lambda: signed(OTHER),
    "by another algorithm of the key": lambda: signed(algorithm="RS512"),
    "of no organisation": lambda: signed(org_id=None),
    "of an organisation that is no name": lambda: signed(org_id=" "),
    "of an organisation that is no text": lambda: signed(org_id=5),
    "of a project that is no text": lambda: signed(project_id=["web"]),
    "of no owner": lambda: signed(sub=None),
    "cut off": lambda: signed()[:-4],
    "with changed claims": lambda: ".".join(
        (signed().split(".")[0], signed(sub="eve").split(".")[1], signed().split(".")[2])
    ),
    "no token": lambda: "..",
    "no text of ASCII": lambda: "\u00e9.\u00e9.\u00e9",
}


@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED.keys())
async def test_a_signed_token_is_refused_that_is(config, token):
    assert await JwtTokens(config)(token()) is None


async def test_without_an_owner_claim_the_token_is_bound_to_no_owner(config):
    unbound = JwtTokens(config.model_copy(update={"owner_claim": ""}))
    assert (await unbound(signed())).owner is None


async def test_scopes_may_be_a_list_and_have_a_prefix_and_others_count_for_nothing(config):
    tokens = JwtTokens(config.model_copy(update={"scope_prefix": "lamina:"}))
    assert (await tokens(signed(scope=["lamina:read", "admin", "lamina:other"]))).access == {Access.READ}
    assert (await tokens(signed(scope=None))).access == set()


@pytest.mark.parametrize("algorithms", [["HS256"], ["none"], ["RS256", "HS512"], []])
def test_algorithms_whose_key_also_signs_cannot_be_allowed(tmp_path, algorithms):
    with pytest.raises(ConfigError, match="algorithms"):
        JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_file=tmp_path / "x", algorithms=algorithms)


@pytest.mark.parametrize(
    "url", ["http://keys.example/jwks", "FILE:/etc/keys", "ftp://keys.example", "https://", "keys"]
)
def test_keys_are_fetched_over_https_alone(url):
    with pytest.raises(ConfigError, match="jwks_url"):
        JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url=url)


class Keys:
    """A server of a key set, which counts and may fail."""

    def __init__(self):
        self.asked = 0
        self.body = key_set(("one", KEY))
        self.status = 200

    async def __call__(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + self.body).encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def keys():
    served = Keys()
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks.json"
    async with server:
        yield served


async def test_keys_are_fetched_once_however_many_ask(keys):
    tokens = JwtTokens(JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url=keys.url))
    found = await asyncio.gather(*(tokens(signed()) for _ in range(5)))
    assert all(found)
    assert [await tokens(signed(kid=f"made up {n}")) for n in range(5)] == [None] * 5
    assert keys.asked == 1


async def test_keys_that_cannot_be_fetched_are_503_and_not_401(keys):
    keys.status = 500
    tokens = JwtTokens(JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url=keys.url))
    async with client_of(app_of(router, auth=tokens), token=signed()) as http:
        answer = await http.get("/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (503, "keys_unavailable")


# Tenants

NAMES = st.text(min_size=1, max_size=5)


@given(NAMES, NAMES | st.none(), NAMES, NAMES | st.none())
def test_no_two_organisations_and_projects_are_one_tenant(organization, project, other, other_project):
    try:
        tenants = Principal.of(organization, project).tenant, Principal.of(other, other_project).tenant
    except InvalidInput:
        return
    assert (tenants[0] == tenants[1]) == ((organization, project) == (other, other_project))
    assert check_name("tenant", tenants[0])


def test_organisation_and_project_are_escaped_and_names_are_checked():
    assert Principal.of("a/b", "c%").tenant == "a%2Fb/c%25"
    assert Principal.of("a", "b/c").tenant != Principal.of("a/b", "c").tenant
    for given_names in (
        ("", "a"),
        ("a", ""),
        ("a\0", None),
        ("a" * 513, None),
        ("a" * 300, "b" * 300),
        ("a", "b", " "),
    ):
        with pytest.raises(InvalidInput):
            Principal.of(*given_names)


@pytest.mark.parametrize("names", [{"owner": ""}, {"owner": " "}, {"tenant": ""}, {"tenant": "a\0"}], ids=str)
def test_a_blank_owner_is_not_everybody_and_a_blank_tenant_is_none(names):
    with pytest.raises(InvalidInput, match=next(iter(names))):
        Principal(**names)


@pytest.mark.parametrize(
    ("asked", "status", "tenant"),
    [(None, 200, "acme/web"), ("web", 200, "acme/web"), ("app", 200, "acme/app"), ("evil", 403, None), ("", 403, None)],
)
async def test_a_project_is_chosen_only_where_the_token_may(asked, status, tenant):
    def auth(token):
        return Principal.of("acme", "web", "mira", projects=["app"])

    headers = {} if asked is None else {"X-Project-ID": asked}
    async with client_of(app_of(router, auth=auth)) as http:
        answer = await http.get("/v1/me", headers=headers)
    assert answer.status_code == status
    assert answer.json().get("tenant") == tenant


async def test_a_plain_token_chooses_no_project():
    async with client_of(app_of(router, auth={"the-token"})) as http:
        assert (await http.get("/v1/me", headers={"X-Project-ID": "web"})).status_code == 403
