//! The status by which a drive answers a command, as an error of the system and in words.
//!
//! Codes are those of the NVM Express Base specification 2.0, figures 93 to 96. The errors are those that the
//! kernel's own driver gives (`nvme_error_status`), where a program can tell them apart; a failure of the
//! medium is `EIO` as in every file.

/// Status code and status code type.
const CODE: u16 = 0x7ff;

/// The error for a status that is not zero, and its meaning in words.
pub(crate) fn meaning(status: u16) -> (i32, &'static str) {
    match status & CODE {
        0x001 => (libc::EOPNOTSUPP, "the drive does not have this command"),
        0x002 => (libc::EINVAL, "the drive refuses a field of the command"),
        0x004 => (libc::EIO, "an error of the transfer between memory and the drive"),
        0x005 => (libc::EIO, "the drive is losing power"),
        0x006 => (libc::EIO, "an internal error of the drive: look at its log (`nvme error-log`)"),
        0x007 | 0x008 => (libc::EIO, "the command was aborted: the drive was reset, or a time limit passed"),
        0x00b => (libc::ENODEV, "the namespace is gone: attach it again (`nvme attach-ns`), or rescan"),
        0x01c => (libc::EBUSY, "the drive is being formatted or erased: try again when that is done"),
        0x020 => (libc::EROFS, "the namespace is write protected: see `nvme get-feature -f 0x84`"),
        0x080 => (libc::EIO, "an address beyond the namespace's end: it may have been made smaller"),
        0x081 => (libc::ENOSPC, "the drive has no room left for a thinly provisioned namespace"),
        0x082 => (libc::EBUSY, "the namespace is not ready: try again later"),
        0x083 => (libc::EACCES, "another host has reserved the namespace (`nvme resv-report`)"),
        0x084 => (libc::EBUSY, "the namespace is being formatted: try again when that is done"),
        0x182 => (libc::EROFS, "a write to a range that is read only"),
        0x280 => (libc::EIO, "the medium could not be written: the drive is failing, see `nvme smart-log`"),
        0x281 => (libc::EIO, "the medium could not be read: the block is lost, see `nvme smart-log`"),
        0x282..=0x284 => (libc::EILSEQ, "the block's protection information is wrong"),
        0x285 => (libc::EIO, "a comparison failed"),
        0x286 => (libc::EACCES, "access is denied: the drive or this range of it is locked (Opal)"),
        0x287 => {
            (libc::EIO, "the block was discarded or never written, and the drive refuses to read such blocks")
        }
        code if code >> 8 == 3 => (libc::EIO, "no path to the namespace"),
        _ => (libc::EIO, "an error that this program does not know"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_whatever_its_other_bits_say() {
        const DO_NOT_RETRY: u16 = 1 << 14;
        assert_eq!(meaning(0x281), meaning(0x281 | DO_NOT_RETRY));
        assert_eq!(meaning(0x020).0, libc::EROFS);
        assert_eq!(meaning(0x081).0, libc::ENOSPC);
        assert_eq!(meaning(0x303).1, "no path to the namespace");
        assert_eq!(meaning(0x7ff).0, libc::EIO);
    }

    #[test]
    fn no_status_is_taken_for_a_request_to_try_again() {
        for status in 1..=CODE {
            let (errno, words) = meaning(status);
            assert!(
                errno > 0 && ![libc::EINTR, libc::EAGAIN, libc::ECANCELED].contains(&errno),
                "{status:#x}"
            );
            assert!(!words.is_empty());
        }
    }
}
