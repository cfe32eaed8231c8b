"""The detector of secrets on made-up keys, and on text that only looks like some.

The keys are put together here, so that no scanner of the repository takes them for real ones.
"""

from __future__ import annotations

import pytest

from lamina.domain.secrets import find_secrets, masked

A20, A24, A36, A40 = ("k3Yq9ZtR2mWx8LpV5sNb7HcJ4dFg6TuQ1eAoXyBz"[:length] for length in (20, 24, 36, 40))
HEX32 = "9f86d081884c7d659a2feaa0c55ad015"
_LINE = "MIIEowIBAAKCAQEAy8Dbv8prpJ/0kKhlGeJYozo2t60EG8L0561g13R29LvMR5hy\n"
PEM = "-----BEGIN {0}-----\n" + _LINE * 3 + "-----END {0}-----"

SECRETS = [
    ("aws_access_key", "deploy with AKIA" + "QYLPMN5HHHFPZAM2"),
    ("aws_access_key", "the session is ASIA" + "Y34FZKBOKMUTVV7A now"),
    ("password", "aws_secret_access_key = " + A40),
    ("github_token", "use ghp_" + A36 + " to push"),
    ("github_token", "github_pat_" + A36[:22] + "_" + (A40 + A20)[:59]),
    ("gitlab_token", "CI: glpat-" + A20),
    ("slack_token", "xoxb-" + "123456789012-1234567890123-" + A24),
    ("webhook", "post to https://hooks.slack.com/services/" + "T01ABCDEF/B01ABCDEF/" + A24),
    ("stripe_key", "sk_live_" + A24),
    ("stripe_key", "whsec_" + A36),
    ("llm_api_key", "OPENAI is sk-proj-" + A40 + A36),
    ("llm_api_key", "sk-ant-api03-" + A40 + A40 + "-AA"),
    ("huggingface_token", "hf_" + A36[:34]),
    ("google_key", "maps: AIza" + A36[:35]),
    ("package_index_token", "npm_" + A36),
    ("package_index_token", "pypi-AgEIcHlwaS5vcmc" + A40 + A20),
    ("mail_service_key", "SG." + A24[:22] + "." + A40 + "abc"),
    ("telegram_token", "bot 123456789:AA" + A36[:33]),
    ("discord_token", "MT" + A24 + ".GabcdE." + A36),
    ("service_token", "hvs." + A24),
    ("service_token", "lamina_" + A40 + "abc"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + A40),
    ("private_key", PEM.format("RSA PRIVATE KEY")),
    ("private_key", PEM.format("OPENSSH PRIVATE KEY")),
    ("private_key", PEM.format("PRIVATE KEY").replace("\n", "\\n")),
    ("password_in_url", "postgresql://app:" + "s3cr3tW0rd@db.example.com/app"),
    ("password_in_url", "redis://:" + "hunter2@cache:6379/0"),
    ("bearer_token", "curl -H 'Authorization: Bearer " + A36 + "'"),
    ("otp_seed", "otpauth://totp/Shop:mira?secret=" + "JBSWY3DPEHPK3PXP&issuer=Shop"),
    ("signed_url", "https://b.example/f?X-Amz-Signature=" + HEX32 + HEX32),
    ("password", '{"user": "mira", "password": "' + 'hunter2"}'),
    ("password", "DB_PASSWORD=" + "c0rrect-horse"),
    ("password", "api_key: '" + A24 + "'"),
    ("password", "client-secret => " + A24),
    ("password", "The password for the router upstairs is " + "hunter2."),
    ("password", "Das Passwort ist: " + "Sonne!2024"),
    ("password", "Le mot de passe du coffre est " + "m3lon-vert"),
    ("password", "密码是" + "abc12345"),
    ("pin", "my PIN code is " + "4821"),
    ("card_number", "card 4111 1111 " + "1111 1111, exp 04/29"),
    ("card_number", "3782-822463-" + "10005"),
    ("card_number", "55555555" + "55554444"),
]

MISSED = [  # what no form and no name tells; said in the documents
    "correct horse battery staple is what opens the safe",
    A40,
    HEX32,
    "password = correcthorsebattery",
]

INNOCENT = [
    "Mira is allergic to kiwi and swims on Tuesdays at seven.",
    "6f0c1c1e-22aa-4b1e-9d7e-0a1b2c3d4e5f",
    "mem_018f3a5b9c1d7e2f8a4b6c0d1e2f3a4b and msg_9f86d081884c7d659a2feaa0c55ad015",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 2e8c777d659a2feaa0c55ad015a3bf4f1b2b0b82 mends it",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 mira@laptop",
    PEM.format("PUBLIC KEY"),
    PEM.format("CERTIFICATE"),
    "A file that begins with -----BEGIN PRIVATE KEY----- is refused.",
    "password = get_password()",
    "password: str = Field(min_length=8)",
    "token = request.headers.authorization",
    "api_key = os.environ['OPENAI_API_KEY']",
    "api_key=settings.api_key_v2",
    "API_KEY=${API_KEY}",
    "export TOKEN=<your-token-1>",
    "password: 'changeme123'",
    'client = OpenAI(api_key="your-key-0")',
    "secret: [secret: password]",
    "postgresql://user:password@localhost/db",
    "postgresql://app:${DB_PASSWORD}@db/app",
    "postgresql://app@db.example.com/app",
    "https://example.com/a:b?c=d@e",
    "Mail mira@example.com: https://example.com:8080/x",
    "The password is on a note at home.",
    "Her password was changed on 2026-03-01.",
    "The password is case-sensitive and the token is optional.",
    "Tomas forgot his password; reset it at https://example.com/reset1.",
    "A password has at least 12 characters, said the policy: see section 4.2.",
    "the key: value pairs of a dict",
    "The key is under the mat, token: none",
    "max_tokens: 12345678, prompt_tokens = 98765432",
    "tokens=12000000",
    "The secret of a good soup is time.",
    "She spins 1200 rpm; the spin is 1500.",
    "Order 4111111111111112 was sent.",
    "Parcel 12345678901234567890, phone +49 170 1234567, 555 123 4567",
    "IBAN DE89 3704 0044 0532 0130 00",
    "1764543599123 and 1764543599123456 are instants",
    "Twitter id 1453126789012345678",
    "3.14159265358979323846, 0.4111111111111111",
    "2026-11-30T22:19:53.123456+00:00",
    "192.168.178.10, fe80::1ff:fe23:4567:890a, 00:1a:2b:3c:4d:5e",
    "task-management-for-a-large-team-of-engineers-2026 is the branch",
    "risk-assessment, sk-learn and scikit-learn 1.7",
    "from lamina.domain.secrets import find_secrets  # noqa: F401",
    "def token_of(key: str) -> Token: return tokens[key]",
    "路線図は灯台の隣の壁に貼った。パスワードは忘れた。",
    "Пароль лежит дома.",
    "Basic knowledge of bearer bonds",
    "SELECT key, token FROM api_keys WHERE id = 42",
]


@pytest.mark.parametrize(("kind", "text"), SECRETS)
def test_a_key_of_a_known_form_and_a_named_password_are_found_and_masked_away(kind, text):
    spans = find_secrets(text)
    assert [span.kind for span in spans] == [kind]
    (span,) = spans
    secret = text[span.start : span.end]
    shown = masked(text, spans)
    assert secret not in shown
    assert f"[secret: {kind}]" in shown
    assert find_secrets(shown) == []  # the marker is stable: what is masked is not masked again


def test_nothing_innocent_is_taken_for_a_secret():
    assert len(INNOCENT) >= 40
    assert {text: find_secrets(text) for text in INNOCENT if find_secrets(text)} == {}


def test_what_the_documents_say_is_missed_is_missed():
    assert [text for text in MISSED if find_secrets(text)] == []


def test_secrets_among_other_text_are_found_where_they_stand_and_only_they_are_replaced():
    text = f"Ä {SECRETS[3][1]} und 4111 1111 1111 1111; dann {SECRETS[25][1]}!"
    spans = find_secrets(text)
    assert [span.kind for span in spans] == ["github_token", "card_number", "password_in_url"]
    assert masked(text, spans) == (
        "Ä use [secret: github_token] to push und [secret: card_number]; dann "
        "postgresql://app:[secret: password_in_url]@db.example.com/app!"
    )
