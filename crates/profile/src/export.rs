//! A profile in the words of other software.

use flashgrain_model::Access;

use crate::Error;
use crate::schema::{DeviceProfile, Point, WriteRates};
use crate::trial::bytes_text;

/// Rates that both exports need: over depths and sizes, requests or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    bytes: f64,
    sequential_requests: f64,
    random_requests: f64,
}

/// The YAML that Seastar's iotune writes and Scylla and Redpanda read: `disks` with mount point, and IOPS and
/// bandwidth of reads and writes. IOPS are those of random pages, bandwidth that of large requests, both at
/// the best depth. A comment tells the regime of the writes.
///
/// # Errors
/// [`Error::Argument`] if the profile lacks the measurements, with the experiments to run.
pub fn iotune_yaml(profile: &DeviceProfile, mount_point: &str) -> Result<String, Error> {
    let (read, write) = (rates(profile, Access::Read)?, rates(profile, Access::Write)?);
    Ok(format!(
        "disks:\n  - mountpoint: {}\n    read_iops: {:.0}\n    read_bandwidth: {:.0}\n    write_iops: {:.0}\n    write_bandwidth: {:.0}\n# {}\n",
        yaml_string(mount_point),
        read.random_requests,
        read.bytes,
        write.random_requests,
        write.bytes,
        write_regime(profile)
    ))
}

/// A line for the kernel's `io.cost.model` (cgroup v2): device number, then the coefficients of its linear
/// model.
///
/// # Errors
/// As [`iotune_yaml`].
pub fn iocost_line(profile: &DeviceProfile, device_number: &str) -> Result<String, Error> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !device_number.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
        return Err(Error::Argument(format!(
            "'{device_number}' is no device number; it looks like 259:0 (see lsblk)"
        )));
    }
    let (read, write) = (rates(profile, Access::Read)?, rates(profile, Access::Write)?);
    Ok(format!(
        "{device_number} ctrl=user model=linear rbps={:.0} rseqiops={:.0} rrandiops={:.0} wbps={:.0} wseqiops={:.0} wrandiops={:.0}",
        read.bytes,
        read.sequential_requests,
        read.random_requests,
        write.bytes,
        write.sequential_requests,
        write.random_requests
    ))
}

/// One sentence that says whether the write rates of an export describe bursts, which a write cache may take,
/// or sustained writes.
pub fn write_regime(profile: &DeviceProfile) -> String {
    if let Some(rate) = profile.measurements.sustained_write_bytes_per_second() {
        return format!(
            "writes: sustained, at most the {:.0} MB/s of random writes in the steady state",
            rate / 1e6
        );
    }
    match profile.measurements.write_rates() {
        WriteRates::Sustained { burst_bytes } => format!(
            "writes: sustained; the drive's cache takes the first {} faster",
            bytes_text(burst_bytes as u64)
        ),
        WriteRates::NoFall { written_bytes } => format!(
            "writes: the rate did not fall within {}; a profile with --sustain measures longer bursts",
            bytes_text(written_bytes)
        ),
        WriteRates::Bursts => "writes: short bursts, which the drive's write cache may take; a profile with \
                               --sustain measures the sustained rate"
            .to_owned(),
    }
}

/// A string as YAML writes it, quoted where it could be taken for something else.
fn yaml_string(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if text.starts_with('/') && text.bytes().all(plain) {
        return text.to_owned();
    }
    // JSON strings are YAML strings.
    serde_json::Value::from(text).to_string()
}

fn rates(profile: &DeviceProfile, access: Access) -> Result<Rates, Error> {
    let measured = &profile.measurements;
    let all: Vec<&Point> =
        [&measured.order, &measured.depth, &measured.mix, &measured.parallel, &measured.sequential]
            .into_iter()
            .flatten()
            .filter(|point| point.workload.access() == Some(access) && point.is_long_enough())
            .collect();
    let page_bytes = 4096.0;
    let pages = |random: bool| {
        let fits = |point: &&&Point| {
            point.workload.request_bytes == page_bytes && (point.workload.random_share > 0.5) == random
        };
        all.iter().filter(fits).map(|point| point.bytes_per_second / page_bytes).reduce(f64::max)
    };
    let bytes = all.iter().map(|point| point.bytes_per_second).reduce(f64::max);
    // No write is exported as faster than random writes in the steady state: of others, only bursts were
    // measured.
    let lasting = match access {
        Access::Read => f64::INFINITY,
        Access::Write => measured.sustained_write_bytes_per_second().unwrap_or(f64::INFINITY),
    };
    match (bytes, pages(false), pages(true)) {
        (Some(bytes), Some(sequential_requests), Some(random_requests)) => Ok(Rates {
            bytes: bytes.min(lasting),
            sequential_requests: sequential_requests.min(lasting / page_bytes),
            random_requests: random_requests.min(lasting / page_bytes),
        }),
        _ => {
            let requests = if access == Access::Read { "reads" } else { "writes" };
            Err(Error::Argument(format!(
                "the profile lacks random and sequential {requests} of 4 KiB; make it with the experiments order and sequential"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_quoted_where_they_must_be() {
        assert_eq!(yaml_string("/var/lib/data-1"), "/var/lib/data-1");
        assert_eq!(yaml_string("/mnt/my disk: 2"), "\"/mnt/my disk: 2\"");
        assert_eq!(yaml_string("- x"), "\"- x\"");
    }
}
