# SPDX-License-Identifier: Apache-2.0
"""Questions that people had, each as a profile with the value that an independent source gives."""
