"""Worker processes that work on chunks, one at a time each; a dead one is noticed and named."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from keras_bert_impl.data.chunks import Chunk

__all__ = ["Maker", "make_chunks"]


class Maker(Protocol):
    """Something picklable that makes something picklable, or files, of a chunk."""

    def make(self, chunk: Chunk) -> Any: ...


def make_chunks(maker: Maker, chunks: Iterable[Chunk], workers: int) -> Iterator[tuple[int, Any]]:
    """Makes all chunks and yields the number and result of each when it is done, in any order.

    Memory holds a chunk for each worker and a few more.

    Args:
        maker: does the work, here where `workers` is 1, else in processes of one thread each,
            without GPU. They are spawned, so a script needs ``if __name__ == "__main__":``.
        chunks: what to make.
        workers: number of processes.

    Raises:
        ValueError, OSError: as `maker.make`.
        ChildProcessError: a worker process ended, killed for instance; its chunk is named.
    """
    if workers == 1:
        for chunk in chunks:
            yield chunk.number, maker.make(chunk)
        return
    pool = _Pool(pickle.dumps(maker), workers)
    try:
        yield from pool.run(iter(chunks))
    finally:
        pool.stop()


class _Pool:
    def __init__(self, maker: bytes, most: int) -> None:
        self._maker, self._most = maker, most
        self._workers: list[_Worker] = []

    def run(self, chunks: Iterator[Chunk]) -> Iterator[tuple[int, Any]]:
        chunk = next(chunks, None)
        while chunk is not None or any(worker.chunk for worker in self._workers):
            if chunk is not None and (idle := self._idle()) is not None:
                idle.send(chunk)
                # Read ahead while the workers are busy.
                chunk = next(chunks, None)
                continue
            busy = [worker for worker in self._workers if worker.chunk]
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection in ready:
                    yield worker.receive()

    def _idle(self) -> _Worker | None:
        for worker in self._workers:
            if worker.chunk is None:
                return worker
        if len(self._workers) < self._most:
            self._workers.append(_Worker(self._maker))
            return self._workers[-1]
        return None

    def stop(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            if worker.chunk is not None:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join()


class _Worker:
    """A process and the chunk that it makes now."""

    def __init__(self, maker: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, maker), daemon=True)
        self.process.start()
        theirs.close()
        self.chunk: Chunk | None = None

    def send(self, chunk: Chunk) -> None:
        self.chunk = chunk
        try:
            self.connection.send(chunk)
        except OSError:
            self._raise_dead()

    def receive(self) -> tuple[int, Any]:
        """Number and result of the chunk that is done."""
        try:
            error, result = self.connection.recv()
        except (EOFError, OSError):
            self._raise_dead()
        chunk, self.chunk = self.chunk, None
        if error is not None:
            raise error
        return chunk.number, result

    def _raise_dead(self) -> None:
        self.process.join()
        code = self.process.exitcode
        reason = f"exit code {code}"
        if code < 0:
            reason = f"killed by {signal.Signals(-code).name}; is there enough memory?"
        raise ChildProcessError(
            f"a worker process ended ({reason}) while it worked on {self.chunk}; finished "
            "shards are kept, and the same command goes on from there"
        ) from None


def _work(connection: Connection, maker: bytes) -> None:
    # The parent is interrupted too, and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    unpickled: Maker = pickle.loads(maker)
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            answer = None, unpickled.make(chunk)
        except (ValueError, OSError) as error:
            answer = error, None
        connection.send(answer)
