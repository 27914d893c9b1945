//! Fields of events, by the layouts that the kernel tells (`events/*/*/format`).

/// Where a field of an event is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub size: usize,
}

impl Field {
    /// Its bytes.
    pub fn bytes(self, event: &[u8]) -> Option<&[u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// A number of up to eight bytes.
    pub fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = self.bytes(event)?;
        let mut number = [0; 8];
        let part = if cfg!(target_endian = "little") {
            number.get_mut(..bytes.len())?
        } else {
            number.get_mut(8_usize.checked_sub(bytes.len())?..)?
        };
        part.copy_from_slice(bytes);
        Some(u64::from_ne_bytes(number))
    }
}

/// The number of an event.
pub fn id(format: &str) -> Option<u64> {
    format.lines().find_map(|line| line.strip_prefix("ID: ")?.trim().parse().ok())
}

/// The fields in their order, with their names.
pub fn fields(format: &str) -> impl Iterator<Item = (&str, Field)> {
    format.lines().filter_map(one)
}

/// The field of a name.
pub fn field(format: &str, name: &str) -> Option<Field> {
    fields(format).find_map(|(declared, field)| (declared == name).then_some(field))
}

/// A line such as `field:sector_t sector; offset:16; size:8; signed:0;`.
fn one(line: &str) -> Option<(&str, Field)> {
    let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
    let name = declared.rsplit(' ').next()?.split('[').next()?;
    let number = |key: &str| rest.split(key).nth(1)?.split(';').next()?.trim().parse().ok();
    Some((name, Field { offset: number("offset:")?, size: number("size:")? }))
}
