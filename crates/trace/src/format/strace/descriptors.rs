//! File descriptors of processes, as the kernel has them: a process has a table, which threads share; an
//! entry refers to an open file, which duplicates and children share; an open file has an offset.

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

/// All descriptors of all processes.
#[derive(Default)]
pub(super) struct Descriptors {
    files: Vec<OpenFile>,
    tables: Vec<HashMap<u32, usize>>,
    table_of: HashMap<u32, usize>,
}

impl Descriptors {
    fn table(&mut self, process: u32) -> Option<&mut HashMap<u32, usize>> {
        let tables = &mut self.tables;
        let table = *self.table_of.entry(process).or_insert_with(|| {
            tables.push(HashMap::new());
            tables.len() - 1
        });
        tables.get_mut(table)
    }

    pub fn open(&mut self, process: u32, descriptor: u32, file: OpenFile) {
        let index = self.files.len();
        self.files.push(file);
        if let Some(table) = self.table(process) {
            table.insert(descriptor, index);
        }
    }

    pub fn close(&mut self, process: u32, descriptor: u32) {
        if let Some(table) = self.table(process) {
            table.remove(&descriptor);
        }
    }

    pub fn file(&mut self, process: u32, descriptor: u32) -> Option<&mut OpenFile> {
        let index = *self.table(process)?.get(&descriptor)?;
        self.files.get_mut(index)
    }

    /// Makes `copy` refer to the open file of `descriptor`, or to nothing that is known if that is unknown.
    pub fn duplicate(&mut self, process: u32, descriptor: u32, copy: u32) {
        let Some(table) = self.table(process) else { return };
        match table.get(&descriptor).copied() {
            Some(index) => table.insert(copy, index),
            None => table.remove(&copy),
        };
    }

    /// Begins the process `child` of `parent`, with the same table or a copy of it. A child whose own calls
    /// came first in the trace keeps the files that they have opened.
    pub fn fork(&mut self, parent: u32, child: u32, shares_table: bool) {
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
    }
}
