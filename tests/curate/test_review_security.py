"""The review's server gives nothing to anyone but its reviewers, and them the shortlist alone."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
import pytest
from heaps import make_heap, models
from PIL import Image

from shiftbed.curate import Shortlist, hard
from shiftbed.curate.review.guard import Tickets, hosts_of
from shiftbed.curate.review.server import make_app
from shiftbed.curate.votes import Votes
from shiftbed.errors import InputError

PORT = 8123
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    heap = make_heap(folder / "heap", 60)
    (heap / "red").rename(heap / "<script>alert(1)")
    hard(
        heap,
        models()[:1],
        folder / "found",
        name='<img src=x onerror="alert(1)">',
        class_map={"blue": ["blue"], "green": ["green"], "<script>alert(1)": ["red"]},
        max_confidence=1.0,
    )
    return folder / "found"


@dataclass
class Page:
    """A server in memory, and what a browser would send to it."""

    app: object
    tickets: Tickets
    shortlist: Shortlist

    def client(self, base: str = HOME) -> httpx.Client:
        import asyncio

        transport = httpx.ASGITransport(self.app)

        class Plain(httpx.BaseTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                async def answered() -> httpx.Response:
                    sent = httpx.Request(
                        request.method, request.url, headers=request.headers, content=request.read()
                    )
                    answer = await transport.handle_async_request(sent)
                    content = await answer.aread()
                    return httpx.Response(
                        answer.status_code, headers=answer.headers, content=content
                    )

                return asyncio.run(answered())

        return httpx.Client(transport=Plain(), base_url=base)

    def signed_in(self, reviewer: str = "ann") -> httpx.Client:
        client = self.client()
        answer = client.get("/", params={"token": self.tickets.links[reviewer]})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        client.headers["origin"] = HOME
        return client


@pytest.fixture
def page(directory: Path) -> Page:
    (directory / "votes.sqlite").unlink(missing_ok=True)
    shortlist = Shortlist.load(directory)
    tickets = Tickets(["ann", "ben"])
    return Page(make_app(shortlist, tickets, hosts_of("127.0.0.1", PORT)), tickets, shortlist)


def bare(answer: httpx.Response, *statuses: int) -> None:
    """A refusal: 4xx, and not a word."""
    assert answer.status_code in (statuses or (400, 403, 404, 405, 413)), answer.status_code
    assert answer.content == b""


def test_nothing_is_to_be_had_without_a_cookie(page: Page) -> None:
    picture = page.shortlist.entries[0].id
    client = page.client()
    for path in ("/", "/state", f"/picture/{picture}", "/example/0", "/static/review.js", "/no"):
        bare(client.get(path), 403)
    for path in ("/votes", "/undo"):
        bare(client.post(path, json={}, headers={"origin": HOME}), 403)


@pytest.mark.parametrize("token", ["", "guess", "ÿ", "x" * 5000])
def test_a_wrong_token_opens_nothing(page: Page, token: str) -> None:
    bare(page.client().get("/", params={"token": token}), 403)


def test_a_token_opens_once(page: Page) -> None:
    token = page.tickets.links["ann"]
    page.signed_in("ann")
    bare(page.client().get("/", params={"token": token}), 403)
    page.signed_in("ben")


def test_a_token_is_good_for_the_page_alone(page: Page) -> None:
    bare(page.client().get("/state", params={"token": page.tickets.links["ann"]}), 403)


def test_the_cookie_is_out_of_reach(page: Page) -> None:
    answer = page.client().get("/", params={"token": page.tickets.links["ann"]})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert page.tickets.links["ann"].lower() not in cookie


def test_another_session_is_another_cookie(page: Page) -> None:
    client = page.signed_in()
    name, _ = next(iter(client.cookies.items()))
    client.cookies.clear()
    client.cookies.set(name, "guess")
    bare(client.get("/state"), 403)


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"x@127.0.0.1:{PORT}"],
)
def test_a_name_that_was_pointed_here_gets_nothing(page: Page, host: str) -> None:
    """DNS rebinding: the browser believes that it speaks to another site."""
    client = page.signed_in()
    bare(client.get("/state", headers={"host": host}), 400)
    bare(client.get("/", headers={"host": host}), 400)


def test_two_host_headers_are_refused(page: Page) -> None:
    client = page.signed_in()
    request = client.build_request("GET", "/state")
    request.headers = httpx.Headers([*request.headers.raw, (b"host", b"evil.example")])
    bare(client.send(request), 400)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8123", HOME + "0"]
)
def test_another_origin_gets_nothing(page: Page, origin: str) -> None:
    client = page.signed_in()
    picture = page.shortlist.entries[0].id
    vote = {"votes": [{"picture": picture, "verdict": "accept"}]}
    bare(client.post("/votes", json=vote, headers={"origin": origin}), 403)
    bare(client.get("/state", headers={"origin": origin}), 403)
    assert Votes(page.shortlist.directory).current() == []


def test_a_vote_says_where_it_comes_from(page: Page) -> None:
    client = page.signed_in()
    del client.headers["origin"]
    bare(client.post("/undo", json={}), 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_cannot_embed_a_picture(page: Page, site: str) -> None:
    client = page.signed_in()
    picture = page.shortlist.entries[0].id
    bare(client.get(f"/picture/{picture}", headers={"sec-fetch-site": site}), 403)


@pytest.mark.parametrize(
    "path",
    [
        "/picture/../../../etc/passwd",
        "/picture/..%2f..%2f..%2fetc%2fpasswd",
        "/picture/%2e%2e%2fcuration.json",
        "/picture//etc/passwd",
        "/picture/0000000000000000",
        "/picture/%00",
        "/example/-1",
        "/example/100000",
        "/example/1e3",
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2ftemplates%2freview.html",
        "/votes.sqlite",
        "/docs",
        "/openapi.json",
    ],
)
def test_only_the_shortlist_is_served(page: Page, path: str) -> None:
    client = page.signed_in()
    request = client.build_request("GET", HOME)
    request.url = request.url.copy_with(raw_path=path.encode())
    bare(client.send(request), 403, 404)


def test_candidates_that_are_not_on_the_shortlist_stay_private(page: Page) -> None:
    from shiftbed.assets import sha256_of

    client = page.signed_in()
    on = {entry.id for entry in page.shortlist.entries}
    examples = {Path(path) for some in page.shortlist.examples.values() for path in some}
    others = [
        path for path in Path(page.shortlist.heap).rglob("*.png")
        if sha256_of(path)[:16] not in on and path not in examples
    ]  # fmt: skip
    assert others
    for path in others:
        bare(client.get(f"/picture/{sha256_of(path)[:16]}"), 404)


def test_a_picture_is_sent_anew_without_what_else_its_file_holds(page: Page) -> None:
    client = page.signed_in()
    entry = page.shortlist.entries[0]
    answer = client.get(f"/picture/{entry.id}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/png"
    sent = np.asarray(Image.open(BytesIO(answer.content)))
    np.testing.assert_array_equal(sent, np.asarray(Image.open(entry.path).convert("RGB")))


def test_a_file_that_became_another_is_not_served(page: Page) -> None:
    client = page.signed_in()
    entry = page.shortlist.entries[1]
    before = entry.path.read_bytes()
    secret = entry.path.with_name("secret.png")
    Image.new("RGB", (30, 30), "white").save(secret)
    try:
        entry.path.unlink()
        entry.path.symlink_to(secret)
        bare(client.get(f"/picture/{entry.id}"), 404)
    finally:
        entry.path.unlink()
        entry.path.write_bytes(before)
        secret.unlink()
    assert client.get(f"/picture/{entry.id}").status_code == 200


def test_names_are_escaped(page: Page) -> None:
    client = page.signed_in()
    text = client.get("/").text
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    assert not re.search(r"<script(?![^>]* src=\"/static/)", text)
    answer = client.get("/state")
    assert answer.headers["content-type"] == "application/json"
    assert "<script>alert(1)" in answer.json()["classes"]


def test_the_page_may_load_from_itself_alone(page: Page) -> None:
    client = page.signed_in()
    for path in ("/", "/state", "/static/review.js", f"/picture/{page.shortlist.entries[0].id}"):
        headers = client.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert {policy[f"{kind}-src"] for kind in ("img", "script", "style", "connect")} == {
            "'self'"
        }
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert (
        "access-control-allow-origin" not in client.get("/state", headers={"origin": HOME}).headers
    )
    assert client.get("/state").headers["cache-control"] == "no-store"


VOTE = {"picture": "?", "verdict": "accept"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"votes": []}',
        b'{"votes": 3}',
        b'{"votes": ["x"]}',
        b'{"votes": [{"picture": "0000", "verdict": "accept"}]}',
        b'{"votes": [{"picture": "ID", "verdict": "delete"}]}',
        b'{"votes": [{"picture": "ID", "verdict": ["accept"]}]}',
        b'{"votes": [{"picture": "ID", "verdict": "reject", "reason": "because"}]}',
        b'{"votes": [{"picture": "ID", "verdict": "reject"}]}',
        b'{"votes": [{"picture": "ID", "verdict": "accept"}, '
        b'{"picture": "0000", "verdict": "skip"}]}',
        b"\xff\xfe",
    ],
)
def test_odd_votes_are_refused_whole(page: Page, body: bytes) -> None:
    client = page.signed_in()
    body = body.replace(b"ID", page.shortlist.entries[0].id.encode())
    bare(client.post("/votes", content=body), 400)
    assert Votes(page.shortlist.directory).current() == []


def test_a_huge_body_is_refused(page: Page) -> None:
    client = page.signed_in()
    bare(client.post("/votes", content=b"x" * (5 * 2**20)), 413)
    bare(client.put("/votes", content=b""), 405)


def test_a_reviewer_sees_no_vote_but_their_own(page: Page) -> None:
    ann, ben = page.signed_in("ann"), page.signed_in("ben")
    one, two = (entry.id for entry in page.shortlist.entries[:2])
    vote = {"picture": one, "verdict": "reject", "reason": "bad quality"}
    assert ann.post("/votes", json={"votes": [vote]}).json()["votes"] == {
        one: ["reject", "bad quality"]
    }
    assert ben.get("/state").json()["votes"] == {}
    answer = ben.post("/votes", json={"votes": [{"picture": two, "verdict": "accept"}]})
    assert answer.json()["votes"] == {two: ["accept", ""]}
    assert "ann" not in ben.get("/").text + ben.get("/state").text
    assert ben.post("/undo", json={}).json() == {"pictures": [two], "votes": {}}
    assert ben.post("/undo", json={}).json()["pictures"] == []
    kept = [
        (vote.picture, vote.reviewer, vote.verdict)
        for vote in Votes(page.shortlist.directory).current()
    ]
    assert kept == [(one, "ann", "reject")]


def test_every_address_at_once_is_not_named(page: Page) -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(InputError, match="every address"):
            hosts_of(host, PORT)
    assert hosts_of("::1", 80) == {"[::1]", "[::1]:80", "localhost", "localhost:80"}


def answer_of(address: str, port: int, request: bytes) -> bytes:
    with socket.create_connection((address, port), timeout=60) as connection:
        connection.sendall(request)
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


def test_the_command_listens_on_this_machine_alone(directory: Path) -> None:
    words = [sys.executable, "-m", "shiftbed", "curate", "review", str(directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            link = httpx.URL(process.stdout.readline().partition(": ")[2].strip())
            assert link.host == "127.0.0.1"
            assert len(link.params["token"]) >= 32
            port = link.port or 80
            # Another address of this machine: who listens on all of them answers there, too.
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), timeout=60)
            for request in (b"GET / HTTP/1.0\r\n\r\n", b"GET /state HTTP/1.0\r\nHost: a\r\n\r\n"):
                found = answer_of("127.0.0.1", port, request)
                head, _, body = found.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 400")
                assert body == b""
                assert b"uvicorn" not in head
            answer = httpx.get(link, follow_redirects=False)
            assert answer.status_code == 303
        finally:
            process.kill()
