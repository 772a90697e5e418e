"""Worker processes that work on chunks beside this one; a dead one is noticed and named."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from keras_bert_impl.data.chunks import Chunk

__all__ = ["Maker", "make_chunks"]

# The chunk that a process works on, and the next.
_AHEAD = 2


class Maker(Protocol):
    """Something picklable that makes something picklable, or files, of a chunk."""

    def make(self, chunk: Chunk) -> Any: ...


def make_chunks(maker: Maker, chunks: Iterable[Chunk], workers: int) -> Iterator[tuple[int, Any]]:
    """Makes all chunks and yields the number and result of each when it is done, in any order.

    Memory holds two chunks for each worker and a few more.

    Args:
        maker: does the work, in this process, and in `workers` - 1 others of one thread each,
            without GPU. They are spawned, so a script needs ``if __name__ == "__main__":``.
        chunks: what to make.
        workers: number of processes, this one counted.

    Raises:
        ValueError, OSError: as `maker.make`.
        ChildProcessError: a worker process ended, killed for instance; its chunk is named.
    """
    if workers == 1:
        for chunk in chunks:
            yield chunk.number, maker.make(chunk)
        return
    pool = _Pool(maker, workers)
    try:
        yield from pool.run(iter(chunks))
    finally:
        pool.stop()


class _Pool:
    """This process and `workers` - 1 others. TensorFlow takes seconds to import in those."""

    def __init__(self, maker: Maker, workers: int) -> None:
        self._maker = maker
        pickled = pickle.dumps(maker)
        self._workers = [_Worker(pickled) for _ in range(workers - 1)]

    def run(self, chunks: Iterator[Chunk]) -> Iterator[tuple[int, Any]]:
        chunk = next(chunks, None)
        while chunk is not None or any(worker.chunks for worker in self._workers):
            idle = min(self._workers, key=lambda worker: worker.load)
            if chunk is not None and idle.load < _AHEAD:
                idle.send(chunk)
                chunk = next(chunks, None)
                continue
            talking = [worker for worker in self._workers if worker.chunks or not worker.is_ready]
            ready = wait([worker.connection for worker in talking], None if chunk is None else 0)
            for worker in talking:
                if worker.connection in ready and (done := worker.receive()) is not None:
                    yield done
            if not ready:
                yield chunk.number, self._maker.make(chunk)
                chunk = next(chunks, None)

    def stop(self) -> None:
        # What is whole has its name, so nothing is lost; to end TensorFlow takes a second.
        for worker in self._workers:
            worker.connection.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()


class _Worker:
    """A process, the chunk that it makes now and the one that it makes next."""

    def __init__(self, maker: bytes) -> None:
        # The maker is large: as an argument it would hold us up until the process has started.
        self._maker = maker
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.is_ready = False
        self.chunks: deque[Chunk] = deque()

    @property
    def load(self) -> int:
        """Chunks that it has; as many as it may have until it is ready to begin."""
        return len(self.chunks) if self.is_ready else _AHEAD

    def send(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self._send(chunk)

    def _send(self, content: Chunk | bytes) -> None:
        try:
            self.connection.send(content)
        except OSError:
            self._raise_dead()

    def receive(self) -> tuple[int, Any] | None:
        """Number and result of the chunk that is done; None: the process is ready to begin."""
        try:
            error, result = self.connection.recv()
        except (EOFError, OSError):
            self._raise_dead()
        if not self.is_ready:
            self.is_ready = True
            self._send(self._maker)
            return None
        chunk = self.chunks.popleft()
        if error is not None:
            raise error
        return chunk.number, result

    def _raise_dead(self) -> None:
        self.process.join()
        code = self.process.exitcode
        reason = f"exit code {code}"
        if code < 0:
            reason = f"killed by {signal.Signals(-code).name}; is there enough memory?"
        doing = f"worked on {self.chunks[0]}" if self.chunks else "started"
        raise ChildProcessError(
            f"a worker process ended ({reason}) while it {doing}; finished "
            "shards are kept, and the same command goes on from there"
        ) from None


def _work(connection: Connection) -> None:
    # The parent is interrupted too, and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    given: queue.SimpleQueue[Chunk | bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, given), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        connection.send((None, None))
        if (pickled := given.get()) is None:
            return
        maker: Maker = pickle.loads(pickled)
        while (chunk := given.get()) is not None:
            connection.send(_answer(maker, chunk))


def _receive(connection: Connection, given: queue.SimpleQueue[Chunk | bytes | None]) -> None:
    """Takes chunks from the pipe while others are made, so that the parent need not wait."""
    # The parent closes the pipe at the end, also where it is killed.
    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            given.put(connection.recv())
    given.put(None)


def _answer(maker: Maker, chunk: Chunk) -> tuple[ValueError | OSError | None, Any]:
    try:
        return None, maker.make(chunk)
    except (ValueError, OSError) as error:
        return error, None
