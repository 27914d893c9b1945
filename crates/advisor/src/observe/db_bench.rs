//! The output of RocksDB's `db_bench`: the sizes of its head, and a line for each benchmark.
//!
//! Filling the database is not counted where anything else was run.

use super::Seen;

/// A benchmark's line: name, operations, and the text in brackets.
struct Line<'a> {
    name: &'a str,
    operations: f64,
    /// Keys that were found, of those that were looked for.
    found: Option<(f64, f64)>,
}

pub(super) fn parse(text: &str) -> Result<Seen, String> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(line).collect();
    if lines.is_empty() {
        return Err("no benchmark has ended in it (a line with micros/op)".into());
    }
    let is_fill = |line: &&Line<'_>| line.name.starts_with("fill");
    let has_more = lines.iter().any(|line| !is_fill(&line));
    let mut seen = Seen {
        key_bytes: head(text, "Keys:"),
        value_bytes: head(text, "Values:"),
        records: head(text, "Entries:"),
        ..Seen::default()
    };
    for line in lines.iter().filter(|line| !has_more || !is_fill(line)) {
        count(line, &mut seen)?;
    }
    if has_more && lines.iter().any(|line| is_fill(&line)) {
        seen.notes.push("filling the database is not counted".into());
    }
    Ok(seen)
}

/// The number after a word of the head.
fn head(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(word))?;
    line.trim_start_matches(word).split_whitespace().next()?.parse().ok()
}

/// `readrandom : 4.5 micros/op 220000 ops/sec 2.6 seconds 100000 operations; 13 MB/s (44256 of 50000 found)`
fn line(text: &str) -> Option<Line<'_>> {
    let (name, rest) = text.split_once(':')?;
    if !rest.contains("micros/op") {
        return None;
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| -> Option<f64> {
        let place = words.iter().position(|word| word.trim_end_matches([';', ',']) == unit)?;
        words.get(place.checked_sub(1)?)?.parse().ok()
    };
    let operations =
        before("operations").or_else(|| Some(before("ops/sec")? * before("seconds").unwrap_or(1.0)))?;
    let found = rest.split_once('(').and_then(|(_, brackets)| {
        let (found, of) = brackets.split_once(" of ")?;
        Some((found.parse().ok()?, of.split_whitespace().next()?.parse().ok()?))
    });
    Some(Line { name: name.trim(), operations, found })
}

fn count(line: &Line<'_>, seen: &mut Seen) -> Result<(), String> {
    let all = line.operations;
    let share = line.found.map_or(1.0, |(found, of)| if of > 0.0 { found / of } else { 1.0 });
    let reads = |reads: f64, seen: &mut Seen| {
        seen.point_hits += reads * share;
        seen.point_misses += reads * (1.0 - share);
    };
    match line.name {
        name if name.starts_with("fill") => seen.inserts += all,
        name if name.starts_with("overwrite") || name.starts_with("update") => seen.updates += all,
        name if name.starts_with("delete") => seen.deletes += all,
        "readrandomwriterandom" | "readwhilewriting" | "readwhilemerging" => {
            // The brackets have the operations of one reading thread; the writers' are reported nowhere.
            let name = line.name;
            seen.notes.push(format!("{name} does not tell its writes apart: one in ten was assumed"));
            reads(all * 0.9, seen);
            seen.updates += all * 0.1;
        }
        "readmissing" => seen.point_misses += all,
        name if name.starts_with("seek")
            || name.starts_with("readseq")
            || name.starts_with("readreverse") =>
        {
            seen.ranges += all;
        }
        name if name.starts_with("read") || name.starts_with("multireadrandom") => reads(all, seen),
        "mixgraph" => return Err("mixgraph does not tell its shares: use the LOG of RocksDB".into()),
        other => return Err(format!("its benchmark {other:?} is none that is known")),
    }
    Ok(())
}
