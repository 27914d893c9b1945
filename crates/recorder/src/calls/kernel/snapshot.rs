//! What a process has open while the recorder looks (`/proc/PID/fd`, `fdinfo`, `cwd`), as lines of strace.

use std::fs;
use std::path::Path;

use flashgrain_device::clock;

use super::shapes::{SHAPES, Shape, write_escaped};
use super::threads::Threads;

/// The threads of a process.
pub fn threads_of(process: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{process}/task")))
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Describes a process, as if its descriptors were opened now; its other threads share them. `number` stands
/// for the process in the lines.
pub fn describe(process: u32, number: u32, threads: &mut Threads) {
    let folder = format!("/proc/{process}");
    let now = clock::now().0;
    let mut path = String::new();
    if let Ok(current) = fs::read_link(format!("{folder}/cwd")) {
        write_escaped(&mut path, &current.to_string_lossy());
        threads.line(number, now, format_args!("chdir(\"{path}\") = 0"));
    }
    for descriptor in numbers(Path::new(&format!("{folder}/fd"))) {
        let Ok(target) = fs::read_link(format!("{folder}/fd/{descriptor}")) else { continue };
        let information = fs::read_to_string(format!("{folder}/fdinfo/{descriptor}")).unwrap_or_default();
        let of = |key: &str| information.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let bits = of("flags:").and_then(|flags| u64::from_str_radix(flags, 8).ok()).unwrap_or(0);
        let position: u64 = of("pos:").and_then(|position| position.parse().ok()).unwrap_or(0);
        let target = target.to_string_lossy();
        path.clear();
        write_escaped(&mut path, target.strip_suffix(" (deleted)").unwrap_or(&target));
        let mut arguments = String::new();
        if let Some(shape) = Shape::of("openat").and_then(|openat| SHAPES.get(openat)) {
            shape.write(&mut arguments, &[libc::AT_FDCWD as u64, 0, bits, 0, 0, 0], "", 0);
        }
        let is_file = target.starts_with('/');
        // `pipe:[7]` keeps its brackets, which say what it is.
        let printed = if is_file { path.as_str() } else { &target };
        threads.line(number, now, format_args!("openat({arguments}) = {descriptor}<{printed}>"));
        if !is_file {
            continue;
        }
        threads.line(number, now, format_args!("lseek({descriptor}, 0, SEEK_CUR) = {position}"));
        if let Ok(metadata) = fs::metadata(format!("{folder}/fd/{descriptor}")).map(|metadata| metadata.len())
        {
            threads.line(number, now, format_args!("fstat({descriptor}, {{st_size={metadata}}}) = 0"));
        }
    }
    for thread in threads_of(process).into_iter().filter(|thread| *thread != number && process == number) {
        threads.line(number, now, format_args!("clone(flags=CLONE_FILES|CLONE_FS) = {thread}"));
    }
}
