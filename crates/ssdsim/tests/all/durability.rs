//! Random loads with many requests in flight, cut at random events: the promises of a drive, whatever it was
//! doing.
//!
//! `FLASHGRAIN_CUTS=10000 cargo test -p flashgrain_ssdsim --release --test all durability` tries more.

use std::collections::HashMap;

use flashgrain_device::Op;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::{MappingCache, MediumConfig, NandConfig, StartState};
use flashgrain_ssdsim::fault::{Fault, FaultKind, PowerCut, Survivors, Tear, Trigger};
use flashgrain_ssdsim::random_drive;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::host::{DISK, Host, NAND, XPOINT, config};

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// The host writes to these pages, each of its writes to one to four of them.
const PAGES: usize = 512;
const PAGES_PER_WRITE_MAX: usize = 4;
const DEPTH: usize = 16;

/// Cuts of each small drive.
const CUTS: u64 = 12;

/// The possible content of a page after a power cut.
#[derive(Clone)]
struct Page {
    /// Written values, oldest first; the first of them, or a later one, must be there.
    values: Vec<u8>,
    /// Of `values`, the last that was acknowledged.
    acknowledged: usize,
    busy: bool,
}

/// A request in flight.
struct Flight {
    op: Op,
    first: usize,
    memory: Vec<u8>,
    /// For a flush: of every page, the last value that was acknowledged when the flush was submitted.
    covers: Vec<u8>,
}

struct Load {
    random: Pcg64,
    pages: Vec<Page>,
    flights: HashMap<u64, Flight>,
    next: u64,
}

impl Load {
    fn new(seed: u64) -> Self {
        let page = Page { values: vec![0], acknowledged: 0, busy: false };
        Self {
            random: Pcg64::seed_from_u64(seed),
            pages: vec![page; PAGES],
            flights: HashMap::new(),
            next: 0,
        }
    }

    /// Hands in one more request to pages that no other request is busy with.
    fn submit(&mut self, host: &mut Host) {
        let first = self.random.random_range(0..PAGES - PAGES_PER_WRITE_MAX);
        let count = self.random.random_range(1..=PAGES_PER_WRITE_MAX);
        let op = match self.random.random_range(0..20) {
            0 => Op::Flush,
            1 => Op::Discard,
            2 | 3 => Op::WriteDsync,
            4 => Op::WriteThenFlush,
            _ => Op::Write,
        };
        let busy = self.pages[first..first + count].iter().any(|page| page.busy);
        if op != Op::Flush && busy {
            return;
        }
        let tag = self.next;
        self.next += 1;
        let value = if op == Op::Discard { 0 } else { (tag % 255 + 1) as u8 };
        let mut flight = Flight { op, first, memory: vec![value; count * PAGE], covers: Vec::new() };
        if op == Op::Flush {
            flight.memory.clear();
            flight.covers = self.pages.iter().map(|page| page.values[page.acknowledged]).collect();
        } else {
            for page in &mut self.pages[first..first + count] {
                page.busy = true;
                page.values.push(value);
            }
            if op == Op::WriteThenFlush {
                // Those that complete while it is under way may be covered, too, but nobody promised that.
                flight.covers = self.pages.iter().map(|page| page.values[page.acknowledged]).collect();
            }
        }
        let flight = self.flights.entry(tag).or_insert(flight);
        host.submit(op, (first * PAGE) as u64, &mut flight.memory, tag);
    }

    /// A request was answered.
    fn answered(&mut self, tag: u64, ok: bool) {
        let flight = self.flights.remove(&tag).unwrap();
        let touched = flight.first..flight.first + flight.memory.len() / PAGE;
        if !ok {
            return;
        }
        for page in &mut self.pages[touched.clone()] {
            page.busy = false;
            page.acknowledged = page.values.len() - 1;
            if flight.op != Op::Write {
                page.values.drain(..page.acknowledged);
                page.acknowledged = 0;
            }
        }
        for (number, covered) in flight.covers.iter().enumerate() {
            let page = &mut self.pages[number];
            // Data acknowledged before the flush came are durable now; older values are no longer possible.
            if !touched.contains(&number)
                && let Some(at) = page.values[..=page.acknowledged].iter().rposition(|value| value == covered)
            {
                page.values.drain(..at);
                page.acknowledged -= at;
            }
        }
    }

    /// Requests until so many are done, or the power fails.
    fn run(&mut self, host: &mut Host, requests: u64) {
        while self.next < requests && host.device.answers() {
            for _ in self.flights.len()..DEPTH {
                self.submit(host);
            }
            for completion in host.reap(1) {
                self.answered(completion.tag, completion.result.is_ok());
            }
        }
        for completion in host.reap(self.flights.len()) {
            self.answered(completion.tag, completion.result.is_ok());
        }
    }

    /// Every sector holds something that it may hold.
    fn check(&self, host: &mut Host, case: &str) {
        for (number, page) in self.pages.iter().enumerate() {
            for (at, sector) in host.read((number * PAGE) as u64, PAGE).chunks(SECTOR).enumerate() {
                let whole = sector.iter().all(|byte| *byte == sector[0]);
                assert!(
                    whole && page.values.contains(&sector[0]),
                    "{case}: sector {at} of page {number} holds {}, possible is {:?}",
                    sector[0],
                    page.values
                );
            }
        }
    }
}

/// The random cut number `case`, and what a host finds afterwards.
fn try_cut(config: &SimConfig, case: u64, events: u64, requests: u64) {
    let mut random = Pcg64::seed_from_u64(case ^ 0xcafe);
    let survivors = match random.random_range(0..4) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::First(random.random_range(0..DEPTH)),
        _ => Survivors::Random,
    };
    let tear = [Tear::Whole, Tear::Prefix { unit_bytes: 512 }, Tear::Shorn { unit_bytes: 512 }]
        [random.random_range(0..3)];
    let cut = PowerCut { survivors, tear, in_flight: random.random(), seed: case };
    let event = random.random_range(1..events);
    let message = format!("{}, case {case}, event {event}, {cut:?}", config.name);
    let (mut host, mut load) = (Host::of(config, 3), Load::new(1));
    host.device.inject(Fault::new(FaultKind::PowerCut(cut)).at(Trigger::Event(event)));
    load.run(&mut host, requests);
    assert!(!host.device.answers() && load.flights.is_empty(), "{message}");
    host.device.power_on();
    load.check(&mut host, &message);
    // The drive goes on as a healthy one, and loses nothing more.
    let mut after = Load::new(case);
    for (number, page) in after.pages.iter_mut().enumerate() {
        host.write_durably((number * PAGE) as u64, &[9; PAGE]);
        page.values = vec![9];
    }
    after.run(&mut host, requests / 4);
    host.flush();
    host.device.power_cut(&PowerCut::default());
    host.device.power_on();
    after.pages.iter_mut().for_each(|page| drop(page.values.drain(..page.acknowledged)));
    after.check(&mut host, &message);
}

/// Cuts per drive: `cuts`, or what the environment asks for.
fn try_cuts(config: &SimConfig, cuts: u64) {
    const REQUESTS: u64 = 600;
    let cuts = std::env::var("FLASHGRAIN_CUTS").map_or(cuts, |cuts| cuts.parse().unwrap());
    let events = {
        let (mut host, mut load) = (Host::of(config, 3), Load::new(1));
        load.run(&mut host, REQUESTS);
        host.device.events()
    };
    for case in 0..cuts {
        try_cut(config, case, events, REQUESTS);
    }
}

/// The small flash drive, even smaller, so that the load makes it collect garbage.
fn tiny_nand(change: impl Fn(&mut NandConfig)) -> SimConfig {
    let mut config = SimConfig { capacity_bytes: 4 << 20, ..config(NAND) };
    let MediumConfig::Nand(nand) = &mut config.medium else { unreachable!() };
    (nand.pages_per_block, nand.over_provisioning) = (4, 0.6);
    change(nand);
    config
}

#[test]
fn a_disk_keeps_its_promises() {
    try_cuts(&config(DISK), CUTS);
}

#[test]
fn a_3d_xpoint_drive_keeps_its_promises() {
    try_cuts(&config(XPOINT), CUTS);
}

#[test]
fn a_flash_drive_keeps_its_promises() {
    for state in [StartState::Fresh, StartState::Filled, StartState::SteadyRandom { working_set: 1.0 }] {
        try_cuts(&SimConfig { state, ..tiny_nand(|_| ()) }, CUTS);
    }
}

#[test]
fn flash_drives_of_other_kinds_keep_their_promises() {
    try_cuts(&tiny_nand(|nand| nand.write_cache.bytes = 0), CUTS);
    try_cuts(&tiny_nand(|nand| nand.write_cache.volatile = false), CUTS);
    try_cuts(&tiny_nand(|nand| nand.mapping.cache = MappingCache::EntriesBytes(1024)), CUTS);
    try_cuts(&tiny_nand(|nand| nand.write_cache.bytes = 65536), CUTS);
    let mut set = config(DISK);
    (set.drives, set.stripe_unit_bytes) = (3, 8192);
    try_cuts(&set, CUTS);
}

#[test]
fn random_drives_keep_their_promises() {
    for seed in 0..12 {
        try_cuts(&random_drive(seed), 2);
    }
}

#[test]
fn the_load_makes_flash_drives_collect_garbage() {
    let (mut host, mut load) = (Host::of(&tiny_nand(|_| ()), 3), Load::new(1));
    load.run(&mut host, 600);
    let counters = host.device.statistics().counters;
    assert!(counters.collected_blocks > 0 && counters.moved_units > 0, "{counters:?}");
}
