"""Too little memory: recognised, and reported in one sentence instead of a traceback."""

import resource

LEAST_MB = 600
"""Address space without which torch and numpy end the process while they are loaded."""
SIGNS = (
    "cannot allocate memory",
    "can't allocate memory",
    "out of memory",
    "failed to map segment",
    "can't start new thread",
    "bad_alloc",
)
"""What torch, the loader of libraries and the system say, in lower case."""


def check_address_space() -> None:
    """Raise MemoryError where the limit is too low to load what commands need."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_MB << 20:
        raise MemoryError(
            f"cannot allocate memory: address space must be >= {LEAST_MB} MB, got {limit >> 20} MB"
        )


def too_little_memory(error: BaseException) -> str | None:
    """Return a sentence about an error that is for want of memory; None for any other.

    >>> too_little_memory(MemoryError())
    'too little memory: allow more (ulimit -v shows the limit), or use fewer --workers'
    >>> too_little_memory(RuntimeError("shapes differ"))
    """
    lines = [line.strip() for line in str(error).splitlines()]
    found = [line for line in lines if any(sign in line.lower() for sign in SIGNS)]
    if not found and not isinstance(error, MemoryError):
        return None
    advice = "allow more (ulimit -v shows the limit), or use fewer --workers"
    return f"too little memory: {advice}" + (f"; {found[0]:.200}" if found else "")
