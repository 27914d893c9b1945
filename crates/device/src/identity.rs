//! Facts that the kernel knows about the drive of a target: /sys and /proc.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Identity;
use crate::target::Target;

/// Fills an identity with the available facts about the first target; all fields are optional.
pub(crate) fn of(target: &Target) -> Identity {
    let mount = (!target.is_block_device).then(|| Mount::of(target.device_number)).flatten();
    let mut identity = Identity {
        target: absolute(&target.path),
        kind: match (&target.namespace, target.is_block_device) {
            (Some(_), _) => "NVMe namespace",
            (None, true) => "block device",
            (None, false) => "file",
        }
        .into(),
        kernel: read(Path::new("/proc/sys/kernel/osrelease")),
        file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
        mount_options: mount.as_ref().map(|mount| mount.options.clone()),
        ..Identity::default()
    };
    // File systems such as btrfs have device numbers of their own: follow their source instead.
    let source_number = || fs::metadata(&mount.as_ref()?.source).ok().map(|metadata| metadata.rdev());
    let directory = sys_block(target.device_number).or_else(|| sys_block(source_number()?));
    if let Some(directory) = directory {
        describe_drive(&mut identity, &directory);
    }
    let layers = [
        identity.block_device.as_deref().and_then(|name| remark_on_device(name, identity.model.as_deref())),
        identity.file_system.as_deref().and_then(remark_on_file_system),
    ];
    let remarks = layers.into_iter().flatten();
    identity.notes.extend(remarks.map(|remark| format!("{}: {remark}", target.path.display())));
    identity
}

/// Names the layers between requests and a drive if the block device is no drive.
fn remark_on_device(name: &str, model: Option<&str>) -> Option<String> {
    let remark = match name.trim_end_matches(|digit: char| digit.is_ascii_digit()) {
        "loop" => {
            "a file, and with it the file system and page cache that it lies in, are part of the measurement"
        }
        "zram" | "ram" => "it lives in memory, so that memory is measured",
        "nbd" | "rbd" | "drbd" => "the network is part of the measurement",
        "dm-" => "a mapped device (a volume, encryption or the like) is part of the measurement",
        "md" => "a set of drives, which the kernel makes into one, is measured",
        _ => return None,
    };
    Some(format!("this is {}: {remark}", model.unwrap_or(name)))
}

/// Names the effects of a file system other than passing requests on.
fn remark_on_file_system(name: &str) -> Option<String> {
    let remark = match name {
        "btrfs" | "bcachefs" | "zfs" => {
            "it writes to new places and verifies checksums when it reads, so that it is measured as much as the drive"
        }
        "overlay" => "a container's layers lie in between; name a directory on a volume to measure its drive",
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "glusterfs" => {
            "it is on another machine, and the way there is part of the measurement"
        }
        other if other.starts_with("fuse") => {
            "a program of its own lies in between and is part of the measurement"
        }
        _ => return None,
    };
    Some(format!("this file system is {name}: {remark}"))
}

/// The path as it will be understood in another directory on another day.
pub(crate) fn absolute(path: &Path) -> String {
    fs::canonicalize(path).unwrap_or_else(|_| path.into()).display().to_string()
}

fn describe_drive(identity: &mut Identity, directory: &Path) {
    let queue = |name: &str| read(&directory.join("queue").join(name));
    let number = |name: &str| queue(name).and_then(|text| text.parse::<u64>().ok());
    identity.block_device = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    identity.model = read(&directory.join("device/model"))
        .or_else(|| layer(directory))
        .or_else(|| virtual_model(directory));
    identity.firmware =
        read(&directory.join("device/firmware_rev")).or_else(|| read(&directory.join("device/rev")));
    identity.scheduler = queue("scheduler").map(|line| chosen(&line));
    identity.write_cache = queue("write_cache");
    identity.rotational = number("rotational").map(|flag| flag == 1);
    identity.poll_queues = number("io_poll").map(|flag| flag == 1);
    identity.queue_requests = number("nr_requests").and_then(|count| u32::try_from(count).ok());
    identity.max_transfer_bytes = number("max_sectors_kb").map(|kib| kib * 1024);
    identity.logical_block_bytes = number("logical_block_size").and_then(|bytes| u32::try_from(bytes).ok());
    identity.physical_block_bytes = number("physical_block_size").and_then(|bytes| u32::try_from(bytes).ok());
}

/// Names of the block devices here that have poll queues, such as `nvme0n1`.
pub fn devices_with_poll_queues() -> Vec<String> {
    let all = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let has_them = |entry: &fs::DirEntry| read(&entry.path().join("queue/io_poll")).as_deref() == Some("1");
    let mut names: Vec<String> =
        all.filter(has_them).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The whole disk's directory under /sys for a device number; a partition leads to its disk.
fn sys_block(device_number: u64) -> Option<PathBuf> {
    let (major, minor) = (libc::major(device_number), libc::minor(device_number));
    let directory = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    if directory.join("partition").exists() {
        directory.parent().map(Path::to_path_buf)
    } else {
        Some(directory)
    }
}

/// The composition of a block device that is no drive, by the name that people gave it.
fn layer(directory: &Path) -> Option<String> {
    let of = |file: &str| read(&directory.join(file));
    let over = |file: String| format!("loop device over {file}");
    let mapped = |name: String| format!("mapped device {name}");
    let set = |level: String| format!("{level} of the kernel (md)");
    of("loop/backing_file")
        .map(over)
        .or_else(|| of("dm/name").map(mapped))
        .or_else(|| of("md/level").map(set))
}

/// Drives without a model string are named after their driver, such as `virtio disk`.
fn virtual_model(directory: &Path) -> Option<String> {
    let driver = fs::canonicalize(directory.join("device/driver")).ok()?;
    let name = driver.file_name()?.to_string_lossy().into_owned();
    Some(if name == "virtio_blk" { "virtio disk (the hypervisor hides the drive)".into() } else { name })
}

/// `none` out of `[none] mq-deadline kyber`.
fn chosen(line: &str) -> String {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(line, |(name, _)| name).into()
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

/// A line of /proc/self/mountinfo.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    file_system: String,
    source: PathBuf,
    options: String,
}

impl Mount {
    fn of(device_number: u64) -> Option<Self> {
        let wanted = format!("{}:{}", libc::major(device_number), libc::minor(device_number));
        let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
        table.lines().filter_map(parse_mount).find(|(number, _)| *number == wanted).map(|(_, mount)| mount)
    }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue` (proc_pid_mountinfo(5)).
fn parse_mount(line: &str) -> Option<(&str, Mount)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let number = before.nth(2)?;
    let per_mount = before.nth(2)?;
    let mut after = after.split(' ');
    let (file_system, source) = (after.next()?.into(), after.next()?.into());
    let options = match after.next() {
        Some(per_super_block) => format!("{per_mount} {per_super_block}"),
        None => per_mount.into(),
    };
    Some((number, Mount { file_system, source, options }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_is_taken_apart() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let (number, mount) = parse_mount(line).unwrap();
        assert_eq!(number, "98:0");
        let options = "rw,noatime rw,errors=continue".into();
        assert_eq!(mount, Mount { file_system: "ext3".into(), source: "/dev/root".into(), options });
        assert_eq!(parse_mount("nonsense"), None);
    }

    #[test]
    fn what_is_no_drive_is_called_what_it_is() {
        let loops = remark_on_device("loop7", Some("loop device over /image")).unwrap();
        assert!(
            loops.starts_with("this is loop device over /image: ") && loops.contains("page cache"),
            "{loops}"
        );
        assert!(remark_on_device("dm-0", None).unwrap().contains("mapped device"));
        assert!(remark_on_file_system("btrfs").unwrap().contains("checksums"));
        assert!(remark_on_file_system("fuseblk").is_some());
        for drive in ["nvme0n1", "sda", "vda", "mmcblk0"] {
            assert_eq!(remark_on_device(drive, None), None);
        }
        for plain in ["ext4", "xfs", "tmpfs"] {
            assert_eq!(remark_on_file_system(plain), None);
        }
    }

    #[test]
    fn the_chosen_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
