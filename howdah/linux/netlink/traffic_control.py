# SPDX-License-Identifier: Apache-2.0
"""Numbers of the attributes that queueing disciplines take, by their names (include/uapi/linux/pkt_sched.h).

One class for each enum of the header; ``Htb.PARMS`` is ``TCA_HTB_PARMS``.
"""

from __future__ import annotations

from enum import IntEnum


class Htb(IntEnum):
    PARMS = 1
    INIT = 2
    RATE64 = 6
    CEIL64 = 7


class Tbf(IntEnum):
    PARMS = 1
    RATE64 = 4
    BURST = 6


class Fq(IntEnum):
    PLIMIT = 1
    FLOW_PLIMIT = 2


class Netem(IntEnum):
    DELAY_DIST = 2
    REORDER = 3
    LOSS = 5
    RATE = 6
    RATE64 = 8
    LATENCY64 = 10
    JITTER64 = 11
    SLOT = 12
    PRNG_SEED = 14


class NetemLoss(IntEnum):
    GE = 2


class Red(IntEnum):
    PARMS = 1
    STAB = 2
    MAX_P = 3


class Choke(IntEnum):
    PARMS = 1
    STAB = 2
    MAX_P = 3


class Gred(IntEnum):
    PARMS = 1
    STAB = 2
    DPS = 3
    MAX_P = 4
    LIMIT = 5


class U32(IntEnum):
    CLASSID = 1
    SEL = 5


class Codel(IntEnum):
    TARGET = 1
    LIMIT = 2
    INTERVAL = 3
    ECN = 4


class FqCodel(IntEnum):
    TARGET = 1
    LIMIT = 2
    INTERVAL = 3
    ECN = 4
    FLOWS = 5
    QUANTUM = 6
    MEMORY_LIMIT = 9


class Pie(IntEnum):
    TARGET = 1
    LIMIT = 2
    TUPDATE = 3
    ALPHA = 4
    BETA = 5
    ECN = 6


class Cake(IntEnum):
    BASE_RATE64 = 2
    DIFFSERV_MODE = 3
    FLOW_MODE = 5
    RTT = 7
    TARGET = 8
    MEMORY = 10


class CakeStats(IntEnum):
    TIN_STATS = 10


class CakeTinStats(IntEnum):
    ECN_MARKED_PACKETS = 8
