//! `workload.xml`.

use std::path::Path;

use roxmltree::Node;

use super::fields::{Field, Section, children, ignored, is_internal, line, parse, syntax, used};
use super::flow::{Addresses, Arrivals, Flow, FlowKind, Scenario, Sizes, Synthetic, Trace};
use crate::error::Error;

const ROOT: &str = "MQSim_IO_Scenarios";
const SCENARIO_TAG: &str = "IO_Scenario";
const SYNTHETIC_TAG: &str = "IO_Flow_Parameter_Set_Synthetic";
const TRACE_TAG: &str = "IO_Flow_Parameter_Set_Trace_Based";

/// Most flows of a scenario.
const FLOWS_MAX: usize = 64;

const PARTS: &str = "every flow uses all chips here";

const PRIORITY_CLASS: Field = ignored("Priority_Class", "HIGH", "all flows are alike here");
const CACHING_MODE: Field = used("Device_Level_Data_Caching_Mode", "WRITE_CACHE");
const CHANNEL_IDS: Field = ignored("Channel_IDs", "", PARTS);
const CHIP_IDS: Field = ignored("Chip_IDs", "", PARTS);
const DIE_IDS: Field = ignored("Die_IDs", "", PARTS);
const PLANE_IDS: Field = ignored("Plane_IDs", "", PARTS);
const OCCUPANCY: Field =
    ignored("Initial_Occupancy_Percentage", "50", "the state at the start is that of the drive, or --state");

const SYNTHETIC: &[Field] = &[
    PRIORITY_CLASS,
    CACHING_MODE,
    CHANNEL_IDS,
    CHIP_IDS,
    DIE_IDS,
    PLANE_IDS,
    OCCUPANCY,
    used("Working_Set_Percentage", "85"),
    used("Synthetic_Generator_Type", "QUEUE_DEPTH"),
    used("Read_Percentage", "100"),
    used("Address_Distribution", "RANDOM_UNIFORM"),
    used("Percentage_of_Hot_Region", "0"),
    used("Generated_Aligned_Addresses", "false"),
    used("Address_Alignment_Unit", "1"),
    used("Request_Size_Distribution", "FIXED"),
    used("Average_Request_Size", "8"),
    used("Variance_Request_Size", "0"),
    used("Seed", "1"),
    used("Average_No_of_Reqs_in_Queue", "2"),
    used("Bandwidth", "262144").also(&["Intensity"]),
    used("Stop_Time", "0"),
    used("Total_Requests_To_Generate", "0"),
];

const TRACE: &[Field] = &[
    PRIORITY_CLASS,
    CACHING_MODE,
    CHANNEL_IDS,
    CHIP_IDS,
    DIE_IDS,
    PLANE_IDS,
    OCCUPANCY,
    used("File_Path", ""),
    used("Percentage_To_Be_Executed", "100"),
    used("Relay_Count", "1"),
    used("Time_Unit", "NANOSECOND"),
];

/// Reads `workload.xml`. `origin` says where the text comes from, for messages; trace files are looked for
/// relative to `folder`.
///
/// # Errors
/// As [`import_drive`](super::import_drive).
pub fn import_workload(text: &str, origin: &str, folder: &Path) -> Result<Vec<Scenario>, Error> {
    if is_internal(text) {
        return Ok(vec![internal()]);
    }
    let document = parse(text, origin, ROOT)?;
    let mut scenarios = Vec::new();
    for node in children(document.root_element()) {
        expect_tag(node, &[SCENARIO_TAG], origin)?;
        scenarios.push(scenario(node, origin, folder)?);
    }
    if scenarios.is_empty() {
        return Err(syntax(origin, format!("there is no <{SCENARIO_TAG}> in it")));
    }
    Ok(scenarios)
}

/// The scenario in MQSim itself: two flows of random reads of 4 KiB, two in flight each, for a second.
fn internal() -> Scenario {
    let flow = |seed| {
        let kind = FlowKind::Synthetic(Synthetic {
            working_set: 0.85,
            read_share: 1.0,
            arrivals: Arrivals::QueueDepth(2),
            addresses: Addresses::Uniform,
            align_bytes: 16 * super::SECTOR_BYTES,
            sizes: Sizes::Fixed { sectors: 8 },
            seed,
            stop_ns: Some(1_000_000_000),
            requests: None,
        });
        Flow { write_cache: true, kind }
    };
    Scenario { flows: vec![flow(12_344), flow(6_533)], notes: Vec::new() }
}

fn expect_tag(node: Node<'_, '_>, tags: &[&str], origin: &str) -> Result<(), Error> {
    let name = node.tag_name().name();
    if tags.contains(&name) {
        return Ok(());
    }
    Err(syntax(
        origin,
        format!("line {}: unknown element {name}; there are {}", line(&node), tags.join(", ")),
    ))
}

fn scenario(node: Node<'_, '_>, origin: &str, folder: &Path) -> Result<Scenario, Error> {
    let mut scenario = Scenario { flows: Vec::new(), notes: Vec::new() };
    for flow in children(node) {
        expect_tag(flow, &[SYNTHETIC_TAG, TRACE_TAG], origin)?;
        let is_synthetic = flow.tag_name().name() == SYNTHETIC_TAG;
        let (tag, fields) = if is_synthetic { (SYNTHETIC_TAG, SYNTHETIC) } else { (TRACE_TAG, TRACE) };
        let section = Section::read(flow, tag, fields, &[], origin)?;
        let kind = match is_synthetic {
            true => FlowKind::Synthetic(synthetic(&section)?),
            false => FlowKind::Trace(trace(&section, folder)?),
        };
        let write_cache = section.choice(
            "Device_Level_Data_Caching_Mode",
            &[
                ("TURNED_OFF", false),
                ("READ_CACHE", false),
                ("WRITE_CACHE", true),
                ("WRITE_READ_CACHE", true),
            ],
        )?;
        scenario.notes.extend(section.notes());
        scenario.flows.push(Flow { write_cache, kind });
    }
    if scenario.flows.is_empty() || scenario.flows.len() > FLOWS_MAX {
        let count = scenario.flows.len();
        return Err(syntax(
            origin,
            format!("line {}: a scenario of {count} flows: allowed is 1 to {FLOWS_MAX}", line(&node)),
        ));
    }
    // Flows mostly have the same fields.
    scenario.notes.sort();
    scenario.notes.dedup();
    Ok(scenario)
}

fn synthetic(section: &Section) -> Result<Synthetic, Error> {
    let percentage = |name: &str| section.number(name, 0.0..=100.0).map(|percent: f64| percent / 100.0);
    let by_depth = section.choice(
        "Synthetic_Generator_Type",
        &[("QUEUE_DEPTH", true), ("BANDWIDTH", false), ("ARRIVAL_RATE", false)],
    )?;
    let arrivals = match by_depth {
        true => Arrivals::QueueDepth(section.number("Average_No_of_Reqs_in_Queue", 1..=65_536)?),
        false => Arrivals::BytesPerSecond(section.number("Bandwidth", 1.0..=1e13)?),
    };
    let hot = percentage("Percentage_of_Hot_Region")?;
    let addresses = section.choice(
        "Address_Distribution",
        &[
            ("STREAMING", Addresses::Streaming),
            ("RANDOM_UNIFORM", Addresses::Uniform),
            ("UNIFORM_RANDOM", Addresses::Uniform),
            ("RANDOM_HOTCOLD", Addresses::HotCold { hot }),
            ("HOTCOLD_RANDOM", Addresses::HotCold { hot }),
        ],
    )?;
    let is_fixed = section.choice("Request_Size_Distribution", &[("FIXED", true), ("NORMAL", false)])?;
    let sizes = match is_fixed {
        true => Sizes::Fixed { sectors: section.number("Average_Request_Size", 1..=1 << 17)? },
        false => Sizes::Normal {
            mean: section.number("Average_Request_Size", 1.0..=131_072.0)?,
            // MQSim takes its variance for the standard deviation.
            deviation: section.number("Variance_Request_Size", 0.0_f64..=1e9)?,
        },
    };
    let aligned = section.flag("Generated_Aligned_Addresses");
    let align_sectors = if aligned { section.number("Address_Alignment_Unit", 1..=1_u64 << 21)? } else { 1 };
    let limit =
        |name: &str| section.number(name, 0..=u64::MAX).map(|limit| Some(limit).filter(|limit| *limit > 0));
    let (stop_ns, requests) = (limit("Stop_Time")?, limit("Total_Requests_To_Generate")?);
    if stop_ns.is_none() && requests.is_none() {
        let allowed = "more than 0 unless Total_Requests_To_Generate is: the flow would never end";
        return Err(section.wrong("Stop_Time", allowed.into()));
    }
    Ok(Synthetic {
        working_set: section.number("Working_Set_Percentage", 1.0..=100.0)? / 100.0,
        read_share: percentage("Read_Percentage")?,
        arrivals,
        addresses,
        align_bytes: align_sectors * super::SECTOR_BYTES,
        sizes,
        // Negative seeds are as good as others.
        seed: section.number("Seed", i64::MIN..=i64::MAX)? as u64,
        stop_ns,
        // As in MQSim, the number counts only where there is no time.
        requests: requests.filter(|_| stop_ns.is_none()),
    })
}

fn trace(section: &Section, folder: &Path) -> Result<Trace, Error> {
    let path = section.text("File_Path");
    if path.is_empty() {
        return Err(section.wrong("File_Path", "the path of a trace".into()));
    }
    Ok(Trace {
        // The shipped files were written on Windows.
        path: folder.join(path.replace('\\', "/")),
        share: section.number("Percentage_To_Be_Executed", 1.0..=100.0)? / 100.0,
        repeats: section.number("Relay_Count", 1..=1_000_000)?,
        unit_ns: section
            .choice("Time_Unit", &[("PICOSECOND", 0.001), ("NANOSECOND", 1.0), ("MICROSECOND", 1000.0)])?,
    })
}
