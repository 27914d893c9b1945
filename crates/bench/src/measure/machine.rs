//! Description of the machine on which something was measured.

use std::fs::read_to_string;

/// Kernel, processors and memory in a line, as far as the kernel says.
pub fn machine() -> String {
    let kernel = read_to_string("/proc/sys/kernel/osrelease").ok();
    let about = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processors = processors(&about);
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kib = field(&memory, "MemTotal").and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
    let parts = [
        kernel.map(|kernel| format!("Linux {}", kernel.trim())),
        Some(format!("{processors} × {}", field(&about, "model name").unwrap_or("processor"))),
        memory_kib.map(|kib| format!("{} GiB", (kib + (1 << 19)) >> 20)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Clock rate of the first processor at present, as far as the kernel says.
pub fn processor_hz() -> Option<f64> {
    let about = read_to_string("/proc/cpuinfo").ok()?;
    field(&about, "cpu MHz")?.parse::<f64>().ok().filter(|mhz| *mhz > 0.0).map(|mhz| mhz * 1e6)
}

/// All that the kernel has, also for a process that is kept on one.
fn processors(about: &str) -> usize {
    let is_one =
        |line: &&str| line.strip_prefix("processor").is_some_and(|rest| rest.trim_start().starts_with(':'));
    about.lines().filter(is_one).count().max(1)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: Some Processor @ 2 GHz\n";
        assert_eq!(field(text, "model name"), Some("Some Processor @ 2 GHz"));
        assert_eq!(field(text, "MemTotal"), None);
        assert_eq!(processors("processor\t: 0\nmodel name\t: A processor\n\nprocessor\t: 1\n"), 2);
        assert_eq!(processors(""), 1);
    }
}
