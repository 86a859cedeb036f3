"""The lines of kafka-producer-perf-test: counts, rates and latencies, by interval and in total."""

from collections.abc import Sequence

_MB = 1024 * 1024
_SAMPLES_MAX = 500_000


class LatencyReport:
    """Adds up what was stored. Times come in as seconds of any one clock."""

    def __init__(self, interval_ms: int, *, now_s: float) -> None:
        self._interval_s = interval_ms / 1000
        self._start_s = self._window_start_s = now_s
        self.count = 0
        self._bytes = 0.0
        self._sum_s = 0.0
        self._max_s = 0.0
        self._samples_s: list[float] = []
        self._stride = 1
        self._window_count = 0
        self._window_bytes = 0.0
        self._window_sum_s = 0.0
        self._window_max_s = 0.0

    def add(self, latencies_s: Sequence[float], bytes_each: float) -> None:
        """Records that were stored, of so many bytes each on average."""
        if not latencies_s:
            return
        count, total_s, highest_s = len(latencies_s), sum(latencies_s), max(latencies_s)
        size = count * bytes_each
        self.count += count
        self._bytes += size
        self._sum_s += total_s
        self._max_s = max(self._max_s, highest_s)
        self._window_count += count
        self._window_bytes += size
        self._window_sum_s += total_s
        self._window_max_s = max(self._window_max_s, highest_s)
        self._sample(latencies_s)

    def window_line(self, now_s: float) -> str | None:
        """The line of an interval that is over; None while it lasts."""
        elapsed_s = now_s - self._window_start_s
        if elapsed_s < self._interval_s:
            return None
        count = self._window_count
        average_ms = self._window_sum_s * 1000 / count if count else 0.0
        line = (
            f"{count} records sent, {count / elapsed_s:.1f} records/sec "
            f"({self._window_bytes / elapsed_s / _MB:.2f} MB/sec), "
            f"{average_ms:.1f} ms avg latency, {self._window_max_s * 1000:.1f} ms max latency."
        )
        self._begin_window(now_s)
        return line

    def total_line(self, now_s: float) -> str:
        """The last line, with percentiles."""
        elapsed_s = max(now_s - self._start_s, 1e-9)
        average_ms = self._sum_s * 1000 / self.count if self.count else 0.0
        middle, high, higher, highest = (
            round(value_s * 1000) for value_s in percentiles(self._samples_s, (50, 95, 99, 99.9))
        )
        return (
            f"{self.count} records sent, {self.count / elapsed_s:f} records/sec "
            f"({self._bytes / elapsed_s / _MB:.2f} MB/sec), "
            f"{average_ms:.2f} ms avg latency, {self._max_s * 1000:.2f} ms max latency, "
            f"{middle} ms 50th, {high} ms 95th, {higher} ms 99th, {highest} ms 99.9th."
        )

    def _begin_window(self, now_s: float) -> None:
        self._window_start_s = now_s
        self._window_count = 0
        self._window_bytes = self._window_sum_s = self._window_max_s = 0.0

    def _sample(self, latencies_s: Sequence[float]) -> None:
        """Keep an even selection: when there are too many, every second one goes."""
        self._samples_s.extend(latencies_s[:: self._stride])
        if len(self._samples_s) > _SAMPLES_MAX:
            self._samples_s = self._samples_s[::2]
            self._stride *= 2


def percentiles(values: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """The values below which so many percent lie; 0 where nothing was measured."""
    if not values:
        return [0.0] * len(wanted)
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * part / 100))] for part in wanted]
