// Bottleneck, packets, counters, settings; and the order of all.

/** rnic_top.u_send_side.u_tx_path.desc as people say it. */
const shortName = (name) => name.replace(/^rnic_top\./, "").replace(/(^|\.)u_/g, "$1");

function showLimits() {
  const part = section("bottleneck", "Bottleneck", `How full the links were, what queue pairs waited for, and which blocks of the NICs were busy. Shares are of the ${format.time(run.work.ns)} in which a work request of either host was open.`);
  const use = linkUse();
  part.append(element("p", {id: "conclusion"}, element("b", {}, bottleneck(use))));
  if (use.length !== 0) {
    const fullest = use.reduce((a, b) => (b.mean > a.mean ? b : a));
    part.append(element("h3", {}, "Links"));
    part.append(element("p", {class: "note"}, "The fullest link on the whole was ", element("b", {}, fullest.name), `: ${format.share(fullest.mean)} of ${fullest.gbps} Gbit/s, at most ${format.share(fullest.most)}.`));
    part.append(timeChart(use, {from: run.series.from_ns, step: run.series.bin_ns, title: "share of the link", tick: d3.format(".0%"), limits: [{name: "the whole link", value: 1}], label: "How full each link was over time", legend: "Links", text: format.share}));
    part.append(folded("As a table", table("Use of the links", [
      {title: "link", value: (one) => one.name}, {title: "rate, Gbit/s", value: (one) => one.gbps, text: (v) => v.toFixed(1), ...number},
      {title: "used", value: (one) => one.mean, text: format.share, ...number}, {title: "at most", value: (one) => one.most, text: format.share, ...number}], use)));
  }
  showStalls(part);
  const busy = run.hosts.filter((host) => host.streams.length + host.engines.length !== 0);
  if (busy.length === 0) return;
  part.append(element("h3", {}, "Blocks"));
  part.append(tabs("NIC", busy.map((host) => ({title: `NIC ${host.host}`, fill: (panel) => showBlocks(panel, host)}))));
}

function showStalls(part) {
  const rows = run.hosts.flatMap((host) => {
    const reasons = grouped(host.stalls, (one) => one.reason).map(({key, values: all}) => ({key, value: {count: d3.sum(all, (one) => one.count), ns: d3.sum(all, (one) => one.ns), longest: d3.max(all, (one) => one.longest_ns), qps: all.length}}));
    const waits = Object.entries(host.waits).filter(([, wait]) => wait.count > 0).map(([key, wait]) => ({key, value: {count: wait.count, ns: wait.ns, longest: wait.longest_ns, qps: null}}));
    return [...reasons.sort((a, b) => b.value.ns - a.value.ns), ...waits].map((one) => ({host: host.host, reason: one.key, ...one.value}));
  });
  part.append(element("h3", {}, "Waiting"));
  if (rows.length === 0) {
    part.append(element("p", {class: "note"}, "No queue pair was held up, and no DMA read or TLP waited for a tag, a buffer or credits."));
    return;
  }
  const all = Math.max(1, run.work.ns);
  part.append(table("Why queue pairs stalled, and what DMA waited for", [
    {title: "reason", value: (one) => one.reason}, {title: "host", value: (one) => one.host}, {title: "queue pairs", value: (one) => one.qps, text: (v) => (v === null ? "" : format.count(v)), ...number},
    {title: "times", value: (one) => one.count, ...number}, {title: "sum", value: (one) => one.ns, text: format.time, ...number}, {title: "longest", value: (one) => one.longest, text: format.time, ...number},
    {title: "waiting, mean", value: (one) => one.ns / all, text: (v) => v.toFixed(3), ...number}], rows));
  const of = run.hosts.flatMap((host) => host.stalls.map((one) => ({host: host.host, ...one})));
  if (of.length !== 0) part.append(folded("By queue pair", table("Stalls of each queue pair", [
    {title: "queue pair", value: (one) => `${one.host}, QP ${one.qp}`}, {title: "reason", value: (one) => one.reason}, {title: "times", value: (one) => one.count, ...number},
    {title: "sum", value: (one) => one.ns, text: format.time, ...number}, {title: "longest", value: (one) => one.longest_ns, text: format.time, ...number}], of)));
}

function showBlocks(panel, host) {
  const link = run.links.find((one) => one.host === host.host);
  const cycles = Math.max(1, (1000 * run.work.ns) / link.clock_period_ps);
  const kRows = 10;
  const streams = host.streams.slice().sort((a, b) => b.waits - a.waits || b.moves - a.moves);
  const engines = host.engines.slice().sort((a, b) => b.busy - a.busy);
  const bar = (name, parts, share) => ({name: shortName(name), parts, text: format.share(share)});
  const columns = element("div", {});
  const waiting = streams.filter((one) => one.waits > 0).slice(0, kRows), busiest = engines.slice(0, kRows);
  if (waiting.length !== 0) {
    const keys = element("div", {class: "legend"}, element("span", {class: "key", style: "--colour: var(--s2)"}, "an item moves"), element("span", {class: "key", style: "--colour: var(--s1)"}, "an item waits for its receiver"));
    columns.append(element("h3", {}, "Streams that waited most"), keys, bars(waiting.map((one) => bar(one.stream, [{value: one.moves / cycles, colour: "var(--s2)"}, {value: one.waits / cycles, colour: "var(--s1)"}], one.waits / cycles)), 1, `Streams of NIC ${host.host} that waited most, share of the cycles`));
  }
  if (busiest.length !== 0) columns.append(element("h3", {}, "Engines that were busiest"), bars(busiest.map((one) => bar(one.engine, [{value: one.busy / cycles, colour: "var(--s0)"}], one.busy / cycles)), 1, `Engines of NIC ${host.host} that were busiest, share of the cycles`));
  panel.append(columns);
  const share = (v) => format.share(v);
  panel.append(folded("All streams as a table", table(`Streams of NIC ${host.host}`, [
    {title: "stream", value: (one) => one.stream, text: shortName, kind: "code"}, {title: "moves, cycles", value: (one) => one.moves, ...number}, {title: "", value: (one) => one.moves / cycles, text: share, ...number},
    {title: "waits, cycles", value: (one) => one.waits, ...number}, {title: "", value: (one) => one.waits / cycles, text: share, ...number}], streams)));
  panel.append(folded("All engines as a table", table(`Engines of NIC ${host.host}`, [
    {title: "engine", value: (one) => one.engine, text: shortName, kind: "code"}, {title: "busy, cycles", value: (one) => one.busy, ...number}, {title: "", value: (one) => one.busy / cycles, text: share, ...number}], engines)));
}

function showPackets() {
  const part = section("packets", "Packets", "Every frame on the wire, by who has sent it: repeated ones carry a PSN that was sent before, lost ones were dropped by the wire, and those that were not validated were damaged on their way or still under way at the end.");
  part.append(element("p", {class: "note"}, element("b", {"data-value": run.frames, id: "frames"}, format.count(run.frames)), " frames in all."));
  const rows = run.hosts.flatMap((host) => host.packets.sent.map((one) => ({host: host.host, ...one})));
  const of = (title, key) => ({title, value: (one) => one[key], ...number});
  part.append(table("Packets by kind", [
    {title: "opcode", value: (one) => one.opcode, kind: "code"}, {title: "from", value: (one) => one.host}, of("frames", "frames"), of("bytes", "bytes"), of("payload", "payload"), of("repeated", "repeated"), of("lost", "lost"),
    of("not validated", "unjudged"), of("dropped unsent", "unsent"), of("injected", "injected")], rows));
  const other = run.hosts.filter((host) => host.packets.not_roce > 0).map((host) => `${host.packets.not_roce} from ${host.host}`);
  if (other.length !== 0) part.append(element("p", {class: "note"}, `Frames that are not RoCE: ${other.join(", ")}.`));

  const losses = run.hosts.flatMap((host) => Object.entries(host.packets.faults).map(([what, count]) => ({what: `wire: ${what}`, host: host.host, count, note: "frames that it sent"})));
  const verdicts = run.hosts.flatMap((host) => Object.entries(host.packets.verdicts).filter(([what]) => what !== "taken").map(([what, count]) => ({what: `packet check: ${what}`, host: host.host, count, note: "packets that came to it"})));
  const mended = run.hosts.flatMap((host) => host.trouble.flatMap((one) => one.counts.map((text) => text.split(" ")).map(([count, name]) => ({what: `${one.what}: ${name}`, host: host.host, count: Number(count), note: "events that its NIC counts"}))));
  part.append(element("h3", {}, "Losses and repairs"));
  const all = [...losses, ...verdicts, ...mended];
  if (all.length === 0) {
    part.append(element("p", {class: "note"}, "None: nothing was lost, refused or repaired."));
    return;
  }
  part.append(table("Losses, refusals and repairs", [{title: "what", value: (one) => one.what}, {title: "host", value: (one) => one.host}, {title: "count", value: (one) => one.count, ...number}, {title: "of", value: (one) => one.note}], all));
}

function showCounters() {
  const part = section("counters", "Counters", "What each NIC has counted from its reset to the end, tear-down included: the events that it counts itself, seen from outside.");
  const names = Object.keys(run.hosts[0].counters);
  const rows = names.map((name) => ({name, counts: run.hosts.map((host) => host.counters[name])}));
  const columns = [{title: "counter", value: (one) => one.name}, ...run.hosts.map((host, i) => ({title: `NIC ${host.host}`, value: (one) => one.counts[i], ...number}))];
  part.append(table("Counters that are not zero", columns, rows.filter((one) => d3.sum(one.counts) > 0)));
  part.append(folded("All counters", table("All counters", columns, rows, (one) => (d3.sum(one.counts) === 0 ? "zero" : null))));
}

function showSettings() {
  const part = section("settings", "Settings");
  part.append(table("Options and what they were", [
    {title: "option", value: (one) => one.name, kind: "code"}, {title: "value", value: (one) => one.value, kind: "code"}, {title: "", value: (one) => (one.given ? "given" : "")}, {title: "what it says", value: (one) => one.text, kind: "line"}], report.settings));
  if (run) {
    const rows = [...run.links.flatMap((link) => [[`wire of host ${link.host}`, `${link.wire_gbps} Gbit/s`], [`PCI Express of host ${link.host}`, `${link.pcie_gbps.toFixed(1)} Gbit/s each way`], [`clock of NIC ${link.host}`, `${link.clock_period_ps} ps, ${format.count(link.cycles)} cycles`]]),
                  ["first work request", format.time(run.work.from_ns)], ["last completion", format.time(run.work.to_ns)], ["end", format.time(run.end_ns)]];
    part.append(folded("The world", table("The world, and when it did what", [{title: "", value: (one) => one[0]}, {title: "", value: (one) => one[1]}], rows)));
  }
  if (report.results) part.append(folded("The figures as JSON", element("pre", {class: "scroll", tabindex: "0"}, element("code", {id: "results"}, JSON.stringify(report.results, null, 2)))));
}

function showMachine() {
  if (!report.wall_clock) return;
  const part = section("machine", "On this machine", "What depends on the machine, and differs from run to run.");
  part.append(table("By the clock on the wall", [{title: "", value: (one) => one[0].replace(/_/g, " ")}, {title: "", value: (one) => one[1], text: (v) => format.figure(v, ""), ...number}], [...Object.entries(report.wall_clock), ["version of rnic", report.version]]));
}

showHead();
showPrograms();
showFigures();
showSweep();
if (run) {
  showGoodput();
  showLatency();
  showMedian();
  showLimits();
  showPackets();
  showCounters();
}
showSettings();
showMachine();
