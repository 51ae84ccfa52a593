// One sentence about what limited the run, from what the report has of links, queue pairs and blocks.

/** A link is full in a part of the time in which at least this share of it is used. */
const kFull = 0.9;
/** Something that limited the run did so for at least this share of the time. */
const kMost = 0.5;

/** What a queue pair waits for, by the reason of its stall: what ends the wait. */
const stallWaits = {
  "fence": "the Reads and atomics in front of a fence", "Read limit": "Read responses (the limit of outstanding Reads)", "window": "ACKs (the window of unacknowledged packets was full)",
  "credits": "end-to-end credits (the peer had posted no Receive)", "NAK": "retransmissions after a NAK", "RNR": "the peer to post a Receive (RNR NAK)",
  "retry: no answer": "an ACK time-out (packets or their ACKs were lost)", "retry: fault": "a retry after a fault in the requester's memory", "refused": "the end of a request that the peer refused",
};

/** A link is idle in a part of the time in which no more than this share of it is used. */
const kIdle = 0.01;

/** The share of the time with work in which holds(i) of bin i of the series. */
function timeShare(count, holds) {
  const from = run.series.from_ns, step = run.series.bin_ns;
  const bins = d3.range(count).filter((i) => from + (i + 1) * step > run.work.from_ns && from + i * step < run.work.to_ns);
  return bins.length === 0 ? 0 : bins.filter(holds).length / bins.length;
}

/** In which share of the time at least one link of this kind was full, and in which none was used. */
const fullShare = (links) => timeShare(links.length === 0 ? 0 : links[0].values.length, (i) => links.some((one) => one.values[i] >= kFull));
const idleShare = (links) => timeShare(links.length === 0 ? 0 : links[0].values.length, (i) => links.every((one) => one.values[i] <= kIdle));

/** Waits that end with a timer: which counter of a NIC counts them, and what they are. */
const timers = [{counter: "AckTimeouts", what: "ACK time-out", why: "packets or their ACKs were lost"}, {counter: "RnrRetries", what: "RNR retry", why: "the peer had posted no Receive"}];

/** What limited the run, in one sentence with its numbers. `use` is that of linkUse. */
function bottleneck(use) {
  if (run.work.ns === 0) return "No work request was posted, so nothing limited the run.";
  const kinds = [{name: "The wire", links: use.filter((one) => one.link === "wire")}, {name: "PCI Express to the NIC", links: use.filter((one) => one.link === "to NIC")}, {name: "PCI Express to the host", links: use.filter((one) => one.link === "to host")}];
  const fullest = kinds.map((one) => ({...one, share: fullShare(one.links)})).reduce((a, b) => (b.share > a.share ? b : a));
  if (fullest.share >= kMost) return `${fullest.name} was the bottleneck: full (${format.share(kFull, 0)} or more) in ${format.share(fullest.share, 0)} of the time.`;
  const idle = idleShare(kinds[0].links);
  const timer = run.hosts.flatMap((host) => timers.map((one) => ({...one, host: host.host, count: host.counters[one.counter]}))).reduce((a, b) => (b.count > a.count ? b : a));
  if (timer.count > 0 && idle >= kMost) return `Timers limited the run: host ${timer.host} waited for ${format.some(timer.count, timer.what)} (${timer.why}), and the wire was idle in ${format.share(idle, 0)} of the time.`;
  const stalls = run.hosts.flatMap((host) => grouped(host.stalls, (one) => one.reason).map(({key, values}) => ({host: host.host, reason: key, pairs: values.length, share: d3.sum(values, (one) => one.ns) / values.length / run.work.ns})));
  const waits = run.hosts.flatMap((host) => Object.entries(host.waits).map(([reason, wait]) => ({host: host.host, reason, share: wait.ns / run.work.ns})));
  const longest = (all) => all.reduce((a, b) => (a && a.share >= b.share ? a : b), null);
  const stall = longest(stalls), wait = longest(waits);
  if (stall && stall.share >= kMost && (!wait || stall.share >= wait.share)) return `${format.some(stall.pairs, "queue pair")} of host ${stall.host} waited for ${stallWaits[stall.reason] || stall.reason}: ${format.share(stall.share, 0)} of the time.`;
  if (wait && wait.share >= kMost) return `DMA of NIC ${wait.host} was the bottleneck (${wait.reason}): it waited for ${format.share(wait.share, 0)} of the time.`;
  const engines = run.hosts.flatMap((host) => {
    const link = run.links.find((one) => one.host === host.host);
    return host.streams.map((one) => ({name: `${shortName(one.stream)} of NIC ${host.host}`, share: ((one.moves + one.waits) * link.clock_period_ps) / 1000 / run.work.ns}));
  });
  const engine = longest(engines);
  if (engine && engine.share >= kFull) return `The stream ${engine.name} was the bottleneck: occupied for ${format.share(Math.min(1, engine.share), 0)} of the time.`;
  const requests = inOrder(run.requests.filter((one) => one.median));
  const kind = requests.reduce((a, b) => (a && a.count >= b.count ? a : b), null);
  if (!kind) return "No link was full, and no request succeeded: see Packets for what was lost or refused.";
  const step = kind.median.steps.reduce((a, b) => (b.ns > a.ns ? b : a));
  return `No link, queue pair or block was busy for most of the time, so latency limited the run: the longest step of the median ${kind.kind} was "${step.step}" (${step.place}), ${format.time(step.ns)} of ${format.time(kind.median.latency_ns)}.`;
}
