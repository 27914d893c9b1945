"use strict";
// Ranks designs of storage engines for a workload on a drive, as the Rust crates flashgrain_cost (dictionary, lsm) and
// flashgrain_advisor (price, rank) do; functions have the names that they have there, which is where they are explained.
// tests/what_if.rs compares the two.
const whatIf = (() => {
  const KIB = 1024, MIB = 1048576;
  const POINTER_BYTES = 8, SLOT_BYTES = 8, RANDOM_FILL = Math.LN2, HANDLE_BYTES = 8, MEMTABLES = 2;
  const LEVEL_ONE_FILES = 4, LEVEL_ZERO_FILES = 2, LEVELS_MAX = 6, READ_AHEAD_BYTES = 262144;
  const OPERATION = { low: 1e-6, value: 2e-6, high: 8e-6 };
  const SCANNED_RECORD = { low: 0, value: 0, high: 0.2e-6 };
  const REQUEST = { low: 2e-6, value: 6e-6, high: 12e-6 };
  const MEMORY_FRACTION = 0.75, WRITE_CONCURRENCY = 4, SECONDS_PER_DAY = 86400;
  const OPERATIONS = ["point_hits", "point_misses", "inserts", "updates", "deletes", "ranges"];
  const WRITES = ["inserts", "updates", "deletes"];
  const BOUNDS = {
    device_reads: "device time of reads", device_writes: "device time of writes", read_latency: "clients wait for reads",
    write_latency: "clients wait for writes", flushes: "clients wait for flushes", background: "background writes",
    processor: "processor",
  };
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const clamp = (number, low, high) => Math.min(Math.max(number, low), high);

  // dictionary/skew.rs
  function harmonic(count, exponent) {
    if (count <= 1) { return Math.max(count, 0); }
    const integral = (x) => Math.abs(exponent - 1) < 1e-9 ? Math.log(x) : Math.pow(x, 1 - exponent) / (1 - exponent);
    return 1 + integral(count + 0.5) - integral(1.5);
  }
  function hitsOf(skew, count, recordsPerPage) {
    const records = Math.max(count, 1), pages = Math.max(records / Math.max(recordsPerPage, 1), 1);
    const whole = skew === 0 ? 1 : harmonic(records, skew);
    const top = (number) => skew === 0 ? number / records : clamp(harmonic(number, skew) / whole, number / records, 1);
    const spread = 1 - top(pages);
    return (share) => top(clamp(share, 0, 1) * pages) + clamp(share, 0, 1) * spread;
  }

  // dictionary/uses.rs; `null` are uses that each reach another place.
  function usesOf(skew, count, perPage) {
    const pages = Math.max(count / perPage, 1);
    if (skew === 0) { return [{ places: pages, share: 1 }]; }
    const kinds = [], hits = hitsOf(skew, count, perPage);
    let below = 0, usedBelow = 0, upto = 1;
    while (below < pages) {
      upto = Math.min(upto, pages);
      const used = upto >= pages ? 1 : hits(upto / pages);
      kinds.push({ places: upto - below, share: used - usedBelow });
      [below, usedBelow] = [upto, used];
      upto *= 4;
    }
    return kinds;
  }
  function distinct(uses, number) {
    return uses === null ? number : sum(uses.map((kind) => kind.places * -Math.expm1(-number * kind.share / kind.places)));
  }
  const firstShare = (uses, number) => number > 0 ? clamp(distinct(uses, number) / number, 0, 1) : 1;
  function reaching(uses, places) {
    if (uses === null) { return places; }
    const most = (1 - 1e-9) * sum(uses.map((kind) => kind.places));
    return timeToFill(uses.map((kind) => [kind.places, kind.share / kind.places]), Math.min(places, most));
  }
  function missesAfter(uses, time) {
    return sum(uses.filter((kind) => kind.share > 0).map((kind) => kind.share * Math.exp(-time * kind.share / kind.places)));
  }
  function timeToFill(kinds, cacheBytes) {
    let time = 0;
    for (let i = 0; i < 40; i++) {
      let held = 0, slope = 0;
      for (const [bytes, rate] of kinds) {
        const absent = Math.exp(-rate * time);
        held += bytes * (1 - absent);
        slope += bytes * rate * absent;
      }
      const step = (cacheBytes - held) / slope;
      if (!Number.isFinite(step) || step <= 1e-13 * time) { break; }
      time += step;
    }
    return time;
  }

  // dictionary/levels.rs: leaves first.
  function levelsOf(situation, shape, cacheBytes = situation.cacheBytes) {
    const level = (nodes, bytes, visits) => ({ nodes, bytes, visits, miss: 1 });
    const fanout = Math.max(shape.fanout, 2);
    let nodes = Math.max(situation.count / Math.max(shape.recordsPerLeaf, 1), 1);
    const levels = [level(nodes, shape.leafBytes, 1)];
    while (nodes > 1) {
      const visits = Math.min(Math.log(nodes) / Math.log(fanout), 1);
      nodes = Math.max(nodes / fanout, 1);
      levels.push(level(nodes, shape.innerBytes, visits));
    }
    let left = Math.max(cacheBytes, 0);
    for (const one of [...levels].reverse()) {
      const bytes = one.nodes * one.bytes;
      one.places = one.nodes * Math.max(shape.parts, 1);
      const uses = usesOf(situation.skew, situation.count, situation.count / one.places);
      one.untilFull = left < bytes ? reaching(uses, one.places * left / bytes) : Infinity;
      one.miss = clamp(missesAfter(uses, one.untilFull), 0, 1);
      left = Math.max(left - bytes, 0);
    }
    return levels;
  }
  function firstChanges(level, situation, visitsPerChange) {
    const visits = Math.max(situation.changesPerCheckpoint * visitsPerChange, 1);
    const uses = usesOf(situation.skew, situation.count, situation.count / level.places), full = level.untilFull;
    if (visits <= full) { return firstShare(uses, visits); }
    return clamp((distinct(uses, full) + (visits - full) * missesAfter(uses, full)) / visits, 0, 1);
  }
  const levelBytesSum = (levels) => sum(levels.map((level) => level.nodes * level.bytes));

  // A transfer of dictionary/demand.rs.
  const transfer = (access, requests, bytes, concurrency, awaited, random = 1) =>
    ({ access, requests, bytes, concurrency, awaited, random });
  const isChange = (operation) => WRITES.includes(operation);
  const changedBytes = (operation, s) => !isChange(operation) ? 0 : operation === "deletes" ? s.keyBytes : s.recordBytes;
  const returnedBytes = (operation, s) => operation === "point_hits" ? s.recordBytes : operation === "ranges" ? s.rangeBytes : 0;

  // dictionary/overflow.rs: the surroundings of the tree, with what an operation reads and writes outside of it.
  function storedOf(operation, s, leafBytes, blockBytes) {
    const isLong = s.recordBytes > leafBytes / 4 && s.recordBytes - s.keyBytes > 16;
    const recordBytes = isLong ? s.keyBytes + 16 : s.recordBytes;
    const valueBytes = isLong ? Math.ceil((s.recordBytes - s.keyBytes) / blockBytes) * blockBytes : 0;
    const inline = { ...s, recordBytes, rangeBytes: s.rangeBytes * recordBytes / s.recordBytes, skew: operation === "inserts" ? 0 : s.skew };
    const level = (left) => levelsOf(inline, { recordsPerLeaf: 1, leafBytes: valueBytes, innerBytes: 0, fanout: s.count, parts: 1 }, left)[0];
    const values = operation === "point_hits" ? 1 : operation === "ranges" ? s.rangeBytes / s.recordBytes : 0;
    return {
      inline, valueBytes, values: isLong ? s.count : 0, totalBytes: isLong ? s.count * valueBytes : 0,
      reads(left, atOnce = 1) {
        if (!isLong || values === 0) { return []; }
        const concurrency = s.clients * (operation === "ranges" ? Math.max(atOnce, 1) : 1);
        return [transfer("read", values * level(left).miss, valueBytes, concurrency, true)];
      },
      written: (left) => isLong && (operation === "inserts" || operation === "updates") ? firstChanges(level(left), inline, 1) : 0,
    };
  }

  // dictionary/images.rs: leaves that a range reads beyond its first, and how many at a time.
  function furtherReads(further, readAhead) {
    return [further + clamp(0.5 * (further - 1), 0, 0.5 * readAhead), clamp(0.5 * further, 1, Math.max(readAhead, 1))];
  }
  const inPlaceReads = (further, readAhead) => readAhead > 1 && further > 16 ? furtherReads(further, readAhead) : [further, 1];
  const AHEAD_BYTES = 524288;

  // dictionary/b_tree.rs
  function bTree(nodeBytes, writeConcurrency) {
    const perLeaf = (s) => Math.max(nodeBytes * RANDOM_FILL / (s.recordBytes + SLOT_BYTES), 1);
    const levels = (s) => levelsOf(s, {
      recordsPerLeaf: perLeaf(s), leafBytes: nodeBytes, innerBytes: nodeBytes, parts: 1,
      fanout: Math.max(nodeBytes * RANDOM_FILL / (s.keyBytes + POINTER_BYTES), 2),
    });
    return {
      family: "b_tree", name: `B-tree, ${nodeBytes / KIB} KiB nodes`,
      memoryBytes: () => 0,
      space(s) {
        const stored = storedOf("updates", s, nodeBytes, nodeBytes);
        return (levelBytesSum(levels(stored.inline)) + stored.totalBytes) / s.totalBytes;
      },
      demand(operation, whole) {
        const stored = storedOf(operation, whole, nodeBytes, nodeBytes), s = stored.inline;
        const all = levels(s), leaves = all[0], left = s.cacheBytes - levelBytesSum(all);
        const made = [transfer("read", sum(all.map((l) => l.visits * l.miss)), nodeBytes, s.clients, true)];
        if (operation === "ranges") {
          const [further, atOnce] = inPlaceReads(s.rangeBytes / (perLeaf(s) * s.recordBytes), AHEAD_BYTES / nodeBytes);
          made.push(transfer("read", further * leaves.miss, nodeBytes, s.clients * atOnce, true));
        }
        made.push(...stored.reads(left, AHEAD_BYTES / nodeBytes));
        if (isChange(operation)) {
          const splits = operation === "updates" ? 0 : 2 / perLeaf(s);
          made.push(transfer("write", firstChanges(leaves, s, 1) + splits, nodeBytes, writeConcurrency, false));
          made.push(transfer("write", stored.written(left), stored.valueBytes, writeConcurrency, false));
        }
        return made;
      },
    };
  }

  // dictionary/pdam_b_tree.rs
  function pdamBTree(blockBytes, parallelism, writeConcurrency) {
    const nodeBytes = parallelism * blockBytes;
    const children = (bytes, s) => Math.max(bytes * RANDOM_FILL / (s.keyBytes + POINTER_BYTES), 2);
    const records = (bytes, s) => Math.max(bytes * RANDOM_FILL / (s.recordBytes + SLOT_BYTES), 1);
    const runBytes = (s) => Math.max(parallelism / Math.max(s.clients, 1), 1) * blockBytes;
    const levels = (s) => levelsOf(s, {
      recordsPerLeaf: records(nodeBytes, s), leafBytes: nodeBytes, innerBytes: nodeBytes, parts: parallelism,
      fanout: children(nodeBytes, s),
    });
    return {
      family: "pdam_b_tree",
      name: `B-tree, nodes of ${parallelism.toFixed(1)} × ${blockBytes / KIB} KiB in van Emde Boas order`,
      memoryBytes: () => 0,
      space(s) {
        const stored = storedOf("updates", s, nodeBytes, blockBytes);
        return (levelBytesSum(levels(stored.inline)) + stored.totalBytes) / s.totalBytes;
      },
      demand(operation, whole) {
        const stored = storedOf(operation, whole, nodeBytes, blockBytes), s = stored.inline;
        const all = levels(s), leaves = all[0], run = runBytes(s), left = s.cacheBytes - levelBytesSum(all);
        const reads = (requests) => transfer("read", requests, run, s.clients, true);
        const runs = (node, own) => Math.max(Math.log(Math.max(node, 2)) / Math.log(Math.max(own, 2)), 1);
        const inner = sum(all.slice(1).map((l) => l.visits * l.miss));
        const innerRuns = inner * runs(children(nodeBytes, s), children(run, s));
        const made = operation === "inserts" || operation === "deletes"
          ? [reads(innerRuns), transfer("read", leaves.miss, nodeBytes, s.clients, true)]
          : [reads(innerRuns), reads(leaves.miss * runs(records(nodeBytes, s), records(run, s)))];
        if (operation === "ranges") {
          const [further, atOnce] = inPlaceReads(s.rangeBytes / (records(run, s) * s.recordBytes), AHEAD_BYTES / blockBytes);
          made.push({ ...reads(further * leaves.miss), concurrency: s.clients * atOnce });
        }
        made.push(...stored.reads(left, AHEAD_BYTES / blockBytes));
        if (isChange(operation)) {
          const isUpdate = operation === "updates", splits = isUpdate ? 0 : 2 / records(nodeBytes, s);
          const bytes = isUpdate ? blockBytes : nodeBytes;
          made.push(transfer("write", firstChanges(leaves, s, 1) + splits, bytes, writeConcurrency, false));
          made.push(transfer("write", stored.written(left), stored.valueBytes, writeConcurrency, false));
        }
        return made;
      },
    };
  }

  // dictionary/cleaning.rs
  function victimLiveShare(utilisation) {
    const full = clamp(utilisation, 1e-3, 0.999);
    let live = Math.exp(-1 / full);
    for (let i = 0; i < 40; i++) {
      const step = (full * Math.log(live) + 1 - live) / (full / live - 1);
      if (!Number.isFinite(step) || Math.abs(step) <= 1e-14 * live) { break; }
      live -= step;
    }
    return live;
  }
  const ofOneKind = (utilisation) => 1 / (1 - victimLiveShare(utilisation));
  // The amplification of each kind does not follow from the workload, which the page asks about again and again.
  const kindsOf = new Map();
  function kindsAt(utilisation) {
    if (!kindsOf.has(utilisation)) {
      const free = 1 / utilisation - 1, kinds = [];
      for (const hot of [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5]) {
        for (let step = 1; step < 32; step++) {
          const freeHot = free * step / 32, cold = 1 - hot;
          kinds.push({ hot, ofHot: ofOneKind(hot / (hot + freeHot)), ofCold: ofOneKind(cold / (cold + free - freeHot)) });
        }
      }
      kindsOf.set(utilisation, { one: ofOneKind(utilisation), kinds });
    }
    return kindsOf.get(utilisation);
  }
  function cleaningAmplification(utilisation, s, recordsPerPage) {
    const { one, kinds } = kindsAt(utilisation);
    if (s.skew === 0) { return one; }
    const hits = hitsOf(s.skew, s.count, recordsPerPage);
    let best = one;
    for (const { hot, ofHot, ofCold } of kinds) {
      const changes = hits(hot);
      best = Math.min(best, changes * ofHot + (1 - changes) * ofCold);
    }
    return Math.sqrt(one * best);
  }

  // dictionary/out_of_place.rs
  function outOfPlaceBTree(nodeBytes, writeConcurrency) {
    const UTILISATION = 0.55, CLEANERS = 8, UNIT_BYTES = 65536;
    const image = nodeBytes * RANDOM_FILL + 64, readBytes = Math.min(image + 512, Math.max(nodeBytes, 512));
    const perLeaf = (s) => Math.max(nodeBytes * RANDOM_FILL / (s.recordBytes + SLOT_BYTES), 1);
    const shape = (s) => ({
      recordsPerLeaf: perLeaf(s), leafBytes: nodeBytes, innerBytes: nodeBytes, parts: 1,
      fanout: Math.max(nodeBytes * RANDOM_FILL / (s.keyBytes + POINTER_BYTES), 2),
    });
    const nodes = (levels) => sum(levels.map((level) => level.nodes));
    const storedAs = (operation, s) => storedOf(operation, s, nodeBytes, 64);
    const tableBytes = ({ inline, values }) => (nodes(levelsOf(inline, shape(inline), 0)) + values) * 8;
    function cleanerRead(live, image) {
      const gapMax = Math.floor(8192 / image), dead = 1 - live, passed = Math.pow(dead, gapMax + 1), joined = 1 - passed;
      const gap = dead / Math.max(live, 1e-9) - (gapMax + 1) * passed / Math.max(joined, 1e-9);
      const step = image * (1 + Math.max(gap, 0)), most = Math.max(1 + (65536 - image) / step, 1);
      const images = clamp((1 - Math.pow(joined, most)) / Math.max(1 - joined, 1e-9), 1, most);
      return { images, bytes: image + (images - 1) * step + 512 };
    }
    return {
      family: "out_of_place_b_tree",
      name: `B-tree out of place, ${nodeBytes / KIB} KiB nodes, ${UNIT_BYTES / KIB} KiB units`,
      memoryBytes: (s) => tableBytes(storedAs("updates", s)),
      space(s) {
        const stored = storedAs("updates", s), all = levelsOf(stored.inline, shape(stored.inline), 0);
        return (nodes(all) * image + stored.totalBytes) / UTILISATION / s.totalBytes;
      },
      demand(operation, whole) {
        const stored = storedAs(operation, whole), s = stored.inline, memory = s.cacheBytes - tableBytes(stored);
        const all = levelsOf(s, shape(s), memory), leaves = all[0], left = memory - levelBytesSum(all);
        const reads = (requests, atOnce) => transfer("read", requests, readBytes, s.clients * atOnce, true);
        const made = [reads(sum(all.map((l) => l.visits * l.miss)), 1)];
        if (operation === "ranges") {
          const [further, atOnce] = furtherReads(s.rangeBytes / (perLeaf(s) * s.recordBytes), AHEAD_BYTES / nodeBytes);
          made.push(reads(further * leaves.miss, atOnce));
        }
        made.push(...stored.reads(left, AHEAD_BYTES / stored.valueBytes));
        function written(images, image, perPage) {
          const amplification = cleaningAmplification(UTILISATION, s, perPage);
          const read = cleanerRead(victimLiveShare(UTILISATION), image);
          made.push(transfer("write", images * amplification * (image + 16) / UNIT_BYTES, UNIT_BYTES, writeConcurrency, false));
          made.push(transfer("read", images * (amplification - 1) / read.images, read.bytes, CLEANERS, false));
        }
        if (isChange(operation)) {
          written(firstChanges(leaves, s, 1) + (operation === "updates" ? 0 : 2 / perLeaf(s)), image, perLeaf(s));
          written(stored.written(left), stored.valueBytes + 64, 1);
        }
        return made;
      },
    };
  }

  // dictionary/b_epsilon_tree.rs
  function bEpsilonTree(inParts, nodeBytes, fanout, writeConcurrency) {
    const pivots = (s) => fanout * (s.keyBytes + POINTER_BYTES);
    const perLeaf = (s) => Math.max(nodeBytes * RANDOM_FILL / (s.recordBytes + SLOT_BYTES), 1);
    const parts = inParts ? fanout : 1;
    const innerBytes = (s) => inParts ? nodeBytes + fanout * pivots(s) : nodeBytes;
    const levels = (s) => levelsOf(s, {
      recordsPerLeaf: perLeaf(s), leafBytes: nodeBytes, fanout, innerBytes: innerBytes(s), parts,
    });
    const storedAs = (operation, s) => storedOf(operation, s, nodeBytes / parts, 4096);
    const flushedMessages = (operation, s) => {
      const bytes = inParts ? nodeBytes / fanout : 2 * Math.max(nodeBytes - pivots(s), 0) / (fanout + 1);
      return Math.max(bytes / (changedBytes(operation, s) + SLOT_BYTES), 1);
    };
    const background = (access, requests, bytes) => transfer(access, requests, bytes, writeConcurrency, false);
    function flushes(operation, all, s) {
      const made = [], inner = innerBytes(s), each = 1 / flushedMessages(operation, s);
      for (let height = 0; height + 1 < all.length; height++) {
        const bytes = height === 0 ? nodeBytes : inner, own = each * all[height + 1].visits;
        made.push(background("read", own * all[height].miss, bytes));
        made.push(background("write", own * firstChanges(all[height], s, own), bytes));
      }
      if (operation === "updates") { return made; }
      const splits = 1 / perLeaf(s);
      made.push(background("write", splits, nodeBytes), background("write", splits, inner));
      if (inParts) {
        const rebuilt = splits * Math.max(Math.log2(fanout), 1);
        for (const level of all.slice(1)) {
          made.push(background("read", rebuilt * level.visits, nodeBytes), background("write", rebuilt * level.visits, nodeBytes));
        }
      }
      return made;
    }
    return {
      family: inParts ? "b_epsilon_optimised" : "b_epsilon_naive",
      name: `Bε-tree${inParts ? " in parts" : ""}, ${nodeBytes / KIB} KiB nodes, fanout ${fanout}`,
      memoryBytes: innerBytes,
      space(s) {
        const stored = storedAs("updates", s);
        return (levelBytesSum(levels(stored.inline)) + stored.totalBytes) / s.totalBytes;
      },
      demand(operation, whole) {
        const stored = storedAs(operation, whole), s = stored.inline;
        const all = levels(s), left = s.cacheBytes - levelBytesSum(all);
        if (isChange(operation)) {
          return [...flushes(operation, all, s), background("write", stored.written(left), stored.valueBytes)];
        }
        const inner = sum(all.slice(1).map((l) => l.visits * l.miss));
        const made = [
          transfer("read", inner, innerBytes(s) / parts, s.clients, true),
          transfer("read", all[0].miss, nodeBytes / parts, s.clients, true),
        ];
        if (operation === "ranges") {
          let nodes = s.rangeBytes / (perLeaf(s) * s.recordBytes);
          all.forEach((level, height) => {
            const bytes = height === 0 ? nodeBytes : innerBytes(s);
            const [further, atOnce] = inPlaceReads(nodes * level.visits, height === 0 ? AHEAD_BYTES / nodeBytes : 1);
            made.push(transfer("read", further * level.miss, bytes, s.clients * atOnce, true));
            nodes /= fanout;
          });
        }
        made.push(...stored.reads(left, AHEAD_BYTES / nodeBytes));
        return made;
      },
    };
  }

  // lsm/cache.rs
  function lruMisses(runs, s, blockBytes, cacheBytes) {
    if (cacheBytes >= sum(runs.map((run) => run.bytes))) { return runs.map(() => 0); }
    const kinds = runs.map((run) => {
      const blocks = usesOf(s.skew, run.bytes / s.recordBytes, blockBytes / s.recordBytes);
      const each = run.bytes / sum(blocks.map((kind) => kind.places));
      return blocks.map(({ places, share }) => [places * each, run.usedBytes * share / (places * each), share]);
    });
    const time = timeToFill(kinds.flat(), cacheBytes);
    return kinds.map((own) => Math.min(sum(own.map(([, rate, share]) => share * Math.exp(-rate * time))), 1));
  }

  // lsm/tree.rs, lsm/runs.rs, lsm/compaction.rs, lsm/scan.rs
  function lsmTree(layout, fanout, fileBytes, blockBytes, filterBits, threads) {
    const isSingle = layout === "single-level", isLeveled = layout === "leveled";
    const levelOneBytes = fileBytes * LEVEL_ONE_FILES, batch = LEVEL_ONE_FILES;
    const falsePositives = Math.exp(-filterBits * Math.LN2 * Math.LN2);
    const touched = (ratio) => Math.max(1.39 + 0.391 * ratio, 1);
    const bytesOf = (run) => run.bytes * run.count;
    const runsMean = (fanout - 1) / 2;
    const levelZero = (s) => ({ bytes: fileBytes, count: s.replaced === null ? 0 : Math.min(LEVEL_ZERO_FILES, s.totalBytes / fileBytes) });
    function levelBytes(s) {
      let left = s.totalBytes - bytesOf(levelZero(s)), run = levelOneBytes;
      if (isSingle) { return [left]; }
      const levels = [], [runs, runsMax] = isLeveled ? [1, 1] : [runsMean, fanout];
      while (left > runsMax * run && levels.length + 1 < LEVELS_MAX) {
        levels.push(runs * run);
        left -= runs * run;
        run *= fanout;
      }
      levels.push(left);
      return levels;
    }
    function runsOf(s) {
      const runs = [levelZero(s)];
      levelBytes(s).forEach((bytes, level, all) => {
        const isLast = level + 1 === all.length;
        if (isLeveled || isSingle || (layout === "lazy leveled" && isLast)) { runs.push({ bytes, count: 1 }); return; }
        const nominal = levelOneBytes * Math.pow(fanout, level), each = isLast ? Math.min(nominal, bytes) : nominal;
        runs.push({ bytes: each, count: bytes / each });
      });
      return runs.filter((run) => run.count > 0 && run.bytes > 0);
    }
    function visitsOf(runs, isHit) {
      const total = sum(runs.map(bytesOf));
      let found = 0;
      return runs.map((run) => {
        if (!isHit) { return run.count * falsePositives; }
        const here = bytesOf(run) / total, each = run.bytes / total;
        const whole = Math.floor(run.count), part = run.count - whole;
        const reached = whole * (1 - found) - each * whole * (whole - 1) / 2 + part * (1 - found - whole * each);
        found += here;
        return here + falsePositives * Math.max(reached - here, 0);
      });
    }
    // Of changes that reach these keys.
    function workOf(s, keys) {
      const memtable = Math.max(fileBytes / s.recordBytes, 1), batchChanges = batch * memtable;
      const flushed = firstShare(keys, memtable), levels = levelBytes(s);
      if (keys !== null) { levels[levels.length - 1] = s.totalBytes; }
      const joined = (window, held) => keys === null ? 1 : held === Infinity ? 0
        : (distinct(keys, window + held) - distinct(keys, held)) / window;
      const steps = isSingle ? singleStep() : isLeveled ? leveledSteps() : tieredSteps();
      return { flushed, steps };
      function singleStep() {
        const files = s.totalBytes / fileBytes, rewritten = files / batch;
        return [{ read: flushed + rewritten, written: rewritten + joined(batchChanges, Infinity), threads: Math.min(files, threads), excludesAbove: false }];
      }
      function leveledSteps() {
        const window = (bytes, isLast) => isLast ? Infinity : reaching(keys, bytes / s.recordBytes);
        const files = levels[0] / fileBytes, rewritten = files / batch;
        const made = [{
          read: flushed + rewritten, written: rewritten + joined(batchChanges, window(levels[0], levels.length < 2)),
          threads: Math.min(files, threads), excludesAbove: false,
        }];
        for (let i = 0; i + 1 < levels.length; i++) {
          const batchBytes = i === 0 ? distinct(keys, batchChanges) * s.recordBytes : 0, isLast = i + 2 === levels.length;
          const gathered = 2 * window(levels[i] + batchBytes / 2, false), moved = firstShare(keys, gathered);
          const ratio = 2 * levels[i + 1] / (moved * gathered * s.recordBytes);
          const read = moved * (isLast && keys !== null ? Math.max(2 + 0.5 * ratio, 1) : touched(ratio));
          const dropped = moved - joined(gathered, window(levels[i + 1], isLast));
          made.push({ read, written: read - dropped, threads: i === 0 ? batchBytes / fileBytes / 2 : levels[i] / fileBytes, excludesAbove: i === 0 });
        }
        return made;
      }
      function tieredSteps() {
        const isLazy = layout === "lazy leveled", made = [];
        let window = batchChanges, read = flushed;
        levels.forEach((bytes, i) => {
          const single = isLazy && i + 1 === levels.length, rewritten = single ? bytes / s.recordBytes / window : 0;
          const written = single ? joined(window, Infinity) : firstShare(keys, window);
          const most = window * s.recordBytes * (1 + rewritten) / fileBytes;
          made.push({ read: read + rewritten, written: written + rewritten, threads: Math.min(most, threads), excludesAbove: false });
          [window, read] = [window * fanout, written];
        });
        for (let i = 0; i < 2 && !isLazy && keys !== null; i++) {
          const written = firstShare(keys, window);
          made.push({ read, written, threads, excludesAbove: false });
          [window, read] = [window * fanout, written];
        }
        return made;
      }
    }
    function olderVersions(s) {
      if (isLeveled || isSingle) { return sum(runsOf(s).slice(0, -1).map(bytesOf)) / s.totalBytes; }
      const levels = levelBytes(s).length + (layout === "tiered" ? 1 : -1), keys = usesOf(s.skew, s.count, 1);
      let window = batch * Math.max(fileBytes / s.recordBytes, 1), newer = 0;
      for (let i = 0; i < levels; i++, window *= fanout) { newer += distinct(keys, window); }
      return runsMean * newer / s.count;
    }
    function effectiveThreads(work) {
      let sequence = 0, longest = 0;
      for (const step of work) {
        const time = step.read / clamp(step.threads, 1, threads);
        sequence = step.excludesAbove ? sequence + time : time;
        longest = Math.max(longest, sequence);
      }
      return longest > 0 ? clamp(sum(work.map((step) => step.read)) / longest, 1, threads) : 1;
    }
    const readBytes = (s) => Math.max(blockBytes, s.recordBytes);
    const metadataBytes = (s) => s.count * filterBits / 8 + s.totalBytes / readBytes(s) * (s.keyBytes + HANDLE_BYTES);
    const memoryBytes = (s) => MEMTABLES * fileBytes + metadataBytes(s);
    // lsm/cache.rs
    const misses = (runs, usedBytes, s) => lruMisses(
      runs.map((run, i) => ({ bytes: bytesOf(run), usedBytes: usedBytes[i] })), s, blockBytes, Math.max(s.cacheBytes - memoryBytes(s), 0));
    function furtherRequests(bytes, block) {
      if (bytes <= 0) { return 0; }
      let requests = 0, left = bytes, size = block;
      while (size < Math.max(READ_AHEAD_BYTES, block) && left > size) {
        left -= size;
        requests += 1;
        size = Math.min(2 * size, READ_AHEAD_BYTES);
      }
      return requests + left / size;
    }
    function rangeReads(s, read) {
      const runs = runsOf(s), block = readBytes(s), total = sum(runs.map(bytesOf));
      const beyond = runs.map((run) => Math.max(s.rangeBytes * run.bytes / total - block / 2, 0));
      const missed = misses(runs, runs.map((run, i) => run.count * (block + beyond[i])), s);
      let firsts = 0, further = 0, furtherBytes = 0;
      runs.forEach((run, i) => {
        const seeks = run.count * missed[i];
        firsts += seeks;
        further += seeks * furtherRequests(beyond[i], block);
        furtherBytes += seeks * beyond[i];
      });
      return [read(firsts, block), read(further, further > 0 ? furtherBytes / further : block)];
    }
    const detail = `${fileBytes / MIB} MiB files, ${blockBytes / KIB} KiB blocks, ${filterBits} filter bits`;
    return {
      family: "lsm_" + layout.replace(/[ -]/, "_"),
      name: `LSM tree, ${layout}${isSingle ? "" : ", fanout " + fanout}, ${detail}`,
      memoryBytes, isTried: (s) => fileBytes === 0.5 * MIB ? s.cacheBytes < 64 * MIB : blockBytes !== 4 * MIB || s.totalBytes > 64 * s.cacheBytes,
      space: (s) => 1 + (s.replaced ?? 0) * olderVersions(s) + metadataBytes(s) / s.totalBytes,
      demand(operation, s) {
        const read = (requests, bytes) => transfer("read", requests, bytes, s.clients, true);
        if (operation === "ranges") { return rangeReads(s, read); }
        if (!isChange(operation)) {
          const runs = runsOf(s), visits = visitsOf(runs, operation === "point_hits");
          const missed = misses(runs, visits.map((visit) => visit * readBytes(s)), s);
          return [read(sum(visits.map((visit, i) => visit * missed[i])), readBytes(s))];
        }
        const { flushed, steps } = workOf(s, operation === "inserts" ? null : usesOf(s.skew, s.count, 1));
        const moved = (part) => sum(steps.map((step) => step[part])), concurrency = effectiveThreads(steps);
        const files = (access, bytes, at) => transfer(access, changedBytes(operation, s) * bytes / fileBytes, fileBytes, at, false);
        return [files("write", flushed, 1), files("read", moved("read"), concurrency), files("write", moved("written"), concurrency)];
      },
    };
  }

  // rank/designs.rs, in its order.
  function candidates(writeConcurrency, parallelism) {
    const all = [];
    for (let bytes = 4096; bytes <= MIB; bytes *= 2) {
      all.push(bTree(bytes, writeConcurrency), outOfPlaceBTree(bytes, writeConcurrency));
    }
    const blocks = Math.pow(2, Math.floor(Math.log2(clamp(parallelism, 1, 16))));
    for (const bytes of [4096, 8192, 16384]) { all.push(pdamBTree(bytes, blocks, writeConcurrency)); }
    for (let bytes = 65536; bytes <= 4 * MIB; bytes *= 2) {
      for (const fanout of [4, 8, 16, 32]) {
        all.push(bEpsilonTree(false, bytes, fanout, writeConcurrency));
        if (bytes / fanout >= 4096) { all.push(bEpsilonTree(true, bytes, fanout, writeConcurrency)); }
      }
    }
    for (const layout of ["leveled", "tiered", "lazy leveled", "single-level"]) {
      for (const fanout of layout === "single-level" ? [4] : [4, 6, 10, 16]) {
        for (const file of [16, 64, 256, 0.5]) {
          for (const block of [4096, 16384, 4 * MIB]) {
            for (const bits of [0, 10]) { all.push(lsmTree(layout, fanout, file * MIB, block, bits, writeConcurrency)); }
          }
        }
      }
    }
    return all;
  }

  // dictionary/log.rs
  function logWrite(operation, s) {
    const bytes = changedBytes(operation, s) + 24;
    if (s.changesPerLogWrite === 0) { return transfer("write", bytes / 65536, 65536, 1, false, 0); }
    const changes = Math.max(s.changesPerLogWrite, 1);
    return transfer("write", 1 / changes, Math.ceil(changes * bytes / 4096) * 4096, 1, false);
  }

  // advisor: price.rs, drive/costs.rs
  function between(costs, k, end) {
    const above = costs.findIndex(([own]) => own >= k);
    const at = ([, cost]) => cost[end];
    if (above < 0) { return at(costs[costs.length - 1]); }
    if (above === 0) { return at(costs[0]); }
    const [low, high] = [costs[above - 1], costs[above]];
    const share = Math.log(k / low[0]) / Math.log(high[0] / low[0]);
    return Math.exp(Math.log(at(low)) * (1 - share) + Math.log(at(high)) * share);
  }
  function situationOf(workload) {
    const { operations, records } = workload, recordBytes = records.key_bytes + records.value_bytes;
    const writes = sum(WRITES.map((name) => operations[name]));
    return {
      count: records.count, keyBytes: records.key_bytes, recordBytes, totalBytes: records.count * recordBytes,
      cacheBytes: workload.memory_bytes, clients: workload.clients, skew: workload.skew, rangeBytes: operations.range_bytes,
      replaced: writes > 0 ? 1 - operations.inserts / writes : null,
      scannedRecords: operations.ranges * operations.range_bytes / recordBytes,
      changesPerCheckpoint: Math.max(workload.memory_bytes / 4, 64e6) / recordBytes, writes,
      changesPerLogWrite: workload.durability.promise === "sync" ? Math.max(workload.clients * writes / 2, 1) : 0,
      isDurable: workload.durability.promise === "sync",
    };
  }
  function asked(design, workload, s) {
    const mix = (transfers, share) => transfers.map((one) => ({ ...one, requests: share * one.requests }));
    const all = { data: [], log: [], changed: 0, returned: 0 };
    for (const operation of OPERATIONS.filter((name) => workload.operations[name] > 0)) {
      const share = workload.operations[operation];
      all.data.push(...mix(design.demand(operation, s), share));
      if (isChange(operation)) { all.log.push(...mix([logWrite(operation, s)], share)); }
      all.changed += share * changedBytes(operation, s);
      all.returned += share * returnedBytes(operation, s);
    }
    all.data = all.data.filter((one) => one.requests > 0);
    return all;
  }
  function price(demand, s, drive, ends) {
    const seconds = (transfers, concurrency) => {
      const total = { read: 0, write: 0 };
      for (const one of transfers) {
        const costs = one.access === "read" ? drive.reads : drive.writes, end = ends[one.access];
        const k = Math.max(concurrency ?? one.concurrency, 1);
        total[one.access] += one.requests * (one.random * between(costs.setup, k, end) + between(costs.transfer, k, end) * one.bytes);
      }
      return total;
    };
    const of = (isAwaited) => demand.data.filter((one) => one.awaited === isAwaited);
    const outstanding = (transfers) => {
      const requests = sum(transfers.map((one) => one.requests));
      return requests > 0 ? sum(transfers.map((one) => one.requests * one.concurrency)) / requests : 0;
    };
    const awaited = seconds(of(true)), background = seconds(of(false));
    const device = seconds([...demand.data, ...demand.log], outstanding(of(true)) + outstanding(of(false)));
    const flush = s.isDurable ? s.writes * drive.flush_seconds[ends.flush] * (1 + 0.5 * (1 - 1 / s.clients)) : 0;
    const requests = sum([...demand.data, ...demand.log].map((one) => one.requests));
    const processor = OPERATION[ends.flush] + s.scannedRecords * SCANNED_RECORD[ends.flush] + requests * REQUEST[ends.flush];
    const most = (parts) => parts.reduce((found, part) => part[1] > found[1] ? part : found, [parts[0][0], 0])[0];
    const waits = [["read_latency", s.clients * awaited.read], ["write_latency", s.clients * awaited.write],
      ["flushes", flush], ["processor", processor]];
    const path = sum(waits.map(([, wait]) => wait));
    const limits = [
      ["processor", processor / s.clients], [most(waits), path / s.clients],
      [most([["device_reads", device.read], ["device_writes", device.write]]), device.read + device.write],
      ["background", background.read + background.write],
    ];
    const [bound, slowest] = limits.reduce((found, limit) => limit[1] > found[1] ? limit : found);
    return { rate: 1 / slowest, latency: Math.max(s.clients * slowest, path), bound };
  }

  const VALUE = { read: "value", write: "value", flush: "value" };
  const CORNERS = ["low", "high"].flatMap((read) => ["low", "high"].flatMap((write) =>
    ["low", "high"].map((flush) => ({ read, write, flush }))));

  function scaledDrive({ drive, factors }) {
    const times = (cost, factor) => ({ low: cost.low * factor, value: cost.value * factor, high: cost.high * factor });
    const all = (costs, factor) => costs.map(([k, cost]) => [k, times(cost, factor)]);
    const kind = (costs, name) =>
      ({ setup: all(costs.setup, factors[name + "_setup"]), transfer: all(costs.transfer, factors[name + "_transfer"]) });
    return {
      reads: kind(drive.reads, "read"), writes: kind(drive.writes, "write"),
      flush_seconds: times(drive.flush_seconds, factors.flush),
    };
  }

  // rank/mod.rs: the best of each family at the values of the drive's costs, best first.
  function best(question) {
    const { workload, drive: { parallelism } } = question;
    const s = situationOf(workload), drive = scaledDrive(question), found = new Map();
    const writeConcurrency = parallelism ? Math.ceil(Math.max(parallelism.value, 1)) : WRITE_CONCURRENCY;
    const ofCosts = between(drive.reads.setup, 1, "value") / between(drive.reads.setup, 64, "value");
    const readConcurrency = Math.round(clamp(parallelism?.value ?? ofCosts, 1, 64));
    for (const design of candidates(writeConcurrency, readConcurrency)) {
      if (design.isTried && !design.isTried(s)) { continue; }
      if (design.memoryBytes(s) > MEMORY_FRACTION * s.cacheBytes) { continue; }
      const demand = asked(design, workload, s), priced = price(demand, s, drive, VALUE);
      const own = found.get(design.family);
      if (!own || own.priced.rate * 1.001 < priced.rate) { found.set(design.family, { design, demand, priced, s, drive }); }
    }
    return [...found.values()].sort((a, b) => b.priced.rate - a.priced.rate);
  }

  // The same with intervals and amplification, as the fields of the Rust's `Row`.
  function rank(question) {
    return best(question).map(({ design, demand, priced, s, drive }) => {
      const corners = CORNERS.map((ends) => price(demand, s, drive, ends));
      const spanning = (of) => ({
        low: Math.min(of(priced), ...corners.map(of)), value: of(priced), high: Math.max(of(priced), ...corners.map(of)),
      });
      const bytes = (access, transfers) =>
        sum(transfers.filter((one) => one.access === access).map((one) => one.requests * one.bytes));
      const written = bytes("write", demand.data) + bytes("write", demand.log);
      return {
        family: design.family, design: design.name, bound: priced.bound,
        rate_per_second: spanning((one) => one.rate), latency_us: spanning((one) => one.latency * 1e6),
        write_amplification: demand.changed > 0 ? written / demand.changed : null,
        read_amplification: demand.returned > 0 ? bytes("read", demand.data) / demand.returned : null,
        space_amplification: design.space(s), written_bytes_per_day: spanning((one) => written * one.rate * SECONDS_PER_DAY),
      };
    });
  }

  return { best, rank, BOUNDS };
})();
