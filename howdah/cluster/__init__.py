# SPDX-License-Identifier: Apache-2.0
"""Runs made by the workers of a Dask cluster. docs/cluster.md."""
