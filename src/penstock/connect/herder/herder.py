"""The herder: one thread that makes what runs like what is wanted, round after round.

Requests write to the config log and return; the log's reader wakes the thread, which plans
(`planning.plan`) and acts, on that part of it all which is this worker's place in the group. A
failed connector or task is tried again after a growing pause, and its status says when; Apache's
worker would leave it dead.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import urlsplit

from penstock.connect.group.peers import WorkerPeers
from penstock.connect.group.place import ALONE, OUTSIDE, GroupPlace
from penstock.connect.group.told import Held
from penstock.connect.herder import planning
from penstock.connect.herder.connectors import HostedConnector, kind_of, reload_ms, version_of
from penstock.connect.herder.duties import GroupDuties
from penstock.connect.herder.loggers import LoggerLevels
from penstock.connect.herder.metrics import worker_gauges
from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.herder.running_set import (
    ConnectorEntry,
    RunningSet,
    TaskEntry,
    TaskJob,
)
from penstock.connect.herder.stores import ConnectStores
from penstock.connect.running.control import ControlServer, TaskRun
from penstock.connect.running.spec import TaskSpec
from penstock.connect.settings import WorkerSettings
from penstock.connect.store.config_records import (
    LogEntry,
    LoggerSet,
    RestartWanted,
    TargetState,
)
from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.status_records import RunState, RunStatus, TaskId, TopicUsed
from penstock.errors import PenstockError
from penstock.queries.restart import Attempts
from penstock.telemetry.metrics import Gauge

log = logging.getLogger("penstock.connect")

Launch: TypeAlias = Callable[[TaskSpec, Callable[[TaskRun, str | None], None]], TaskJob]
_LOOK_S = 0.5
_CATCH_UP_S = 5.0
_HEALTHY_MS = 60_000  # A task that ran so long counts as well: its failures begin anew.


class Herder:
    """A TaskWatcher, too: tasks tell it how they are. And the GroupWork of a membership."""

    def __init__(
        self,
        settings: WorkerSettings,
        launch: Launch,
        control: ControlServer,
        *,
        token: str,
        worker_id: str,
        peers: WorkerPeers,
    ) -> None:
        self._settings = settings
        self._launch = launch
        self._control = control
        self._token = token
        self.worker_id = worker_id
        self.place = OUTSIDE if settings.is_distributed else ALONE
        self.levels = LoggerLevels()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._running = RunningSet()
        self._reconfigured: set[str] = set()
        self._restarts: list[RestartWanted] = []
        self._poke: Callable[[], None] = lambda: None
        self.stores = ConnectStores(settings, self._hear_change, self._hear_wish)
        self.duties = GroupDuties(settings, self.stores, peers, lambda: self.place)
        control.watch(self)
        self._thread = threading.Thread(target=self._herd, name="herder", daemon=True)

    def start(self) -> None:
        """Begin to make what runs like what is wanted."""
        self._thread.start()

    def halt(self) -> None:
        """End all that runs in good order; statuses then say that nobody runs it."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._stop_tasks(list(self._running.tasks))
        for name in list(self._running.connectors):
            self._stop_connector(name)
            self._tell_given_up(TaskId(name))

    def close(self) -> None:
        """Leave the topics."""
        self.stores.close()

    # The worker behind a member of the group ---------------------------------------------------

    def watch_changes(self, poke: Callable[[], None]) -> None:
        """Call this one whenever there may be something for the group."""
        self._poke = poke

    @property
    def held(self) -> Held:
        with self._running.lock:
            running = {*self._running.tasks, *map(TaskId, self._running.connectors)}
            return frozenset(running) | (self.place.owned or frozenset())

    @property
    def configured(self) -> Held:
        return planning.configured_items(self.stores.connectors)

    @property
    def config_offset(self) -> int:
        return self.stores.config_offset

    @property
    def is_settled(self) -> bool:
        return self.held <= (self.place.owned or frozenset())

    def catch_up(self) -> None:
        try:
            self.stores.refresh(_CATCH_UP_S)
        except PenstockError as error:
            log.warning("The topics of Connect were not read to their ends: %s", error)

    def given_up(self, lost: Mapping[str, Held]) -> Held:
        found: set[TaskId] = set()
        for url, items in lost.items():
            worker_id = urlsplit(url).netloc
            statuses = {of: self.stores.status(of) for of in items}
            found |= {
                of
                for of, one in statuses.items()
                if one is not None
                and (one.state, one.worker_id) == (RunState.UNASSIGNED, worker_id)
            }
        return frozenset(found)

    def take(self, place: GroupPlace) -> None:
        if place.owned != self.place.owned or place.is_leader != self.place.is_leader:
            log.info(
                "Generation %d: this worker %s, and has %d connectors and tasks",
                place.generation,
                "leads" if place.is_leader else "follows",
                len(place.owned or ()),
            )
        self.place = place
        self._wake.set()

    def _hear_change(self) -> None:
        self._wake.set()
        self._poke()

    def _hear_wish(self, wish: RestartWanted | LoggerSet) -> None:
        if isinstance(wish, LoggerSet):
            self.levels.change(wish.logger, wish.level)
            return
        with self._running.lock:
            self._restarts.append(wish)
        self._wake.set()

    # What requests ask for ---------------------------------------------------------------------

    def restart(self, of: TaskId) -> None:
        """End one, so that the next round starts it; its failures are forgotten."""
        if of.task is None:
            self._stop_connector(of.connector)
            with self._running.lock:
                self._running.connectors.pop(of.connector, None)
        else:
            self._stop_tasks([of])
        self._wake.set()

    def _restart_asked(self) -> None:
        """Restart what is this worker's of what somebody wants restarted."""
        with self._running.lock:
            wishes, self._restarts = self._restarts, []
        for wish in wishes:
            statuses = self.stores.statuses(wish.name)
            mine = [of for of in meant_by(wish, statuses) if self.place.owns(of)]
            for of in mine:
                self._tell(of, RunState.RESTARTING, version=None)
            for of in mine:
                self.restart(of)

    # A TaskWatcher -----------------------------------------------------------------------------

    def on_state(self, run: TaskRun, state: str) -> None:
        with self._running.lock:
            entry = self._running.current(run)
            if entry is None or entry.is_ending:
                return
            entry.has_run, entry.since_ms = True, _now_ms()
        self._tell(TaskId(run.connector, run.task), RunState(state))

    def on_failure(self, run: TaskRun, trace: str) -> None:
        with self._running.lock:
            entry = self._running.current(run)
            if entry is None or entry.is_ending or entry.is_failed:
                return
            entry.is_failed = True
            entry.attempts = self._after_failure(entry.attempts, self._was_well(entry))
            told = f"{trace}{self._when(entry.attempts)}"
        log.error("Task %s-%d failed: %s", run.connector, run.task, trace.rstrip())
        self._tell(TaskId(run.connector, run.task), RunState.FAILED, trace=told)
        self._wake.set()

    def on_topic(self, run: TaskRun, topic: str) -> None:
        if self._settings.tracks_topics:
            used = TopicUsed(
                connector=run.connector, topic=topic, task=run.task, discovered_ms=_now_ms()
            )
            self.stores.use_topic(used)

    def on_counts(self, run: TaskRun, counts: dict[str, int]) -> None:
        with self._running.lock:
            entry = self._running.current(run)
            if entry is not None:
                entry.counts = counts

    def gauges(self) -> Iterable[Gauge]:
        """What a scrape shows of this worker."""
        return worker_gauges(
            self._running.counted(),
            {of: self.stores.status(of) for of in self.held},
            self.place,
        )

    def on_reconfigure(self, run: TaskRun) -> None:
        self._ask_reconfiguration(run.connector)

    def keep_offsets(self, run: TaskRun, records: list[LogEntry]) -> None:
        with self._running.lock:
            if self._running.current(run) is None:
                raise PenstockError("This task was replaced by another run of it.")
        self.stores.write_offsets(records)

    def verify(self, run: TaskRun) -> None:
        """PenstockError if a run is over that was about to write (KIP-618)."""
        of = TaskId(run.connector, run.task)
        self.stores.refresh(_CATCH_UP_S)
        stored = self.stores.connectors.get(run.connector)
        with self._running.lock:
            entry = self._running.current(run)
            if entry is None or entry.is_ending or not self.place.owns(of) or stored is None:
                raise PenstockError("This task was given to another run of it.")
            now = (stored.config, *stored.tasks[run.task : run.task + 1])
            if now != (entry.connector_config, entry.config) or stored.is_fencing_due:
                raise PenstockError("The task's configuration has changed since it was started.")

    def pid_of(self, of: TaskId) -> int | None:
        """The process that a task runs in; None: it does not."""
        with self._running.lock:
            entry = self._running.tasks.get(of)
        return None if entry is None else self._control.pid(entry.job.run)

    # The thread --------------------------------------------------------------------------------

    def _herd(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                acted = self._round()
            except Exception:
                log.exception("A round of the herder failed, and is tried again")
                acted = False
            if not acted:
                self._wake.wait(_LOOK_S)

    def _round(self) -> bool:
        """Whether there was something to do."""
        if self.place.is_leader and self._settings.is_distributed:
            self.duties.renew_key()
        wanted = self.stores.connectors
        actions = planning.plan(
            wanted,
            self._running.shown_connectors(),
            self._running.shown_tasks(),
            now_ms=_now_ms(),
            place=self.place,
        )
        stops = [action.id for action in actions if isinstance(action, planning.StopTask)]
        if stops:
            self._stop_tasks(stops)
            self._forget_removed(stops, wanted)
        for action in actions:
            if self._stopping.is_set():
                break
            if not isinstance(action, planning.StopTask):
                self._act(action, wanted)
        self._restart_asked()
        self._reconfigure_asked()
        self._forget_leftovers()
        if actions:
            self._poke()
        return bool(actions)

    def _act(self, action: planning.Action, wanted: Mapping[str, StoredConnector]) -> None:
        match action:
            case planning.StopConnector(name=name, is_deleted=True):
                self._forget_connector(name)
            case planning.StopConnector(name=name):
                self._move_connector(name)
            case planning.SettleConnector(name=name):
                self._settle(wanted[name])
            case planning.DropTasks(name=name):
                self._put_tasks(name, [])
            case planning.StartConnector(name=name):
                self._start_connector(wanted[name])
            case planning.StartTask(id=of):
                self._start_task(wanted[of.connector], of)
            case planning.PauseTask(id=of, is_paused=is_paused):
                self._pause_task(of, is_paused)

    # Connectors --------------------------------------------------------------------------------

    def _start_connector(self, stored: StoredConnector) -> None:
        name = stored.name
        self._stop_connector(name)
        with self._running.lock:
            known = self._running.connectors.get(name)
            is_same = known is not None and known.config == stored.config
            entry = ConnectorEntry(config=stored.config, target=stored.target)
            if known is not None and is_same:
                entry.attempts = known.attempts
            self._running.connectors[name] = entry
        try:
            entry.hosted = HostedConnector(
                stored.config,
                self._settings.given,
                lambda: self._ask_reconfiguration(name),
                lambda error: self._fail_connector(name, entry, error),
            )
            entry.reload_ms = self._reload_ms(stored, stored.config)
            entry.hosted.start()
            self._tell(TaskId(name), RunState.RUNNING)
            self._put_tasks(name, entry.hosted.task_configs())
        except Exception as error:  # noqa: BLE001  (a plug-in may raise anything)
            self._fail_connector(name, entry, error)

    def _fail_connector(self, name: str, entry: ConnectorEntry, error: Exception) -> None:
        entry.is_failed = True
        entry.attempts = self._after_failure(entry.attempts, False)
        trace = "".join(traceback.format_exception(error))
        log.error("Connector %s failed: %s", name, error)
        self._tell(TaskId(name), RunState.FAILED, trace=f"{trace}{self._when(entry.attempts)}")

    def _settle(self, stored: StoredConnector) -> None:
        """Pause or stop it: the connector itself ends in both cases."""
        self._stop_connector(stored.name)
        with self._running.lock:
            entry = ConnectorEntry(config=stored.config, target=stored.target)
            self._running.connectors[stored.name] = entry
        is_paused = stored.target is TargetState.PAUSED
        self._tell(TaskId(stored.name), RunState.PAUSED if is_paused else RunState.STOPPED)
        if is_paused and not stored.tasks:
            self._make_tasks_while_paused(stored)

    def _make_tasks_while_paused(self, stored: StoredConnector) -> None:
        try:
            hosted = HostedConnector(
                stored.config, self._settings.given, lambda: None, lambda _: None
            )
            hosted.start()
            self._put_tasks(stored.name, hosted.task_configs())
            hosted.stop()
        except Exception as error:  # noqa: BLE001  (a plug-in may raise anything)
            self._fail_connector(stored.name, self._running.connectors[stored.name], error)

    def _stop_connector(self, name: str) -> None:
        with self._running.lock:
            entry = self._running.connectors.get(name)
            hosted = None if entry is None else entry.hosted
            if entry is not None:
                entry.hosted = None
        if hosted is not None:
            hosted.stop()

    def _move_connector(self, name: str) -> None:
        """Another worker has it from now on."""
        self._stop_connector(name)
        with self._running.lock:
            self._running.connectors.pop(name, None)
        self._tell_given_up(TaskId(name))

    def _forget_connector(self, name: str) -> None:
        self._stop_connector(name)
        with self._running.lock:
            self._running.connectors.pop(name, None)
        for topic in self.stores.topics(name):
            self.stores.use_topic(TopicUsed(connector=name, topic=topic))
        for of in self.stores.statuses(name):
            self.stores.set_status(of, None)

    def _ask_reconfiguration(self, name: str) -> None:
        with self._running.lock:
            self._reconfigured.add(name)
        self._wake.set()

    def _reconfigure_asked(self) -> None:
        with self._running.lock:
            names, self._reconfigured = self._reconfigured, set()
        for name in names:
            stored, entry = self.stores.connectors.get(name), self._running.connectors.get(name)
            if stored is None or entry is None or entry.hosted is None:
                continue
            try:
                self._put_tasks(name, entry.hosted.task_configs())
            except Exception as error:  # noqa: BLE001  (a plug-in may raise anything)
                self._fail_connector(name, entry, error)

    def _put_tasks(self, name: str, configs: list[dict[str, str]]) -> None:
        """Put new tasks in force; a leader that cannot be asked now is asked again."""
        try:
            self.duties.put_tasks(name, configs)
        except RequestRefused as error:
            log.info("The tasks of %s are of no use any more: %s", name, error)
        except PenstockError as error:
            log.warning("The tasks of %s could not be written, and will be: %s", name, error)
            self._stopping.wait(_LOOK_S)
            self._ask_reconfiguration(name)

    # Tasks -------------------------------------------------------------------------------------

    def _start_task(self, stored: StoredConnector, of: TaskId) -> None:
        assert of.task is not None
        if not self._is_fenced(stored):
            return
        with self._running.lock:
            known = self._running.tasks.get(of)
            attempts = Attempts() if known is None else known.attempts
            spec = self._spec(stored, of.task)
            entry = TaskEntry(
                job=self._launch(spec, self._on_end),
                connector_config=stored.config,
                config=stored.tasks[of.task],
                is_paused=spec.is_paused,
                attempts=attempts,
                reload_ms=self._reload_ms(stored, {**stored.config, **stored.tasks[of.task]}),
            )
            self._running.tasks[of] = entry
        entry.job.start()

    def _reload_ms(self, stored: StoredConnector, written: Mapping[str, str]) -> int | None:
        return reload_ms(stored.config, written, self._settings.given, _now_ms())

    def _is_fenced(self, stored: StoredConnector) -> bool:
        """Whether nothing of an earlier round can write any more; if not now, the next round."""
        if not self._settings.exactly_once_sources or not stored.is_fencing_due:
            return True
        if kind_of(stored.config) != "source":
            return True
        try:
            self.duties.fence(stored.name)
            self.stores.refresh(_CATCH_UP_S)
        except PenstockError as error:
            log.warning("Tasks of %s wait for the round of fencing: %s", stored.name, error)
            self._stopping.wait(_LOOK_S)
            return False
        return self.stores.connectors.get(stored.name) == replace(
            stored, is_fencing_due=False, fenced_count=len(stored.tasks)
        )

    def _spec(self, stored: StoredConnector, task: int) -> TaskSpec:
        return TaskSpec(
            connector=stored.name,
            task=task,
            run=self._running.next_run(),
            is_source=kind_of(stored.config) == "source",
            connector_config=dict(stored.config),
            task_config=dict(stored.tasks[task]),
            settings=self._settings,
            control=self._control.address,
            token=self._token,
            is_paused=stored.target is TargetState.PAUSED,
            offsets=self.stores.offset_records(stored.name),
        )

    def _pause_task(self, of: TaskId, is_paused: bool) -> None:
        with self._running.lock:
            entry = self._running.tasks.get(of)
        if entry is None:
            return
        if self._control.command(entry.job.run, "pause" if is_paused else "resume"):
            entry.is_paused = is_paused
        else:
            self._stopping.wait(_LOOK_S)  # It has no line yet, or no more: the next round sees it.

    def _on_end(self, run: TaskRun, trouble: str | None) -> None:
        """Its job is over: as it was told to, or because Spark gave up on it."""
        with self._running.lock:
            entry = self._running.current(run)
            if entry is None or entry.is_ending or entry.is_failed:
                return
        self.on_failure(run, trouble or "The task ended without being told to.\n")

    def _stop_tasks(self, ids: Iterable[TaskId]) -> None:
        """End tasks together, each within the time that there is for all; then by force."""
        with self._running.lock:
            entries = {of: self._running.tasks[of] for of in ids if of in self._running.tasks}
            for entry in entries.values():
                entry.is_ending = True
        told = {of for of, one in entries.items() if self._control.command(one.job.run, "stop")}
        deadline_s = time.monotonic() + self._settings.shutdown_s
        for of, entry in entries.items():
            left_s = deadline_s - time.monotonic() if of in told else 0.0
            if not entry.job.join(max(0.0, left_s)):
                entry.job.cancel()
                entry.job.join(self._settings.shutdown_s)
        for of in entries:
            with self._running.lock:
                self._running.tasks.pop(of, None)
            self._tell_given_up(of)

    def _forget_removed(self, ids: Iterable[TaskId], wanted: Mapping[str, StoredConnector]) -> None:
        for of in ids:
            stored = wanted.get(of.connector)
            is_there = stored is not None and of.task is not None and of.task < len(stored.tasks)
            if not is_there or stored is None or stored.target is TargetState.STOPPED:
                self.stores.set_status(of, None)

    def _forget_leftovers(self) -> None:
        """Statuses of tasks that a connector here has no more, and that nobody runs."""
        for name, stored in self.stores.connectors.items():
            if not self.place.owns(TaskId(name)):
                continue
            for of, status in self.stores.statuses(name).items():
                is_gone = of.task is not None and of.task >= len(stored.tasks)
                if is_gone and status.state is RunState.UNASSIGNED and of not in self.held:
                    self.stores.set_status(of, None)

    # Statuses ----------------------------------------------------------------------------------

    def _tell_given_up(self, of: TaskId) -> None:
        """Nobody runs it now; another worker that says it does is right."""
        known = self.stores.status(of)
        if known is None or known.worker_id == self.worker_id:
            self._tell(of, RunState.UNASSIGNED, version=None)

    def _tell(
        self, of: TaskId, state: RunState, *, trace: str | None = None, version: str | None = ""
    ) -> None:
        """Write how one is; that cannot fail what is told of."""
        stored = self.stores.connectors.get(of.connector)
        known = None if stored is None else version_of(stored.config)
        status = RunStatus(
            state=state,
            worker_id=self.worker_id,
            generation=self.place.generation,
            trace=trace,
            version=known if version == "" else version,
        )
        try:
            self.stores.set_status(of, status)
        except PenstockError as error:
            log.warning("The status of %s could not be written: %s", of, error)

    def _after_failure(self, attempts: Attempts, progressed: bool) -> Attempts:
        if not self._settings.restarts_failed:
            return attempts.given_up()
        return attempts.failed(now_ms=_now_ms(), progressed=progressed, in_a_row_max=None)

    def _was_well(self, entry: TaskEntry) -> bool:
        return entry.has_run and _now_ms() - entry.since_ms > _HEALTHY_MS

    def _when(self, attempts: Attempts) -> str:
        if attempts.resume_ms is None:
            return ""
        pause_s = max(0, attempts.resume_ms - _now_ms()) / 1000
        return f"Restarted in {pause_s:.0f} s, for the {attempts.total}. time.\n"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def meant_by(wish: RestartWanted, statuses: Mapping[TaskId, RunStatus]) -> list[TaskId]:
    """What of a connector is to be restarted."""
    return [
        of
        for of, status in statuses.items()
        if (wish.include_tasks or of.task is None)
        and (not wish.only_failed or status.state is RunState.FAILED)
    ]
