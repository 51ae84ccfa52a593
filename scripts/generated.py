"""What the generators of sources share: names, and the files that they keep up to date."""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def camel(snake):
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


def snake(camel_name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", camel_name).lower()


def c_value(value):
    return f"{value:#x}" if value > 9 else str(value)


def bring_up_to_date(files, check, program, source):
    """Writes `files` (path below the root: text), or, with check, exits with 1 and says which differ from what `source` gives."""
    stale = []
    for name, text in files.items():
        path = ROOT / name
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        stale.append(name)
        if check:
            diff = difflib.unified_diff(old.splitlines(), text.splitlines(), name, f"{name} (from {source})", lineterm="")
            print("\n".join(list(diff)[:40]))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if check and stale:
        sys.exit(f"{program}: stale: {', '.join(stale)}; run scripts/{program}")
