"""Programs that a script runs and that the system may lack."""
import pathlib
import shutil
import sys

MISSING = 77  # CMake's SKIP_RETURN_CODE for tests that may be skipped; every other test fails with it


def require(program, package, switch="--tests"):
    """Exits with MISSING when `program` is not in PATH, and says in one line which Debian package has it. `switch`: with which scripts/setup.sh installs it, if any."""
    if shutil.which(program) is None:
        missing(program, f"Debian's package {package}" + (f"; scripts/setup.sh {switch} installs it" if switch else ""))


def missing(what, remedy):
    """Says in one line that `what` is missing and what to do, and exits with MISSING."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {what} is missing ({remedy})", file=sys.stderr)
    sys.exit(MISSING)
