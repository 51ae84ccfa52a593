"""Which runs reach which mutant of scripts/mutants.toml: in a build of its own the RTL does what it always does, and at the place of each mutant
says whether its expression would have had another value there. A run in which it never had changes nothing with that mutant chosen, so that it
need not be run with it.

Values are held against each other wherever the simulator evaluates them, also before they have settled: a run that is said to reach a mutant may
pass for that reason, one that is not said to reach it does not.
"""
import concurrent.futures
import json
import mmap
import os
import pathlib
import subprocess
import zlib

import mutate

RTL = mutate.WORK / "rtl_reach"
KNOWN = mutate.WORK / "reach.json"
# A mutant's index is its place in the list.
PACKAGE = """package mutate_reach_pkg;
  // Always 1, which only who links it knows: the expression of the RTL stays what it is.
  import "DPI-C" function bit rnic_reached(input int index, input bit differs);
endpackage
"""
RECORDER = """#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "svdpi.h"

namespace {

/** A byte a mutant in the file $RNIC_REACH, so that also a run that is ended leaves what it had reached. */
char* open_record() {
  static char nowhere[1 << 16];
  const char* path = std::getenv("RNIC_REACH");
  if (path == nullptr) {
    return nowhere;
  }
  const int file = open(path, O_RDWR);
  void* place = file >= 0 ? mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (place == MAP_FAILED) {
    std::abort();
  }
  close(file);
  return static_cast<char*>(place);
}

char* const record = open_record();

}  // namespace

extern "C" svBit rnic_reached(int index, svBit differs) {
  if (differs != 0 && record[index] == 0) {
    record[index] = 1;
  }
  return 1;
}
"""
SIZE = 1 << 16


def build(mutants, jobs):
    """Builds the tool that records. `mutants`: the list, by name."""
    index = {name: place for place, name in enumerate(mutants)}

    def recorded(mutant, original, text):
        differs = f"({mutant['new']}) != ({original})"
        return f"(mutate_reach_pkg::rnic_reached({index[mutant['name']]}, {differs}) ? ({text}) : ({mutant['new']}))"

    if problems := mutate.copy_sources(mutants, RTL, recorded):
        raise mutate.Problem("\n".join(problems))
    mutate.write(mutate.WORK / "mutate_reach_pkg.sv", PACKAGE)
    mutate.write(mutate.WORK / "mutate_reach.cpp", RECORDER)
    return mutate.build_nic(jobs, "reach", mutate.copy_options(RTL, "mutate_reach_pkg.sv", "mutate_reach.cpp"))


def reached(program, mutants, arguments):
    """Names of the mutants that a run of the tool reaches; a Problem if it does not pass."""
    with (mutate.WORK / f"reach.{os.urandom(8).hex()}").open("w+b") as file:
        try:
            file.truncate(SIZE)
            done = subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", check=False, cwd=mutate.WORK, env={**os.environ, "RNIC_REACH": file.name})
            if done.returncode:
                raise mutate.Problem(f"{' '.join(arguments)} does not pass in the build that records: exit code {done.returncode}\n{done.stdout[-2000:]}")
            with mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ) as record:
                return {name for place, name in enumerate(mutants) if record[place]}
        finally:
            os.unlink(file.name)


def of_runs(program, mutants, runs, jobs):
    """For each of these runs, a dict of arguments by any key, the mutants that it reaches. What is known of the same program, list and files is not
    asked again."""
    base = zlib.crc32("\n".join(mutants).encode(), zlib.crc32(program.read_bytes()))
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}

    def key(arguments):
        files = [pathlib.Path(word) for word in arguments if word.endswith(".json")]
        return str(zlib.crc32("\n".join([*arguments, *(file.read_text() for file in files)]).encode(), base))

    keys = {name: key(arguments) for name, arguments in runs.items()}

    def ask(name):
        answer = known.get(keys[name])
        return set(answer) if answer is not None else reached(program, mutants, runs[name])

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = dict(zip(runs, pool.map(ask, runs)))
    KNOWN.write_text(json.dumps({keys[name]: sorted(answer) for name, answer in answers.items()}))
    return answers
