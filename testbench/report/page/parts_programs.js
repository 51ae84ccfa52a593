// The programs of `rnic exec`: how they ended, why a request failed, what each did.

/** "ib_write_bw on host1, server" of a process of report.processes. */
function processName(process) {
  const program = report.programs.find((one) => one.process === process.process || process.ancestors.includes(one.process));
  return `${process.name} on host${process.host}${program && program.role ? `, ${program.role}` : ""}`;
}

/** Rows of {process, pair, ...request} of the queue pairs of all programs. */
function requestRows(wanted) {
  return report.processes.flatMap((process) => process.queue_pairs.flatMap((pair) => (pair.requests || []).filter(wanted).map((one) => ({process: processName(process), pair, ...one}))));
}

/** The number, and the index by which the other parts of the page name it. */
const qpName = (pair) => `0x${pair.qpn.toString(16)} (${pair.qpn & 0xff})`;

function showPrograms() {
  if (!report.processes) return;
  document.querySelector("footer p").textContent = "When a program posts its requests is not part of the simulation, so another run of the same command gives other times. What each part shows and where it comes from: docs/report.md.";
  const part = section("programs", "Programs", "What each program did on the simulated NIC. Times and rates are simulated; figures that a program prints from its own clock are the speed of the simulator.");
  const first = report.processes.flatMap((process) => process.diagnoses.map((one) => ({process: processName(process), ...one}))).sort((a, b) => a.receive - b.receive || a.at_ns - b.at_ns);
  if (first.length !== 0) {
    part.append(element("h3", {}, "Diagnosis"));
    for (const one of first.slice(0, 4)) part.append(element("p", {class: "diagnosis"}, one.text));
    if (first.length > 4) part.append(element("p", {class: "note"}, `${format.count(first.length - 4)} more queue pairs have a failed request.`));
  }
  if (report.programs.length !== 0) part.append(table("Programs, and how they ended", [
    {title: "program", value: (one) => one.role || "program"}, {title: "host", value: (one) => `host${one.host}`},
    {title: "command line", value: (one) => one.command.join(" "), kind: "code"}, {title: "", value: (one) => one.ending}], report.programs));
  showProcesses(part);
  showQueuePairs(part);
  showOthers(part);
}

function showProcesses(part) {
  if (report.processes.length === 0) {
    part.append(element("p", {class: "note"}, report.command === "linux" ? "The guest's kernel shares the device among its programs: the machine sees queue pairs, not programs." : "No program opened the device."));
    return;
  }
  const objects = (one) => Object.entries(one.objects).map(([name, count]) => `${count} ${count === 1 ? name.replace(/s$/, "") : name}`).join(", ");
  part.append(table("What each process created and posted", [
    {title: "process", value: processName}, {title: "created", value: objects}, {title: "kernel calls", value: (one) => one.calls, ...number},
    {title: "requests", value: (one) => one.requests, ...number}, {title: "succeeded", value: (one) => one.succeeded, ...number}, {title: "bytes", value: (one) => one.bytes, ...number}], report.processes));
  const refused = report.processes.flatMap((process) => process.refused_calls.map((one) => ({process: processName(process), ...one})));
  if (refused.length !== 0) part.append(table("Kernel calls that the driver refused", [
    {title: "process", value: (one) => one.process}, {title: "call", value: (one) => one.call, kind: "code"}, {title: "error", value: (one) => one.error}, {title: "times", value: (one) => one.count, ...number}], refused));
}

function showQueuePairs(part) {
  const sent = report.processes.flatMap((process) => process.queue_pairs.filter((pair) => pair.latency_median_ns !== undefined).map((pair) => ({process: processName(process), pair})));
  if (sent.length !== 0) {
    const of = (title, key, text) => ({title, value: (one) => one.pair[key], text, ...number});
    part.append(table("Queue pairs: goodput and latency of their requests", [
      {title: "process", value: (one) => one.process}, {title: "QP (index)", value: (one) => qpName(one.pair), kind: "code"}, {title: "type", value: (one) => one.pair.type},
      of("goodput, Gbit/s", "goodput_gbps", (v) => v.toFixed(2)), of("median", "latency_median_ns", format.time), of("99 %", "latency_p99_ns", format.time), of("first posted", "from_ns", format.time), of("last complete", "to_ns", format.time),
      of("packets sent again", "repeated_packets")], sent));
  }
  const columns = [
    {title: "process", value: (one) => one.process}, {title: "QP (index)", value: (one) => qpName(one.pair), kind: "code"}, {title: "kind", value: (one) => one.kind}, {title: "posted", value: (one) => one.count, ...number},
    {title: "failed", value: (one) => one.failed, ...number}, {title: "flushed", value: (one) => one.flushed, ...number}, {title: "not completed", value: (one) => one.unfinished, ...number}];
  const requests = requestRows((one) => one.kind !== "Receive"), receives = requestRows((one) => one.kind === "Receive");
  if (requests.length !== 0) part.append(table("Requests by queue pair", [...columns, {title: "bytes", value: (one) => one.bytes, ...number}], requests));
  if (receives.length !== 0) part.append(folded("Receives by queue pair", table("Receives by queue pair", columns, receives)));
}

/** What the other parts of the page leave out. */
function showOthers(part) {
  const others = (run && run.other_requests) || [];
  if (others.length === 0) return;
  part.append(folded("Receives, and requests of the kernel drivers", table("Requests that no other part of this page counts: Receives, and those of the kernel drivers (QP1, Ethernet)", [
    {title: "kind", value: (one) => one.kind}, {title: "requests", value: (one) => one.count, ...number}, {title: "failed", value: (one) => one.failed, ...number}, {title: "not completed", value: (one) => one.unfinished, ...number}], others)));
}
