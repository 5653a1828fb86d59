#!/usr/bin/env python3
"""Tests packaging/kubernetes: helm takes the chart, what it makes is as the published schemas of Kubernetes say, and the commands in it do on this machine
what they are there for. There is no cluster.

    kubernetes.py HIPR             the program; its library lies beside it, as cargo builds them
    kubernetes.py --render         writes packaging/kubernetes/hipr-worker.yaml anew

It installs helm and the schemas from PyPI into a folder of the cache.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import venv
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "packaging/kubernetes"
CHART = FOLDER / "hipr-worker"
PLAIN = FOLDER / "hipr-worker.yaml"
REQUIREMENTS = HERE / "requirements-kubernetes.txt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hipr/kubernetes"
VERSIONS = ["1.30", "1.33", "1.37"]
# What the plain manifests are made with: the keys are in a secret that is made by hand.
PLAIN_VALUES = {"existingSecret": "hipr-keys"}
HIPR = None
TIMEOUT_S = 60
# A program that has a session until its input has a line.
WAITS = """
import ctypes
hip = ctypes.CDLL("libamdhip64.so")
print(hip.hipInit(0), hip.hipFree(None), flush=True)
input()
print(hip.hipDeviceSynchronize(), flush=True)
"""


def tools():
    """Installs what is not there."""
    if (CACHE / "installed").exists() and (CACHE / "installed").read_text() == REQUIREMENTS.read_text():
        return
    venv.create(CACHE, with_pip=True, clear=True)
    subprocess.run([CACHE / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS], check=True)
    (CACHE / "installed").write_text(REQUIREMENTS.read_text())


def helm(*arguments, values=None):
    """Runs helm with values, which are YAML as JSON is."""
    given = [word for name, value in (values or {}).items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    return subprocess.run([CACHE / "bin/helm", *arguments, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S)


def rendered(values):
    """Returns what the chart makes of values; raises AssertionError with what helm says."""
    done = helm("template", "hipr", CHART, values=values)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def plain():
    head = "# The chart hipr-worker with its own values, for those who do not use helm: the keys are in a secret that is made first,\n" \
           "#\n" \
           "#   hipr key --worker worker-key && hipr key > authorized\n" \
           "#   kubectl create secret generic hipr-keys --from-file=worker-key --from-file=authorized\n" \
           "#   kubectl apply -f hipr-worker.yaml\n" \
           "#\n" \
           "# `tests/packages/kubernetes.py --render` writes this file.\n"
    return head + rendered(PLAIN_VALUES)


class Chart(unittest.TestCase):
    """What helm makes of the chart."""

    VALUES = {
        "plain": PLAIN_VALUES,
        "emulated, with keys": {"gpu": {"count": 0}, "authorized": "hipr-ed25519 AAAA tenant=ann\n", "workerKey": "-----BEGIN PRIVATE KEY-----\n"},
        "many": {"existingSecret": "keys", "workers": 8, "gpu": {"count": 8, "groups": [44, 109]}, "options": ["--memory-max", "32G"],
                 "nodeSelector": {"gpu": "mi300x"}, "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
                 "networkPolicy": {"clients": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "metrics": [{"namespaceSelector": {}}]}},
        "open": {"existingSecret": "keys", "networkPolicy": {"enabled": False}, "podAnnotations": {}},
    }

    def test_helm_finds_nothing_wrong(self):
        done = helm("lint", "--strict", CHART, values=PLAIN_VALUES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_is_made_is_as_the_schemas_say(self):
        for name, values in self.VALUES.items():
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(rendered(values))
                file.flush()
                for version in VERSIONS:
                    with self.subTest(name, version=version):
                        done = subprocess.run([CACHE / "bin/kubernetes-validate", "--strict", "-k", version, file.name], stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
                        self.assertEqual(done.returncode, 0, done.stdout)
                        self.assertIn("statefulset/hipr", done.stdout)

    def test_the_plain_manifests_are_those_of_the_chart(self):
        self.assertEqual(PLAIN.read_text(), plain(), "to write it anew: tests/packages/kubernetes.py --render")

    def test_wrong_values_are_refused(self):
        for values, said in [
            ({}, "authorized: who may use the workers, or existingSecret"),
            ({"authorized": "x"}, "workerKey"),
            ({"existingSecret": "keys", "workres": 2}, "workres"),
            ({"existingSecret": "keys", "workers": "two"}, "workers"),
            ({"existingSecret": "keys", "gpu": {"count": -1}}, "count"),
        ]:
            with self.subTest(values):
                with self.assertRaises(AssertionError) as refused:
                    rendered(values)
                self.assertIn(said, str(refused.exception))

    def test_the_version_is_hiprs(self):
        version = re.search(r'^version = "(.+)"$', (HERE.parent.parent / "Cargo.toml").read_text(), re.MULTILINE)[1]
        self.assertIn(f"\nappVersion: {version}\n", (CHART / "Chart.yaml").read_text())


class Pod(unittest.TestCase):
    """The commands of a pod, on this machine: paths and ports are others, all else is the manifest's."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        for name in ("keys", "run", "bin", "user"):
            (root / name).mkdir()
        (root / "bin/hipr").symlink_to(HIPR)
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.port, metrics = one.getsockname()[1], other.getsockname()[1]
        self.user = {**os.environ, "HOME": str(root / "user"), "PATH": f"{root / 'bin'}:{os.environ['PATH']}"}
        self.user.pop("HIPR_WORKER", None)
        subprocess.run(["hipr", "key", "--worker", root / "keys/worker-key"], env=self.user, check=True, stdout=subprocess.DEVNULL)
        # As files of a secret are.
        (root / "keys/worker-key").chmod(0o440)
        line = subprocess.run(["hipr", "key"], env=self.user, check=True, stdout=subprocess.PIPE, text=True).stdout
        (root / "keys/authorized").write_text(line)
        self.container = self.read_container({"existingSecret": "keys", "gpu": {"count": 0}, "options": ["--memory-max", "1G"]})
        self.places = [("/keys/", f"{root}/keys/"), ("/run/hipr", f"{root}/run"), ("0.0.0.0:18515", f"127.0.0.1:{self.port}"),
                       ("0.0.0.0:9400", f"127.0.0.1:{metrics}"), ("127.0.0.1:9400", f"127.0.0.1:{metrics}")]
        home = next(variable["value"] for variable in self.container["env"] if variable["name"] == "HOME")
        command = [self.placed(word) for word in [*self.container["command"], *self.container["args"]]]
        self.worker = subprocess.Popen(command, env={**self.user, "HOME": self.placed(home)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        next(line for line in self.worker.stdout if "listening" in line)

    def tearDown(self):
        self.worker.kill()
        self.worker.wait()
        self.worker.stdout.close()
        self.folder.cleanup()

    def read_container(self, values):
        # The schemas' package brings a reader of YAML.
        program = "import json, sys, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))"
        done = subprocess.run([CACHE / "bin/python", "-c", program], input=rendered(values), stdout=subprocess.PIPE, text=True, check=True)
        (pod,) = [document["spec"]["template"]["spec"] for document in json.loads(done.stdout) if document["kind"] == "StatefulSet"]
        return pod["containers"][0]

    def placed(self, word):
        for ours, there in self.places:
            word = word.replace(ours, there)
        return word

    def started(self, command):
        process = subprocess.Popen(command, env=self.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        def end():
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

        self.addCleanup(end)
        return process

    def program(self, *command):
        return self.started(["hipr", "run", "--worker", f"hipr://127.0.0.1:{self.port}", "--", *command])

    def test_a_worker_serves_and_waits_for_its_sessions_before_it_ends(self):
        program = self.program("python3", "-c", WAITS)
        self.assertEqual(program.stdout.readline(), "0 0\n")
        draining = self.started([self.placed(word) for word in self.container["lifecycle"]["preStop"]["exec"]["command"]])
        # Long enough for several looks.
        time.sleep(5)
        self.assertIsNone(draining.poll(), "it does not wait for the session")
        program.stdin.write("\n")
        program.stdin.close()
        self.assertEqual(program.stdout.readline(), "0\n", "the session was lost")
        self.assertEqual(draining.wait(TIMEOUT_S), 0)
        self.worker.terminate()
        self.assertEqual(self.worker.wait(TIMEOUT_S), 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    tools()
    if sys.argv[1] == "--render":
        PLAIN.write_text(plain())
        sys.exit()
    HIPR = str(Path(sys.argv.pop(1)).resolve())
    beside = Path(HIPR).parent / "deps/libamdhip64.so"
    if beside.exists():
        os.environ["HIPR_LIBRARY"] = str(beside)
    unittest.main(verbosity=2)
