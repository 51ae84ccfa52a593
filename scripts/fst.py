"""FST traces by way of fst2vcd (GTKWave)."""
import subprocess

import needed


def open_trace(path):
    """(process, signals): what the file declares, as (full name, code, bits) each; process.stdout goes on with the values."""
    needed.require("fst2vcd", "gtkwave")
    process = subprocess.Popen(["fst2vcd", path], stdout=subprocess.PIPE, text=True, errors="replace")
    scopes, signals = [], []
    for line in process.stdout:
        words = line.split()
        if not words:
            continue
        if words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            signals.append((".".join([*scopes, words[4]]), words[3], int(words[2])))
        elif words[0] == "$enddefinitions":
            break
    return process, signals
