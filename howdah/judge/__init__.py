# SPDX-License-Identifier: Apache-2.0
"""raw/, tables/ and metrics to verdict.json: a run is invalid unless its path was what it claimed to be."""
