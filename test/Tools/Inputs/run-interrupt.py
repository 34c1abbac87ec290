"""Runs a command, sends it a signal after its first line of output: run-interrupt.py SIGNAL COMMAND..."""
import signal
import subprocess
import sys
import time

number = getattr(signal, "SIG" + sys.argv[1])
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
process.stdout.readline()
process.send_signal(number)
begin = time.monotonic()
_, errors = process.communicate(timeout=60)
assert time.monotonic() - begin < 30
print("code", process.returncode)
print(errors, end="")
