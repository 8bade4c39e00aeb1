# SPDX-License-Identifier: Apache-2.0
"""Guards Dask's own HTTP server, which ignores ``Host``: it has pages on loopback if they are requested, else none."""

from __future__ import annotations

from typing import Any

import dask
from tornado.web import ErrorHandler

from howdah.publish.guard import LOOPBACK, refusal

ADDRESS = f"{LOOPBACK}:0"
_SCHEDULER, _WORKER = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
_ROUTES = list(dask.config.get(_SCHEDULER))
# Dask opens a port for them in every process, whether anybody asks for a dashboard or not.
NO_PAGES: dict[str, Any] = {_SCHEDULER: [], _WORKER: []}
PAGES: dict[str, Any] = {_SCHEDULER: _ROUTES}


def guard(scheduler: Any) -> None:
    """Apply the rules of howdah/publish/guard.py to all of Dask's pages, Bokeh's included."""
    application, port = scheduler.http_application, scheduler.http_server.port
    found = application.find_handler

    def find_handler(request: Any, **options: Any) -> Any:
        refused = refusal(request.headers, LOOPBACK, port)
        if refused is None:
            return found(request, **options)
        return application.get_handler_delegate(request, ErrorHandler, {"status_code": refused[0]})

    application.find_handler = find_handler
