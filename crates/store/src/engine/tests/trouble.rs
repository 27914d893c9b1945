//! A page that cannot be read, or a write that fails, at every single occasion of a piece of work.

use std::sync::Arc;

use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::PowerCut;

use super::world::{Content, create, drive, layout, open, options, values, world};
use crate::Error;
use crate::btree::overflow::kept;
use crate::engine::{Engine, NewTree, OverflowValue};
use crate::error::ErrorKind;
use crate::factory::TreePlan;
use crate::index::{Write, Written};
use crate::layout::{Layout, SyncMethod};
use crate::log::Durability;
use crate::store_id::StoreId;
use crate::testing::Trouble;

/// More than the pages that a record names.
const LONG_BYTES: usize = 40 << 10;

fn put(engine: &Engine, tree: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
    if value.len() > 400 {
        return put_written(engine, tree, key, &engine.write_overflow(&[OverflowValue::Bytes(value)])?[0]);
    }
    commit(engine, tree, key, Write::Put(value))
}

/// An overflow value that was written before.
fn put_written(engine: &Engine, tree: &str, key: &[u8], logged: &[u8]) -> Result<(), Error> {
    commit(engine, tree, key, Write::PutOverflow { reference: kept(logged), logged })
}

fn commit(engine: &Engine, tree: &str, key: &[u8], write: Write<'_>) -> Result<(), Error> {
    let known = engine.trees().named(tree).ok_or(Error::Closed)?;
    let written = Written { tree: &known.tree, key, write };
    engine.transactions().write(written, Durability::Sync).map(drop)
}

fn long(fill: u8) -> Vec<u8> {
    (0..LONG_BYTES).map(|at| fill ^ (at >> 6) as u8).collect()
}

/// No page with a reference to it is freed, and the rest is freed the next time.
#[test]
fn pages_to_which_nobody_refers_are_found_again_when_a_page_could_not_be_read() {
    let (mut harness, given) = world(&drive(1), 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let own = Arc::clone(&engine);
    let content = harness.run(move || {
        (0..40_u32).try_for_each(|key| put(&own, "apples", &key.to_be_bytes(), &[7; 300])).unwrap();
        put(&own, "pears", b"long", &long(1)).unwrap();
        values(&own)
    });
    let mut failures = 0;
    for nth in 1.. {
        let own = Arc::clone(&engine);
        let reclaimed = harness.run(move || {
            own.write_overflow(&[OverflowValue::Bytes(&long(2))]).unwrap();
            let pages = own.parts().pool.pages.count();
            let troubled = Trouble::Page.at(nth);
            let reclaimed = own.reclaim();
            drop(troubled);
            let freed = pages - own.parts().pool.pages.count();
            let rest = own.reclaim().unwrap().unwrap();
            assert!(freed + rest >= 11, "{freed} and {rest} pages");
            reclaimed
        });
        let looked = Arc::clone(&engine);
        assert!(harness.run(move || values(&looked)) == content, "occasion {nth}");
        match reclaimed {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "occasion {nth}: {error}"),
        }
        failures += 1;
    }
    assert!(failures > 20, "{failures}");
}

/// The rest of a dropped tree is freed when the store is opened again.
#[test]
fn a_dropped_tree_that_could_not_be_freed_is_freed_later() {
    let mut failures = 0;
    for nth in 1.. {
        let device = drive(1);
        let (mut harness, given) = world(&device, 1, options());
        let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
        let own = Arc::clone(&engine);
        let content = harness.run(move || {
            let content = values(&own);
            own.create_trees(&[NewTree {
                name: "plums",
                plan: TreePlan { class: 0, ..TreePlan::default() },
                operator: None,
            }])
            .unwrap();
            (0..4).try_for_each(|key| put(&own, "plums", &[key], &long(key))).unwrap();
            content
        });
        let (own, pages) = (Arc::clone(&engine), engine.parts().pool.pages.count());
        harness.run(move || own.drop_trees(&["plums"]).unwrap());
        let troubled = Trouble::Page.at(nth);
        harness.run_until_idle();
        let is_over = troubled.asked() < nth;
        drop(troubled);
        let freed = pages - engine.parts().pool.pages.count();
        failures += u32::from(freed < 40);
        drop((engine, harness));
        let (mut harness, given) = world(&device, 1, options());
        let engine = open(&mut harness, given).unwrap();
        harness.run_until_idle();
        assert!(
            !engine.trees().has_dropped() && pages - engine.parts().pool.pages.count() >= 40,
            "occasion {nth}"
        );
        assert!(harness.run(move || values(&engine)) == content, "occasion {nth}");
        if is_over {
            break;
        }
    }
    assert!(failures > 5, "{failures}");
}

/// Makes a store whose log has every kind of operation to be replayed. Returns its content.
fn to_be_recovered(device: &Arc<SimDevice>) -> Content {
    let (mut harness, given) = world(device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let own = Arc::clone(&engine);
    let work = move || -> Result<Content, Error> {
        put(&own, "apples", b"replaced", &long(1))?;
        put(&own, "pears", b"replaced", &long(2))?;
        put(&own, "apples", b"removed", b"small")?;
        own.checkpoint()?;
        for key in 0..30_u32 {
            put(&own, "apples", &key.to_be_bytes(), &[7; 300])?;
        }
        let written = own.write_overflow(&[OverflowValue::Bytes(&long(5))])?;
        own.checkpoint()?;
        // The checkpoint has its pages, but not the commit.
        put_written(&own, "apples", b"written", &written[0])?;
        own.create_trees(&[NewTree {
            name: "plums",
            plan: TreePlan { class: 0, ..TreePlan::default() },
            operator: None,
        }])?;
        put(&own, "plums", b"a", b"small")?;
        // In the log, but its pages are part of the next checkpoint.
        put(&own, "apples", b"replaced", &long(3))?;
        put(&own, "pears", b"replaced", b"small")?;
        put(&own, "pears", b"new", &long(4))?;
        put(&own, "apples", &7_u32.to_be_bytes(), b"once more")?;
        own.drop_trees(&["plums"])?;
        put(&own, "apples", &17_u32.to_be_bytes(), b"once more")?;
        own.create_trees(&[NewTree {
            name: "cherries",
            plan: TreePlan { class: 0, ..TreePlan::default() },
            operator: None,
        }])?;
        put(&own, "cherries", b"last", b"small")?;
        Ok(values(&own))
    };
    let content = harness.run(work).unwrap();
    device.power_cut(&PowerCut::default());
    device.power_on();
    content
}

#[test]
fn a_store_that_could_not_be_recovered_is_recovered_later() {
    for trouble in [Trouble::Page, Trouble::Frame, Trouble::Write] {
        let device = drive(1);
        let content = to_be_recovered(&device);
        let image = device.image();
        let mut failures = 0;
        for nth in 1.. {
            let (mut harness, given) = world(&device, 1, options());
            let troubled = trouble.at(nth);
            let opened = open(&mut harness, given);
            let is_over = troubled.asked() < nth;
            drop(troubled);
            let found = opened.map(|engine| harness.run(move || values(&engine)));
            match found {
                Ok(found) => assert!(found == content, "{trouble:?} at {nth}"),
                Err(error) => {
                    let is_told = matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
                    assert!(is_told, "{trouble:?} at {nth}: {error}");
                    failures += 1;
                }
            }
            drop(harness);
            if is_over {
                break;
            }
            device.restore(&image).unwrap();
        }
        assert!(failures > 0, "{trouble:?}: {failures}");
        let (mut harness, given) = world(&device, 1, options());
        let engine = open(&mut harness, given).unwrap();
        assert!(harness.run(move || values(&engine)) == content);
    }
}

/// A checkpoint that writes a page table of several pages after `others`, while the store is found poisoned
/// at the `nth` occasion. Returns the number of occasions, and of page tables begun anew.
fn checkpoint(others: u32, nth: u64) -> (u64, u64) {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let small = Layout { unit_bytes: 4 << 10, pack_bytes: 4 << 10, ..layout(SyncMethod::Dsync) };
    let engine = harness.run(move || Engine::create(given, small, StoreId([5; 16])).unwrap());
    let own = Arc::clone(&engine);
    let (content, asked, ended) = harness.run(move || {
        own.create_trees(&[NewTree {
            name: "apples",
            plan: TreePlan { class: 0, ..TreePlan::default() },
            operator: None,
        }])
        .unwrap();
        // Many pages, but not enough for the log to ask for a checkpoint before.
        let fill = |from: u8| {
            (from..from + 10).try_for_each(|key| put(&own, "apples", &[key], &long(key).repeat(10)))
        };
        fill(0).unwrap();
        for number in 0..others {
            own.checkpoint().unwrap();
            put(&own, "apples", b"number", &number.to_le_bytes()).unwrap();
        }
        if others == 1 {
            fill(10).unwrap();
        }
        let content = values(&own);
        let troubled = Trouble::Poison.at(nth);
        let ended = own.checkpoint();
        (content, troubled.asked(), ended)
    });
    let kind = ended.map_err(|error| error.kind()).err();
    let expected = (asked >= nth).then_some(ErrorKind::Poisoned);
    // After the last one that matters, it counts although the store takes nothing more.
    assert!(kind == expected || kind.is_none(), "after {others}, {nth} of {asked}: {kind:?}");
    let chains = engine.stats().checkpoints.map_chains;
    drop((engine, harness));
    let (mut harness, given) = world(&device, 1, options());
    let engine = open(&mut harness, given).unwrap();
    assert!(harness.run(move || values(&engine)) == content, "after {others}, {nth} of {asked}");
    (asked, chains)
}

#[test]
fn a_checkpoint_whose_page_table_cannot_be_written_does_not_count() {
    let chains = |others: u32| checkpoint(others, u64::MAX).1;
    let anew = (2..100).find(|others| chains(*others) > chains(1)).expect("chains do not grow for ever");
    // The first checkpoint, one that appends to its page table, and one that begins a new one.
    for others in [0, 1, anew] {
        let (asked, _) = checkpoint(others, u64::MAX);
        // The table is written near the end.
        for back in 0..asked.min(30) {
            checkpoint(others, asked - back);
        }
    }
}
