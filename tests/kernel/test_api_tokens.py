"""Tokens are made with secrets that nothing keeps, in the database of the kernel's state."""

from __future__ import annotations

import logging

import pytest

from lamina.domain.api_token import TokenScope, token_digest
from lamina.errors import InvalidInput
from lamina.kernel.api_tokens import issue_token
from lamina.kernel.stores import server_store_of
from lamina.kernel.tenants import TenantKernels
from lamina.settings import define_config
from lamina.testing.server_contract.material import NOW, at

READ = {TokenScope.READ}


async def test_a_token_that_was_issued_elsewhere_is_found_by_the_server_of_the_same_settings(tmp_path, clock):
    config = define_config(data_dir=tmp_path, memory={"embedding": "none"})
    async with TenantKernels(config, clock=clock) as kernels:
        async with server_store_of(config) as store:
            token, secret = await issue_token(store, tenant="acme", scopes=READ, now=NOW, owner="mira", label="laptop")
        assert await kernels.server.find_token(token_digest(secret)) == token
        assert (token.tenant, token.owner, token.scopes, token.label) == ("acme", "mira", READ, "laptop")
        assert await kernels.tenants() == ["acme"]
    assert [each.name for each in tmp_path.iterdir()] == ["lamina.db"]


async def test_secrets_are_256_random_bits_and_are_neither_kept_nor_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    config = define_config(data_dir=tmp_path)
    async with server_store_of(config) as store:
        made = [await issue_token(store, tenant="acme", scopes=READ, now=NOW) for _ in range(20)]
    assert len({secret for _, secret in made}) == 20
    for token, secret in made:
        assert len(secret.removeprefix("lamina_")) == 43  # 32 bytes in base64
        assert secret not in repr(token)
        assert secret not in caplog.text
        assert secret.encode() not in (tmp_path / "lamina.db").read_bytes()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"tenant": "lamina:meta"}, "tenant"),
        ({"tenant": " "}, "tenant"),
        ({"scopes": set()}, "scopes"),
        ({"expires_at": at(-1)}, "expires_at"),
    ],
)
async def test_what_no_token_can_be_is_refused_and_nothing_is_kept(wrong, field):
    async with server_store_of(define_config()) as store:
        with pytest.raises(InvalidInput, match=field):
            await issue_token(store, **{"tenant": "acme", "scopes": READ, "now": NOW, **wrong})
        assert await store.list_tokens() == []


async def test_the_server_store_is_where_the_state_is(tmp_path, clock):
    apart = tmp_path / "apart.db"
    config = define_config(data_dir=tmp_path, state_url=f"sqlite:///{apart}", memory={"embedding": "none"})
    async with TenantKernels(config, clock=clock) as kernels:
        await kernels.of("acme")
        async with server_store_of(define_config(data_dir=tmp_path / "other", state_url=config.state_url)) as store:
            assert await store.tenants() == ["acme"]


async def test_tenants_share_one_postgres_with_its_server_store(postgres_url, postgres_schema, clock):
    memory = {"url": postgres_url, "embedding": "none", "options": {"schema": postgres_schema, "connections": 3}}
    config = define_config(memory=memory)
    async with TenantKernels(config, clock=clock, max_open=2) as kernels, TenantKernels(config, clock=clock) as others:
        for tenant in ("a", "a_", "a%", "A"):
            async with kernels.using(tenant) as kernel:
                await kernel.memory_engine.store(f"of {tenant}", layer="organizational")
                await kernel.conversation.create("diary")
        assert await others.tenants() == ["A", "a", "a%", "a_"]
        for tenant in await others.tenants():
            kernel = await others.of(tenant)
            assert [each.content for each in await kernel.memory_engine.query()] == [f"of {tenant}"]
            assert [each.id for each in await kernel.conversation.list_threads()] == ["diary"]
        _, secret = await issue_token(kernels.server, tenant="a", scopes=READ, now=NOW)
        assert await others.server.find_token(token_digest(secret)) is not None
