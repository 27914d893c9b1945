//! Calls that change descriptors and folders of processes, and move nothing.

use super::Calls;
use super::line::{Call, descriptor, number_from_end, path, unescaped};
use crate::Names;

/// A path with the folder that it begins in; `None` for a relative one in no folder.
fn joined(folder: Option<&str>, path: &str) -> Option<String> {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", folder?) };
    // `..` stays: after a symbolic link it is not the folder that it seems.
    let is_part = |part: &&str| !part.is_empty() && *part != ".";
    let parts: Vec<&str> = whole.split('/').filter(is_part).collect();
    Some(format!("/{}", parts.join("/")))
}

impl Calls {
    /// The path that a call opens: a whole one if the trace tells the folder, else as the program passed it.
    pub(super) fn opened_path(&mut self, process: u32, call: &Call<'_>, names: &Names) -> Option<String> {
        let path = unescaped(path(call.arguments)?);
        let folder = match descriptor(call.arguments) {
            Some((number, printed)) if call.name.starts_with("openat") => match printed.map(unescaped) {
                Some(printed) => Some(printed),
                None => self.descriptors.file(process, number).map(|file| names.text(file.name).to_owned()),
            },
            _ => self.descriptors.folder(process).map(str::to_owned),
        };
        Some(joined(folder.as_deref().filter(|folder| folder.starts_with('/')), &path).unwrap_or(path))
    }

    pub(super) fn enter_folder(&mut self, process: u32, call: &Call<'_>, names: &Names) {
        let path = match descriptor(call.arguments) {
            Some((_, Some(printed))) => Some(unescaped(printed)),
            Some((number, None)) => {
                self.descriptors.file(process, number).map(|file| names.text(file.name).to_owned())
            }
            None => path(call.arguments)
                .filter(|path| !path.is_empty())
                .and_then(|path| joined(self.descriptors.folder(process), &unescaped(path))),
        };
        self.descriptors.set_folder(process, path.filter(|path| path.starts_with('/')));
    }

    pub(super) fn duplicate(&mut self, process: u32, call: &Call<'_>) {
        let closes_on_exec =
            ["O_CLOEXEC", "F_DUPFD_CLOEXEC"].iter().any(|flag| call.arguments.contains(flag));
        if let (Some((number, _)), Ok(copy)) = (descriptor(call.arguments), u32::try_from(call.result)) {
            self.descriptors.duplicate(process, number, copy, closes_on_exec);
        }
    }

    pub(super) fn controlled(&mut self, process: u32, call: &Call<'_>) {
        if call.arguments.contains("F_DUPFD") {
            self.duplicate(process, call);
        } else if call.arguments.contains("F_SETFD")
            && let Some((number, _)) = descriptor(call.arguments)
        {
            self.descriptors.set_closes_on_exec(process, number, call.arguments.contains("FD_CLOEXEC"));
        }
    }

    /// Processes and programs that begin.
    pub(super) fn of_process(&mut self, process: u32, call: &Call<'_>) {
        let has = |flag| call.arguments.contains(flag);
        match call.name {
            "execve" | "execveat" => self.descriptors.exec(process),
            "unshare" if has("CLONE_FILES") => self.descriptors.unshare(process),
            "unshare" => {}
            _ => {
                if let Ok(child) = u32::try_from(call.result) {
                    self.descriptors.fork(process, child, has("CLONE_FILES"), has("CLONE_FS"));
                }
            }
        }
    }

    /// Descriptors that are closed by range, and those of objects that are on no drive.
    pub(super) fn without_files(&mut self, process: u32, call: &Call<'_>) {
        let closes_on_exec = call.arguments.contains("CLOEXEC");
        match call.name {
            "close_range" => {
                let number = |from_end| number_from_end(call.arguments, from_end);
                if let Some((first, last)) = number(2).zip(number(1)) {
                    let bound = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                    if call.arguments.contains("CLOSE_RANGE_UNSHARE") {
                        self.descriptors.unshare(process);
                    }
                    self.descriptors.close_range(process, bound(first), bound(last), closes_on_exec);
                }
            }
            "pipe" | "pipe2" | "socketpair" => {
                let pair = call.arguments.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
                for text in pair.map_or("", |(pair, _)| pair).split(", ") {
                    if let Some((number, _)) = descriptor(text) {
                        self.descriptors.open_no_file(process, number, closes_on_exec);
                    }
                }
            }
            _ => {
                if let Ok(number) = u32::try_from(call.result) {
                    self.descriptors.open_no_file(process, number, closes_on_exec);
                }
            }
        }
    }
}
