#!/usr/bin/env python3
"""Count the levels of LUT and carry between the registers of a netlist in UltraScale+ cells.

usage: lut_levels.py --self-test

levels(design, top) reads what Yosys' write_json has written of a design. A path starts at a flip-flop, a RAM or an input of `top`, ends at a flip-flop, a
RAM or an output of it, and is searched across the borders of the modules. On its way counts one: a LUT; a wide LUT (LUTs and the MUXF7, F8, F9
that join them, from whichever input); a carry chain, however long; a LUT RAM or a shift register from its address to its data.
"""
import collections
import re
import sys

LUT = re.compile(r"LUT[1-6]|INV|\$lut")
MUX = re.compile(r"MUXF[789]")
CARRY = re.compile(r"CARRY4")
FLOP = re.compile(r"FD[RSCP]E(_1)?|\$_S?DFFE?_\w+_")
BLOCK_RAM = {"RAMB18E2": 0.5, "RAMB36E2": 1}
# LUTs that a LUT RAM or a shift register takes.
LUT_RAM = {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32X1S": 1, "RAM64X1S": 1,
           "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8, "SRL16E": 1, "SRLC32E": 1}
CLOCKS = {"C", "CLK", "WCLK", "CLKARDCLK", "CLKBWRCLK"}
# More levels than this do not fit into a cycle of 4 ns (docs/synthesis.md).
GOAL = 10


class NetlistError(Exception):
    """A cell that is not known here, or a loop."""


def addresses(kind, pin, pins):
    """The pins of a LUT RAM or of a shift register that choose what its output `pin` shows."""
    if kind.startswith("SRL"):
        wanted = r"A\d*" if pin == "Q" else None
    elif re.fullmatch(r"DO[A-H]", pin):
        wanted = "ADDR" + pin[2]
    else:
        wanted = r"DPRA\d*" if pin == "DPO" else r"A\d*"
    return [name for name in pins if wanted and re.fullmatch(wanted, name)]


def needed(table, bits):
    """Those inputs of a LUT, of its `bits`, on which its `table` depends: the mapper leaves some on which it does not."""
    value, width = int(table.replace("x", "0"), 2), len(bits)
    for place, bit in enumerate(bits):
        # Entries in which the input is 0, beside those in which it is 1.
        zeros = int(("0" * (1 << place) + "1" * (1 << place)) * (1 << width - place - 1), 2)
        if (value ^ value >> (1 << place)) & zeros:
            yield bit


def arcs(kind, pins, outputs):
    """(output bit, [(input bit, levels)]) of a cell that is more than a start and an end; levels None: one, but none from the wire of the slice that
    joins it to the cell before."""
    if kind == "$lut":
        yield pins["Y"][0], [(bit, 1) for bit in pins["A"]]
    elif LUT.fullmatch(kind):
        yield pins[outputs[0]][0], [(bit, 1) for name, bits in pins.items() if name not in outputs for bit in bits]
    elif MUX.fullmatch(kind):
        yield pins["O"][0], [(pins["I0"][0], None), (pins["I1"][0], None), (pins["S"][0], 1)]
    elif CARRY.fullmatch(kind):
        into = [(pins["CI"][0], None), (pins["CYINIT"][0], 1)]
        for place in range(4):
            into = into + [(pins["S"][place], 1)]
            if "O" in pins:
                yield pins["O"][place], into
            into = into + [(pins["DI"][place], 1)]
            if "CO" in pins:
                yield pins["CO"][place], into
    elif kind in LUT_RAM:
        for name in outputs:
            for bit in pins.get(name, []):
                yield bit, [(source, 1) for pin in addresses(kind, name, pins) for source in pins[pin]]


def joined(kind, before):
    """A wire of the slice leads from a cell to the next: no level of its own."""
    if MUX.fullmatch(kind):
        return bool(LUT.fullmatch(before) or MUX.fullmatch(before))
    return bool(CARRY.fullmatch(before))


class Netlist:
    """A design with all modules in their places: bits have numbers of their own, and those of a port are the ones that it is connected to."""

    def __init__(self, design, top):
        self.modules = design["modules"]
        self.alias = []
        self.driver = {}  # bit: (kind of cell, [(bit, levels)])
        self.starts = {}  # bit: subsystem and name
        self.ends = []  # (bit, subsystem and name)
        self.area = collections.defaultdict(collections.Counter)
        ports = {bit: self.new() for port in self.modules[top]["ports"].values() for bit in port["bits"] if isinstance(bit, int)}
        self.place(top, top, "", ports)
        for name, port in self.modules[top]["ports"].items():
            for index, bit in enumerate(port["bits"]):
                if isinstance(bit, int):
                    end = (top, f"{name}[{index}]" if len(port["bits"]) > 1 else name)
                    if port["direction"] == "input":
                        self.starts[self.root(ports[bit])] = end
                    else:
                        self.ends.append((ports[bit], end))

    def new(self):
        self.alias.append(len(self.alias))
        return len(self.alias) - 1

    def root(self, bit):
        while self.alias[bit] != bit:
            self.alias[bit] = self.alias[self.alias[bit]]
            bit = self.alias[bit]
        return bit

    def place(self, module, subsystem, path, known):
        """Adds an instance of `module`; `known` has the bits of its ports."""
        def bit(local):
            if not isinstance(local, int):
                return None
            if local not in known:
                known[local] = self.new()
            return known[local]

        names = self.names(module, path)
        for name, cell in self.modules[module]["cells"].items():
            pins = {pin: [bit(local) for local in bits] for pin, bits in cell["connections"].items()}
            below = self.modules.get(cell["type"])
            if below and not {"blackbox", "whitebox"} & set(below["attributes"]):
                self.below(cell["type"], name, path, subsystem, below, pins)
            else:
                self.leaf(name, cell, pins, subsystem, path, names)

    def below(self, module, instance, path, subsystem, ports, pins):
        inside = {}
        for port, info in ports["ports"].items():
            for local, outer in zip(info["bits"], pins.get(port, [])):
                if not isinstance(local, int) or outer is None:
                    continue
                if local in inside:
                    self.alias[self.root(outer)] = self.root(inside[local])
                inside.setdefault(local, outer)
        flat = subsystem if not self.modules[module]["attributes"].get("keep_hierarchy") else plain(module)
        self.place(module, flat, "" if flat != subsystem else f"{path}{instance}.", inside)

    def leaf(self, name, cell, pins, subsystem, path, names):
        kind = cell["type"]
        outputs = [pin for pin, direction in cell["port_directions"].items() if direction == "output"]
        count = self.area[subsystem]
        if LUT.fullmatch(kind):
            if kind == "$lut":
                pins["A"] = list(needed(cell["parameters"]["LUT"], pins["A"]))
            # A LUT of more than six inputs is made of LUT6.
            count["luts"] += 1 << max(len(pins.get("A", [])) - 6, 0)
        elif kind in LUT_RAM:
            count["lutram"] += LUT_RAM[kind]
        elif kind in BLOCK_RAM:
            count["ramb36"] += BLOCK_RAM[kind]
        elif FLOP.fullmatch(kind):
            count["flops"] += 1
        elif CARRY.fullmatch(kind):
            count["carry"] += 1
        elif not MUX.fullmatch(kind):
            raise NetlistError(f"{subsystem}: {name}: depth of a {kind} is not known")
        for output, sources in arcs(kind, pins, outputs):
            if output is not None:
                self.driver[output] = (kind, [source for source in sources if source[0] is not None])
        if FLOP.fullmatch(kind):
            own = names.get(cell["connections"]["Q"][0], path + tidy(name))
        else:
            own = path + tidy(name)
        if FLOP.fullmatch(kind) or kind in BLOCK_RAM or kind in LUT_RAM:
            for pin, bits in pins.items():
                for place in bits:
                    if place is None or pin in CLOCKS:
                        continue
                    if pin not in outputs:
                        self.ends.append((place, (subsystem, own)))
                    else:
                        self.starts[place] = (subsystem, own)

    def names(self, module, path):
        """Name of each bit of a module: a register's own (`_q`) rather than that of a port which it drives."""
        best = {}
        for name, net in self.modules[module]["netnames"].items():
            if net["hide_name"]:
                continue
            rank = (not name.endswith("_q"), name.endswith("_i"), -name.count("."), name)
            for index, bit in enumerate(net["bits"]):
                if isinstance(bit, int) and (bit not in best or rank < best[bit][0]):
                    best[bit] = (rank, f"{path}{name}[{index}]" if len(net["bits"]) > 1 else path + name)
        return {bit: name for bit, (_, name) in best.items()}

    def depths(self):
        """Levels up to each bit that has any, and where its deepest path starts."""
        driver = {}
        for bit, (kind, sources) in self.driver.items():
            driver[self.root(bit)] = (kind, [(self.root(source), levels) for source, levels in sources])
        starts = {self.root(bit): name for bit, name in self.starts.items()}
        found, todo, under_way = {}, list(driver), set()
        while todo:
            bit = todo[-1]
            if bit in found:
                todo.pop()
                continue
            kind, sources = driver[bit]
            missing = [source for source, _ in sources if source in driver and source not in found]
            if missing:
                if bit in under_way:
                    raise NetlistError(f"combinational loop through a {kind}")
                under_way.add(bit)
                todo += missing
                continue
            todo.pop()
            under_way.discard(bit)
            found[bit] = (0, starts.get(bit, ("", "")))
            for source, levels in sources:
                depth, start = found.get(source, (0, starts.get(source, ("", ""))))
                if levels is None:
                    levels = 0 if source in driver and joined(kind, driver[source][0]) else 1
                # Of paths of one length always the same.
                found[bit] = min(found[bit], (depth + levels, start), key=lambda entry: (-entry[0], entry[1]))
        return found


def plain(name):
    """The name of the source module of a module of the netlist, which may carry its parameters."""
    return re.sub(r"^\$paramod(\$[0-9a-f]+)?\\(\w+).*$", r"\2", name).lstrip("\\")


def tidy(name):
    """A cell's name without what Yosys has made of it."""
    return re.sub(r"^\$flatten", "", name).replace("\\", "")


def levels(design, top):
    """Figures of each subsystem (the module `top` and those below it that are kept apart), by name. Levels of the deepest path that ends in it, where that
    starts and ends, and how many ends lie deeper than GOAL; LUTs, cells of carry chains, flip-flops, RAMB36 (a RAMB18 is half of one), and LUTs that are RAM."""
    netlist = Netlist(design, top)
    found = netlist.depths()
    figures = {}
    for subsystem, count in netlist.area.items():
        figures[subsystem] = {"levels": 0, "from": "", "to": "", "deep": 0, **{key: count[key] for key in ("luts", "carry", "flops", "ramb36", "lutram")}}
    deepest = {}
    for bit, (subsystem, name) in netlist.ends:
        depth, start = found.get(netlist.root(bit), (0, ("", "")))
        figures.setdefault(subsystem, {"levels": 0, "from": "", "to": "", "deep": 0, "luts": 0, "carry": 0, "flops": 0, "ramb36": 0, "lutram": 0})
        figures[subsystem]["deep"] += depth > GOAL
        rank = (-depth, start, name)
        if depth and rank < deepest.get(subsystem, (1,)):
            deepest[subsystem] = rank
            figures[subsystem].update({"levels": depth, "from": ".".join(part for part in start if part), "to": f"{subsystem}.{name}"})
    return figures


def deeper(held, found):
    """What is to be said of the subsystems that are deeper than `held` says."""
    complaints = []
    for name, entry in sorted(found.items()):
        if name not in held:
            complaints.append(f"{name}: {entry['levels']} levels, and no figure of it is held")
        elif entry["levels"] > held[name]["levels"]:
            complaints.append(f"{name}: {held[name]['levels']} -> {entry['levels']} levels, deeper: from {entry['from']} to {entry['to']}")
    return complaints


def self_test():
    def cell(kind, **pins):
        return {"type": kind, "connections": pins, "port_directions": {pin: "output" if pin in ("O", "CO", "Q", "DOA", "Y") else "input" for pin in pins}}

    def module(cells, names, ports=None, **attributes):
        return {"attributes": attributes, "cells": cells, "ports": {name: {"direction": way, "bits": bits} for name, (way, bits) in (ports or {}).items()},
                "netnames": {name: {"hide_name": 0, "bits": bits} for name, bits in names.items()}}

    def flop(d, q):
        return cell("FDRE", C=[2], CE=["1"], D=[d], Q=[q], R=["0"])

    def carry(s, ci, cyinit, o, co):
        return cell("CARRY4", CI=[ci], CYINIT=[cyinit], DI=["0"] * 4, S=s, O=o, CO=co)

    def named(cells):
        return {f"c{number}": part for number, part in enumerate(cells)}

    def measured(cells, names):
        return levels({"modules": {"top": module(cells, names, {"clk_i": ("input", [2])})}}, "top")["top"]

    def expect(what, got, wanted):
        if got != wanted:
            sys.exit(f"lut_levels.py: self-test: {what}: {got}, not {wanted}")

    begin, end = {"a": flop("0", 10)}, {"a_q": [10], "z_q": [99]}

    def between(what, depth, *cells):
        got = measured({**begin, "z": flop(90, 99), **named(cells)}, end)
        expect(what, (got["levels"], got["from"], got["to"]), (depth, "top.a_q", "top.z_q"))

    between("one LUT", 1, cell("LUT2", I0=[10], I1=["1"], O=[90]))
    between("the longer of two ways", 3, cell("LUT1", I0=[10], O=[11]), cell("INV", I=[11], O=[12]), cell("LUT2", I0=[12], I1=[10], O=[90]))
    wide = [cell("LUT6", I0=[10], O=[11]), cell("LUT6", I0=[10], O=[12]), cell("MUXF7", I0=[11], I1=[12], S=[10], O=[13])]
    between("a wide LUT", 1, *wide, cell("MUXF8", I0=[13], I1=["0"], S=[10], O=[90]))
    between("a LUT that selects in a wide one", 2, *wide[:2], cell("MUXF7", I0=["0"], I1=["1"], S=[11], O=[90]))
    between("a carry chain of two cells between LUTs", 3, cell("LUT1", I0=[10], O=[11]), carry([11, "0", "0", "0"], "0", "1", [20, 21, 22, 23], [24, 25, 26, 27]),
            carry(["0"] * 4, 27, "0", [30, 31, 32, 33], [34, 35, 36, 37]), cell("LUT1", I0=[33], O=[90]))
    # Of its seven inputs the table asks for the first alone.
    table = {"parameters": {"LUT": "10" * 64}}
    between("a wide LUT of the mapper", 2, cell("INV", I=[10], O=[11]), {**cell("$lut", A=[11, 12, 12, 12, 12, 12, 12], Y=[90]), **table}, cell("INV", I=[11], O=[12]))
    between("a second chain", 2, carry([10, "0", "0", "0"], "0", "0", [20, 21, 22, 23], [24, 25, 26, 27]),
            carry(["0"] * 4, "0", 24, [90, 31, 32, 33], [34, 35, 36, 37]))
    between("a LUT RAM, from its address", 2, cell("RAM64M", ADDRA=[10] * 6, ADDRD=["0"] * 6, DIA=["0"], WCLK=[2], WE=["0"], DOA=[11]), cell("LUT1", I0=[11], O=[90]))
    below = measured({"z": flop(90, 99), "c": carry(["0", "0", 99, "0"], "0", "0", [20, 90, 22, 23], [24, 25, 26, 27])}, {"z_q": [99]})
    expect("no way down in a chain", (below["levels"], below["flops"], below["carry"]), (0, 1, 1))
    ram = measured({"a": flop("0", 10), "r": cell("RAMB18E2", CLKARDCLK=[2], ADDRARDADDR=[10]), "s": cell("RAMB36E2", CLKARDCLK=[2], ADDRARDADDR=[12]),
                    "c": cell("LUT1", I0=[10], O=[12])}, {"a_q": [10]})
    expect("a RAM ends a path", (ram["levels"], ram["to"], ram["ramb36"], ram["luts"]), (1, "top.s", 1.5, 1))
    # Two subsystems, the second one with its input led straight to an output: a path through both.
    kind = "$paramod\\inner\\W=1"
    inner = module({"l": cell("LUT1", I0=[3], O=[4]), "z": flop(4, 5)}, {"in_i": [3], "far_q": [5]},
                   {"clk_i": ("input", [2]), "in_i": ("input", [3]), "out_o": ("output", [4]), "same_o": ("output", [3])}, keep_hierarchy="1")
    outer = module({"a": flop("0", 10), "l": cell("LUT1", I0=[10], O=[11]), "m": cell("LUT1", I0=[13], O=[14]), "z": flop(14, 15),
                    "u_inner": cell(kind, clk_i=[2], in_i=[11], out_o=[12], same_o=[13])}, {"near_q": [10], "back_q": [15]}, {"clk_i": ("input", [2])})
    both = levels({"modules": {"top": outer, kind: inner}}, "top")
    expect("subsystems", {name: (entry["levels"], entry["from"], entry["to"], entry["luts"]) for name, entry in both.items()},
           {"top": (2, "top.near_q", "top.back_q", 2), "inner": (2, "top.near_q", "inner.far_q", 1)})
    long = [cell("LUT1", I0=[10 + step], O=[11 + step if step < GOAL else 90]) for step in range(GOAL + 1)]
    expect("an end beyond the goal", measured({**begin, "z": flop(90, 99), **named(long)}, end)["deep"], 1)
    for what, cells in (("loop", [cell("LUT1", I0=[11], O=[12]), cell("LUT1", I0=[12], O=[11])]), ("DSP48E2", [cell("DSP48E2", A=[10])])):
        try:
            measured({**begin, **named(cells)}, end)
        except NetlistError as error:
            if what in str(error):
                continue
        sys.exit(f"lut_levels.py: self-test: a netlist with a {what} passes")
    now = {name: {"levels": 7, "from": "top.a_q", "to": "top.z_q"} for name in ("as_it_was", "worse", "better", "new")}
    complaints = deeper({"as_it_was": {"levels": 7}, "worse": {"levels": 6}, "better": {"levels": 8}, "gone": {"levels": 9}}, now)
    expect("deeper ones", [line.partition(":")[0] for line in complaints], ["new", "worse"])
    print("self-test passed")


if __name__ == "__main__":
    if sys.argv[1:] != ["--self-test"]:
        sys.exit(__doc__)
    self_test()
