//! Models of known costs predict those costs.

use flashgrain_model::{
    Access, Affine, AffineCosts, Dam, IoModel, Mqssd, MqssdCosts, Pdam, PdamCosts, Workload,
};
use proptest::prelude::*;

/// Columns of the MQSSD paper's Table 2, converted as [`MqssdCosts::setup_seconds`] says.
fn table_2(setup: [f64; 8], page: [f64; 8]) -> Vec<MqssdCosts> {
    let concurrencies = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    let costs = concurrencies.into_iter().zip(setup).zip(page);
    costs
        .map(|((concurrency, setup), page)| MqssdCosts {
            concurrency,
            setup_seconds: setup * 1e-6 / 2621.44,
            page_seconds: page * 1e-6,
        })
        .collect()
}

#[test]
fn the_mqssd_papers_drive_takes_the_times_of_its_section_3() {
    let reads = table_2(
        [1.47e5, 4.07e4, 1.05e4, 2.93e3, 931.0, 392.0, 263.0, 202.0],
        [3.53, 1.71, 0.659, 0.265, 0.157, 0.121, 0.105, 0.0974],
    );
    let writes = table_2(
        [3.10e5, 2.54e5, 1.54e5, 8.02e4, 4.23e4, 2.15e4, 1.34e4, 9.98e3],
        [2.79, 3.01, 2.59, 1.93, 1.27, 0.891, 0.745, 0.697],
    );
    let drive = Mqssd::from_costs(4096.0, &reads, &writes).unwrap();
    // One thread writes 1 GB in random pages: 31.7 s, in order 0.73 s.
    let gigabyte = 262_144.0;
    let pages = Workload::random(Access::Write, 4096.0, 1.0);
    let random = gigabyte * drive.seconds_per_request(&pages).unwrap();
    assert!((random / 31.7 - 1.0).abs() < 0.05, "{random}");
    let ordered = Workload { random_share: 0.0, ..pages };
    let ordered = gigabyte * drive.seconds_per_request(&ordered).unwrap();
    assert!((ordered / 0.73 - 1.0).abs() < 0.05, "{ordered}");
    for (costs, access) in [(&reads, Access::Read), (&writes, Access::Write)] {
        for costs in costs {
            let setup = drive.setup_seconds(access, costs.concurrency).unwrap();
            assert!((setup / costs.setup_seconds - 1.0).abs() < 0.05, "{access:?} {costs:?} {setup}");
        }
    }
    assert!(Mqssd::from_costs(4096.0, &reads, &[]).is_err());
    assert_eq!(drive.seconds_together(2.0, 1.0), 3.0);
    assert_eq!(drive.seconds_together(0.0, 0.0), 0.0);
}

#[test]
fn both_papers_conventions_of_an_affine_drive_agree() {
    // 1 TB WD Black 2011 of the dictionaries paper's Table 2.
    let costs = AffineCosts::from_alpha(0.012, 0.0029, 4096.0);
    let drive = Affine::from_costs(4096.0, costs, costs);
    let request = Workload::random(Access::Read, 65_536.0, 3.0);
    let dictionaries = 0.012 * (1.0 + 0.0029 * 16.0);
    let mqssd = 0.012 + 16.0 * costs.transfer_seconds_per_byte * 4096.0;
    let seconds = drive.seconds_per_request(&request).unwrap();
    assert!((seconds / dictionaries - 1.0).abs() < 1e-9 && (seconds / mqssd - 1.0).abs() < 1e-9);
    assert!((drive.alpha(Access::Read, 4096.0).unwrap() / 0.0029 - 1.0).abs() < 1e-9);
    assert!((drive.half_bandwidth_bytes(Access::Write).unwrap() / (4096.0 / 0.0029) - 1.0).abs() < 1e-9);
}

#[test]
fn dam_and_pdam_count_whole_blocks() {
    let dam = Dam::from_costs(4096.0, 1e-4, 2e-4);
    let seconds = |bytes: f64| dam.seconds_per_request(&Workload::random(Access::Read, bytes, 9.0)).unwrap();
    assert!((seconds(1.0) / 1e-4 - 1.0).abs() < 1e-9 && (seconds(4096.0) / 1e-4 - 1.0).abs() < 1e-9);
    assert!((seconds(4097.0) / 2e-4 - 1.0).abs() < 1e-9);
    // Requests that continue share the block between them.
    let scan = Workload { random_share: 0.0, ..Workload::random(Access::Write, 1024.0, 1.0) };
    assert!((dam.seconds_per_request(&scan).unwrap() / 5e-5 - 1.0).abs() < 1e-9);

    let costs = PdamCosts { parallelism: 8.0, step_seconds: 1e-4 };
    let pdam = Pdam::from_costs(4096.0, costs, costs);
    assert_eq!(pdam.parallelism(Access::Read), Some(8.0));
    assert!((pdam.cycle_cost_seconds(Access::Write).unwrap() / 1e-4 - 1.0).abs() < 1e-9);
}

/// Lemma 1 of the dictionaries paper: with blocks of the half-bandwidth size, which take two setups each, the
/// DAM is right up to a factor of 2 for aligned requests of any size.
#[test]
fn with_blocks_of_the_half_bandwidth_size_the_dam_is_within_a_factor_of_two() {
    let costs = AffineCosts::from_alpha(0.012, 0.0029, 4096.0);
    let affine = Affine::from_costs(4096.0, costs, costs);
    let block = affine.half_bandwidth_bytes(Access::Read).unwrap();
    let dam = Dam::from_costs(block, 2.0 * 0.012, 2.0 * 0.012);
    for bytes in [512.0, 4096.0, 65_536.0, 0.99 * block, block, 1.01 * block, 10.5 * block, 1e9] {
        let request = Workload::random(Access::Read, bytes, 1.0);
        let ratio =
            dam.seconds_per_request(&request).unwrap() / affine.seconds_per_request(&request).unwrap();
        assert!((0.999..=2.001).contains(&ratio), "{bytes}: {ratio}");
    }
}

/// A request of an algorithm in the affine model: first byte, length, and whether it writes.
type Piece = (u64, u64, bool);

/// Blocks that a DAM transfers for a piece: those that it touches, and for a write those before that are read
/// because the piece covers a part of them only.
fn blocks_of((first, bytes, is_write): Piece, block: u64) -> u64 {
    let touched = first / block..(first + bytes).div_ceil(block);
    let is_whole = |number: &u64| number * block >= first && (number + 1) * block <= first + bytes;
    let read_before = touched.clone().filter(|number| is_write && !is_whole(number)).count() as u64;
    touched.count() as u64 + read_before
}

proptest! {
    /// Lemma 1 of the dictionaries paper, both ways: an algorithm of affine cost C costs at most 4 C blocks of
    /// 1/α bytes, since pieces are widened to blocks and blocks at their ends are read before they are
    /// written; one of C blocks has affine cost 2 C.
    #[test]
    fn affine_and_dam_algorithms_turn_into_each_other(
        pieces in prop::collection::vec((0_u64..1 << 30, 1_u64..1 << 22, any::<bool>()), 1..200),
        block in (9_u32..20).prop_map(|log2| 1_u64 << log2),
    ) {
        let setup_s = 0.01;
        let costs = AffineCosts { setup_seconds: setup_s, transfer_seconds_per_byte: setup_s / block as f64 };
        let affine = Affine::from_costs(block as f64, costs, costs);
        prop_assert_eq!(affine.half_bandwidth_bytes(Access::Write), Some(block as f64));
        // In units of a setup, as the paper counts.
        let affine_cost = |bytes: f64, is_write: bool| {
            let access = if is_write { Access::Write } else { Access::Read };
            affine.seconds_per_request(&Workload::random(access, bytes, 1.0)).unwrap() / setup_s
        };
        let affine_sum: f64 = pieces.iter().map(|(_, bytes, is_write)| affine_cost(*bytes as f64, *is_write)).sum();
        let dam_sum: u64 = pieces.iter().map(|piece| blocks_of(*piece, block)).sum();
        prop_assert!(dam_sum as f64 <= 4.0 * affine_sum * (1.0 + 1e-9), "{dam_sum} blocks of {affine_sum}");
        let back: f64 = (0..dam_sum).map(|number| affine_cost(block as f64, number % 2 == 0)).sum();
        prop_assert!((back - 2.0 * dam_sum as f64).abs() < 1e-6 * back);
    }
}
