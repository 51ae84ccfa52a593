// The parts of the page, in their order.

const report = JSON.parse(document.getElementById("report").textContent);
const run = report.run;
const number = {kind: "number"};

/** "host A", or of the median request: whose NIC is meant by "NIC" and "peer's NIC". */
const otherHost = (host) => (run.links.length === 2 ? (host === "A" ? "B" : "A") : "?");

function showHead() {
  const title = report.title || `rnic ${report.command}${report.sweep ? ` --sweep ${report.sweep.sweep}` : ""}`;
  document.title = `${title}: report`;
  document.getElementById("title").textContent = title;
  document.getElementById("command").textContent = report.command_line;
  const outcome = report.outcome || {good: false, text: "not known"};
  document.getElementById("outcome").append(element("span", {class: `mark ${outcome.good ? "good" : "bad"}`}, outcome.good ? "good" : "failed"), outcome.text);
  if (report.vector) document.getElementById("outcome").append(element("br"), `${report.vector.file}: ${report.vector.rule} (${report.vector.document}, ${report.vector.clause})`);
}

function showFigures() {
  if (report.figures.length === 0) return;
  const part = section("figures", "Figures", "Of simulated time, as the command prints them.");
  const groups = grouped(report.figures, (one) => one.group);
  if (groups.some((group) => group.values.some((one) => one.name.length > 40))) {
    const columns = [{title: "figure", value: (one) => one.name}, {title: "value", value: (one) => one.value, text: (value, one) => format.figure(value, one.unit), ...number}];
    for (const group of groups) part.append(table(group.key, columns, group.values));
    return;
  }
  const card = (group) => {
    const [head, ...rest] = group.values;
    const line = (one) => element("div", {}, element("dt", {}, one.name), element("dd", {"data-figure": `${group.key}: ${one.name}`, "data-value": one.value}, format.figure(one.value, one.unit)));
    return element("div", {class: "group"}, element("h3", {}, `${group.key}: ${head.name}`), element("div", {class: "head", "data-figure": `${group.key}: ${head.name}`, "data-value": head.value}, format.figure(head.value, head.unit)), element("dl", {}, ...rest.map(line)));
  };
  part.append(element("div", {class: "columns cards"}, ...groups.map(card)));
}

function showSweep() {
  const sweep = report.sweep;
  if (!sweep) return;
  const part = section("sweep", "Curves", `Writes and Reads, from one host and from both at once, each beside what wire and PCI Express allow (docs/limits.md). Figures are of each direction. ${sweep.pcie}; wire ${sweep.link_gbps} Gbit/s, delay ${format.time(sweep.link_delay_ns)}.`);
  const values = sweep.points.map((point) => point.at);
  const kinds = [["write", "Write"], ["read", "Read"], ["write_both_ways", "Write, both ways"], ["read_both_ways", "Read, both ways"]];
  const lines = (key, limit) => kinds.filter(([kind]) => key in sweep.points[0][kind]).map(([kind, name], i) => ({
    name, colour: colours[i], points: sweep.points.map((p) => [p.at, p[kind][key]]), limit: sweep.points.map((p) => [p.at, p[kind][limit]])}));
  const add = (title, key, limit, unit, text, decades) => {
    part.append(element("h3", {}, title));
    part.append(curves(lines(key, limit), {values, axis: sweep.axis, title: unit, label: `${title} over ${sweep.axis}`, legend: `Curves of ${title.toLowerCase()}`, text, decades}));
  };
  add("Goodput", "goodput_gbps", "limit_gbps", "Gbit/s", format.gbps);
  add("Message rate", "rate_mmps", "limit_mmps", "10^6 messages/s", format.rate, true);
  add("Latency of one message alone, median", "latency_median_ns", "latency_limit_ns", "", format.time, true);
  const rows = sweep.points.flatMap((point) => kinds.map(([kind, name]) => ({at: point.at, name, ...point[kind]})));
  const column = (title, key, text) => ({title, value: (row) => row[key], text: (v) => (v === undefined ? "" : text(v)), ...number});
  const two = (v) => v.toFixed(2), three = (v) => v.toFixed(3);
  part.append(folded("All points as a table", table(`Over ${sweep.axis}`, [
    {title: sweep.axis, value: (row) => row.at, text: (v) => v.toLocaleString("en-US")}, {title: "", value: (row) => row.name},
    column("goodput, Gbit/s", "goodput_gbps", two), column("limit, Gbit/s", "limit_gbps", two),
    {title: "limit by", value: (row) => row.limit_by}, column("rate, M/s", "rate_mmps", three), column("limit, M/s", "limit_mmps", three),
    column("latency alone", "latency_median_ns", format.time), column("at least", "latency_limit_ns", format.time),
    column("in full queues", "full_latency_median_ns", format.time), column("99 %", "full_latency_p99_ns", format.time), column("lost", "lost", format.count)], rows)));
}

function showGoodput() {
  const {payload, bin_ns: step, from_ns: from} = run.series;
  if (payload.length === 0) return;
  const part = section("goodput", "Goodput over time", "Payload that the receiver accepted, at the time at which it crossed the wire, by the queue pair whose request it belongs to. Payload of a packet that arrived twice, and of a request that failed, does not count.");
  const name = (one) => (one.others ? `${one.others} others` : one.host ? `${one.host}, QP ${one.qp}` : "other senders");
  const gbps = (bytes) => (8 * bytes) / step;
  const ways = grouped(payload, (one) => (one.loopback ? `Inside host ${one.to} (loopback)` : `To host ${one.to}`)).map(({key, values}) => ({title: key, values, bytes: d3.sum(values, (one) => d3.sum(one.bytes))}));
  const all = d3.sum(ways, (one) => one.bytes);
  if (all === 0) part.append(element("p", {class: "note"}, "None: no request with payload succeeded."));
  for (const way of ways.filter((one) => one.bytes > 0).sort((a, b) => b.bytes - a.bytes)) {
    const {to, loopback} = way.values[0];
    const series = way.values.map((one, i) => ({name: name(one), bytes: one.bytes, values: one.bytes.map(gbps), colour: one.others ? "var(--rest)" : colours[i % colours.length]}));
    const wire = run.links.find((link) => link.host !== to) || run.links[0];
    // The wire is no limit of what does not cross it; and two lines that lie on each other say no more than the lower one.
    const drawn = loopback ? [] : report.limits.length > 0 ? report.limits.map((one) => ({name: one.name, value: one.gbps})) : [{name: `wire ${wire.wire_gbps} Gbit/s`, value: wire.wire_gbps}];
    part.append(element("h3", {}, way.title));
    const worth = way.bytes > all / 100;
    if (!worth) part.append(element("p", {class: "note"}, `Only ${format.some(way.bytes, "byte")}.`));
    if (worth) part.append(timeChart(series, {from, step, stacked: true, limits: drawn, title: "goodput, Gbit/s", label: `${way.title}: goodput over time, by queue pair`, legend: `${way.title}: queue pairs`, text: format.gbps}));
    part.append(folded("As a table", table(`${way.title}: goodput`, [
      {title: "queue pair of the request", value: (one) => one.name}, {title: "bytes", value: (one) => d3.sum(one.bytes), ...number},
      {title: "highest, Gbit/s", value: (one) => d3.max(one.values), text: (v) => v.toFixed(2), ...number},
      {title: "active", value: (one) => one.bytes.filter((n) => n > 0).length * step, text: format.time, ...number}], series)));
  }
}

/** The links of the run with how full they were: {name, gbps, values, mean}. */
function linkUse() {
  const {links, bin_ns: step} = run.series;
  const names = {"wire": (host) => `wire from ${host}`, "to NIC": (host) => `PCIe ${host}, to NIC`, "to host": (host) => `PCIe ${host}, to host`};
  const order = ["wire", "to NIC", "to host"];
  return links.slice().sort((a, b) => order.indexOf(a.link) - order.indexOf(b.link)).map((one, i) => {
    const of = run.links.find((link) => link.host === one.host);
    const gbps = one.link === "wire" ? of.wire_gbps : of.pcie_gbps;
    const values = one.bytes.map((bytes) => (8 * bytes) / step / gbps);
    return {name: names[one.link](one.host), link: one.link, gbps, values, colour: colours[i % colours.length], mean: Math.min(1, (8 * d3.sum(one.bytes)) / Math.max(1, run.work.ns) / gbps), most: d3.max(values) || 0};
  });
}

/** Kinds of request: those that move data in front. */
function inOrder(requests) {
  const first = ["Write", "Read", "Send"];
  const rank = (one) => (first.includes(one.kind) ? first.indexOf(one.kind) : first.length);
  return requests.slice().sort((a, b) => rank(a) - rank(b));
}

function showLatency() {
  const kinds = inOrder(run.requests.filter((one) => one.latency));
  if (run.requests.length === 0) return;
  const part = section("latency", "Latency", "Of each work request, from when the processor writes its doorbell until the driver has taken its completion; of a silent one until it retires. The median is that of the request of the next part.");
  if (kinds.length !== 0) {
    const shown = kinds.map((one, i) => ({name: one.kind, colour: colours[i % colours.length], buckets: one.latency.buckets, marks: [{name: "median", value: one.latency.median_ns}, {name: "99 %", value: one.latency.p99_ns}]}));
    part.append(histogram(shown, "Histogram of latency by kind of request"));
  }
  const of = (title, key) => ({title, value: (one) => (one.latency ? one.latency[key] : undefined), text: (v) => (v === undefined ? "" : format.time(v)), ...number});
  part.append(table("Work requests by kind, and their latency", [
    {title: "kind", value: (one) => one.kind}, {title: "requests", value: (one) => one.count, ...number}, {title: "failed", value: (one) => one.failed, ...number},
    {title: "unfinished", value: (one) => one.unfinished, ...number}, {title: "bytes", value: (one) => one.bytes, ...number},
    of("least", "min_ns"), of("median", "median_ns"), of("90 %", "p90_ns"), of("99 %", "p99_ns"), of("99.9 %", "p999_ns"), of("most", "max_ns")], inOrder(run.requests)));
}

const placeColours = {"driver": "var(--driver)", "PCI Express": "var(--pcie)", "NIC": "var(--nic)", "wire": "var(--wire)", "peer's NIC": "var(--peer-nic)", "peer's PCI Express": "var(--peer-pcie)"};

function showMedian() {
  const kinds = run.requests.filter((one) => one.median);
  if (kinds.length === 0) return;
  const part = section("median", "Where the median request was", "The request in the middle by latency, step by step. Each step begins where the one before ends, so together they are its latency.");
  const fill = (kind) => (panel) => {
    const {median} = kind, peer = median.loopback ? median.host : otherHost(median.host);
    const place = (name) => ({"driver": `driver ${median.host}`, "PCI Express": `PCIe ${median.host}`, "NIC": `NIC ${median.host}`, "wire": "wire", "peer's NIC": `NIC ${peer}`, "peer's PCI Express": `PCIe ${peer}`})[name];
    const steps = median.steps.map((one) => ({name: one.step, place: place(one.place), colour: placeColours[one.place], from: one.from_ns - median.posted_ns, ns: one.ns, all: one}));
    const places = Object.keys(placeColours).map((name) => ({key: place(name), ns: d3.sum(steps.filter((one) => one.place === place(name)), (one) => one.ns), colour: placeColours[name]}));
    panel.append(element("p", {class: "note"}, `${kind.kind} of ${format.some(median.bytes, "byte")} in ${format.some(median.packets, "packet")}${median.repeated ? `, ${median.repeated} repeated` : ""}: host ${median.host}, QP ${median.qp}, WQE ${median.wqe}, posted at ${format.time(median.posted_ns)}. ${median.of < kind.latency.count ? `The nearest to the median of ${format.count(kind.latency.count)}, among ${format.count(median.of)} at random.` : `In the middle of ${format.count(median.of)}.`} Latency `,
                         element("b", {"data-median": kind.kind, "data-value": median.latency_ns}, format.time(median.latency_ns)), "."));
    const keys = element("div", {class: "legend"});
    for (const one of places.filter((all) => all.ns > 0)) keys.append(element("span", {class: "key", style: `--colour: ${one.colour}`}, `${one.key} ${format.time(one.ns)}, ${format.share(one.ns / median.latency_ns)}`));
    panel.append(keys, waterfall(steps, median.latency_ns, `Steps of the median ${kind.kind}, ${format.time(median.latency_ns)} in all`));
    panel.append(folded("As a table, with the same step of all requests", table(`Steps of the median ${kind.kind}`, [
      {title: "step", value: (one) => one.name}, {title: "where", value: (one) => one.place}, {title: "from", value: (one) => one.from, text: format.time, ...number}, {title: "took", value: (one) => one.ns, text: format.time, ...number},
      {title: "median of all", value: (one) => one.all.median_ns, text: format.time, ...number}, {title: "99 % of all", value: (one) => one.all.p99_ns, text: format.time, ...number}], steps)));
  };
  part.append(tabs("Kind of request", inOrder(kinds).map((kind) => ({title: kind.kind, fill: fill(kind)}))));
}
