//! Records before anything is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Records;
use crate::engine::{Engine, Failure, Session};
use crate::keys;

/// Records of a transaction.
const BATCH: usize = 100;

/// Clients that load, each a part of the keys.
pub(super) const CLIENTS: usize = 4;

/// Puts all records into the first table, in key order. `false` if it was interrupted.
///
/// # Errors
/// Those of the engine.
pub(super) fn load(
    engine: &dyn Engine,
    records: Records,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<bool> {
    let order = Arc::new(keys::by_scattered_key(records.count));
    let stop = Arc::clone(interrupt);
    engine.run(
        CLIENTS,
        Arc::new(move |client, session| {
            let part = order.len().div_ceil(CLIENTS);
            let own = order.iter().skip(client * part).take(part);
            let own: Vec<u64> = own.copied().collect();
            for batch in own.chunks(BATCH) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                while !put_all(session, batch, &records)? {}
            }
            Ok(())
        }),
    )?;
    engine.settle()?;
    Ok(!interrupt.load(Ordering::Relaxed))
}

/// `false` if another transaction was faster.
fn put_all(session: &mut dyn Session, batch: &[u64], records: &Records) -> anyhow::Result<bool> {
    let (mut key, mut value) = (vec![0; records.key_bytes], vec![0; records.value_bytes]);
    let mut put = || -> Result<(), Failure> {
        session.begin()?;
        for record in batch {
            keys::scattered_key(*record, &mut key);
            keys::value(*record, 0, &mut value);
            session.put(0, &key, &value)?;
        }
        session.commit()
    };
    match put() {
        Ok(()) => Ok(true),
        Err(Failure::Conflict) => Ok(false),
        Err(Failure::Broken(error)) => Err(error),
    }
}
