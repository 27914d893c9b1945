//! openraft's own tests of storages.

use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::types::{Log, State, Types, group};

/// Stores in folders of their own, which are removed with them.
struct Fresh;

impl StoreBuilder<Types, Log, State, TempDir> for Fresh {
    async fn build(&self) -> Result<(TempDir, Log, State), StorageError<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let (log, state) = group(folder.path());
        Ok((folder, log, state))
    }
}

#[test]
fn passes_openrafts_suite() {
    Suite::test_all(Fresh).unwrap();
}
