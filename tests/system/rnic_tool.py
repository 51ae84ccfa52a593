"""The tool `rnic`, for the tests that call it as a user does."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import jsonschema

program = None
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/results.schema.json").read_text())


def rnic(*arguments, timeout=300):
    """Runs the tool; the result has returncode, stdout and stderr. `timeout`: seconds of a build that nothing makes slower."""
    return subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout * int(os.environ.get("RNIC_SLOWER", "1")))


def checked(text):
    """The JSON that a command printed or wrote, which must be as docs/results.schema.json says."""
    value = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


def results(path):
    """The simulated figures in a file that a command wrote with --json."""
    return checked(pathlib.Path(path).read_text())["results"]


def main(usage):
    """Runs the tests of the file that is executed, with its first argument as the tool."""
    global program
    if len(sys.argv) < 2:
        sys.exit(usage)
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
