"""The meters of users and clients: what each has used lately, against the limit that holds for it.

Limits come with the cluster image and change live; what was used stays known across a change.
As long as nobody has a quota, `is_active` is false and nothing here is ever called.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from penstock.broker.quotas.entities import QuotaClaim, Scope, claim
from penstock.broker.quotas.rates import (
    THROTTLE_MS_MAX,
    QuotaWindow,
    SlidingSum,
    TokenBucket,
    throttle_ms,
)
from penstock.cluster.image.image import ConfigKey
from penstock.config.quotas import CLIENT_QUOTAS, parse_quotas
from penstock.telemetry import families
from penstock.telemetry.metrics import Gauge

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"

IDLE_MS_MAX: Final = 3_600_000  # As long as Kafka remembers a client that is silent.
DEBT_MS_MAX: Final = 600_000  # A mistake in a quota must not lock somebody out for days.
METERS_MAX: Final = 20_000  # A client that invents names must not fill the memory.

# How Kafka's metrics call the quota, and what they call the rate that is measured for it.
_RESOURCES: Final = {
    PRODUCE: ("Produce", families.QUOTA_BYTE_RATE),
    FETCH: ("Fetch", families.QUOTA_BYTE_RATE),
    REQUEST: ("Request", families.QUOTA_REQUEST_TIME),
    MUTATION: ("ControllerMutation", families.QUOTA_TOKENS),
}


def monotonic_ms() -> int:
    return int(time.perf_counter() * 1000)


class Meter:
    """What one user, client, or client of a user has used of one quota lately.

    The pauses are Kafka's. But Kafka forgets what is older than its window, so that a client with
    many connections or large requests gets several times its limit by taking turns. Here the rest
    is remembered as a debt, and paid.
    """

    __slots__ = ("_debt", "_limit", "_pause_ms_max", "_window", "throttled", "used", "used_ms")

    def __init__(
        self, window: QuotaWindow, *, limit: float, now_ms: int, pause_ms_max: int | None = None
    ) -> None:
        self._window = window
        self._limit = limit
        self._pause_ms_max = THROTTLE_MS_MAX if pause_ms_max is None else pause_ms_max
        self._debt: TokenBucket | None = None
        if pause_ms_max is None:  # With bounded pauses a debt might never be paid.
            self._debt = TokenBucket(window, limit=limit, now_ms=now_ms)
        self.used = SlidingSum(window)
        self.throttled = SlidingSum(window)
        self.used_ms = now_ms

    @property
    def limit(self) -> float:
        """How much may be used in a second."""
        return self._limit

    @limit.setter
    def limit(self, limit: float) -> None:
        self._limit = limit
        if self._debt is not None:
            self._debt.limit = limit

    def charge(self, amount: float, now_ms: int) -> int:
        """Add what was used; how long the client is to be silent for it, 0 if it is not."""
        self.used_ms = now_ms
        self.used.add(amount, now_ms)
        pause_ms = min(throttle_ms(self.used, self._limit, now_ms), self._pause_ms_max)
        debt = self._debt
        if debt is not None:
            debt.take(amount, now_ms)
            if debt.tokens < 0:
                debt.forgive_beyond(DEBT_MS_MAX)
                pause_ms = max(pause_ms, debt.debt_ms(now_ms))
        if pause_ms:
            self.throttled.add(pause_ms, now_ms)
        return pause_ms

    def refund(self, amount: float, now_ms: int) -> None:
        """Take back what was charged and then not used after all."""
        self.used.add(-amount, now_ms)
        if self._debt is not None:
            self._debt.take(-amount, now_ms)

    def admit(self, amount: float, now_ms: int) -> tuple[int, bool]:
        """Like `charge`, for what can still be held back: the pause, and whether to let it pass.

        What does not pass is not charged. More than could ever pass at once does, when nothing
        is owed: a batch larger than the quota must reach its reader some time.
        """
        is_in_debt = self._debt is not None and self._debt.debt_ms(now_ms) > 0
        pause_ms = self.charge(amount, now_ms)
        if not pause_ms or (amount > self.burst and not is_in_debt):
            return pause_ms, True
        self.refund(amount, now_ms)
        return pause_ms, False

    @property
    def burst(self) -> int:
        """The most that can be used at once, and be within the limit, after a long silence."""
        return max(int(self._limit * self._window.whole_ms / 1000), 1)

    def measured(self, now_ms: int) -> float:
        return self.used.per_second(now_ms)


class MutationMeter:
    """The partitions a client has created or deleted lately."""

    __slots__ = ("bucket", "throttled", "used_ms")

    def __init__(self, window: QuotaWindow, *, limit: float, now_ms: int) -> None:
        self.bucket = TokenBucket(window, limit=limit, now_ms=now_ms)
        self.throttled = SlidingSum(window)
        self.used_ms = now_ms

    @property
    def limit(self) -> float:
        return self.bucket.limit

    @limit.setter
    def limit(self, limit: float) -> None:
        self.bucket.limit = limit

    def charge(self, partitions: int, now_ms: int, *, is_strict: bool) -> int:
        """How long the client is to be silent; a strict charge is then not made at all."""
        self.used_ms = now_ms
        pause_ms = self.bucket.debt_ms(now_ms) if is_strict else 0
        if not pause_ms:
            self.bucket.take(partitions, now_ms)
            if not is_strict:
                pause_ms = self.bucket.debt_ms(now_ms)
        if pause_ms:
            self.throttled.add(pause_ms, now_ms)
        return pause_ms

    def measured(self, now_ms: int) -> float:
        self.bucket.refill(now_ms)
        return self.bucket.tokens


class Allowances(NamedTuple):
    """The meters that count for one client; None: it may use as much as it likes."""

    produce: Meter | None
    fetch: Meter | None
    request: Meter | None
    mutation: MutationMeter | None


class ClientQuotas:
    """Finds a client's meters by its user and client id."""

    def __init__(
        self,
        *,
        window: QuotaWindow,
        mutation_window: QuotaWindow,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self.is_active = False  # Whether anybody has a quota: the one test on every request.
        self.now_ms = now_ms
        self._window = window
        self._mutation_window = mutation_window
        self._limits: dict[str, dict[ConfigKey, float]] = {}
        self._meters: dict[tuple[str, Scope], Meter | MutationMeter] = {}
        self._known: dict[tuple[str, str | None], Allowances] = {}  # Only saves the search.
        self._swept_ms = now_ms()

    def take_configs(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        """Obey what the image says now. Meters stay: nobody gets a new allowance by a change."""
        limits: dict[str, dict[ConfigKey, float]] = {name: {} for name in CLIENT_QUOTAS}
        for key, stored in configs.items():
            if key[0] not in ("users", "clients"):
                continue
            for name, limit in parse_quotas(stored).items():
                if name in limits:
                    limits[name][key] = limit
        if limits == self._limits:
            return
        self._limits = limits
        self._known.clear()
        self.is_active = any(limits.values())
        if not self.is_active:
            self._meters.clear()

    def of(self, principal: str, client_id: str | None) -> Allowances:
        """The meters of a client, by the name it was let in with and the id it gives itself."""
        found = self._known.get((principal, client_id))
        if found is None:
            found = self._find(principal, client_id)
        return found

    def _find(self, principal: str, client_id: str | None) -> Allowances:
        self._sweep(self.now_ms())
        user = principal.partition(":")[2]
        found = Allowances(
            produce=self._rate_meter(PRODUCE, user, client_id or ""),
            fetch=self._rate_meter(FETCH, user, client_id or ""),
            request=self._rate_meter(REQUEST, user, client_id or ""),
            mutation=self._mutation_meter(user, client_id or ""),
        )
        self._known[principal, client_id] = found
        return found

    def _claim(self, quota: str, user: str, client_id: str) -> QuotaClaim | None:
        limits = self._limits.get(quota)
        return claim(limits, user, client_id) if limits else None

    def _rate_meter(self, quota: str, user: str, client_id: str) -> Meter | None:
        found = self._claim(quota, user, client_id)
        if found is None:
            return None
        meter = self._meters.get((quota, found.scope))
        if isinstance(meter, Meter):
            meter.limit = found.limit
            return meter
        # Time is no burst to be paid back for minutes: Kafka bounds its pauses by one sample.
        longest_ms = self._window.sample_ms if quota == REQUEST else None
        new = Meter(self._window, limit=found.limit, now_ms=self.now_ms(), pause_ms_max=longest_ms)
        self._meters[quota, found.scope] = new
        return new

    def _mutation_meter(self, user: str, client_id: str) -> MutationMeter | None:
        found = self._claim(MUTATION, user, client_id)
        if found is None:
            return None
        meter = self._meters.get((MUTATION, found.scope))
        if isinstance(meter, MutationMeter):
            meter.limit = found.limit
            return meter
        new = MutationMeter(self._mutation_window, limit=found.limit, now_ms=self.now_ms())
        self._meters[MUTATION, found.scope] = new
        return new

    # Memory

    def _sweep(self, now_ms: int) -> None:
        """Forget the silent, once in a while; and if there are too many, half of all."""
        is_full = max(len(self._meters), len(self._known)) >= METERS_MAX
        if not is_full and now_ms - self._swept_ms < IDLE_MS_MAX // 10:
            return
        self._swept_ms = now_ms
        kept = [item for item in self._meters.items() if now_ms - item[1].used_ms < IDLE_MS_MAX]
        if len(kept) >= METERS_MAX:
            kept.sort(key=lambda item: item[1].used_ms)
            del kept[: len(kept) // 2]
        self._meters = dict(kept)
        self._known.clear()  # It may lead to meters that are gone, beside new ones for others.

    def __len__(self) -> int:
        """How many meters there are."""
        return len(self._meters)

    # Metrics

    def gauges(self) -> Iterator[Gauge]:
        """Rate and throttle time of each meter, under the names Kafka's dashboards use."""
        now_ms = self.now_ms()
        for (quota, scope), meter in tuple(self._meters.items()):  # A scrape takes its time.
            resource, family = _RESOURCES[quota]
            labels = {"resource": resource}
            if scope.user:
                labels["user"] = scope.user
            if scope.client_id:
                labels["clientId"] = scope.client_id
            yield Gauge(family, labels, meter.measured(now_ms))
            average_ms = meter.throttled.average(now_ms)
            yield Gauge(families.QUOTA_THROTTLE_TIME, labels, average_ms)
