//! Stores whose bytes are nonsense under right checksums: whatever is done with them ends, with an answer or
//! with an error, and nothing panics.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod cases;
mod corpus;
mod find;
mod spoil;
mod world;
