//! The rates in the output of `db_bench`.

/// Operations per second of each run of a benchmark, in order, such as of
/// `mixgraph : 18.446 micros/op 108070 ops/sec 1.018 seconds 109998 operations; ( Gets:27106 ... )`.
pub(super) fn rates(said: &str, benchmark: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let (name, figures) = line.split_once(" : ").or_else(|| line.split_once(':'))?;
        // Progress that went to the same terminal ends in carriage returns.
        let name = name.rsplit('\r').next()?.trim();
        let words: Vec<&str> = figures.split_whitespace().collect();
        let unit = words.iter().position(|word| *word == "ops/sec")?;
        let rate = words.get(unit.checked_sub(1)?)?.parse::<f64>().ok()?;
        (name == benchmark && rate > 0.0).then_some(rate)
    };
    said.lines().filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_benchmark_in_order() {
        let said = "\
DB path: [/data/db]
filluniquerandom :      17.473 micros/op 56437 ops/sec 0.354 seconds 20000 operations;    6.7 MB/s
readrandomwriterandom :      11.919 micros/op 166528 ops/sec 1.021 seconds 169998 operations; ( reads:78850 writes:4149 total:20000 found:78850)
DB path: [/data/db]
readrandomwriterandom :       8.428 micros/op 236893 ops/sec 1.017 seconds 240998 operations; ( reads:119700 writes:6299 total:20000 found:119700)
";
        assert_eq!(rates(said, "readrandomwriterandom"), [166_528.0, 236_893.0]);
        assert_eq!(rates(said, "filluniquerandom"), [56_437.0]);
        assert_eq!(rates(said, "mixgraph"), [0.0; 0]);
        assert_eq!(rates("mixgraph : 0 micros/op 0 ops/sec", "mixgraph"), [0.0; 0]);
    }
}
