#pragma once

#include <array>
#include <string_view>

namespace rnic::testbench {

/// A command of `rnic`, and the program of libexec/rnic that runs it. What a program is linked of is what its commands
/// need, so that the first of them is soon built.
struct ToolCommand {
  std::string_view name, program;
  std::string_view summary;  ///< Its description begins with it (add_command)
};

inline constexpr std::array kToolCommands = {
    ToolCommand{"copy", "rnic-copy",
                "Copy a file from host A to host B by RDMA Write and back by RDMA Read, and compare"},
    ToolCommand{"verify", "rnic-check", "Run test vectors of the specification on simulated NICs"},
    ToolCommand{"bench", "rnic-check", "Measure goodput, message rate and latency in simulated cycles"},
    ToolCommand{"soak", "rnic-check", "Run random work on many queue pairs in both directions, and check every byte"},
    ToolCommand{"fuzz", "rnic-check", "Send malformed frames and requests, while good ones use the same NICs"},
    ToolCommand{"compare", "rnic-check", "Run the same random programs on the RTL and the reference NIC"},
    ToolCommand{"coverage", "rnic-check", "Show which cover points runs have reached"},
    ToolCommand{"exec", "rnic-machine", "Run programs of libibverbs on hosts of a machine"},
    ToolCommand{"lockstep", "rnic-machine", "Run programs of NetworkDirect in simulated time"},
    ToolCommand{"linux", "rnic-machine", "Boot Linux in QEMU with the NIC on its PCI bus"},
    ToolCommand{"serve", "rnic-machine", "Run a machine as a process that programs can use"},
    ToolCommand{"replay", "rnic-machine", "Run a machine again from its event log"},
    ToolCommand{"ps", "rnic-machine", "List the processes on a running machine"},
    ToolCommand{"stat", "rnic-machine", "Show the counters of a running machine"},
    ToolCommand{"completion", "rnic-copy", "Print a script that completes commands in bash, zsh or fish"},
    ToolCommand{"man", "rnic-copy", "Show the manual page of a command, or of all"},
};

}  // namespace rnic::testbench
