//! MQSim's files: what is read, what is refused, and that its numbers come out.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_profile::load::{self, Load, Pattern, Region, Stop, Sync};
use flashgrain_ssdsim::config::{
    CollectPolicy, Interleave, MappingCache, MediumConfig, NandConfig, PlacementRule, StartState,
};
use flashgrain_ssdsim::mqsim::{
    Addresses, Arrivals, FlowKind, Scenario, Sizes, export_drive, import_drive, import_workload, run,
};
use flashgrain_ssdsim::{Error, SimConfig, SimDevice, random_drive};

use crate::common::random_reads;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mqsim")
}

fn file(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// The example drive with some text replaced.
fn drive(replacements: &[(&str, &str)]) -> Result<SimConfig, Error> {
    let mut text = file("ssdconfig.xml");
    for (from, to) in replacements {
        assert!(text.contains(from), "{from} is not in the example");
        text = text.replace(from, to);
    }
    import_drive(&text, "ssdconfig.xml").map(|imported| imported.config)
}

fn nand(config: &SimConfig) -> &NandConfig {
    match &config.medium {
        MediumConfig::Nand(nand) => nand,
        other => panic!("{other:?}"),
    }
}

fn scenarios() -> Vec<Scenario> {
    import_workload(&file("workload.xml"), "workload.xml", &folder()).unwrap()
}

/// MQSim's own throughput of 4 KiB random reads on the example, by depth (measured with its release of 2022,
/// in chip-busy mode, which is the only one it has, cache off, over 85 % of the drive).
const WITH_AN_IDEAL_MAP: [(u32, f64); 4] = [(1, 11_248.0), (4, 42_267.0), (16, 133_093.0), (64, 226_423.0)];
const WITH_A_CACHE_OF_2_MIB: [(u32, f64); 4] = [(1, 6_034.0), (4, 22_763.0), (16, 73_040.0), (64, 133_035.0)];

/// The same with an ideal map and one read at a time, by its size.
const ONE_AT_A_TIME: [(u64, f64); 3] = [(8 << 10, 9_762.0), (64 << 10, 8_340.0), (256 << 10, 3_944.0)];

/// Asserts that the drive reaches these reads per second, by depth.
fn reads_like_mqsim(config: &SimConfig, expected: &[(u32, f64)], tolerance: f64) {
    let expected: Vec<_> = expected.iter().map(|(depth, mqsim)| (4096, *depth, *mqsim)).collect();
    sizes_and_depths_like_mqsim(config, &expected, tolerance);
}

/// The same by size and depth.
fn sizes_and_depths_like_mqsim(config: &SimConfig, expected: &[(u64, u32, f64)], tolerance: f64) {
    let device = SimDevice::new(config, "sim:ssdconfig.xml", 1).unwrap();
    for (bytes, depth, mqsim) in expected {
        let load = Load {
            workload: random_reads(*bytes, *depth),
            pattern: Pattern::Mixed { align_bytes: None },
            region: Region {
                offset_bytes: 0,
                length_bytes: device.geometry().capacity_bytes / 8192 * 85 / 100 * 8192,
            },
            workers: 1,
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.1,
            stop: Stop { after_requests: Some(40_000 * 4096 / bytes), ..Stop::default() },
            // Other places at every depth: those of the last are in the mapping cache.
            seed: u64::from(*depth),
        };
        let reached = load::run(&device, &load, &AtomicBool::new(false)).unwrap().iops();
        println!(
            "{:>3} KiB, depth {depth:>2}: MQSim {mqsim:>7.0}, here {reached:>7.0} ({:+.1} %)",
            bytes >> 10,
            (reached / mqsim - 1.0) * 100.0
        );
        assert!((reached / mqsim - 1.0).abs() < tolerance, "{bytes} x {depth}: {reached} and MQSim {mqsim}");
    }
}

#[test]
fn reads_with_an_ideal_map_are_as_fast_as_in_mqsim() {
    let config = drive(&[("<Ideal_Mapping_Table>false", "<Ideal_Mapping_Table>true")]).unwrap();
    reads_like_mqsim(&config, &WITH_AN_IDEAL_MAP, 0.03);
}

#[test]
fn larger_reads_take_as_long_as_in_mqsim() {
    let config = drive(&[("<Ideal_Mapping_Table>false", "<Ideal_Mapping_Table>true")]).unwrap();
    let expected = ONE_AT_A_TIME.map(|(bytes, mqsim)| (bytes, 1, mqsim));
    sizes_and_depths_like_mqsim(&config, &expected, 0.01);
}

#[test]
fn reads_with_a_mapping_cache_are_as_fast_as_in_mqsim() {
    reads_like_mqsim(&drive(&[]).unwrap(), &WITH_A_CACHE_OF_2_MIB, 0.03);
}

/// Requests per second of half a second of random 4 KiB requests on a fresh drive, 32 in flight, aligned to
/// pages as in MQSim's own workloads, and the write amplification.
fn mix_on_a_fresh_drive(config: &SimConfig, read_percent: u32) -> (f64, f64) {
    let text = file("workload.xml")
        .replace("<Read_Percentage>100", &format!("<Read_Percentage>{read_percent}"))
        .replace("<Average_No_of_Reqs_in_Queue>16", "<Average_No_of_Reqs_in_Queue>32")
        .replace("<Stop_Time>50000000", "<Stop_Time>500000000");
    let mut scenario = import_workload(&text, "workload.xml", &folder()).unwrap().remove(0);
    scenario.flows.truncate(1);
    let fresh = SimConfig { state: StartState::Fresh, ..scenario.prepare(config) };
    let device = SimDevice::new(&fresh, "sim:ssdconfig.xml", 1).unwrap();
    let result = run(&device, &scenario, &AtomicBool::new(false)).unwrap();
    let counters = device.statistics().counters;
    let amplification = counters.programmed_bytes as f64 / result.flows[0].bytes_written as f64;
    (result.flows[0].requests() as f64 / result.elapsed.seconds(), amplification)
}

/// In MQSim a chip does one thing at a time, hardly ever on two planes, every write of half a page programs
/// one, and hardly any entry of the mapping is in memory.
#[test]
fn writes_are_bounded_by_chips_that_program_a_page_at_a_time() {
    let config = drive(&[]).unwrap();
    let (chips, page_s, read_s, mapping_s) = (32.0, 750.3e-6 + 12.3e-6, 75.3e-6 + 12.3e-6, 75.3e-6 + 1.5e-6);
    for read_percent in [0, 30, 50] {
        let (reached, amplification) = mix_on_a_fresh_drive(&config, read_percent);
        let reads = f64::from(read_percent) / 100.0;
        let bound = chips / (reads * read_s + (1.0 - reads) * page_s + mapping_s);
        println!(
            "{read_percent} % reads: {reached:.0} a second of {bound:.0}, amplification {amplification:.2}"
        );
        assert!((0.9..1.02).contains(&(reached / bound)), "{read_percent} % reads: {reached} and {bound}");
        assert!((1.95..2.02).contains(&amplification), "{amplification}");
    }
}

#[test]
fn every_supported_field_lands_in_the_drive() {
    let config = drive(&[]).unwrap();
    assert_eq!(config.capacity_bytes, (512_u64 << 30) / 8192 * 93 / 100 * 8192);
    let host = &config.host;
    assert_eq!((host.queue_depth, host.fetch_ns, host.completion_ns), (512, 39, 11));
    assert!(host.link_bytes_per_s.abs_diff(4_000_000_000 * 128 / 156) < 2);
    let array = nand(&config);
    assert_eq!(
        (array.channels, array.chips_per_channel, array.dies_per_chip, array.planes_per_die),
        (8, 4, 2, 2)
    );
    assert_eq!((array.pages_per_block, array.page_bytes), (256, 8192));
    assert_eq!(
        (array.read_us.as_slice(), array.program_us.as_slice()),
        (&[75.0, 75.0][..], &[750.0, 750.0][..])
    );
    assert_eq!((array.erase_us, array.suspend_us), (3800.0, 700.0));
    assert_eq!((array.suspend_program, array.suspend_erase), (false, true));
    assert_eq!((array.interleave, array.channel_command_ns), (Interleave::ChipBusy, 320));
    assert!(
        (array.channel_mega_transfers_per_s - 1000.0 / 3.0).abs() < 1e-9,
        "a cycle of 6 ns moves two bytes"
    );
    assert_eq!(array.mapping.cache, MappingCache::EntriesBytes(2 << 20));
    assert_eq!((array.mapping.unit_bytes, array.mapping.entry_bytes), (8192, 9));
    assert_eq!(array.write_cache.bytes, 128 * 8192, "a page of each plane");
    assert_eq!((array.layout.placement, array.multi_plane), (PlacementRule::ByAddress, true));
    assert_eq!(array.collect.policy, CollectPolicy::Greedy);
    assert_eq!((array.collect.start_below_free_blocks, array.collect.wear_gap), (102, 100));
    assert_eq!(config.state, StartState::Fresh);
}

#[test]
fn fields_change_what_they_say() {
    let array = |from: &str, to: &str| nand(&drive(&[(from, to)]).unwrap()).clone();
    let read_us = |technology: &str| array("<Flash_Technology>MLC", technology).read_us.len();
    assert_eq!((read_us("<Flash_Technology>SLC"), read_us("<Flash_Technology>TLC")), (1, 3));
    assert_eq!(
        array("<CMT_Capacity>2097152", "<CMT_Capacity>4096").mapping.cache,
        MappingCache::EntriesBytes(4096)
    );
    assert!(array(">ERASE<", ">program_erase<").suspend_program, "words in any case");
    assert_eq!(array(">RGA<", ">FIFO<").collect.policy, CollectPolicy::Fifo);
    assert_eq!(
        array("<Flash_Channel_Width>1", "<Flash_Channel_Width>2").channel_mega_transfers_per_s.round(),
        667.0
    );
    assert_eq!(
        array("<Static_Wearleveling_Enabled>true", "<Static_Wearleveling_Enabled>false").collect.wear_gap,
        0
    );
    let filled = drive(&[("<Enabled_Preconditioning>false", "<Enabled_Preconditioning>true")]).unwrap();
    assert_eq!(filled.state, StartState::Filled);
    let sata = drive(&[(">NVME<", ">SATA<"), ("<IO_Queue_Depth>65535", "<IO_Queue_Depth>32")]).unwrap();
    assert_eq!((sata.host.queue_depth, sata.host.fetch_ns, sata.host.completion_ns), (32, 400_039, 400_011));
}

#[test]
fn spellings_of_all_versions_are_read_and_others_are_refused_by_name() {
    for (from, to) in [
        ("Data_Cache_DRAM_Data_Busrt_Size", "Data_Cache_DRAM_Data_Burst_Size"),
        ("Preferred_suspend_erase_time_for_read", "Prefered_suspend_erase_time_for_read"),
        ("GC_Exec_Threshold", "GC_Exect_Threshold"),
    ] {
        drive(&[(from, to)]).unwrap_or_else(|error| panic!("{to}: {error}"));
    }
    for (from, to, known) in [
        ("Flash_Channel_Count", "Flash_Chanel_Count", "Flash_Channel_Count"),
        ("Page_Metadat_Capacity", "Page_Metadata_Capacity", "Page_Metadat_Capacity"),
        ("PCIe_Lane_Count", "PCIe_Lanes", "PCIe_Lane_Count"),
    ] {
        let refused = drive(&[(from, to)]).unwrap_err().to_string();
        assert!(
            refused.contains("ssdconfig.xml: line ") && refused.contains(&format!("unknown field {to}")),
            "{refused}"
        );
        assert!(refused.contains(known), "{refused}");
    }
}

#[test]
fn values_that_make_no_drive_are_refused_with_field_value_and_range() {
    for (from, to, field, allowed) in [
        (
            "<Flash_Channel_Count>8",
            "<Flash_Channel_Count>0",
            "Device_Parameter_Set.Flash_Channel_Count is 0",
            "1 to",
        ),
        ("<Flash_Channel_Count>8", "<Flash_Channel_Count>many", "Flash_Channel_Count is many", "1 to"),
        ("<Flash_Technology>MLC", "<Flash_Technology>PLC", "Flash_Technology is PLC", "SLC, MLC, TLC"),
        (
            "<Page_Read_Latency_LSB>75000",
            "<Page_Read_Latency_LSB>nan",
            "Page_Read_Latency_LSB is nan",
            "1 to",
        ),
        (
            "<Page_Capacity>8192",
            "<Page_Capacity>8000",
            "Flash_Parameter_Set.Page_Capacity is 8000",
            "power of two",
        ),
        ("<Address_Mapping>PAGE_LEVEL", "<Address_Mapping>HYBRID", "Address_Mapping is HYBRID", "PAGE_LEVEL"),
        ("<Overprovisioning_Ratio>0.07", "<Overprovisioning_Ratio>0.0", "over_provisioning is", "at least"),
        (
            "<Data_Cache_Capacity>268435456",
            "<Data_Cache_Capacity>-1",
            "Device_Parameter_Set.Data_Cache_Capacity is -1",
            "0 to",
        ),
    ] {
        let refused = drive(&[(from, to)]).unwrap_err().to_string();
        assert!(refused.contains(field) && refused.contains(allowed), "{refused}");
    }
    for nonsense in ["", "<a/>", "<Execution_Parameter_Set>", "{}"] {
        assert!(import_drive(nonsense, "x.xml").is_err(), "{nonsense:?}");
    }
}

#[test]
fn what_is_ignored_or_missing_is_listed() {
    let imported = import_drive(&file("ssdconfig.xml"), "ssdconfig.xml").unwrap();
    let has = |text: &str| imported.notes.iter().any(|note| note.contains(text));
    assert!(
        has("ignored Data_Cache_DRAM_tRCD = 13") && has("GC_Block_Selection_Policy = RGA"),
        "{:?}",
        imported.notes
    );
    assert!(!has("is missing"), "{:?}", imported.notes);
    assert_eq!(imported.config.about.assumed, imported.notes);
    let bare = import_drive("<Execution_Parameter_Set/>", "x.xml").unwrap();
    assert!(bare.notes.iter().any(|note| note.contains("Flash_Channel_Count is missing: MQSim's default 8")));
}

#[test]
fn what_is_exported_imports_as_the_same_drive() {
    let ideal = ("<Ideal_Mapping_Table>false", "<Ideal_Mapping_Table>true");
    let variants: &[&[(&str, &str)]] = &[
        &[],
        &[ideal],
        &[("<Flash_Technology>MLC", "<Flash_Technology>TLC"), (">RGA<", ">FIFO<")],
        &[("<PCIe_Lane_Bandwidth>1.0", "<PCIe_Lane_Bandwidth>0.37"), (">ERASE<", ">NONE<")],
        &[
            ("<Channel_Transfer_Rate>333", "<Channel_Transfer_Rate>800"),
            ("<Plane_No_Per_Die>2", "<Plane_No_Per_Die>1"),
        ],
    ];
    for variant in variants {
        let before = drive(variant).unwrap();
        let text =
            export_drive(&before, &|path| (path == "medium.nand.page_bytes").then(|| "a remark".into()))
                .unwrap();
        assert!(text.contains("<Page_Capacity>8192</Page_Capacity> <!-- a remark -->"), "{text}");
        assert!(text.contains("<Enabled_Preconditioning>false<"), "MQSim would fill the drive first: {text}");
        let mut after = import_drive(&text, "exported").unwrap().config;
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
        assert!(near(after.host.link_bytes_per_s as f64, before.host.link_bytes_per_s as f64));
        assert!(near(nand(&after).over_provisioning, nand(&before).over_provisioning), "{variant:?}");
        assert!(after.capacity_bytes.abs_diff(before.capacity_bytes) <= 8192, "{variant:?}");
        // Values that differ slightly by rounding are taken over; the rest must be equal.
        after.about = before.about.clone();
        after.capacity_bytes = before.capacity_bytes;
        after.host = before.host.clone();
        if let (MediumConfig::Nand(after), MediumConfig::Nand(before)) = (&mut after.medium, &before.medium) {
            after.over_provisioning = before.over_provisioning;
        }
        assert_eq!(after, before, "{variant:?}");
    }
}

#[test]
fn a_drive_that_mqsim_cannot_simulate_is_refused() {
    let disk = SimConfig::named("wd-red-6tb-2018").unwrap();
    assert!(export_drive(&disk, &|_| None).unwrap_err().to_string().contains("medium is"));
    let set = SimConfig::named("8xpm1733").unwrap();
    assert!(export_drive(&set, &|_| None).unwrap_err().to_string().contains("drives is 8"));
}

#[test]
fn workloads_are_read() {
    let scenarios = scenarios();
    assert_eq!(scenarios.iter().map(|scenario| scenario.flows.len()).collect::<Vec<_>>(), [2, 1]);
    let FlowKind::Synthetic(reads) = &scenarios[0].flows[0].kind else { panic!("a synthetic flow") };
    assert_eq!((reads.arrivals, reads.addresses), (Arrivals::QueueDepth(16), Addresses::Uniform));
    assert_eq!((reads.read_share, reads.working_set, reads.align_bytes), (1.0, 0.85, 8192));
    assert_eq!(
        (reads.sizes, reads.stop_ns, reads.seed),
        (Sizes::Fixed { sectors: 8 }, Some(50_000_000), 798)
    );
    let FlowKind::Synthetic(mixed) = &scenarios[0].flows[1].kind else { panic!("a synthetic flow") };
    assert_eq!(
        (mixed.arrivals, mixed.addresses),
        (Arrivals::BytesPerSecond(81_920_000.0), Addresses::Streaming)
    );
    assert_eq!(mixed.sizes, Sizes::Normal { mean: 16.0, deviation: 4.0 });
    let FlowKind::Trace(trace) = &scenarios[1].flows[0].kind else { panic!("a trace") };
    assert_eq!((trace.share, trace.repeats, trace.unit_ns), (0.5, 3, 1000.0));
    assert!(trace.path.ends_with("traces/small.trace"), "{}", trace.path.display());
}

#[test]
fn a_scenario_whose_flows_use_no_cache_runs_without_one() {
    let text = file("workload.xml").replace("WRITE_CACHE", "TURNED_OFF");
    let off = import_workload(&text, "workload.xml", &folder()).unwrap();
    let bytes = |scenario: &Scenario| nand(&scenario.prepare(&drive(&[]).unwrap())).write_cache.bytes;
    assert_eq!((bytes(&off[0]), bytes(&scenarios()[0])), (0, 128 * 8192));
}

#[test]
fn any_flash_drive_can_be_exported_and_imported() {
    let flash: Vec<SimConfig> =
        (0..100).map(random_drive).filter(|config| matches!(config.medium, MediumConfig::Nand(_))).collect();
    assert!(flash.len() > 20, "{}", flash.len());
    for config in flash {
        assert_eq!(SimConfig::from_toml(&config.to_toml().unwrap(), "random").unwrap(), config);
        let one = SimConfig { drives: 1, ..config };
        let text = export_drive(&one, &|_| None).unwrap();
        let imported = import_drive(&text, "exported").unwrap_or_else(|error| panic!("{error}\n{text}"));
        SimDevice::new(&imported.config, "sim:exported", 1).unwrap();
    }
}

#[test]
fn workloads_that_make_no_sense_are_refused_by_name() {
    let text = file("workload.xml");
    for (from, to, said) in [
        ("Read_Percentage", "Read_Percent", "unknown field Read_Percent "),
        (
            "<Read_Percentage>100",
            "<Read_Percentage>101",
            "Read_Percentage is 101: allowed is a number from 0 to 100",
        ),
        (
            "RANDOM_UNIFORM",
            "MIXED",
            "Address_Distribution is MIXED: allowed is one of STREAMING, RANDOM_UNIFORM",
        ),
        ("<Stop_Time>50000000", "<Stop_Time>0", "Stop_Time is 0"),
        ("IO_Flow_Parameter_Set_Trace_Based", "IO_Flow", "unknown element IO_Flow"),
    ] {
        assert!(text.contains(from), "{from}");
        let refused =
            import_workload(&text.replace(from, to), "workload.xml", &folder()).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn the_names_of_older_workloads_are_read() {
    let text = file("workload.xml")
        .replace("RANDOM_UNIFORM", "UNIFORM_RANDOM")
        .replace("BANDWIDTH", "ARRIVAL_RATE")
        .replace("Bandwidth>", "Intensity>");
    assert_eq!(import_workload(&text, "workload.xml", &folder()).unwrap(), scenarios());
}

#[test]
fn flows_run_side_by_side_and_repeat_exactly() {
    let scenario = &scenarios()[0];
    let config = scenario.prepare(&drive(&[]).unwrap());
    let once = || {
        let device = SimDevice::new(&config, "sim:ssdconfig.xml", 3).unwrap();
        let result = run(&device, scenario, &AtomicBool::new(false)).unwrap();
        let mut reads = result.flows[0].read_latency_ns.clone();
        reads.add(&result.flows[1].read_latency_ns).unwrap();
        assert_eq!(device.statistics().read_latency_ns, reads, "inside and outside");
        (result, device.digest())
    };
    let (result, digest) = once();
    assert_eq!(once().1, digest);
    let (reads, mixed) = (&result.flows[0], &result.flows[1]);
    assert_eq!((reads.failed, mixed.failed, reads.write_latency_ns.len()), (0, 0, 0));
    // 10,000 requests a second for 50 ms, a quarter of them reads; five standard deviations.
    let (arrived, read) = (mixed.requests() as f64, mixed.read_latency_ns.len() as f64);
    assert!((arrived - 500.0).abs() < 112.0, "{arrived}");
    assert!((read / arrived - 0.25).abs() < 0.1, "{read} of {arrived}");
    let mean_bytes = (mixed.bytes_read + mixed.bytes_written) as f64 / arrived;
    assert!((mean_bytes / 8192.0 - 1.0).abs() < 0.05, "{mean_bytes}");
    // Little's law: sixteen are always in flight.
    let seconds = reads.elapsed.seconds();
    let in_flight = reads.requests() as f64 * reads.read_latency_ns.mean() * 1e-9 / seconds;
    assert!((in_flight / 16.0 - 1.0).abs() < 0.02, "{in_flight}");
    assert!(reads.elapsed.0 >= 50_000_000 && reads.elapsed.0 < 60_000_000, "{:?}", reads.elapsed);
}

#[test]
fn a_trace_runs_as_often_and_as_far_as_it_says() {
    let scenario = &scenarios()[1];
    let config = scenario.prepare(&drive(&[]).unwrap());
    let device = SimDevice::new(&config, "sim:ssdconfig.xml", 3).unwrap();
    let result = run(&device, scenario, &AtomicBool::new(false)).unwrap();
    let flow = &result.flows[0];
    // All eight requests, three times: the share counts for one run only. Two of them write, 12 KiB together.
    assert_eq!((flow.read_latency_ns.len(), flow.write_latency_ns.len(), flow.failed), (18, 6, 0));
    assert_eq!((flow.bytes_read, flow.bytes_written), (18 * 4096, 3 * 12288));
    assert!(flow.elapsed.0 >= 1_500_000, "three times 500 us between first and last: {:?}", flow.elapsed);

    let once = file("workload.xml").replace("<Relay_Count>3", "<Relay_Count>1");
    let scenario = import_workload(&once, "workload.xml", &folder()).unwrap().remove(1);
    let device = SimDevice::new(&config, "sim:ssdconfig.xml", 3).unwrap();
    let flow = run(&device, &scenario, &AtomicBool::new(false)).unwrap().flows.remove(0);
    // The first four, of which one writes.
    assert_eq!((flow.read_latency_ns.len(), flow.write_latency_ns.len()), (3, 1));
}

#[test]
fn files_may_ask_for_the_values_of_mqsim_itself() {
    let text = " USE_INTERNAL_PARAMS\r\n";
    let config = import_drive(text, "ssdconfig.xml").unwrap().config;
    assert_eq!((nand(&config).channels, nand(&config).chips_per_channel), (8, 4));
    let scenarios = import_workload(text, "workload.xml", &folder()).unwrap();
    let device = SimDevice::new(&scenarios[0].prepare(&config), "sim:ssdconfig.xml", 3).unwrap();
    let result = run(&device, &scenarios[0], &AtomicBool::new(false)).unwrap();
    assert_eq!((scenarios.len(), result.flows.len()), (1, 2));
    for flow in &result.flows {
        assert!(flow.read_latency_ns.len() > 1000 && flow.write_latency_ns.is_empty(), "{flow:?}");
        assert_eq!(flow.bytes_read, flow.read_latency_ns.len() * 4096);
    }
}

#[test]
fn space_before_the_declaration_and_negative_seeds_are_read() {
    assert!(import_drive(&format!("\n  {}", file("ssdconfig.xml")), "ssdconfig.xml").is_ok());
    let text = file("workload.xml").replacen("<Seed>", "<Seed>-", 1);
    assert!(import_workload(&text, "workload.xml", &folder()).is_ok());
}

#[test]
fn a_missing_trace_is_named() {
    let text = file("workload.xml").replace("small.trace", "none.trace");
    let scenario = import_workload(&text, "workload.xml", &folder()).unwrap().remove(1);
    let device = SimDevice::new(&drive(&[]).unwrap(), "sim:ssdconfig.xml", 3).unwrap();
    let refused = run(&device, &scenario, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(refused.contains("traces/none.trace"), "{refused}");
}

#[test]
fn absurd_sizes_are_refused_and_do_not_overflow() {
    for (channels, chips, dies, planes, blocks) in [
        ("1024", "1024", "1024", "64", "1048576"),
        ("1024", "64", "1", "64", "1048576"),
        ("4294967296", "1", "1", "1", "1"),
    ] {
        let refused = drive(&[
            ("<Flash_Channel_Count>8", &format!("<Flash_Channel_Count>{channels}")),
            ("<Chip_No_Per_Channel>4", &format!("<Chip_No_Per_Channel>{chips}")),
            ("<Die_No_Per_Chip>2", &format!("<Die_No_Per_Chip>{dies}")),
            ("<Plane_No_Per_Die>2", &format!("<Plane_No_Per_Die>{planes}")),
            ("<Block_No_Per_Plane>2048", &format!("<Block_No_Per_Plane>{blocks}")),
            ("<Page_No_Per_Block>256", "<Page_No_Per_Block>65536"),
        ]);
        assert!(refused.is_err(), "{channels} x {chips} x {dies} x {planes} x {blocks}");
    }
}
