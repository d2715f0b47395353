"""HTTP/1.1 by uvicorn's fast parser, with offers of HTTP/2 passed over."""

from __future__ import annotations

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

OFFER = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
MAX_HEAD = 1 << 16  # bytes of a request's line and headers, as of other servers
UNFINISHED = re.compile(rb"\r(\n(u(p(g(r(a(d(e)?)?)?)?)?)?)?)?$", re.IGNORECASE)


class Protocol(HttpToolsProtocol):
    """A connection on which `Upgrade: h2c`, which Java and curl send, changes nothing.

    The parser would take the body behind such a head for another protocol, so the header is renamed.
    """

    _in_head, _head, _rest = True, 0, b""

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; the start of a header's name waits for its end."""
        if self._in_head:
            data, self._rest = self._rest + data, b""
            if not data.endswith(b"\r\n\r\n") and (unfinished := UNFINISHED.search(data)):
                data, self._rest = data[: unfinished.start()], data[unfinished.start() :]
            data = OFFER.sub(b"\r\nX-Offer:", data).replace(b"\t", b" ")  # which the parser takes
            self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers are larger than 64 KiB.")

    def on_headers_complete(self) -> None:
        """Leave the body as it is."""
        self._in_head, self._head = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Look at the next head."""
        self._in_head = True
        super().on_message_complete()
