"""Worker processes that work on chunks, one at a time each; a dead one is noticed and named."""

from __future__ import annotations

import contextlib
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
        maker: does the work, here where `workers` is 1 and until the first process has started,
            else in processes of one thread each, without GPU. They are spawned, so a script needs
            ``if __name__ == "__main__":``.
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
    pool = _Pool(maker, workers)
    try:
        yield from pool.run(iter(chunks))
    finally:
        pool.stop()


class _Pool:
    def __init__(self, maker: Maker, workers: int) -> None:
        self._maker = maker
        pickled = pickle.dumps(maker)
        self._workers = [_Worker(pickled) for _ in range(workers)]

    def run(self, chunks: Iterator[Chunk]) -> Iterator[tuple[int, Any]]:
        chunk = next(chunks, None)
        while chunk is not None or any(worker.chunk for worker in self._workers):
            idle = next((w for w in self._workers if w.is_ready and w.chunk is None), None)
            if chunk is not None and idle is not None:
                idle.send(chunk)
                # Read ahead while the workers are busy.
                chunk = next(chunks, None)
                continue
            starting = not any(worker.is_ready for worker in self._workers)
            talking = [worker for worker in self._workers if worker.chunk or not worker.is_ready]
            ready = wait([worker.connection for worker in talking], 0 if starting else None)
            if not ready:
                # TensorFlow takes seconds to import there: a good part of a small corpus.
                yield chunk.number, self._maker.make(chunk)
                chunk = next(chunks, None)
            for worker in talking:
                if worker.connection in ready and (done := worker.receive()) is not None:
                    yield done

    def stop(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            if worker.chunk is not None or not worker.is_ready:
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
        self.is_ready = False
        self.chunk: Chunk | None = None

    def send(self, chunk: Chunk) -> None:
        self.chunk = chunk
        try:
            self.connection.send(chunk)
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
            return None
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
        doing = f"worked on {self.chunk}" if self.chunk else "started"
        raise ChildProcessError(
            f"a worker process ended ({reason}) while it {doing}; finished "
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
    # The parent closes the pipe at the end, also where it is killed.
    with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):
        connection.send((None, None))
        while True:
            connection.send(_answer(unpickled, connection.recv()))


def _answer(maker: Maker, chunk: Chunk) -> tuple[ValueError | OSError | None, Any]:
    try:
        return None, maker.make(chunk)
    except (ValueError, OSError) as error:
        return error, None
