#!/usr/bin/env python3
"""Tests the Python package: installs the wheel into fresh environments, as users do, and runs programs in them.

    wheel.py WHEEL

It needs the network for frameworks, and what tests/clients/setup.sh installs for IREE's compiler and tinygrad.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import venv
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
ROOT = HERE.parent.parent
WHEEL = None
# The releases that are tested.
FRAMEWORKS = {"iree": ["iree-base-runtime==3.13.0", "numpy==2.4.6"], "hip-python": ["hip-python==10.0.0.0.1.2"], "ray": ["ray==2.60.0"]}
TIMEOUT_S = 300


def clean_environment(**more):
    """This process's, without what would lead programs to other libraries and workers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIPR_", "TF_WORKER", "LD_", "PYTHON", "ROCM_", "HIP_"))}
    return {**kept, **more}


def text_of(command, environment=None, expect=0, **more):
    """Runs a command to its end; returns both of its outputs."""
    done = subprocess.run(command, env=environment or clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT_S, **more)
    if done.returncode != expect:
        raise AssertionError(f"{command} ended with {done.returncode}, not {expect}:\n{done.stdout}")
    return done.stdout


class Environment:
    """A fresh virtual environment with the wheel and more packages."""

    def __init__(self, folder, *packages):
        venv.create(folder, with_pip=True)
        self.python = Path(folder) / "bin/python"
        self.hipr = Path(folder) / "bin/hipr"
        text_of([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL, *packages])

    def run(self, program, *arguments, expect=0, **environment):
        return text_of([self.python, PROGRAMS / program, *arguments], clean_environment(**environment), expect)


class Worker:
    """A worker of the environment in a process of its own."""

    def __init__(self, environment, *options, home=None):
        variables = clean_environment(HOME=str(home)) if home else clean_environment()
        self.process = subprocess.Popen([environment.hipr, "worker", "--device", "sim", *options], env=variables, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def line(self, word):
        """Returns the first line of its output that has a word."""
        return next(line.strip() for line in self.process.stdout if word in line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def eventually(condition):
    """Waits until a condition holds; returns whether it did."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Plain(unittest.TestCase):
    """The package alone."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = Environment(Path(cls.folder.name) / "venv")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_is_on_the_path_and_a_module(self):
        version = text_of([self.environment.hipr, "--version"])
        self.assertRegex(version, r"^hipr \d+\.\d+\.\d+")
        self.assertEqual(text_of([self.environment.python, "-m", "hipr", "--version"]), version)

    def test_the_demo_is_right(self):
        self.assertIn("All 8 kernels computed what the CPU computes", text_of([self.environment.hipr]))

    def test_amds_runtime_is_given_emulated_gpus_library(self):
        text_of([self.environment.hipr, "hsa", "--", "sh", "-c", 'test -e "${LD_LIBRARY_PATH%%:*}/libhsa-runtime64.so.1"'])

    def test_all_names_are_one_library_with_an_emulated_gpu(self):
        self.assertIn("1 device, AMD Instinct MI300X (hipr emulated)", self.environment.run("names.py"))

    def test_names_hold_where_another_runtime_is_on_the_search_path(self):
        with tempfile.TemporaryDirectory() as other:
            for name in ("libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.7"):
                (Path(other) / name).write_bytes(b"no library")
            self.assertIn("1 device", self.environment.run("names.py", LD_LIBRARY_PATH=other))

    def test_processes_that_it_starts_find_the_library(self):
        self.assertIn("1 device", self.environment.run("children.py"))

    def test_a_worker_by_its_address_and_by_the_variable(self):
        with Worker(self.environment, "--listen", "127.0.0.1:0") as worker:
            address = worker.line("127.0.0.1:").split()[-1]
            self.assertIn("1 device", self.environment.run("names.py", address))
            self.assertIn(f"worker {address}", self.environment.run("names.py", HIPR_WORKER=address))

    def test_an_invitation_becomes_keys(self):
        with tempfile.TemporaryDirectory() as home:
            port = free_port()
            authorized = Path(home) / "authorized"
            authorized.touch()
            options = ["--listen", f"127.0.0.1:{port}", "--authorized", authorized, f"--invite=127.0.0.1:{port}"]
            with Worker(self.environment, *options, home=Path(home) / "worker") as worker:
                invitation = next(word for word in worker.line("hipr://").split() if word.startswith("hipr://"))
                user = {"HOME": str(Path(home) / "user")}
                self.assertIn("1 device", self.environment.run("names.py", invitation, **user))
                self.assertIn("1 device", self.environment.run("names.py", f"hipr://127.0.0.1:{port}", **user))

    def test_a_worker_that_is_not_there_is_an_error_with_its_address(self):
        said = self.environment.run("names.py", f"127.0.0.1:{free_port()}", expect=3)
        self.assertRegex(said, r"(?s)hipr.Error: .*127\.0\.0\.1:\d+.*refused")
        said = self.environment.run("names.py", "nonsense:address:1", expect=3)
        self.assertIn("nonsense:address:1", said)

    def test_another_worker_needs_another_process(self):
        self.assertIn("this process uses the worker", self.environment.run("twice.py"))

    def test_too_late_names_the_library_that_is_there(self):
        with tempfile.TemporaryDirectory() as other:
            said = self.environment.run("late.py", other)
        self.assertIn(f"comes too late: {other}/libamdhip64.so.6 is loaded already (imported so far: torch)", said)

    def test_under_hipr_run_it_changes_nothing(self):
        said = text_of([self.environment.hipr, "run", "--", self.environment.python, PROGRAMS / "names.py"])
        self.assertIn("1 device", said)

    def test_nothing_is_left_of_a_process_that_is_killed(self):
        with subprocess.Popen([self.environment.python, PROGRAMS / "waits.py"], env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
            folder = Path(process.stdout.readline().strip())
            self.assertTrue((folder / "libamdhip64.so.7").exists())
            process.send_signal(signal.SIGKILL)
        self.assertTrue(eventually(lambda: not folder.exists()), f"{folder} is left, so its process runs")

    def test_an_interrupt_is_the_programs_own(self):
        process = subprocess.Popen([self.environment.python, PROGRAMS / "waits.py"], env=clean_environment(), stdout=subprocess.PIPE, text=True,
                                   start_new_session=True,
                                   # Who starts the tests in the background may have it ignored.
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        with process:
            process.stdout.readline()
            # As a terminal sends it, to the whole group.
            os.killpg(process.pid, signal.SIGINT)
            self.assertIn("interrupted, and 1 device is there", process.stdout.read())

    def test_it_leaves_nothing_when_it_is_uninstalled(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(folder)
            text_of([environment.python, "-m", "pip", "uninstall", "--yes", "--quiet", "hipr"])
            left = [str(path) for path in Path(folder).rglob("*") if "hip" in path.name and "pip" not in str(path) and path.is_file()]
            self.assertEqual(left, [])

    def test_a_folder_of_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            text_of([self.environment.python, "-m", "pip", "install", "--quiet", "--target", folder, WHEEL])
            said = text_of([sys.executable, PROGRAMS / "names.py"], clean_environment(PYTHONPATH=folder))
            self.assertIn("1 device", said)


class Frameworks(unittest.TestCase):
    """Frameworks from the package index, unmodified."""

    def test_iree(self):
        clients = Path(text_of([ROOT / "tests/clients/setup.sh", "--check"]).strip().splitlines()[-1])
        with tempfile.TemporaryDirectory() as folder:
            module = Path(folder) / "matmul.vmfb"
            text_of([clients / "iree/bin/iree-compile", "--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", ROOT / "tests/clients/iree/matmul_f32.mlir",
                     "-o", module])
            environment = Environment(Path(folder) / "venv", *FRAMEWORKS["iree"])
            self.assertIn("the product is right", environment.run("iree_product.py", module))

    def test_hip_python(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(Path(folder) / "venv", *FRAMEWORKS["hip-python"])
            self.assertIn("saxpy is right", environment.run("hip_python_saxpy.py", ROOT / "cli/demo/kernels.co"))

    def test_ray(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(Path(folder) / "venv", *FRAMEWORKS["ray"])
            said = environment.run("ray_tasks.py", RAY_USAGE_STATS_ENABLED="0", HOME=folder)
            self.assertIn("all GPUs are given back", said)

    def test_tinygrad(self):
        # In the system that has AMD's libamd_comgr, with a folder of packages: that system has no pip.
        system = Path(text_of([ROOT / "tests/toolchain/setup.sh", "--check"]).strip().splitlines()[-1])
        requirements = ROOT / "tests/clients/requirements-tinygrad.txt"
        with tempfile.TemporaryDirectory(dir=system / "tmp") as folder:
            inside = "/" + str(Path(folder).relative_to(system))
            chroot = [shutil.which("chroot") or "/usr/sbin/chroot", system]
            version = text_of([*chroot, "/usr/bin/python3", "-c", 'import sys; print("%d.%d" % sys.version_info[:2])']).strip()
            platforms = [f"--platform={name}_x86_64" for name in ("manylinux_2_28", "manylinux_2_27", "manylinux2014", "linux")]
            text_of([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder, "--only-binary=:all:",
                     "--python-version", version, *platforms, "-r", requirements, WHEEL])
            comgr = "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.3"
            program = Path(folder) / "tinygrad_sum.py"
            program.write_bytes((PROGRAMS / "tinygrad_sum.py").read_bytes())
            variables = {"PATH": "/usr/bin:/bin", "HOME": inside, "LC_ALL": "C.UTF-8", "PYTHONPATH": inside, "COMGR_PATH": comgr, "COMGR_3_PATH": comgr,
                         "CC": "clang-21", "CACHELEVEL": "0"}
            self.assertIn("the sum is right", text_of([*chroot, "/usr/bin/python3", f"{inside}/{program.name}"], variables))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    WHEEL = str(Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
