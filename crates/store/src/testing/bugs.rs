//! Mistakes that an engineer could make, planted one at a time to prove that the campaigns find them.
//!
//! Each is made at one place of the store (`planted!(Name)` there), or at two where a second line of defence
//! would hide it, and only where it matters: a store with a bug works, until it needs the step that the bug
//! leaves out. A bug is planted for the calling thread alone, so that tests run side by side; it takes effect
//! in stores whose workers run on that thread ([`Simulated`](crate::Simulated)).

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    static STRIKES: Cell<u64> = const { Cell::new(0) };
}

/// The kind of campaign that finds a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finder {
    /// Recovery after a power cut, crashes in a row included.
    Crash,
    /// Requests that fail.
    Errors,
    /// Bits that flip, and writes and reads that go astray.
    Decay,
    /// Comparison with a model while nothing fails: the records that transactions, snapshots and scans see,
    /// and those after a close.
    Model,
    /// Histories of concurrent transactions.
    Isolation,
    /// Comparison with a model, histories, failing requests and recovery, of LSM-trees.
    Lsm,
    /// Bits that flip, and writes and reads that go astray, of LSM-trees.
    LsmDecay,
    /// Comparison with a model, histories, failing requests and recovery, of Bε-trees.
    BeTree,
    /// Comparison with a model, failing requests and recovery, of trees whose nodes are in blocks.
    Blocks,
    /// Bits that flip, and writes and reads that go astray, of trees whose nodes are in blocks.
    BlocksDecay,
    /// Stores on which everything is drawn, of any kind of trees.
    Swarm,
}

macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $bug:ident: $name:literal, $finder:ident;)*) => {
        /// See the module. The comment of each bug describes the mistake and the damage to a user.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Bug {
            $($(#[doc = $what])+ $bug,)*
        }

        impl Bug {
            /// All bugs.
            pub const ALL: &[Self] = &[$(Self::$bug),*];

            /// A name for reports and command lines.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// The mistake, and the damage to a user.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($what),+).trim_ascii(),)*
                }
            }

            /// The kind of campaign that finds the bug.
            pub fn finder(self) -> Finder {
                match self {
                    $(Self::$bug => Finder::$finder,)*
                }
            }
        }
    };
}

bugs! {
    // The log.
    /// The log's flush is skipped: commits are acknowledged that a power cut takes away.
    LogSkipsFlush: "log-skips-flush", Crash;
    /// A commit counts as durable when it is written: a power cut takes acknowledged commits away.
    LogAcknowledgesWritten: "log-acknowledges-written", Crash;
    /// A durable write of the log is taken for a flush of earlier writes: acknowledged commits are cut off
    /// after a hole.
    DsyncTakenForFlush: "dsync-taken-for-flush", Crash;
    /// The log is flushed on the device of the pages, which is another one: acknowledged commits are lost.
    LogFlushesOtherDevice: "log-flushes-other-device", Errors;
    /// A failed flush of the log is tried again as if nothing had happened: acknowledged commits that the
    /// first one dropped are gone.
    FailedFlushRetried: "failed-flush-retried", Errors;
    /// The log's ring is used again from a checkpoint's cut on, not from its end: a crash in between leaves
    /// the older checkpoint without its log.
    RingReusedTooEarly: "ring-reused-too-early", Crash;
    /// A checkpoint replays the log from its end at the cut, although commits before it are not applied: they
    /// are lost.
    ReplayStartsTooLate: "replay-starts-too-late", Crash;
    /// Timestamps go on where the checkpoint was, not where the log ends: recovered commits and new ones
    /// share numbers, and the next recovery takes some for done.
    TimestampsRepeat: "timestamps-repeat", Crash;
    /// After recovery the log goes on in its last block, not after it: durable commits are overwritten.
    LastBlockOverwritten: "last-block-overwritten", Crash;
    /// Blocks that a crash left after the log's end are neither erased nor told apart by their chain: commits
    /// come back that never were.
    ChainNotVerified: "chain-not-verified", Crash;
    /// The beginning of a record that a crash has torn is put before a later one: that one cannot be read.
    TornRecordKept: "torn-record-kept", Crash;
    /// A damaged block is taken for the log's end although the checkpoint, the durable mark or a later one
    /// knows that it was durable: acknowledged commits vanish silently.
    DamageTakenForTornTail: "damage-taken-for-torn-tail", Decay;
    /// The checksum of a log block is not verified: flipped bits become data.
    LogChecksumIgnored: "log-checksum-ignored", Decay;
    /// An idle log is not settled: damage to its last group is taken for a torn tail.
    LogNeverSettles: "log-never-settles", Decay;
    /// A store that was closed and opened again still says that it is closed: after a crash its log is not
    /// replayed.
    StaysClosedWhenOpened: "stays-closed-when-opened", Crash;

    /// Recovery erases blocks after the log's end, but appends go on before that is flushed, and the chain is
    /// not verified: after another crash commits come back that never were.
    ErasedNotFlushed: "erased-not-flushed", Crash;
    /// The log is written further beyond its durable end than recovery looks and erases, and the chain is not
    /// verified: commits come back that never were.
    LogWindowNotWatched: "log-window-not-watched", Crash;

    /// When the log moves, it goes on in its new place before the superblock says so: a crash in between
    /// loses acknowledged commits.
    LogMovedBeforeSuperblock: "log-moved-before-superblock", Crash;
    /// The log's old place is used again before the superblock names the new one: a crash in between leaves a
    /// store without its log.
    OldRingFreedTooEarly: "old-ring-freed-too-early", Crash;
    /// A device becomes shorter before a superblock says so.
    CutBeforeSuperblock: "cut-before-superblock", Crash;
    /// The log moves to a place to which a crashed store had copied more of it: commits come back that
    /// recovery did not find.
    MovedOntoStaleCopies: "moved-onto-stale-copies", Crash;

    // Checkpoints.
    /// A superblock is written before the pages that it refers to are flushed: after a crash they are not
    /// there.
    CheckpointSkipsFlush: "checkpoint-skips-flush", Crash;
    /// Of the write units of a checkpoint, or of overflow values, only the first is waited for.
    OneUnitAwaited: "one-unit-awaited", Crash;
    /// A superblock is written before the log is durable up to its cut: it vouches for commits that are not
    /// there.
    CheckpointBeforeLog: "checkpoint-before-log", Crash;
    /// A checkpoint goes on after the flush of its pages has failed, and a later flush counts: pages are gone
    /// that were dropped.
    CheckpointForgivesFlush: "checkpoint-forgives-flush", Errors;
    /// A superblock counts as current before it is flushed: segments that the older one needs are used again.
    SuperblockNotFlushed: "superblock-not-flushed", Crash;
    /// A superblock is written once, not twice: a single damaged sector turns back time.
    SuperblockHasOneCopy: "superblock-has-one-copy", Decay;
    /// The checksum of a superblock is not verified: flipped bits lead anywhere.
    SuperblockChecksumIgnored: "superblock-checksum-ignored", Decay;
    /// A superblock is written over the current one, not next to it: if its sector is spoilt, there is none.
    GenerationRepeats: "generation-repeats", Crash;
    /// A superblock does not say that the drive has grown: one that has become shorter since is not refused.
    GrowthNotRecorded: "growth-not-recorded", Decay;
    /// The superblock of the even generation is taken even if the other one is newer: time turns back.
    OlderSuperblockTaken: "older-superblock-taken", Model;
    /// Segments become free, and are discarded, before the superblock that no longer needs them is written.
    FreedBeforeSuperblock: "freed-before-superblock", Crash;
    /// A page that changes while a checkpoint is made is not kept as it was at the cut: the checkpoint lacks
    /// earlier commits.
    ChangedPageNotKept: "changed-page-not-kept", Crash;
    /// Freed pages stay in the page table: they come back after a restart, and take the places of others.
    FreedPageLeftInMap: "freed-page-left-in-map", Crash;
    /// A page table that is written as a whole has pages where they moved after the cut: the images there may
    /// never have been written.
    MapHasLaterPlaces: "map-has-later-places", Crash;
    /// A page table that is written as a whole lacks pages that are just being loaded.
    LoadingPageLeftOutOfMap: "loading-page-left-out-of-map", Crash;
    /// A checkpoint does not note which page numbers were given out since the last one: new pages take the
    /// places of old ones.
    NextPageForgotten: "next-page-forgotten", Crash;

    // Segments and the pool.
    /// A segment is used again as soon as nothing in memory refers to it, although the last checkpoint does.
    SegmentReusedTooEarly: "segment-reused-too-early", Crash;
    /// A checkpoint frees segments that lost their last image after its cut: it refers to them itself.
    PendingEpochOffByOne: "pending-epoch-off-by-one", Crash;
    /// Overflow values that are replayed do not count as live: their segments are freed under them.
    ReplayedOverflowNotCounted: "replayed-overflow-not-counted", Crash;
    /// While the log is replayed, other pages may be written over the overflow values that it refers to.
    OverflowNotHeldForReplay: "overflow-not-held-for-replay", Crash;
    /// The cleaner points the page table at new places before anything is written there: a checkpoint may
    /// refer to them.
    CleanerPointsAhead: "cleaner-points-ahead", Crash;
    /// The cleaner puts the image that it has moved in the place of a newer one.
    CleanerMovesStale: "cleaner-moves-stale", Model;
    /// The checksum of a page is not verified: flipped bits become data.
    PageChecksumIgnored: "page-checksum-ignored", Decay;
    /// The number of a page that was read is not verified: a misdirected read or write becomes data.
    PageNumberIgnored: "page-number-ignored", Decay;
    /// The write sequence of a page that was read is not verified: after a lost write an old image becomes
    /// data.
    PageSequenceIgnored: "page-sequence-ignored", Decay;
    /// A page leaves memory before the unit with its image is written: readers find the former content of its
    /// place.
    EvictedBeforeWritten: "evicted-before-written", Model;
    /// A record that is known without its page stays as it is when it is changed in its page: reads return
    /// the old value.
    RecordNotAmended: "record-not-amended", Model;
    /// A failed write of pages is taken for done, and poisons nothing: the pages are gone when they have left
    /// memory.
    FailedWriteForgotten: "failed-write-forgotten", Errors;

    // Transactions.
    /// Transactions are committed without looking for a faster commit: updates get lost.
    CommitSkipsValidation: "commit-skips-validation", Isolation;
    /// The table of recent commits misses one: a transaction overwrites a value that another one has
    /// committed since its snapshot.
    RecentCommitMissed: "recent-commit-missed", Isolation;
    /// A checkpoint's replay start does not ask the indexes: commits that an index has in memory alone are
    /// gone after a crash.
    IndexReplayIgnored: "index-replay-ignored", Lsm;
    /// Removals of others do not count in validation: two transactions take the same record away.
    RemovalNotValidated: "removal-not-validated", Isolation;
    /// A bulk removal is not validated: it removes a part of the records that another commit wrote after the
    /// look.
    RangeRemovalNotValidated: "range-removal-not-validated", Isolation;
    /// A read without a snapshot that finds nothing does not wait until the removal can be seen: the next
    /// read shows the old value.
    AbsenceNotAwaited: "absence-not-awaited", Isolation;
    /// A backup has the trees that there were before its snapshot: one that was made in between is missing.
    BackupMissesNewTree: "backup-misses-new-tree", Model;
    /// A commit relies on the leaves that it read before it had its locks, although others have changed them
    /// since: updates get lost.
    ChangedLeafTrusted: "changed-leaf-trusted", Isolation;
    /// A commit can be seen before it is applied: a snapshot changes while it is read.
    VisibleBeforeApplied: "visible-before-applied", Isolation;
    /// A read without a snapshot returns a value that is not visible yet: the next one returns a value that
    /// the same commit is about to replace.
    ReadDoesNotWaitForVisible: "read-does-not-wait-for-visible", Isolation;
    /// A transaction reads the newest versions instead of those of its snapshot: it sees others' commits in
    /// part.
    SnapshotReadsNewest: "snapshot-reads-newest", Isolation;
    /// Of the keys of a commit only the first is locked: commits are applied in another order than they are
    /// logged.
    OnlyFirstKeyLocked: "only-first-key-locked", Isolation;
    /// The version that the newest snapshot sees is not kept when it is replaced: the snapshot misses the
    /// record.
    OldVersionDropped: "old-version-dropped", Model;
    /// A commit that keeps no replaced version does not say so: a snapshot that comes before it can be seen
    /// misses the record.
    UnkeptNotSaid: "unkept-not-said", Model;
    /// Old versions are given up while the oldest snapshot that sees them is still in use.
    HistoryGivenUpTooEarly: "history-given-up-too-early", Model;
    /// A removed record leaves no trace in its tree while a snapshot still sees it.
    RemovalLeavesNoTombstone: "removal-leaves-no-tombstone", Model;
    /// A scan shows the newest versions, whatever its snapshot.
    ScanIgnoresSnapshot: "scan-ignores-snapshot", Model;
    /// Of a long commit only the first operations are replayed: after a crash it is there in part.
    BatchReplayedInPart: "batch-replayed-in-part", Crash;
    /// Of several operations on a key the oldest is replayed: after a crash values are old.
    OlderReplayedLast: "older-replayed-last", Crash;

    // Trees.
    /// A split loses the first record on the right if its key is the fence itself.
    SplitLosesSeparator: "split-loses-separator", Model;
    /// A merge takes the wrong neighbour out of the parent.
    MergeForgetsNeighbour: "merge-forgets-neighbour", Model;
    /// A scan goes on after a leaf's fence, not at it: a record whose key is the fence is skipped.
    ScanSkipsFence: "scan-skips-fence", Model;
    /// A scan ends at a leaf without records, whatever comes after it.
    ScanEndsAtEmptyLeaf: "scan-ends-at-empty-leaf", Model;

    // Overflow values.
    /// An overflow value is not flushed before its commit is logged: after a crash the commit is there and
    /// its value is not.
    OverflowNotFlushed: "overflow-not-flushed", Crash;
    /// Checkpoints have the pages of overflow values that are not committed: after a crash they stay for
    /// good.
    UncommittedInMap: "uncommitted-in-map", Isolation;
    /// An overflow value is freed when it is replaced, although a snapshot sees it.
    OverflowFreedUnderSnapshot: "overflow-freed-under-snapshot", Model;
    /// The pages of an overflow value that is replaced are not given back: the store fills up.
    ReplacedOverflowLeaks: "replaced-overflow-leaks", Model;
    /// The last page of an overflow value says that it is longer than it is.
    OverflowLengthPadded: "overflow-length-padded", Model;

    // LSM-trees.
    /// A merge drops a tombstone although older versions lie below: removed records come back.
    TombstoneDroppedOverOlder: "tombstone-dropped-over-older", Lsm;
    /// A merge drops a version that a snapshot sees.
    VersionDroppedUnderSnapshot: "version-dropped-under-snapshot", Lsm;
    /// A merge looks at the snapshots for each version anew, and takes one that is coming to be anywhere: it
    /// keeps a version whose removal it has left out.
    SnapshotsLookedAtAgain: "snapshots-looked-at-again", Lsm;
    /// A flushed memtable becomes the oldest run, not the newest one: old values come back.
    NewRunBehindOlder: "new-run-behind-older", Lsm;
    /// A memtable is forgotten when its flush begins: until the end of it records are missing.
    MemtableForgottenEarly: "memtable-forgotten-early", Lsm;
    /// A checkpoint's replay start does not ask frozen memtables: their records are gone after a crash.
    FrozenMemtableNotReplayed: "frozen-memtable-not-replayed", Lsm;
    /// Of several frozen memtables the newest is flushed first: old values come back.
    NewestMemtableFlushedFirst: "newest-memtable-flushed-first", Lsm;
    /// The commit of a memtable that was applied first is taken for the first one in the log: earlier ones
    /// are gone after a crash.
    FirstPutTakenForFirstCommit: "first-put-taken-for-first-commit", Lsm;
    /// The segments of merged tables are never given back.
    MergedTablesLeak: "merged-tables-leak", Lsm;
    /// The overflow values of versions that a merge drops are never given back.
    LeftOutOverflowLeaks: "left-out-overflow-leaks", Lsm;
    /// Replay adds versions that tables have already: their overflow values are given back twice.
    ReplayedVersionDoubled: "replayed-version-doubled", Lsm;
    /// A look-up that may not wait skips tables that it would have to read: it finds an older version, or
    /// none.
    UnreadTableSkipped: "unread-table-skipped", Lsm;
    /// Fence pointers have keys without versions: of a key with versions in several blocks, only those in the
    /// first are found.
    FenceHasNoVersion: "fence-has-no-version", Lsm;
    /// The checksums of tables' blocks are not verified: flipped bits become data.
    TableChecksumIgnored: "table-checksum-ignored", LsmDecay;
    /// Blocks in memory are told apart by their places in a segment alone: reads find those of other
    /// segments.
    OpeningNotInBlockId: "opening-not-in-block-id", Lsm;
    /// A scan backward shows the oldest version of each key.
    BackwardScanShowsOldest: "backward-scan-shows-oldest", Lsm;
    /// A scan that begins at the last key of a table begins after the table.
    ScanSkipsLastKeyOfTable: "scan-skips-last-key-of-table", Lsm;
    /// The last key of a table is not looked for in it.
    LastKeyNotCovered: "last-key-not-covered", Lsm;
    /// The pages of a manifest that was replaced are never given back.
    OldManifestLeaks: "old-manifest-leaks", Lsm;
    /// A table is recorded before all of it is on the device: reads find nothing there, and a crash leaves a
    /// table in part.
    TableNotAwaited: "table-not-awaited", Lsm;
    /// Of several frozen memtables one that was flushed stays, as the newest: old values come back.
    FlushedMemtableStays: "flushed-memtable-stays", Lsm;
    /// A table that cannot be read counts as ended: a merge leaves out the rest of it.
    ReadErrorEndsTable: "read-error-ends-table", Lsm;
    /// A merge in parts leaves out the last key of each part: records are gone.
    BorderKeyLost: "border-key-lost", Lsm;
    /// Filters have no removed keys: look-ups pass tombstones and find older values.
    FilterForgetsRemovals: "filter-forgets-removals", Lsm;
    /// A merge begins another table between two versions of a key: look-ups find those in one of them only.
    VersionsSplitOverTables: "versions-split-over-tables", Lsm;
    /// The segments of a merged table are given back while it has a reader: the reader finds others' blocks.
    TableSweptWhileRead: "table-swept-while-read", Lsm;
    /// A run that is moved as it is becomes the oldest of its new level, not the newest: old values come
    /// back.
    MovedRunBehindOlder: "moved-run-behind-older", Lsm;
    /// A block of a table that is read waits for memory until other blocks are let go, whose readers may wait
    /// for the same: look-ups hang.
    BlockWaitsForBlocks: "block-waits-for-blocks", Lsm;
    /// Changes of the catalog are replayed over a later catalog: a tree that was renamed and dropped comes
    /// back if another one has its last name by now.
    CatalogReplayedOverNewer: "catalog-replayed-over-newer", Lsm;
    /// Merges go on while the store is closed: segments that they give up after the last checkpoint are never
    /// given back.
    MergesGoOnWhenClosed: "merges-go-on-when-closed", Lsm;
    /// A removal of a range removes the key at its end, too.
    RangeEndRemoved: "range-end-removed", Lsm;
    /// A merge drops a removal of a range although older runs have keys of it.
    RangeTombstoneDroppedOverOlder: "range-tombstone-dropped-over-older", Lsm;
    /// A merge drops the value that operands are over: they are merged with nothing.
    BaseUnderOperandsDropped: "base-under-operands-dropped", Lsm;
    /// Operands join although a snapshot sees them apart: it misses the older ones.
    OperandsJoinedAcrossSnapshot: "operands-joined-across-snapshot", Lsm;
    /// Operands are merged in the wrong order.
    OperandsMergedNewestFirst: "operands-merged-newest-first", Lsm;
    /// Operands are there twice when the log was replayed.
    OperandsReplayedTwice: "operands-replayed-twice", Lsm;
    /// Operands are merged with the value that was there before a range was removed.
    BaseUnderRemovedRangeUsed: "base-under-removed-range-used", Lsm;
    /// The log has the commit of a load before its tables are durable: a crash takes away acknowledged
    /// records.
    LoadLoggedBeforeDurable: "load-logged-before-durable", Lsm;
    /// The records of a load do not say which commit has made them: older snapshots see them.
    LoadSeenByOlderSnapshots: "load-seen-by-older-snapshots", Lsm;
    /// The tables of a load come below older ones with keys between theirs: older values stay.
    LoadPlacedBelowNewer: "load-placed-below-newer", Lsm;
    /// The overflow values in the memtables of a dropped tree are never given back.
    DroppedMemtableLeaks: "dropped-memtable-leaks", Lsm;

    // Bε-trees.
    /// A message that has come to a child stays in its parent's buffer as well: it is applied again later,
    /// over newer ones.
    MessageStaysAbove: "message-stays-above", BeTree;
    /// A buffer gives its messages up before the child has them: a checkpoint in between has neither.
    FlushedInTwoSections: "flushed-in-two-sections", BeTree;
    /// A memtable is forgotten before its messages are in pages: readers miss them, and so does a replay.
    MemtableForgottenBeforeFlush: "memtable-forgotten-before-flush", BeTree;
    /// The flush of a memtable begins after the key where that of the one before ended: the messages before
    /// it are lost.
    NextMemtableBegunWhereLastEnded: "next-memtable-begun-where-last-ended", BeTree;
    /// A tombstone ends in a buffer, although older versions of its key lie below: removed records come back.
    TombstoneStopsAbove: "tombstone-stops-above", BeTree;
    /// Overflow values that flushes leave out are not given up: their pages leak.
    LeftOutValueLeaks: "left-out-value-leaks", BeTree;
    /// A removal of a range that comes to a leaf removes nothing there: removed records come back.
    RangeEndsAboveLeaf: "range-ends-above-leaf", BeTree;
    /// A part is changed while a task makes room in it: the change of one of them is lost.
    PartChangedByTwo: "part-changed-by-two", BeTree;
    /// A page does not count the bytes that removed messages leave: it is full without any content.
    LeftBytesNotCounted: "left-bytes-not-counted", BeTree;
    /// The versions of a key are split over two basement nodes: look-ups see one of them.
    VersionsSplitOverBasements: "versions-split-over-basements", BeTree;
    /// The page of a basement node that has become empty is not freed: it leaks.
    EmptyBasementLeaks: "empty-basement-leaks", BeTree;
    /// The pivot of a basement node that was split off lies after its first key: that is not found any more.
    PivotBehindItsChild: "pivot-behind-its-child", BeTree;
    /// The messages on their way to a child take along the removals of the ranges of the children before it.
    RangeOfNeighbourTaken: "range-of-neighbour-taken", BeTree;
    /// When nodes are rebuilt, the message at the border between two of them is lost.
    BorderMessageLost: "border-message-lost", BeTree;
    /// A key that is longer than all before is not noted before it enters the root's page: parts are filled
    /// so far that its pivots may have no room.
    LongerKeyNotNoted: "longer-key-not-noted", Swarm;
    /// The log is replayed from the active memtable on: the records of frozen ones are lost.
    FrozenBufferNotReplayed: "frozen-buffer-not-replayed", BeTree;
    /// A look-up does not ask whether the part that led it to a page has changed meanwhile: it misses records
    /// that have moved, or comes to another page.
    WayDownNotValidated: "way-down-not-validated", BeTree;
    /// A look-up counts operands again that came down while it did: they are applied twice.
    MessageAppliedTwice: "message-applied-twice", BeTree;
    /// A scan does not look into the buffers of a level: it shows old versions.
    ScanPassesBuffer: "scan-passes-buffer", BeTree;
    /// A scan backward goes on before its border, not at it: it leaves records out.
    BackwardScanSkipsBorder: "backward-scan-skips-border", BeTree;
    /// The overflow values in memtables are not freed when their tree is dropped: they leak.
    DroppedBufferLeaks: "dropped-buffer-leaks", BeTree;

    /// A removal of a range is replayed in memory alone: records of it that the replay has flushed stay.
    ReplayedRangeLeftInTables: "replayed-range-left-in-tables", Swarm;

    // Stores without a log.
    /// A checkpoint without a log does not wait for commits under way: a crash leaves a part of one.
    CutAmidCommits: "cut-amid-commits", Swarm;
    /// A checkpoint without a log leaves out the memtables: a crash leaves trees of different commits.
    CutWithoutMemtables: "cut-without-memtables", Swarm;

    // Combinations that only occur where everything is drawn.
    /// A range that excludes the key that it starts with has it: scans show it, and removals take it away.
    ExcludedStartIncluded: "excluded-start-included", Swarm;
    /// A range that includes the key that it ends with has not: scans miss it, and removals leave it.
    IncludedEndExcluded: "included-end-excluded", Swarm;
    /// The bound of a removed range that is longer than any key is cut, and includes keys before it: a record
    /// is gone that should stay.
    LongBoundCut: "long-bound-cut", Swarm;
    /// An iterator that is taken from both ends goes on where they have met: it shows records twice.
    EndsPassEachOther: "ends-pass-each-other", Swarm;
    /// A tree whose last handle goes after it was dropped is not freed: its pages leak until the next
    /// opening.
    LateDropNotSwept: "late-drop-not-swept", Swarm;

    // Nodes in blocks.
    /// The checksum of a block is not compared: a search returns damaged records.
    BlockChecksumIgnored: "block-checksum-ignored", BlocksDecay;
    /// A block is kept for its place whichever image is there later: old records are found.
    BlockOutlivesImage: "block-outlives-image", Blocks;
    /// A search goes on in the part before the one that covers its key.
    WrongPartChosen: "wrong-part-chosen", Blocks;
    /// Bytes read of an image whose page has moved meanwhile count as damage, although the image's segment
    /// was discarded: a search fails.
    MovedImageTakenForDamage: "moved-image-taken-for-damage", Blocks;
    /// The cleaner copies an image in blocks, and gives a new sequence to its first block only.
    OnlyFirstBlockSealed: "only-first-block-sealed", Blocks;
    /// The part after the directory begins with the record after the first one: one is lost.
    PartLosesRecord: "part-loses-record", Blocks;
}

impl Bug {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }

    /// Plants it on the calling thread, in the place of any other, until the result is dropped.
    pub fn plant(self) -> Planted {
        STRIKES.set(0);
        Planted { before: PLANTED.replace(Some(self)), _of_this_thread: PhantomData }
    }

    /// Whether it is planted, which is counted.
    pub(crate) fn strikes(self) -> bool {
        let strikes = PLANTED.get() == Some(self);
        if strikes {
            STRIKES.set(STRIKES.get() + 1);
        }
        strikes
    }
}

/// A bug that is planted, as long as this lives.
#[must_use = "the bug is gone when this is dropped"]
#[derive(Debug)]
pub struct Planted {
    before: Option<Bug>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Planted {
    /// How often it has taken effect so far.
    pub fn strikes(&self) -> u64 {
        STRIKES.get()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_bug_is_planted_on_one_thread_for_a_while() {
        let [one, other] = [Bug::LogSkipsFlush, Bug::LogAcknowledgesWritten];
        assert!(!one.strikes());
        let planted = one.plant();
        assert!(one.strikes() && !other.strikes() && planted.strikes() == 1);
        assert!(!std::thread::spawn(move || one.strikes()).join().unwrap());
        drop(planted);
        assert!(!one.strikes());
    }

    #[test]
    fn names_are_different_and_lead_back() {
        let names: HashSet<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        assert_eq!(names.len(), Bug::ALL.len());
        assert!(Bug::ALL.iter().all(|bug| Bug::named(bug.name()) == Some(*bug) && bug.what().len() > 20));
        assert_eq!(Bug::named("none"), None);
    }
}
