# SPDX-License-Identifier: Apache-2.0
"""qlog 0.3 as JSON Schema: the first text of a sequence, and each event, as far as a sender's recovery is logged.

From the definitions of draft-ietf-quic-qlog-main-schema (QlogFileSeq, TraceSeq, VantagePoint, CommonFields, Event) and
draft-ietf-quic-qlog-quic-events (recovery:metrics_updated, recovery:congestion_state_updated). The trigger of a state
is any text, as in the later of these drafts.
"""

from __future__ import annotations

from typing import Any

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
_END = {"enum": ["client", "server", "network", "unknown"]}


def _closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


HEAD = _closed(
    {
        "qlog_format": {"const": "JSON-SEQ"},
        "qlog_version": {"const": "0.3"},
        "title": _TEXT,
        "description": _TEXT,
        "trace": _closed(
            {
                "title": _TEXT,
                "description": _TEXT,
                "configuration": {
                    "type": "object",
                    "properties": {"time_offset": _NUMBER, "original_uris": {"type": "array", "items": _TEXT}},
                },
                "vantage_point": _closed({"name": _TEXT, "type": _END, "flow": _END}, "type"),
                "common_fields": {
                    "type": "object",
                    "properties": {
                        "time_format": {"enum": ["absolute", "delta", "relative"]},
                        "reference_time": _NUMBER,
                        "protocol_type": {"type": "array", "items": _TEXT, "minItems": 1},
                        "group_id": {"type": ["string", "integer"]},
                    },
                },
            }
        ),
    },
    *("qlog_format", "qlog_version", "trace"),
)

_DATA = {
    "recovery:metrics_updated": {
        **_closed(
            {
                **dict.fromkeys(("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"), _NUMBER),
                **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh"), _COUNT),
                **dict.fromkeys(("packets_in_flight", "pacing_rate", "pto_count"), _COUNT),
            }
        ),
        "minProperties": 1,
    },
    "recovery:congestion_state_updated": _closed({"old": _TEXT, "new": _TEXT, "trigger": _TEXT}, "new"),
}

EVENT = {
    "oneOf": [
        _closed({"time": _NUMBER, "name": {"const": name}, "data": data}, "time", "name", "data")
        for name, data in _DATA.items()
    ]
}
