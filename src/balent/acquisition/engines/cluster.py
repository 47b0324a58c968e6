"""Ray, started or joined, and the workers on it.

A cluster of one's own listens on this machine only. Each worker has as many threads as this process, since the last
bits of a matrix product depend on them, and as many CPUs are reserved for it.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balent import by_name
from balent.acquisition.engines.likeness import Likeness
from balent.acquisition.engines.span_worker import Worker

# Read by Ray when it is imported: no report to its makers; all ports on 127.0.0.1, whatever the system.
PRIVATE = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
PATIENCE = 60.0  # seconds without a worker
Reference = Any  # ray.ObjectRef
Handle = Any  # ray.actor.ActorHandle
Call = Callable[[Handle], Reference]


@dataclass
class Cluster:
    """A connection to Ray. `own`: it was made here, and ends here. `folder`: where it logs, if it was made here."""

    own: bool
    folder: Path | None = None

    @classmethod
    def joined(cls, address: str | None, workers: int | None) -> "Cluster":
        """The cluster that this process is connected to already, the one at the address, or a new one."""
        ray = _ray(private=address is None)
        if ray.is_initialized():
            return cls(own=False)
        _hush(ray)
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        if address is not None:
            ray.init(address=address, **quiet)
            return cls(own=True)
        cpus = max(os.cpu_count() or 1, (workers or 1) * Likeness.here().threads)
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
        return cls(own=True, folder=Path(ray._private.worker._global_node.get_session_dir_path()))

    def workers(self, count: int | None) -> list[Handle]:
        """This many workers, or as many as there are CPUs for."""
        ray, expected = _ray(), Likeness.here()
        room = places(
            [float(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]], expected.threads
        )
        check_room(count, room, expected.threads)
        made = ray.remote(num_cpus=expected.threads, max_restarts=-1)(Worker)
        return [made.remote(expected, sys.path) for _ in range(count or room)]

    def put(self, thing: object) -> Reference:
        """In the object store: each machine fetches it once."""
        ray = _ray()
        _with_code(ray)
        try:
            return ray.put(thing)
        except TypeError as error:
            first = str(error).strip().split("\n")[0]
            raise TypeError(f"{type(thing).__name__} cannot be sent to workers: {first}; use engine='local'") from error

    def close(self) -> None:
        """Ends what was made here. Ray would leave a folder for each cluster that ever ran."""
        if self.own:
            _ray().shutdown()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            latest = self.folder.with_name("session_latest")
            if latest.is_symlink() and not latest.exists():
                latest.unlink(missing_ok=True)


def places(cpus: list[float], threads: int) -> int:
    """Workers of this many threads that there is room for, each on one machine."""
    return sum(int(count // threads) for count in cpus)


def check_room(count: int | None, room: int, threads: int) -> None:
    if count is not None and count < 1:
        raise ValueError(f"there must be at least one worker, but workers is {count}")
    if (count or 1) > room:
        raise ValueError(
            f"the cluster has room for {room} workers of {threads} threads, as many as this process uses, but "
            f"{count or 1} are wanted; ask for fewer (--workers), or set OMP_NUM_THREADS=1 for this process"
        )


def _ray(private: bool = False) -> Any:
    for name, value in PRIVATE.items() if private else ():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ImportError(
            "engine='ray' needs Ray; install it with: pip install 'balent[ray]', or use engine='local'"
        ) from None
    if private:  # if it was imported before, it has read the environment already
        ray._private.ray_constants.ENABLE_RAY_CLUSTER = False
    return ray


def pickled(thing: object) -> bytes:
    """As it is sent to workers."""
    ray = _ray()
    _with_code(ray)
    return ray.cloudpickle.dumps(thing)


def _with_code(ray: Any) -> None:
    """What comes from a user's file goes with its code: a worker cannot import it."""
    for module in by_name.files():
        ray.cloudpickle.register_pickle_by_value(module)


def _hush(ray: Any) -> None:
    """Ray prints a paragraph to standard output for each worker that dies; `Crew` says it in a line."""
    ray._private.worker.print_to_stdstream = lambda data, ignore_prefix: None


class Lost(RuntimeError):
    """A job whose worker died, with its machine or without."""


def ready(references: list[Reference]) -> list[Reference]:
    """Waits for the first of them."""
    return _ray().wait(references, num_returns=1)[0]


def result(reference: Reference, what: str) -> Any:
    """What a job gave; its own error if it failed, `Lost` if the worker did."""
    ray = _ray()
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ray.exceptions.RaySystemError):
            first = str(error.cause).split("\n")[0].removeprefix("System error: ")
            raise RuntimeError(
                f"a worker cannot load what it was sent: {first}; install the same packages there"
            ) from None
        if not isinstance(error.cause, Exception):
            raise
        error.cause.add_note(f"in {what}")
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise Lost(str(error).strip().split("\n")[0]) from None


def awaited(workers: list[Handle], say: Callable[[str], None]) -> None:
    """Until the first worker has started. Waiting is right where machines are added, but not in silence."""
    ray = _ray()
    pings = [worker.ping.remote() for worker in workers]
    if not ray.wait(pings, num_returns=1, timeout=PATIENCE)[0]:
        say(
            f"no worker has started in {PATIENCE:.0f} s: the CPUs of the cluster are taken, or its machines are not "
            "there yet; waiting for one"
        )


def back(worker: Handle) -> Reference:
    """Something to wait for: it is ready when a worker that died was started again, wherever there is room."""
    return worker.ping.options(max_task_retries=-1).remote()


def end(handles: list[Handle]) -> None:
    """Ends these workers at once."""
    ray = _ray()
    if ray.is_initialized():
        for handle in handles:
            ray.kill(handle, no_restart=True)
