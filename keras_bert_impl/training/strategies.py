"""Which devices a run trains on: strategies of `tf.distribute` by name, precision by device."""

from __future__ import annotations

import contextlib
import functools
import json
import zlib
from collections.abc import Callable, Iterator

import keras
import tensorflow as tf

from keras_bert_impl.training.cluster import meet_machines

__all__ = [
    "STRATEGIES",
    "check_batch_size",
    "check_same",
    "describe",
    "distribute",
    "is_chief",
    "lost_machines_told",
    "make_gather",
    "make_strategy",
    "precision_for",
    "spans_machines",
]

STRATEGIES = ("none", "mirrored", "multi_worker", "tpu")
WORKER_TIMEOUT = 300.0

_REFUSED = {
    "parameter_server": "Keras 3 has no training with parameter servers: use multi_worker",
    "central_storage": "Keras 3 does not support it: use mirrored",
}


def make_strategy(
    name: str = "none", *, tpu: str | None = None, timeout: float = WORKER_TIMEOUT
) -> tf.distribute.Strategy:
    """The strategy of a name; call it before anything else of TensorFlow is used.

    Args:
        name: ``none`` (the first GPU, else the CPU), ``mirrored`` (every GPU of this machine, or
            every logical CPU device), ``multi_worker`` (the machines in the environment variable
            TF_CONFIG) or ``tpu``.
        tpu: for ``tpu``: its name or address; None: the one of this TPU VM (``local``).
        timeout: for ``multi_worker``: seconds to wait for the other machines.

    Raises:
        ValueError: an unknown name, one that Keras 3 cannot do, a TF_CONFIG that cannot be used,
            or no TPU.
        TimeoutError: not every machine of TF_CONFIG came.
    """
    if name in _REFUSED:
        raise ValueError(f"strategy {name!r}: {_REFUSED[name]}")
    if name == "none":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        return _mirrored()
    if name == "multi_worker":
        meet_machines(timeout)
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        return _tpu(tpu)
    raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {name!r}")


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """One for the process: the sums of two would be taken for each other, as both count from 1."""
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    return tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices(kind)]
    )


def _tpu(name: str | None) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(name or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(
            f"strategy tpu: no TPU found (tensorflow {tf.__version__}; a TPU VM needs "
            f"tensorflow-tpu): {str(error).splitlines()[0]}"
        ) from None
    return tf.distribute.TPUStrategy(resolver)


def spans_machines(strategy: tf.distribute.Strategy) -> bool:
    """Whether several processes train together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes files; every process but one of several does not."""
    if not spans_machines(strategy):
        return True
    resolver = strategy.cluster_resolver
    has_chief = "chief" in resolver.cluster_spec().jobs
    return resolver.task_type == "chief" or (not has_chief and resolver.task_id == 0)


def make_gather(strategy: tf.distribute.Strategy) -> Callable[[int], list[int]]:
    """A function that every machine calls with its number, to get the numbers of all.

    With one machine it gives [number]; else one number for each replica.
    """
    if not spans_machines(strategy):
        return lambda number: [number]
    replicas = strategy.num_replicas_in_sync

    def each(number):
        context = tf.distribute.get_replica_context()
        mine = tf.range(replicas) == context.replica_id_in_sync_group
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(mine, tf.int64) * number)

    run = tf.function(lambda number: strategy.run(each, args=(number,)))

    def gather(number: int) -> list[int]:
        numbers = run(tf.constant(number, tf.int64))
        return strategy.experimental_local_results(numbers)[0].numpy().tolist()

    return gather


def check_same(
    gather: Callable[[int], list[int]], record: dict, model: keras.Model | None = None
) -> None:
    """Raises ValueError where machines were started with other settings, data or models.

    Args:
        gather: of `make_gather`.
        record: what must be the same everywhere, for JSON.
        model: its weights must be, too.
    """
    digest = zlib.crc32(json.dumps(record, sort_keys=True).encode())
    for array in () if model is None else model.get_weights():
        digest = zlib.crc32(array.tobytes(), digest)
    digests = gather(digest)
    others = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if others:
        raise ValueError(
            "the machines of the run differ in settings, data or model: machine "
            f"{others[0]} from machine 0: start all with the same command and the same files"
        )


@contextlib.contextmanager
def lost_machines_told() -> Iterator[None]:
    """Within the block, the end of another machine becomes an OSError with a plain message."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
        raise OSError(
            "another machine of the run went away (its own message says why): start the run on "
            f"all machines again with --resume ({error.message.splitlines()[0]})"
        ) from None


def precision_for(strategy: tf.distribute.Strategy) -> str:
    """``mixed_bfloat16`` on TPUs and on GPUs that compute in it, else ``float32``."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "mixed_bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    capable = [
        tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) >= (8, 0)
        for gpu in gpus
    ]
    return "mixed_bfloat16" if gpus and all(capable) else "float32"


def describe(strategy: tf.distribute.Strategy, dtype: str, batch_size: int) -> str:
    """One line: strategy, devices, precision, XLA and how the batch is shared."""
    replicas = strategy.num_replicas_in_sync
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    gpus = tf.config.list_logical_devices("GPU")
    kind = "TPU core" if on_tpu else "GPU" if gpus else "CPU device"
    name = "one device" if replicas == 1 else type(strategy).__name__
    if spans_machines(strategy):
        name = "MultiWorkerMirroredStrategy"  # of which CollectiveAllReduceStrategy is the class
    xla = "the TPU compiles" if on_tpu else "no XLA"
    return (
        f"{name}: {replicas} {kind}{'s' if replicas > 1 else ''}, {dtype}, {xla}, "
        f"{batch_size} rows a step, {batch_size // replicas} a replica"
    )


def check_batch_size(
    strategy: tf.distribute.Strategy, batch_size: int, micro_batches: int = 1
) -> None:
    """Raises ValueError unless the replicas get equal shares that micro-batches divide."""
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"batch_size {batch_size} does not divide among {replicas} replicas: use "
            f"{batch_size // replicas * replicas or replicas} or "
            f"{(batch_size // replicas + 1) * replicas}"
        )
    share = batch_size // replicas
    if share % micro_batches:
        raise ValueError(
            f"{share} rows a replica (batch_size {batch_size}, {replicas} replicas) cannot be cut "
            f"into {micro_batches} micro-batches"
        )


def distribute(
    strategy: tf.distribute.Strategy, make_batches: Callable[[int, int], tf.data.Dataset]
):
    """What `fit` takes: each replica gets its rows of the same global batches.

    Args:
        strategy: of one device, or of several, on one machine or on several.
        make_batches: (rank, world) -> a dataset of the rows rank::world of every global batch.
            There is one rank for each machine. Where the number of rows is not static, that of a
            replica may be smaller than that of another one, and 0.

    Returns:
        A dataset, distributed where there are several replicas.
    """
    if strategy.num_replicas_in_sync == 1:
        return make_batches(0, 1)

    def make(context):
        world = context.num_input_pipelines
        replicas = context.num_replicas_in_sync // world
        batches = make_batches(context.input_pipeline_id, world)
        return batches.flat_map(lambda *batch: _deal(batch, replicas)).prefetch(2 * replicas)

    return strategy.distribute_datasets_from_function(make)


def _deal(batch: tuple, replicas: int) -> tf.data.Dataset:
    """The rows r::replicas of a batch, for each replica r."""
    if keras.tree.flatten(batch)[0].shape[0] is None:
        return tf.data.Dataset.range(replicas).map(
            lambda replica: keras.tree.map_structure(lambda value: value[replica::replicas], batch)
        )
    return tf.data.Dataset.from_tensor_slices(
        keras.tree.map_structure(lambda value: _dealt(value, replicas), batch)
    )


def _dealt(value: tf.Tensor, replicas: int) -> tf.Tensor:
    """[B, ...] -> [replicas, B / replicas, ...] in static shapes."""
    rows = value.shape[0] // replicas
    value = tf.reshape(value, [rows, replicas, *value.shape[1:]])
    return tf.transpose(value, [1, 0, *range(2, len(value.shape))])
