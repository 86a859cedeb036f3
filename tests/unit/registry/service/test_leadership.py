"""Leadership: it lasts as long as the group knows us, and whoever waits is woken."""

import asyncio
import time

import pytest

from penstock.registry.election import InstanceIdentity
from penstock.registry.errors import RegistryError
from penstock.registry.service.leadership import Leadership

US = InstanceIdentity(host="us", port=1)


def test_we_lead_until_the_last_heartbeat_is_too_old() -> None:
    leadership = Leadership()
    assert not leadership.is_leading()
    leadership.assign(US, is_us=True, until_s=time.monotonic() + 1000)
    assert leadership.is_leading()
    leadership.extend(time.monotonic() - 1)  # As after a pause.
    assert leadership.is_chosen
    assert not leadership.is_leading()
    leadership.extend(time.monotonic() + 1000)
    assert leadership.is_leading()
    leadership.forget()
    assert not leadership.is_leading()
    assert leadership.leader is None


def test_a_heartbeat_makes_nobody_leader() -> None:
    leadership = Leadership()
    leadership.assign(US, is_us=False, until_s=time.monotonic() + 1000)
    leadership.extend(time.monotonic() + 2000)
    assert not leadership.is_leading()


def test_who_waits_is_woken_by_an_election_or_told_that_there_is_none() -> None:
    async def run() -> None:
        leadership = Leadership()
        now_s = asyncio.get_running_loop().time
        waiting = asyncio.create_task(leadership.wait_for_change(now_s() + 600))
        await asyncio.sleep(0)
        leadership.assign(US, is_us=True, until_s=time.monotonic() + 1000)
        await waiting
        with pytest.raises(RegistryError) as told:
            await leadership.wait_for_change(now_s() + 0.01)
        assert told.value.code == 50004

    asyncio.run(run())
