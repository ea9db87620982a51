"""What must hold of tenants' days, whatever went wrong: a part of the oracle of money."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from baton.core.money import micro_dollars
from baton.ports import Account
from baton.runtime.money.holds import PREFIX
from tests.kit.world import TENANT, World


def of_tenants_days(world: World, most: int) -> Iterator[str]:
    """A tenant's account is the sum of what its users have drawn, which covers what they have spent."""
    limit = micro_dollars([Decimal(world.limits.tenant_day_budget_usd)])
    accounts = [account for account in world.budgets.spent() if not account.user.startswith(PREFIX)]
    users = [(account, world.budgets.read(account)) for account in accounts]
    for day in sorted({account.day for account, _ in users}) if limit else ():
        mine = [sums for account, sums in users if account.day == day]
        tenant = world.budgets.read(Account(TENANT, "", day))
        drawn, told = sum(sums.drawn for sums in mine), sum(sums.told for sums in mine)
        if (tenant.held, tenant.spent) != (drawn, told):
            yield f"of day {day} the users have drawn {drawn} and told {told}, and the tenant has {tenant}"
        spent = sum(sums.spent for sums in mine)
        if world.keeps_to_what_it_declares and spent > limit + most:
            yield f"on day {day} {spent} were spent, the tenant's limit is {limit}, and the dead can have spent {most}"
        if not world.faults and not drawn == told == spent:
            yield f"of day {day} the users have drawn {drawn}, and spent {spent}, and nothing went wrong"
