"""kill -9 and SIGSTOP: of a leader, the controller, ZooKeeper, the guardian, of all at once."""

import signal

import psutil
from tests.faults.deployment import BrokerNode
from tests.faults.injectors.fault import Target


def some_leader(target: Target) -> BrokerNode:
    """The leader of a partition under load."""
    partition = target.chance.randrange(target.partitions)
    return target.deployment.leader_of(target.topic, partition)


def kill_and_start(target: Target, node: BrokerNode, down_s: float) -> None:
    target.note(f"kill -9 of broker {node.broker_id}")
    node.kill()
    target.hold(down_s)
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} is back")


def kill_leader(target: Target) -> None:
    kill_and_start(target, some_leader(target), target.chance.uniform(0.3, 3))


def kill_controller(target: Target) -> None:
    kill_and_start(target, target.deployment.controller(), target.chance.uniform(0.3, 3))


def kill_any(target: Target) -> None:
    node = target.chance.choice(list(target.deployment.brokers.values()))
    kill_and_start(target, node, target.chance.uniform(0, 0.5))


def kill_all(target: Target) -> None:
    target.note("kill -9 of all brokers")
    for node in target.deployment.brokers.values():
        node.kill()
    target.hold(target.chance.uniform(0, 1))
    target.deployment.start_missing()
    target.note("all brokers are back")


def kill_in_turn(target: Target) -> None:
    """Two of three, one after the other, each dead when the next one dies."""
    nodes = target.chance.sample(
        list(target.deployment.brokers.values()), max(1, len(target.deployment.brokers) - 1)
    )
    for node in nodes:
        target.note(f"kill -9 of broker {node.broker_id}")
        node.kill()
        target.hold(target.chance.uniform(0.2, 1.5))
    target.chance.shuffle(nodes)
    for node in nodes:
        node.launch()
        node.wait_until_ready(timeout_s=90)
        target.note(f"broker {node.broker_id} is back")


def kill_successor(target: Target) -> None:
    """A leader dies, and whoever takes over dies a moment later."""
    partition = target.chance.randrange(target.partitions)
    deployment = target.deployment
    killed = []
    for _ in range(max(1, len(deployment.brokers) - 1)):
        node = deployment.living_leader_of(target.topic, partition)
        target.hold(target.chance.choice([0, 0, 0.02, 0.05, 0.1, 0.3]))
        target.note(f"kill -9 of broker {node.broker_id}, which leads partition {partition}")
        node.kill()
        killed.append(node)
    for node in killed:
        node.launch()
    for node in killed:
        node.wait_until_ready(timeout_s=90)
        target.note(f"broker {node.broker_id} is back")


def pause_followers(target: Target) -> None:
    """The followers hold still, the leader goes on for a while and dies with what it has."""
    partition = target.chance.randrange(target.partitions)
    leader = target.deployment.leader_of(target.topic, partition)
    others = [node for node in target.deployment.running() if node is not leader]
    target.note(f"SIGSTOP to all brokers but {leader.broker_id}")
    for node in others:
        node.pause()
    target.hold(target.chance.uniform(0.3, 1.5))
    target.note(f"kill -9 of broker {leader.broker_id}, SIGCONT to the others")
    leader.kill()
    for node in others:
        node.resume()
    target.hold(target.chance.uniform(1, 3))
    leader.launch()
    leader.wait_until_ready(timeout_s=90)
    target.note(f"broker {leader.broker_id} is back")


def do_nothing(target: Target) -> None:
    """Even without a fault the promises must hold."""
    target.hold(2)


def return_first(target: Target) -> None:
    """Who fell first, and missed what came after, is the first to be back, all alone."""
    first, *others = target.chance.sample(
        list(target.deployment.brokers.values()), len(target.deployment.brokers)
    )
    target.note(f"kill -9 of broker {first.broker_id}")
    first.kill()
    target.hold(target.chance.uniform(0.5, 2))
    for node in others:
        target.note(f"kill -9 of broker {node.broker_id}")
        node.kill()
        target.hold(target.chance.choice([0, 0.5]))
    first.launch()
    target.note(f"broker {first.broker_id} starts alone")
    target.hold(target.chance.uniform(2, 5))
    for node in others:
        node.launch()
    for node in (first, *others):
        node.wait_until_ready(timeout_s=90)
    target.note("all are back")


def stop_in_order(target: Target) -> None:
    """SIGTERM and start again: a rolling restart, one broker per blow."""
    node = target.chance.choice(list(target.deployment.brokers.values()))
    target.note(f"SIGTERM to broker {node.broker_id}")
    node.stop(timeout_s=90)
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} is back")


def kill_guardian(target: Target) -> None:
    """The guardian dies first, so that only the session's end or the controller tells."""
    node = some_leader(target)
    for guardian in node.guardians():
        target.note(f"kill -9 of process {guardian.pid}, started by broker {node.broker_id}")
        try:
            guardian.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            target.note("it was gone already")
    kill_and_start(target, node, target.chance.uniform(1, 5))


def pause(target: Target, node: BrokerNode) -> None:
    seconds = target.chance.choice([0.5, 2, 5, 8])
    target.note(f"SIGSTOP to broker {node.broker_id} for {seconds} s")
    node.pause()
    target.hold(seconds)
    node.resume()
    target.note(f"SIGCONT to broker {node.broker_id}")


def pause_leader(target: Target) -> None:
    pause(target, some_leader(target))


def pause_controller(target: Target) -> None:
    pause(target, target.deployment.controller())


def pause_zookeeper(target: Target) -> None:
    server = target.deployment.zookeepers[0]
    seconds = target.chance.choice([1, 4, 8])
    target.note(f"SIGSTOP to ZooKeeper for {seconds} s")
    server.pause()
    target.hold(seconds)
    server.resume()
    target.note("SIGCONT to ZooKeeper")


def kill_zookeeper(target: Target) -> None:
    server = target.deployment.zookeepers[0]
    target.note("kill -9 of ZooKeeper")
    server.kill()
    target.hold(target.chance.uniform(0.5, 6))
    server.start()
    target.note("ZooKeeper is back")


def kill_zookeeper_and_leader(target: Target) -> None:
    """Nobody can be elected until ZooKeeper is back."""
    server, node = target.deployment.zookeepers[0], some_leader(target)
    target.note(f"kill -9 of ZooKeeper and of broker {node.broker_id}")
    server.kill()
    node.kill()
    target.hold(target.chance.uniform(0.5, 3))
    server.start()
    target.hold(target.chance.uniform(0, 2))
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note("both are back")


def kill_ensemble_leader(target: Target) -> None:
    assert target.deployment.ensemble is not None
    server = target.deployment.ensemble.leader
    target.note(f"kill -9 of ZooKeeper {server.my_id}, the leader of three")
    server.kill()
    target.hold(target.chance.uniform(2, 5))
    server.start()
    target.note(f"ZooKeeper {server.my_id} is back")


def lose_quorum(target: Target) -> None:
    """Two of three ZooKeepers gone for half a minute: reads and writes go on all the same."""
    servers = target.chance.sample(target.deployment.zookeepers, 2)
    target.note("kill -9 of two ZooKeepers of three")
    for server in servers:
        server.kill()
    target.hold(30)
    for server in servers:
        server.launch()
    for server in servers:
        server.wait_until_ready()
    target.note("the ZooKeepers are back")


def mix(target: Target) -> None:
    """Several troubles at once, in any order: what is down stays down while the next one comes."""
    deployment, chance = target.deployment, target.chance
    for _ in range(chance.randint(2, 5)):
        running = deployment.running()
        zookeeper = deployment.zookeepers[0]
        acts: list[str] = ["zookeeper"] if zookeeper.process is not None else ["wake"]
        acts += ["kill", "kill", "pause"] if len(running) > 1 else ["wake"]
        act = chance.choice([*acts, "wake"])
        if act == "zookeeper":
            target.note("kill -9 of ZooKeeper")
            zookeeper.kill()
        elif act == "kill":
            node = chance.choice(running)
            target.note(f"kill -9 of broker {node.broker_id}")
            node.kill()
        elif act == "pause":
            node = chance.choice(running)
            target.note(f"SIGSTOP to broker {node.broker_id}")
            node.pause()
        else:
            wake_one(target)
        target.hold(chance.choice([0, 0.1, 0.5, 1.5, 4]))
    target.note("all are to come back")
    deployment.heal()


def wake_one(target: Target) -> None:
    """Start or resume one of those that are down, or ZooKeeper."""
    deployment = target.deployment
    zookeeper = deployment.zookeepers[0]
    if zookeeper.process is None:
        target.note("ZooKeeper starts")
        zookeeper.start()
        return
    for node in deployment.brokers.values():
        if node.is_paused:
            target.note(f"SIGCONT to broker {node.broker_id}")
            node.resume()
            return
        if not node.is_running:
            target.note(f"broker {node.broker_id} starts")
            node.kill()
            node.launch()
            return
