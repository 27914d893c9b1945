//! Commits that are compressed in the log.

use std::sync::Arc;

use flashgrain::{
    Builder, CpuCosts, Db, Durability, Error, IndexKind, LsmCompression, Simulated, TreeOptions,
};
use flashgrain_ssdsim::{SimConfig, SimDevice};

const VALUE_BYTES: usize = 500;

/// Longer than a node, so that it is in pages of its own.
const LONG_VALUE_BYTES: usize = 100_000;

fn device() -> Arc<SimDevice> {
    let config = SimConfig { capacity_bytes: 256 << 20, ..SimConfig::named("905p").unwrap() };
    Arc::new(SimDevice::new(&config, "sim:log", 1).unwrap())
}

fn builder(device: &Arc<SimDevice>, compression: LsmCompression) -> Builder {
    Db::builder()
        .device(device.clone())
        .workers(1)
        .cache_bytes(4 << 20)
        .durability(Durability::None)
        .log_compression(compression)
}

/// Commits of round `round`, and the bytes of log that they take.
fn write(db: &Db, round: u8) -> Result<u64, Error> {
    let lsm = db.tree_with("lsm", &TreeOptions::new().kind(IndexKind::Lsm))?;
    let plain = db.tree("plain")?;
    let before = db.stats().log.written_bytes;
    for number in 0..40_u8 {
        lsm.insert([round, number], vec![number; VALUE_BYTES])?;
        let mut batch = db.batch();
        batch.insert(&plain, [round, number], vec![round; VALUE_BYTES])?;
        batch.insert(&plain, [round, number, 1], vec![number; LONG_VALUE_BYTES])?;
        batch.remove(&lsm, [round, number / 2])?;
        batch.commit()?;
    }
    // Commits that nobody waits for fill blocks together.
    db.sync()?;
    Ok(db.stats().log.written_bytes - before)
}

/// Everything that [`write`] has written in these rounds, and nothing else.
fn check(db: &Db, rounds: std::ops::Range<u8>) -> Result<(), Error> {
    let (lsm, plain) = (db.tree("lsm")?, db.tree("plain")?);
    assert_eq!(plain.iter()?.count(), 2 * 40 * rounds.len());
    for (round, number) in rounds.flat_map(|round| (0..40_u8).map(move |number| (round, number))) {
        let expected = (number >= 20).then(|| vec![number; VALUE_BYTES]);
        assert_eq!(lsm.get([round, number])?.map(|value| value.to_vec()), expected, "{round}, {number}");
        assert_eq!(plain.get([round, number])?.unwrap(), vec![round; VALUE_BYTES]);
        assert_eq!(plain.get([round, number, 1])?.unwrap(), vec![number; LONG_VALUE_BYTES]);
    }
    Ok(())
}

#[test]
fn a_log_with_compressed_commits_and_others_is_shorter_and_replayed_as_a_whole() {
    let device = device();
    let mut simulated =
        Simulated::create(builder(&device, LsmCompression::None), CpuCosts::default()).unwrap();
    let mut bytes = vec![simulated.run(|db| write(db, 0)).unwrap()];
    simulated.abandon();
    for (round, compression) in [(1, LsmCompression::Lz4), (2, LsmCompression::None)] {
        let mut simulated = Simulated::open(builder(&device, compression), CpuCosts::default()).unwrap();
        bytes.push(
            simulated
                .run(move |db| {
                    assert!(db.stats().recovery.records >= 80, "{:?}", db.stats().recovery);
                    check(db, 0..round)?;
                    write(db, round)
                })
                .unwrap(),
        );
        simulated.abandon();
    }
    let mut simulated = Simulated::open(builder(&device, LsmCompression::None), CpuCosts::default()).unwrap();
    simulated.run(|db| check(db, 0..3)).unwrap();
    assert!(bytes[1] < bytes[0] && bytes[1] < bytes[2], "{bytes:?}");
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_codec_that_the_build_lacks_is_refused() {
    let refused = Db::builder().device(device()).log_compression(LsmCompression::Zstd).create();
    assert!(matches!(refused, Err(Error::Options(why)) if why.contains("zstd")));
}
