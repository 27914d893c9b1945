//! `flashgrain-simtest`.

use flashgrain_simtest::campaign::{Crash, Seen, live};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let (crash, seen) = (Crash::default(), Seen::default());
    for seed in 0..seeds {
        let began = std::time::Instant::now();
        let life = match live(seed, crash.habits) {
            Ok(life) => life,
            Err(failure) => {
                println!("{failure}");
                continue;
            }
        };
        let lived = began.elapsed();
        let result = crash.explore(&life, &seen, |_| true);
        println!(
            "seed {seed}: {} events, lived {lived:?}, all {:?}: {result:?}",
            life.events.len(),
            began.elapsed()
        );
    }
}
