"""Who a request comes from, and what it may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from lamina.domain.api_token import TokenScope as Access
from lamina.domain.memory import DEFAULT_NAME
from lamina.domain.text import check_name

__all__ = ["ANYTHING", "Access", "Authenticate", "Principal"]

ANYTHING: Final = frozenset(Access)


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a token stands for. It is bound to a tenant, and where `owner` is given to that owner.

    `id` names the token in rate limits and idempotency keys, never the secret. `projects` are those of the
    `organization` that it may choose from by the header `X-Project-ID`, beside its own.

    Raises:
        InvalidInput: the tenant or the owner is blank or unclean: a blank owner is not everybody.
        InvalidType: one of them is no text.
    """

    tenant: str = DEFAULT_NAME
    owner: str | None = None
    access: frozenset[Access] = ANYTHING
    id: str = "anonymous"
    organization: str | None = None
    project: str | None = None
    projects: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        if self.owner is not None:
            check_name("owner", self.owner)

    @classmethod
    def of(
        cls,
        organization: str,
        project: str | None = None,
        subject: str | None = None,
        *,
        access: Iterable[Access] = ANYTHING,
        id: str = "anonymous",
        projects: Iterable[str] = (),
    ) -> Self:
        """The principal of an organisation's project, whose subject is the owner.

        The tenant is `organization/project`, or the organisation alone; `%` and `/` in either are escaped, so that no
        two pairs are one tenant.

        Raises:
            InvalidInput: a name is blank, unclean, or the two together have more than 512 characters.
            InvalidType: a name is no text.
        """
        if subject is not None:
            check_name("subject", subject)
        return cls(
            tenant=_tenant(organization, project),
            owner=subject,
            access=frozenset(access),
            id=id,
            organization=organization,
            project=project,
            projects=frozenset(projects),
        )

    def in_project(self, project: str) -> Self | None:
        """The same one in another project; None if it may not choose that."""
        if project == self.project:
            return self
        if self.organization is None or project not in self.projects:
            return None
        return replace(self, tenant=_tenant(self.organization, project), project=project)


def _tenant(organization: str, project: str | None) -> str:
    parts = [check_name("organization", organization)]
    if project is not None:
        parts.append(check_name("project", project))
    return "/".join(each.replace("%", "%25").replace("/", "%2F") for each in parts)


Authenticate: TypeAlias = Callable[[str], Awaitable[Principal | None] | Principal | None]
"""Tells whom a bearer token stands for; None refuses it. It may be called with any text."""
