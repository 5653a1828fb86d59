"""Tasks of Ray with remote GPUs, on a cluster of three nodes in this machine, two of which have an emulated GPU each."""

import os
import subprocess
import sys
import tempfile
import time

import ray
from ray._private.state import available_resources_per_node
from ray.cluster_utils import Cluster

import hipr.ray

HERE = os.path.dirname(os.path.abspath(__file__))


@hipr.ray.remote(gpus=1, num_cpus=1)
def describes():
    sys.path.insert(0, HERE)
    import device

    return device.describe(), ray.get_runtime_context().get_node_id()


@hipr.ray.remote(gpus=1, num_cpus=1)
def fails():
    raise ValueError("the task's own")


@hipr.ray.remote(gpus=1, num_cpus=1)
def waits(folder):
    """Uses its GPU until there is a file; the file of its try says that it runs."""
    import ctypes

    hip = ctypes.CDLL("libamdhip64.so")
    memory, word = ctypes.c_void_p(), ctypes.c_int()
    assert hip.hipMalloc(ctypes.byref(memory), 4) == 0
    tries = len(os.listdir(folder))
    open(f"{folder}/try{tries}", "w").close()
    for _ in range(600):
        error = hip.hipMemcpy(ctypes.byref(word), memory, ctypes.c_size_t(4), 2)
        if error:
            raise RuntimeError(f"HIP error {error}")
        if tries > 0:
            return tries
        time.sleep(0.1)
    raise TimeoutError("the node did not die")


def workers():
    """Returns how many workers there are on this machine that tasks have started."""
    return subprocess.run(["pgrep", "-cf", "hipr worker.*hipr-ray-"], stdout=subprocess.PIPE, text=True).stdout.strip()


def eventually(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen in a minute"
        time.sleep(0.2)


def main():
    # Calls wait so long for another link to a worker that is gone.
    os.environ["HIPR_RESUME_TIMEOUT_MS"] = "1000"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0})
    nodes = [cluster.add_node(num_cpus=0, num_gpus=1) for _ in range(2)]
    ray.init(address=cluster.address)
    cluster.wait_for_nodes()
    head = ray.get_runtime_context().get_node_id()

    results = ray.get([describes.remote() for _ in range(5)])
    assert all(said == "1 device, AMD Instinct MI300X (hipr emulated)" for said, _ in results), results
    assert all(node == head for _, node in results), "tasks run where there is no GPU"
    print("five tasks have had a GPU of another node each")

    try:
        ray.get(fails.remote())
        raise AssertionError("an error is lost")
    except ValueError as why:
        assert "the task's own" in str(why)
    print("a task's error is its own")

    with tempfile.TemporaryDirectory() as folder:
        task = waits.remote(folder)
        eventually(lambda: os.listdir(folder))
        idle = {node for node, free in available_resources_per_node().items() if free.get("GPU")}
        busy = [node for node in nodes if node.node_id not in idle]
        assert len(busy) == 1, (nodes, idle)
        cluster.remove_node(busy[0], allow_graceful=False)
        assert ray.get(task, timeout=120) == 1
    print("a task whose node died has run again on another")

    eventually(lambda: ray.available_resources().get("GPU") == 1)
    eventually(lambda: workers() == "0")
    print("all GPUs are given back")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
