"""Where processes listen: addresses of listening TCP sockets, from Linux's /proc."""

import ipaddress
from pathlib import Path


def listening(mark):
    """Return (command, address, port) of all processes that have ``mark`` in their environment.

    A mark finds a run's whole tree, and those too that have left it: a child's environment is its
    parent's.
    """
    sockets = _sockets()
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if mark.encode() not in (process / "environ").read_bytes().split(b"\0"):
                    continue
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                open_files = [str(file.readlink()) for file in (process / "fd").iterdir()]
            except OSError:  # it has ended meanwhile
                continue
            found |= {(command, *sockets[name]) for name in open_files if name in sockets}
    return found


def _sockets():
    """Return address and port of each listening socket by its name in a process's files."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                address, port = fields[1].split(":")
                found[f"socket:[{fields[9]}]"] = (_address(address), int(port, 16))
    return found


def _address(text):
    """Return an address of /proc, which has it in words of four bytes, each the wrong way round."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address
