"""Draws parameters again by the rules of include/plateau/Run/ParameterInit.h: run-draw.py FILE SEED.

Compares a few hundred elements of every parameter of a saved state with what the rules give, and prints how many.
"""
import json
import math
import struct
import sys

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def normal(key, element):
    def word(i):
        return mix((key + (i + 1) * GOLDEN) & MASK)

    first = element // 2 * 2
    u = ((word(first) >> 11) + 1) / 2**53
    v = (word(first + 1) >> 11) / 2**53
    turn = math.sin if element % 2 else math.cos
    return math.sqrt(-2 * math.log(u)) * turn(2 * math.pi * v)


def main():
    path, seed = sys.argv[1], int(sys.argv[2])
    with open(path, "rb") as file:
        contents = file.read()
    length = struct.unpack_from("<Q", contents)[0]
    header = json.loads(contents[8 : 8 + length])
    compared = 0
    for name, entry in header.items():
        if entry.get("dtype") != "F32" or name.startswith(("optimizer.", "master.")):
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = struct.unpack(f"<{(end - begin) // 4}f", contents[begin:end])
        key = mix((mix((seed + GOLDEN) & MASK) + fnv(name)) & MASK)
        norm = name.endswith("norm.weight")
        for element in list(range(min(200, len(values)))) + [len(values) - 1]:
            expected = 1.0 if norm else 0.02 * normal(key, element)
            assert abs(values[element] - expected) <= 2e-7 * abs(expected), (name, element, values[element], expected)
            compared += 1
    print("compared", compared)


main()
