# SPDX-License-Identifier: Apache-2.0
"""Cross-validation: the same plan on two engines must give the same result (docs/validate.md)."""
