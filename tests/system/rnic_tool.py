"""The tool `rnic`, for the tests that call it as a user does."""
import os
import subprocess
import sys
import unittest

program = None


def rnic(*arguments, timeout=300):
    """Runs the tool; the result has returncode, stdout and stderr. `timeout`: seconds of a build that nothing makes slower."""
    return subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout * int(os.environ.get("RNIC_SLOWER", "1")))


def main(usage):
    """Runs the tests of the file that is executed, with its first argument as the tool."""
    global program
    if len(sys.argv) < 2:
        sys.exit(usage)
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
