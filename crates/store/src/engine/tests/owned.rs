//! An owner of whole segments over a store whose power fails: all tables of the last checkpoint are there,
//! and nothing else takes room.
//!
//! The owner is as small as can be. Its tables are one to three segments each, which describe their own
//! content; one section records all of a table, another one frees it. At the same time, tasks commit, so that
//! pages are evicted, segments cleaned, and checkpoints made in the background.
//!
//! FLASHGRAIN_OWNED_SEEDS is the number of stories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::fault::{PowerCut, Survivors};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::{Oracle, Work, create, drive, make_trees, open, options, world};
use crate::Error;
use crate::engine::Engine;
use crate::header::PageId;
use crate::layout::SyncMethod;
use crate::segment::{OwnedBlock, OwnedSegment, Purpose};

const LIVES: u64 = 4;
const HEAD_BYTES: u32 = 16;

/// One segment of a table.
struct Part {
    segment: OwnedSegment,
    id: PageId,
}

/// Existing tables, by their numbers.
type Tables = BTreeMap<u32, Vec<Part>>;

/// The owner, and the tables after each of its changes since the last recovery.
#[derive(Default)]
struct Owner {
    tables: Tables,
    next: u32,
    states: Vec<BTreeSet<u32>>,
    /// The state that a checkpoint certainly has.
    durable: usize,
}

/// The blocks after the first one of a part. Their places follow from their lengths.
fn contents(table: u32, part: u32) -> Vec<Vec<u8>> {
    let mut random = Pcg64::seed_from_u64(u64::from(table) << 32 | u64::from(part));
    let count = random.random_range(1..30);
    (0..count).map(|_| (0..random.random_range(1..1800)).map(|_| random.random()).collect()).collect()
}

fn head(table: u32, part: u32, parts: u32) -> Vec<u8> {
    [0x5ab1_e001, table, part, parts].map(u32::to_le_bytes).concat()
}

fn blocks(contents: &[Vec<u8>]) -> Vec<OwnedBlock> {
    let mut at = HEAD_BYTES + 8;
    let block = |content: &Vec<u8>| {
        let block = OwnedBlock { start: at, length: content.len() as u32 + 8 };
        at += block.length;
        block
    };
    contents.iter().map(block).collect()
}

impl Owner {
    fn note(&mut self) {
        self.states.push(self.tables.keys().copied().collect());
    }
}

/// Reads all of a part, and says which one it is.
fn part_of(segment: &OwnedSegment) -> (u32, u32, u32) {
    let first = segment.read(OwnedBlock { start: 0, length: HEAD_BYTES + 8 }).unwrap();
    let words: Vec<u32> = first.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let [_, table, part, parts] = words[..] else { panic!("{words:?}") };
    assert_eq!(first, head(table, part, parts));
    let (contents, mut seen) = (contents(table, part), Vec::new());
    segment.read_all(&blocks(&contents), &mut |bytes| seen.push(bytes.to_vec())).unwrap();
    assert!(seen == contents, "table {table}, part {part}");
    (table, part, parts)
}

/// Writes a table; now and then it is given up before it is recorded.
fn add_table(engine: &Engine, owner: &Mutex<Owner>, random: &mut Pcg64) -> Result<(), Error> {
    let (segments, pool) = (&engine.parts().segments, &engine.parts().pool);
    let table = {
        let mut owner = owner.lock().unwrap();
        owner.next += 1;
        owner.next
    };
    let parts: u32 = random.random_range(1..4);
    let mut written = Vec::new();
    for part in 0..parts {
        let mut writer = segments.owned.take(Purpose::Flush)?;
        writer.append(&head(table, part, parts))?.unwrap();
        if random.random_bool(0.05) {
            return Ok(());
        }
        for content in contents(table, part) {
            writer.append(&content)?.unwrap();
        }
        written.push(writer.finish()?);
    }
    if random.random_bool(0.1) {
        return Ok(());
    }
    loop {
        let recorded = {
            let section = pool.section();
            let ids: Result<Vec<PageId>, _> =
                written.iter().map(|segment| section.record_segment(segment)).collect();
            ids.map(|ids| {
                let mut owner = owner.lock().unwrap();
                let parts = written.iter().cloned().zip(ids).map(|(segment, id)| Part { segment, id });
                owner.tables.insert(table, parts.collect());
                owner.note();
            })
        };
        match recorded {
            Ok(()) => return Ok(()),
            Err(denied) => pool.images.recover(denied)?,
        }
    }
}

/// Frees a table, all of it in one section.
fn free_table(engine: &Engine, owner: &Mutex<Owner>, random: &mut Pcg64) -> Result<(), Error> {
    let pool = &engine.parts().pool;
    let table = {
        let owner = owner.lock().unwrap();
        let Some(which) = owner.tables.len().checked_sub(1) else { return Ok(()) };
        *owner.tables.keys().nth(random.random_range(0..=which)).unwrap()
    };
    let section = pool.section();
    let mut owner = owner.lock().unwrap();
    let parts = owner.tables.remove(&table).unwrap();
    parts.iter().for_each(|part| section.free_unread(part.id).unwrap());
    owner.note();
    Ok(())
}

/// Works until it is done, or the store refuses.
fn work(engine: &Engine, owner: &Mutex<Owner>, random: &mut Pcg64, steps: u32) -> Result<(), Error> {
    for _ in 0..steps {
        let count = owner.lock().unwrap().tables.len();
        match random.random_range(0..10) {
            0..4 if count < 12 => match add_table(engine, owner, random) {
                Err(Error::Full { .. }) => free_table(engine, owner, random)?,
                added => added?,
            },
            0..7 => free_table(engine, owner, random)?,
            7 | 8 => {
                let some: Vec<OwnedSegment> = {
                    let owner = owner.lock().unwrap();
                    let table = owner.tables.values().nth(random.random_range(0..count.max(1)));
                    table.into_iter().flatten().map(|part| part.segment.clone()).collect()
                };
                // No other task frees it meanwhile.
                for segment in some {
                    if engine.parts().poison.check().is_ok() {
                        let head = OwnedBlock { start: 0, length: HEAD_BYTES + 8 };
                        match segment.read(head) {
                            Err(error @ Error::Io { .. }) => return Err(error),
                            read => assert_eq!(read.unwrap()[..4], 0x5ab1_e001_u32.to_le_bytes()),
                        }
                    }
                }
            }
            _ => {
                let state = owner.lock().unwrap().states.len() - 1;
                engine.checkpoint()?;
                let mut owner = owner.lock().unwrap();
                owner.durable = owner.durable.max(state);
            }
        }
    }
    Ok(())
}

/// The tables that a store has which was just opened; all of each is there, and nothing else is owned.
fn recovered(engine: &Engine, case: &str) -> Tables {
    let (segments, pool) = (&engine.parts().segments, &engine.parts().pool);
    let (mut tables, mut bytes, mut counts) = (Tables::new(), 0, BTreeMap::new());
    for id in pool.pages.all() {
        let Some(location) = pool.pages.location(id, true).filter(|location| location.is_segment()) else {
            continue;
        };
        let segment = segments.owned.open(location).unwrap_or_else(|error| panic!("{case}: {error}"));
        let (table, part, parts) = part_of(&segment);
        let known: &mut BTreeSet<u32> = counts.entry((table, parts)).or_default();
        assert!(part < parts && known.insert(part), "{case}: part {part} of table {table}");
        // A leaf that leads here is damaged.
        assert!(pool.read(id, crate::pool::Access::Normal).is_err(), "{case}: a segment is no page");
        tables.entry(table).or_default().push(Part { segment, id });
        bytes += 64 << 10;
    }
    for ((table, parts), there) in counts {
        assert_eq!(there.len() as u32, parts, "{case}: table {table} is not whole");
    }
    assert_eq!(segments.usage().owned_bytes, bytes, "{case}: a segment belongs to nobody");
    tables
}

#[test]
fn tables_survive_power_cuts_as_the_last_checkpoint_has_them_and_leak_nothing() {
    let stories =
        std::env::var("FLASHGRAIN_OWNED_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let (mut cuts, mut freed, mut met) = (0, 0, 0);
    for seed in 0..stories {
        let mut random = Pcg64::seed_from_u64(seed);
        let device = drive(seed);
        let owner: Arc<Mutex<Owner>> = Arc::default();
        let (mut harness, given) = world(&device, 2, options());
        let mut engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
        for life in 0..LIVES {
            let case = format!("seed {seed}, life {life}");
            {
                let (own, told) = (Arc::clone(&engine), case.clone());
                let tables = harness.run(move || recovered(&own, &told));
                let mut owner = owner.lock().unwrap();
                let found: BTreeSet<u32> = tables.keys().copied().collect();
                let expected = owner.states.get(owner.durable..).unwrap_or_default();
                assert!(life == 0 || expected.contains(&found), "{case}: {found:?} of {expected:?}");
                met += found.len();
                (owner.tables, owner.states, owner.durable) = (tables, vec![found], 0);
            }
            for task in 0..3 {
                let (engine, oracle) = (Arc::clone(&engine), Arc::<Mutex<Oracle>>::default());
                let commits = Work { engine, oracle, task, life, commits: 40, all_marked: true };
                let _goes_on = harness.spawn(0, move || commits.run());
            }
            let (own, its, mut steps) =
                (Arc::clone(&engine), Arc::clone(&owner), Pcg64::seed_from_u64(random.random()));
            let ended = harness.spawn(1, move || work(&own, &its, &mut steps, 120));
            let cut_at = random.random_range(0..3000);
            let mut is_cut = false;
            for turn in 0.. {
                if turn == cut_at && !ended.is_finished() {
                    is_cut = true;
                    let survivors = Survivors::Random;
                    device.power_cut(&PowerCut {
                        survivors,
                        in_flight: true,
                        seed: turn,
                        ..PowerCut::default()
                    });
                }
                if !harness.turn() {
                    break;
                }
            }
            assert_eq!(harness.unfinished(), 0, "{case}: tasks wait for each other");
            let result = ended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert!(is_cut || result.is_ok(), "{case}: {result:?}");
            cuts += u64::from(is_cut);
            freed += engine.stats().written.freed_bytes;
            // Segments that are held belong to this life of the store.
            owner.lock().unwrap().tables.clear();
            drop(engine);
            if !is_cut {
                device.power_cut(&PowerCut { seed, ..PowerCut::default() });
            }
            device.power_on();
            let (next, given) = world(&device, 2, options());
            harness = next;
            engine = open(&mut harness, given).unwrap_or_else(|error| panic!("{case}: {error}"));
            let own = Arc::clone(&engine);
            harness.run(move || make_trees(&own)).unwrap();
        }
    }
    assert!(cuts > stories && freed > 0 && met as u64 > stories, "{cuts} cuts, {met} tables met again");
}
