# SPDX-License-Identifier: Apache-2.0
"""What howdah does when its inputs are wrong, when it is killed and when the disk gives out: ``make faults``."""
