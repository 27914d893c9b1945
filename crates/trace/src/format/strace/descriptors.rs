//! File descriptors of processes, as the kernel has them: a process has a table, which threads share; an
//! entry refers to an open file, which duplicates and children share; an open file has an offset. A process
//! also has a current folder, which relative paths begin at.

use std::collections::HashMap;

use crate::NameId;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFile {
    pub name: NameId,
    /// Whether the name is the whole path, as `strace -y` prints it; else it is the path that the program has
    /// passed.
    pub is_whole_path: bool,
    pub offset_bytes: u64,
    pub is_appended: bool,
    /// Whether writes are durable when they return (`O_SYNC`, `O_DSYNC`).
    pub is_durable: bool,
}

/// The meaning of a descriptor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The number of the open file; `None` for a pipe, a socket or another object that is on no drive.
    file: Option<usize>,
    closes_on_exec: bool,
}

type Table = HashMap<u32, Entry>;

/// All descriptors of all processes.
#[derive(Default)]
pub(super) struct Descriptors {
    files: Vec<OpenFile>,
    tables: Vec<Table>,
    table_of: HashMap<u32, usize>,
    /// Current folders; `None` if the trace does not tell.
    folders: Vec<Option<String>>,
    folder_of: HashMap<u32, usize>,
}

impl Descriptors {
    fn table(&mut self, process: u32) -> Option<&mut Table> {
        let tables = &mut self.tables;
        let table = *self.table_of.entry(process).or_insert_with(|| {
            tables.push(HashMap::new());
            tables.len() - 1
        });
        tables.get_mut(table)
    }

    pub fn open(&mut self, process: u32, descriptor: u32, file: OpenFile, closes_on_exec: bool) {
        let index = self.files.len();
        self.files.push(file);
        if let Some(table) = self.table(process) {
            table.insert(descriptor, Entry { file: Some(index), closes_on_exec });
        }
    }

    /// Notes that a descriptor is of an object that is on no drive.
    pub fn open_no_file(&mut self, process: u32, descriptor: u32, closes_on_exec: bool) {
        if let Some(table) = self.table(process) {
            table.insert(descriptor, Entry { file: None, closes_on_exec });
        }
    }

    pub fn close(&mut self, process: u32, descriptor: u32) {
        if let Some(table) = self.table(process) {
            table.remove(&descriptor);
        }
    }

    /// Closes the descriptors of a range, or has them closed by the next program.
    pub fn close_range(&mut self, process: u32, first: u32, last: u32, only_on_exec: bool) {
        let Some(table) = self.table(process) else { return };
        if !only_on_exec {
            return table.retain(|descriptor, _| !(first..=last).contains(descriptor));
        }
        for (_, entry) in table.iter_mut().filter(|(descriptor, _)| (first..=last).contains(descriptor)) {
            entry.closes_on_exec = true;
        }
    }

    /// Whether the next program keeps a descriptor.
    pub fn set_closes_on_exec(&mut self, process: u32, descriptor: u32, closes_on_exec: bool) {
        if let Some(entry) = self.table(process).and_then(|table| table.get_mut(&descriptor)) {
            entry.closes_on_exec = closes_on_exec;
        }
    }

    pub fn file(&mut self, process: u32, descriptor: u32) -> Option<&mut OpenFile> {
        let index = self.table(process)?.get(&descriptor)?.file?;
        self.files.get_mut(index)
    }

    /// Whether the trace shows the opening of a descriptor, of a file or not.
    pub fn is_known(&mut self, process: u32, descriptor: u32) -> bool {
        self.table(process).is_some_and(|table| table.contains_key(&descriptor))
    }

    /// Makes `copy` refer to the open file of `descriptor`, or to nothing that is known if that is unknown.
    pub fn duplicate(&mut self, process: u32, descriptor: u32, copy: u32, closes_on_exec: bool) {
        let Some(table) = self.table(process).filter(|_| descriptor != copy) else { return };
        match table.get(&descriptor).copied() {
            Some(entry) => table.insert(copy, Entry { closes_on_exec, ..entry }),
            None => table.remove(&copy),
        };
    }

    /// Begins the process `child` of `parent`, with the same table and current folder or copies of them. A
    /// child whose own calls came first in the trace keeps the files that they have opened.
    pub fn fork(&mut self, parent: u32, child: u32, shares_table: bool, shares_folder: bool) {
        let Some(inherited) = self.table(parent).map(|table| table.clone()) else { return };
        let own =
            self.table_of.get(&child).and_then(|table| self.tables.get(*table)).cloned().unwrap_or_default();
        if shares_table {
            if let Some(table) = self.table_of.get(&parent).copied() {
                self.table_of.insert(child, table);
            }
            if let Some(table) = self.table(parent) {
                table.extend(own);
            }
        } else if let Some(table) = self.table(child) {
            table.extend(inherited);
            table.extend(own);
        }
        // A child that has changed its folder by then keeps its own.
        if !self.folder_of.contains_key(&child)
            && let Some(folder) = self.folder_of.get(&parent).copied()
        {
            if shares_folder {
                self.folder_of.insert(child, folder);
            } else if let Some(folder) = self.folders.get(folder).cloned() {
                self.folder_of.insert(child, self.folders.len());
                self.folders.push(folder);
            }
        }
    }

    /// Gives a process a table of its own, as `unshare` does and a new program has.
    pub fn unshare(&mut self, process: u32) {
        if let Some(table) = self.table(process).map(|table| table.clone()) {
            self.table_of.insert(process, self.tables.len());
            self.tables.push(table);
        }
    }

    /// Begins a new program in a process.
    pub fn exec(&mut self, process: u32) {
        self.unshare(process);
        if let Some(table) = self.table(process) {
            table.retain(|_, entry| !entry.closes_on_exec);
        }
    }

    /// Forgets a process that has ended: another one may get its number.
    pub fn end(&mut self, process: u32) {
        self.table_of.remove(&process);
        self.folder_of.remove(&process);
    }

    /// The current folder of a process, if the trace tells it.
    pub fn folder(&self, process: u32) -> Option<&str> {
        self.folders.get(*self.folder_of.get(&process)?)?.as_deref()
    }

    /// Changes the current folder, of other processes as well that share it.
    pub fn set_folder(&mut self, process: u32, path: Option<String>) {
        let folders = &mut self.folders;
        let folder = *self.folder_of.entry(process).or_insert_with(|| {
            folders.push(None);
            folders.len() - 1
        });
        if let Some(folder) = folders.get_mut(folder) {
            *folder = path;
        }
    }
}
