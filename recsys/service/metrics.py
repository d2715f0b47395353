"""Counts and times of requests in the format of Prometheus, named as by OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))


class Metrics:
    """Metrics of one application, with a separate registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "http_server_request_duration_seconds",
            "Seconds a request took.",
            ("http_request_method", "http_route", "http_response_status_code"),
            registry=self.registry,
        )

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a gauge with the value of a function."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in METHODS else "_OTHER"
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        """Return the exposition format."""
        return generate_latest(self.registry)
