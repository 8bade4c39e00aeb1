# SPDX-License-Identifier: Apache-2.0
"""The format of suites as JSON Schema, made from the model. Editors and other validators read it."""

from __future__ import annotations

import sys
from typing import Any

from howdah.compact import compact_json
from howdah.generated import docs_of, keep_current
from howdah.nightly.suite import SuiteSection
from howdah.place import DOCS
from howdah.profile.model import Scenario
from howdah.profile.schema import listed_names, plain_schema

SUITE_SCHEMA_NAME = "suite.schema.json"
SUITE_SCHEMA = DOCS / SUITE_SCHEMA_NAME  # in a checkout and in a wheel


def suite_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a suite. Whether its profiles and their claims exist, and which of the
    measures can be compared, is left to ``howdah nightly``."""
    schema = plain_schema(SuiteSection.model_json_schema(), {})
    item = schema["$defs"]["ItemSection"]["properties"]
    item["set"]["propertyNames"] = {"pattern": rf"^({'|'.join(Scenario.model_fields)})(\.[^.]+)*$"}
    names = {name: value for name, value in listed_names().items() if name != "AtlasEntry"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "howdah suite",
        "$defs": {**schema["$defs"], **names},
    }


def main(arguments: list[str]) -> int:
    return keep_current({docs_of(arguments) / SUITE_SCHEMA_NAME: compact_json(suite_schema())}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
