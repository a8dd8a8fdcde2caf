"""Which launchers there are, and how each is asked for the same thing.

The same thing is: the host's files read-only, the project writable, private /tmp, /dev and /proc,
no network unless it is shared, and nothing left behind. No peer is installed unless that is asked
for, and one that is absent is named, never silently missing.
"""

import os
import shutil
import subprocess

PACKAGES = ["bubblewrap", "firejail"]


def install():
    root = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run([*root, "apt-get", "install", "-qy", "--no-install-recommends", *PACKAGES], check=True)


def bubblewrap(project, network="none", extra=()):
    path = shutil.which("bwrap")
    if not path:
        return None
    share = ["--share-net"] if network == "all" else []
    argv = [path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    argv += ["--bind", project, project, *extra, "--chdir", project]
    return [*argv, "--die-with-parent", "--new-session", "--unshare-all", *share, "--"]


def firejail(project):
    path = shutil.which("firejail")
    # Its private /tmp would hide a project that lies there.
    return path and [path, "--quiet", "--noprofile", "--net=none", "--private-dev", "--read-only=/", f"--read-write={project}"]


def minijail(_project):
    path = shutil.which("minijail0")
    return path and [path, "-U", "-p", "-v", "-e", "-l", "-N", "--uts", "-n"]


def nsjail(project):
    path = shutil.which("nsjail")
    return path and [path, "-Mo", "-q", "--chroot", "/", "-B", project, "-D", project, "--"]


def landrun(project):
    path = shutil.which("landrun")
    return path and [path, "--rox", "/", "--rw", project]


def launchers(bench):
    """Name and argv before the command; None where the launcher is not installed."""
    run = [bench.ringfence, "run"]
    landlock = ["--engine", "landlock", "--preset", "strict", "--on-gap", "report"]
    rows = [
        ("bare", []),
        ("ringfence", [*run, "--"]),
        ("ringfence, shared network", [*run, "--net", "all", "--"]),
        ("ringfence, listed hosts", [*run, "--allow-host", "example.org", "--"]),
        ("ringfence, landlock engine", [*run, *landlock, "--"]),
        ("ringfence, bwrap engine", shutil.which("bwrap") and [*run, "--engine", "bwrap", "--"]),
        ("bubblewrap", bubblewrap(bench.project)),
        ("bubblewrap, shared network", bubblewrap(bench.project, "all")),
        ("firejail", firejail(bench.project)),
        ("minijail", minijail(bench.project)),
        ("nsjail", nsjail(bench.project)),
        ("landrun, Landlock alone", landrun(bench.project)),
    ]
    return [(name, argv) for name, argv in rows if argv is not None], [name for name, argv in rows if argv is None]


def some(bench, *names):
    """The launchers of these names that are installed, in this order."""
    present = dict(launchers(bench)[0])
    return [(name, present[name]) for name in names if name in present]
