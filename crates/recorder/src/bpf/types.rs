//! The kernel's own description of its structures (BTF; Linux, Documentation/bpf/btf.rst).

use std::collections::HashMap;

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

const INTEGER: u32 = 1;
const ARRAY: u32 = 3;
const STRUCTURE: u32 = 4;
const UNION: u32 = 5;
const ENUMERATION: u32 = 6;
const FUNCTION: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const TAG: u32 = 17;
const LONG_ENUMERATION: u32 = 19;

/// How deep structures without names may lie in each other.
const DEPTH_MAX: u32 = 8;

/// The kernel's structures.
#[derive(Debug)]
pub struct Types {
    bytes: Vec<u8>,
    texts: usize,
    /// Where each type is, from type 1 on.
    at: Vec<usize>,
    /// The structures by their names.
    structures: HashMap<String, usize>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl Types {
    /// Of the running kernel; `None` if it does not tell.
    pub fn of_kernel() -> Option<Self> {
        Self::parse(std::fs::read(FILE).ok()?)
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let head = word(&bytes, 4)? as usize;
        let section = |at| head.checked_add(word(&bytes, at)? as usize);
        let (begin, texts) = (section(8)?, section(16)?);
        let end = begin.checked_add(word(&bytes, 12)? as usize)?;
        if magic != MAGIC || end > bytes.len() {
            return None;
        }
        let mut types = Self { bytes, texts, at: Vec::new(), structures: HashMap::new() };
        let mut at = begin;
        while at < end {
            let information = word(&types.bytes, at.checked_add(4)?)?;
            if information >> 24 & 31 == STRUCTURE
                && let Some(name) = types.text(word(&types.bytes, at)?).map(str::to_owned)
            {
                types.structures.insert(name, at);
            }
            types.at.push(at);
            at = at.checked_add(12 + more_bytes(information))?;
        }
        Some(types)
    }

    fn text(&self, offset: u32) -> Option<&str> {
        let text = self.bytes.get(self.texts.checked_add(offset as usize)?..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(text.get(..end)?).ok()
    }

    /// The offset of a field in a structure, in bytes.
    pub fn offset(&self, structure: &str, field: &str) -> Option<i32> {
        let bits = self.bits(*self.structures.get(structure)?, field, DEPTH_MAX)?;
        (bits % 8 == 0).then(|| i32::try_from(bits / 8).ok())?
    }

    /// The offset of a field, which may be in a structure or union without a name, in bits.
    fn bits(&self, at: usize, field: &str, depth: u32) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        let information = word(&self.bytes, at.checked_add(4)?)?;
        let fields = (information & 0xffff) as usize;
        for number in 0..fields {
            let at = at + 12 + number * 12;
            let (name, of, offset) =
                (word(&self.bytes, at)?, word(&self.bytes, at + 4)?, word(&self.bytes, at + 8)?);
            // With bit fields in the structure, the highest bits are the size of one.
            let offset = if information >> 31 == 1 { offset & 0xff_ffff } else { offset };
            let name = self.text(name)?;
            if name == field {
                return Some(offset);
            }
            if name.is_empty()
                && let Some(inner) = self.at.get((of as usize).checked_sub(1)?).copied()
                && matches!(word(&self.bytes, inner.checked_add(4)?)? >> 24 & 31, STRUCTURE | UNION)
                && let Some(within) = self.bits(inner, field, depth)
            {
                return offset.checked_add(within);
            }
        }
        None
    }
}

/// Bytes of a type after its first twelve.
fn more_bytes(information: u32) -> usize {
    let count = (information & 0xffff) as usize;
    match information >> 24 & 31 {
        INTEGER | VARIABLE | TAG => 4,
        ARRAY => 12,
        STRUCTURE | UNION | SECTION | LONG_ENUMERATION => count * 12,
        ENUMERATION | FUNCTION => count * 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { int a; union { struct { long b; long c; }; long d; }; }`.
    fn described() -> Vec<u8> {
        let texts = b"\0outer\0a\0b\0c\0d\0long\0";
        let (outer, a, b, c, d, long) = (1, 7, 9, 11, 13, 15);
        let of = |kind: u32, fields: u32| kind << 24 | fields;
        let types = [
            &[long, of(INTEGER, 0), 8, 64][..],
            &[0, of(STRUCTURE, 2), 16, b, 1, 0, c, 1, 64],
            &[0, of(UNION, 2), 16, 0, 2, 0, d, 1, 0],
            &[outer, of(STRUCTURE, 2), 24, a, 1, 0, 0, 3, 64],
        ]
        .concat();
        let words = [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, texts.len() as u32];
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(words.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn fields_of_nameless_structures_have_offsets_in_the_whole() {
        let types = Types::parse(described()).unwrap();
        let offsets = ["a", "b", "c", "d"].map(|field| types.offset("outer", field));
        assert_eq!(offsets, [Some(0), Some(8), Some(16), Some(8)]);
        assert_eq!((types.offset("outer", "e"), types.offset("inner", "a")), (None, None));
    }

    #[test]
    fn cut_off_descriptions_are_refused() {
        let whole = described();
        for length in 0..whole.len() {
            if let Some(types) = Types::parse(whole[..length].to_vec()) {
                types.offset("outer", "c");
            }
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 0xff;
            if let Some(types) = Types::parse(wrong) {
                types.offset("outer", "c");
            }
        }
    }
}
