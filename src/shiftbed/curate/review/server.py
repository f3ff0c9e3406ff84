"""The review's server: a page, pictures of the shortlist, and votes."""

from __future__ import annotations

import socket
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from shiftbed.assets import sha256_of
from shiftbed.curate.dataset_card import said
from shiftbed.curate.review.guard import Guard, Tickets, hosts_of
from shiftbed.curate.shortlist import Shortlist
from shiftbed.curate.votes import REASONS, Vote, Votes, check_vote
from shiftbed.data import UnreadablePicture
from shiftbed.data.folder import order
from shiftbed.data.pictures import read_picture
from shiftbed.errors import InputError

__all__ = ["make_app", "run"]

_STATIC = {
    "review.css": "text/css",
    "review.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
#: The longer side of what is sent, in pixels.
_LARGE, _SMALL = 1600, 320


def make_app(shortlist: Shortlist, tickets: Tickets, hosts: frozenset[str]) -> Starlette:
    """Return the application, which answers to some names and to holders of tickets."""
    port = next(iter(hosts)).rpartition(":")[2]
    cookie = f"shiftbed_review_{port}"  # browsers share cookies between ports
    review = _Review(shortlist, tickets, cookie)
    routes = [
        Route("/", review.page),
        Route("/static/{name}", review.static),
        Route("/state", review.state),
        Route("/picture/{id}", review.picture),
        Route("/example/{number:int}", review.example),
        Route("/votes", review.vote, methods=["POST"]),
        Route("/undo", review.undo, methods=["POST"]),
    ]
    guard = Middleware(Guard, hosts=hosts, tickets=tickets, cookie=cookie)
    handlers: Mapping[Any, Any] = {HTTPException: _bare, Exception: _bare}
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def _bare(request: Request, problem: Exception) -> Response:
    """Say that something is not to be had, and nothing else."""
    return Response(status_code=getattr(problem, "status_code", 500))


class _Review:
    def __init__(self, shortlist: Shortlist, tickets: Tickets, cookie: str) -> None:
        self.shortlist = shortlist
        self.tickets = tickets
        self.cookie = cookie
        self.votes = Votes(shortlist.directory)
        self.entries = {entry.id: entry for entry in shortlist.entries}
        self.examples = [path for some in shortlist.examples.values() for path in some]
        package = resources.files("shiftbed.curate.review")
        self.files = {name: (package / "static" / name).read_bytes() for name in _STATIC}
        loader = PackageLoader("shiftbed.curate.review")
        self.template = Environment(
            loader=loader, autoescape=select_autoescape(default=True)
        ).get_template("review.html")

    async def page(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None:
            session = self.tickets.redeem(token)
            if session is None:
                return Response(status_code=403)
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self.cookie, session, httponly=True, samesite="strict")
            return answer
        text = self.template.render(
            name=self.shortlist.name,
            reviewer=request.state.reviewer,
            hard=self.shortlist.recipe == "hard",
            reasons=REASONS[self.shortlist.recipe],
        )
        return Response(text, media_type="text/html")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files:
            return Response(status_code=404)
        return Response(self.files[name], media_type=_STATIC[name])

    async def state(self, request: Request) -> Response:
        shortlist = self.shortlist
        names = {entry.class_name for entry in self.entries.values()}
        places = {name: place for place, name in enumerate(shortlist.classes)}
        ordered = sorted(names, key=lambda one: (places.get(one, len(places)), order(one)))
        number = iter(range(len(self.examples)))
        examples = {
            name: [next(number) for _ in paths] for name, paths in shortlist.examples.items()
        }
        titles = names | {entry.predicted for entry in self.entries.values()}
        titles |= {answer.predicted for one in self.entries.values() for answer in one.answers}
        content = {
            "recipe": shortlist.recipe,
            "reasons": REASONS[shortlist.recipe],
            "classes": ordered,
            "titles": {name: said(name) if name else "not labelled" for name in titles},
            "examples": examples,
            "items": [
                {
                    "id": entry.id,
                    "class": entry.class_name,
                    "predicted": entry.predicted,
                    "file": entry.path.name,
                    "answers": [
                        [one.model, one.predicted, one.confidence, one.p_true]
                        for one in entry.answers
                    ],
                }
                for entry in self.entries.values()
            ],
            "votes": self._votes(request),
        }
        return JSONResponse(content)

    async def picture(self, request: Request) -> Response:
        entry = self.entries.get(request.path_params["id"])
        if entry is None:
            return Response(status_code=404)
        return await run_in_threadpool(_encoded, entry.path, _side(request), entry.sha256)

    async def example(self, request: Request) -> Response:
        number = request.path_params["number"]
        if not 0 <= number < len(self.examples):
            return Response(status_code=404)
        return await run_in_threadpool(_encoded, Path(self.examples[number]), _side(request))

    async def vote(self, request: Request) -> Response:
        reviewer = str(request.state.reviewer)
        try:
            given = (await request.json())["votes"]
            votes = [
                Vote(str(one["picture"]), reviewer, one["verdict"], one.get("reason", ""))
                for one in given
            ]
            sound = bool(votes) and all(
                vote.picture in self.entries and check_vote(vote, self.shortlist.recipe)
                for vote in votes
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Response(status_code=400)
        except ClientDisconnect:
            return Response(status_code=413)
        if not sound:
            return Response(status_code=400)
        await run_in_threadpool(self.votes.cast, reviewer, votes)
        return JSONResponse({"votes": self._votes(request)})

    async def undo(self, request: Request) -> Response:
        pictures = await run_in_threadpool(self.votes.undo, str(request.state.reviewer))
        return JSONResponse({"pictures": pictures, "votes": self._votes(request)})

    def _votes(self, request: Request) -> dict[str, list[str]]:
        """Return this reviewer's votes alone: each is blind to the others."""
        own = self.votes.current(str(request.state.reviewer))
        return {vote.picture: [vote.verdict, vote.reason] for vote in own}


def _side(request: Request) -> int:
    return _SMALL if request.query_params.get("size") == "small" else _LARGE


def _encoded(path: Path, side: int, sha256: str | None = None) -> Response:
    """Return a picture anew as PNG or JPEG: its pixels, and nothing else that is in the file."""
    from PIL import Image

    try:
        if sha256 is not None and sha256_of(path) != sha256:
            return Response(status_code=404)
        picture = Image.fromarray(read_picture(path))
    except (UnreadablePicture, OSError):
        return Response(status_code=404)
    picture.thumbnail((side, side))
    small = max(picture.size) <= 256
    content = BytesIO()
    picture.save(content, "PNG" if small else "JPEG", **({} if small else {"quality": 92}))
    headers = {"Cache-Control": "private, max-age=86400"}
    kind = "image/png" if small else "image/jpeg"
    return Response(content.getvalue(), media_type=kind, headers=headers)


def run(
    shortlist: Shortlist, reviewers: Sequence[str], host: str, port: int, open_browser: bool
) -> None:
    """Serve until stopped."""
    _check_reviewers(reviewers)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            hosts_of(host, port)
            listening.bind((host, port))
            listening.listen()
        except (OSError, OverflowError) as problem:
            said_why = getattr(problem, "strerror", None) or problem
            raise InputError(f"cannot listen on {host}, port {port} ({said_why})") from None
        port = listening.getsockname()[1]
        hosts = hosts_of(host, port)
        tickets = Tickets(reviewers)
        app = make_app(shortlist, tickets, hosts)
        where = f"[{host}]" if ":" in host else host
        links = {
            one: f"http://{where}:{port}/?token={token}" for one, token in tickets.links.items()
        }
        for reviewer, link in links.items():
            print(f"{reviewer}: {link}")
        print("Each link opens once. Stop with Ctrl-C: every vote is kept.", flush=True)
        if "localhost" not in {one.rpartition(":")[0] for one in hosts} and host != "localhost":
            print(
                f"shiftbed: whoever can read the traffic to {host} sees pictures and votes; it "
                "is not encrypted",
                file=sys.stderr,
            )
        if open_browser:
            webbrowser.open(next(iter(links.values())))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
        )
        uvicorn.Server(config).run(sockets=[listening])


def _check_reviewers(reviewers: Sequence[str]) -> None:
    if not reviewers or len(set(reviewers)) < len(reviewers):
        raise InputError(f"the reviewers are {', '.join(reviewers) or 'none'}; name each once")
    odd = next((one for one in reviewers if not one.strip() or not one.isprintable()), None)
    if odd is not None:
        raise InputError(f"{odd!r} is no name for a reviewer; use plain text")
