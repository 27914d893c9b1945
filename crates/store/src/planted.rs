//! Macros that mark where a planted bug or planned trouble takes effect, and where a task may be preempted.

/// Whether this bug of [`Bug`](crate::testing::Bug) is planted on the calling thread. Without the feature
/// `testing` this is the constant `false`, so that the compiler removes it from users' builds.
///
/// Each evaluation is counted, so it must be the last operand of a condition: only cases count that the bug
/// would change the outcome of.
#[cfg(feature = "testing")]
macro_rules! planted {
    ($bug:ident) => {
        $crate::testing::Bug::$bug.strikes()
    };
}

#[cfg(not(feature = "testing"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

/// Whether this [`Trouble`](crate::testing::Trouble) happens now on the calling thread, or with `expected`
/// whether it is going to. The constant `false` without the feature `testing`.
#[cfg(feature = "testing")]
macro_rules! trouble {
    ($trouble:ident) => {
        $crate::testing::Trouble::$trouble.strikes()
    };
    (expected $trouble:ident) => {
        $crate::testing::Trouble::$trouble.is_expected()
    };
}

#[cfg(not(feature = "testing"))]
macro_rules! trouble {
    ($trouble:ident) => {
        false
    };
    (expected $trouble:ident) => {
        false
    };
}

/// The calling task may be preempted here, as [`preempt`](crate::testing::preempt) decides. Does nothing
/// without the feature `testing`.
#[cfg(feature = "testing")]
macro_rules! preempt {
    () => {
        $crate::testing::point()
    };
}

#[cfg(not(feature = "testing"))]
macro_rules! preempt {
    () => {};
}
