//! Configured parameters beside learned ones.

use flashgrain_profile::schema::{Learned, LearnedValue};
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::{MediumConfig, NandConfig};

/// Confidence from which a wrong value cannot be excused.
pub const CONFIDENT: f64 = 0.8;

/// How one learned parameter compares with the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Right,
    Undetermined,
    /// Reported, and not what was configured.
    Wrong,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub parameter: &'static str,
    /// `None`: nothing in the drive corresponds to it, and reporting a value is wrong.
    pub configured: Option<f64>,
    pub learned: LearnedValue,
    pub verdict: Verdict,
}

impl Row {
    fn new(parameter: &'static str, configured: Option<f64>, learned: &LearnedValue, within: f64) -> Self {
        let verdict = match (learned.estimate.value(), configured) {
            (None, _) => Verdict::Undetermined,
            (Some(value), Some(configured))
                if (value / configured - 1.0).abs() <= within || value == configured =>
            {
                Verdict::Right
            }
            _ => Verdict::Wrong,
        };
        Self { parameter, configured, learned: learned.clone(), verdict }
    }

    pub fn confidently_wrong(&self) -> bool {
        self.verdict == Verdict::Wrong && self.learned.confidence >= CONFIDENT
    }

    pub fn text(&self) -> String {
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
        format!(
            "  {:<16} configured {:>14} learned {:>14} {:?} ({:.2})",
            self.parameter,
            number(self.configured),
            number(self.learned.estimate.value()),
            self.verdict,
            self.learned.confidence
        )
    }
}

/// The hidden parameters that a configuration stands for, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hidden {
    pub desirable: f64,
    pub stripe: Option<f64>,
    pub chunk: Option<f64>,
    pub hot_offset: Option<f64>,
    pub flash_page: Option<f64>,
}

impl Hidden {
    pub fn of(config: &SimConfig) -> Self {
        let smallest = f64::from(config.sector_bytes.max(1024));
        match &config.medium {
            MediumConfig::Nand(nand) => Self::of_nand(nand, smallest),
            // Written in place: no write size is undesirable, and there are no stripes to be seen.
            MediumConfig::Xpoint(xpoint) => {
                let chunk = Some(f64::from(xpoint.chunk_bytes));
                Self { desirable: smallest, stripe: None, chunk, hot_offset: Some(0.0), flash_page: chunk }
            }
            MediumConfig::Disk(_) => {
                Self { desirable: smallest, stripe: None, chunk: None, hot_offset: None, flash_page: None }
            }
        }
    }

    fn of_nand(nand: &NandConfig, smallest: f64) -> Self {
        let layout = &nand.layout;
        // Figure 4 of the hidden-parameters paper: pages smaller than a chunk let a read across its border
        // use two channels (c); where a chunk is a page, such a read has to touch two of them (d).
        let page = u64::from(nand.page_bytes);
        let planes = if nand.multi_plane { u64::from(nand.planes_per_die) } else { 1 };
        let split = layout.chunk_bytes > page;
        // A die senses the pages of all planes at once; where that is a whole chunk or more, pages do not
        // show.
        let sensed = page * planes;
        let flash_page =
            if split { Some(sensed).filter(|sensed| *sensed < layout.chunk_bytes) } else { Some(page) };
        Self {
            desirable: (layout.desirable_write_bytes as f64).max(smallest),
            stripe: Some(layout.stripe_bytes as f64),
            chunk: Some(layout.chunk_bytes as f64),
            hot_offset: Some(if split { layout.chunk_bytes as f64 / 2.0 } else { 0.0 }),
            flash_page: flash_page.map(|bytes| bytes as f64),
        }
    }

    /// Every hidden parameter beside what was learned.
    pub fn rows(&self, learned: &Learned) -> Vec<Row> {
        vec![
            Row::new("desirable write", Some(self.desirable), &learned.desirable_write_bytes, 0.0),
            Row::new("stripe", self.stripe, &learned.stripe_bytes, 0.0),
            Row::new("chunk", self.chunk, &learned.chunk_bytes, 0.0),
            Row::new("hot offset", self.hot_offset, &learned.hot_offset_bytes, 0.0),
            Row::new("flash page", self.flash_page, &learned.flash_page_bytes, 0.0),
        ]
    }
}

/// P and saturation beside those of rounds run for much longer; a P that these do not give is not judged.
pub fn parallel_rows(parallelism: Option<f64>, saturation: f64, learned: &Learned) -> Vec<Row> {
    let parallelism = parallelism.map(|p| Row::new("P", Some(p), &learned.parallelism, 0.10));
    let saturation = Row::new("saturation", Some(saturation), &learned.saturation_bytes_per_second, 0.05);
    parallelism.into_iter().chain([saturation]).collect()
}
