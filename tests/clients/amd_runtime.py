"""AMD's own HIP runtime, of one release, in the system in a folder, with emulated GPUs below it."""

import worker

# What `tests/toolchain/setup.sh` installs there: each release's folders of libraries, and the library.
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
RELEASES = {
    "6.4.3": ([LIBRARIES], f"{LIBRARIES}/libamdhip64.so.6"),
    "7.2.4": ([f"/opt/hip-7.2.4{LIBRARIES}", LIBRARIES], f"/opt/hip-7.2.4{LIBRARIES}/libamdhip64.so.7"),
}


class Runtime:
    """A place where programs run on AMD's runtime itself: `hipr hsa`."""

    def __init__(self, release, system):
        folders, self.library = RELEASES[release]
        self.name, self.system, self.folders = f"AMD's {release}", system, ":".join(folders)

    def words(self):
        return ["hsa"]

    def worker(self):
        """A worker that serves the runtime, all sessions in its own process."""
        options = ["--hsa", "emulated", "--hip-library", self.library, "--isolate", "none"]
        environment = self.system.environment(LD_LIBRARY_PATH=self.folders)
        return worker.Worker(self.system.inside("hipr"), *options, device="hip", prefix=self.system.enter, environment=environment)


def is_direct(place):
    """Whether programs do not use hipr's library at a place."""
    return isinstance(place[1], Runtime)
