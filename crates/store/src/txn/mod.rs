//! Transactions: private write sets, snapshots, first-committer-wins, old versions kept while a snapshot needs them.
