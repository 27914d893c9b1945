//! The precedence of the recorder's threads.

/// How much less of a busy processor the thread gets, in the steps of `nice`: a tenth of a program's share.
const NICENESS: libc::c_int = 10;

/// Lets programs go before the calling thread where processors are busy. A recorder that gets too little of
/// them loses events, which it counts; the program would lose time.
pub fn let_programs_go_first() {
    let this_thread = 0;
    // SAFETY: the call takes numbers and touches no memory.
    // A thread that is refused competes as before.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, this_thread, NICENESS) };
}
