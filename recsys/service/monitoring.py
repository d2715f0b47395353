"""Counters of the requests, in the format of Prometheus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # names the folder where several processes count together


class Monitoring:
    """Requests by route and status, how long they took, how many are in flight, and the model's state.

    Names, labels and units of the requests are those of OpenTelemetry's conventions for HTTP. Each
    application has a registry of its own, so that several in one process count apart; processes that
    serve one port count together.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.in_flight = 0
        self.shared = SHARED in os.environ
        if self.shared:
            _forget_the_dead(Path(os.environ[SHARED]))
        labels = ("http_request_method", "http_route", "http_response_status_code")
        self._seconds = Histogram(
            "http_server_request_duration_seconds", "Seconds a request took.", labels, buckets=BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        self._events = Counter("recsys_events", "Events kept.", registry=self.registry)
        self._shed = Counter(
            "recsys_requests_shed", "Requests refused since the queue was full.",
            ("http_route",), registry=self.registry,
        )  # fmt: skip
        self._failures = Counter(
            "recsys_background_failures", "Failures of what runs beside the requests.", ("loop",),
            registry=self.registry,
        )  # fmt: skip
        if self.shared:  # opens the histograms' file, for which there may be no descriptor later
            self._seconds.labels("GET", "/health", "200")
        self._timers: dict[tuple[str, str, int], Any] = {}
        self._gauges: list[tuple[Any, Any]] = []
        self.gauge("http_server_active_requests", "Requests being answered.", lambda: self.in_flight)

    def gauge(
        self, name: str, text: str, value: Any, among: Literal["sum", "max", "min"] = "sum"
    ) -> None:
        """Show what a function returns; of several processes the sum, or another one of them."""
        modes: dict[str, Any] = {"sum": "livesum", "max": "livemax", "min": "livemin"}
        gauge = Gauge(name, text, registry=self.registry, multiprocess_mode=modes[among])
        self._gauges.append((gauge, value))

    def kept(self, events: int) -> None:
        """Count events that are in the database."""
        self._events.inc(events)

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method if method in METHODS else "_OTHER", route, status)
        timer = self._timers.get(key)
        if timer is None:  # looking a label up takes longer than counting
            timer = self._timers[key] = self._seconds.labels(key[0], route, str(status))
        timer.observe(seconds)

    def failed(self, loop: str) -> None:
        """Count a failure of what runs beside the requests."""
        self._failures.labels(loop).inc()

    def shed(self, route: str) -> None:
        """Count a request that was refused since the queue was full."""
        self._shed.labels(route).inc()

    def refresh(self) -> None:
        """Read the gauges; other processes show what was read last."""
        for gauge, value in self._gauges:
            gauge.set(value())

    def text(self) -> bytes:
        """Return the exposition format."""
        self.refresh()
        if not self.shared:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)


def _forget_the_dead(folder: Path) -> None:
    """Leave out the gauges of processes that died; this one may be the successor of one of them."""
    for file in folder.glob("gauge_live*.db"):
        number = int(file.stem.rpartition("_")[2])
        if not psutil.pid_exists(number):
            mark_process_dead(number)


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"))
