"""The faults do what their names say: a test of a cluster is worth no more than its injuries."""

import errno
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.deployment import BrokerNode, Host, Plan
from tests.faults.injectors import damage, disks, network, shim
from tests.support.processes import HOST, python
from tests.support.slow_link import START, SlowLink
from tests.support.waiting import eventually


def need(means: Callable[[], str | None]) -> None:
    reason = means()
    if reason is not None:
        pytest.skip(reason)


ACT = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
def tried(call, *args):
    begun = time.monotonic()
    try:
        call(file, *args)
    except OSError as error:
        return error.errno
    return f"{time.monotonic() - begun:.1f}s"
acts = [tried(os.write, b"a"), tried(os.pwrite, b"a", 0), tried(os.writev, [b"a"]), tried(os.fsync)]
print(round(time.time() - time.clock_gettime(time.CLOCK_TAI) + float(sys.argv[2])), *acts)
"""


def test_the_shim_obeys_its_orders(tmp_path: Path) -> None:
    need(shim.missing_means)
    orders = shim.Shim(tmp_path / "orders")
    library = shim.compiled(tmp_path)
    place = tmp_path / "data"
    place.mkdir()
    ahead_s = time.clock_gettime(time.CLOCK_TAI) - time.time()

    def act() -> list[str]:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "FAULT_SHIM_ORDERS": str(tmp_path / "orders"),
        }
        command = [python(), "-c", ACT, str(place / "file"), str(ahead_s)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def is_done(word: str) -> bool:
        return word.endswith("s")  # An act that fails tells its error.

    shift, *acts = act()
    assert shift == "0" and all(map(is_done, acts))
    orders.orders.clock_shift_ns = -shim.HOUR_NS
    assert act()[0] == "-3600"
    orders.clear()
    orders.orders.directory = str(place).encode()
    orders.orders.write_delay_ms = 300
    assert all(float(word.removesuffix("s")) >= 0.3 for word in act()[1:4])
    orders.orders.write_delay_ms = 0
    orders.orders.failing_writes, orders.orders.failing_syncs = 2, -1
    first, second, third, synced = act()[1:]
    assert first == second == synced == str(errno.EIO)
    assert is_done(third)
    orders.orders.directory = b"/elsewhere"
    assert all(map(is_done, act()[1:]))


def test_a_cut_is_silent_goes_one_way_and_heals() -> None:
    need(network.missing_means)
    net = network.Network()
    try:
        net.create(["one", "two"])
        address = net.addresses["two"]
        listen = ["ip", "netns", "exec", net.namespace("two"), python(), "-c", ECHO, address]
        with subprocess.Popen(listen, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline())
                assert ask(net, address, port) == "heard"
                net.cut("one", "two")
                assert ask(net, address, port, timeout_s=1) == "TimeoutError"
                net.heal()
                assert ask(net, address, port) == "heard"
                net.cut("two", "one")  # The question arrives, the answer does not.
                assert ask(net, address, port, timeout_s=1) == "TimeoutError"
                with socket.create_connection((address, port), 60) as outside:
                    outside.sendall(b"?")
                    assert outside.recv(9) == b"heard"
                net.heal()
                assert ask(net, address, port) == "heard"
            finally:
                server.kill()
    finally:
        net.remove()


ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.settimeout(60)
    try:
        client.recv(1)
        client.sendall(b"heard")
    except OSError:
        pass
"""
ASK = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])) as client:
        client.sendall(b"?")
        print(client.recv(9).decode())
except OSError as error:
    print(type(error).__name__)
"""


def ask(net: network.Network, address: str, port: int, *, timeout_s: float = 60) -> str:
    command = ["ip", "netns", "exec", net.namespace("one"), python(), "-c", ASK, address]
    command += [str(port), str(timeout_s)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    need(disks.loop_missing)
    node = BrokerNode(tmp_path / "broker", 1, {}, Host())
    deployment = disks.LoopDeployment(directory=tmp_path, plan=Plan(disk="loop"))
    with deployment.stack:
        deployment.prepare(node)
        node.data.mkdir()
        synced, unsynced = node.data / "synced", node.data / "unsynced"
        with synced.open("wb") as file:
            file.write(b"kept" * 1000)
            file.flush()
            os.fsync(file.fileno())
            file.write(b"lost" * 1000)
        unsynced.write_bytes(b"lost")
        first_boot = subprocess.check_output([*node.prefix, "cat", disks.BOOT_ID])
        deployment.cut_power(node)
        assert synced.read_bytes() == b"kept" * 1000
        assert not unsynced.exists()
        assert subprocess.check_output([*node.prefix, "cat", disks.BOOT_ID]) != first_boot


@pytest.mark.parametrize("way", [*damage.LOG_DAMAGE, damage.remove], ids=lambda way: way.__name__)
def test_each_damage_changes_the_file(tmp_path: Path, way: Callable[..., str]) -> None:
    path = tmp_path / "file"
    for seed in range(20):
        before = bytes(range(1, 256)) * 40
        path.write_bytes(before)
        assert path.name in way(path, random.Random(seed))
        assert not path.exists() or path.read_bytes() != before


def test_a_slow_link_holds_a_request_and_what_is_behind_it_and_nobody_else() -> None:
    held, may_pass = threading.Event(), threading.Event()

    def hold(api_key: int) -> None:
        if api_key == 24:
            held.set()
            assert may_pass.wait(30)

    def request(api_key: int) -> bytes:
        return START.pack(2 + 3, api_key) + b"abc"

    with (
        socket.create_server((HOST, 0)) as server,
        SlowLink(server.getsockname()[1], hold) as link,
        socket.create_connection((HOST, link.port)) as first,
        server.accept()[0] as first_heard,
        socket.create_connection((HOST, link.port)) as second,
        server.accept()[0] as second_heard,
    ):
        first.sendall(request(24) + request(0))
        assert held.wait(30)
        second.sendall(request(0))
        assert second_heard.recv(100) == request(0)
        second_heard.sendall(b"answer")
        assert second.recv(100) == b"answer"
        with pytest.raises(BlockingIOError):
            first_heard.recv(100, socket.MSG_DONTWAIT)
        may_pass.set()
        assert first_heard.recv(2 * len(request(0)), socket.MSG_WAITALL) == request(24) + request(0)


def test_a_pause_stops_a_process_and_lets_it_go_on(tmp_path: Path) -> None:
    node = BrokerNode(tmp_path / "broker", 1, {}, Host())
    ticks = tmp_path / "ticks"
    script = f"import time\nwhile True: open({str(ticks)!r}, 'a').write('.'); time.sleep(0.01)"
    node.process = subprocess.Popen([python(), "-c", script], start_new_session=True)
    try:
        eventually(lambda: ticks.exists() and ticks.stat().st_size > 3)
        node.pause()
        stopped = eventually(lambda: state_of(node.pid) == "T")
        size = ticks.stat().st_size
        threading.Event().wait(0.2)
        assert stopped
        assert ticks.stat().st_size == size
        node.resume()
        eventually(lambda: ticks.stat().st_size > size)
    finally:
        node.kill()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
