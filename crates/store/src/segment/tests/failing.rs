//! Waiters for segments are told when none will become free.

use super::model::{Durable, Model, small};
use super::*;
use crate::ErrorKind;
#[cfg(feature = "testing")]
use crate::io_context::Block;
use crate::io_context::broken::{Broken, Part};

#[test]
fn who_waits_for_a_buffer_is_told_that_none_will_be_free() {
    let mut world = World::new(1);
    let segments = world.segments(&layout(Placement::OutOfPlace));
    segments.poison.note("the drive is gone".into());
    let refused = world.harness.run(move || [segments.gatherer.wait_for_buffer(), segments.upkeep.pace()]);
    assert!(refused.into_iter().all(|refused| refused.unwrap_err().kind() == ErrorKind::Poisoned));
}

/// A thread that has units written waits on a queue of its own for the threads that fill them, and time may
/// fail to pass on it.
#[test]
fn units_may_be_written_again_when_their_filling_could_not_be_waited_for() {
    let mut world = World::new(1);
    let broken = Broken::new(Arc::clone(world.devices.device(Role::Data)));
    world.devices = Devices::new(Arc::clone(&broken) as _, None);
    world.harness = Harness::new(&world.devices, 1);
    let model = Model::new(&world, &small(&world), Durable::default());
    model.dirty_bytes.store(1, std::sync::atomic::Ordering::Relaxed);
    model.change(1, 0, 3000).unwrap();
    broken.fail(Part::Wait, 1);
    assert_eq!(model.segments.gatherer.write_all().unwrap_err().kind(), ErrorKind::Io);
    let own = Arc::clone(&model);
    world.harness.run(move || {
        own.segments.gatherer.write_all().unwrap();
        own.verify_all().unwrap();
    });
}

/// Half of the pages of a segment are in units that cannot be read as a whole; while they are moved one by
/// one, all writing ends.
#[cfg(feature = "testing")]
#[test]
fn a_segment_that_can_be_cleaned_no_further_stays() {
    use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Repeat};

    use crate::testing::Trouble;

    let mut moved = Vec::new();
    for nth in [u64::MAX, 2, 4] {
        let mut world = World::new(1);
        let model = Model::new(&world, &small(&world), Durable::default());
        let own = Arc::clone(&model);
        world.harness.run(move || {
            // A third of them stay as they are.
            let id = |step: u64| if step.is_multiple_of(3) { 1000 + step } else { step % 50 };
            (1..400).try_for_each(|step| own.change(id(step), 0, 3000)).unwrap();
            own.segments.gatherer.write_all().unwrap();
            own.checkpoint().unwrap();
        });
        world.harness.run_until_idle();
        let units = (64 << 10) / (16 << 10);
        let unit = Fault::new(FaultKind::ReadError { done_bytes: 0 }).on(Operation::Read);
        world.sim.as_ref().unwrap().inject(unit.repeat(Repeat::Times(units)));
        let own = Arc::clone(&model);
        moved.push(world.harness.run(move || {
            let victim = own.oldest_segment();
            let victim = own.segments.cleaner.survey().of(vec![victim], &*own).pop().unwrap();
            let (before, mut block) = (own.segments.written().moved_images, Block::new(64 << 10).unwrap());
            let troubled = Trouble::Poison.at(nth);
            let ended = own.segments.cleaner.clean_segment(victim, &*own, &mut block);
            drop(troubled);
            assert_eq!(ended.is_err(), nth < u64::MAX, "{ended:?}");
            own.verify_all().unwrap();
            own.segments.written().moved_images - before
        }));
    }
    let [all, ..] = moved[..] else { unreachable!() };
    assert!(moved[1..].iter().all(|some| (1..all).contains(some)), "{moved:?}");
}
