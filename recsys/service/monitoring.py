"""What is counted of the requests, as Prometheus reads it."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Monitoring:
    """Requests by route and status, how long they took, and how many are in flight.

    Each application has a registry of its own, so that several in one process count apart.

    Attributes
    ----------
    in_flight : int
        Requests that are being answered.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.in_flight = 0
        self._requests = Counter(
            "recsys_requests", "Requests answered.", ("route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "recsys_request_seconds", "Seconds a request took.", ("route",), buckets=BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        self._events = Counter("recsys_events", "Events kept.", registry=self.registry)
        self._counters: dict[tuple[str, int], Any] = {}
        self._timers: dict[str, Any] = {}
        gauge = Gauge("recsys_in_flight", "Requests being answered.", registry=self.registry)
        gauge.set_function(lambda: self.in_flight)

    def kept(self, events: int) -> None:
        """Count events that are in the database."""
        self._events.inc(events)

    def waiting(self, count: Any) -> None:
        """Show how many events are kept, but not applied yet."""
        gauge = Gauge("recsys_events_waiting", "Events not applied yet.", registry=self.registry)
        gauge.set_function(count)

    def seen(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        counter = self._counters.get((route, status))
        if counter is None:  # looking a label up takes longer than counting
            counter = self._counters[route, status] = self._requests.labels(route, str(status))
        timer = self._timers.get(route)
        if timer is None:
            timer = self._timers[route] = self._seconds.labels(route)
        counter.inc()
        timer.observe(seconds)

    def text(self) -> bytes:
        """Return the exposition format."""
        return generate_latest(self.registry)
