// Charts. Each draws itself anew when its width changes; a cursor goes with the pointer or with the arrow keys, and what
// is there is said in a line below the chart.

/** A drawing: draw(svg, width, height) makes it, and again when its width changes. `label` says in words what it shows. */
function drawing(label, height, draw) {
  const plot = element("div", {class: "plot", role: "img", "aria-label": label});
  const svg = d3.select(plot).append("svg").attr("aria-hidden", "true");
  let width = 0;
  plot.redraw = () => {
    width = plot.clientWidth;
    if (width === 0) return;
    const high = height(width);
    svg.selectAll("*").remove();
    svg.attr("viewBox", `0 0 ${width} ${high}`).attr("height", high);
    draw(svg, width, high);
  };
  new ResizeObserver(() => plot.clientWidth !== width && plot.redraw()).observe(plot);
  return plot;
}

/**
 * A drawing with a cursor: draw gives {positions: [x of each place of the cursor], say(i): nodes, top, bottom}.
 */
function chart(label, height, draw) {
  const readout = element("p", {class: "readout", "aria-live": "polite"});
  let state = null, at = -1;
  const show = (place) => {
    at = place;
    d3.select(plot).selectAll(".cursor").remove();
    readout.replaceChildren(...(place < 0 ? ["Point at it, or focus it and use the arrow keys, to read it."] : state.say(place)));
    if (place < 0) return;
    const x = state.positions[place];
    d3.select(plot).select("svg").append("line").attr("class", "cursor").attr("x1", x).attr("x2", x).attr("y1", state.top).attr("y2", state.bottom);
  };
  const plot = drawing(`${label}. Arrow keys move along it.`, height, (svg, width, high) => {
    state = draw(svg, width, high);
    show(Math.min(at, state.positions.length - 1));
  });
  plot.tabIndex = 0;
  plot.addEventListener("keydown", (event) => {
    const last = state ? state.positions.length - 1 : -1;
    const large = Math.max(1, Math.round(last / 10));
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + large, PageUp: at - large, Home: 0, End: last, Escape: -1}[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    show(event.key === "Escape" ? -1 : Math.max(0, Math.min(last, to)));
  });
  plot.addEventListener("pointermove", (event) => {
    if (!state || state.positions.length === 0) return;
    const x = event.clientX - plot.getBoundingClientRect().left;
    show(state.positions.reduce((best, place, i) => (Math.abs(place - x) < Math.abs(state.positions[best] - x) ? i : best), 0));
  });
  const whole = element("div", {class: "chart"}, plot, readout);
  whole.redraw = plot.redraw;
  return whole;
}

const bold = (text) => element("b", {}, text);

/** Axes with titles, and a grid. Gives nothing. */
function axes(svg, x, y, box, titles, ticks = {}) {
  const few = Math.max(3, Math.floor((box.right - box.left) / 100)), rows = ticks.rows || 5;
  const bottom = d3.axisBottom(x).tickSizeOuter(0);
  if (ticks.xValues) bottom.tickValues(ticks.xValues); else bottom.ticks(few);
  if (ticks.x) bottom.tickFormat(ticks.x);
  const left = d3.axisLeft(y).ticks(rows).tickSizeOuter(0);
  if (ticks.y) left.tickFormat(ticks.y);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${box.left},0)`).call(d3.axisLeft(y).ticks(rows).tickSize(box.left - box.right).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${box.bottom})`).call(bottom);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${box.left},0)`).call(left);
  svg.append("text").attr("x", box.right).attr("y", box.bottom + 36).attr("text-anchor", "end").text(titles.x);
  svg.append("text").attr("x", 0).attr("y", box.top - 10).text(titles.y);
}

/** A bound, with its name above the line. */
function limitLine(svg, y, box, name) {
  svg.append("line").attr("class", "limit-line").attr("x1", box.left).attr("x2", box.right).attr("y1", y).attr("y2", y);
  svg.append("text").attr("class", "limit").attr("x", box.right).attr("y", y - 5).attr("text-anchor", "end").text(name);
}

/**
 * Series over simulated time, of {name, colour, values}. `options`: from and step (ns), label, title (of the y axis),
 * limits [{name, value}], stacked, text(value), top (the least that the y axis reaches).
 */
function timeChart(series, options) {
  let visible = new Set(series.map((one) => one.name));
  const count = d3.max(series, (one) => one.values.length) || 0;
  const time = (i) => options.from + i * options.step;
  const made = chart(options.label, (width) => (width < 560 ? 250 : 290), (svg, width, height) => {
    const shown = series.filter((one) => visible.has(one.name));
    const box = {left: 44, right: width - 4, top: 30, bottom: height - 44};
    const total = (i) => d3.sum(shown, (one) => one.values[i]);
    const most = options.stacked ? d3.max(d3.range(count), total) : d3.max(shown, (one) => d3.max(one.values));
    const limits = options.limits || [];
    const x = d3.scaleLinear([time(0), time(count)], [box.left, box.right]);
    const y = d3.scaleLinear([0, 1.08 * Math.max(most || 0, d3.max(limits, (one) => one.value) || 0, options.top || 0)], [box.bottom, box.top]);
    axes(svg, x, y, box, {x: "simulated time since the reset", y: options.title}, {x: format.time, y: options.tick});
    // Of a bin the same height from its beginning to its end.
    const steps = d3.range(count + 1);
    const value = (one, i) => one.values[Math.min(i, count - 1)];
    if (options.stacked) {
      const base = steps.map(() => 0);
      for (const one of shown) {
        const from = base.slice();
        steps.forEach((i) => (base[i] += value(one, i)));
        const area = d3.area().curve(d3.curveStepAfter).x((i) => x(time(i))).y0((i) => y(from[i])).y1((i) => y(base[i]));
        svg.append("path").datum(steps).attr("d", area).style("fill", one.colour).style("fill-opacity", 0.82);
      }
    } else {
      for (const one of shown) {
        const line = d3.line().curve(d3.curveStepAfter).x((i) => x(time(i))).y((i) => y(value(one, i)));
        svg.append("path").datum(steps).attr("d", line).style("fill", "none").style("stroke", one.colour).style("stroke-width", 1.6);
      }
    }
    for (const one of limits) limitLine(svg, y(one.value), box, one.name);
    const say = (i) => {
      const parts = [`${format.time(time(i))} to ${format.time(time(i + 1))}: `];
      if (options.stacked) parts.push(bold(options.text(total(i))), " in all");
      for (const one of shown) {
        if (one.values[i] > 0) parts.push(parts.length > 1 ? "; " : "", `${one.name} `, bold(options.text(one.values[i])));
      }
      return parts;
    };
    return {positions: d3.range(count).map((i) => x(time(i + 0.5))), say, top: box.top, bottom: box.bottom};
  });
  const buttons = legend(options.legend, series, (left) => {
    visible = left;
    made.redraw();
  });
  return element("div", {}, buttons, made);
}

/** How often a latency was, of [{name, colour, buckets: [[from, to, count]], marks: [{name, value}]}], over a logarithmic axis. */
function histogram(kinds, label) {
  let visible = new Set(kinds.map((one) => one.name));
  // Bins of a tenth of an octave at least, the same for all kinds.
  const low = d3.min(kinds, (one) => one.buckets[0][0]) || 1, high = d3.max(kinds, (one) => one.buckets[one.buckets.length - 1][1]) || 2;
  const first = Math.max(1, low) * 0.9, last = high * 1.1;
  const made = chart(label, (width) => (width < 560 ? 250 : 290), (svg, width, height) => {
    const shown = kinds.filter((one) => visible.has(one.name));
    const box = {left: 52, right: width - 8, top: 30, bottom: height - 44};
    const bins = Math.max(12, Math.min(64, Math.floor(width / 16)));
    const edge = (i) => first * Math.pow(last / first, i / bins);
    const counts = shown.map((one) => {
      const sums = new Array(bins).fill(0);
      for (const [from, to, n] of one.buckets) sums[Math.min(bins - 1, Math.floor((bins * Math.log(Math.max(1, (from + to - 1) / 2) / first)) / Math.log(last / first)))] += n;
      return sums;
    });
    const x = d3.scaleLog([first, last], [box.left, box.right]);
    const most = d3.max(d3.range(bins), (i) => d3.sum(counts, (sums) => sums[i])) || 1;
    const y = d3.scaleLinear([0, 1.08 * most], [box.bottom, box.top]);
    const decades = Math.log10(last / first);
    const xValues = decades < 1.2 ? d3.ticks(first, last, Math.max(3, Math.floor(width / 130))) : x.ticks().filter((v) => [1, 2, 5].includes(+String(v)[0]) && (width > 560 || decades < 2 || String(v)[0] === "1"));
    axes(svg, x, y, box, {x: "latency (logarithmic)", y: "requests"}, {x: format.time, xValues, y: d3.format(",d"), rows: Math.min(5, most)});
    for (let i = 0; i < bins; ++i) {
      let below = 0;
      shown.forEach((one, k) => {
        const n = counts[k][i];
        if (n === 0) return;
        svg.append("rect").attr("x", x(edge(i)) + 0.5).attr("width", Math.max(1, x(edge(i + 1)) - x(edge(i)) - 1)).attr("y", y(below + n)).attr("height", y(below) - y(below + n)).style("fill", one.colour).style("fill-opacity", 0.85);
        below += n;
      });
    }
    if (shown.length === 1) {
      shown[0].marks.forEach((mark, i) => {
        const at = x(Math.max(first, mark.value)), right = at > (box.left + box.right) / 2;
        svg.append("line").attr("class", "limit-line").attr("x1", at).attr("x2", at).attr("y1", box.top).attr("y2", box.bottom);
        svg.append("text").attr("class", "limit").attr("x", at + (right ? -5 : 5)).attr("text-anchor", right ? "end" : "start").attr("y", box.top + 10 + 15 * i).text(`${mark.name} ${format.time(mark.value)}`);
      });
    }
    const say = (i) => {
      const parts = [`${format.time(edge(i))} to ${format.time(edge(i + 1))}: `];
      shown.forEach((one, k) => counts[k][i] && parts.push(parts.length > 1 ? "; " : "", `${one.name} `, bold(format.count(counts[k][i]))));
      if (parts.length === 1) parts.push("none");
      return parts;
    };
    return {positions: d3.range(bins).map((i) => (x(edge(i)) + x(edge(i + 1))) / 2), say, top: box.top, bottom: box.bottom};
  });
  const buttons = legend("Kinds of request", kinds, (left) => {
    visible = left;
    made.redraw();
  });
  return element("div", {}, buttons, made);
}

/**
 * Curves over the values of a sweep, of {name, colour, points: [[x, y]], limit: [[x, y]]}: measured ones as lines with
 * points, limits dashed in the same colour.
 */
function curves(series, options) {
  let visible = new Set(series.map((one) => one.name));
  const values = options.values;
  const made = chart(options.label, (width) => (width < 560 ? 270 : 300), (svg, width, height) => {
    const shown = series.filter((one) => visible.has(one.name));
    const box = {left: 58, right: width - 34, top: 30, bottom: height - 44};
    const least = d3.min(values.filter((v) => v > 0)) || 1, spread = values.every((v) => v > 0);
    const scale = spread ? d3.scaleLog() : d3.scaleSymlog().constant(least);
    const x = scale.domain(values.length > 1 ? d3.extent(values) : [least / 2, 2 * least]).range([box.left + 6, box.right]);
    const heights = shown.flatMap((one) => [...one.points, ...one.limit].map((p) => p[1]));
    const most = d3.max(heights) || 1, lowest = d3.min(heights) || most;
    // What spans decades is seen only on a logarithmic axis.
    const wide = options.decades && lowest > 0 && most / lowest > 20;
    const y = (wide ? d3.scaleLog().domain([0.8 * lowest, 1.25 * most]) : d3.scaleLinear().domain([0, 1.06 * most])).range([box.bottom, box.top]);
    let reached = -Infinity;
    const xValues = values.filter((v) => {
      const free = x(v) - reached > 46;
      if (free) reached = x(v);
      return free;
    });
    axes(svg, x, y, box, {x: options.axis, y: `${options.title}${wide ? " (log)" : ""}; dashed: limit`}, {x: (v) => v.toLocaleString("en-US"), xValues, y: (v) => (!wide || /^[1]/.test(String(+v.toPrecision(3)).replace(/[0.]/g, "")) ? v.toLocaleString("en-US", {maximumFractionDigits: 3}) : "")});
    const line = d3.line().x((p) => x(p[0])).y((p) => y(p[1]));
    for (const one of shown) {
      svg.append("path").datum(one.limit).attr("d", line).style("fill", "none").style("stroke", one.colour).style("stroke-width", 1.4).style("stroke-dasharray", "6 4");
      svg.append("path").datum(one.points).attr("d", line).style("fill", "none").style("stroke", one.colour).style("stroke-width", 2);
      svg.selectAll(null).data(one.points).enter().append("circle").attr("cx", (p) => x(p[0])).attr("cy", (p) => y(p[1])).attr("r", 3).style("fill", one.colour);
    }
    const say = (i) => {
      const parts = [`${options.axis} ${values[i].toLocaleString("en-US")}: `];
      for (const one of shown) parts.push(parts.length > 1 ? "; " : "", `${one.name} `, bold(options.text(one.points[i][1])), ` of ${options.text(one.limit[i][1])}`);
      return parts;
    };
    return {positions: values.map((v) => x(v)), say, top: box.top, bottom: box.bottom};
  });
  const buttons = legend(options.legend, series, (left) => {
    visible = left;
    made.redraw();
  });
  return element("div", {}, buttons, made);
}

/** Bars from the left, of [{name, parts: [{value, colour}], text}]. All values are shares of `whole`. */
function bars(rows, whole, label) {
  const height = (width) => rows.length * (width < 620 ? 38 : 24) + 4;
  return drawing(label, height, (svg, width) => {
    const narrow = width < 620;
    const left = narrow ? 0 : Math.min(330, width * 0.42), pitch = narrow ? 38 : 24;
    const x = d3.scaleLinear([0, whole], [left, width - 76]);
    rows.forEach((row, i) => {
      const top = i * pitch + (narrow ? 16 : 3);
      svg.append("text").attr("class", "strong").attr("x", narrow ? 0 : left - 8).attr("y", narrow ? top - 4 : top + 12).attr("text-anchor", narrow ? "start" : "end").text(row.name);
      svg.append("rect").attr("x", left).attr("y", top).attr("width", x(whole) - left).attr("height", 15).style("fill", "var(--faint)");
      let from = 0;
      for (const part of row.parts) {
        svg.append("rect").attr("x", x(from)).attr("y", top).attr("width", Math.max(part.value > 0 ? 1 : 0, x(Math.min(whole, from + part.value)) - x(from))).attr("height", 15).style("fill", part.colour);
        from = Math.min(whole, from + part.value);
      }
      svg.append("text").attr("x", x(whole) + 6).attr("y", top + 12).text(row.text);
    });
  });
}

/** The way of one request, step by step, of [{name, place, colour, from, ns}]; times from its posting on. */
function waterfall(steps, total, label) {
  const pitch = (width) => (width < 620 ? 36 : 23);
  return drawing(label, (width) => steps.length * pitch(width) + 40, (svg, width, high) => {
    const narrow = width < 620, left = narrow ? 0 : 236;
    const x = d3.scaleLinear([0, total], [left, width - (narrow ? 8 : 70)]);
    const bottom = high - 40;
    svg.append("g").attr("class", "grid").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(Math.floor(width / 120)).tickSize(-bottom).tickFormat(""));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(Math.max(2, Math.floor((width - left) / 120))).tickFormat(format.time).tickSizeOuter(0));
    svg.append("text").attr("x", width - 4).attr("y", high - 4).attr("text-anchor", "end").text("time since its posting");
    steps.forEach((step, i) => {
      const top = i * pitch(width) + (narrow ? 17 : 3), end = x(step.from + step.ns);
      if (narrow) {
        svg.append("text").attr("class", "strong").attr("x", 0).attr("y", top - 4).text(`${step.name}: ${format.time(step.ns)}`);
      } else {
        svg.append("text").attr("class", "strong").attr("x", left - 8).attr("y", top + 12).attr("text-anchor", "end").text(step.name);
        svg.append("text").attr("x", Math.max(end, x(step.from) + 2) + 5).attr("y", top + 12).text(format.time(step.ns));
      }
      svg.append("rect").attr("x", x(step.from)).attr("y", top).attr("width", Math.max(2, end - x(step.from))).attr("height", narrow ? 12 : 16).attr("rx", 1.5).style("fill", step.colour);
    });
  });
}
