"""Signals that come amid products change nothing."""

import subprocess
import sys

# The handler does nothing, but its frame lies on some stack.
PRODUCTS = """
import signal
import yoke

yoke.set_num_threads(1)
yoke.manual_seed(1)
grads, pictures, weights = yoke.randn((512, 100)), yoke.randn((100, 784)), yoke.randn((784, 512))

def products():
    return [grads @ pictures, pictures @ weights, weights @ grads]

wanted = products()
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
for _ in range(150):
    for found, right in zip(products(), wanted):
        assert (found == right).all().item()
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_signal_amid_a_product_spoils_nothing():
    done = subprocess.run([sys.executable, "-c", PRODUCTS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
