"""Who may speak to the review's server, and what goes along with its every answer.

It shows files of a person's disk, so a page elsewhere on the web, another program's page on
this machine, or a name that somebody has pointed at this machine must get nothing out of it.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiftbed.errors import InputError

__all__ = ["Guard", "Tickets", "hosts_of"]

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; "
    "script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Votes on a whole class fit into this many bytes.
_LARGEST = 4 * 2**20


class Tickets:
    """The links that reviewers get, and the cookies that these turn into, once each.

    >>> tickets = Tickets(["ann"])
    >>> [(reviewer, token)] = tickets.links.items()
    >>> cookie = tickets.redeem(token)
    >>> tickets.reviewer(cookie), tickets.redeem(token), tickets.reviewer("guess")
    ('ann', None, None)
    """

    def __init__(self, reviewers: Iterable[str]) -> None:
        #: For each reviewer, what opens the page.
        self.links: Mapping[str, str] = {one: secrets.token_urlsafe(32) for one in reviewers}
        self._unused = dict(self.links)
        self._sessions: dict[str, str] = {}

    def redeem(self, token: str) -> str | None:
        """Return a cookie for a link that was not used yet."""
        owner = None
        for reviewer, known in self._unused.items():
            if secrets.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                owner = reviewer
        if owner is None:
            return None
        del self._unused[owner]
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = owner
        return cookie

    def reviewer(self, cookie: str) -> str | None:
        """Return whose browser has this cookie."""
        owner = None
        for known, reviewer in self._sessions.items():
            if secrets.compare_digest(known.encode(), cookie.encode("utf-8", "replace")):
                owner = reviewer
        return owner


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Return what a browser may call the server.

    >>> sorted(hosts_of("127.0.0.1", 8000))
    ['127.0.0.1:8000', 'localhost:8000']
    """
    names = [host]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        names += ["127.0.0.1"] if host == "localhost" else []
    else:
        if address.is_unspecified:
            raise InputError(
                f"{host} is every address of this machine; name the one that the reviewers use"
            )
        names = [f"[{host}]" if address.version == 6 else host]
        names += ["localhost"] if address.is_loopback else []
    ports = [f":{port}", ""] if port == 80 else [f":{port}"]
    return frozenset(f"{name.lower()}{end}" for name in names for end in ports)


class Guard:
    """Lets through what comes from the reviewers' own pages; answers the rest with a bare 4xx.

    Only ``/?token=...`` may come without a cookie. The reviewer's name is in the request's
    state from then on.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: frozenset[str], tickets: Tickets, cookie: str
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.tickets = tickets
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks another protocol
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope)
        status = self._refusal(request)
        if status is not None:
            await Response(status_code=status)(scope, receive, send_guarded)
            return
        await self.app(scope, _bounded(receive), send_guarded)

    def _refusal(self, request: Request) -> int | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 400
        origins = request.headers.getlist("origin")
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return 403
        reads = request.method in ("GET", "HEAD")
        if not reads and not origins:
            return 403
        opening = request.url.path == "/" and reads and "token" in request.query_params
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and not opening:
            return 403
        if _length(request.headers.getlist("content-length")) > _LARGEST:
            return 413
        if opening:
            return None
        reviewer = self.tickets.reviewer(_cookie(request.headers.getlist("cookie"), self.cookie))
        if reviewer is None:
            return 403
        request.state.reviewer = reviewer
        return None


def _length(given: Sequence[str]) -> int:
    try:
        return int(given[0]) if given else 0
    except ValueError:
        return _LARGEST + 1


def _cookie(headers: Sequence[str], name: str) -> str:
    for header in headers:
        try:
            jar = SimpleCookie(header)
        except CookieError:
            continue
        if name in jar:
            return jar[name].value
    return ""


def _bounded(receive: Receive) -> Receive:
    """Cut off a body that is longer than was said."""
    taken = 0

    async def bounded() -> Any:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > _LARGEST else message

    return bounded
