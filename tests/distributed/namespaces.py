#!/usr/bin/env python3
"""Imitates several machines. Each process has a network namespace with its own address, and a bridge connects the namespaces.
Open MPI's mpirun starts the processes by an agent instead of ssh, and they communicate by TCP. Run this by hand, as root:

    tests/distributed/namespaces.py [BUILD]        BUILD is build/release by default

It compares the output of the examples with that of one process without a network, runs tests of src/distributed, and prints how many
bytes each address has sent. It does not change the machine's own network, and removes the namespaces afterwards.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release").resolve()
NODES = 3
NAMES = [f"tally{os.getpid()}-{node}" for node in range(NODES)]
HUB = f"tally{os.getpid()}-hub"
ADDRESS = "10.77.0.{}"


def call(*command, **how):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how).stdout


def inside(name, *command):
    return ["ip", "netns", "exec", name, *map(str, command)]


def build_network():
    call("ip", "netns", "add", HUB)
    call(*inside(HUB, "ip", "link", "add", "bridge", "type", "bridge"))
    call(*inside(HUB, "ip", "link", "set", "bridge", "up"))
    for node, name in enumerate(NAMES):
        call("ip", "netns", "add", name)
        call(*inside(HUB, "ip", "link", "add", f"to{node}", "type", "veth", "peer", "name", "eth0", "netns", name))
        call(*inside(HUB, "ip", "link", "set", f"to{node}", "master", "bridge", "up"))
        call(*inside(name, "ip", "link", "set", "lo", "up"))
        call(*inside(name, "ip", "address", "add", ADDRESS.format(node + 1) + "/24", "dev", "eth0"))
        call(*inside(name, "ip", "link", "set", "eth0", "up"))


def remove_network():
    for name in (*NAMES, HUB):
        subprocess.run(["ip", "netns", "del", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def passed(name):
    """Returns the number of bytes that this address has sent."""
    return int(call(*inside(name, "cat", "/sys/class/net/eth0/statistics/tx_bytes")))


def write_start(folder):
    """Writes the list of hosts, and the agent that mpirun calls instead of ssh: `agent ADDRESS WORD...`."""
    cases = "\n".join(f'    {ADDRESS.format(node + 1)}) name={name} ;;' for node, name in enumerate(NAMES))
    (folder / "agent").write_text(f'#!/bin/sh\ncase "$1" in\n{cases}\n    *) echo "no such host: $1" >&2; exit 1 ;;\nesac\nshift\n'
                                  'exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"\n')
    (folder / "agent").chmod(0o755)
    (folder / "hosts").write_text("".join(f"{ADDRESS.format(node + 1)} slots=1\n" for node in range(NODES)))


def together(mpirun, folder, *command):
    network = ADDRESS.format(0) + "/24"
    settings = {"plm_rsh_agent": folder / "agent", "btl": "self,tcp", "btl_tcp_if_include": network, "oob_tcp_if_include": network,
                "mpi_yield_when_idle": 1, "hwloc_base_binding_policy": "none"}
    words = [word for name, value in settings.items() for word in ("--mca", name, value)]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1"}
    return call(*inside(NAMES[0], "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', NAMES[0], mpirun, "--hostfile", folder / "hosts",
                        "--map-by", "node", "-n", NODES, *words, *command), env=environment, timeout=900, cwd=folder)


def compare(mpirun, folder):
    print("places of the ranks:")
    where = together(mpirun, folder, "sh", "-c", 'echo "rank $OMPI_COMM_WORLD_RANK on $(hostname), $(ip -brief -4 address show eth0)"')
    print("".join(f"    {re.sub('tally[0-9]+', 'tally', line)}\n" for line in sorted(where.splitlines())), end="")
    assert len(set(re.findall(r"10\.77\.0\.\d+", where))) == NODES, "the ranks do not have different addresses"
    for example in ("conv", "text"):
        program = BUILD / "examples" / f"example_{example}"
        words = [program, 20, "", "float", "exact"]
        alone = call(*words, cwd=folder)
        before = [passed(name) for name in NAMES]
        begun = time.monotonic()
        shared = together(mpirun, folder, *words)
        seconds = time.monotonic() - begun
        sent = [(passed(name) - earlier) / 1e6 for name, earlier in zip(NAMES, before)]
        assert shared == alone, f"{shared}\n{alone}"
        print(f"example_{example}, 20 updates with exact sums: all digits of the losses equal those of one process; {seconds:.1f} s, "
              f"MB sent by each address: {', '.join(f'{each:.1f}' for each in sent)}")
        assert min(sent) > 0.1, "almost nothing was sent over the network"
    for name in ("sums", "exact", "window", "pipe"):
        output = together(mpirun, folder, BUILD / "tests" / "test_distributed", "-#", f"[#{name}_test]")
        ended = re.findall(r"All tests passed \(.*\)", re.sub(r"\x1b\[[0-9;]*m", "", output))
        assert len(ended) == NODES, output
        print(f"test_distributed [#{name}_test]: passes on each of the {len(ended)}")


def main():
    if not (BUILD / "tests" / "test_distributed").exists():
        sys.exit(f"{BUILD} has no tests/test_distributed: build it first, and the examples")
    mpirun = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    if not mpirun or "open-mpi.org" not in call(mpirun[1], "--version"):
        print("skipped: the build has no Open MPI, whose mpirun this program requires")
        return 77
    try:
        build_network()
    except (OSError, subprocess.CalledProcessError) as error:
        remove_network()
        why = str(getattr(error, "output", None) or error).strip()
        print(f"skipped: no network namespaces can be created ({why})")
        return 77
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_start(Path(folder))
            compare(mpirun[1], Path(folder))
    except subprocess.CalledProcessError as error:
        print(error.output)
        raise
    finally:
        remove_network()
    return 0


sys.exit(main())
