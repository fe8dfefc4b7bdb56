"""The server of a page: viser on localhost, without sharing, for its own pages only.

The page that it serves is viser's with scripts of ours (`SCRIPTS`): overlays are drawn through
bodies, a timeline spans the bottom, and sliders are filled from zero.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib
import logging
import os
import socket
from collections.abc import Generator
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

from remora.errors import InvalidValue, RemoraError

HOST = "127.0.0.1"
#: Our scripts in the page, which share one scope.
SCRIPTS = ("page_script.js", "controls_script.js", "timeline_script.js", "film_script.js")


def viser_module() -> Any:
    """Import viser; if it is missing, the error says how to install it."""
    try:
        return importlib.import_module("viser")
    except ModuleNotFoundError:
        raise RemoraError(
            "looking at robots needs viser: pip install '.[view]' in Remora's folder"
        ) from None


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Suppress viser's startup message; `Page.wait` prints the address."""
    console = importlib.import_module("rich").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def start_server(port: int) -> Any:
    """Return a viser server on 127.0.0.1, which is not reachable from other machines.

    Raises:
        RemoraError: if viser is missing or the port is in use (viser would silently use another).
    """
    if not isinstance(port, int) or not 0 <= port <= 65535:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"port={port!r}; a port is a number from 1 to 65535, or 0 for any")
    viser = viser_module()
    taken = f"port {port} of {HOST} is in use: close what uses it, or name another, such as "
    taken += f"port={port + 1} (remora view ... --port {port + 1})"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        if os.name == "posix":
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except PermissionError:
            raise RemoraError(f"port {port} may not be used by you: take one over 1024") from None
        except OSError:
            raise RemoraError(taken) from None
    with quiet(), _own_pages_only() as origins:
        server = viser.ViserServer(host=HOST, port=port, label="Remora", verbose=False)
        if port and server.get_port() != port:
            server.stop()
            raise RemoraError(taken)
        origins += own_origins(server.get_port())
    server.request_share_url = _refuse_to_share
    # Browsers open connections and leave them unused; websockets would log each of them.
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    return server


def own_origins(port: int) -> list[str]:
    """Return the web origins of the pages served on a port of this machine [RFC 6454].

    Another port is another origin: it may belong to another program or another user. A tunnel
    (ssh -L) must therefore use the same port on both ends.
    """
    shown = "" if port == 80 else f":{port}"  # browsers omit the default port of http
    return [f"http://{host}{shown}" for host in (HOST, "localhost")]


@contextlib.contextmanager
def _own_pages_only() -> Generator[list[str | None]]:
    """Make a server started in this context accept websockets from the listed origins only.

    Otherwise any page open in the same browser could read the scene and move sliders. viser has no
    option for this, but the websockets library it uses has. The list first contains only clients
    that are not browsers (they send no origin). The server's own origins are added once its port is
    known; before that no page is accepted.
    """
    serving: Any = importlib.import_module("websockets.asyncio.server")
    plain = serving.serve
    origins: list[str | None] = [None]

    def serve(*arguments: Any, **named: Any) -> Any:
        answer = named.get("process_request")
        ours = {"origins": origins, "process_request": _with_own_page(answer)}
        return plain(*arguments, **{**named, **ours})

    serving.serve = serve
    try:
        yield origins
    finally:
        serving.serve = plain


def page_script() -> str:
    """Return our scripts as an HTML element."""
    folder = files("remora.viewer.page")
    text = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return f'<script>(() => {{\n"use strict";\n{text}}})();</script>'


@functools.cache
def _own_page() -> bytes:
    """Return viser's page with our scripts, compressed."""
    folder = Path(str(viser_module().__file__)).parent
    text = (folder / "client" / "build" / "index.html").read_text(encoding="utf-8")
    text = text.replace("<title>Viser</title>", "<title>Remora</title>")
    end = text.rindex("</body>")
    return gzip.compress((text[:end] + page_script() + text[end:]).encode())


def _with_own_page(answer: Any) -> Any:
    """Return viser's function that answers HTTP requests, with our page at its root."""
    http: Any = importlib.import_module("websockets.http11")
    headers: Any = importlib.import_module("websockets.datastructures")

    def process(connection: Any, request: Any) -> Any:
        is_page = request.path.partition("?")[0] in ("/", "/index.html")
        is_socket = request.headers.get("Upgrade") == "websocket"
        if is_socket or not is_page or "gzip" not in request.headers.get("Accept-Encoding", ""):
            return answer(connection, request)
        body = _own_page()
        sent = headers.Headers(
            {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Length": str(len(body)),
                "Content-Encoding": "gzip",
            }
        )
        return http.Response(HTTPStatus.OK, "OK", sent, body)

    return process


def _refuse_to_share(verbose: bool = True) -> None:
    """Do nothing; viser's own function would open a tunnel through a server on the internet."""
