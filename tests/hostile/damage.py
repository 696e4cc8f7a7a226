"""Damage to bytes and to JSON: small, large and malicious."""

import json
import struct

NUMBERS = (0, 1, -1, 255, 2**31, 2**32 - 1, 2**53, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308)
VALUES = (None, True, [], {}, "", "F32", "\x1b[2J\n", "x" * 3000, [[]], [0] * 70, *NUMBERS)
NAMES = (
    "fields",
    "items",
    "pairs",
    "tensor",
    "value",
    "named",
    "__metadata__",
    "w",
    "b",
    "dtype",
    "shape",
    "data_offsets",
    "num_examples",
    "\x1b[2J",
    "",
)


def damaged(random, content: bytes, most: int = 8) -> bytes:
    """Return bytes with a few of them changed, added, taken away or moved."""
    changed = bytearray(content)
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(changed) + 1)
        how = random.randrange(7)
        if how == 0 and changed:
            changed[at % len(changed)] = random.randrange(256)
        elif how == 1:
            del changed[at : at + random.choice((1, 4, 8, 100, 10_000))]
        elif how == 2:
            changed[at:at] = random.randbytes(random.choice((1, 4, 8, 50)))
        elif how == 3:
            changed[at:at] = changed[: random.randrange(100)]
        elif how == 4:
            changed[at : at + 4] = struct.pack("<I", random.choice((0, 1, 2**31, 2**32 - 1)))
        elif how == 5:
            changed[at : at + 8] = struct.pack(">Q", random.choice((0, 1, 2**32, 2**63)))
        elif changed:
            changed[at % len(changed)] ^= 1 << random.randrange(8)
    return bytes(changed)


def twisted(random, tree, depth=0):
    """Return a JSON value with something in it replaced, added, left out or nested."""
    if isinstance(tree, dict) and tree and random.random() < 0.8:
        name, changed = random.choice(list(tree)), dict(tree)
        how = random.randrange(6)
        if how == 0:
            del changed[name]
        elif how == 3:
            changed[name] = random.choice(VALUES)
        elif how == 1:
            changed[random.choice(NAMES)] = random.choice(VALUES)
        elif how == 2:
            changed[random.choice(NAMES)] = changed.pop(name)
        else:
            changed[name] = twisted(random, changed[name], depth + 1)
        return changed
    if isinstance(tree, list) and tree and random.random() < 0.7:
        at, items = random.randrange(len(tree)), list(tree)
        items[at : at + 1] = random.choice(([], [twisted(random, tree[at])], [tree[at]] * 3))
        return items
    return random.choice((*VALUES, {"a": tree}, [tree]))


def header_file(random, header: dict, content: bytes) -> bytes:
    """Return a safetensors file whose header was twisted, and often its length too."""
    for _ in range(random.randint(0, 3)):
        header = twisted(random, header)
        if not isinstance(header, dict):
            break
    text = json.dumps(header).encode()
    how = random.randrange(12)
    if how == 0:
        text = text.replace(b"}", b',"w":1}', 1)
    elif how == 1:
        text = b"[" * random.choice((10, 5_000, 100_000)) + text
    elif how == 2:
        text += b" " * random.choice((1, 100, 5_000))
    elif how == 3:
        text = text.replace(b'"', random.choice((b"'", b"\xff", b'"\\u0000')), 2)
    length = len(text)
    if random.randrange(8) == 0:
        length = random.choice((0, 1, length + 1, length - 1, 2**31, 2**63, 2**64 - 1))
    whole = struct.pack("<Q", length) + text + content
    return damaged(random, whole, 3) if random.randrange(6) == 0 else whole
