# SPDX-License-Identifier: Apache-2.0
"""Parse raw/, which the guest wrote, into tables/. Nothing is dropped or averaged."""
