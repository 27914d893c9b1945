use flashgrain_device::{Channel, ChannelOptions, Device, Identity};
use proptest::prelude::*;

use super::*;
use crate::config::{Precondition, SustainLimits};
use crate::target::Backend;

/// A device that can be described but not used.
#[derive(Debug)]
struct Described {
    geometry: Geometry,
    identity: Identity,
}

impl Described {
    fn new(capacity_bytes: u64, align_bytes: u32, writable: bool) -> Self {
        let geometry = Geometry {
            capacity_bytes,
            offset_align_bytes: align_bytes,
            memory_align_bytes: 512,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable,
            members: 1,
            stripe_unit_bytes: None,
        };
        Self { geometry, identity: Identity::default() }
    }
}

impl Device for Described {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, _: &ChannelOptions) -> Result<Box<dyn Channel>, flashgrain_device::Error> {
        Err(flashgrain_device::Error::Request("a plan touches nothing".into()))
    }
}

/// All that is planned for one experiment.
fn allotted(
    plan: &Plan,
    target: &Target<'_>,
    config: &Config,
    planned: &PlannedExperiment,
) -> Vec<PlannedTrial> {
    let limits = plan.limits(planned.stage, config, planned.name, None);
    allot(plan.trials(target, config, planned.name), limits).trials
}

#[test]
fn the_default_plan_keeps_nearly_all_of_the_grid() {
    let device = Described::new(1 << 30, 512, true);
    let mut target = Target::new(&device);
    target
        .backends
        .push(Backend { name: "sync".into(), device: Ok(Box::new(Described::new(1 << 30, 512, true))) });
    let plan = Plan::new(&target, &Config::default()).unwrap();
    let trials = |name| plan.experiments.iter().find(|planned| planned.name == name).unwrap().trials;
    assert!(trials(ExperimentName::Order) >= 105, "{plan:?}");
    assert_eq!(trials(ExperimentName::Depth), 76);
    assert_eq!(trials(ExperimentName::Mix), 42);
    assert_eq!(trials(ExperimentName::RequestSize), 4);
    assert_eq!(trials(ExperimentName::Location), 19);
    assert!(plan.seconds() <= 60.001 && plan.write_bytes() <= 4 << 30);
    let text = plan.to_string();
    assert!(text.contains("order") && text.contains("total"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_full_size_run_moves_the_papers_bytes() {
    let device = Described::new(60_000_000_000, 512, true);
    let target = Target::new(&device);
    let config = Config {
        budget_s: 40_000.0,
        write_bytes: 4_000_000_000_000,
        bytes_per_stream: Some(1_000_000_000),
        request_size_region_bytes: Some(1 << 30),
        location_groups: 512,
        ..Config::default()
    };
    let plan = Plan::new(&target, &config).unwrap();
    let order = plan.experiments.iter().find(|planned| planned.name == ExperimentName::Order).unwrap();
    let trials = allotted(&plan, &target, &config, order);
    assert_eq!(trials.len(), 112, "{:?}", plan.left_out);
    for planned in &trials {
        let streams = planned.trial.workload().unwrap().concurrency;
        assert_eq!(planned.bytes, Some((streams * 1e9) as u64));
    }
    // A file of 1 GB for each size, in two parts that are repeats of each other.
    let regions = regions(&plan.site, 1);
    let of_size = regions.iter().filter(|one| one.write_request_bytes == regions[0].write_request_bytes);
    assert_eq!(of_size.map(|one| one.region.length_bytes).collect::<Vec<_>>(), [1 << 29; 2]);
    assert!(!plan.left_out.iter().any(|text| text.starts_with("location")), "{:?}", plan.left_out);
}

#[test]
fn too_little_space_is_refused_with_what_would_do() {
    let device = Described::new(1 << 20, 512, true);
    let error = Plan::new(&Target::new(&device), &Config::default()).unwrap_err().to_string();
    assert!(error.contains("1 MiB") && error.contains("at least 4 MiB"), "{error}");
}

fn any_config() -> impl Strategy<Value = Config> {
    let names = proptest::sample::subsequence(ExperimentName::ALL.to_vec(), 1..=ExperimentName::ALL.len());
    let precondition =
        prop_oneof![Just(Precondition::None), Just(Precondition::Sequential), Just(Precondition::Random)];
    (
        1.0..2000.0_f64,
        0..1_u64 << 36,
        names,
        precondition,
        proptest::option::of(1_u64..1 << 31),
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(|(budget_s, write_bytes, experiments, precondition, full, seed, verify)| Config {
            budget_s,
            write_bytes,
            experiments,
            precondition,
            bytes_per_stream: full,
            request_size_region_bytes: full,
            sustain: SustainLimits::default(),
            seed,
            verify,
            ..Config::default()
        })
}

proptest! {
    /// Whatever is asked, the plan's parts add up to no more than its limits, and one repeat of all trials
    /// fits into their part.
    #[test]
    fn no_plan_exceeds_its_budgets(
        config in any_config(),
        capacity_bytes in 1_u64 << 22..1 << 40,
        align in prop_oneof![Just(512_u32), Just(4096), Just(16384)],
        writable in any::<bool>(),
    ) {
        let device = Described::new(capacity_bytes, align, writable);
        let target = Target::new(&device);
        let Ok(plan) = Plan::new(&target, &config) else { return Ok(()) };
        let sustain = plan.sustain.unwrap_or_default();
        prop_assert!(plan.seconds() - sustain.seconds <= config.budget_s * 1.000_001);
        prop_assert!(plan.write_bytes() - sustain.write_bytes <= config.write_bytes);
        prop_assert!(writable || plan.write_bytes() == 0);
        prop_assert!(plan.site.bytes() <= capacity_bytes);
        for planned in &plan.experiments {
            let trials = allotted(&plan, &target, &config, planned);
            prop_assert_eq!(trials.len(), planned.trials);
            let written: u64 = trials.iter().map(|one| one.write_bytes).sum();
            prop_assert!(written <= planned.stage.write_bytes, "{:?}", planned);
            for one in &trials {
                let in_flight = one.trial.in_flight_bytes() as f64 * one.trial.write_share();
                prop_assert!(one.write_bytes as f64 >= in_flight.floor());
                prop_assert!(one.slice_s > 0.0 && one.expected_s <= planned.stage.seconds * 1.000_001);
            }
        }
    }
}

#[test]
fn only_the_part_that_was_asked_for_is_used() {
    let device = Described::new(1 << 40, 512, true);
    let target = Target::new(&device);
    for write_bytes in [0, 4 << 30] {
        let config = Config { region_bytes: Some(64 << 20), write_bytes, ..Config::default() };
        let plan = Plan::new(&target, &config).unwrap();
        assert_eq!(plan.site.bytes(), 64 << 20, "writing {write_bytes}");
    }
    let whole = Config { write_bytes: 0, ..Config::default() };
    assert_eq!(Plan::new(&target, &whole).unwrap().site.bytes(), 1 << 40);
}

#[test]
fn a_device_that_holds_data_is_used_whole_and_mostly_not_laid_out() {
    let device = Described::new(1 << 40, 512, true);
    let target = Target::new(&device);
    for write_bytes in [16 << 20, 400 << 20, 4 << 30] {
        let config = Config { holds_data: true, write_bytes, ..Config::default() };
        let plan = Plan::new(&target, &config).unwrap();
        assert_eq!(plan.site.bytes(), 1 << 40);
        let special = plan.site.location.length_bytes + plan.site.request_size.length_bytes;
        assert!(plan.layout.write_bytes - special <= (128 << 20).min(write_bytes / 16));
        assert!(plan.writes() && plan.write_bytes() <= write_bytes, "{plan}");
    }
    let config = Config { holds_data: true, precondition: Precondition::Random, ..Config::default() };
    let plan = Plan::new(&target, &config).unwrap();
    assert!(plan.site.bytes() < config.write_bytes, "what is preconditioned has to be written");
}
