"""Every fault that a storm is made of."""

from cable_faults import Cut, CutRedis, Detour, Loss, Narrow
from process_faults import Clock, FullDisk, Kill, Pause, Reboot, Reload, Restart, Upgrade
from server_faults import (
    FilesKilled,
    IssuerFrozen,
    IssuerIll,
    IssuerKilled,
    LabGone,
    NewSecret,
    Purge,
    RedisFrozen,
    RedisRestart,
    RedisWiped,
    Revoke,
    UpstreamKilled,
)

ALL = [
    *(Kill, Pause, Upgrade, Restart, Reboot, Clock, Reload, FullDisk, Loss, Cut, CutRedis, Narrow, Detour),
    *(RedisRestart, RedisWiped, RedisFrozen, IssuerKilled, IssuerFrozen, IssuerIll, LabGone, UpstreamKilled, FilesKilled),
    *(Revoke, Purge, NewSecret),
]
