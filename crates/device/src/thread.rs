//! Placement of threads on processors.

use std::io;

use crate::Error;

/// Keeps the calling thread on one processor: the `index`-th of those that it may use now, counted round.
///
/// # Errors
/// [`Error::Os`] if the system refuses.
pub fn pin_thread(index: usize) -> Result<(), Error> {
    let os = || Error::last_os("pin a thread to a processor");
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: all-zero bytes are an empty set of processors.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one set.
    if unsafe { libc::sched_getaffinity(0, bytes, &raw mut allowed) } != 0 {
        return Err(os());
    }
    // SAFETY: `CPU_ISSET` and `CPU_SET` look at and change bits of the sets, whose size bounds the numbers.
    let is_allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &allowed) };
    let allowed: Vec<usize> = (0..8 * bytes).filter(is_allowed).collect();
    let Some(cpu) = allowed.get(index % allowed.len().max(1)) else {
        return Err(Error::Os {
            doing: "find a processor".into(),
            source: io::Error::from_raw_os_error(libc::EINVAL),
        });
    };
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::CPU_SET(*cpu, &mut one) };
    // SAFETY: the kernel reads one set.
    if unsafe { libc::sched_setaffinity(0, bytes, &raw const one) } != 0 {
        return Err(os());
    }
    Ok(())
}
