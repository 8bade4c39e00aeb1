# SPDX-License-Identifier: Apache-2.0
"""raw/ to tables/: what the guest wrote, parsed; nothing is dropped or averaged."""

from howdah.ingest.run import ingest, read_report
from howdah.ingest.source import IngestReport, SourceReport

__all__ = ["IngestReport", "SourceReport", "ingest", "read_report"]
