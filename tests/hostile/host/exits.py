"""Interpreters that end while daemon threads and handlers of atexit multiply. Each interpreter must end with status 0, in time."""

import os
import subprocess
import sys

DAEMONS = """
import threading, time, random, yoke
def work(seed):
    draw = random.Random(seed)
    while True:
        m, k, n = (draw.randrange(130, 400) for _ in range(3))
        yoke.ones((m, k)) @ yoke.ones((k, n))
for i in range(4):
    threading.Thread(target=work, args=({seed} * 10 + i,), daemon=True).start()
time.sleep({seed} % 20 / 100)
"""

LARGE = """
import threading, time, yoke
yoke.set_num_threads(1)
x = yoke.ones((1200, 1200))
def work():
    while True:
        x @ x
threading.Thread(target=work, daemon=True).start()
time.sleep(0.02 + {seed} % 10 / 200)
"""

# Python's own handlers run before any part of the process has ended.
HANDLER = """
import atexit, os, yoke
def work():
    if (yoke.ones((33, 44)) @ yoke.ones((44, 55))).mean().item() != 44.0: os._exit(3)
atexit.register(work)
yoke.ones((3, 4)) @ yoke.ones((4, 5))
"""


def main():
    runs = 300 if "YOKE_SOAK" in os.environ else 12
    failed = 0
    for name, program, count in (("daemons", DAEMONS, runs), ("large", LARGE, runs // 2), ("handler", HANDLER, 2)):
        for seed in range(count):
            done = subprocess.run([sys.executable, "-c", program.format(seed=seed)], capture_output=True, text=True, timeout=120)
            if done.returncode or done.stderr:
                failed += 1
                print(f"{name} {seed}: status {done.returncode}\n{done.stderr}")
    print(f"{failed} failed" if failed else "1 passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
