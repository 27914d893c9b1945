//! Admission: when checkpoints, eviction and cleaning do not keep up with writers, each commit waits a little
//! first, the longer the nearer a limit is, so that throughput falls gradually instead of stopping.

use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::sync::{Arc, OnceLock};
use std::cell::Cell;

use flashgrain_device::Nanos;

use crate::Error;
use crate::io_context::{Devices, now, sleep_until};
use crate::poison::Poison;

/// Pressure on each limited resource: at 0 and below commits do not wait, at 1 the limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Memory of dirty pages, which only a checkpoint makes clean.
    pub dirty: f64,
    /// Space of old versions on the device.
    pub old_versions: f64,
    /// Use of the log's ring.
    pub log: f64,
    /// Work that indexes have deferred.
    pub index_debt: f64,
    /// Of the device.
    pub space: Space,
    /// Of the device, for overflow values.
    pub space_for_overflow: Space,
    /// Not even a commit that only removes has room.
    pub no_removes: bool,
}

/// Room on the device for pages that become dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Space {
    #[default]
    Enough,
    /// Cleaning will make more room soon.
    Tight,
    /// No more room can be made.
    Full,
}

/// Reason why commits wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThrottleReason {
    /// Nothing.
    #[default]
    None,
    /// Memory is full of pages that have yet to be written.
    DirtyPages,
    /// The log is full of records that the next checkpoint makes superfluous.
    LogSpace,
    /// Segments are being made free.
    FreeSegments,
    /// Old versions that a snapshot still sees take up most of their share of the device.
    OldVersions,
    /// Indexes have put off more work than they keep up with.
    IndexDebt,
}

impl std::fmt::Display for ThrottleReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::None => "nothing slows them",
            Self::DirtyPages => "memory is full of pages that have yet to be written",
            Self::LogSpace => "the log is full of records that the next checkpoint makes superfluous",
            Self::FreeSegments => "segments are being made free",
            Self::OldVersions => {
                "old versions that a snapshot still sees take up most of their share of the device"
            }
            Self::IndexDebt => "indexes have put off more work than they keep up with",
        })
    }
}

/// Whether writers wait, why, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThrottleStats {
    pub reason: ThrottleReason,
    /// Present wait for each operation of a commit.
    pub delay: Nanos,
    /// Commits that have waited.
    pub delayed: u64,
    /// All their waits together.
    pub waited: Nanos,
    /// Commits refused as the device was full.
    pub refused: u64,
}

/// The wait where the pressure begins; doubles [`DOUBLINGS`] times up to the limit.
const DELAY_MIN_NS: f64 = 10_000.0;
const DOUBLINGS: f64 = 8.0;
const DELAY_MAX_NS: f64 = 20_000_000.0;

/// The longest wait of a commit with many operations.
const COMMIT_DELAY_MAX_NS: u64 = 200_000_000;

/// Operations between two checks of the load by a thread while no limit is near.
const LOOK_EVERY: usize = 32;

/// Longest wait between two checks for room; the first waits are shorter.
const PATIENCE: Nanos = Nanos(10_000_000);
const PATIENCE_DOUBLINGS: u32 = 5;

/// Waits for room in total, after which a commit is refused: on a full device, and on one where segments are
/// being made free, which may take long.
const PATIENCE_IF_FULL: Nanos = Nanos(200_000_000);
/// The same for commits that only remove. Flushes use the room that these need, until the next checkpoint.
const PATIENCE_OF_REMOVES: Nanos = Nanos(5_000_000_000);
const PATIENCE_IF_TIGHT: Nanos = Nanos(60_000_000_000);

/// The wait before the next check, after `times` checks.
fn patience(times: u32) -> Nanos {
    Nanos(PATIENCE.0 >> PATIENCE_DOUBLINGS.saturating_sub(times))
}

thread_local! {
    /// Operations since the thread's last check.
    static SINCE_LOOK: Cell<usize> = const { Cell::new(0) };
}

/// Computes the load if commits under way make this number of further bytes dirty.
type Gauges = Box<dyn Fn(u64) -> Load + Send + Sync>;

type LastResort = Box<dyn Fn() + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(super) struct Throttle {
    /// Whether a checkpoint waits for all commits that are under way, so that they must not wait for it.
    is_awaited: bool,
    gauges: OnceLock<(Devices, Gauges)>,
    /// Begins work that may still make room on a full device.
    last_resort: OnceLock<LastResort>,
    /// Bytes that admitted commits that have not ended may make dirty.
    charged_bytes: AtomicU64,
    /// Whether every commit checks the load.
    segments_are_few: OnceLock<Arc<AtomicBool>>,
    delay_ns: AtomicU64,
    reason: AtomicU8,
    delayed: AtomicU64,
    waited_ns: AtomicU64,
    refused: AtomicU64,
}

/// Checks for room of a commit under way on a full device, after which it goes on without.
const PAUSES_IF_FULL: u32 = 20;

/// Kinds of requests for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Removes,
    Grows,
    /// Values that are written before their commit.
    IsOverflow,
}

/// An admitted commit. The bytes that it may make dirty are charged until it is dropped.
pub(super) struct Admitted<'a> {
    throttle: &'a Throttle,
    bytes: u64,
    /// Waits for room since it was logged.
    waits: Cell<u64>,
    poison: &'a Poison,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.throttle.charged_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Admitted<'_> {
    /// Called repeatedly while a commit is applied: waits while the reserve of free segments is nearly used
    /// up, which a checkpoint may need, and some are being made free. Nothing is refused any more: on a full
    /// device it goes on after a while. No commit waits for a checkpoint that waits for it: its room is
    /// reserved.
    pub fn pause(&self) -> Result<(), Error> {
        let Some((devices, gauges)) = self.throttle.gauges.get() else { return Ok(()) };
        if self.throttle.is_awaited {
            return self.poison.check();
        }
        let (began, mut full) = (now(devices), 0);
        for times in 0.. {
            self.poison.check()?;
            let load = gauges(self.throttle.charged_bytes.load(Ordering::Relaxed));
            full += u32::from(load.space != Space::Tight);
            let is_too_long = full > PAUSES_IF_FULL || now(devices).since(began) > PATIENCE_IF_TIGHT;
            if !load.no_removes || is_too_long {
                break;
            }
            sleep_until(devices, now(devices) + patience(times))?;
        }
        Ok(())
    }

    /// Waits a little before the index tries again: the commit is logged, so it must be applied.
    ///
    /// # Errors
    /// [`Error::Full`] after many waits if a checkpoint, which may be needed to make room, waits for this
    /// commit.
    pub fn wait(&self) -> Result<(), Error> {
        self.poison.check()?;
        self.waits.set(self.waits.get() + 1);
        if self.throttle.is_awaited && self.waits.get() > PATIENCE_IF_TIGHT.0 / PATIENCE.0 {
            let why = "only a checkpoint makes room for a commit under way, and without a log none is made before it ends";
            return Err(Error::Full { why: why.into() });
        }
        match self.throttle.gauges.get() {
            Some((devices, _)) => sleep_until(devices, now(devices) + PATIENCE),
            None => Ok(()),
        }
    }
}

/// The wait for an operation under such a load, and its reason; `for_room`: the operation waits for room.
fn delay(load: &Load, for_room: bool) -> (u64, ThrottleReason) {
    let mut worst = (load.dirty, ThrottleReason::DirtyPages);
    for other in [
        (load.log, ThrottleReason::LogSpace),
        (load.old_versions, ThrottleReason::OldVersions),
        (load.index_debt, ThrottleReason::IndexDebt),
    ] {
        if other.0 > worst.0 {
            worst = other;
        }
    }
    let (pressure, reason) = worst;
    if for_room {
        return (PATIENCE.0, ThrottleReason::FreeSegments);
    }
    if pressure <= 0.0 {
        return (0, ThrottleReason::None);
    }
    ((DELAY_MIN_NS * (DOUBLINGS * pressure).exp2()).min(DELAY_MAX_NS) as u64, reason)
}

impl Throttle {
    /// `has_log`: whether checkpoints are made while commits are under way.
    pub fn new(has_log: bool) -> Self {
        Self { is_awaited: !has_log, ..Self::default() }
    }

    /// Sets the source of the load, and whether free segments are so scarce that every commit must check it.
    /// Only the first call has an effect.
    pub fn watch(&self, devices: Devices, segments_are_few: Arc<AtomicBool>, gauges: Gauges) {
        let _first_stays = self.gauges.set((devices, gauges));
        let _first_stays = self.segments_are_few.set(segments_are_few);
        // The first commit checks: the device may have been full for long. The thread's operations in another
        // store do not count.
        SINCE_LOOK.set(LOOK_EVERY);
    }

    /// `last_resort` is called before a commit is refused as the device is full. It does not wait; while it
    /// is at work, the load says that there will be room. Only the first call of this has an effect.
    pub fn before_refusing(&self, last_resort: LastResort) {
        let _first_stays = self.last_resort.set(last_resort);
    }

    /// Admits a commit of this number of `operations`, which make about `bytes` of pages dirty; `grows`: some
    /// of them put something. It waits until there is room for the commit.
    ///
    /// # Errors
    /// [`Error::Full`] if no room can be made; [`Error::Poisoned`].
    #[inline]
    pub fn admit<'a>(
        &'a self,
        operations: usize,
        bytes: u64,
        grows: bool,
        poison: &'a Poison,
    ) -> Result<Admitted<'a>, Error> {
        self.charged_bytes.fetch_add(bytes, Ordering::Relaxed);
        let admitted = Admitted { throttle: self, bytes, waits: Cell::new(0), poison };
        let since = SINCE_LOOK.get() + operations;
        let are_few = || self.segments_are_few.get().is_some_and(|are_few| are_few.load(Ordering::Relaxed));
        let looks = since > LOOK_EVERY || are_few();
        SINCE_LOOK.set(if looks { 0 } else { since });
        if looks || self.delay_ns.load(Ordering::Relaxed) > 0 {
            let what = if grows { What::Grows } else { What::Removes };
            self.look(operations, what, poison)?;
        }
        Ok(admitted)
    }

    /// Waits as long as an index asks for, whom `wait` asks with the time.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[inline]
    pub fn pace(&self, wait: impl FnOnce(&dyn Fn() -> Nanos) -> Nanos) -> Result<(), Error> {
        let Some((devices, _)) = self.gauges.get() else { return Ok(()) };
        let wait = wait(&|| now(devices));
        if wait == Nanos(0) {
            return Ok(());
        }
        self.reason.store(ThrottleReason::IndexDebt as u8, Ordering::Relaxed);
        self.delayed.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(wait.0, Ordering::Relaxed);
        sleep_until(devices, now(devices) + wait)
    }

    /// Admits overflow values, which take room before their commit does.
    ///
    /// # Errors
    /// As [`Throttle::admit`].
    pub fn admit_overflow(&self, poison: &Poison) -> Result<(), Error> {
        self.look(1, What::IsOverflow, poison)
    }

    /// Whether [`Throttle::admit_overflow`] need not wait.
    pub fn has_room_for_overflow(&self) -> bool {
        let Some((_, gauges)) = self.gauges.get() else { return true };
        gauges(self.charged_bytes.load(Ordering::Relaxed)).space_for_overflow == Space::Enough
    }

    #[cold]
    fn look(&self, operations: usize, what: What, poison: &Poison) -> Result<(), Error> {
        let Some((devices, gauges)) = self.gauges.get() else { return Ok(()) };
        let began = now(devices);
        let (mut times, mut full_since, mut last_resort) = (0, None, self.last_resort.get());
        let waited = loop {
            let load = gauges(self.charged_bytes.load(Ordering::Relaxed));
            let (space, waits_for_room) = match what {
                What::Removes => (load.space, load.space != Space::Enough && load.no_removes),
                What::Grows => (load.space, load.space != Space::Enough),
                What::IsOverflow => (load.space_for_overflow, load.space_for_overflow != Space::Enough),
            };
            let (delay_ns, reason) = delay(&load, waits_for_room);
            self.delay_ns.store(delay_ns, Ordering::Relaxed);
            self.reason.store(reason as u8, Ordering::Relaxed);
            if delay_ns == 0 {
                break times > 0;
            }
            poison.check()?;
            times += 1;
            if waits_for_room
                && space == Space::Full
                && let Some(begin) = last_resort.take()
            {
                begin();
            }
            // Room freed by a recent remove or checkpoint may take a moment to show.
            full_since = (space == Space::Full).then(|| full_since.unwrap_or(now(devices)));
            let since_full = full_since.map_or(Nanos(0), |since| now(devices).since(since));
            let patience_if_full = match what {
                What::Removes => PATIENCE_OF_REMOVES,
                What::Grows | What::IsOverflow => PATIENCE_IF_FULL,
            };
            let is_too_long = since_full > patience_if_full || now(devices).since(began) > PATIENCE_IF_TIGHT;
            if waits_for_room && is_too_long {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Full {
                    why:
                        "live data and current writes fill the device; remove something, or give it more room"
                            .into(),
                });
            }
            let wait_ns = if waits_for_room {
                patience(times).0
            } else {
                delay_ns.saturating_mul(operations as u64).min(COMMIT_DELAY_MAX_NS)
            };
            sleep_until(devices, now(devices) + Nanos(wait_ns))?;
            if !waits_for_room {
                break true;
            }
        };
        if waited {
            self.delayed.fetch_add(1, Ordering::Relaxed);
            self.waited_ns.fetch_add(now(devices).since(began).0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Present state and statistics.
    pub fn stats(&self) -> ThrottleStats {
        let reason = match self.reason.load(Ordering::Relaxed) {
            1 => ThrottleReason::DirtyPages,
            2 => ThrottleReason::LogSpace,
            3 => ThrottleReason::FreeSegments,
            4 => ThrottleReason::OldVersions,
            5 => ThrottleReason::IndexDebt,
            _ => ThrottleReason::None,
        };
        ThrottleStats {
            reason,
            delay: Nanos(self.delay_ns.load(Ordering::Relaxed)),
            delayed: self.delayed.load(Ordering::Relaxed),
            waited: Nanos(self.waited_ns.load(Ordering::Relaxed)),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::ErrorKind;
    use crate::io_context::broken::{Broken, Part};
    use crate::log::tests::device;
    use crate::worker::Harness;

    fn under(load: Load) -> (Arc<Throttle>, Arc<Mutex<Load>>, Devices) {
        let devices = Devices::new(device(1) as _, None);
        let (throttle, shared) = (Arc::new(Throttle::default()), Arc::new(Mutex::new(load)));
        let own = Arc::clone(&shared);
        throttle.watch(devices.clone(), Arc::default(), Box::new(move |_| *own.lock().unwrap()));
        (throttle, shared, devices)
    }

    #[test]
    fn waits_grow_with_the_pressure_and_have_a_reason() {
        let at = |dirty: f64| delay(&Load { dirty, ..Load::default() }, false).0;
        assert_eq!(at(0.0), 0);
        assert!(at(0.01) >= 10_000 && at(0.5) > 4 * at(0.1) && at(1.0) > 2_000_000 && at(9.0) == 20_000_000);
        let log = Load { log: 0.5, dirty: 0.2, ..Load::default() };
        assert_eq!(delay(&log, false).1, ThrottleReason::LogSpace);
        let old = Load { old_versions: 0.6, ..log };
        assert_eq!(delay(&old, false).1, ThrottleReason::OldVersions);
        let debt = Load { index_debt: 0.7, ..old };
        assert_eq!(delay(&debt, false).1, ThrottleReason::IndexDebt);
        assert_eq!(delay(&Load { space: Space::Tight, ..log }, true).1, ThrottleReason::FreeSegments);
    }

    #[test]
    fn commits_are_slowed_under_pressure_and_not_without() {
        let (throttle, load, devices) = under(Load::default());
        let mut harness = Harness::new(&devices, 1);
        let (own, clock) = (Arc::clone(&throttle), devices.clone());
        let time = move |commits: u32| {
            let began = now(&clock);
            (0..commits).for_each(|_| drop(own.admit(1, 0, true, &Poison::default()).unwrap()));
            now(&clock).since(began).0
        };
        let again = time.clone();
        assert_eq!(harness.run(move || again(1000)), 0);
        load.lock().unwrap().dirty = 0.5;
        let slowed_ns = harness.run(move || time(1000));
        let expected_ns = delay(&load.lock().unwrap(), false).0 * (1000 - LOOK_EVERY as u64 - 1);
        assert!(slowed_ns >= expected_ns, "{slowed_ns} {expected_ns}");
        let stats = throttle.stats();
        assert!(
            stats.reason == ThrottleReason::DirtyPages && stats.delayed > 900 && stats.waited.0 <= slowed_ns
        );
    }

    #[test]
    fn a_full_device_refuses_what_grows_and_lets_removes_through() {
        let (throttle, load, devices) = under(Load { space: Space::Full, ..Load::default() });
        let mut harness = Harness::new(&devices, 1);
        let (put, remove) = (Arc::clone(&throttle), Arc::clone(&throttle));
        let refused = harness.run(move || put.admit(LOOK_EVERY + 1, 77, true, &Poison::default()).map(drop));
        assert!(matches!(refused, Err(Error::Full { .. })));
        assert_eq!(throttle.charged_bytes.load(Ordering::Relaxed), 0, "it makes nothing dirty");
        assert!(harness.run(move || remove.admit(1, 0, false, &Poison::default()).is_ok()));
        *load.lock().unwrap() = Load::default();
        let put = Arc::clone(&throttle);
        assert!(harness.run(move || put.admit(1, 0, true, &Poison::default()).is_ok()));
        assert_eq!(throttle.stats().refused, 1);
    }

    /// A thread waits on a queue of its own, on which time may fail to pass.
    #[test]
    fn who_cannot_wait_is_told() {
        for (no_removes, dirty) in [(true, 0.0), (false, 0.5)] {
            let broken = Broken::new(device(1) as _);
            let devices = Devices::new(Arc::clone(&broken) as _, None);
            let throttle = Throttle::default();
            throttle.watch(
                devices,
                Arc::default(),
                Box::new(move |_| Load { no_removes, dirty, ..Load::default() }),
            );
            let poison = Poison::default();
            let wait = || throttle.admit(LOOK_EVERY + 1, 0, true, &poison)?.pause();
            wait().unwrap();
            broken.fail(Part::Wait, 1);
            assert_eq!(wait().unwrap_err().kind(), ErrorKind::Io);
            wait().unwrap();
        }
    }

    /// A few commits that do not look would use up the room that a checkpoint needs in a store of small
    /// segments.
    #[test]
    fn every_commit_looks_while_segments_are_few() {
        let (throttle, are_few) = (Throttle::default(), Arc::new(AtomicBool::new(false)));
        let devices = Devices::new(device(1) as _, None);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        let gauges = move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Load::default()
        };
        throttle.watch(devices, Arc::clone(&are_few), Box::new(gauges));
        let poison = Poison::default();
        let looks_of = |commits: usize| {
            let before = looks.load(Ordering::Relaxed);
            (0..commits).for_each(|_| drop(throttle.admit(1, 0, true, &poison).unwrap()));
            looks.load(Ordering::Relaxed) - before
        };
        assert!(looks_of(LOOK_EVERY * 10) <= 11);
        are_few.store(true, Ordering::Relaxed);
        assert_eq!(looks_of(50), 50);
        are_few.store(false, Ordering::Relaxed);
        assert!(looks_of(LOOK_EVERY * 10) <= 11);
    }

    /// A thread goes from store to store: the same history comes again only if each begins alike.
    #[test]
    fn the_first_commit_of_each_store_looks() {
        let poison = Poison::default();
        for _ in 0..3 {
            let (throttle, looks) = (Throttle::default(), Arc::new(AtomicU64::new(0)));
            let counted = Arc::clone(&looks);
            let gauges = move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Load::default()
            };
            throttle.watch(Devices::new(device(1) as _, None), Arc::default(), Box::new(gauges));
            let looks_after_a_commit = || {
                drop(throttle.admit(1, 0, true, &poison).unwrap());
                looks.load(Ordering::Relaxed)
            };
            assert_eq!([looks_after_a_commit(), looks_after_a_commit()], [1, 1]);
        }
    }

    #[test]
    fn nobody_waits_for_room_that_will_not_come() {
        let (throttle, _, _) = under(Load::default());
        let poison = Poison::default();
        let admitted = throttle.admit(1, 0, true, &poison).unwrap();
        admitted.wait().unwrap();
        poison.note("the drive is gone".into());
        assert_eq!(admitted.wait().unwrap_err().kind(), ErrorKind::Poisoned);
    }
}
