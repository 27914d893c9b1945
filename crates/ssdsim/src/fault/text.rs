//! Faults as text: TOML fields, and the same on one line.

use std::str::FromStr;

use flashgrain_device::Nanos;
use serde::{Deserialize, Serialize};

use super::{Discarded, Fault, FaultKind, FlushLoss, Operation, PowerCut, Repeat, Survivors, Tear, Trigger};
use crate::error::Error;

/// The kinds by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    PowerCut,
    DeviceGone,
    ReadError,
    WriteError,
    NoSpace,
    FlushError,
    IgnoredFlush,
    LostWrite,
    MisdirectedWrite,
    MisdirectedRead,
    StaleRead,
    FlipAtRest,
    FlipInFlight,
    AfterDiscard,
    Stall,
}

/// A fault with its kind's fields next to its own, as it stands in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flat {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Trigger>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<Repeat>,
    #[serde(flatten)]
    details: Details,
}

/// Fields that only some kinds have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<FlushLoss>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaves: Option<Discarded>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole_drive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    survivors: Option<Survivors>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tear: Option<Tear>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_flight: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl Details {
    /// Takes the fields of `kind`.
    fn take(&mut self, kind: Kind) -> Result<FaultKind, String> {
        let missing = |field: &str, like: &str| format!("'{field}' is missing, such as {field} = {like}");
        Ok(match kind {
            Kind::PowerCut => FaultKind::PowerCut(PowerCut {
                survivors: self.survivors.take().unwrap_or_default(),
                tear: self.tear.take().unwrap_or_default(),
                in_flight: self.in_flight.take().unwrap_or_default(),
                seed: self.seed.take().unwrap_or_default(),
            }),
            Kind::DeviceGone => FaultKind::DeviceGone,
            Kind::ReadError => {
                FaultKind::ReadError { done_bytes: self.done_bytes.take().unwrap_or_default() }
            }
            Kind::WriteError => {
                FaultKind::WriteError { done_bytes: self.done_bytes.take().unwrap_or_default() }
            }
            Kind::NoSpace => FaultKind::NoSpace,
            Kind::FlushError => FaultKind::FlushError {
                data: self.data.take().ok_or_else(|| missing("data", "\"dropped\""))?,
            },
            Kind::IgnoredFlush => FaultKind::IgnoredFlush,
            Kind::LostWrite => FaultKind::LostWrite,
            Kind::MisdirectedWrite => FaultKind::MisdirectedWrite { by_bytes: self.sectors()? },
            Kind::MisdirectedRead => FaultKind::MisdirectedRead { by_bytes: self.sectors()? },
            Kind::StaleRead => FaultKind::StaleRead,
            Kind::FlipAtRest => FaultKind::FlipAtRest { bit: self.bit.take() },
            Kind::FlipInFlight => FaultKind::FlipInFlight { bit: self.bit.take() },
            Kind::AfterDiscard => FaultKind::AfterDiscard {
                leaves: self.leaves.take().ok_or_else(|| missing("leaves", "\"garbage\""))?,
            },
            Kind::Stall => FaultKind::Stall {
                span: Nanos(self.span_ns.take().ok_or_else(|| missing("span_ns", "1000000"))?),
                whole_drive: self.whole_drive.take().unwrap_or_default(),
            },
        })
    }

    fn sectors(&mut self) -> Result<i64, String> {
        let by_bytes = self.by_bytes.take().ok_or("'by_bytes' is missing, such as by_bytes = 4096")?;
        if by_bytes % crate::content::SECTOR_BYTES as i64 != 0 {
            return Err(format!("by_bytes is {by_bytes}: allowed are multiples of 512"));
        }
        Ok(by_bytes)
    }

    /// The fields of `kind`, and no others.
    fn of(kind: &FaultKind) -> (Kind, Self) {
        let mut details = Self::default();
        let name = match kind {
            FaultKind::PowerCut(cut) => {
                details.survivors = Some(cut.survivors.clone());
                details.tear = Some(cut.tear);
                details.in_flight = Some(cut.in_flight);
                details.seed = Some(cut.seed);
                Kind::PowerCut
            }
            FaultKind::DeviceGone => Kind::DeviceGone,
            FaultKind::ReadError { done_bytes } => {
                details.done_bytes = Some(*done_bytes);
                Kind::ReadError
            }
            FaultKind::WriteError { done_bytes } => {
                details.done_bytes = Some(*done_bytes);
                Kind::WriteError
            }
            FaultKind::NoSpace => Kind::NoSpace,
            FaultKind::FlushError { data } => {
                details.data = Some(*data);
                Kind::FlushError
            }
            FaultKind::IgnoredFlush => Kind::IgnoredFlush,
            FaultKind::LostWrite => Kind::LostWrite,
            FaultKind::MisdirectedWrite { by_bytes } => {
                details.by_bytes = Some(*by_bytes);
                Kind::MisdirectedWrite
            }
            FaultKind::MisdirectedRead { by_bytes } => {
                details.by_bytes = Some(*by_bytes);
                Kind::MisdirectedRead
            }
            FaultKind::StaleRead => Kind::StaleRead,
            FaultKind::FlipAtRest { bit } => {
                details.bit = *bit;
                Kind::FlipAtRest
            }
            FaultKind::FlipInFlight { bit } => {
                details.bit = *bit;
                Kind::FlipInFlight
            }
            FaultKind::AfterDiscard { leaves } => {
                details.leaves = Some(*leaves);
                Kind::AfterDiscard
            }
            FaultKind::Stall { span, whole_drive } => {
                details.span_ns = Some(span.0);
                details.whole_drive = Some(*whole_drive);
                Kind::Stall
            }
        };
        (name, details)
    }
}

impl TryFrom<Flat> for Fault {
    type Error = String;

    fn try_from(flat: Flat) -> Result<Self, String> {
        let name =
            toml::Value::try_from(flat.kind).map_or_else(|error| error.to_string(), |name| name.to_string());
        let mut details = flat.details;
        let kind = details.take(flat.kind).map_err(|problem| format!("fault {name}: {problem}"))?;
        let left = toml::Table::try_from(details).map_err(|error| error.to_string())?;
        if let Some(field) = left.keys().next() {
            return Err(format!("fault {name} has no field '{field}'"));
        }
        let start = flat.offset_bytes.unwrap_or(0);
        let at = flat.at.unwrap_or_default();
        match at {
            Trigger::Nth(0) => return Err(format!("fault {name}: at.nth is 0: allowed is 1 and more")),
            Trigger::Probability(share) if !(0.0..=1.0).contains(&share) => {
                return Err(format!("fault {name}: at.probability is {share}: allowed is 0 to 1"));
            }
            _ => {}
        }
        Ok(Self {
            kind,
            operation: flat.operation.unwrap_or_default(),
            at,
            range: start..flat.length_bytes.map_or(u64::MAX, |length| start.saturating_add(length)),
            repeat: flat.repeat.unwrap_or_default(),
        })
    }
}

impl From<Fault> for Flat {
    fn from(fault: Fault) -> Self {
        let (kind, details) = Details::of(&fault.kind);
        let length = fault.range.end.saturating_sub(fault.range.start);
        Self {
            kind,
            operation: (fault.operation != Operation::Any).then_some(fault.operation),
            at: (fault.at != Trigger::Always).then_some(fault.at),
            offset_bytes: (fault.range.start != 0).then_some(fault.range.start),
            length_bytes: (fault.range.end != u64::MAX).then_some(length),
            repeat: (fault.repeat != Repeat::Once).then_some(fault.repeat),
            details,
        }
    }
}

impl FromStr for Fault {
    type Err = Error;

    /// Reads the fields of a `[[fault]]` section on one line, such as `kind = "read-error", at = { nth = 3
    /// }`; a kind alone needs no quotes.
    fn from_str(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Line {
            fault: Fault,
        }
        let fields = if text.contains('=') { text.to_owned() } else { format!("kind = \"{}\"", text.trim()) };
        let line: Line = toml::from_str(&format!("fault = {{ {fields} }}")).map_err(|error| {
            Error::Syntax { origin: format!("fault '{text}'"), problem: error.message().to_owned() }
        })?;
        Ok(line.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<Fault>().unwrap_err().to_string()
    }

    #[test]
    fn faults_read_back_as_they_were_written() {
        let kinds = [
            FaultKind::PowerCut(PowerCut {
                survivors: Survivors::Only(vec![1, 3]),
                tear: Tear::Shorn { unit_bytes: 4096 },
                in_flight: true,
                seed: 9,
            }),
            FaultKind::DeviceGone,
            FaultKind::ReadError { done_bytes: 512 },
            FaultKind::WriteError { done_bytes: 0 },
            FaultKind::NoSpace,
            FaultKind::FlushError { data: FlushLoss::Undurable },
            FaultKind::IgnoredFlush,
            FaultKind::LostWrite,
            FaultKind::MisdirectedWrite { by_bytes: -4096 },
            FaultKind::MisdirectedRead { by_bytes: 512 },
            FaultKind::StaleRead,
            FaultKind::FlipAtRest { bit: Some(77) },
            FaultKind::FlipInFlight { bit: None },
            FaultKind::AfterDiscard { leaves: Discarded::Garbage },
            FaultKind::Stall { span: Nanos(5), whole_drive: true },
        ];
        for kind in kinds {
            for fault in [
                Fault::new(kind.clone()),
                Fault::new(kind)
                    .on(Operation::Write)
                    .at(Trigger::Probability(0.25))
                    .within(4096..8192)
                    .repeat(Repeat::Times(3)),
            ] {
                let text = toml::to_string(&fault).unwrap();
                assert_eq!(toml::from_str::<Fault>(&text).unwrap(), fault, "{text}");
            }
        }
    }

    #[test]
    fn one_line_is_enough() {
        assert_eq!("device-gone".parse::<Fault>().unwrap(), Fault::new(FaultKind::DeviceGone));
        let third = "kind = 'read-error', at = { nth = 3 }, repeat = 'sticky'".parse::<Fault>().unwrap();
        let expected = Fault::new(FaultKind::ReadError { done_bytes: 0 });
        assert_eq!(third, expected.at(Trigger::Nth(3)).repeat(Repeat::Sticky));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(message("gremlins").contains("gremlins"));
        assert!(message("gremlins").contains("read-error"), "{}", message("gremlins"));
        assert!(message("flush-error").contains("'data' is missing"));
        assert!(message("kind = 'no-space', bit = 3").contains("has no field 'bit'"));
        assert!(message("kind = 'no-space', bits = 3").contains("unknown field `bits`"));
        assert!(message("kind = 'no-space', at = { nth = 0 }").contains("at.nth is 0"));
        assert!(message("kind = 'no-space', at = { probability = 1.5 }").contains("allowed is 0 to 1"));
        assert!(message("kind = 'misdirected-read', by_bytes = 100").contains("multiples of 512"));
    }
}
