"""The folder `programs` has, by their names, programs of Debian's packages without a fault of their own that would now and then fail a test."""
import os
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "programs"


def prefer():
    """For what this process runs from now on."""
    os.environ["PATH"] = f"{FOLDER}{os.pathsep}{os.environ['PATH']}"
