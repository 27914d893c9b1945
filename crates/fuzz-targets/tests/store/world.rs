//! A small store with something of everything, the same every time.

use std::sync::Arc;

use flashgrain::testing::Small;
use flashgrain::{Builder, CpuCosts, Db, Error, Readable, Simulated, TreeOptions};
use flashgrain_ssdsim::{Image, SimConfig, SimDevice};

/// Segments of the store.
const SEGMENTS: u64 = 48;

/// Records of the tree with short keys.
pub const SHORT: u32 = 500;

/// Of the one with long keys, which is deep.
pub const LONG: u32 = 60;

pub fn small() -> Small {
    // Nodes of 16 KiB need more than the least, and so do the longest commits of the log.
    Small { cache_bytes: 512 << 10, log_bytes: 160 << 10, ..Small::default() }
}

pub fn drive() -> Arc<SimDevice> {
    let mut config = SimConfig::named("905p").unwrap();
    config.capacity_bytes = small().bytes(SEGMENTS).next_multiple_of(1 << 20);
    Arc::new(SimDevice::new(&config, "sim:small", 1).unwrap())
}

pub fn builder(drive: &Arc<SimDevice>) -> Builder {
    Db::builder().device(Arc::clone(drive) as _).small(&small())
}

pub fn open(drive: &Arc<SimDevice>) -> Result<Simulated, Error> {
    Simulated::open(builder(drive), CpuCosts::default())
}

pub fn short_key(number: u32) -> Vec<u8> {
    format!("fruit/{number:05}").into_bytes()
}

pub fn long_key(number: u32) -> Vec<u8> {
    let mut key = vec![b'a' + (number % 3) as u8; 700];
    key.extend_from_slice(format!("{:04}", number * 7 % LONG).as_bytes());
    key
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; (number * 37 % 200) as usize]
}

/// Longer than fits into one page, or into eight.
pub fn overflow_value(number: u32) -> Vec<u8> {
    vec![number as u8; 3000 * (number as usize % 20 + 1)]
}

/// How a store was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Closed,
    /// With much in the log that no checkpoint has.
    Abandoned,
}

/// The store's drive.
pub fn image(left: Left) -> Image {
    let drive = drive();
    let mut store = Simulated::create(builder(&drive), CpuCosts::default()).unwrap();
    store.run(fill).unwrap();
    store.run(|db| db.checkpoint()).unwrap();
    store.run(go_on).unwrap();
    match left {
        Left::Closed => drop(store),
        Left::Abandoned => store.abandon(),
    }
    drive.image()
}

fn fill(db: &Db) -> Result<(), Error> {
    let (short, long) = (db.tree("short")?, db.tree("long")?);
    let wide = db.tree_with("wide", &TreeOptions::default().node_bytes(16 << 10))?;
    for number in 0..SHORT {
        short.insert(short_key(number), value(number))?;
        wide.insert(short_key(number), value(number + 1))?;
    }
    for number in 0..LONG {
        long.insert(long_key(number), value(number))?;
    }
    for number in 0..6 {
        short.insert(format!("large/{number}"), overflow_value(number * 3 + 1))?;
    }
    let gone = db.tree("gone")?;
    gone.insert("a", "b")
}

/// Writes that are only in the log if the store is abandoned.
fn go_on(db: &Db) -> Result<(), Error> {
    let (short, long) = (db.tree("short")?, db.tree("long")?);
    let snapshot = db.snapshot()?;
    for number in (0..SHORT).step_by(7) {
        short.insert(short_key(number), value(number + 9))?;
        short.remove(short_key(number + 1))?;
    }
    short.insert("large/1", overflow_value(2))?;
    short.insert("large/9", overflow_value(14))?;
    short.remove("large/0")?;
    long.remove(long_key(3))?;
    let mut batch = db.batch();
    for number in 0..20 {
        batch.insert(&long, long_key(number), value(number + 3))?;
    }
    batch.commit()?;
    db.tree("late")?.insert("apple", "red")?;
    db.drop_tree("gone")?;
    assert!(snapshot.get(&short, short_key(1))?.is_some());
    Ok(())
}
