"""Wall clocks that jump, disks that crawl and disks that fail, by a shim in front of libc.

The shim (shim.c) is compiled once per deployment and loaded into the brokers alone. Each broker
has a small file of orders, which may be rewritten while it runs.
"""

import ctypes
import mmap
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.deployment import BrokerNode, Deployment
from tests.faults.injectors.fault import Target
from tests.faults.injectors.signals import some_leader

SOURCE = Path(__file__).with_name("shim.c")
HOUR_NS = 3600 * 1_000_000_000


class Orders(ctypes.Structure):
    """The same as `struct orders` in shim.c."""

    _fields_ = (
        ("clock_shift_ns", ctypes.c_int64),
        ("write_delay_ms", ctypes.c_int32),
        ("sync_delay_ms", ctypes.c_int32),
        ("failing_writes", ctypes.c_int32),
        ("failing_syncs", ctypes.c_int32),
        ("directory", ctypes.c_char * 512),
    )


def compiled(directory: Path) -> Path:
    """The shim as a library; OSError when it cannot be built."""
    library = directory / "shim.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"gcc: {done.stderr.strip()}")
    return library


def missing_means() -> str | None:
    if shutil.which("gcc") is None:
        return "gcc is not installed"
    with tempfile.TemporaryDirectory() as place:
        try:
            compiled(Path(place))
        except OSError as error:
            return f"the shim cannot be built: {error}"
    return None


class Shim:
    """The orders of one broker."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(ctypes.sizeof(Orders)))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), ctypes.sizeof(Orders))
        self.orders = Orders.from_buffer(self._memory)

    def clear(self) -> None:
        """Everything as on a healthy machine."""
        for name, kind in Orders._fields_:
            setattr(self.orders, name, b"" if name == "directory" else kind(0).value)


@dataclass(slots=True, kw_only=True)
class ShimDeployment(Deployment):
    """Brokers whose clocks and disks obey orders."""

    shims: dict[int, Shim] = field(default_factory=dict)
    library: Path | None = None

    def prepare(self, node: BrokerNode) -> None:
        if self.library is None:
            self.library = compiled(self.directory)
        path = node.directory / "orders"
        self.shims[node.broker_id] = Shim(path)
        node.environment = {"LD_PRELOAD": str(self.library), "FAULT_SHIM_ORDERS": str(path)}

    def heal(self) -> None:
        for shim in self.shims.values():
            shim.clear()
        super(ShimDeployment, self).heal()


def shim_of(target: Target, node: BrokerNode) -> Shim:
    """The orders of this broker of a deployment that has them."""
    assert isinstance(target.deployment, ShimDeployment)
    return target.deployment.shims[node.broker_id]


def shift_clock(target: Target) -> None:
    """One broker's wall clock jumps an hour, or to and fro, while it runs; sometimes it crashes."""
    chance, node = target.chance, some_leader(target)
    shim = shim_of(target, node)
    for _ in range(chance.choice([1, 1, 6])):
        hours = chance.choice([-1, 1, -24, 24])
        shim.orders.clock_shift_ns = hours * HOUR_NS
        target.note(f"the clock of broker {node.broker_id} is {hours:+d} h off")
        target.hold(chance.uniform(0.2, 2))
    if chance.random() < 0.3:
        target.note(f"kill -9 of broker {node.broker_id} under its wrong clock")
        node.kill()
        node.launch()
        node.wait_until_ready(timeout_s=90)
    target.hold(chance.uniform(0.5, 2))
    shim.clear()
    target.note(f"the clock of broker {node.broker_id} is right again")


def slow_disk(target: Target) -> None:
    """Every write or sync of one broker's data takes a while."""
    chance, node = target.chance, some_leader(target)
    shim = shim_of(target, node)
    shim.orders.directory = str(node.data).encode()
    if chance.random() < 0.5:
        shim.orders.write_delay_ms = chance.choice([5, 50, 300])
    shim.orders.sync_delay_ms = chance.choice([50, 500, 2000])
    target.note(
        f"broker {node.broker_id} writes in {shim.orders.write_delay_ms} ms and syncs in "
        f"{shim.orders.sync_delay_ms} ms"
    )
    target.hold(chance.uniform(2, 6))
    shim.clear()
    target.note(f"the disk of broker {node.broker_id} is fast again")


def failing_disk(target: Target) -> None:
    """Writes or syncs of one broker fail with EIO; it may end itself, and is started again."""
    chance, node = target.chance, some_leader(target)
    shim = shim_of(target, node)
    shim.orders.directory = str(node.data).encode()
    what = chance.choice(["writes", "syncs"])
    count = chance.choice([1, 3, -1])
    setattr(shim.orders, f"failing_{what}", count)
    target.note(f"{'all' if count < 0 else count} {what} of broker {node.broker_id} fail")
    target.hold(chance.uniform(1, 4))
    shim.clear()
    if not node.is_running:
        target.note(f"broker {node.broker_id} has ended itself")
    node.kill()
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} was started again on a good disk")
