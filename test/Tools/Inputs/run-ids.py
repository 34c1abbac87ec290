"""Writes token ids: run-ids.py FILE COUNT BELOW [POSITION=ID ...]; id i is i * i % BELOW but for the positions given."""
import struct
import sys

path, count, below = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ids = [i * i % below for i in range(count)]
for change in sys.argv[4:]:
    position, identifier = change.split("=")
    ids[int(position)] = int(identifier)
with open(path, "wb") as file:
    file.write(struct.pack(f"<{count}I", *ids))
