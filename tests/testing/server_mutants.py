"""Server stores with one bug each, and tests of the contract that catch it."""

from dataclasses import replace
from typing import ClassVar

from lamina.domain.api_token import token_digest
from lamina.domain.idempotency import Beginning, KeptResponse, RequestState
from lamina.state.sqlite import SqliteServerStore

__all__ = ["MUTANTS", "Mutant"]


class Mutant(SqliteServerStore):
    """A server store with a bug; `caught_by` names tests of the contract that fail on it, one a word."""

    caught_by: ClassVar[str]

    async def run(self, statement, *parameters):
        """Look at what is kept, or change it, past the store."""
        return await self._write(lambda connection: connection.execute(statement, parameters).fetchall())


class ForgetsTheOwner(Mutant):
    caught_by = "test_every_field_of_a_token_comes_back"

    async def add_token(self, token):
        await super().add_token(token.replace(owner=None))


class HidesRevokedTokens(Mutant):
    caught_by = "test_every_field_of_a_token_comes_back test_a_token_is_revoked_once_and_for_good"

    async def find_token(self, digest):
        found = await super().find_token(digest)
        return None if found is None or found.revoked_at is not None else found


class FindsByTheBeginningOfADigest(Mutant):
    caught_by = "test_a_token_is_found_by_its_whole_digest_and_by_nothing_else"

    async def find_token(self, digest):
        if not isinstance(digest, str):
            return await super().find_token(digest)
        kept = await self.list_tokens(limit=10**6)
        return next((each for each in kept if each.digest.startswith(digest)), None)


class ReplacesATokenOfTheSameId(Mutant):
    caught_by = "test_an_id_and_a_digest_are_taken_once"

    async def add_token(self, token):
        await self.run("DELETE FROM lamina_server_tokens WHERE id = ?", token.id)
        await super().add_token(token)


class ListsTenantsByPattern(Mutant):
    caught_by = "test_tokens_of_look_alike_tenants_are_kept_apart"

    async def list_tokens(self, tenant=None, *, limit=100, offset=0):
        if tenant is None:
            return await super().list_tokens(limit=limit, offset=offset)
        ids = {id for (id,) in await self.run("SELECT id FROM lamina_server_tokens WHERE tenant LIKE ?", tenant)}
        return [each for each in await super().list_tokens(limit=10**6) if each.id in ids][offset : offset + limit]


class RevokesTokensOfAnyTenant(Mutant):
    caught_by = "test_another_tenants_token_is_not_there_to_be_revoked"

    async def revoke_token(self, id, *, now, tenant=None):
        return await super().revoke_token(id, now=now)


class RevokesAgain(Mutant):
    caught_by = "test_a_token_is_revoked_once_and_for_good"

    async def revoke_token(self, id, *, now, tenant=None):
        await self.run("UPDATE lamina_server_tokens SET revoked_at = NULL WHERE id = ?", id)
        return await super().revoke_token(id, now=now, tenant=tenant)


class NotesEveryUse(Mutant):
    caught_by = "test_a_use_is_noted_at_most_once_a_minute_and_never_goes_back"

    async def note_use(self, id, *, now):
        await self.run("UPDATE lamina_server_tokens SET last_used_at = NULL WHERE id = ?", id)
        return await super().note_use(id, now=now)


class BeginsInTwoSteps(Mutant):
    caught_by = "test_of_many_who_begin_one_request_one_does"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        place = (tenant, caller, key)
        if await self.run("SELECT 1 FROM lamina_server_requests WHERE (tenant, caller, key) = (?, ?, ?)", *place):
            return await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)
        insert = (
            "INSERT OR REPLACE INTO lamina_server_requests "
            "(tenant, caller, key, fingerprint, claim, begun_at, lease_until) VALUES (?, ?, ?, ?, 'mine', ?, ?)"
        )
        await self.run(insert, *place, fingerprint, _micros(now), _micros(lease_until))
        return Beginning(RequestState.NEW, "mine")


class SharesKeysAmongCallers(Mutant):
    caught_by = "test_keys_of_look_alike_tenants_callers_and_names_are_kept_apart"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        return await super().begin(tenant, "any", key, fingerprint, now=now, lease_until=lease_until)

    async def finish(self, tenant, caller, key, claim, *, response):
        return await super().finish(tenant, "any", key, claim, response=response)


class IgnoresTheFingerprint(Mutant):
    caught_by = "test_another_request_under_the_same_key_is_told_apart"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        return await super().begin(tenant, caller, key, "any", now=now, lease_until=lease_until)


class TakesOverAnotherRequest(Mutant):
    caught_by = "test_another_request_under_the_same_key_is_told_apart"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        begun = await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)
        if begun.state is not RequestState.MISMATCH:
            return begun
        await self.run("DELETE FROM lamina_server_requests WHERE status IS NULL AND lease_until <= ?", _micros(now))
        return await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)


class NeverTakesOver(Mutant):
    caught_by = "test_one_whose_lease_ran_out_is_taken_over_and_the_former_claim_is_void"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        await self.run("UPDATE lamina_server_requests SET lease_until = ?", _micros(lease_until) + 10**12)
        return await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)


class LetsTheFormerClaimFinish(Mutant):
    caught_by = "test_one_whose_lease_ran_out_is_taken_over_and_the_former_claim_is_void"

    async def finish(self, tenant, caller, key, claim, *, response):
        kept = await self.run("SELECT claim FROM lamina_server_requests WHERE key = ? AND status IS NULL", key)
        return await super().finish(tenant, caller, key, kept[0][0] if kept else claim, response=response)


class CountsClaims(Mutant):
    """Claims that begin again at one after a request was abandoned."""

    caught_by = "test_a_claim_is_void_after_its_request_was_abandoned_and_begun_anew"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        former = await self.run("SELECT claim FROM lamina_server_requests WHERE key = ?", key)
        begun = await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)
        if begun.claim is None:
            return begun
        claim = str(int(former[0][0]) + 1 if former else 1)
        await self.run("UPDATE lamina_server_requests SET claim = ? WHERE claim = ?", claim, begun.claim)
        return replace(begun, claim=claim)


class AbandonsWhatIsFinished(Mutant):
    caught_by = "test_an_answer_is_kept_once_and_is_not_taken_back"

    async def abandon(self, tenant, caller, key, claim):
        removal = "DELETE FROM lamina_server_requests WHERE (key, claim) = (?, ?) RETURNING 1"
        return bool(await self.run(removal, key, claim))


class KeepsTextualBodies(Mutant):
    caught_by = "test_every_field_of_an_answer_comes_back test_a_request_is_new_then_in_progress_then_finished"

    async def finish(self, tenant, caller, key, claim, *, response):
        if isinstance(response, KeptResponse) and isinstance(response.body, bytes):
            response = replace(response, body=response.body.decode("utf-8", "replace").encode())
        return await super().finish(tenant, caller, key, claim, response=response)


class ForgetsRepeatedHeaders(Mutant):
    caught_by = "test_every_field_of_an_answer_comes_back"

    async def begin(self, tenant, caller, key, fingerprint, *, now, lease_until):
        begun = await super().begin(tenant, caller, key, fingerprint, now=now, lease_until=lease_until)
        if begun.response is None:
            return begun
        headers = tuple(dict(begun.response.headers).items())
        return Beginning(begun.state, response=replace(begun.response, headers=headers))


class PurgesWhatIsInProgress(Mutant):
    caught_by = "test_purging_forgets_what_is_old_and_never_what_is_in_progress"

    async def purge(self, before):
        removal = "DELETE FROM lamina_server_requests WHERE begun_at < ? RETURNING 1"
        return len(await self.run(removal, _micros(before)))


class RefusesTheHolder(Mutant):
    caught_by = "test_its_holder_may_have_it_longer_or_shorter"

    async def acquire_lease(self, name, holder, *, now, until):
        held = await self.run("SELECT until FROM lamina_server_leases WHERE name = ?", name)
        if held and held[0][0] > _micros(now):
            return False
        return await super().acquire_lease(name, holder, now=now, until=until)


class RefusesAtTheVeryEnd(Mutant):
    caught_by = "test_a_lease_has_one_holder_until_it_runs_out"

    async def acquire_lease(self, name, holder, *, now, until):
        held = await self.run("SELECT until, holder FROM lamina_server_leases WHERE name = ?", name)
        if held and held[0][0] == _micros(now) and held[0][1] != holder:
            return False
        return await super().acquire_lease(name, holder, now=now, until=until)


class ReleasesForAnybody(Mutant):
    caught_by = "test_a_lease_is_given_back_by_its_holder_alone"

    async def release_lease(self, name, holder):
        return bool(await self.run("DELETE FROM lamina_server_leases WHERE name = ? RETURNING 1", name))


class ForgetsOnlyTokens(Mutant):
    caught_by = "test_a_tenant_that_is_forgotten_leaves_nothing_behind_and_others_stay"

    async def forget_tenant(self, tenant):
        return bool(await self.run("DELETE FROM lamina_server_tokens WHERE tenant = ? RETURNING 1", tenant))


class ForgetsWhatIsInProgress(Mutant):
    caught_by = "test_an_owner_that_is_forgotten_loses_the_tokens_and_the_tenant_its_kept_answers"

    async def forget_owner(self, tenant, owner):
        tokens, answers = await super().forget_owner(tenant, owner)
        await self.run("DELETE FROM lamina_server_requests WHERE tenant = ?", tenant)
        return tokens, answers


class LeavesOutTenantsOfTokens(Mutant):
    caught_by = "test_tenants_are_those_noted_and_those_of_tokens_in_order"

    async def tenants(self):
        return [name for (name,) in await self.run("SELECT name FROM lamina_server_tenants ORDER BY name")]


class KeepsTheSecret(Mutant):
    """Takes what is no digest, such as the secret itself."""

    caught_by = "test_a_token_that_cannot_be_is_refused"

    async def add_token(self, token):
        await super().add_token(token.replace(digest=token_digest(token.digest)))


class PurgesTheLastTokenToo(Mutant):
    """So that the door opens again."""

    caught_by = "test_that_tokens_were_made_once_outlasts_every_purge"

    async def purge_tokens(self, before):
        statement = "DELETE FROM lamina_server_tokens WHERE ifnull(revoked_at, expires_at) < ? RETURNING 1"
        return len(await self.run(statement, _micros(before)))


class PurgesByExpiryAlone(Mutant):
    caught_by = "test_a_purge_takes_tokens_that_ran_out_before_and_no_other"

    async def purge_tokens(self, before):
        return len(await self.run("DELETE FROM lamina_server_tokens WHERE expires_at < ? RETURNING 1", _micros(before)))


class MeasuresPagesOfADefaultSize(Mutant):
    """And none of what they hold."""

    caught_by = "test_the_size_is_of_the_whole_database_and_grows_with_it"

    async def size_bytes(self):
        return 4096


def _micros(instant):
    from lamina.domain.instants import to_micros

    return to_micros(instant)


MUTANTS = Mutant.__subclasses__()
